#!/bin/sh
# Run COMMAND where nothing can leave the machine: in a network namespace with
# nothing but loopback, as an unprivileged user, with a HOME of its own.
#
#     isolate.sh COMMAND [ARG...]
#
# Needs root (to make the namespace), iproute2 and util-linux.  The user can be
# named by ISOLATE_USER, the home by ISOLATE_HOME.  COMMAND finds in its environment
# GIT_RELAY_TEST_SCRATCH, an empty folder for repositories: outside /tmp and $TMPDIR
# on purpose, because Codex's sandbox leaves both writable.  Build as root first; then
#
#     tests/isolate.sh target/debug/deps/it-0123456789abcdef real_agents
#
# (the newest one: ls -t target/debug/deps/it-* | grep -v '\.d$' | head -1; or what
# `cargo test --no-run --message-format=json` names as "executable").
set -eu

user=${ISOLATE_USER:-relay-test}
home=${ISOLATE_HOME:-/var/tmp/git-relay-test-home}

die() { # message exit-status
    echo "isolate: $1" >&2
    exit "$2"
}

[ $# -gt 0 ] || die "usage: isolate.sh COMMAND [ARG...]" 2
[ "$(id -u)" -eq 0 ] || die "needs root, to make a network namespace" 5
for tool in unshare setpriv ip useradd; do
    command -v "$tool" >/dev/null || die "'$tool' is missing (util-linux, iproute2, passwd)" 5
done

id "$user" >/dev/null 2>&1 || useradd --no-create-home --home-dir "$home" --shell /bin/sh "$user"
uid=$(id -u "$user")
gid=$(id -g "$user")
rm -rf "$home/scratch"
mkdir -p "$home/tmp" "$home/scratch"
chown "$uid:$gid" "$home" "$home/tmp" "$home/scratch"
chmod 700 "$home"

as_user() { setpriv --reuid "$uid" --regid "$gid" --init-groups --no-new-privs "$@"; }

# The user must be able to read what it is to run, and to stand where we stand.  A checkout often
# lies below a closed folder (/root, say): in a mount namespace of the command's own an open,
# empty folder is laid over that one, with nothing in it but what is needed.
closed_above() { # place: the topmost folder above it that the user cannot enter
    at=$1 closed=
    while [ "$at" != / ]; do
        at=$(dirname "$at")
        as_user test -x "$at" || closed=$at
    done
    echo "$closed"
}
node=$(readlink -f "$(command -v node || echo /usr/bin/node)")
program=$(readlink -f "$(command -v "$1" || echo "$1")")
laid=
for place in "$PWD" "${GIT_RELAY_TEST_AGENTS:-/}" "${CARGO_TARGET_DIR:-/}" "$(dirname "$(dirname "$node")")"; do
    closed=$(closed_above "$place")
    [ -z "$closed" ] || laid="$laid$closed	$place
"
done
case $program in "$PWD"/* | "${CARGO_TARGET_DIR:-/nowhere}"/*) ;; *)
    as_user test -r "$program" || die "user '$user' cannot read '$program'" 5 ;;
esac

# What would lead the command back into root's own folders, or tell it about them.
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR CARGO_HOME RUSTUP_HOME \
    SSH_AUTH_SOCK GIT_CONFIG_GLOBAL MAIL SUDO_USER SUDO_UID SUDO_GID SUDO_COMMAND \
    http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY IS_SANDBOX
export HOME="$home" USER="$user" LOGNAME="$user" TMPDIR="$home/tmp" SHELL=/bin/sh
export GIT_RELAY_TEST_ISOLATED=1 GIT_RELAY_TEST_SCRATCH="$home/scratch"

# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --net --mount -- sh -ec '
    ip link set lo up
    uid=$1 gid=$2 laid=$3 here=$4
    shift 4
    as_user() { setpriv --reuid "$uid" --regid "$gid" --init-groups --no-new-privs -- "$@"; }
    tab=$(printf "\t")
    if [ -n "$laid" ]; then
        held=$(mktemp -d)
        mount -t tmpfs -o mode=700 isolate "$held"
        each() { # what to do with every "closed folder <tab> place" and its number
            number=0
            printf "%s" "$laid" | while IFS=$tab read -r closed place; do
                number=$((number + 1))
                "$1" "$closed" "$place" "$held/$number"
            done
        }
        hold() { mkdir "$3" && mount --bind "$2" "$3"; }
        lay() { [ "$(stat -f -c %T "$1")$(stat -c %a "$1")" = tmpfs755 ] || mount -t tmpfs -o mode=755 isolate "$1"; }
        put() { mkdir -p "$2" && mount --bind "$3" "$2"; }
        each hold
        each lay
        each put
        cd "$here"
    fi
    as_user test -r . -a -x . || { echo "isolate: user $uid cannot read $here" >&2; exit 5; }
    exec setpriv --reuid "$uid" --regid "$gid" --init-groups --no-new-privs -- "$@"
' isolate "$uid" "$gid" "$laid" "$PWD" "$@"
