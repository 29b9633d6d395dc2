//! Sessions that a process works on, and those that a relay of ours started.

use super::super::support::{World, scripted};
use super::{CLAUDE, CODEX, claude, codex, put, recorded, sessions, world};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// A program of this name that says that it is up and ends with its standard input.
fn start(world: &World, name: &str, words: &[&Path]) -> Child {
    let script = "#!/bin/sh\n[ -z \"$1\" ] || exec 3<>\"$1\"\necho up\nread -r line\n";
    let mut command = world.command(world.program(name, script));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "up\n");
    child
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// When a process began, as the kernel counts.
fn ticks(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].split(' ').nth(19).unwrap().to_owned()
}

fn state(world: &World, id: &str) -> (String, Option<u64>) {
    let found = sessions(world, &[id]);
    (found[0]["state"].as_str().unwrap().to_owned(), found[0]["pid"].as_u64())
}

#[test]
fn a_running_claude_says_itself_what_it_works_on() {
    let world = world();
    let store = world.home.join(".claude");
    let text = recorded("claude", "plain-ok", &world.repo);
    put(&claude(&store, "-repo", CLAUDE), &text, 1);
    assert_eq!(state(&world, CLAUDE), ("ended".into(), None));
    let process = start(&world, "claude", &[]);
    let pid = process.id();
    let file = store.join(format!("sessions/{pid}.json"));
    let tell = |status: &str, began: &str| {
        let text = format!(
            r#"{{"pid":{pid},"sessionId":"{CLAUDE}","procStart":"{began}","status":"{status}"}}"#
        );
        world.write_at(&file, &text);
    };
    // It may be at any session of its folder that was written to since it began.
    put(&claude(&store, "-repo", CLAUDE), &text, 0);
    assert_eq!(state(&world, CLAUDE).0, "unknown");
    put(&claude(&store, "-repo", CLAUDE), &text, 1);
    assert_eq!(state(&world, CLAUDE).0, "ended");
    tell("busy", &ticks(pid));
    assert_eq!(state(&world, CLAUDE), ("working".into(), Some(pid.into())));
    tell("idle", &ticks(pid));
    assert_eq!(state(&world, CLAUDE), ("idle".into(), Some(pid.into())));
    // Left by an earlier process of the same number.
    tell("busy", "1");
    assert_eq!(state(&world, CLAUDE), ("ended".into(), None));
    // Limited counts more than that it is still open.
    tell("idle", &ticks(pid));
    put(&claude(&store, "-repo", CLAUDE), &recorded("claude", "limit", &world.repo), 1);
    assert_eq!(state(&world, CLAUDE), ("limited".into(), Some(pid.into())));
    world.relay(&["detect"]).exits(0).says(&format!("still open as process {pid}"));
    end(process);
    assert_eq!(state(&world, CLAUDE), ("limited".into(), None));
}

#[test]
fn a_running_codex_holds_its_file_open() {
    let world = world();
    let path = codex(&world.home.join(".codex"), CODEX);
    for (name, expected) in [("plain-ok", "idle"), ("open-call", "working"), ("limit", "limited")] {
        put(&path, &recorded("codex", name, &world.repo), 1);
        let process = start(&world, "codex", &[&path]);
        assert_eq!(state(&world, CODEX), (expected.into(), Some(process.id().into())));
        end(process);
        let expected = if name == "limit" { "limited" } else { "ended" };
        assert_eq!(state(&world, CODEX), (expected.into(), None));
    }
}

#[test]
fn the_config_folder_of_a_running_agent_is_looked_into() {
    let mut world = World::new();
    let store = world.root.join("hidden");
    put(&claude(&store, "-x", CLAUDE), &recorded("claude", "limit", &world.repo), 1);
    assert!(sessions(&world, &[]).is_empty());
    // As it was named there, relative to where it was started.
    world.set("CLAUDE_CONFIG_DIR", "../hidden");
    let process = start(&world, "claude", &[]);
    world.variables.clear();
    let found = sessions(&world, &[]);
    assert_eq!(found[0]["id"], CLAUDE);
    assert!(found[0]["account"].as_str().unwrap().ends_with("/hidden"), "{}", found[0]);
    end(process);
    assert!(sessions(&world, &[]).is_empty());
}

#[test]
fn a_leg_of_ours_is_marked_so_that_nobody_lifts_it() {
    let world = World::new();
    let agent =
        world.program("an-agent", "cat >/dev/null; echo start; echo 'step 1'; echo 'done x'");
    world.configure(&scripted(&[("first", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(0);
    let store = world.home.join(".claude");
    let text = recorded("claude", "plain-ok", &world.worktree().join("deep"));
    put(&claude(&store, "-x", "aaaaaaa1"), &text, 1);
    put(&claude(&store, "-x", "aaaaaaa2"), &recorded("claude", "plain-ok", &world.repo), 2);
    let found = sessions(&world, &[]);
    assert_eq!(found[0]["relaySession"], world.session().as_str());
    assert!(found[1]["relaySession"].is_null());
    world.relay(&["detect"]).exits(0).says(&format!("a leg of session {}", world.session()));
}
