//! What git does not look at, or is told not to look at: taken into a snapshot, or named.

use super::*;

fn named(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.not_captured.iter().map(|it| it.what.as_str()).collect()
}

fn content(sandbox: &Sandbox, commit: &Oid, path: &str) -> String {
    let bytes = sandbox.session.read_tree_file(commit, path).unwrap().unwrap_or_default();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_change_that_git_is_told_not_to_see_is_captured() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let sandbox = Sandbox::new();
        let work = &sandbox.work;
        git(work, &["update-index", flag, "a.txt", "b.txt", "dir/c.txt", "dir/deep/d.txt"]);
        write(&work.join("a.txt"), "changed\n");
        // Written again with what it held.
        write(&work.join("b.txt"), "b.txt\n");
        fs::remove_file(work.join("dir/c.txt")).unwrap();
        fs::remove_dir_all(work.join("dir/deep")).unwrap();
        symlink("/etc", work.join("dir/deep")).unwrap();
        let index = fs::read(sandbox.session.git_dir().join("index")).unwrap();
        let wip = sandbox.main.join(".git/relay-wip-index");
        let base = sandbox.repo.head_commit().unwrap().unwrap();
        for _ in 0..2 {
            let wip = sandbox.session.take_wip(&wip, "relay: work", TIME, None, &base).unwrap();
            assert_eq!(content(&sandbox, &wip.commit, "a.txt"), "changed\n", "{flag}");
        }
        assert_eq!(fs::read(sandbox.session.git_dir().join("index")).unwrap(), index);

        let snapshot = sandbox.hand_over();
        assert_eq!(content(&sandbox, &snapshot.commit, "a.txt"), "changed\n", "{flag}");
        // What has a link in place of its folder cannot be there in any form of checkout.
        assert_eq!(content(&sandbox, &snapshot.commit, "dir/deep/d.txt"), "", "{flag}");
        if flag == "--skip-worktree" {
            assert_eq!(
                named(&snapshot),
                ["dir/c.txt"],
                "a file that is absent may be a sparse checkout's"
            );
            assert_eq!(content(&sandbox, &snapshot.commit, "dir/c.txt"), "dir/c.txt\n");
        } else {
            assert_eq!(named(&snapshot), [""; 0]);
            assert_eq!(snapshot.changed, 4, "a.txt, two deletions, the link");
            assert_eq!(content(&sandbox, &snapshot.commit, "dir/c.txt"), "");
        }
        assert_eq!(sandbox.status(), "", "{flag}");
        // The flag of a file that is the same stays; what was captured is to be seen from now on.
        let flags = git(work, &["ls-files", "-v", "a.txt", "b.txt"]);
        let kept = if flag == "--skip-worktree" { "S" } else { "h" };
        assert_eq!(flags, format!("H a.txt\n{kept} b.txt\n"));
        write(&work.join("a.txt"), "more\n");
        assert_eq!(content(&sandbox, &sandbox.snapshot().commit, "a.txt"), "more\n", "{flag}");
    }
}

#[test]
fn outside_a_sparse_checkout_what_is_there_is_captured_and_what_is_not_stays() {
    for form in [&["--no-cone", "/*", "!/wide/"][..], &["--cone", "--sparse-index", "dir"]] {
        let mut sandbox = Sandbox::with(&[], |main| {
            write(&main.join("wide/w.txt"), "w\n");
            write(&main.join("wide/deep/w.txt"), "w\n");
            write(&main.join("wide/deep/x.txt"), "x\n");
        });
        git(&sandbox.work, &[&["sparse-checkout", "set"], form].concat());
        sandbox.session = open_work(sandbox.repo.common_dir(), &sandbox.work).unwrap();
        sandbox.session.set_durability(Durability::None);
        let work = &sandbox.work;
        assert!(!work.join("wide").exists());
        for expected in [false, true] {
            let setting = if expected { "true" } else { "false" };
            git(work, &["config", "sparse.expectFilesOutsideOfPatterns", setting]);
            write(&work.join("wide/deep/w.txt"), format!("written {expected}\n"));
            write(&work.join("wide/new.txt"), "new\n");
            let snapshot = sandbox.hand_over();
            let read = |path| content(&sandbox, &snapshot.commit, path);
            assert_eq!(read("wide/deep/w.txt"), format!("written {expected}\n"), "{form:?}");
            assert_eq!(
                (read("wide/new.txt").as_str(), read("wide/w.txt").as_str()),
                ("new\n", "w\n")
            );
            assert_eq!((read("wide/deep/x.txt").as_str(), named(&snapshot).len()), ("x\n", 0));
            assert_eq!(sandbox.status(), "", "{form:?}");
        }
        // All of it goes, and comes back.
        let tip = sandbox.session.head_commit().unwrap();
        for with_index in [true, false] {
            write(&work.join("wide/w.txt"), "later\n");
            let later = sandbox.snapshot().commit;
            fs::remove_dir_all(work).unwrap();
            if !with_index {
                fs::remove_file(sandbox.session.git_dir().join("index")).unwrap();
            }
            let git_dir = sandbox.session.git_dir();
            sandbox.repo.lay_worktree(git_dir, work, "relay/s1").unwrap();
            sandbox.session.refill(Some(&later)).unwrap();
            for (path, text) in [("wide/w.txt", "later\n"), ("wide/new.txt", "new\n")] {
                assert_eq!(fs::read_to_string(work.join(path)).unwrap(), text, "{form:?}");
            }
            assert_eq!(sandbox.session.head_commit().unwrap(), tip);
            assert_eq!(content(&sandbox, &sandbox.snapshot().commit, "wide/w.txt"), "later\n");
        }
    }
}

#[test]
fn pipes_sockets_and_devices_are_named_and_never_opened() {
    let sandbox = Sandbox::new();
    let pipe = |name: &str| {
        assert!(Command::new("mkfifo").arg(sandbox.work.join(name)).status().unwrap().success());
    };
    write(&sandbox.work.join("new/file"), "new\n");
    for name in ["pipe", "dir/pipe", "new/pipe", "ignored.log", ".relay-pipe"] {
        pipe(name);
    }
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work.join("sock")).unwrap();
    write(&sandbox.work.join(".relay/envelope.md"), "ours\n");
    pipe(".relay/pipe");
    write(&sandbox.work.join("build/out"), "no\n");
    pipe("build/pipe");
    let expected = [
        (".relay-pipe", "a named pipe"),
        ("dir/pipe", "a named pipe"),
        ("new/pipe", "a named pipe"),
        ("pipe", "a named pipe"),
        ("sock", "a socket"),
    ];
    let said = |snapshot: &Snapshot| -> Vec<(String, String)> {
        let missed = snapshot.not_captured.iter().map(|it| (it.what.clone(), it.why.clone()));
        missed.filter(|(what, _)| what != "closed").collect()
    };
    let expected = expected.map(|(what, why)| (what.to_owned(), why.to_owned()));
    assert_eq!(said(&sandbox.snapshot()), expected);
    // Also where git has to look, since gix may not.
    write(&sandbox.work.join("closed/x"), "x\n");
    let closed = sandbox.work.join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(said(&sandbox.snapshot()), expected);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..300 {
        pipe(&format!("many-{number}"));
    }
    let snapshot = sandbox.snapshot();
    assert_eq!(snapshot.not_captured.len(), 201);
    assert_eq!(snapshot.not_captured[200].what, "105 more");
}
