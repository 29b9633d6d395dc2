//! Conflicts: left as git leaves a merge, gone on with, or taken back to exactly what was.

use super::{WORK, everything, finish, kept, noted, session_of, state, worked, worktree};
use crate::it::support::{World, same};
use std::fs;

/// The session and the user have both written `done.txt`.
fn clash() -> World {
    let world = worked(WORK);
    world.write("done.txt", "mine\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "Mine"]);
    world.write("untracked.txt", "stays\n");
    world
}

fn left(world: &World, how: &str) {
    finish(world, &[how]).exits(1).says("the result conflicts with 'main' in: done.txt");
    let text = fs::read_to_string(world.repo.join("done.txt")).unwrap();
    assert!(text.contains("<<<<<<<") && text.contains("mine") && text.contains("\na\n"), "{text}");
    assert_eq!(world.git(&["diff", "--name-only", "--diff-filter=U"]), "done.txt");
    assert_eq!(world.repo.join(".git/MERGE_HEAD").exists(), how == "--merge");
    let offered = if how == "--merge" { "MERGE_MSG" } else { "SQUASH_MSG" };
    let offered = fs::read_to_string(world.repo.join(".git").join(offered)).unwrap();
    assert!(offered.starts_with("Write two files\n"), "{offered}");
    assert_eq!(state(world), "RUNNING");
    let id = session_of(world);
    world.relay(&["status"]).exits(0).says(&format!("git relay finish {id} --continue"));
    // Nothing else is done with the session meanwhile.
    for verb in ["resume", "abort", "finish", "handoff"] {
        let did = world.relay(&if verb == "handoff" { vec![verb] } else { vec![verb, &id] });
        did.exits(1).says("conflicts with 'main' in: done.txt");
    }
    world.relay(&["verify"]).exits(0);
}

fn resolve(world: &World) {
    world.write("done.txt", "mine\na\n");
    world.git(&["add", "done.txt"]);
}

#[test]
fn conflicts_are_resolved_and_gone_on_with() {
    for how in ["--squash", "--merge"] {
        let world = clash();
        left(&world, how);
        let before = everything(&world);
        finish(&world, &["--continue"])
            .exits(1)
            .says(&format!("still in conflict: done.txt (in '{}')", world.repo.display()));
        same(&everything(&world), &before);
        resolve(&world);
        for more in [&[][..], &["--dry-run"]] {
            let did = finish(&world, &[&[session_of(&world).as_str()], more].concat()).exits(1);
            did.says("are resolved, and not committed yet").says("--continue");
        }
        finish(&world, &["--continue"]).exits(0).says("main is now");
        assert_eq!(world.git(&["show", "main:done.txt"]), "mine\na");
        let parents = world.git(&["log", "-1", "--format=%P", "main"]);
        assert_eq!(parents.split(' ').count(), if how == "--merge" { 2 } else { 1 });
        assert_eq!(world.git(&["log", "-1", "--format=%s", "main"]), "Write two files");
        assert_eq!(world.git(&["status", "--porcelain"]), "?? untracked.txt");
        assert_eq!(state(&world), "COMPLETED");
        let ours = world.repo.join(".git/relay/sessions").join(session_of(&world));
        assert!(!ours.join("finish-message").exists(), "its message lies about");
        noted(&world, "main");
        world.git(&["fsck", "--strict"]);
    }
}

/// The result was made before; what came since is in none of the user's branches.
#[test]
fn what_was_done_in_the_session_while_conflicts_waited_is_kept() {
    for how in ["--squash", "--merge"] {
        let world = clash();
        left(&world, how);
        let (name, before) = (kept(&world), world.git(&["rev-parse", &kept(&world)]));
        let place = worktree(&world);
        let at = place.to_str().unwrap();
        world.write_at(&place.join("later.txt"), "later\n");
        world.git(&["-C", at, "add", "later.txt"]);
        world.git(&["-C", at, "commit", "-qm", "Later"]);
        let later = world.git(&["-C", at, "rev-parse", "HEAD"]);
        world.write_at(&place.join("last.txt"), "uncommitted\n");
        resolve(&world);
        finish(&world, &["--continue"]).exits(0).says(&format!("stays reachable as {name}"));
        for commit in [&before, &later] {
            world.git(&["merge-base", "--is-ancestor", commit, &name]);
        }
        assert_eq!(world.git(&["show", &format!("{name}:last.txt")]), "uncommitted");
        assert_eq!(world.git(&["branch", "--list", "relay/*"]), "");
        assert!(!place.exists());
    }
}

#[test]
fn a_commit_that_the_user_made_of_it_is_the_result() {
    for (how, by) in [
        ("--squash", "--continue"),
        ("--merge", "--continue"),
        ("--squash", "--squash"),
        ("--merge", "--squash"),
    ] {
        let world = clash();
        left(&world, how);
        resolve(&world);
        world.git(&["commit", "-q", "--no-edit"]);
        let result = world.git(&["rev-parse", "main"]);
        world.write("more.txt", "later\n");
        world.git(&["add", "more.txt"]);
        world.git(&["commit", "-qm", "Later"]);
        finish(&world, &[by]).exits(0).says(&format!("main is now {}", &result[..10]));
        noted(&world, &result);
        assert_eq!(state(&world), "COMPLETED");
    }
}

#[test]
fn a_finish_is_taken_back_to_exactly_what_was() {
    for how in ["--squash", "--merge"] {
        let world = clash();
        world.write("README.md", "# dirty\n");
        let before = world.users_things();
        let status = world.git(&["status", "--porcelain"]);
        left(&world, how);
        finish(&world, &["--abort"]).exits(0).says("main is as it was");
        assert_eq!(world.git(&["status", "--porcelain"]), status);
        let (mut before, mut after) = (before, world.users_things());
        // The same entries, written again.
        before.remove(".git/index");
        after.remove(".git/index");
        same(&after, &before);
        for name in ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "AUTO_MERGE"] {
            assert!(!world.repo.join(".git").join(name).exists(), "{name} is left");
        }
        finish(&world, &["--abort"]).exits(1).says("no finish of session");
        finish(&world, &["--continue"]).exits(1).says("no finish of session");
        // Nothing of the user's was in there: nothing is kept of it.
        assert_eq!(world.git(&["for-each-ref", "refs/relay/undone"]), "");
        // The session is as it was before.
        world.git(&["rm", "-q", "done.txt"]);
        world.git(&["commit", "-qm", "Mine no more"]);
        finish(&world, &["--keep"]).exits(0);
    }
}

#[test]
fn what_was_resolved_so_far_stays_reachable_when_it_is_taken_back() {
    let world = clash();
    left(&world, "--squash");
    world.write("done.txt", "half resolved\n");
    let id = session_of(&world);
    finish(&world, &["--abort"]).exits(0).says(&format!("refs/relay/undone/{id}"));
    assert_eq!(fs::read_to_string(world.repo.join("done.txt")).unwrap(), "mine\n");
    let kept = world.git(&["show", &format!("refs/relay/undone/{id}:done.txt")]);
    assert_eq!(kept, "half resolved");
}

#[test]
fn a_resolution_that_changes_nothing_ends_without_a_commit() {
    let world = clash();
    let main = world.git(&["rev-parse", "main"]);
    left(&world, "--squash");
    world.git(&["checkout", "-q", "--ours", "done.txt"]);
    world.git(&["add", "done.txt"]);
    finish(&world, &["--continue"]).exits(0).says("has all of it already");
    assert_eq!(world.git(&["rev-parse", "main"]), main);
    assert_eq!(state(&world), "COMPLETED");
    assert!(!world.repo.join(".git/SQUASH_MSG").exists());
}

#[test]
fn a_branch_that_left_under_a_finish_is_named_and_the_finish_can_be_dropped() {
    let world = clash();
    left(&world, "--squash");
    world.git(&["reset", "-q", "--hard"]);
    world.git(&["switch", "-q", "-c", "elsewhere"]);
    finish(&world, &["--continue"]).exits(1).says("'main' is not checked out where it was");
    let before = world.users_things();
    finish(&world, &["--abort"]).exits(0).says("no file is put back");
    same(&world.users_things(), &before);
    assert_eq!(state(&world), "RUNNING");
}

#[test]
fn without_a_worktree_conflicts_are_refused_with_the_way_to_have_them() {
    let world = clash();
    world.git(&["switch", "-q", "-c", "elsewhere"]);
    for how in ["--squash", "--merge"] {
        let before = world.users_things();
        let main = world.git(&["rev-parse", "main"]);
        let did = finish(&world, &[how]).exits(1);
        did.says("checked out nowhere").says("git switch main && git relay finish");
        assert_eq!(world.git(&["rev-parse", "main"]), main);
        same(&world.users_things(), &before);
        assert_eq!(state(&world), "RUNNING");
    }
    finish(&world, &["--dry-run"]).exits(1).says("done.txt");
}

#[test]
fn the_only_finish_in_a_conflict_is_meant_where_several_sessions_are_open() {
    for how in ["--continue", "--abort"] {
        let world = clash();
        left(&world, "--squash");
        let id = session_of(&world);
        world.relay(&["run", "Another task"]).exits(0);
        resolve(&world);
        let did = finish(&world, &[how]).exits(0);
        did.says(if how == "--abort" { "main is as it was" } else { "main is now" });
        world.relay(&["status", &id]).exits(0);
    }
}
