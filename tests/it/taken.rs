//! Somebody's files in the place of a session's worktree, which was deleted: no command takes them
//! for the session's, and none touches them.

use super::support::{Did, World, scripted};
use std::fs;
use std::path::Path;

const WORKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >committed.txt; \
     git add committed.txt; git commit -q -m 'Add committed.txt'; echo half >half.txt; sleep 2; \
     echo 'asks which one?'\n";
const LOOKS: &str = "cat >/dev/null; echo start; echo 'step two'; cp -a . \"$HOME/found\"; \
     echo 'done all'\n";

fn world(interval: u32) -> World {
    let world = World::new();
    let first = world.program("first-agent", WORKS);
    let second = world.program("second-agent", LOOKS);
    let agents = scripted(&[("first", &first), ("second", &second)]);
    world.configure(&format!("wip_interval_s = {interval}\n{agents}"));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(1);
    world
}

/// Somebody else's files, one of them under a name that the session has too.
fn take(world: &World, tidies: bool) {
    let place = world.worktree();
    fs::remove_dir_all(&place).unwrap();
    world.write_at(&place.join("mine.txt"), "mine\n");
    world.write_at(&place.join("README.md"), "of mine\n");
    world.write_at(&place.join("deep/er/mine.txt"), "mine\n");
    if tidies {
        world.git(&["worktree", "prune"]);
    }
}

#[track_caller]
fn is_theirs(place: &Path) {
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_default();
    let all = [read("mine.txt"), read("README.md"), read("deep/er/mine.txt")];
    assert_eq!(all, ["mine\n", "of mine\n", "mine\n"]);
    assert_eq!(fs::read_dir(place).unwrap().count(), 3, "something was put there");
}

fn hint(did: &Did) -> String {
    let line = did.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
    line.unwrap_or_else(|| panic!("no hint:\n{}", did.stderr)).to_owned()
}

#[test]
fn files_in_the_place_of_a_deleted_worktree_are_named_and_left_alone() {
    for tidies in [false, true] {
        let world = world(0);
        let place = world.worktree();
        take(&world, tidies);
        let id = world.session();
        // A request may have been noted in the session's own state.
        let others = || {
            let all = world.git(&["for-each-ref"]);
            let others = all.lines().filter(|line| !line.contains("refs/relay/sessions/"));
            others.collect::<Vec<_>>().join("\n")
        };
        let refs = others();
        for words in [
            &["resume"][..],
            &["handoff", "--to", "second"],
            &["handoff", "--dry-run"],
            &["handoff", "--no-launch"],
            &["finish", &id],
            &["finish", &id, "--keep"],
            &["finish", &id, "--dry-run"],
        ] {
            let did = world.relay(words).exits(4).says("holds other files now");
            let did = did.says(&format!("refs/relay/snapshots/{id}/wip"));
            assert!(hint(&did).contains(&format!("git relay resume {id}")), "{words:?}");
            is_theirs(&place);
            assert_eq!(others(), refs, "{words:?}");
        }
        world.relay(&["status"]).exits(0).says("holds other files now").says("mv ");
        let said = hint(&world.relay(&["resume"]).exits(4));
        let moves = &said[said.find("mv ").unwrap()..said.find("; then").unwrap()];
        world.run("sh", &["-c", moves]).exits(0);
        world.relay(&["handoff", "--to", "second"]).exits(0).says("is restored as saved at");
        let half = fs::read_to_string(world.home.join("found/half.txt")).unwrap();
        assert_eq!(half, "half\n");
        is_theirs(&place.with_file_name(format!("{id}.aside")));
        world.relay(&["finish", &id]).exits(0);
        is_theirs(&place.with_file_name(format!("{id}.aside")));
    }
}

#[test]
fn a_session_whose_place_is_taken_can_be_aborted() {
    for tidies in [false, true] {
        let world = world(3600);
        let (place, id) = (world.worktree(), world.session());
        take(&world, tidies);
        world.relay(&["abort", "--dry-run"]).code.unwrap();
        world.relay(&["abort"]).exits(0).says("stays as it is").says("refs/relay/kept/");
        is_theirs(&place);
        assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:committed.txt")]), "a");
        assert!(!world.git(&["worktree", "list"]).contains(&id));
        world.relay(&["abort", &id]).exits(1);
        world.relay(&["finish", &id]).exits(1);
        world.relay(&["resume", &id]);
        world.relay(&["doctor", "--fix"]);
        is_theirs(&place);
    }
}

#[test]
fn what_lost_only_its_git_pointer_is_kept_by_an_abort() {
    for torn in [None, Some("\0\0")] {
        let world = world(3600);
        let (place, id) = (world.worktree(), world.session());
        match torn {
            Some(torn) => fs::write(place.join(".git"), torn).unwrap(),
            None => fs::remove_file(place.join(".git")).unwrap(),
        }
        world.relay(&["abort"]).exits(0);
        assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:half.txt")]), "half");
        assert!(!place.exists());
    }
}
