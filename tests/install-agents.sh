#!/bin/sh
# Install the real agents, at the versions the facts in this project were tried on.
#
#     install-agents.sh [NAME...]         default: claude codex
#
# They go to $GIT_RELAY_TEST_AGENTS (default: ~/.cache/git-relay-agents), one folder a
# version (claude-2.1.332/), and their commands to $GIT_RELAY_TEST_AGENTS/bin.  What is
# there already is left alone.  npm only; prints the bin folder.
set -eu

cache=${GIT_RELAY_TEST_AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/git-relay-agents}

npm_agent() { # folder package@version command
    there="$cache/$1/node_modules/.bin/$3"
    if [ ! -x "$there" ]; then
        command -v npm >/dev/null || {
            echo "install-agents: npm is missing; install Node.js 20 or newer, then run this again" >&2
            exit 5
        }
        fresh="$cache/.$1.$$"
        rm -rf "$fresh"
        mkdir -p "$fresh"
        echo "install-agents: $2" >&2
        (cd "$fresh" && echo '{"private":true}' >package.json &&
            npm install --no-audit --no-fund --loglevel=error "$2" >&2)
        rm -rf "${cache:?}/$1"
        mv "$fresh" "$cache/$1"      # whole or not at all
    fi
    ln -sfn "../$1/node_modules/.bin/$3" "$cache/bin/$3"
}

mkdir -p "$cache/bin"
[ $# -gt 0 ] || set -- claude codex
for name in "$@"; do
    case $name in
        claude) npm_agent claude-2.1.332 @anthropic-ai/claude-code@2.1.332 claude ;;
        codex) npm_agent codex-0.171.0 @openai/codex@0.171.0 codex ;;
        gemini) npm_agent gemini-0.61.0 @google/gemini-cli@0.61.0 gemini ;;
        *)
            echo "install-agents: unknown agent '$name'" >&2
            exit 2
            ;;
    esac
done
echo "$cache/bin"
