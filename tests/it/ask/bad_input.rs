//! What is wrong with a session or a machine gets a clear sentence and a next step, and nothing is
//! lost by it.

use super::{DONE, state, world};
use crate::it::support::{Did, World};
use git_relay::git::{Durability, Repository};
use git_relay::model::session::Session;
use git_relay::model::sign::SigningKey;
use git_relay::store;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Leaves a commit and files, and asks.
const ASKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >committed.txt; \
     git add committed.txt; git commit -q -m 'Add'; head -c 20000 /dev/urandom >half.bin; \
     echo 'asks which one?'\n";

fn at_rest(first: &str) -> World {
    let world = world(&[("first", first), ("second", DONE)]);
    world.relay(&["run", "A task"]).exits(1);
    world
}

/// Runs a script in a mount namespace of its own; it sees the repository as its folder.
fn in_own_mounts(world: &World, script: &str) -> Did {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let how: &[&str] = if root { &["--mount"] } else { &["--mount", "--user", "--map-root-user"] };
    world.run("unshare", &[how, &["sh", "-c", script]].concat())
}

#[test]
fn a_session_that_somebody_drives_is_left_to_them() {
    let world = at_rest(ASKS);
    let lock = world.repo.join(format!(".git/relay/{}.lock", world.session()));
    let mut holder = world.command("flock");
    let holder = holder.arg(&lock).args(["sh", "-c", "echo held; exec sleep 60"]);
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut said).unwrap();
    let refs = world.git(&["for-each-ref"]);
    let did = world.relay(&["resume"]);
    // A fact needs no lock.
    let fact = world.relay(&["record", "--done", "x"]);
    let after = world.git(&["for-each-ref"]);
    // `flock` and its child hold it together.
    let child =
        Command::new("ps").args(["-o", "pid=", "--ppid", &holder.id().to_string()]).output();
    for pid in String::from_utf8(child.unwrap().stdout).unwrap().split_whitespace() {
        Command::new("kill").arg(pid).status().unwrap();
    }
    holder.wait().unwrap();
    did.exits(3).says("is being driven by another command").says("hint: wait for it to end");
    fact.exits(0).says("recorded 1 fact");
    assert_eq!(after, refs);
}

#[test]
fn a_git_folder_that_is_read_only_is_said_and_can_be_looked_at() {
    let world = at_rest(ASKS);
    let readonly = "mount --bind .git .git && mount -o remount,ro,bind .git || exit 99; ";
    for words in ["handoff --to second", "resume", "record --done x", "handoff --no-launch"] {
        in_own_mounts(&world, &format!("{readonly} exec git-relay {words}"))
            .exits(5)
            .says("the file system is read-only")
            .says("hint: make it writable");
    }
    for words in ["status", "list", "log", "verify", "handoff --dry-run"] {
        in_own_mounts(&world, &format!("{readonly} exec git-relay {words}")).exits(0);
    }
    world.relay(&["handoff", "--to", "second"]).exits(0);
}

#[test]
fn a_full_disk_stops_a_hand_over_and_loses_nothing() {
    // A few files go out one by one, many in a pack.
    let many = "for n in $(seq 150); do echo $n >many-$n.txt; done; ";
    for first in
        [ASKS.to_owned(), ASKS.replace("cat >/dev/null; ", &format!("cat >/dev/null; {many}"))]
    {
        stops_at_a_full_disk(&at_rest(&first));
    }
}

#[track_caller]
fn stops_at_a_full_disk(world: &World) {
    // The repository on a small file system of its own, filled to the last byte and set free again.
    let script = "mkdir ../small && mount -t tmpfs -o size=8m small ../small && cp -a . ../small/ \
         && mount --move ../small \"$PWD\" && cd / && cd \"$OLDPWD\" || exit 99\n\
         git for-each-ref >../before\n\
         dd if=/dev/zero of=.git/fill bs=1k 2>/dev/null\n\
         git-relay handoff --to second >../handoff 2>&1; echo \"handoff: $?\"; cat ../handoff\n\
         git-relay resume 2>&1; echo \"resume: $?\"\n\
         git-relay status >/dev/null && echo looked\n\
         git for-each-ref | cmp - ../before && echo same\n\
         rm .git/fill; git fsck --strict || exit 98\n\
         git-relay handoff --to second 2>&1 || exit 97\n\
         git-relay verify >/dev/null || exit 96\n\
         git cat-file -e relay/$(ls .relay/sessions):half.bin && echo whole\n";
    in_own_mounts(world, script)
        .exits(0)
        .says("the disk is full")
        .says("hint: make room")
        .says("handoff: 5")
        .says("resume: 5")
        .says("looked\nsame\n")
        .says("second took over (leg 2)")
        .says("whole");
}

#[test]
fn a_merge_in_progress_is_named_and_left_as_it_is() {
    let merges = "cat >/dev/null; echo start; echo 'step one'; git checkout -q -b side; \
         echo side >README.md; git commit -qam side; git checkout -q -; echo ours >README.md; \
         git commit -qam ours; git merge side >/dev/null 2>&1; echo 'asks how to merge?'\n";
    let world = at_rest(merges);
    let branch = format!("relay/{}", world.session());
    let tip = world.git(&["rev-parse", &branch]);
    world
        .relay(&["handoff", "--to", "second"])
        .exits(0)
        .says("a merge is in progress: the branch was not moved");
    assert_eq!(state(&world)["snapshot"]["inProgress"], "merge");
    let snapshot =
        world.git(&["rev-parse", &format!("refs/relay/snapshots/{}/1^1", world.session())]);
    assert_eq!(snapshot, tip, "the snapshot stands on the branch as it was");
    world.relay(&["verify"]).exits(0);
}

/// The session as if its last step had been taken by a clock ten days ahead of ours.
fn step_in_the_future(world: &World) {
    let id = world.session();
    let mut repo = Repository::open(&world.repo).unwrap();
    repo.set_durability(Durability::None);
    let key = world.relay(&["key", "--json"]).exits(0).json()["key"]["path"].clone();
    let pem = fs::read_to_string(Path::new(key.as_str().unwrap())).unwrap();
    let key = SigningKey::from_openssh_pem(&pem).unwrap();
    let name = format!("refs/relay/sessions/{id}");
    let tip = repo.read_ref(&name).unwrap().unwrap();
    let text = world.git(&["show", &format!("{name}:state.json")]);
    let mut session: Session = serde_json::from_str(&text).unwrap();
    session.updated_at.0 += 10 * 86_400;
    if let Some(end) = &mut session.leg_end {
        end.at = session.updated_at;
    }
    store::save(&repo, &key, &session, "folded", "test", Some(&tip), None).unwrap();
}

#[test]
fn a_clock_that_was_set_back_keeps_nobody_from_going_on() {
    let world = at_rest(ASKS);
    step_in_the_future(&world);
    world.relay(&["list"]).exits(0).says("first  in ");
    world.relay(&["status"]).exits(0);
    world.relay(&["record", "--done", "x"]).exits(0);
    world.relay(&["handoff", "--dry-run"]).exits(0);
    world.relay(&["handoff", "--to", "second"]).exits(0).says("second took over (leg 2)");
    world.relay(&["verify"]).exits(0);
    world.relay(&["finish"]).exits(0);
}
