//! A merge brings what agents committed, commit by commit, and nothing that only a snapshot holds.

use super::{finish, session_of, state};
use crate::it::support::World;
use std::collections::BTreeSet;
use std::fs;

const WHO: [&str; 2] = ["%s|%an|%ae|%ad|%cn|%cd", "%B"];

/// The first agent commits one file and leaves a secret and half of another; the second writes that
/// whole, and commits no more than that. What `extra` does comes before its commit.
fn handed_over(extra: &str) -> World {
    let world = World::new();
    world.with_two_agents(
        "cat >/dev/null; echo start; echo 'step one'; echo a >a.txt; git add a.txt\n\
         GIT_AUTHOR_NAME=Ann GIT_AUTHOR_DATE='2020-01-02T03:04:05+0100' \\\n\
         git commit -qm 'Add a.txt' -m 'Why, too.'\n\
         echo TOKEN=hush >secret.env; echo 'only half' >b.txt\n\
         echo 'used=99 resets=4102444800'; echo 'limit you have hit your limit'; exit 1\n",
        &format!(
            "cat >/dev/null; echo start; echo 'step two'; {extra}\n\
             echo whole >b.txt; git add b.txt; git commit -qm 'Add b.txt'; echo 'done all'\n"
        ),
    );
    world.relay(&["run", "Write two files"]).exits(0).says("second took over");
    world
}

/// Nothing that is reachable from `main` is only a snapshot's.
#[track_caller]
fn is_bare(world: &World) {
    let story = world.git(&["log", "-p", "-m", "--format=%s", "main"]);
    let objects = world.git(&["rev-list", "--objects", "main"]);
    for word in ["secret.env", "hush", "only half", "relay: "] {
        assert!(!story.contains(word), "'{word}' is in\n{story}");
    }
    for text in ["TOKEN=hush\n", "only half\n"] {
        world.write_at(&world.home.join("text"), text);
        let blob = world.git(&["hash-object", world.home.join("text").to_str().unwrap()]);
        world.git(&["cat-file", "-e", &blob]);
        assert!(!objects.contains(&blob), "'{text}' is in\n{objects}");
    }
    assert!(!objects.contains("secret.env"), "{objects}");
    world.git(&["fsck", "--strict"]);
}

fn told(world: &World, of: &str) -> Vec<String> {
    let format = |how: &&str| {
        let format = format!("--format={how}");
        world.git(&["log", "--invert-grep", "--grep=^relay: ", &format, of])
    };
    WHO.iter().map(format).collect()
}

#[test]
fn what_only_a_snapshot_holds_is_not_behind_a_merge() {
    let world = handed_over("");
    let own = told(&world, &format!("relay/{}", session_of(&world)));
    let words = "written anew, without the snapshots between them";
    finish(&world, &["--merge", "--dry-run"]).exits(0).says(words);
    finish(&world, &["--squash", "--dry-run"]).exits(0).says("secret.env");
    let did = finish(&world, &["--merge"]).exits(0).says(words);
    did.says("left out, since no agent committed it: secret.env");
    is_bare(&world);
    assert_eq!(told(&world, "main^2"), own);
    assert_eq!(world.git(&["rev-list", "--count", "main^2"]), "3");
    assert_eq!(world.git(&["show", "main:b.txt"]), "whole");
    assert_eq!(world.git(&["show", "main^2^:a.txt"]), "a");
    let kept = super::kept(&world);
    assert_eq!(world.git(&["show", &format!("{kept}:secret.env")]), "TOKEN=hush");
    assert!(world.git(&["log", "--format=%s", &kept]).contains("relay: snapshot of session"));
    let other = handed_over("");
    finish(&other, &["--squash"]).exits(0);
    is_bare(&other);
    assert_eq!(world.git(&["rev-parse", "main^{tree}"]), other.git(&["rev-parse", "main^{tree}"]));
}

#[test]
fn a_merge_that_is_to_bring_the_snapshots_or_has_none_brings_the_branch_as_it_is() {
    let world = handed_over("");
    let tip = world.git(&["rev-parse", &format!("relay/{}", session_of(&world))]);
    let did = finish(&world, &["--merge", "--include-snapshot"]).exits(0);
    assert!(!did.stderr.contains("written anew"), "{}", did.stderr);
    assert_eq!(world.git(&["rev-parse", "main^2"]), tip);
    let world = super::worked(super::WORK);
    let tip = world.git(&["rev-parse", &format!("relay/{}", session_of(&world))]);
    let did = finish(&world, &["--merge"]).exits(0);
    assert!(!did.stderr.contains("written anew"), "{}", did.stderr);
    assert_eq!(world.git(&["rev-parse", "main^2"]), tip);
}

#[test]
fn merges_folders_and_what_was_taken_back_come_as_they_were_committed() {
    let world = handed_over(
        "git switch -q -c side HEAD~1; mkdir d; echo s >d/s; git add d; git commit -qm Side\n\
         git switch -q -; git merge -q --no-edit side; git rm -qr d; echo file >d; git add d\n\
         git commit -qm 'A file for a folder'; git rm -q d; mkdir d; echo n >d/n; git add d\n\
         git commit -qm 'And back'; git commit -q --allow-empty -m Nothing; rm a.txt",
    );
    let side = world.git(&["rev-parse", "side"]);
    let own = world.git(&["log", "--format=%s", &format!("relay/{}", session_of(&world))]);
    finish(&world, &["--merge"]).exits(0).says("left out, since no agent committed it: a.txt");
    is_bare(&world);
    // A commit below which nothing was left out is the very same.
    world.git(&["merge-base", "--is-ancestor", &side, "main"]);
    let names = world.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(names, "README.md\na.txt\nb.txt\nd/n");
    let now = world.git(&["log", "--format=%s", "main^2"]);
    let own: BTreeSet<&str> = own.lines().filter(|line| !line.starts_with("relay: ")).collect();
    assert_eq!(now.lines().collect::<BTreeSet<_>>(), own);
}

#[test]
fn conflicts_with_what_was_written_anew_are_gone_on_with_or_taken_back() {
    for how in ["--continue", "--abort"] {
        let world = handed_over("");
        world.write("b.txt", "mine\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "Mine"]);
        finish(&world, &["--merge"]).exits(1).says("conflicts with 'main' in: b.txt");
        world.write("b.txt", "both\n");
        world.git(&["add", "b.txt"]);
        finish(&world, &[how]).exits(0);
        is_bare(&world);
        assert_eq!(world.git(&["status", "--porcelain"]), "");
        let text = fs::read_to_string(world.repo.join("b.txt")).unwrap();
        match how {
            "--continue" => {
                assert_eq!((text.as_str(), state(&world).as_str()), ("both\n", "COMPLETED"));
            }
            _ => assert_eq!((text.as_str(), state(&world).as_str()), ("mine\n", "RUNNING")),
        }
    }
}

#[test]
fn a_branch_that_is_kept_with_snapshots_on_it_is_said_to_hold_what_nobody_committed() {
    let world = handed_over("");
    finish(&world, &["--keep", "--dry-run"]).exits(0).says("secret.env, which no agent committed");
    let words = "hold what no agent committed: secret.env";
    finish(&world, &["--keep"]).exits(0).says(words);
    let world = super::worked(super::WORK);
    let did = finish(&world, &["--keep"]).exits(0);
    assert!(!did.stderr.contains("hold what no agent committed"), "{}", did.stderr);
}
