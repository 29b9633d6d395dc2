//! Everybody at once on one repository: eight sessions from start to end, and sixteen commands on
//! a ninth. No note, no state and no fact is lost, and each step has one winner.

use super::crowd::{all_exit, at_once, words};
use super::{STARTED, holds, knows_reftable, sessions, world};
use crate::it::support::{World, scripted};
use std::process::Output;

const SESSIONS: usize = 8;

fn contracts(world: &World, session: &str) -> usize {
    let chain = format!("refs/relay/sessions/{session}");
    world.git(&["log", "--format=%H", &chain, "--", "contract.json"]).lines().count()
}

fn state(world: &World, session: &str) -> serde_json::Value {
    let text = world.git(&["show", &format!("refs/relay/sessions/{session}:state.json")]);
    serde_json::from_str(&text).unwrap()
}

fn load(world: &World) {
    // Each at its limit in its first leg, done in its second.
    let script = format!(
        "{STARTED}echo start; echo 'step it'; echo $$ >>mine; git add mine\n\
         git commit -q -m 'Add mine'; [ -e .relay/envelope.md ] && grep -q 'take over' \
         .relay/envelope.md && echo 'done all' || echo 'limit reached'\n"
    )
    // There are many agents at once in this world, and that is right.
    .replace("echo two", ":");
    let agent = world.program("an-agent", &script);
    world.configure(&scripted(&[("one", &agent), ("two", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "The ninth"]).exits(0);
    let before = world.users_things();
    let ninth = sessions(world).remove(0);
    let mut commands: Vec<Vec<String>> =
        (0..SESSIONS).map(|n| words(&["run", &format!("Task {n}")])).collect();
    let on_ninth = |more: &[&str]| words(&[more, &["--session", &ninth]].concat());
    for n in 0..6 {
        commands.push(on_ninth(&["record", "--decision", &format!("fact {n}.")]));
    }
    commands.extend((0..4).map(|_| on_ninth(&["handoff"])));
    commands.extend((0..3).map(|_| words(&["status", &ninth])));
    commands.extend((0..3).map(|_| words(&["list", "--json"])));
    let outputs = at_once(world, &commands);
    let (runs, rest) = outputs.split_at(SESSIONS);
    all_exit(runs, &[0]);
    let (records, rest) = rest.split_at(6);
    all_exit(records, &[0]);
    let (handoffs, looks) = rest.split_at(4);
    // Whoever comes when both agents are at their limit is told so.
    all_exit(handoffs, &[0, 1, 6]);
    all_exit(looks, &[0]);
    world.relay(&["resume", &ninth]).exits(0);
    all_there(world, &ninth, &before, looks);
}

fn all_there(
    world: &World,
    ninth: &str,
    before: &std::collections::BTreeMap<String, String>,
    looks: &[Output],
) {
    let all = sessions(world);
    assert_eq!(all.len(), SESSIONS + 1);
    let mut legs_ended = 0;
    for session in &all {
        let state = state(world, session);
        assert_eq!(state["state"], "RUNNING", "{state}");
        assert_eq!(state["legEnd"]["outcome"], "done", "{state}");
        let leg = usize::try_from(state["leg"].as_u64().unwrap()).unwrap();
        assert!(leg == 2 || session == ninth && leg > 2, "{state}");
        assert_eq!(contracts(world, session), leg - 1, "one contract for each leg that ended");
        let lines = world.git(&["show", &format!("relay/{session}:mine")]);
        assert_eq!(lines.lines().count(), leg, "what each leg wrote");
        legs_ended += leg - 1;
    }
    let notes = world.git(&["notes", "--ref=relay", "list"]);
    assert_eq!(notes.lines().count(), legs_ended, "one note for each contract");
    let declared = state(world, ninth)["declared"].to_string();
    for n in 0..6 {
        assert_eq!(declared.matches(&format!("\"fact {n}.\"")).count(), 1, "{declared}");
    }
    for look in &looks[3..] {
        let list: serde_json::Value = serde_json::from_slice(&look.stdout).unwrap();
        assert!(!list["sessions"].as_array().unwrap().is_empty(), "{list}");
    }
    holds(world, before);
}

#[test]
fn everybody_at_once_loses_nothing() {
    load(&world());
}

#[test]
fn everybody_at_once_loses_nothing_on_reftable() {
    if knows_reftable() {
        let world = world();
        world.begin_anew(&["--ref-format=reftable"]);
        load(&world);
    }
}
