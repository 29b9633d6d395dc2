//! Where the agent worked: any worktree of the repository, any folder in it; else a refusal that
//! says what to do.

use super::{contract, left, make_dirty, seen, text, world};
use crate::it::support::World;
use std::fs;
use std::path::PathBuf;

/// Refused with `why` and a next step, and nothing was made.
#[track_caller]
fn refused(world: &World, arguments: &[&str], why: &str) {
    let before = world.git(&["for-each-ref"]);
    let did = world.relay(arguments).exits(1).says(why);
    assert!(did.stderr.contains("hint: "), "{}", did.stderr);
    assert_eq!(world.git(&["for-each-ref"]), before, "something was made");
    let sessions = fs::read_dir(world.repo.join(".relay/sessions")).into_iter().flatten().count();
    assert_eq!(sessions, 0);
}

fn linked(world: &World) -> PathBuf {
    let there = world.root.join("a linked tree");
    world.git(&["worktree", "add", "-q", "-b", "side", there.to_str().unwrap()]);
    there
}

#[test]
fn a_linked_worktree_is_only_read_and_gets_the_result() {
    let world = world();
    let there = linked(&world);
    make_dirty(&world, &there);
    let id = left(&world, "codex", "limit", &there);
    let before = (seen(&world, &there), seen(&world, &world.repo));
    refused(
        &world,
        &["adopt", "--headless"],
        "no agent's session was found that worked in this folder",
    );
    world.relay(&["adopt", &id[..13], "--headless"]).exits(0);
    assert_eq!((seen(&world, &there), seen(&world, &world.repo)), before);
    assert!(!contract(&world).to_string().contains(there.to_str().unwrap()));
    world.relay(&["finish", "--include-snapshot"]).exits(0).says("side");
    assert_eq!(world.git(&["-C", there.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(text(&there.join("greeting.txt")), "hello\nhalf\n");
    assert!(!world.repo.join("greeting.txt").exists());
}

#[test]
fn a_folder_inside_and_a_link_to_it_are_the_same_worktree() {
    let world = world();
    make_dirty(&world, &world.repo);
    fs::create_dir(world.repo.join("sub")).unwrap();
    let link = world.root.join("by-link");
    std::os::unix::fs::symlink(&world.repo, &link).unwrap();
    left(&world, "claude", "todos-limit", &link.join("sub"));
    world.relay(&["adopt", "--headless"]).exits(0);
    let contract = contract(&world);
    assert_eq!(contract["fileManifest"]["total"], 9);
    assert!(!contract.to_string().contains("by-link"), "{contract}");
}

#[test]
fn a_folder_that_is_gone_is_named_and_its_commits_can_be_built_on() {
    let world = world();
    let there = linked(&world);
    let id = left(&world, "claude", "todos-limit", &there);
    world.git(&["worktree", "remove", "--force", there.to_str().unwrap()]);
    refused(&world, &["adopt", &id, "--headless"], "where it worked, is gone");
    world.relay(&["adopt", &id, "--headless", "--clean"]).exits(0);
    assert!(super::envelope(&world).contains("Write greeting.txt and commit it"));
}

#[test]
fn another_repository_and_none_at_all_are_named() {
    let world = world();
    let other = world.root.join("other");
    world.git(&["init", "-q", other.to_str().unwrap()]);
    let id = left(&world, "claude", "todos-limit", &other);
    refused(&world, &["adopt", &id, "--headless"], "another repository");
    let nowhere = world.root.join("nowhere");
    fs::create_dir(&nowhere).unwrap();
    let id = left(&world, "codex", "limit", &nowhere);
    refused(&world, &["adopt", &id, "--headless"], "is in no git repository");
}

#[test]
fn an_operation_of_gits_is_not_taken_along() {
    let world = world();
    left(&world, "claude", "todos-limit", &world.repo);
    world.git(&["switch", "-q", "-c", "side"]);
    world.write("README.md", "# side\n");
    world.git(&["commit", "-qam", "Side"]);
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "# main\n");
    world.git(&["commit", "-qam", "Main"]);
    world.run("git", &["merge", "side"]).exits(1);
    refused(&world, &["adopt", "--headless"], "a merge is in progress in");
    world.git(&["merge", "--abort"]);
    world.run("git", &["rebase", "side"]).exits(1);
    refused(&world, &["adopt", "--headless"], "a rebase is in progress in");
    world.git(&["rebase", "--abort"]);
    world.run("git", &["merge", "--squash", "side"]).exits(1);
    refused(&world, &["adopt", "--headless"], "a merge with conflicts is in progress in");
}

#[test]
fn a_detached_head_has_no_branch_to_bring_the_result_to() {
    let world = world();
    world.git(&["switch", "-q", "--detach"]);
    make_dirty(&world, &world.repo);
    left(&world, "claude", "todos-limit", &world.repo);
    world.relay(&["adopt", "--headless"]).exits(0);
    world.relay(&["finish"]).exits(1).says("--into main");
}

#[test]
fn what_git_is_told_not_to_see_there_travels_too() {
    for form in [&["--no-cone", "/*", "!/wide/"][..], &["--cone", "--sparse-index", "near"]] {
        let world = world();
        for name in ["wide/w.txt", "wide/same.txt", "near/n.txt", "local.txt", "kept.txt"] {
            world.write(name, "one\n");
        }
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Before"]);
        world.git(&[&["sparse-checkout", "set"], form].concat());
        world.write("wide/w.txt", "two\n");
        world.write("wide/new.txt", "new\n");
        world.write("local.txt", "mine\n");
        world.git(&["update-index", "--assume-unchanged", "local.txt"]);
        left(&world, "claude", "todos-limit", &world.repo);
        let before = seen(&world, &world.repo);
        world.relay(&["adopt", "--headless"]).exits(0);
        assert_eq!(seen(&world, &world.repo), before, "the place was not only read");
        let contract = contract(&world);
        let files = contract["fileManifest"]["files"].as_array().unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["local.txt", "wide/new.txt", "wide/w.txt"], "{form:?}");
        assert!(files.iter().all(|file| file["status"] != "deleted"), "{files:?}");
        let worktree = world.worktree();
        for (path, words) in
            [("local.txt", "mine\n"), ("wide/new.txt", "new\n"), ("wide/w.txt", "two\n")]
        {
            assert_eq!(text(&worktree.join(path)), words, "{form:?}");
        }
        assert_eq!(text(&world.home.join("status")), "", "{form:?}");
        let tree =
            world.git(&["ls-tree", "-r", "--name-only", &format!("relay/{}", world.session())]);
        assert!(tree.contains("wide/same.txt") && tree.contains("kept.txt"), "{tree}");
        world.relay(&["verify"]).exits(0);
    }
}
