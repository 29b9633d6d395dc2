#!/bin/sh
# git relay: runs the hook that git would have run here, then notes a commit as a safe point.
# It is reached only by agents that git relay launched, through core.hooksPath in their
# environment. Safe to delete with the folder it is in.
name=${0##*/}
# Of a commit that a user's hook makes inside a commit.
unset GIT_RELAY_DISPATCHER
case ${GIT_RELAY_HOOKS_INDEX-} in
'' | *[!0-9]*) ;;
*)
	# Take our own core.hooksPath out of the environment: git then tells the user's folder, as it
	# is now. The agent may have installed hooks a minute ago.
	eval "GIT_CONFIG_KEY_$GIT_RELAY_HOOKS_INDEX=relay.none"
	export "GIT_CONFIG_KEY_$GIT_RELAY_HOOKS_INDEX"
	;;
esac
folder=$(git rev-parse --git-path hooks 2>/dev/null)
hook=$folder/$name
status=0
if [ -n "$folder" ] && [ "$hook" != "$0" ] && [ -f "$hook" ] && [ -x "$hook" ]; then
	[ "$name" = post-commit ] || exec "$hook" "$@"
	# Should our block stand in it: this commit is noted below, once.
	GIT_RELAY_DISPATCHER=1 "$hook" "$@"
	status=$?
fi
[ "$name" = post-commit ] || exit 0
relay='@PROGRAM@'
[ -x "$relay" ] || relay=$(command -v git-relay) || exit $status
# Ours never fails: where the user's did not either, it may take this shell's place.
[ "$status" != 0 ] || exec "$relay" hook git post-commit
"$relay" hook git post-commit
exit "$status"
