//! What changed since the base commit, and the way back to the user's branch.

use super::*;
use git_relay::error::{Kind, kind_of};
use git_relay::git::finish::Merged;
use git_relay::git::guard;

#[test]
fn facts_of_what_changed() {
    let sandbox = Sandbox::new();
    let base = sandbox.session.head_commit().unwrap().unwrap();
    write(&sandbox.work.join("new.txt"), "new\n");
    write(&sandbox.work.join("a.txt"), "changed once\n");
    git(&sandbox.work, &["add", "-A"]);
    git(&sandbox.work, &["commit", "-qm", "safe point"]);
    let safe_point = sandbox.session.head_commit().unwrap().unwrap();
    change_everything(&sandbox.work);
    write(&sandbox.work.join("bin"), b"\0\x01");
    let snapshot = sandbox.hand_over();
    let files = sandbox.repo.changed_files(&base, &snapshot.commit).unwrap();
    let shown: Vec<String> = files
        .iter()
        .map(|file| {
            let path = file.path.as_deref().or(file.path_base64.as_deref()).unwrap();
            format!("{path:?} {:?} {:?} {}", file.status, file.mode.as_deref(), file.committed)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "\"a.txt\" Changed Some(\"100644\") false",
            "\"b.txt\" Deleted None false",
            "\"bin\" Added Some(\"100644\") false",
            "\"Y2Fm6S50eHQ=\" Added Some(\"100644\") false",
            "\"dangling\" Added Some(\"120000\") false",
            "\"dir/c.txt\" Changed Some(\"100755\") false",
            "\"dir/deep/d.txt\" TypeChanged Some(\"120000\") false",
            "\"line\\nbreak\" Added Some(\"100644\") false",
            "\"new file.txt\" Added Some(\"100644\") false",
            "\"new.txt\" Added Some(\"100644\") true",
        ]
    );
    let new = files.iter().find(|file| file.path.as_deref() == Some("new.txt")).unwrap();
    assert_eq!(new.size_bytes, Some(4));
    assert_eq!(
        new.sha256.as_ref().unwrap().as_str(),
        "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c"
    );

    let (pieces, diff) = sandbox.repo.in_flight(&safe_point, &snapshot.tree, 64 * 1024).unwrap();
    let a = pieces.iter().find(|piece| piece.path == "a.txt").unwrap();
    assert_eq!((a.line, a.snippet.as_str()), (1, "-changed once\n+changed\n"));
    assert!(pieces.iter().all(|piece| piece.path != "bin"));
    assert!(pieces.iter().any(|piece| piece.path == "line\nbreak"));
    let (_, cut) = sandbox.repo.in_flight(&safe_point, &snapshot.tree, 100).unwrap();
    assert!(cut.len() <= 100 && diff.starts_with(&cut) && cut.ends_with(b"\n"));
}

#[test]
fn the_result_is_merged_without_a_worktree_or_into_a_clean_one() {
    let sandbox = Sandbox::new();
    write(&sandbox.work.join("b.txt"), "from the session\n");
    write(&sandbox.work.join("sub/new.txt"), "from the session\n");
    let snapshot = sandbox.hand_over();
    write(&sandbox.main.join("a.txt"), "from the user\n");
    git(&sandbox.main, &["commit", "-qam", "user"]);
    let old = sandbox.repo.head_commit().unwrap().unwrap();
    let Merged::Tree(tree) = sandbox.repo.merge(&old, &snapshot.commit).unwrap() else {
        panic!("must be clean")
    };
    let touched = sandbox.repo.touched_paths(&old, &tree).unwrap();
    assert_eq!(touched, [b"b.txt".to_vec(), b"sub/new.txt".to_vec()]);
    assert_eq!(sandbox.repo.dirty_paths(&touched).unwrap(), [b""; 0]);
    write(&sandbox.main.join("dir/c.txt"), "dirty elsewhere\n");
    write(&sandbox.main.join("sub"), "in the way\n");
    assert_eq!(sandbox.repo.dirty_paths(&touched).unwrap(), [b"sub"]);
    fs::remove_file(sandbox.main.join("sub")).unwrap();
    write(&sandbox.main.join("sub/new.txt"), "in the way\n");
    assert_eq!(sandbox.repo.dirty_paths(&touched).unwrap(), [b"sub/new.txt"]);
    fs::remove_dir_all(sandbox.main.join("sub")).unwrap();

    let commit =
        sandbox.repo.commit_for_user(&tree, std::slice::from_ref(&old), "result\n").unwrap();
    git(&sandbox.main, &["switch", "-q", "--detach"]);
    sandbox.repo.swap_ref("refs/heads/main", &commit, Some(&old), "relay: finish").unwrap();
    git(&sandbox.main, &["switch", "-q", "main"]);
    assert_eq!(git(&sandbox.main, &["status", "--porcelain"]), " M dir/c.txt\n");
    assert_eq!(fs::read_to_string(sandbox.main.join("sub/new.txt")).unwrap(), "from the session\n");
    assert!(git(&sandbox.main, &["reflog", "main"]).contains("relay: finish"));
    let again = sandbox.repo.swap_ref("refs/heads/main", &old, Some(&old), "x").unwrap_err();
    assert_eq!(kind_of(&again), Kind::Raced);

    write(&sandbox.main.join("b.txt"), "from the user\n");
    git(&sandbox.main, &["commit", "-qam", "clash"]);
    write(&sandbox.work.join("b.txt"), "other\n");
    let snapshot = sandbox.hand_over();
    let ours = sandbox.repo.head_commit().unwrap().unwrap();
    let Merged::Conflicts { paths, tree } = sandbox.repo.merge(&ours, &snapshot.commit).unwrap()
    else {
        panic!("must not be clean")
    };
    assert_eq!(paths, ["b.txt"]);
    let left = sandbox.repo.read_tree_file(&tree, "b.txt").unwrap().unwrap();
    assert!(String::from_utf8(left).unwrap().contains("<<<<<<<"));
}

#[test]
fn ordinary_work_changes_no_guarded_fact_and_a_trap_does() {
    let sandbox = Sandbox::new();
    let facts = || {
        let (common, own) = (sandbox.repo.common_dir(), sandbox.session.git_dir());
        guard::guard_facts(common, own, &sandbox.work).unwrap()
    };
    let before = facts();
    change_everything(&sandbox.work);
    git(&sandbox.work, &["config", "branch.relay/s1.description", "text"]);
    git(&sandbox.work, &["add", "-A"]);
    git(&sandbox.work, &["commit", "-qm", "work"]);
    git(&sandbox.main, &["gc", "-q"]);
    sandbox.hand_over();
    assert_eq!(guard::differences(&before, &facts()), [""; 0]);

    git(&sandbox.work, &["config", "diff.x.textconv", "evil"]);
    write(&sandbox.work.join(".git"), "gitdir: /tmp/elsewhere\n");
    write(&sandbox.session.git_dir().join("config.worktree"), "[core]\n\tworktree = /\n");
    assert_eq!(
        guard::differences(&before, &facts()),
        [".git changed", "config diff.x.textconv added", "config.worktree added"]
    );
    let shown = guard::silenced_facts(sandbox.repo.common_dir()).unwrap();
    git(&sandbox.main, &["config", "core.hooksPath", ".husky"]);
    write(&sandbox.main.join(".git/hooks/post-commit"), "#!/bin/sh\n");
    let after = guard::silenced_facts(sandbox.repo.common_dir()).unwrap();
    assert_eq!(
        guard::differences(&shown, &after),
        ["config core.hookspath added", "hooks/post-commit added"]
    );
}
