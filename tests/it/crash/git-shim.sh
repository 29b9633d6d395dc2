#!/bin/sh
# Stands in for git where the driver looks for it, and for the git that git starts. An agent's git
# passes straight through. The plan says which call is struck, and how.
if [ -n "$GIT_RELAY_LEG" ]; then
    unset GIT_EXEC_PATH SHIM_DRIVER
    exec '@GIT@' "$@"
fi
folder='@FOLDER@'
[ -n "$SHIM_DRIVER" ] || SHIM_DRIVER=$PPID
export SHIM_DRIVER
read -r call how name nth <"$folder/plan"
count=0
[ -e "$folder/count" ] && read -r count <"$folder/count"
count=$((count + 1))
echo "$count" >"$folder/count"
if [ "$how" = record ]; then
    exec '@STRACE@' -y -e signal=none -o "$folder/log.$count" -e 'trace=@CALLS@' '@GIT@' "$@"
fi
[ "$count" = "$call" ] || exec '@GIT@' "$@"
case $how in
before)
    : >"$folder/hit"
    kill -9 "$SHIM_DRIVER"
    ;;
beside)
    : >"$folder/hit"
    '@GIT@' "$@" &
    kill -9 "$SHIM_DRIVER"
    wait
    ;;
after)
    : >"$folder/hit"
    '@GIT@' "$@"
    kill -9 "$SHIM_DRIVER"
    ;;
orphan)
    : >"$folder/hit"
    kill -9 "$SHIM_DRIVER"
    sleep 0.3
    exec '@GIT@' "$@"
    ;;
fails)
    : >"$folder/hit"
    echo 'fatal: struck' >&2
    exit 128
    ;;
alone | both)
    '@STRACE@' -e signal=none -o /dev/null -e "trace=$name" \
        -e "inject=$name:signal=KILL:when=$nth" '@GIT@' "$@"
    code=$?
    [ "$code" = 137 ] || exit "$code"
    : >"$folder/hit"
    if [ "$how" = both ]; then
        kill -9 "$SHIM_DRIVER"
        [ "$PPID" = "$SHIM_DRIVER" ] || kill -9 "$PPID" 2>/dev/null
    fi
    kill -9 $$
    ;;
esac
