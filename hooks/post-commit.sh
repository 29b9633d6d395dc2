# >>> git-relay: notes a commit in a session's worktree; elsewhere it does nothing and starts nothing
if [ -z "${GIT_RELAY_DISPATCHER-}" ] && [ -e "${GIT_DIR:-.git}/relay-inbox" ]; then
	if command -v git-relay >/dev/null 2>&1; then
		git-relay hook git post-commit
	elif [ -x '@PROGRAM@' ]; then
		'@PROGRAM@' hook git post-commit
	fi
fi || :
# <<< git-relay
