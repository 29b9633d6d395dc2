//! No concurrent writer of refs or notes loses anything; dead locks and empty files do not stop us.

use super::*;
use git_relay::error::{Kind, kind_of};
use git_relay::git::session_ref;
use git_relay::model::names::SessionId;

#[test]
fn sixteen_writers_of_notes_lose_nothing() {
    for kind in kinds() {
        let sandbox = Sandbox::with(kind, |_| {});
        sandbox.repo.make_empty_notes_ref(TIME).unwrap();
        let writers = 16;
        let each = 3;
        let commits: Vec<Vec<Oid>> = (0..writers)
            .map(|writer| {
                (0..each)
                    .map(|number| {
                        sandbox.repo.write_blob(format!("{writer} {number}").as_bytes()).unwrap()
                    })
                    .collect()
            })
            .collect();
        std::thread::scope(|scope| {
            for commits in &commits {
                let main = &sandbox.main;
                scope.spawn(move || {
                    let mut repo = Repository::open(main).unwrap();
                    repo.set_durability(Durability::None);
                    for commit in commits {
                        repo.write_note(commit, format!("note on {commit}\n").as_bytes(), TIME)
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(sandbox.repo.list_notes().unwrap().len(), writers * each);
        for commit in commits.iter().flatten() {
            let note = git(&sandbox.main, &["notes", "--ref=relay", "show", commit.as_str()]);
            assert_eq!(note, format!("note on {commit}\n"));
            assert_eq!(sandbox.repo.read_note(commit).unwrap().unwrap(), note.as_bytes());
        }
        git(&sandbox.main, &["fsck", "--strict"]);
    }
}

#[test]
fn one_of_many_swaps_wins_and_a_chain_loses_no_step() {
    for kind in kinds() {
        race(&Sandbox::with(kind, |_| {}));
    }
}

fn race(sandbox: &Sandbox) {
    let name = session_ref(&SessionId::new("s1").unwrap());
    let blob = sandbox.repo.write_blob(b"{}").unwrap();
    let tree = sandbox.repo.write_tree(&[("state.json".to_owned(), blob)].into()).unwrap();
    let wins: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|writer| {
                let (main, name, tree) = (&sandbox.main, &name, &tree);
                scope.spawn(move || {
                    let mut repo = Repository::open(main).unwrap();
                    repo.set_durability(Durability::None);
                    let mut wins = 0;
                    for step in 0..20 {
                        let old = repo.read_ref(name).unwrap();
                        let parents: Vec<Oid> = old.iter().cloned().collect();
                        let new = repo
                            .write_commit(tree, &parents, &format!("{writer} {step}"), TIME)
                            .unwrap();
                        match repo.swap_ref(name, &new, old.as_ref(), "test") {
                            Ok(()) => wins += 1,
                            Err(error) => assert_eq!(kind_of(&error), Kind::Raced, "{error:#}"),
                        }
                    }
                    wins
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let length: usize = git(&sandbox.main, &["rev-list", "--count", &name]).trim().parse().unwrap();
    assert_eq!(length, wins.iter().sum::<usize>());
}

#[test]
fn a_ref_that_exists_cannot_be_claimed_again_even_with_the_same_value() {
    let sandbox = Sandbox::new();
    let name = session_ref(&SessionId::new("s1").unwrap());
    let commit = sandbox.repo.head_commit().unwrap().unwrap();
    sandbox.repo.swap_ref(&name, &commit, None, "test").unwrap();
    let lost = sandbox.repo.swap_ref(&name, &commit, None, "test").unwrap_err();
    assert_eq!(kind_of(&lost), Kind::Raced);
    git(&sandbox.main, &["pack-refs", "--all"]);
    assert_eq!(sandbox.repo.read_ref(&name).unwrap(), Some(commit.clone()));
    assert_eq!(sandbox.repo.list_refs("refs/relay/").unwrap(), [(name.clone(), commit.clone())]);
    // What a power cut leaves.
    let path = sandbox.main.join(".git").join(&name);
    write(&path, "");
    assert_eq!(sandbox.repo.read_ref(&name).unwrap(), Some(commit.clone()));
    write(&sandbox.main.join(".git/refs/relay/sessions/empty"), [0; 41]);
    assert_eq!(sandbox.repo.read_ref("refs/relay/sessions/empty").unwrap(), None);
    assert_eq!(sandbox.repo.list_refs("refs/relay/").unwrap().len(), 1);
    fs::remove_file(sandbox.main.join(".git/refs/relay/sessions/empty")).unwrap();
    // A dead holder's lock: cleared for the session's owner, explained to others.
    write(&path.with_extension("lock"), "");
    let other =
        sandbox.repo.write_commit(&sandbox.repo.tree_of(&commit).unwrap(), &[], "x", TIME).unwrap();
    let stuck = sandbox.repo.swap_ref(&name, &other, Some(&commit), "test").unwrap_err();
    assert_eq!(kind_of(&stuck), Kind::Refused);
    sandbox.repo.swap_own_ref(&name, &other, Some(&commit), "test").unwrap();
    fs::remove_file(&path).unwrap();
    sandbox.repo.delete_ref(&name, &commit).unwrap();
    assert_eq!(sandbox.repo.read_ref(&name).unwrap(), None);
}

#[test]
fn refs_are_read_listed_and_deleted_in_every_kind_of_repository() {
    for kind in kinds() {
        let sandbox = Sandbox::with(kind, |_| {});
        let repo = &sandbox.repo;
        let commit = repo.head_commit().unwrap().unwrap();
        assert_eq!(commit.as_str(), git(&sandbox.main, &["rev-parse", "HEAD"]).trim());
        assert_eq!(repo.head_branch().unwrap().as_deref(), Some("refs/heads/main"));
        assert_eq!(sandbox.session.head_branch().unwrap().as_deref(), Some("refs/heads/relay/s1"));
        assert_eq!(repo.read_ref("refs/relay/sessions/none").unwrap(), None);
        let names = ["refs/relay/sessions/a", "refs/relay/sessions/b", "refs/relay/snapshots/a/1"];
        for name in names {
            repo.swap_own_ref(name, &commit, None, "test").unwrap();
            let again = repo.swap_own_ref(name, &commit, None, "test").unwrap_err();
            assert_eq!(kind_of(&again), Kind::Raced);
        }
        git(&sandbox.main, &["pack-refs", "--all"]);
        let list = |prefix| -> Vec<String> {
            repo.list_refs(prefix).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(list("refs/relay/"), names);
        assert_eq!(list("refs/relay/sessions/"), names[..2]);
        assert_eq!(list("refs/heads/"), ["refs/heads/main", "refs/heads/relay/s1"]);
        let tree = repo.tree_of(&commit).unwrap();
        let other = repo.write_commit(&tree, &[], "other", TIME).unwrap();
        let wrong = repo.delete_ref(names[0], &other).unwrap_err();
        assert_eq!(kind_of(&wrong), Kind::Raced);
        repo.delete_ref(names[0], &commit).unwrap();
        repo.delete_ref(names[0], &commit).unwrap();
        assert_eq!(list("refs/relay/"), names[1..]);
        git(&sandbox.work, &["checkout", "-q", "--detach"]);
        assert_eq!(sandbox.session.head_branch().unwrap(), None);
        assert_eq!(sandbox.session.head_commit().unwrap(), Some(commit));
    }
}

#[test]
fn a_note_is_merged_with_what_is_there_and_not_over_it() {
    let sandbox = Sandbox::new();
    let on = sandbox.repo.head_commit().unwrap().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (main, on) = (&sandbox.main, &on);
            scope.spawn(move || {
                let repo = Repository::open(main).unwrap();
                repo.update_note(on, TIME, |old| {
                    let mut lines: Vec<u8> = old.unwrap_or_default().to_vec();
                    lines.extend_from_slice(format!("{writer}\n").as_bytes());
                    lines
                })
                .unwrap();
            });
        }
    });
    let note = String::from_utf8(sandbox.repo.read_note(&on).unwrap().unwrap()).unwrap();
    let mut lines: Vec<&str> = note.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}
