//! The user's own hooks and signing run on the user's own commit, as the user.

use super::{WORK, finish, session_of, state, worked};
use crate::it::support::{World, same};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const ALL: [&str; 6] = [
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-merge",
];

/// A hook of the main worktree: in a session's the agent's own commits would run it too.
fn hook(world: &World, name: &str, script: &str) {
    let path = world.repo.join(".git/hooks").join(name);
    world.write_at(&path, &format!("#!/bin/sh\n[ -d .git ] || exit 0\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A session that begins with hooks that write down that they ran.
fn with_hooks(more: impl Fn(&World)) -> World {
    let world = worked_after(|world| {
        for name in ALL {
            hook(world, name, &format!("echo {name} >>\"$HOME/ran\"; pwd >>\"$HOME/where\""));
        }
        more(world);
    });
    _ = fs::remove_file(world.home.join("ran"));
    _ = fs::remove_file(world.home.join("where"));
    world
}

fn worked_after(prepare: impl Fn(&World)) -> World {
    let world = worked("true");
    world.relay(&["abort"]).exits(0);
    prepare(&world);
    world.program(
        "an-agent",
        &format!("cat >/dev/null; echo start; echo 'step one'\n{WORK}\necho 'done all'\n"),
    );
    world.relay(&["run", "Write two files"]).exits(0);
    world
}

fn ran(world: &World) -> String {
    fs::read_to_string(world.home.join("ran")).unwrap_or_default().replace('\n', " ")
}

#[test]
fn the_users_hooks_run_as_git_runs_them() {
    let world = with_hooks(|_| ());
    finish(&world, &[]).exits(0);
    assert_eq!(ran(&world), "post-merge pre-commit prepare-commit-msg commit-msg post-commit ");
    let places = fs::read_to_string(world.home.join("where")).unwrap();
    assert!(places.lines().all(|place| place == world.repo.to_str().unwrap()), "{places}");

    let world = with_hooks(|_| ());
    finish(&world, &["--merge"]).exits(0);
    assert_eq!(ran(&world), "pre-merge-commit prepare-commit-msg commit-msg post-merge ");
}

#[test]
fn a_hook_may_change_message_and_content() {
    let world = with_hooks(|world| {
        hook(world, "pre-commit", "echo formatted >>done.txt; git add done.txt");
        hook(world, "commit-msg", "echo 'Ticket: 7' >>\"$1\"");
    });
    finish(&world, &[]).exits(0);
    assert_eq!(world.git(&["show", "main:done.txt"]), "a\nformatted");
    assert!(world.git(&["log", "-1", "--format=%B", "main"]).contains("Ticket: 7"));
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(state_of_last(&world), "COMPLETED");
}

fn state_of_last(world: &World) -> String {
    let list = world.relay(&["list", "--json"]).exits(0).json();
    let sessions = list["sessions"].as_array().unwrap();
    let over = sessions.iter().filter(|session| session["state"] == "COMPLETED").count();
    if over == 1 { "COMPLETED".into() } else { format!("{list}") }
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    for (how, name) in [
        ("--squash", "pre-commit"),
        ("--squash", "commit-msg"),
        ("--merge", "pre-merge-commit"),
        ("--merge", "commit-msg"),
    ] {
        let world = with_hooks(|world| hook(world, name, "echo 'no, not that' >&2; exit 1"));
        world.write("README.md", "# dirty\n");
        let head = world.git(&["rev-parse", "HEAD"]);
        let status = world.git(&["status", "--porcelain"]);
        let did = finish(&world, &[how]).exits(1);
        did.says("no, not that").says("refused the commit").says("nothing is changed");
        assert_eq!(world.git(&["rev-parse", "HEAD"]), head, "{name}");
        assert_eq!(world.git(&["status", "--porcelain"]), status, "{name}");
        for left in ["MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG"] {
            assert!(!world.repo.join(".git").join(left).exists(), "{left} is left");
        }
        hook_gone(&world, name);
        finish(&world, &[how, "--accept-config"]).exits(0);
        assert_eq!(world.git(&["show", "main:done.txt"]), "a");
        assert_eq!(world.git(&["status", "--porcelain"]), status, "{name}");
    }
}

fn hook_gone(world: &World, name: &str) {
    fs::remove_file(world.repo.join(".git/hooks").join(name)).unwrap();
}

#[test]
fn a_hook_that_came_during_the_session_is_not_run_unseen() {
    let world = worked(WORK);
    hook(&world, "pre-commit", "touch \"$HOME/ran\"");
    let before = super::everything(&world);
    let did = finish(&world, &[]).exits(4).says("hooks/pre-commit added");
    did.says(&format!("git relay finish {} --accept-config", session_of(&world)));
    same(&super::everything(&world), &before);
    assert!(!world.home.join("ran").exists(), "the hook was run");
    finish(&world, &["--accept-config"]).exits(0);
    assert!(world.home.join("ran").exists());
}

#[test]
fn signing_that_cannot_be_done_here_changes_nothing() {
    let world = worked(WORK);
    world.git(&["config", "--global", "commit.gpgSign", "true"]);
    world.git(&["config", "--global", "gpg.format", "ssh"]);
    world.git(&["config", "--global", "user.signingKey", "/nowhere/key.pub"]);
    world.git(&["branch", "other"]);
    for more in [&["--squash"][..], &["--merge"], &["--into", "other"]] {
        let main = world.git(&["rev-parse", "main", "other"]);
        let before = world.git(&["status", "--porcelain"]);
        let did = finish(&world, more).exits(1).says("nothing is changed");
        did.says("-c commit.gpgSign=false relay finish");
        assert_eq!(world.git(&["rev-parse", "main", "other"]), main);
        assert_eq!(world.git(&["status", "--porcelain"]), before);
        assert_eq!(state(&world), "RUNNING");
    }
    // The way out that is named.
    world
        .run("git", &["-c", "commit.gpgSign=false", "relay", "finish", &session_of(&world)])
        .exits(0);
}

#[test]
fn the_users_commit_is_signed_by_the_user() {
    for more in [&["--squash"][..], &["--merge"], &["--into", "other"]] {
        let world = worked(WORK);
        world.git(&["branch", "other"]);
        let key = world.home.join("key");
        world
            .run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()])
            .exits(0);
        world.git(&["config", "--global", "commit.gpgSign", "true"]);
        world.git(&["config", "--global", "gpg.format", "ssh"]);
        world.git(&["config", "--global", "user.signingKey", key.to_str().unwrap()]);
        finish(&world, more).exits(0);
        let branch = if more.len() > 1 { "other" } else { "main" };
        assert!(world.git(&["cat-file", "commit", branch]).contains("gpgsig -----BEGIN SSH"));
    }
}

#[test]
fn a_user_whom_git_does_not_know_gets_a_commit_in_our_name() {
    let mut world = worked(WORK);
    world.git(&["config", "--unset", "user.name"]);
    world.git(&["config", "--unset", "user.email"]);
    world.git(&["config", "--global", "user.useConfigOnly", "true"]);
    world.set("EMAIL", "");
    finish(&world, &[]).exits(0);
    assert_eq!(world.git(&["log", "-1", "--format=%an", "main"]), "git-relay");
}

#[test]
fn a_kill_while_the_users_hook_runs_is_seen_through() {
    let world = with_hooks(|world| {
        hook(
            world,
            "pre-commit",
            "[ -e \"$HOME/killed\" ] && exit 0; touch \"$HOME/killed\"\n\
             kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 0.3",
        );
    });
    assert_eq!(finish(&world, &[]).code, None, "it was to be killed");
    let status = world.relay(&["status"]).exits(0).says("was begun into main, and broken off");
    let next = status.stdout.lines().find(|line| line.starts_with("next")).unwrap();
    let command: Vec<&str> = next.split_whitespace().skip(3).collect();
    assert_eq!(command[0], "finish", "{next}");
    world.relay(&["resume", command[1]]).exits(1).says("is being finished into 'main'");
    world.relay(&command).exits(0).says("main is now");
    let story = world.git(&["log", "--format=%s", "main"]);
    assert_eq!(story, "Write two files\nInitial commit");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(state_of_last(&world), "COMPLETED");
}
