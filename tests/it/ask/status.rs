//! What `status` says of a session that cannot simply go on, and that the command it names works.

use super::{DONE, LIMIT, starts, state, world};
use crate::it::support::World;

const ASKS: &str = "cat >got.md; mv got.md \"$HOME/got.md\"; echo start; echo 'step one'; \
     echo a >a.txt; git add a.txt; git commit -q -m 'Add'; echo 'asks which one?'\n";

fn next(world: &World) -> String {
    let status = world.relay(&["status", "--json"]).exits(0).json();
    status["status"]["next"].as_str().unwrap().to_owned()
}

#[test]
fn who_is_exhausted_and_until_when() {
    let resets = LIMIT.replace("echo 'limit", "echo 'used=99 resets=4102444800'; echo 'limit");
    let world = world(&[("first", &resets), ("second", LIMIT), ("third", DONE)]);
    world.relay(&["run", "A task", "--agents", "first,second"]).exits(6);
    let did = world.relay(&["status"]).exits(0).says("first, until 2100-01-01T00:00:00Z (in ");
    let did = did.says("second, nobody told until when");
    did.says("after 2100-01-01T00:00:00Z; or now: git relay resume")
        .says("--agents first,second,third");
    let status = world.relay(&["status", "--json"]).exits(0).json();
    assert_eq!(status["status"]["exhausted"][0]["agent"], "first");
    assert_eq!(status["status"]["exhausted"][0]["resetsAt"], "2100-01-01T00:00:00Z");
    world.relay(&["resume", "--agents", "third"]).exits(0).says("third took over");
}

#[test]
fn what_the_guard_stops_for_and_how_to_accept_it() {
    let first = LIMIT.replace("echo half", "git config core.sshCommand x; echo half");
    let world = world(&[("first", &first), ("second", DONE)]);
    world.relay(&["run", "A task"]).exits(4);
    let did = world.relay(&["status"]).exits(0);
    did.says("changed since launch: config core.sshcommand added");
    let command = next(&world);
    let (_, command) = command.split_once("or git relay ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    world.relay(&words).exits(0).says("second took over");
    let status = world.relay(&["status", "--json"]).exits(0).json();
    assert!(status["status"]["blocked"].is_null(), "{status}");
}

#[test]
fn a_question_is_to_be_answered_and_conflicts_are_to_be_resolved() {
    let world = world(&[("first", ASKS), ("second", DONE)]);
    world.relay(&["run", "A task"]).exits(1);
    assert_eq!(next(&world), format!("git relay resume {} --answer TEXT", world.session()));
    world.write("a.txt", "mine\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "Mine"]);
    let did = world.relay(&["finish"]).exits(1).says("its work is not done");
    did.says(&format!("hint: git relay finish {}", world.session()));
    world.relay(&["finish", &world.session()]).exits(1);
    let did = world.relay(&["status"]).exits(0).says("conflicts wait to be resolved");
    did.says("conflicts are left there in: a.txt").says("--continue");
    world.relay(&["list"]).exits(0).says("conflicts wait to be resolved");
}

#[test]
fn an_exhausted_agent_is_not_waited_for_unless_that_is_meant() {
    let resets = LIMIT.replace("echo 'limit", "echo 'used=99 resets=4102444800'; echo 'limit");
    let world = world(&[("first", &resets), ("second", ASKS)]);
    world.relay(&["run", "A task"]).exits(1);
    let to = ["handoff", "--no-launch", "--to", "first"];
    let did = world.relay(&to).exits(6).says("the window of 'first' is used up until 2100-01-01");
    did.says("--to first --force");
    assert_eq!(state(&world)["state"], "RUNNING", "nothing was begun");
    world.relay(&["handoff", "--no-launch"]).exits(0);
    world.relay(&["resume", "--agents", "second"]).exits(1).says("second took over");
    world.relay(&[&to[..], &["--force"]].concat()).exits(0);
    assert_eq!(starts(&world), ["first", "second", "second"]);
}
