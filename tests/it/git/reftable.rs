//! One lock for all refs: whose it is decides whether it is cleared.

use super::*;
use git_relay::error::{Kind, kind_of};
use std::time::{Duration, SystemTime};

const NAME: &str = "refs/relay/sessions/a";

/// A repository whose refs are in reftable; `None` with a git that knows none.
fn sandbox() -> Option<Sandbox> {
    let kind = kinds().into_iter().find(|kind| **kind == ["--ref-format=reftable"])?;
    Some(Sandbox::with(kind, |_| {}))
}

/// Leaves a lock, and a mark that is `age` older than it, or none.
fn lock(sandbox: &Sandbox, age: Option<i64>) -> PathBuf {
    let lock = sandbox.main.join(".git/reftable/tables.list.lock");
    let mark = sandbox.main.join(".git/relay/reftable.lock");
    write(&lock, "");
    let now = SystemTime::now();
    let seconds = |age: i64| Duration::from_secs(age.unsigned_abs());
    if let Some(age) = age {
        write(&mark, "1");
        let then = if age < 0 { now + seconds(age) } else { now - seconds(age) };
        fs::File::options().write(true).open(&mark).unwrap().set_modified(then).unwrap();
    }
    lock
}

/// Swaps a ref beside a lock; what came of it, and whether the lock is there still.
fn swap(sandbox: &Sandbox, lock: &Path) -> (Option<Kind>, bool) {
    let commit = sandbox.repo.head_commit().unwrap().unwrap();
    let done = sandbox.repo.swap_own_ref(NAME, &commit, None, "test");
    (done.err().map(|error| kind_of(&error)), lock.exists())
}

#[test]
fn the_lock_of_a_git_that_died_in_our_turn_is_cleared() {
    let Some(sandbox) = sandbox() else { return };
    let lock = lock(&sandbox, Some(10));
    // Compaction was under way as well.
    let table = sandbox.main.join(".git/reftable/0x000000000001-0x000000000002-12345678.ref.lock");
    write(&table, "");
    // As every git has it, also one that waits for the lock.
    let _list = fs::File::open(sandbox.main.join(".git/reftable/tables.list")).unwrap();
    assert_eq!(swap(&sandbox, &lock), (None, false));
    assert!(!table.exists());
    let mark = fs::read_to_string(sandbox.main.join(".git/relay/reftable.lock")).unwrap();
    assert_eq!(mark, "", "the mark outlives the turn");
    assert!(sandbox.repo.read_ref(NAME).unwrap().is_some());
}

#[test]
fn a_lock_that_may_be_the_users_is_explained() {
    let explained = (Some(Kind::Refused), true);
    std::thread::scope(|scope| {
        // No git of ours died; one did, after the lock was there.
        for age in [None, Some(-10)] {
            scope.spawn(move || {
                let Some(sandbox) = sandbox() else { return };
                let lock = lock(&sandbox, age);
                assert_eq!(swap(&sandbox, &lock), explained, "{age:?}");
            });
        }
        scope.spawn(|| {
            let Some(sandbox) = sandbox() else { return };
            let lock = lock(&sandbox, Some(10));
            let held = fs::File::open(&lock).unwrap();
            assert_eq!(swap(&sandbox, &lock), explained, "somebody has it open");
            drop(held);
            assert_eq!(swap(&sandbox, &lock), (None, false), "the proof was kept");
        });
    });
}

#[test]
fn what_an_agent_leaves_locked_at_its_end_is_cleared() {
    let Some(sandbox) = sandbox() else { return };
    let common = lock(&sandbox, None);
    let own = sandbox.session.git_dir().join("reftable/tables.list.lock");
    write(&own, "");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let clear = |since: u64| {
        let since = i64::try_from(since).unwrap();
        sandbox.repo.clear_dead_locks(sandbox.session.git_dir(), "refs/heads/relay/s1", since)
    };
    clear(now + 60).unwrap();
    assert!(common.exists(), "it is older than the agent");
    clear(now - 60).unwrap();
    assert!(!common.exists() && !own.exists());
}

#[test]
fn refs_are_packed_beside_us_and_none_is_missed() {
    for kind in kinds() {
        let sandbox = Sandbox::with(kind, |_| {});
        let names: Vec<String> = (0..20).map(|n| format!("refs/relay/sessions/s{n}")).collect();
        let mut tip = sandbox.repo.head_commit().unwrap().unwrap();
        let tree = sandbox.repo.tree_of(&tip).unwrap();
        for name in &names {
            sandbox.repo.swap_own_ref(name, &tip, None, "test").unwrap();
        }
        std::thread::scope(|scope| {
            let main = &sandbox.main;
            let packer = scope.spawn(move || {
                // Git gives up where it finds a lock of ours; that it tries is what counts.
                let beside = |words: &[&str]| {
                    git_command(main).args(words).output().unwrap().status.success()
                };
                let packed = (0..20).filter(|_| beside(&["pack-refs", "--all"])).count();
                assert!(packed > 0, "git never came to pack");
                beside(&["gc", "-q"]);
            });
            let mut round = 0;
            while !packer.is_finished() {
                assert_eq!(sandbox.repo.list_refs("refs/relay/sessions/").unwrap().len(), 20);
                let old = sandbox.repo.read_ref(&names[0]).unwrap().expect("it is there");
                assert_eq!(old, tip);
                round += 1;
                tip = sandbox.repo.write_commit(&tree, &[], &format!("{round}"), TIME).unwrap();
                sandbox.repo.swap_own_ref(&names[0], &tip, Some(&old), "test").unwrap();
            }
            packer.join().unwrap();
        });
        assert_eq!(sandbox.repo.read_ref(&names[0]).unwrap(), Some(tip));
    }
}
