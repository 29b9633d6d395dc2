//! A session's two ends, and a repository's beginning, killed everywhere.

use super::inject::Points;
use super::{Scene, all_refs, holds, sessions, state, two_agents};
use crate::it::support::{World, same, scripted};
use std::fs;

/// A session at rest, with its work done.
fn at_rest(world: &World) {
    two_agents(world);
    world.relay(&["run", "Write two files"]).exits(0);
}

/// Says it again, unless it had all been done. A lock that a killed git has left in the main
/// worktree may be the user's: it is named, and the user removes it.
fn again(world: &World, command: &[&str]) {
    let session = &sessions(world)[0];
    // So it is when git is killed while it deletes a branch, the branch being gone already.
    for lock in ["packed-refs.lock", &format!("refs/heads/relay/{session}.lock")] {
        _ = fs::remove_file(world.repo.join(".git").join(lock));
    }
    let mut did = world.relay(command);
    for _ in 0..6 {
        let lock =
            did.stderr.split("if none runs: rm ").nth(1).and_then(|rest| rest.lines().next());
        let Some(lock) = lock else { break };
        fs::remove_file(lock.trim_matches('\'')).unwrap();
        did = world.relay(command);
    }
    let over = ["COMPLETED", "ABORTED", "no finish of session"];
    let is_over = over.iter().any(|word| did.stderr.contains(word));
    assert!(did.code == Some(0) || is_over, "{}", did.stderr);
}

/// Nothing of the session is left but its refs, and nothing of its work is lost.
fn over(world: &World, wanted: &str) {
    let state = state(world);
    assert_eq!(state["state"], wanted, "{state}");
    let session = &sessions(world)[0];
    assert!(!world.repo.join(".relay/sessions").join(session).exists(), "its worktree is left");
    assert_eq!(world.git(&["branch", "--list", "relay/*"]), "", "its branch is left");
    assert_eq!(world.git(&["show", &format!("refs/relay/kept/{session}:half.txt")]), "whole");
    assert_eq!(world.git(&["status", "--porcelain"]), "", "the user's worktree is not clean");
    world.git(&["fsck", "--strict", "--no-dangling"]);
    world.relay(&["verify"]).exits(0);
}

/// The result is on `branch` once, as it would have been without a kill.
fn brought(world: &World, branch: &str, parents: usize) {
    over(world, "COMPLETED");
    let story = world.git(&["log", "--first-parent", "--format=%s", branch]);
    assert_eq!(story, "Write two files\nInitial commit", "one result");
    assert_eq!(world.git(&["log", "-1", "--format=%P", branch]).split(' ').count(), parents);
    assert_eq!(world.git(&["log", "-1", "--format=%an", branch]), "Somebody");
    assert_eq!(world.git(&["show", &format!("{branch}:half.txt")]), "whole");
    let notes = world.git(&["notes", "--ref=relay", "list"]);
    assert_eq!(notes.lines().count(), 2, "a contract's and the result's: {notes}");
    for left in ["MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG"] {
        assert!(!world.repo.join(".git").join(left).exists(), "{left} is left");
    }
    let undone = world.git(&["for-each-ref", "refs/relay/undone"]);
    assert_eq!(undone, "", "something was taken for the user's");
}

const FINISH: Scene = Scene {
    name: "finish",
    points_least: 200,
    prepare: at_rest,
    command: &["finish", "SESSION"],
    recover: again,
    check: |world, _| brought(world, "main", 1),
};

const FINISH_BY_MERGE: Scene = Scene {
    name: "finish --merge",
    points_least: 200,
    prepare: at_rest,
    command: &["finish", "SESSION", "--merge"],
    recover: again,
    check: |world, _| {
        brought(world, "main", 2);
        let story = world.git(&["log", "--format=%s", "main^2"]);
        assert!(!story.contains("relay: "), "a snapshot is behind it: {story}");
    },
};

const FINISH_ELSEWHERE: Scene = Scene {
    name: "finish --into",
    points_least: 100,
    prepare: |world| {
        at_rest(world);
        world.git(&["branch", "other"]);
    },
    command: &["finish", "SESSION", "--into", "other"],
    recover: again,
    check: |world, before| {
        let mut now = world.users_things();
        now.retain(|name, _| !name.starts_with("refs/heads/other "));
        let mut before = before.clone();
        before.retain(|name, _| !name.starts_with("refs/heads/other "));
        same(&now, &before);
        brought(world, "other", 1);
    },
};

/// The merge was left with conflicts, and is taken back.
const FINISH_TAKEN_BACK: Scene = Scene {
    name: "finish --abort",
    points_least: 50,
    prepare: |world| {
        at_rest(world);
        world.write("half.txt", "mine\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "Mine"]);
        world.relay(&["finish"]).exits(1).says("conflicts with 'main' in: half.txt");
    },
    command: &["finish", "SESSION", "--abort"],
    recover: again,
    check: |world, _| {
        let state = state(world);
        assert_eq!(state["state"], "RUNNING", "{state}");
        assert_eq!(state.get("finishing"), None, "{state}");
        assert_eq!(world.git(&["status", "--porcelain"]), "");
        assert_eq!(world.git(&["log", "-1", "--format=%s", "main"]), "Mine");
        assert_eq!(fs::read_to_string(world.repo.join("half.txt")).unwrap(), "mine\n");
        assert!(!world.repo.join(".git/SQUASH_MSG").exists());
        world.relay(&["verify"]).exits(0);
    },
};

/// The merge was left with conflicts, and a person has resolved them.
fn resolved(world: &World) {
    (FINISH_TAKEN_BACK.prepare)(world);
    world.write("half.txt", "both\n");
    world.git(&["add", "half.txt"]);
}

const FINISH_GONE_ON_WITH: Scene = Scene {
    name: "finish --continue",
    points_least: 50,
    prepare: resolved,
    command: &["finish", "SESSION", "--continue"],
    recover: again,
    check: |world, _| {
        over(world, "COMPLETED");
        let story = world.git(&["log", "--first-parent", "--format=%s", "main"]);
        assert_eq!(story, "Write two files\nMine\nInitial commit", "one result");
        assert_eq!(world.git(&["show", "main:half.txt"]), "both");
    },
};

const FINISH_KEPT: Scene = Scene {
    name: "finish --keep",
    points_least: 30,
    prepare: at_rest,
    command: &["finish", "SESSION", "--keep"],
    recover: again,
    check: |world, before| {
        let state = state(world);
        assert_eq!(state["state"], "COMPLETED", "{state}");
        let branch = format!("relay/{}", sessions(world)[0]);
        assert_eq!(world.git(&["show", &format!("{branch}:half.txt")]), "whole");
        holds(world, before);
    },
};

const ABORT: Scene = Scene {
    name: "abort",
    points_least: 50,
    prepare: at_rest,
    command: &["abort", "SESSION"],
    recover: again,
    check: |world, before| {
        holds(world, before);
        over(world, "ABORTED");
    },
};

const INIT: Scene = Scene {
    name: "init",
    points_least: 50,
    prepare: |world| {
        let agent = world.program("an-agent", "exit 1\n");
        world.configure(&scripted(&[("one", &agent)]));
    },
    command: &["init"],
    recover: |world, init| _ = world.relay(init).exits(0),
    check: |world, _| {
        world.relay(&["verify"]).exits(0);
        let exclude = fs::read_to_string(world.repo.join(".git/info/exclude")).unwrap();
        assert_eq!(exclude.matches("/.relay/").count(), 1, "{exclude}");
        let before = all_refs(world);
        world.relay(&["init"]).exits(0);
        assert_eq!(all_refs(world), before);
        world.relay(&["key"]).exits(0);
    },
};

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish() {
    FINISH.play();
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish_by_merge() {
    FINISH_BY_MERGE.play_at(Points::all, 3);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish_without_a_worktree() {
    FINISH_ELSEWHERE.play_at(Points::all, 3);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish_taken_back() {
    FINISH_TAKEN_BACK.play_at(Points::all, 3);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish_gone_on_with() {
    FINISH_GONE_ON_WITH.play_at(Points::all, 3);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_finish_that_keeps() {
    FINISH_KEPT.play_at(Points::all, 3);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_an_abort() {
    ABORT.play();
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_beginning() {
    INIT.play();
}
