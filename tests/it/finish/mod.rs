//! The two ends of a session, from outside: what comes to the user's branch, by whose git, and what
//! is left where it was. Nothing of the user's is lost, and a refusal changes nothing.

mod abort;
mod conflict;
mod hooks;
mod merge;
mod refused;

use super::support::{Did, World, same, scripted};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A session at rest whose agent did `work` (shell, in the session's worktree).
fn worked(work: &str) -> World {
    let world = World::new();
    let agent = world.program(
        "an-agent",
        &format!("cat >/dev/null; echo start; echo 'step one'\n{work}\necho 'done all'\n"),
    );
    world.configure(&scripted(&[("one", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Write two files"]).exits(0);
    world
}

/// The work of most tests: one file committed, and one that only a snapshot will hold.
const WORK: &str = "echo a >done.txt; git add done.txt; git commit -q -m 'Add done.txt'\n\
     git-relay record --decision 'plain text, since all can read it' --done 'done.txt is written'\n\
     echo draft >draft.txt";

/// What a refusal, or a dry run, must leave as it was: the user's things, and every ref.
fn everything(world: &World) -> BTreeMap<String, String> {
    let mut all = world.users_things();
    let refs = world.git(&["for-each-ref"]);
    all.extend(refs.lines().map(|line| (line.to_owned(), String::new())));
    all
}

fn finish(world: &World, more: &[&str]) -> Did {
    world.relay(&[&["finish"], more].concat())
}

fn kept(world: &World) -> String {
    let refs = world.git(&["for-each-ref", "--format=%(refname)", "refs/relay/kept"]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    refs
}

fn session_of(world: &World) -> String {
    let refs = world.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions"]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    refs
}

fn worktree(world: &World) -> PathBuf {
    world.repo.join(".relay/sessions").join(session_of(world))
}

fn state(world: &World) -> String {
    let text =
        world.git(&["show", &format!("refs/relay/sessions/{}:state.json", session_of(world))]);
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["state"].as_str().unwrap().to_owned()
}

/// The note on a commit is a finish record, signed, and everything verifies.
#[track_caller]
fn noted(world: &World, commit: &str) {
    let note = world.git(&["notes", "--ref=relay", "show", commit]);
    assert!(note.contains("{\"finish\":"), "{note}");
    assert_eq!(note.matches("{\"finish\":").count(), 1, "{note}");
    world.relay(&["verify"]).exits(0);
}

/// The session is over, and nothing of it is left but its refs.
#[track_caller]
fn over(world: &World) {
    assert_eq!(state(world), "COMPLETED");
    assert!(!worktree(world).exists(), "its worktree is left");
    assert_eq!(world.git(&["show", &format!("{}:draft.txt", kept(world))]), "draft");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.git(&["fsck", "--strict"]);
}

#[test]
fn a_squash_is_one_commit_that_tells_what_the_contracts_say() {
    let world = worked(WORK);
    let did = finish(&world, &[]).exits(0);
    let first = format!("relay: finishing session {}\n", session_of(&world));
    assert!(did.stderr.starts_with(&first), "{}", did.stderr);
    did.says("left out, since no agent committed it: draft.txt");
    over(&world);
    noted(&world, "main");
    assert_eq!(
        world.git(&["log", "--format=%s %an", "main"]).lines().next().unwrap(),
        "Write two files Somebody"
    );
    assert_eq!(world.git(&["show", "main:done.txt"]), "a");
    assert!(!world.repo.join("draft.txt").exists());
    let body = world.git(&["log", "-1", "--format=%b", "main"]);
    for words in
        ["- done.txt is written", "- plain text, since all can read it", "Relay-Leg: 1 one done"]
    {
        assert!(body.contains(words), "'{words}' is not in:\n{body}");
    }
    let trailer =
        world.git(&["log", "-1", "--format=%(trailers:key=Relay-Session,valueonly)", "main"]);
    assert_eq!(trailer.trim(), session_of(&world));
    assert_eq!(world.git(&["branch", "--list", "relay/*"]), "");
    // What is gone is not shown as if it were there.
    let id = session_of(&world);
    let did = world.relay(&["status", &id]).exits(0).says(&kept(&world));
    for gone in ["\nworktree ", "\nbranch "] {
        assert!(!did.stdout.contains(gone), "{}", did.stdout);
    }
}

#[test]
fn a_message_of_ones_own_keeps_the_trailer() {
    let world = worked(WORK);
    finish(&world, &["-m", "Mine\n\nRefs: #7"]).exits(0);
    let message = world.git(&["log", "-1", "--format=%B", "main"]);
    assert_eq!(message.trim(), format!("Mine\n\nRefs: #7\nRelay-Session: {}", session_of(&world)));
}

#[test]
fn a_merge_has_the_sessions_own_commits_behind_it() {
    let world = worked(WORK);
    world.write("users.txt", "mine\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "Meanwhile"]);
    finish(&world, &["--merge"]).exits(0);
    over(&world);
    noted(&world, "main");
    assert_eq!(world.git(&["log", "-1", "--format=%s", "main^1"]), "Meanwhile");
    assert!(world.git(&["log", "--format=%s", "main^2"]).contains("Add done.txt"));
    assert!(!world.git(&["ls-tree", "--name-only", "main"]).contains("draft.txt"));
    assert_eq!(world.git(&["show", "main:done.txt"]), "a");
    assert_eq!(world.git(&["show", "main:users.txt"]), "mine");
}

#[test]
fn a_result_that_is_kept_stays_on_its_own_branch_for_good() {
    let world = worked(WORK);
    let main = world.git(&["rev-parse", "main"]);
    finish(&world, &["--keep"]).exits(0).says("left out, since no agent committed it: draft.txt");
    over(&world);
    assert_eq!(world.git(&["rev-parse", "main"]), main);
    let branch = format!("relay/{}", session_of(&world));
    assert_eq!(world.git(&["log", "-1", "--format=%s", &branch]), "Add done.txt");
    noted(&world, &branch);
    // Said again it tidies nothing away that was to stay.
    finish(&world, &[&session_of(&world)]).exits(1).says("is COMPLETED");
    assert_eq!(world.git(&["log", "-1", "--format=%s", &branch]), "Add done.txt");
}

#[test]
fn what_no_agent_committed_comes_along_when_asked_for() {
    for how in ["--squash", "--merge"] {
        let world = worked(WORK);
        finish(&world, &[how, "--include-snapshot"]).exits(0);
        over(&world);
        assert_eq!(world.git(&["show", "main:draft.txt"]), "draft");
    }
}

#[test]
fn a_branch_that_is_checked_out_nowhere_is_moved_without_a_worktree() {
    for how in ["--squash", "--merge"] {
        let world = worked(WORK);
        world.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
        world.git(&["branch", "other"]);
        world.git(&["switch", "-q", "-c", "elsewhere"]);
        world.write("users.txt", "dirty and staged\n");
        world.git(&["add", "."]);
        let before = world.users_things();
        finish(&world, &[how, "--into", "other", "--accept-config"]).exits(0);
        assert_eq!(world.git(&["show", "other:done.txt"]), "a");
        noted(&world, "other");
        let mut after = world.users_things();
        after.retain(|name, _| !name.starts_with("refs/heads/other "));
        let mut before = before;
        before.retain(|name, _| !name.starts_with("refs/heads/other "));
        same(&after, &before);
        assert_eq!(state(&world), "COMPLETED");
    }
}

#[test]
fn a_branch_of_another_worktree_is_merged_there() {
    let world = worked(WORK);
    let there = world.root.join("there");
    world.git(&["worktree", "add", "-q", "-b", "other", there.to_str().unwrap()]);
    finish(&world, &["--into", "other"]).exits(0);
    assert_eq!(fs::read_to_string(there.join("done.txt")).unwrap(), "a\n");
    assert_eq!(world.git(&["-C", there.to_str().unwrap(), "status", "--porcelain"]), "");
    assert!(!world.repo.join("done.txt").exists());
}

#[test]
fn changes_of_the_users_elsewhere_stay_as_they_are() {
    let world = worked(WORK);
    world.write("README.md", "# mine\n");
    world.write("notes.txt", "untracked\n");
    finish(&world, &[]).exits(0);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\n?? notes.txt");
    assert_eq!(world.git(&["show", "main:done.txt"]), "a");
}

#[test]
fn a_branch_that_has_it_all_already_gets_no_commit() {
    let world = worked(WORK);
    world.git(&["merge", "-q", &format!("relay/{}", session_of(&world))]);
    let main = world.git(&["rev-parse", "main"]);
    for how in ["--squash", "--merge"] {
        finish(&world, &[how, "--dry-run"]).exits(0).says("has all of it already");
    }
    finish(&world, &[]).exits(0).says("main has all of it already");
    assert_eq!(world.git(&["rev-parse", "main"]), main);
    over(&world);
}

#[test]
fn a_dry_run_shows_everything_and_changes_nothing() {
    let world = worked(WORK);
    let before = everything(&world);
    let did = finish(&world, &["--dry-run"]).exits(0);
    for words in
        ["one commit on main", "Add done.txt", "done.txt", "left out", "draft.txt", "Relay-Session"]
    {
        assert!(did.stdout.contains(words), "'{words}' is not in:\n{}", did.stdout);
    }
    let json = finish(&world, &["--dry-run", "--json", "--merge"]).exits(0).json();
    let json = &json["finish"];
    assert_eq!(json["files"], serde_json::json!(["done.txt"]), "{json}");
    assert_eq!(json["leftOut"], serde_json::json!(["draft.txt"]), "{json}");
    assert_eq!(json["commits"][0]["subject"], "Add done.txt", "{json}");
    finish(&world, &["--dry-run", "--keep"]).exits(0).says("stays on relay/");
    same(&everything(&world), &before);
    world.write("done.txt", "in the way\n");
    finish(&world, &["--dry-run"]).exits(1).says("has changes of yours in: done.txt");
    world.relay(&["abort", "--dry-run"]).exits(0).says("would remove the worktree");
    fs::remove_file(world.repo.join("done.txt")).unwrap();
    same(&everything(&world), &before);
    assert!(worktree(&world).join("draft.txt").exists());
}
