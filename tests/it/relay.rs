//! A relay between scripted agents, from outside: what a person sees, and what is true afterwards.

use super::support::{World, scripted};

/// A world with two agents: `first` stops at its limit half-way, `second` finishes.
pub(crate) fn two_agents() -> World {
    let world = World::new();
    let first = world.program(
        "first-agent",
        "cat >/dev/null; echo start; echo 'step one'; echo a >done.txt; git add done.txt; \
         git commit -q -m 'Add done.txt'; git-relay record --do-not-redo 'done.txt is written' \
         --next 'finish half.txt'; echo half >half.txt; echo 'used=99 resets=4102444800'; \
         echo 'limit you have hit your limit'; exit 1\n",
    );
    let second = world.program(
        "second-agent",
        "cat >got.md; mv got.md \"$HOME/got.md\"; echo start; echo 'step two'; echo whole >half.txt; \
         git add half.txt; git commit -q -m 'Finish half.txt'; echo 'done all'\n",
    );
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    world
}

#[test]
fn a_limit_hands_the_work_over_and_the_result_comes_home() {
    let world = two_agents();
    let before = world.users_things();
    world.relay(&["run", "Write two files"]).exits(0).says("second took over (leg 2)");
    assert_eq!(world.users_things(), before, "the user's things were touched");
    let envelope = std::fs::read_to_string(world.home.join("got.md")).unwrap();
    for words in ["Write two files", "done.txt is written", "finish half.txt"] {
        assert!(envelope.contains(words), "'{words}' is not in:\n{envelope}");
    }
    let session = world.session();
    let again = world.relay(&["show", &session, "--envelope"]).exits(0).stdout;
    assert_eq!(again, envelope, "an envelope is rendered again byte for byte");
    let worktree = world.worktree();
    let stat =
        world.git(&["-C", worktree.to_str().unwrap(), "show", "--stat", "--format=", "HEAD"]);
    assert!(stat.contains("half.txt") && !stat.contains("done.txt"), "{stat}");
    world.relay(&["verify"]).exits(0);
    world.relay(&["finish", &session]).exits(0);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "whole");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.git(&["fsck", "--strict"]);
}
