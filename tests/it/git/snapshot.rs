//! The snapshot holds what `git add -A` would, names what it cannot hold, and touches nothing else.

use super::*;

#[test]
fn a_snapshot_holds_what_git_add_all_would_and_leaves_the_rest_alone() {
    for kind in kinds() {
        snapshot_as_git_would(&Sandbox::with(kind, |_| {}));
    }
}

fn snapshot_as_git_would(sandbox: &Sandbox) {
    write(&sandbox.main.join("user.txt"), "the user's own\n");
    git(&sandbox.main, &["add", "user.txt"]);
    let before = fingerprint(&sandbox.main);
    change_everything(&sandbox.work);
    // Staged, then changed again; staged and deleted; promised.
    write(&sandbox.work.join("staged.txt"), "one\n");
    git(&sandbox.work, &["add", "staged.txt"]);
    write(&sandbox.work.join("staged.txt"), "two\n");
    write(&sandbox.work.join("gone.txt"), "one\n");
    git(&sandbox.work, &["add", "gone.txt"]);
    fs::remove_file(sandbox.work.join("gone.txt")).unwrap();
    write(&sandbox.work.join("promised.txt"), "later\n");
    git(&sandbox.work, &["add", "-N", "promised.txt"]);
    git(&sandbox.work, &["rm", "-q", "--cached", "dir/c.txt"]);

    let by_git = sandbox.tree_by_git();
    let snapshot = sandbox.hand_over();
    assert_eq!(snapshot.tree.as_str(), by_git);
    assert_eq!(snapshot.not_captured, []);
    assert_eq!(snapshot.in_progress, None);
    assert_eq!(snapshot.staged, ["dir/c.txt", "gone.txt", "staged.txt"]);
    assert_eq!(sandbox.status(), "");
    assert_eq!(git(&sandbox.work, &["symbolic-ref", "HEAD"]), "refs/heads/relay/s1\n");
    assert_eq!(git(&sandbox.work, &["rev-parse", "HEAD"]).trim(), snapshot.commit.as_str());
    assert_eq!(fingerprint(&sandbox.main), before);
    git(&sandbox.main, &["fsck", "--strict"]);

    // The next agent's first commit changes one file.
    write(&sandbox.work.join("a.txt"), "next agent\n");
    write(&sandbox.work.join("c.txt"), "next agent\n");
    git(&sandbox.work, &["add", "a.txt"]);
    git(&sandbox.work, &["commit", "-qm", "one"]);
    assert_eq!(git(&sandbox.work, &["show", "--name-only", "--format=", "HEAD"]), "a.txt\n");
}

#[test]
fn many_new_files_come_in_one_pack() {
    for kind in kinds() {
        let sandbox = Sandbox::with(kind, |_| {});
        for number in 0..150 {
            // Some twice the same: a pack holds each object once.
            write(
                &sandbox.work.join(format!("d{}/f{number}", number % 7)),
                format!("{}", number / 2),
            );
        }
        // More than one bundle takes.
        fs::write(sandbox.work.join("large"), vec![7; 17 << 20]).unwrap();
        let by_git = sandbox.tree_by_git();
        git(&sandbox.main, &["prune", "--expire=now"]);
        assert_eq!(sandbox.hand_over().tree.as_str(), by_git);
        assert_eq!(sandbox.status(), "");
        git(&sandbox.main, &["fsck", "--strict"]);
        let counted = git(&sandbox.main, &["count-objects", "-v"]);
        // 75 contents, 7 folders and the root.
        assert!(counted.contains("in-pack: 83\n"), "{counted}");
    }
}

/// Nothing names the objects of such a pack until the hand-over's refs do.
#[test]
fn a_repack_beside_us_takes_no_pack_that_is_not_named_yet() {
    let sandbox = Sandbox::with(kinds()[0], |_| {});
    for number in 0..150 {
        write(&sandbox.work.join(format!("f{number}")), format!("{number}"));
    }
    let kept = || {
        let folder = fs::read_dir(sandbox.main.join(".git/objects/pack")).unwrap();
        let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".keep")).count()
    };
    let snapshot = sandbox.snapshot();
    assert_eq!(kept(), 1);
    git(&sandbox.main, &["repack", "-a", "-d", "-q"]);
    git(&sandbox.main, &["ls-tree", "-r", "-l", snapshot.tree.as_str()]);
    git(&sandbox.main, &["cat-file", "-e", &format!("{}:f149", snapshot.tree)]);
    drop(snapshot);
    assert_eq!(kept(), 0);
}

#[test]
fn filters_apply_as_they_do_for_git_add() {
    let sandbox = Sandbox::with(&[], |main| {
        write(
            &main.join(".gitattributes"),
            "*.crlf eol=crlf\n*.auto text=auto\n*.up filter=up\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n",
        );
        git(main, &["config", "filter.up.clean", "tr a-z A-Z"]);
        git(main, &["config", "filter.up.smudge", "tr A-Z a-z"]);
        git(main, &["config", "filter.broken.clean", "false"]);
        git(main, &["config", "filter.broken.required", "true"]);
        write(&main.join("one.crlf"), "one\r\ntwo\r\n");
        write(&main.join("one.up"), "shout\n");
    });
    assert_eq!(git(&sandbox.work, &["show", ":one.up"]), "SHOUT\n");
    write(&sandbox.work.join("one.crlf"), "one\r\ntwo\r\nthree\r\n");
    write(&sandbox.work.join("new.auto"), "a\r\nb\r\n");
    write(&sandbox.work.join("new.up"), "louder\n");
    write(&sandbox.work.join("new.id"), "$Id: 1234 $\n");
    write(&sandbox.work.join("new.u16"), b"h\0i\0\n\0");
    assert_eq!(sandbox.tree_by_git(), sandbox.hand_over().tree.as_str());
    assert_eq!(sandbox.status(), "");
    assert_eq!(git(&sandbox.work, &["show", "HEAD:new.up"]), "LOUDER\n");

    // One that must run and cannot: named, and the rest goes on.
    write(&sandbox.work.join(".git-attributes-note"), "x\n");
    write(&sandbox.work.join("sub/.gitattributes"), "*.bad filter=broken\n");
    write(&sandbox.work.join("sub/one.bad"), "content\n");
    let snapshot = sandbox.snapshot();
    let names: Vec<&str> = snapshot.not_captured.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(names, ["sub/one.bad"]);
    assert!(
        sandbox.session.read_tree_file(&snapshot.commit, "sub/.gitattributes").unwrap().is_some()
    );
}

#[test]
fn what_cannot_be_captured_is_named_and_the_rest_goes_on() {
    let sandbox = Sandbox::new();
    write(&sandbox.work.join("big"), vec![b'x'; 5000]);
    write(&sandbox.work.join("a.txt"), vec![b'y'; 5000]);
    write(&sandbox.work.join("small"), "s\n");
    let nested = sandbox.work.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    write(&nested.join("x"), "x\n");
    assert!(Command::new("mkfifo").arg(sandbox.work.join("pipe")).status().unwrap().success());
    fs::remove_file(sandbox.work.join("b.txt")).unwrap();
    assert!(Command::new("mkfifo").arg(sandbox.work.join("b.txt")).status().unwrap().success());

    let caps = Caps { file_bytes: 4096, ..Caps::default() };
    let snapshot = sandbox.session.take_snapshot(&caps, "relay: snapshot", TIME, None).unwrap();
    let names: Vec<&str> = snapshot.not_captured.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(names, ["a.txt", "b.txt", "big", "nested", "pipe"], "{:?}", snapshot.not_captured);
    let read = |path| sandbox.session.read_tree_file(&snapshot.commit, path).unwrap();
    assert_eq!(read("small").unwrap(), b"s\n");
    assert_eq!(read("a.txt").unwrap(), b"a.txt\n", "the last good content stays");
    assert!(read("big").is_none());
    // No object of what was over the cap was written.
    let id = git(&sandbox.work, &["hash-object", "big"]);
    assert!(!sandbox.session.has_object(&Oid::new(id.trim()).unwrap()));

    let few = Caps { new_files: 0, ..Caps::default() };
    let snapshot = sandbox.session.take_snapshot(&few, "relay: snapshot", TIME, None).unwrap();
    assert!(snapshot.not_captured.iter().any(|it| it.what == "small"));
    assert_eq!(
        sandbox.session.read_tree_file(&snapshot.commit, "a.txt").unwrap().unwrap().len(),
        5000
    );
}

#[test]
fn folders_and_files_may_take_each_others_place() {
    let sandbox = Sandbox::new();
    fs::remove_file(sandbox.work.join("a.txt")).unwrap();
    write(&sandbox.work.join("a.txt/inside"), "in\n");
    fs::remove_dir_all(sandbox.work.join("dir")).unwrap();
    write(&sandbox.work.join("dir"), "a file now\n");
    assert_eq!(sandbox.tree_by_git(), sandbox.hand_over().tree.as_str());
    assert_eq!(sandbox.status(), "");
}

#[test]
fn untracked_files_count_also_where_status_hides_them() {
    let sandbox = Sandbox::with(&[], |main| {
        git(main, &["config", "status.showUntrackedFiles", "no"]);
    });
    write(&sandbox.work.join("new.txt"), "new\n");
    assert_eq!(sandbox.tree_by_git(), sandbox.hand_over().tree.as_str());
}

#[test]
fn a_merge_in_progress_is_named_and_captured_as_it_stands() {
    let sandbox = Sandbox::new();
    let work = &sandbox.work;
    git(work, &["switch", "-qc", "other"]);
    write(&work.join("a.txt"), "theirs\n");
    git(work, &["commit", "-qam", "theirs"]);
    git(work, &["switch", "-q", "relay/s1"]);
    write(&work.join("a.txt"), "ours\n");
    git(work, &["commit", "-qam", "ours"]);
    assert!(!git_command(work).args(["merge", "other"]).output().unwrap().status.success());
    let index = fs::read(sandbox.session.git_dir().join("index")).unwrap();
    let snapshot = sandbox.snapshot();
    assert_eq!(snapshot.in_progress.as_deref(), Some("merge"));
    let content = sandbox.session.read_tree_file(&snapshot.commit, "a.txt").unwrap().unwrap();
    assert!(String::from_utf8(content).unwrap().contains("<<<<<<<"));
    assert_eq!(fs::read(sandbox.session.git_dir().join("index")).unwrap(), index);
    assert_eq!(sandbox.tree_by_git(), snapshot.tree.as_str());
}

#[test]
fn a_submodule_is_recorded_by_its_commit_and_named_when_dirty() {
    let upstream = TempDir::new().unwrap();
    let lib = upstream.path().join("lib");
    fs::create_dir(&lib).unwrap();
    git(&lib, &["init", "-q", "-b", "main"]);
    write(&lib.join("lib.c"), "one\n");
    git(&lib, &["add", "-A"]);
    git(&lib, &["commit", "-qm", "one"]);
    let sandbox = Sandbox::with(&[], |main| {
        git(
            main,
            &[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "--quiet",
                "add",
                lib.to_str().unwrap(),
                "lib",
            ],
        );
    });
    git(
        &sandbox.work,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"],
    );
    let sub = sandbox.work.join("lib");
    write(&sub.join("lib.c"), "two\n");
    git(&sub, &["commit", "-qam", "two"]);
    assert_eq!(sandbox.snapshot().not_captured, []);
    write(&sub.join("lib.c"), "three\n");
    let by_git = sandbox.tree_by_git();
    let snapshot = sandbox.hand_over();
    assert_eq!(by_git, snapshot.tree.as_str());
    let names: Vec<&str> = snapshot.not_captured.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(names, ["lib"]);
}

/// A user who may not read everything (an ordinary one; root may read all).
#[test]
fn what_may_not_be_read_is_named_and_the_rest_goes_on() {
    let sandbox = Sandbox::new();
    let lock = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    change_everything(&sandbox.work);
    write(&sandbox.work.join("closed/x"), "x\n");
    write(&sandbox.work.join("secret"), "x\n");
    write(&sandbox.work.join("new.txt"), "new\n");
    write(&sandbox.work.join("a.txt"), "changed, and then closed\n");
    lock(&sandbox.work.join("closed"));
    if fs::read_dir(sandbox.work.join("closed")).is_ok() {
        return; // root
    }
    lock(&sandbox.work.join("secret"));
    lock(&sandbox.work.join("a.txt"));
    let by_git = sandbox.tree_by_git();
    let snapshot = sandbox.snapshot();
    assert_eq!(snapshot.tree.as_str(), by_git);
    fs::set_permissions(sandbox.work.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    let names: Vec<&str> = snapshot.not_captured.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(names, ["a.txt", "closed", "secret"], "{:?}", snapshot.not_captured);
    assert!(sandbox.session.read_tree_file(&snapshot.commit, "new.txt").unwrap().is_some());
}

#[test]
fn any_form_of_index_will_do() {
    let forms: [&[&[&str]]; 7] = [
        &[&["update-index", "--split-index"]],
        &[&["update-index", "--index-version", "4"]],
        &[&["update-index", "--force-untracked-cache"]],
        &[&["config", "index.skipHash", "true"], &["update-index", "--force-write-index"]],
        &[&["sparse-checkout", "set", "--no-cone", "/*", "!/wide/"]],
        &[&["sparse-checkout", "set", "--cone", "--sparse-index", "dir"]],
        &[&["update-index", "--assume-unchanged", "dir/c.txt"]],
    ];
    for form in forms {
        let sandbox = Sandbox::with(&[], |main| {
            write(&main.join("wide/w.txt"), "w\n");
            write(&main.join("wide/deep/w.txt"), "w\n");
        });
        for args in form {
            git(&sandbox.work, args);
        }
        write(&sandbox.work.join("a.txt"), "changed\n");
        write(&sandbox.work.join("dir/new.txt"), "new\n");
        fs::remove_file(sandbox.work.join("b.txt")).unwrap();
        let by_git = sandbox.tree_by_git();
        let snapshot = sandbox.hand_over();
        assert_eq!(snapshot.tree.as_str(), by_git, "{form:?}");
        assert_eq!(sandbox.status(), "", "{form:?}");
        let all = git(&sandbox.work, &["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(all.contains("wide/deep/w.txt"), "{form:?}");
        write(&sandbox.work.join("a.txt"), "next\n");
        git(&sandbox.work, &["commit", "-qam", "next"]);
        assert_eq!(git(&sandbox.work, &["show", "--name-only", "--format=", "HEAD"]), "a.txt\n");
    }
}

#[test]
fn modes_and_links_that_the_file_system_cannot_show_stay() {
    let sandbox = Sandbox::with(&[], |main| {
        write(&main.join("run.sh"), "#!/bin/sh\n");
        fs::set_permissions(main.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a.txt", main.join("link")).unwrap();
        git(main, &["config", "core.fileMode", "false"]);
        git(main, &["config", "core.symlinks", "false"]);
    });
    write(&sandbox.work.join("run.sh"), "#!/bin/sh\necho\n");
    fs::set_permissions(sandbox.work.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    write(&sandbox.work.join("a.txt"), "changed\n");
    fs::set_permissions(sandbox.work.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&sandbox.work.join("link"), "b.txt");
    write(&sandbox.work.join("new.sh"), "new\n");
    fs::set_permissions(sandbox.work.join("new.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(sandbox.tree_by_git(), sandbox.hand_over().tree.as_str());
    assert_eq!(sandbox.status(), "");
}

#[test]
fn off_its_branch_nothing_falls_out_of_history() {
    let sandbox = Sandbox::new();
    let work = &sandbox.work;
    write(&work.join("a.txt"), "ours\n");
    git(work, &["commit", "-qam", "ours"]);
    let tip = sandbox.session.head_commit().unwrap().unwrap();
    write(&sandbox.main.join("a.txt"), "theirs\n");
    git(&sandbox.main, &["commit", "-qam", "theirs"]);
    assert!(!git_command(work).args(["rebase", "main"]).output().unwrap().status.success());
    let snapshot = sandbox.snapshot();
    assert_eq!(snapshot.in_progress.as_deref(), Some("rebase"));
    assert!(sandbox.repo.is_ancestor(&tip, &snapshot.commit).unwrap());
    assert_eq!(sandbox.repo.checked_out_at("refs/heads/relay/s1").unwrap().as_ref(), Some(work));
    git(work, &["rebase", "--abort"]);

    git(work, &["switch", "-qc", "elsewhere", "main"]);
    write(&work.join("new.txt"), "new\n");
    let snapshot = sandbox.snapshot();
    assert_eq!(snapshot.in_progress.as_deref(), Some("checkout of elsewhere"));
    assert!(sandbox.repo.is_ancestor(&tip, &snapshot.commit).unwrap());
    git(work, &["switch", "-q", "--detach"]);
    assert_eq!(sandbox.snapshot().in_progress.as_deref(), Some("checkout of no branch"));
    git(work, &["switch", "-q", "relay/s1"]);
    assert_eq!(sandbox.snapshot().in_progress, None);
}

#[test]
fn clones_that_are_not_whole_will_do() {
    let sandbox = Sandbox::new();
    git(&sandbox.main, &["commit", "-q", "--allow-empty", "-m", "second"]);
    git(&sandbox.main, &["config", "uploadpack.allowFilter", "true"]);
    let source = format!("file://{}", sandbox.main.display());
    let kinds: [(&str, &[&str]); 3] = [
        ("shared", &["--shared", sandbox.main.to_str().unwrap()]),
        ("shallow", &["--depth=1", &source]),
        ("partial", &["--filter=blob:none", &source]),
    ];
    for (name, args) in kinds {
        let folder = TempDir::new().unwrap();
        let clone = folder.path().join(name);
        git(folder.path(), &[&["clone", "-q"], args, &[clone.to_str().unwrap()]].concat());
        let repo = Repository::open(&clone).unwrap();
        assert_eq!(repo.is_shallow(), name == "shallow");
        let base = repo.head_commit().unwrap().unwrap();
        assert_eq!(repo.root_commits(&base).unwrap().is_empty(), name == "shallow");
        let work = clone.join(".relay/sessions/s1");
        repo.add_worktree(&work, "relay/s1", &base).unwrap();
        let session = open_work(repo.common_dir(), &work).unwrap();
        write(&work.join("a.txt"), "changed\n");
        let snapshot = session.take_snapshot(&Caps::default(), "x", TIME, None).unwrap();
        session.durable().unwrap();
        session.install_index(&snapshot.tree).unwrap();
        session.move_branch("refs/heads/relay/s1", &snapshot.parent, &snapshot.commit).unwrap();
        assert_eq!(git(&work, &["status", "--porcelain"]), "");
        assert!(repo.is_ancestor(&base, &snapshot.commit).unwrap());
        assert_eq!(repo.changed_files(&base, &snapshot.commit).unwrap().len(), 1);
        git(&clone, &["fsck", "--strict"]);
    }
}
