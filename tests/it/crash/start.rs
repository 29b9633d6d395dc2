//! `git relay start`, killed everywhere: each in a terminal of its own, which hangs up when its driver
//! is killed, so that the agent goes too.

use super::inject::{Points, seated};
use super::{Scene, holds, sessions, state, two_agents};
use crate::it::support::{World, binary};

/// Says it again, or goes on with it, until the work is done: at a terminal `resume` would begin
/// another leg of work that is. An agent that the terminal's end has killed was left, and whoever
/// presses Enter leaves it so: the next `resume` begins again.
fn go_on(world: &World, start: &[&str]) {
    for _ in 0..3 {
        let mut command = world.command(binary());
        match sessions(world).as_slice() {
            [] => command.args(start),
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
    prepare: two_agents,
    command: &["start", "Write two files"],
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
