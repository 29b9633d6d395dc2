//! `git relay adopt`, killed everywhere: the next command comes to the same end, and the place where the
//! agent worked is as it was.

use super::inject::Points;
use super::{STARTED, Scene, holds, sessions, state};
use crate::it::adopt::{left, make_dirty};
use crate::it::support::{World, scripted};

fn left_behind(world: &World) {
    let second = world.program(
        "second-agent",
        &format!(
            "{STARTED}echo start; echo 'step one'; git add -A; git commit -q -m 'Finish it'\n\
             echo 'done all'\n"
        ),
    );
    world.configure(&scripted(&[("second", &second)]));
    world.relay(&["init"]).exits(0);
    make_dirty(world, &world.repo);
    left(world, "claude", "todos-limit", &world.repo);
}

const ADOPT: Scene = Scene {
    name: "adopt",
    points_least: 200,
    prepare: left_behind,
    command: &["adopt", "--headless"],
    recover: |world, command| {
        match sessions(world).as_slice() {
            [] => world.relay(command).exits(0),
            [only] => world.relay(&["resume", only]).exits(0),
            more => panic!("one adoption made {more:?}"),
        };
    },
    check: |world, before| {
        let state = state(world);
        assert_eq!((&state["state"], &state["leg"]), (&"RUNNING".into(), &2.into()), "{state}");
        assert_eq!(state["legEnd"]["outcome"], "done", "{state}");
        let session = &sessions(world)[0];
        let contract = world.relay(&["show", "--json", session, "--leg", "1"]).exits(0).json();
        assert_eq!(contract["fileManifest"]["total"], 9, "{contract}");
        assert_eq!(contract["from"]["outcome"], "limit", "{contract}");
        let branch = format!("relay/{session}");
        assert_eq!(world.git(&["show", &format!("{branch}:greeting.txt")]), "hello\nhalf");
        // Git writes its index anew once the world has been copied back; that an adoption does not
        // is tested where nothing is copied.
        let mut before = before.clone();
        let index = world.users_things().remove(".git/index").expect("there is an index");
        before.insert(".git/index".to_owned(), index);
        holds(world, &before);
    },
};

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_an_adoption() {
    ADOPT.play_at(Points::all, 6);
}
