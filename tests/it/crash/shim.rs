//! On reftable: the driver killed before, beside and after every call of git, and git killed while
//! it holds the one lock that all refs have there.

use super::inject::Points;
use super::{
    RUN, Scene, at_rest_for_good, came_to_its_end, knows_reftable, resume, sessions, two_agents,
};
use crate::it::support::World;

const SCENE: Scene = Scene {
    name: "run on reftable",
    prepare: on_reftable,
    recover: |world, _| {
        // An orphaned git may yet begin the session: a person would not be as quick as this test.
        if sessions(world).is_empty() {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        resume(world);
    },
    check: |world, before| {
        // A lock that our dead git has left keeps an agent, alone by then, from committing. What
        // it made is there all the same: in the snapshot, or for a person to commit.
        let worktree = world.repo.join(".relay/sessions").join(&sessions(world)[0]);
        let git =
            |words: &[&str]| world.git(&[&["-C", worktree.to_str().unwrap()], words].concat());
        if git(&["status", "--porcelain"]) == "M  half.txt" {
            git(&["commit", "-q", "-m", "Finish half.txt"]);
        }
        came_to_its_end(world);
        at_rest_for_good(world, before);
    },
    ..RUN
};

fn on_reftable(world: &World) {
    world.begin_anew(&["--ref-format=reftable"]);
    two_agents(world);
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_around_every_git_call_on_reftable() {
    if knows_reftable() {
        SCENE.play_at(Points::around_git, 3);
    } else {
        println!("this git knows no reftable: nothing to kill");
    }
}
