//! `git relay start`, killed everywhere: each in a terminal of its own, which hangs up when its driver
//! is killed, so that the agent goes too.

use super::inject::{Points, seated};
use super::{Scene, holds, sessions, state, words};
use crate::it::support::{World, binary, scripted};

/// What an agent does first, as in the other loops, but for its prompt: the terminal is no prompt.
const STARTED: &str = "tell() { echo \"$1\" >>\"$GIT_RELAY_SIGNS\"; }\n\
     [ -e \"$HOME/pid\" ] && [ -e \"/proc/$(cat \"$HOME/pid\")/exe\" ] && echo two >>\"$HOME/starts\"\n\
     echo $$ >\"$HOME/pid\"; echo \"$GIT_RELAY_LEG\" >>\"$HOME/starts\"\n";

fn two_at_a_terminal(world: &World) {
    let first = world.program(
        "first-agent",
        &format!(
            "{STARTED}tell start; tell 'step one'; echo a >done.txt; git add done.txt\n\
             git commit -q -m 'Add done.txt'; echo half >half.txt; tell 'limit reached'; sleep 60\n"
        ),
    );
    let second = world.program(
        "second-agent",
        &format!(
            "{STARTED}tell start; tell 'step two'; echo whole >half.txt; git add half.txt\n\
             git commit -q -m 'Finish half.txt'; tell 'done all'\n"
        ),
    );
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
}

/// Says it again, or goes on with it, until the work is done: at a terminal `resume` would begin
/// another leg of work that is. An agent that the terminal's end has killed was left, and whoever
/// presses Enter leaves it so: the next `resume` begins again.
fn go_on(world: &World) {
    for _ in 0..3 {
        let mut command = world.command(binary());
        match sessions(world).as_slice() {
            [] => command.args(["start", "Write two files"]),
            [_] if state(world)["legEnd"]["outcome"] == "done" => return,
            [only] => command.args(["resume", only]),
            more => panic!("one start made {more:?}"),
        };
        let output = seated(world, &command).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    }
}

const START: Scene = Scene {
    name: "start",
    points_least: 300,
    prepare: two_at_a_terminal,
    command: |_| words(&["start", "Write two files"]),
    recover: go_on,
    check: |world, before| {
        let state = state(world);
        assert_eq!(state["state"], "RUNNING", "{state}");
        assert_eq!(state["legEnd"]["outcome"], "done", "{state}");
        let branch = format!("relay/{}", sessions(world)[0]);
        assert_eq!(world.git(&["show", &format!("{branch}:half.txt")]), "whole");
        assert_eq!(world.git(&["show", &format!("{branch}:done.txt")]), "a");
        holds(world, before);
    },
};

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_start() {
    START.play_at(Points::all, 6);
}
