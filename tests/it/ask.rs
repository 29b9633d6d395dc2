//! Asking and looking: what is said of a session, who may ask for a hand-over and from where, and
//! what a driver does with it.

mod after;
mod bad_input;
mod handoff;
mod status;

use super::support::{World, scripted};
use serde_json::{Value, json};

/// A world with scripted agents, ready.
fn world(agents: &[(&str, &str)]) -> World {
    let world = World::new();
    let paths: Vec<_> = agents
        .iter()
        .map(|(name, script)| (*name, world.program(&format!("{name}-agent"), script)))
        .collect();
    let named: Vec<_> = paths.iter().map(|(name, path)| (*name, path.as_path())).collect();
    world.configure(&scripted(&named));
    world.relay(&["init"]).exits(0);
    world
}

/// The session's state record.
#[track_caller]
fn state(world: &World) -> Value {
    world.relay(&["status", "--json", &world.session()]).exits(0).json()["status"]["session"]
        .clone()
}

#[track_caller]
fn starts(world: &World) -> Vec<String> {
    let state = state(world);
    let starts = state["dispatches"].as_array().unwrap().iter();
    starts.map(|start| start["agent"].as_str().unwrap().to_owned()).collect()
}

const DONE: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >done.txt; \
     git add done.txt; git commit -q -m 'Add done.txt'; echo 'done all'\n";
/// Hands over by itself and waits for its end.
const PASSES_ON: &str =
    "cat >/dev/null; echo start; echo 'step one'; git-relay handoff; sleep 60\n";
const LIMIT: &str = "cat >/dev/null; echo start; echo 'step one'; echo half >>half.txt; \
     echo 'limit you have hit your limit'; exit 1\n";

#[test]
fn a_task_that_is_done_waits_to_be_finished_and_that_is_said() {
    let world = world(&[("first", DONE)]);
    world.relay(&["run", "A task"]).exits(0);
    for words in [&["list"][..], &["status"]] {
        let did = world.relay(words).exits(0).says("RUNNING");
        did.says("done: waiting for you to finish it");
    }
    let list = world.relay(&["list", "--json"]).exits(0).json();
    assert_eq!(list["sessions"][0]["standing"], "done: waiting for you to finish it");
    world.relay(&["finish"]).exits(0);
    world.relay(&["list"]).exits(0).says("COMPLETED  finished");
}

#[test]
fn agents_that_only_pass_the_task_on_are_stopped() {
    let world = world(&[("first", PASSES_ON), ("second", PASSES_ON)]);
    world.relay(&["run", "A task"]).exits(1).says("hand the task to each other and change nothing");
    let begun = starts(&world);
    assert_eq!(begun, ["first", "second", "first"]);
    // Who says so has looked: it goes on, and no further than before.
    world.relay(&["resume"]).exits(1).says("hand the task to each other");
    assert_eq!(starts(&world).len(), 6);
    world.relay(&["verify"]).exits(0);
}

#[test]
fn a_limit_without_a_reset_is_known_to_the_next_driver() {
    let world = world(&[("first", LIMIT), ("second", LIMIT)]);
    world.relay(&["run", "A task"]).exits(6);
    assert_eq!(starts(&world), ["first", "second"]);
    world.relay(&["resume"]).exits(6).says("when a window opens again is not known");
    assert_eq!(starts(&world), ["first", "second"], "nobody is asked in vain");
    // A person may know better.
    world.program("first-agent", DONE);
    world.relay(&["handoff", "--to", "first"]).exits(0);
    assert_eq!(starts(&world), ["first", "second", "first"]);
}

#[test]
fn a_branch_without_a_commit_in_the_session_is_saved_and_not_moved() {
    let orphan = "cat >/dev/null; echo start; echo 'step one'; echo a >a.txt; git add a.txt; \
         git commit -q -m 'Add a.txt'; git checkout -q --orphan fresh; echo new >new.txt; \
         echo 'limit enough'; exit 1\n";
    let looks = "cat >got.md; mv got.md \"$HOME/got.md\"; echo start; echo 'step two'; \
         git symbolic-ref HEAD >\"$HOME/head\"; echo 'done all'\n";
    let world = world(&[("first", orphan), ("second", looks)]);
    world.relay(&["run", "A task"]).exits(0).says("checkout of fresh is in progress");
    let session = world.session();
    let snapshot = format!("refs/relay/snapshots/{session}/1");
    let names = world.git(&["ls-tree", "--name-only", &snapshot]);
    assert_eq!(names, "README.md\na.txt\nnew.txt");
    let branch = world.git(&["rev-parse", &format!("relay/{session}")]);
    assert_eq!(world.git(&["rev-parse", &format!("{snapshot}^")]), branch, "it stands on it");
    let head = std::fs::read_to_string(world.home.join("head")).unwrap();
    assert_eq!(head.trim(), "refs/heads/fresh", "the next agent finds it as it was");
    assert_eq!(state(&world)["snapshot"]["inProgress"], json!("checkout of fresh"));
    world.relay(&["verify"]).exits(0);
}

/// A crash is no limit: nothing is said of windows, and what was wrong is.
#[test]
fn an_agent_that_crashes_is_not_called_exhausted() {
    let world = world(&[("first", "cat >/dev/null; echo 'no such model' >&2; exit 3\n")]);
    let did = world.relay(&["run", "A task", "--json"]).exits(1);
    for words in [
        "first could not take over: it ended with exit status 3 before its model made anything: no such model",
        "no agent could go on",
    ] {
        assert!(did.stderr.contains(words), "'{words}' is not in:\n{}", did.stderr);
    }
    assert!(!did.stderr.contains("window") && !did.stderr.contains("no agent is left"));
    assert_eq!(did.json()["run"]["end"], "failed");
    // One at its limit makes it a matter of time.
    let world = self::world(&[("first", LIMIT), ("second", "cat >/dev/null; exit 3\n")]);
    world.relay(&["run", "A task"]).exits(6).says("no agent is left");
}

#[test]
fn an_agent_that_ends_and_says_nothing_is_told_so() {
    let silent = "cat >/dev/null; echo start; echo 'step one'; echo half >half.txt; exit 0\n";
    let world = world(&[("first", silent)]);
    let did = world.relay(&["run", "A task"]).exits(1);
    did.says("it ended with exit status 0 and no line matched 'done'");
}

/// What is printed where no reset is known must work.
#[test]
fn at_a_limit_without_a_reset_the_hint_starts_somebody() {
    for named in [true, false] {
        let world = world(&[("first", LIMIT)]);
        let did = world.relay(&["run", "A task"]).exits(6);
        let session = world.session();
        let hint = format!("handoff --session {session} --to first --force");
        assert!(did.stderr.contains(&format!("git relay {hint}\n")), "{}", did.stderr);
        assert!(!did.stderr.contains("git relay resume"), "{}", did.stderr);
        world.program("first-agent", DONE);
        let words = match named {
            true => format!("resume {session} --agents first"),
            false => hint,
        };
        world.relay(&words.split(' ').collect::<Vec<_>>()).exits(0);
        assert_eq!(starts(&world), ["first", "first"]);
    }
}

/// Only agents that are here are proposed.
#[test]
fn the_agents_that_are_proposed_are_here() {
    let mut world = World::new();
    let own = world.program("own-agent", DONE);
    let config = scripted(&[("own", &own)]);
    world.configure(config.split_once('\n').unwrap().1);
    world.set("PATH", format!("{}:/usr/bin:/bin", world.home.join("bin").display()));
    world.relay(&["init"]).exits(0).says("hint: git relay init --agents own\n");
    world.relay(&["run", "A task"]).exits(2).says("hint: git relay init --agents own, or say");
}
