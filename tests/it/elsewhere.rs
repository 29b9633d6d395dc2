//! A session's worktree that was moved: it is told from one that is gone, nothing is laid out beside
//! it, and the commands that are named bring it back with all that it holds.

use super::support::{Did, World, scripted};
use std::fs;
use std::path::PathBuf;

const WORKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >committed.txt; \
     git add committed.txt; git commit -q -m 'Add committed.txt'; echo half >half.txt; \
     echo 'asks which one?'\n";
const LOOKS: &str = "cat >/dev/null; echo start; echo 'step two'; cp -a . \"$HOME/found\"; \
     echo 'done all'\n";

/// A session that asks, its worktree moved to a place that needs quoting.
fn moved() -> (World, PathBuf) {
    let world = World::new();
    let first = world.program("first-agent", WORKS);
    let second = world.program("second-agent", LOOKS);
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(1);
    let place = world.home.join("it's elsewhere");
    fs::rename(world.worktree(), &place).unwrap();
    (world, place)
}

#[track_caller]
fn hint(did: &Did) -> String {
    let line = did.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
    line.unwrap_or_else(|| panic!("no hint:\n{}", did.stderr)).to_owned()
}

#[test]
fn a_worktree_that_git_knows_elsewhere_is_refused_until_it_is_back() {
    for words in [
        &["resume"][..],
        &["resume", "--accept-config"],
        &["handoff", "--to", "second"],
        &["handoff", "--dry-run"],
        &["finish"],
        &["finish", "--keep"],
        &["finish", "--dry-run"],
        &["abort"],
        &["abort", "--dry-run"],
    ] {
        let (world, place) = moved();
        let (id, old) = (world.session(), world.worktree());
        world.git(&["worktree", "repair", place.to_str().unwrap()]);
        let refs = world.git(&["for-each-ref"]);
        let named = if words[0] == "handoff" { vec!["--session", &id] } else { vec![&*id] };
        let all: Vec<&str> =
            words[..1].iter().copied().chain(named).chain(words[1..].iter().copied()).collect();
        let did = world.relay(&all).exits(4).says("was moved from").says("it's elsewhere'");
        assert_eq!(world.git(&["for-each-ref"]), refs, "{words:?}");
        assert!(!old.exists(), "{words:?}: laid out beside it");
        assert_eq!(fs::read_to_string(place.join("half.txt")).unwrap(), "half\n");
        world.relay(&["status"]).exits(0).says("was moved from").says("mv ");
        world.relay(&["doctor"]).exits(1).says("was moved from");
        let hint = hint(&did);
        let (back, then) = hint.split_once("; then: ").unwrap();
        assert!(then.starts_with(&format!("git relay {}", words[0])), "{hint}");
        let back = back.strip_prefix("move it back: ").unwrap();
        world.run("sh", &["-c", back]).exits(0);
        assert_eq!(fs::read_to_string(old.join("half.txt")).unwrap(), "half\n");
        world.relay(&["handoff", "--to", "second"]).exits(0);
        let found = fs::read_to_string(world.home.join("found/half.txt")).unwrap();
        assert_eq!(found, "half\n", "{words:?}");
    }
}

#[test]
fn one_that_was_laid_out_beside_it_is_moved_out_of_the_way() {
    let (world, place) = moved();
    let (id, old) = (world.session(), world.worktree());
    world.relay(&["resume", "--agents", "second"]).says("unless it was moved");
    world.git(&["worktree", "repair", place.to_str().unwrap()]);
    let hint = hint(&world.relay(&["abort", &id]).exits(4).says("was moved from"));
    let back = hint.strip_prefix("move it back: ").unwrap().split("; then: ").next().unwrap();
    world.run("sh", &["-c", back]).exits(0);
    assert_eq!(fs::read_to_string(old.join("half.txt")).unwrap(), "half\n");
    world.relay(&["abort", &id]).exits(0);
    assert_eq!(world.git(&["show", &format!("refs/relay/kept/{id}:half.txt")]), "half");
}

#[test]
fn of_one_that_is_gone_it_is_said_how_it_would_be_back_and_what_is_not_known() {
    let (world, place) = moved();
    let (id, old) = (world.session(), world.worktree());
    let did = world.relay(&["finish", &id]).exits(1).says("is gone");
    let hint = hint(&did);
    assert!(hint.contains(&format!("move it back to '{}' first", old.display())), "{hint}");
    assert!(hint.contains("no uncommitted work after refs/"), "{hint}");
    world.relay(&["doctor"]).exits(1).says("move it back to");
    fs::rename(&place, &old).unwrap();
    world.relay(&["finish", &id]).exits(0);
}
