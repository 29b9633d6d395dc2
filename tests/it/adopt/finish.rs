//! The result comes home to a worktree that still holds what was taken along from it.

use super::{left, make_dirty, text, world, world_with};
use crate::it::support::World;
use std::fs;

/// Adopted and worked on; the worktree it came from is as the agent left it.
fn worked(work: &str) -> World {
    let world = world_with(work);
    make_dirty(&world, &world.repo);
    left(&world, "claude", "todos-limit", &world.repo);
    world.relay(&["adopt", "--headless"]).exits(0);
    world
}

fn status(world: &World) -> Vec<String> {
    world.git(&["status", "--porcelain"]).lines().map(str::to_owned).collect()
}

const ALL: &str = "echo whole >>greeting.txt; git add -A; git commit -q -m 'Finish it'";

#[test]
fn what_is_as_it_was_taken_along_makes_way_for_the_result() {
    for how in ["--squash", "--merge"] {
        let world = worked(ALL);
        let before = status(&world);
        assert!(before.len() > 6, "{before:?}");
        world.relay(&["finish", how, "--include-snapshot", "--dry-run"]).exits(0);
        assert_eq!(status(&world), before);
        world
            .relay(&["finish", how, "--include-snapshot"])
            .exits(0)
            .says("make way for the result")
            .says("refs/relay/aside/");
        assert_eq!(status(&world), Vec::<String>::new());
        assert_eq!(text(&world.repo.join("greeting.txt")), "hello\nhalf\nwhole\n");
        assert_eq!(world.git(&["show", "main:staged.txt"]), "staged");
        assert!(!world.repo.join("gone.txt").exists() && !world.repo.join("old name.txt").exists());
        assert!(world.repo.join("noise.log").exists(), "an ignored file stays");
        assert_eq!(world.git(&["stash", "list"]), "");
        world.git(&["fsck", "--strict"]);
    }
}

#[test]
fn what_was_changed_since_is_named_and_nothing_is_touched() {
    let world = worked(ALL);
    world.write("greeting.txt", "mine\n");
    world.write("staged.txt", "staged, and more of mine\n");
    let before = (world.users_things(), status(&world));
    for how in ["--squash", "--merge"] {
        world
            .relay(&["finish", how, "--include-snapshot"])
            .exits(1)
            .says("has staged changes, which the commit would take along: staged.txt");
    }
    world.write("staged.txt", "staged\n");
    world
        .relay(&["finish", "--include-snapshot"])
        .exits(1)
        .says("has changes of yours in: greeting.txt");
    world.write("staged.txt", "staged, and more of mine\n");
    assert_eq!((world.users_things(), status(&world)), before);
}

#[test]
fn what_nobody_committed_stays_as_it_is() {
    let world = worked("echo whole >>greeting.txt; git commit -q -a -m 'Finish greeting.txt'");
    world
        .relay(&["finish"])
        .exits(1)
        .says("has staged changes")
        .says("to bring them, too: git relay finish");
    world.git(&["reset", "-q"]);
    world.relay(&["finish"]).exits(0).says("left out");
    let after = status(&world);
    assert!(after.contains(&"?? staged.txt".to_owned()), "{after:?}");
    assert!(after.contains(&" D gone.txt".to_owned()), "{after:?}");
    assert!(!after.iter().any(|line| line.contains("greeting.txt")), "{after:?}");
    assert_eq!(world.git(&["show", "HEAD:greeting.txt"]), "hello\nhalf\nwhole");
}

#[test]
fn a_finish_that_is_refused_puts_everything_back() {
    let world = worked(ALL);
    let index = |world: &World| world.git(&["ls-files", "--stage"]);
    let before = (world.users_things(), status(&world), index(&world));
    world.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    world.run("chmod", &["+x", ".git/hooks/pre-commit"]).exits(0);
    world
        .relay(&["finish", "--include-snapshot", "--accept-config"])
        .exits(1)
        .says("refused the commit");
    fs::remove_file(world.repo.join(".git/hooks/pre-commit")).unwrap();
    let mut after = (world.users_things(), status(&world), index(&world));
    // The index was written; what it says is the same.
    let same = before.0.get(".git/index").cloned();
    after.0.insert(".git/index".to_owned(), same.unwrap());
    assert_eq!(after, before);
    world.relay(&["finish", "--include-snapshot", "--accept-config"]).exits(0);
    assert_eq!(status(&world), Vec::<String>::new());
}

#[test]
fn an_ignored_file_in_the_way_is_not_overwritten() {
    let world =
        worked("echo theirs >noise.log; git add -f noise.log; git add -A; git commit -q -m All");
    world
        .relay(&["finish", "--include-snapshot"])
        .exits(1)
        .says("has changes of yours in: noise.log");
    assert_eq!(text(&world.repo.join("noise.log")), "ignored\n");
}

#[test]
fn without_what_was_not_committed_it_stays_where_it_is() {
    let world = world();
    make_dirty(&world, &world.repo);
    left(&world, "claude", "todos-limit", &world.repo);
    let before = status(&world);
    world.relay(&["adopt", "--headless", "--clean"]).exits(0);
    assert!(!world.worktree().join("greeting.txt").exists());
    assert_eq!(status(&world), before);
    world.relay(&["finish"]).exits(0);
    assert_eq!(status(&world), before);
}
