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
# To ask git takes longer than all the rest: what it said in this leg, in the session's worktree, holds
# while no configuration is as new. (Included files are not looked at; the next leg asks anew.) Of
# other repositories, such as those that a test suite makes, it is asked each time.
known='' folder='' leg=''
if [ -n "${GIT_RELAY_LEG-}" ] && [ -n "${GIT_DIR-}" ] && [ "$GIT_DIR" = "${GIT_RELAY_INBOX%/*}" ]; then
	known=$GIT_DIR/relay-hooks-folder
fi
if [ -n "$known" ] && [ -f "$known" ]; then
	{ IFS= read -r leg && IFS= read -r folder; } <"$known"
	[ "$leg" = "$GIT_RELAY_LEG" ] || folder=''
	for config in "${0%/relay/hooks/*}/config" "$GIT_DIR/config.worktree" \
		"${GIT_CONFIG_GLOBAL:-$HOME/.gitconfig}" "${XDG_CONFIG_HOME:-$HOME/.config}/git/config" \
		"${GIT_CONFIG_SYSTEM:-/etc/gitconfig}"; do
		# shellcheck disable=SC3013 # In POSIX since 2024, in every sh long before.
		! [ -e "$config" ] || [ "$known" -nt "$config" ] || folder=''
	done
fi
if [ -z "$folder" ]; then
	folder=$(git rev-parse --git-path hooks 2>/dev/null)
	case $folder in
	*'
'*) known='' ;; # Kept as a line.
	esac
	[ -z "$known" ] || { printf '%s\n%s\n' "$GIT_RELAY_LEG" "$folder" >"$known"; } 2>/dev/null
fi
# Whether a hook is our own block and nothing else: what it would do is done below.
is_ours_alone() {
	read -r line && [ "$line" = '#!/bin/sh' ] && read -r line || return 1
	case $line in '# >>> git-relay'*) ;; *) return 1 ;; esac
	while read -r line && [ "$line" != '# <<< git-relay' ]; do :; done
	[ "$line" = '# <<< git-relay' ] && ! read -r line && [ -z "$line" ]
}
hook=$folder/$name
status=0
if [ -n "$folder" ] && [ "$hook" != "$0" ] && [ -f "$hook" ] && [ -x "$hook" ] &&
	! { [ "$name" = post-commit ] && is_ours_alone <"$hook"; }; then
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
