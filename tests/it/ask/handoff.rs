//! `git relay handoff` from wherever it is called.

use super::{DONE, LIMIT, starts, state, world};
use crate::it::support::{World, digest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Asks something, so that its session rests without a process.
const ASKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >committed.txt; \
     git add committed.txt; git commit -q -m 'Add'; echo half >half.txt; \
     git-relay record --decision 'plain files'; echo 'asks which one?'\n";
/// Works until it is ended.
pub(super) const WORKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >begun.txt; \
     touch \"$HOME/begun\"; sleep 60\n";

/// Every file below a folder, with its digest.
fn files(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files(&path, found);
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            found.insert(path.display().to_string(), digest(&bytes));
        }
    }
}

fn everything(world: &World) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    files(&world.repo, &mut found);
    files(&world.home, &mut found);
    found
}

/// A driver in the background, until its first agent is at work.
pub(super) fn at_work(world: &World) -> Child {
    let mut command = world.command(super::super::support::binary());
    command.args(["run", "A task"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let began = Instant::now();
    while !world.home.join("begun").exists() || state(world)["state"] != "RUNNING" {
        assert!(began.elapsed() < Duration::from_secs(60), "the first agent does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn a_dry_run_shows_the_contract_and_writes_nothing() {
    let world = world(&[("first", ASKS), ("second", DONE)]);
    world.relay(&["run", "A task"]).exits(1);
    let before = everything(&world);
    let words = ["handoff", "--dry-run", "--reason", "to look", "--to", "second"];
    world.relay(&words).exits(0).says("nothing was written").says("\"plain files\"");
    let shown = world.relay(&[&words[..], &["--json"]].concat()).exits(0).stdout;
    assert_eq!(everything(&world), before, "something was written");
    let would: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(would["candidates"][0], "second", "{would}");
    assert_eq!(would["reason"]["text"], "to look", "{would}");

    world.relay(&["handoff", "--no-launch", "--reason", "to look", "--to", "second"]).exits(0);
    let signed = world.relay(&["show", "--json"]).exits(0).json();
    for key in ["snapshotTree", "fileManifest", "decisions", "candidates", "branch", "taskGoal"] {
        assert_eq!(would[key], signed[key], "{key}");
    }
    // As it is signed: sorted keys, no space.
    let canonical: BTreeMap<String, Value> = serde_json::from_str(&shown).unwrap();
    assert!(shown.starts_with(&format!("{{\"{}\":", canonical.keys().next().unwrap())), "{shown}");
    world.relay(&["handoff", "--dry-run"]).exits(1).says("signed already").says("git relay show");
}

#[test]
fn a_dry_run_beside_a_driver_at_work_writes_nothing_either() {
    let world = world(&[("first", WORKS), ("second", DONE)]);
    let mut driver = at_work(&world);
    let refs = world.git(&["for-each-ref"]);
    let objects = world.git(&["count-objects", "-v"]);
    let shown = world.relay(&["handoff", "--dry-run", "--json"]).exits(0).json();
    assert!(shown["fileManifest"].to_string().contains("begun.txt"), "{shown}");
    assert_eq!(world.git(&["for-each-ref"]), refs);
    assert_eq!(world.git(&["count-objects", "-v"]), objects);
    // The second terminal asks, shows what the driver does, and ends when the next one is there.
    let did = world.relay(&["handoff", "--json"]).exits(0).says("second took over (leg 2)");
    let told = did.json()["handoff"].clone();
    assert_eq!((&told["did"], &told["agent"]), (&"asked".into(), &"second".into()), "{told}");
    assert!(driver.wait().unwrap().success());
    world.relay(&["verify"]).exits(0);
}

#[test]
fn who_leaves_off_looking_is_told_that_the_hand_over_goes_on() {
    let waits = format!("while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done; {DONE}");
    let world = world(&[("first", WORKS), ("second", &waits)]);
    let mut driver = at_work(&world);
    let mut looks = world.command(super::super::support::binary());
    let looks = looks.arg("handoff").stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while state(&world)["dispatch"]["agent"] != "second" {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody is started");
        std::thread::sleep(Duration::from_millis(20));
    }
    world.run("kill", &["-INT", &looks.id().to_string()]).exits(0);
    let did = super::super::support::Did::of(&looks.wait_with_output().unwrap()).exits(1);
    let id = world.session();
    did.says(&format!("the hand-over goes on. Look: git relay status {id}"));
    fs::write(world.home.join("go"), "").unwrap();
    assert!(driver.wait().unwrap().success());
    assert_eq!(starts(&world), ["first", "second"]);
}

#[test]
fn what_nobody_was_started_for_is_taken_up_later_by_another_agent() {
    for later in [&["resume", "--agents", "third"][..], &["handoff", "--to", "third"]] {
        let world = world(&[("first", WORKS), ("second", DONE), ("third", DONE)]);
        world.relay(&["init", "--agents", "first,second"]).exits(0);
        let mut driver = at_work(&world);
        let told = world.relay(&["handoff", "--no-launch", "--json"]).exits(0).json();
        assert_eq!(told["handoff"]["state"], "ENVELOPE_BUILT", "{told}");
        assert!(driver.wait().unwrap().success());
        assert_eq!(starts(&world), ["first"], "nobody is started");
        world.relay(&["list"]).exits(0).says("at rest: resume it");
        world.relay(later).exits(0).says("third took over (leg 2)");
        world.relay(&["verify"]).exits(0);
        world.git(&["cat-file", "-e", &format!("relay/{}:begun.txt", world.session())]);
    }
}

#[test]
fn a_single_agent_can_be_put_to_rest_and_go_on() {
    let world = world(&[("first", WORKS)]);
    let mut driver = at_work(&world);
    world.relay(&["handoff"]).exits(1).says("no other agent");
    world.relay(&["handoff", "--no-launch"]).exits(0);
    assert!(driver.wait().unwrap().success());
    world.program("first-agent", DONE);
    world.relay(&["resume"]).exits(0).says("first took over (leg 2)");
}

#[test]
fn a_session_can_be_made_without_an_agent() {
    let world = world(&[("first", DONE)]);
    world.relay(&["run", "A task", "--no-launch"]).exits(0).says("nobody is started");
    assert!(world.worktree().join("README.md").exists());
    assert_eq!(starts_or_none(&world), 0);
    world.relay(&["list"]).exits(0).says("not begun: resume it");
    world.relay(&["handoff", "--dry-run"]).exits(1).says("no agent has begun");
    world.relay(&["resume"]).exits(0).says("first took over (leg 1)");
}

fn starts_or_none(world: &World) -> usize {
    state(world)["dispatches"].as_array().map_or(0, Vec::len)
}

#[test]
fn an_agent_that_took_our_variables_away_is_still_one() {
    let script = "cat >/dev/null; echo start; echo 'step one'; S=$GIT_RELAY_SESSION; \
         env -i HOME=\"$HOME\" PATH=\"$PATH\" git-relay record --session $S --done 'a step'; \
         env -i HOME=\"$HOME\" PATH=\"$PATH\" git-relay resume $S >\"$HOME/resume\" 2>&1; \
         env -i HOME=\"$HOME\" PATH=\"$PATH\" git-relay handoff --session $S >\"$HOME/said\" 2>&1; \
         sleep 60\n";
    let world = world(&[("first", script), ("second", DONE)]);
    world.relay(&["run", "A task"]).exits(0).says("second took over");
    let said = |name: &str| fs::read_to_string(world.home.join(name)).unwrap();
    assert!(said("said").contains("end your turn now"), "{}", said("said"));
    assert!(
        said("resume").contains("may not do this") || said("resume").contains("is being driven")
    );
    let contract = world.relay(&["show", "--json"]).exits(0).json();
    assert_eq!(contract["done"][0]["by"], "first leg 1", "{contract}");
}

#[test]
fn a_hand_over_that_cannot_come_to_anything_is_refused_and_asks_nobody() {
    let resets = LIMIT.replace("echo 'limit", "echo 'used=99 resets=4102444800'; echo 'limit");
    let world = world(&[("first", &resets), ("second", ASKS), ("third", DONE)]);
    world.relay(&["run", "A task", "--agents", "first,second"]).exits(1);
    let before = everything(&world);
    let refused: [(&[&str], i32, &[&str]); 9] = [
        (&["handoff", "--to", "first"], 6, &["window of 'first' is used up until 2100-01-01"]),
        (&["handoff"], 6, &["window of 'first'", "--agents first"]),
        (&["handoff", "--to", "second@work"], 2, &["accounts of one agent", "--to AGENT"]),
        (&["handoff", "--to", "nobody"], 2, &["no agent is called 'nobody'", "git relay agents"]),
        (&["handoff", "--to", "../x"], 2, &["not an agent's name", "git relay agents"]),
        (&["handoff", "--to", "codex"], 5, &["'codex' is not installed", "install"]),
        (&["handoff", "--session", "gone"], 1, &["no session 'gone'", "git relay list"]),
        (&["resume", "gone"], 1, &["no session 'gone'", "git relay list"]),
        (&["record", "--session", "gone", "--done", "x"], 1, &["no session 'gone'"]),
    ];
    for (words, code, said) in refused {
        let mut did = world.relay(words).exits(code).says("hint: ");
        for words in said {
            did = did.says(words);
        }
        assert_eq!(everything(&world), before, "{words:?} changed something");
    }
    world.relay(&["handoff", "--to", "third"]).exits(0).says("third took over");
}

#[test]
fn what_is_recorded_can_be_read_by_a_script() {
    let world = world(&[("first", ASKS)]);
    world.relay(&["run", "A task"]).exits(1);
    let told = world.relay(&["record", "--done", "x", "--next", "y", "--json"]).exits(0).json();
    assert_eq!(told["record"]["recorded"], 2);
    assert_eq!(told["record"]["sessionId"], world.session());
}
