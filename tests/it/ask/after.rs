//! Afterwards: agents that are not configured any more, windows that a person knows better, sessions
//! that are over, drivers that are killed or asked to let go.

use super::handoff::{WORKS, at_work};
use super::{DONE, LIMIT, starts, state, world};
use crate::it::support::{Did, World};

const ASKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo half >half.txt; \
     echo 'asks which one?'\n";

fn with_reset() -> String {
    LIMIT.replace("echo 'limit", "echo 'used=99 resets=4102444800'; echo 'limit")
}

/// At its limit once it has taken over; from the second start on before that.
fn at_limit() -> String {
    format!(
        "[ -e \"$HOME/again\" ] && {{ cat >/dev/null; echo start; \
         echo 'used=99 resets=4102444800'; echo 'limit you have hit your limit'; exit 1; }}; \
         touch \"$HOME/again\"; {}",
        with_reset()
    )
}

#[track_caller]
fn hint(did: &Did) -> String {
    let line = did.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
    line.unwrap_or_else(|| panic!("no hint:\n{}", did.stderr)).to_owned()
}

/// A session of `first`, which is not configured any more.
fn forgotten(script: &str) -> (World, String) {
    let world = world(&[("first", script), ("second", DONE)]);
    world.relay(&["run", "A task", "--agents", "first"]);
    let second = world.program("second-agent", DONE);
    world.configure(&crate::it::support::scripted(&[("second", &second)]));
    let id = world.session();
    (world, id)
}

/// A session whose driver and agent were killed at work.
fn killed(world: &World) -> String {
    let mut driver = at_work(world);
    let agent = state(world)["dispatch"]["process"]["pid"].as_u64().unwrap();
    driver.kill().unwrap();
    driver.wait().unwrap();
    world.run("kill", &["-9", &agent.to_string()]).exits(0);
    while std::path::Path::new(&format!("/proc/{agent}/environ")).exists()
        && !std::fs::read(format!("/proc/{agent}/environ")).unwrap_or_default().is_empty()
    {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    world.session()
}

#[test]
fn a_session_whose_agent_is_not_configured_any_more_can_be_ended() {
    let (world, id) = forgotten(ASKS);
    world.relay(&["abort", &id]).exits(0);
    assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:half.txt")]), "half");
    let (world, id) = forgotten(ASKS);
    world.relay(&["finish", &id, "--keep"]).exits(0);
    assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:half.txt")]), "half");
}

#[test]
fn a_session_whose_agent_is_not_configured_any_more_goes_on_with_those_that_are() {
    for script in [ASKS, LIMIT] {
        let (world, id) = forgotten(script);
        let did = world.relay(&["resume", &id]).exits(2).says("is configured any more (first)");
        assert_eq!(hint(&did), format!("git relay resume {id} --agents second"));
        let words = ["resume", &id, "--agents", "second"];
        world.relay(&words).exits(0).says("second took over (leg 2)");
        world.relay(&["verify"]).exits(0);
    }
    // Its driver was killed beside it: nobody saw the end of the leg.
    let world = world(&[("first", WORKS), ("second", DONE)]);
    let id = killed(&world);
    let second = world.program("second-agent", DONE);
    world.configure(&crate::it::support::scripted(&[("second", &second)]));
    let words = ["resume", &id, "--agents", "second", "--accept-config"];
    world.relay(&words).exits(0).says("second took over (leg 2)");
    let (world, id) = forgotten(ASKS);
    world.relay(&["handoff", "--session", &id, "--to", "second"]).exits(0).says("second took over");
}

#[test]
fn a_person_that_forces_an_agent_is_believed_once() {
    let world = world(&[("first", &at_limit()), ("second", ASKS)]);
    world.relay(&["run", "A task"]).exits(1);
    world.relay(&["handoff", "--to", "first"]).exits(6).says("--to first --force");
    let did = world.relay(&["handoff", "--to", "first", "--force"]).exits(6);
    assert_eq!(starts(&world), ["first", "second", "first"]);
    let id = world.session();
    did.says(&format!("second gave it away and is free: git relay resume {id} --agents second"));
    world.relay(&["resume"]).exits(6).says("is free");
    assert_eq!(starts(&world).len(), 3, "it is asked once");
    world.relay(&["resume", "--agents", "second,first"]).exits(1);
    assert_eq!(starts(&world)[3], "second");
}

#[test]
fn who_is_forced_for_later_is_started_then() {
    let world = world(&[("first", &at_limit()), ("second", ASKS)]);
    world.relay(&["run", "A task"]).exits(1);
    let words = ["handoff", "--to", "first", "--force", "--no-launch"];
    world.relay(&words).exits(0).says("nobody is started; first is next");
    let status = world.relay(&["status"]).exits(0);
    let row = status.stdout.lines().find(|line| line.starts_with("goes to"));
    assert!(row.is_some_and(|row| row.ends_with("first")), "{}", status.stdout);
    world.relay(&["resume"]).exits(6);
    assert_eq!(starts(&world), ["first", "second", "first"]);
}

#[test]
fn named_agents_outdo_a_wish_of_before() {
    let world = world(&[("first", &at_limit()), ("second", ASKS), ("third", DONE)]);
    world.relay(&["run", "A task", "--agents", "first,second"]).exits(1);
    world.relay(&["handoff", "--to", "first", "--force", "--no-launch"]).exits(0);
    world.relay(&["resume", "--agents", "third,first"]).exits(0).says("third took over");
    assert_eq!(starts(&world), ["first", "second", "third"]);
}

#[test]
fn windows_of_agents_that_are_not_in_the_order_are_not_spoken_of() {
    let fails = "cat >/dev/null; echo start; echo 'failed broken'; exit 1\n";
    let world = world(&[("first", &with_reset()), ("second", fails)]);
    world.relay(&["run", "A task", "--agents", "first"]).exits(6).says("first window opens at");
    for _ in 0..2 {
        let did = world.relay(&["resume", "--agents", "second"]).exits(1);
        assert!(!did.stderr.contains("window"), "{}", did.stderr);
    }
}

#[test]
fn a_session_that_is_over_says_so_and_where_its_result_is() {
    let world = world(&[("first", DONE)]);
    for end in ["finish", "abort"] {
        world.relay(&["run", "A task"]).exits(0);
        let list = world.relay(&["list", "--json"]).exits(0).json();
        let open = list["sessions"].as_array().unwrap().iter();
        let mut open = open.filter(|session| session["state"] == "RUNNING");
        let id = open.next().unwrap()["sessionId"].as_str().unwrap().to_owned();
        world.relay(&["record", "--session", &id, "--done", "a step"]).exits(0);
        world.relay(&[end, &id]).exits(0);
        let state = if end == "finish" { "COMPLETED" } else { "ABORTED" };
        for words in [&["resume", &id][..], &["resume", &id, "--answer", "x"], &["abort", &id]] {
            let did = world.relay(words).exits(1).says(&format!("is {state} since "));
            let did = did.says("its result is ");
            assert!(hint(&did).starts_with("git relay list"), "{}", did.stderr);
            assert!(!did.stderr.contains("inbox"), "{}", did.stderr);
        }
    }
}

#[test]
fn an_empty_answer_is_none() {
    let world = world(&[("first", ASKS)]);
    world.relay(&["run", "A task"]).exits(1);
    let before = state(&world);
    for answer in ["", " \n"] {
        let did = world.relay(&["resume", "--answer", answer]).exits(2).says("answer is empty");
        assert_eq!(hint(&did), format!("git relay resume {} --answer TEXT", world.session()));
    }
    assert_eq!(state(&world), before);
}

#[test]
fn an_abort_asks_the_driver_at_work_to_end_its_agent() {
    let world = world(&[("first", WORKS)]);
    let mut driver = at_work(&world);
    let id = world.session();
    world.relay(&["abort", &id, "--dry-run"]).exits(3);
    let did = world.relay(&["abort", &id]);
    assert!(driver.wait().unwrap().code().is_some(), "it ended by itself");
    did.exits(0).says("is asked to end its agent").says(&format!("refs/relay/kept/{id}"));
    assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:begun.txt")]), "a");
    assert_eq!(state(&world)["state"], "ABORTED");
}

#[test]
fn what_a_killed_driver_left_is_said_not_to_be_at_rest() {
    let world = world(&[("first", WORKS)]);
    killed(&world);
    for words in [&["list"][..], &["status"]] {
        world.relay(words).exits(0).says("broken off, not at rest: resume it");
    }
    world.relay(&["finish", &world.session(), "--dry-run"]).exits(1).says("not at rest");
}

#[test]
fn what_was_next_before_a_leg_that_is_done_is_not_next_after_it() {
    let says = ASKS.replace("echo half", "git-relay record --next 'write the parser'; echo half");
    let done = DONE.replace("echo 'done", "git-relay record --done 'The parser'; echo 'done");
    let world = world(&[("first", &says), ("second", &done)]);
    world.relay(&["run", "A task"]).exits(1);
    let next = |world: &World| {
        let shown = world.relay(&["show", "--json"]).exits(0).json();
        shown.to_string().contains("write the parser\",\"standing")
            || shown.to_string().contains("\"nextAction\":{")
    };
    world.relay(&["handoff", "--to", "second"]).exits(0);
    assert!(next(&world));
    world.relay(&["handoff", "--to", "first", "--no-launch"]).exits(0);
    assert!(!next(&world));
}
