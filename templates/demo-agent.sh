#!/bin/sh
# A scripted stand-in for a coding agent, for `git relay demo` and the tests. It speaks five words
# on standard output, one a line, which [agent.NAME] in the demo's configuration recognises:
#   start | step … | used=N resets=N | limit … | done …
# NAME of its script on the first argument; the prompt comes on standard input.
prompt=$(cat)
relay=$2
echo start
sleep 0.1
case $1 in
first)
	echo "step reading the task"
	printf 'def greet(name):\n    return "hello " + name\n' >greet.py
	git add greet.py && git commit -q -m 'Add greet' && echo "step committed greet.py"
	"$relay" record --decision 'plain functions, no class: the task is small' \
		--do-not-redo 'greet.py is written and committed' \
		--next 'write test_greet.py and commit it' 2>/dev/null
	echo "used=72 resets=4102444800"
	printf 'from greet import greet\n# half-made when the limit came\n' >test_greet.py
	echo "step began test_greet.py"
	echo "used=100 resets=4102444800"
	echo "limit you have hit your usage limit"
	exit 1
	;;
second)
	case $prompt in
	*'greet.py is written and committed'*) echo "step read the contract: greet.py is done" ;;
	*) echo "failed the contract did not arrive" && exit 1 ;;
	esac
	[ -f test_greet.py ] || { echo "failed the half-made file did not arrive" && exit 1; }
	printf 'from greet import greet\n\n\ndef test_greet():\n    assert greet("you") == "hello you"\n' >test_greet.py
	git add test_greet.py && git commit -q -m 'Test greet' && echo "step committed test_greet.py"
	echo "done greet.py and its test are committed"
	;;
esac
