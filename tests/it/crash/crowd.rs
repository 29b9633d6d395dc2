//! Many commands at once on one repository, and locks that somebody else has left.

use super::{STARTED, holds, sessions, state, two_agents, world};
use crate::it::support::{World, binary, scripted};
use std::fs;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Starts them all, then waits for all.
pub(super) fn at_once(world: &World, commands: &[Vec<String>]) -> Vec<Output> {
    let started: Vec<_> = commands
        .iter()
        .map(|words| {
            let mut command = world.command(binary());
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    started.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

pub(super) fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[track_caller]
pub(super) fn all_exit(outputs: &[Output], codes: &[i32]) {
    for output in outputs {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| codes.contains(&code)), "{said}");
    }
}

#[test]
fn sixteen_that_record_at_once_lose_nothing() {
    let world = world();
    two_agents(&world);
    world.relay(&["run", "Write two files"]).exits(0);
    let commands: Vec<_> =
        (0..16).map(|n| words(&["record", "--decision", &format!("fact {n}.")])).collect();
    all_exit(&at_once(&world, &commands), &[0]);
    world.relay(&["record", "--decision", "the last"]).exits(0);
    let declared = state(&world)["declared"].to_string();
    for n in 0..16 {
        assert_eq!(declared.matches(&format!("\"fact {n}.\"")).count(), 1, "{declared}");
    }
    world.relay(&["verify"]).exits(0);
}

#[test]
fn sixteen_hand_overs_asked_for_at_once_have_one_winner_a_step() {
    let world = world();
    let script = format!("{STARTED}echo start; echo 'step it'; echo 'done all'\n");
    let agent = world.program("an-agent", &script);
    world.configure(&scripted(&[("one", &agent), ("two", &agent)]));
    world.relay(&["init"]).exits(0);
    let before = world.users_things();
    world.relay(&["run", "Write two files"]).exits(0);
    let outputs = at_once(&world, &vec![words(&["handoff"]); 16]);
    // Who watches a driver that ends before the step it waits for says so, and exits 1.
    all_exit(&outputs, &[0, 1]);
    assert!(outputs.iter().any(|output| output.status.success()), "nobody won");
    world.relay(&["resume"]).exits(0);
    let state = state(&world);
    assert_eq!(state["state"], "RUNNING", "{state}");
    let legs = state["leg"].as_u64().unwrap();
    assert!(legs >= 2, "{state}");
    let chain = format!("refs/relay/sessions/{}", sessions(&world)[0]);
    let contracts = world.git(&["log", "--format=%H", &chain, "--", "contract.json"]);
    assert_eq!(contracts.lines().count() as u64, legs - 1, "one contract for each leg that ended");
    let notes = world.git(&["notes", "--ref=relay", "list"]);
    assert_eq!(notes.lines().count() as u64, legs - 1);
    holds(&world, &before);
}

#[test]
fn eight_sessions_at_once_do_not_meet() {
    let world = world();
    let script = "cat >/dev/null; echo start; echo 'step it'; echo $$ >mine; git add mine\n\
                  git commit -q -m 'Add mine'; [ -e .relay/envelope.md ] && echo 'done all' || \
                  echo 'limit reached'\n";
    let agent = world.program("an-agent", script);
    world.configure(&scripted(&[("one", &agent), ("two", &agent)]));
    world.relay(&["init"]).exits(0);
    let before = world.users_things();
    let commands: Vec<_> = (0..8).map(|n| words(&["run", &format!("Task {n}")])).collect();
    all_exit(&at_once(&world, &commands), &[0]);
    assert_eq!(sessions(&world).len(), 8);
    let notes = world.git(&["notes", "--ref=relay", "list"]);
    assert_eq!(notes.lines().count(), 8, "{notes}");
    holds(&world, &before);
}

#[test]
fn a_dead_commands_lock_is_cleared_and_the_users_is_not() {
    let world = world();
    two_agents(&world);
    world.relay(&["run", "Write two files"]).exits(0);
    let session = sessions(&world)[0].clone();
    let lock = world.repo.join(format!(".git/refs/relay/sessions/{session}.lock"));
    fs::write(&lock, "").unwrap();
    let began = Instant::now();
    world.relay(&["record", "--decision", "go on"]).exits(0);
    assert!(began.elapsed() >= Duration::from_secs(2), "it might have been alive");
    assert!(!lock.exists());
    assert!(state(&world)["declared"].to_string().contains("go on"));

    for name in ["refs/heads/main.lock", "index.lock"] {
        let lock = world.repo.join(".git").join(name);
        fs::write(&lock, "somebody's").unwrap();
        let tip = world.git(&["rev-parse", "main"]);
        let did = world.relay(&["finish", &session]).exits(1);
        assert!(did.stderr.contains(name), "{}", did.stderr);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "somebody's", "it is not ours");
        assert_eq!(world.git(&["rev-parse", "main"]), tip);
        fs::remove_file(&lock).unwrap();
        // Nothing is half done: the same again, and all is well.
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{name}");
    }
    world.relay(&["finish", &session]).exits(0);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "whole");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}
