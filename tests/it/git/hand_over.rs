//! Index and branch after a snapshot: every step can be done again after a kill.

use super::*;
use git_relay::error::{Kind, kind_of};

#[test]
fn every_step_of_a_hand_over_can_be_done_again() {
    let sandbox = Sandbox::new();
    change_everything(&sandbox.work);
    let snapshot = sandbox.snapshot();
    let branch = "refs/heads/relay/s1";
    // Killed before the index was in place, and what was prepared is lost as well.
    for entry in fs::read_dir(sandbox.session.git_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().as_bytes().starts_with(b"relay-index-") {
            fs::remove_file(path).unwrap();
        }
    }
    sandbox.session.install_index(&snapshot.tree).unwrap();
    sandbox.session.install_index(&snapshot.tree).unwrap();
    sandbox.session.move_branch(branch, &snapshot.parent, &snapshot.commit).unwrap();
    sandbox.session.move_branch(branch, &snapshot.parent, &snapshot.commit).unwrap();
    assert_eq!(sandbox.status(), "");

    // A lock left by a dead git in the session worktree does not stop it.
    write(&sandbox.work.join("more.txt"), "more\n");
    write(&sandbox.session.git_dir().join("index.lock"), "");
    write(&sandbox.session.git_dir().join("HEAD.lock"), "");
    let second = sandbox.hand_over();
    assert_eq!(second.parent, snapshot.commit);
    assert_eq!(sandbox.status(), "");

    // Somebody else moved the branch: nothing is overwritten.
    git(&sandbox.work, &["commit", "-q", "--allow-empty", "-m", "other"]);
    let lost = sandbox.session.move_branch(branch, &snapshot.parent, &second.commit).unwrap_err();
    assert_eq!(kind_of(&lost), Kind::Raced);
}

#[test]
fn a_clean_tree_gets_a_snapshot_commit_of_its_own() {
    let sandbox = Sandbox::new();
    let snapshot = sandbox.hand_over();
    assert_ne!(snapshot.commit, snapshot.parent);
    assert_eq!(snapshot.changed, 0);
    assert_eq!(sandbox.session.tree_of(&snapshot.parent).unwrap(), snapshot.tree);
    assert_eq!(sandbox.status(), "");
}

#[test]
fn a_killed_attempt_is_taken_up_and_not_repeated() {
    let sandbox = Sandbox::new();
    change_everything(&sandbox.work);
    let first = sandbox.snapshot();
    let take = |earlier| {
        sandbox
            .session
            .take_snapshot(&Caps::default(), "relay: snapshot", TIME + 9, Some(earlier))
            .unwrap()
    };
    let second = take(&first.commit);
    assert_eq!((&second.commit, &second.parent), (&first.commit, &first.parent));
    sandbox.session.install_index(&first.tree).unwrap();
    sandbox.session.move_branch("refs/heads/relay/s1", &first.parent, &first.commit).unwrap();
    let third = take(&first.commit);
    assert_eq!((&third.commit, &third.parent), (&first.commit, &first.parent));
    write(&sandbox.work.join("later.txt"), "later\n");
    let fourth = take(&first.commit);
    assert_eq!(fourth.parent, first.commit);
}

/// Run by the test below, in a process of its own, to be killed.
#[test]
#[ignore = "a child of `a_kill_at_any_instant_is_rolled_forward`"]
fn child() {
    let (common, work) = (std::env::var_os("COMMON").unwrap(), std::env::var_os("WORK").unwrap());
    let mut repo = open_work(Path::new(&common), Path::new(&work)).unwrap();
    repo.set_durability(Durability::None);
    roll_forward(&repo);
}

/// What a driver does, from wherever an earlier one stopped.
fn roll_forward(repo: &Repository) -> Snapshot {
    let holder = "refs/relay/snapshots/s1/1";
    let earlier = repo.read_ref(holder).unwrap();
    let taken =
        repo.take_snapshot(&Caps::default(), "relay: snapshot", TIME, earlier.as_ref()).unwrap();
    repo.durable().unwrap();
    if earlier.as_ref() != Some(&taken.commit) {
        repo.swap_own_ref(holder, &taken.commit, earlier.as_ref(), "snapshot").unwrap();
    }
    repo.install_index(&taken.tree).unwrap();
    repo.move_branch("refs/heads/relay/s1", &taken.parent, &taken.commit).unwrap();
    taken
}

#[test]
fn a_kill_at_any_instant_is_rolled_forward() {
    for round in 0..30_u64 {
        let sandbox = Sandbox::new();
        let base = sandbox.session.head_commit().unwrap().unwrap();
        change_everything(&sandbox.work);
        let by_git = sandbox.tree_by_git();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "it::git::hand_over::child"])
            .env("COMMON", sandbox.repo.common_dir())
            .env("WORK", &sandbox.work)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(round * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        let taken = roll_forward(&sandbox.session);
        assert_eq!(taken.tree.as_str(), by_git);
        assert_eq!(taken.parent, base, "one snapshot, not two");
        assert_eq!(sandbox.session.head_commit().unwrap(), Some(taken.commit));
        assert_eq!(sandbox.status(), "");
        git(&sandbox.main, &["fsck", "--strict"]);
    }
}
