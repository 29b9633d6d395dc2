//! A command that is killed while it adopts is gone on with by `git relay resume`.

use super::{contract, left, make_dirty, text, world};
use crate::it::support::{World, binary};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

/// Adopts, and is killed by its git the `n`-th time it calls it with `words`.
fn killed_at(words: &str, n: usize) -> Option<World> {
    killed_at_in(|world| world.repo.clone(), words, n)
}

/// The agent worked in `place`.
fn killed_at_in(place: impl Fn(&World) -> PathBuf, words: &str, n: usize) -> Option<World> {
    let mut world = world();
    let place = place(&world);
    make_dirty(&world, &place);
    let id = left(&world, "claude", "todos-limit", &place);
    let git =
        String::from_utf8(std::process::Command::new("which").arg("git").output().unwrap().stdout);
    let git = git.unwrap().trim().to_owned();
    let shims = world.root.join("shims");
    world.write_at(
        &shims.join("git"),
        &format!(
            "#!/bin/sh\ncase \" $* \" in *' {words} '*)\n\
             echo >>\"$HOME/calls\"; [ $(wc -l <\"$HOME/calls\") = {n} ] && kill -9 $PPID;; esac\n\
             exec {git} \"$@\"\n"
        ),
    );
    world.run("chmod", &["+x", shims.join("git").to_str().unwrap()]).exits(0);
    let path = format!("{}:{}", shims.display(), std::env::var("PATH").unwrap());
    world.set("PATH", path);
    let mut command = world.command(binary());
    let output = command.args(["adopt", &id, "--headless"]).output().unwrap();
    world.variables.remove(std::ffi::OsStr::new("PATH"));
    (output.status.signal() == Some(9)).then_some(world)
}

#[track_caller]
fn goes_on(world: &World) {
    world.relay(&["verify"]).exits(0);
    world.relay(&["resume"]).exits(0).says("second took over (leg 2)");
    let contract = contract(world);
    let files = contract["fileManifest"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 9, "{files:?}");
    assert_eq!(contract["from"]["outcome"], "limit");
    assert_eq!(text(&world.home.join("status")), "");
    assert_eq!(text(&world.worktree().join("greeting.txt")), "hello\nhalf\n");
    world.relay(&["verify"]).exits(0);
    world.git(&["fsck", "--strict"]);
}

#[test]
fn a_place_that_became_another_repository_is_left_alone() {
    let linked = |world: &World| {
        let place = world.root.join("linked");
        world.git(&["worktree", "add", "-q", "-b", "side", place.to_str().unwrap()]);
        place
    };
    let world = killed_at_in(linked, "worktree add", 1).expect("it is killed");
    let place = world.root.join("linked");
    fs::remove_file(place.join(".git")).unwrap();
    let git = |words: &[&str]| world.git(&[&["-C", place.to_str().unwrap()], words].concat());
    git(&["init", "-q"]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b.c",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Another one",
    ]);
    let seen = || (git(&["for-each-ref"]), git(&["count-objects"]), git(&["status", "--short"]));
    let before = seen();
    world.relay(&["resume"]).exits(1).says("is no worktree of this repository any more");
    assert_eq!(seen(), before);
}

#[test]
fn a_transcript_that_became_a_link_is_not_followed() {
    let world = killed_at("worktree add", 1).expect("it is killed");
    let folder = world.home.join(".claude/projects/-somewhere");
    let own = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let elsewhere = world.home.join("elsewhere");
    fs::rename(&own, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
    world.relay(&["resume"]).exits(1).says("the transcript of claude's session");
    fs::rename(&elsewhere, &own).unwrap();
    goes_on(&world);
}

#[test]
fn at_any_call_of_git_in_between() {
    let mut tried = 0;
    for (words, n) in [
        ("worktree add", 1),
        ("read-tree --reset -u", 1),
        ("read-tree --reset -u", 2),
        ("read-tree --reset", 3),
        ("update-index -q", 1),
    ] {
        let Some(world) = killed_at(words, n) else { continue };
        goes_on(&world);
        tried += 1;
    }
    assert!(tried >= 3, "only {tried} of them were reached");
}

#[test]
fn what_is_there_then_is_taken_and_what_is_gone_is_not() {
    let world = killed_at("read-tree --reset -u", 2).expect("it was killed");
    fs::remove_file(world.repo.join("data.bin")).unwrap();
    world.write("later.txt", "later\n");
    world.relay(&["resume"]).exits(0);
    assert!(world.worktree().join("later.txt").exists());
    assert!(!world.worktree().join("data.bin").exists());
}

#[test]
fn before_anything_is_there_it_can_be_aborted() {
    let world = killed_at("worktree add", 1).expect("it was killed");
    world.relay(&["handoff"]).exits(1).says("git relay resume");
    world.relay(&["finish", &world.session()]).exits(1).says("not at rest");
    world.relay(&["status"]).exits(0);
    world.relay(&["abort"]).exits(0);
    world.relay(&["verify"]).exits(0);
    // It can be adopted anew.
    world.relay(&["adopt", "--headless"]).exits(0);
}
