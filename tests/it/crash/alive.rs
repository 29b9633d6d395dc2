//! The driver is killed while its agent lives: the next command waits beside it, or honours what
//! it did alone; it never starts a second one.

use super::inject::{Hit, Injector};
use super::{SECOND, STARTED, holds, keep, relayed, reset, sessions, state, two_agents, world};
use crate::it::support::{World, binary};
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits in an agent's script until the test says so.
const GO: &str = "until [ -e \"$HOME/go\" ]; do sleep 0.02; done\n";

/// A shell child in a session of its own that writes on and on, as agents' shells do.
const CHILD: &str = "setsid sh -c 'while :; do echo more >>live.txt; sleep 0.05; done' \
                     </dev/null >/dev/null 2>&1 &\n\
                     echo $! >\"$HOME/child\"; until [ -s live.txt ]; do sleep 0.02; done\n";

/// Two agents, `first` with this script after it has said that it was started.
fn agents(world: &World, first: &str) {
    world.with_two_agents(&format!("{STARTED}{first}"), &format!("{STARTED}{SECOND}"));
}

fn start(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.command(binary());
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[track_caller]
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come");
        sleep(Duration::from_millis(20));
    }
}

fn stands(world: &World, wanted: &str) -> bool {
    !sessions(world).is_empty() && state(world)["state"] == wanted
}

fn starts(world: &World) -> usize {
    let log = fs::read_to_string(world.home.join("starts")).unwrap_or_default();
    log.lines().count()
}

fn go(world: &World) {
    fs::write(world.home.join("go"), "").unwrap();
}

fn agent_is_gone(world: &World) -> bool {
    let pid = fs::read_to_string(world.home.join("pid")).unwrap();
    !fs::exists(format!("/proc/{}/exe", pid.trim())).unwrap_or(false)
}

/// A `run` that was killed once its session stood in `wanted` and `ready` held.
fn killed_driver(world: &World, wanted: &str, mut ready: impl FnMut() -> bool) {
    let mut driver = start(world, &["run", "Write two files"]);
    until(wanted, || stands(world, wanted) && ready());
    driver.kill().unwrap();
    driver.wait().unwrap();
}

fn outcomes(state: &Value) -> Vec<String> {
    let dispatches = state["dispatches"].as_array().unwrap();
    dispatches.iter().map(|d| format!("{} {}", d["agent"], d["outcome"])).collect()
}

/// What the snapshot of leg 1 holds is what the file still holds: nobody wrote after it.
fn nothing_was_written_after_the_snapshot(world: &World) {
    let session = &sessions(world)[0];
    let then = world.git(&["show", &format!("refs/relay/snapshots/{session}/1:live.txt")]);
    let now = fs::read_to_string(world.repo.join(".relay/sessions").join(session).join("live.txt"));
    assert_eq!(now.unwrap().trim_end(), then);
}

#[test]
fn a_driver_killed_beside_its_agent_is_followed_by_one_that_waits_beside_it() {
    let world = world();
    agents(
        &world,
        &format!("echo start; echo 'step one'\n{CHILD}{GO}echo 'limit reached'; exit 1\n"),
    );
    let before = world.users_things();
    killed_driver(&world, "RUNNING", || world.home.join("child").exists());
    let session = sessions(&world)[0].clone();
    let mut next = start(&world, &["resume", &session]);
    sleep(Duration::from_millis(700));
    assert_eq!(starts(&world), 1, "a second agent was started beside the first");
    assert!(next.try_wait().unwrap().is_none(), "it did not wait");
    go(&world);
    assert!(next.wait().unwrap().success());
    nothing_was_written_after_the_snapshot(&world);
    assert_eq!(state(&world)["legEnd"]["outcome"], "done");
    assert_eq!(starts(&world), 2);
    holds(&world, &before);
}

#[test]
fn a_shell_child_of_a_dead_agent_is_not_the_agent() {
    let world = world();
    agents(&world, &format!("echo start; echo 'step one'\n{CHILD}{GO}"));
    let before = world.users_things();
    killed_driver(&world, "RUNNING", || world.home.join("child").exists());
    let pid = fs::read_to_string(world.home.join("pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    until("its end", || agent_is_gone(&world));
    let began = Instant::now();
    world.relay(&["resume"]).exits(0);
    assert!(began.elapsed() < Duration::from_secs(20), "it waited beside the child");
    nothing_was_written_after_the_snapshot(&world);
    let state = state(&world);
    assert_eq!(outcomes(&state), ["\"first\" \"received\"", "\"second\" \"received\""]);
    holds(&world, &before);
}

#[test]
fn a_pause_whose_driver_was_killed_is_finished_by_the_next() {
    let world = world();
    // It takes no interrupt, so that the driver is caught while it waits for the end.
    agents(&world, &format!("trap '' INT TERM; echo start; echo 'step one'\n{CHILD}{GO}exit 1\n"));
    let before = world.users_things();
    let mut driver = start(&world, &["run", "Write two files"]);
    until("RUNNING", || stands(&world, "RUNNING") && world.home.join("child").exists());
    let mut asker = start(&world, &["handoff", "--reason", "lunch"]);
    let session = sessions(&world)[0].clone();
    let pause = world.repo.join(".git/relay/sessions").join(&session).join("pause");
    until("PAUSING", || stands(&world, "PAUSING") && pause.exists());
    driver.kill().unwrap();
    driver.wait().unwrap();
    asker.wait().unwrap();
    go(&world);
    until("its end", || agent_is_gone(&world));
    world.relay(&["resume"]).exits(0);
    nothing_was_written_after_the_snapshot(&world);
    assert!(!pause.exists(), "the next agent's hooks would be told to stop");
    let list = world.relay(&["show", &session, "--json"]).exits(0);
    assert!(list.stdout.contains("\"request\""), "{}", list.stdout);
    assert_eq!(state(&world)["legEnd"]["outcome"], "done");
    holds(&world, &before);
}

#[test]
fn an_agent_that_ran_to_its_end_alone_is_honoured() {
    for (first, wanted) in [
        // Alone from its receipt on, and alone from its very start.
        (format!("echo start; echo 'step one'\n{GO}"), "RUNNING"),
        (format!("{GO}echo start; echo 'step one'\n"), "DISPATCHED"),
    ] {
        let world = world();
        agents(&world, &format!("{first}echo 'limit reached'; exit 1\n"));
        let before = world.users_things();
        killed_driver(&world, wanted, || starts(&world) == 1);
        go(&world);
        until("its end", || agent_is_gone(&world));
        world.relay(&["resume"]).exits(0);
        let state = state(&world);
        assert_eq!(outcomes(&state), ["\"first\" \"received\"", "\"second\" \"received\""]);
        assert_eq!(starts(&world), 2, "{wanted}");
        holds(&world, &before);
    }
}

#[test]
fn a_driver_killed_between_its_intent_and_the_start_uses_a_new_nonce() {
    let world = world();
    two_agents(&world);
    keep(&world);
    let before = world.users_things();
    let injector = Injector::new(world.root.parent().unwrap());
    let command = ["run", "Write two files"];
    let start = injector.record(&world, &command).last_start();
    reset(&world);
    assert_eq!(injector.run(&world, start, &command), Hit::Killed);
    let found = state(&world);
    assert_eq!(found["state"], "DISPATCHED", "{found}");
    assert_eq!(starts(&world), 1, "the second agent was started");
    let nonce = found["dispatch"]["nonce"].clone();
    world.relay(&["resume"]).exits(0);
    relayed(&world);
    let found = state(&world);
    let dispatches = ["\"first\" \"received\"", "\"second\" \"failed\"", "\"second\" \"received\""];
    assert_eq!(outcomes(&found), dispatches);
    assert_ne!(found["dispatch"]["nonce"], nonce, "a nonce is used once");
    holds(&world, &before);
}

#[test]
fn a_driver_killed_before_it_recorded_the_start_is_followed_by_one_that_finds_the_agent() {
    let world = world();
    two_agents(&world);
    keep(&world);
    let before = world.users_things();
    let injector = Injector::new(world.root.parent().unwrap());
    let command = ["run", "Write two files"];
    let start_of_second = injector.record(&world, &command).last_start();
    reset(&world);
    // It kills its driver, which strace holds back meanwhile.
    let second = world.home.join("bin/second-agent");
    let script = fs::read_to_string(&second).unwrap();
    let script = script.replace("tell start", &format!("kill -9 $PPID\n{GO}tell start"));
    fs::write(&second, script).unwrap();
    injector.hold(&world, start_of_second, &command);
    let found = state(&world);
    assert_eq!(found["state"], "DISPATCHED", "{found}");
    assert!(found["dispatch"]["process"].is_null(), "{found}");
    until("the second agent", || starts(&world) == 2);
    let mut next = start(&world, &["resume"]);
    until("its record", || !state(&world)["dispatch"]["process"].is_null());
    go(&world);
    assert!(next.wait().unwrap().success());
    relayed(&world);
    assert_eq!(starts(&world), 2, "a second one was started beside it");
    holds(&world, &before);
}
