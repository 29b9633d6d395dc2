//! Git accepts what we write, and we read what git writes.

use super::*;
use git_relay::git::NOTES_REF;

#[test]
fn git_accepts_our_signed_commits() {
    for format in ["sha1", "sha256"] {
        let sandbox = Sandbox::with(&["--object-format", format], |_| {});
        let folder = TempDir::new().unwrap();
        let key = folder.path().join("key");
        let run = |args: &[&OsStr], stdin: &[u8]| {
            use std::io::Write;
            let mut child = Command::new("ssh-keygen")
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(stdin).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        let word = OsStr::new;
        run(
            &[
                word("-q"),
                word("-t"),
                word("ed25519"),
                word("-N"),
                word(""),
                word("-f"),
                key.as_os_str(),
            ],
            b"",
        );
        let head = sandbox.repo.head_commit().unwrap().unwrap();
        let tree = sandbox.repo.tree_of(&head).unwrap();
        let payload = sandbox.repo.commit_payload(&tree, &[head], "a title\n\nand a body", TIME);
        let signature = run(
            &[word("-Y"), word("sign"), word("-n"), word("git"), word("-f"), key.as_os_str()],
            &payload,
        );
        let commit = sandbox.repo.write_signed_commit(&payload, &signature).unwrap();
        let public = fs::read_to_string(key.with_extension("pub")).unwrap();
        let allowed = folder.path().join("allowed");
        fs::write(&allowed, format!("relay@host namespaces=\"git\" {public}")).unwrap();
        let setting = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
        git(&sandbox.main, &["-c", &setting, "verify-commit", commit.as_str()]);
        let read = sandbox.repo.read_commit(&commit).unwrap();
        assert_eq!(read.signed_payload, payload);
        assert_eq!(read.signature.as_deref(), Some(signature.as_str()));
        assert_eq!(read.message, "a title\n\nand a body\n");
        assert_eq!(read.time, TIME);
        git(&sandbox.main, &["fsck", "--strict"]);
    }
}

#[test]
fn history_is_read() {
    let sandbox = Sandbox::new();
    let base = sandbox.session.head_commit().unwrap().unwrap();
    git(&sandbox.work, &["commit", "-q", "--allow-empty", "-m", "one\n\nRelay-Decision: keep it"]);
    git(&sandbox.work, &["commit", "-q", "--allow-empty", "-m", "two"]);
    let tip = sandbox.session.head_commit().unwrap().unwrap();
    let between = sandbox.session.commits_between(&base, &tip).unwrap();
    let titles: Vec<&str> =
        between.iter().filter_map(|(_, commit)| commit.message.lines().next()).collect();
    assert_eq!(titles, ["two", "one"]);
    assert!(sandbox.repo.is_ancestor(&base, &tip).unwrap());
    assert!(!sandbox.repo.is_ancestor(&tip, &base).unwrap());
    assert_eq!(sandbox.repo.root_commits(&tip).unwrap(), [base]);
    assert!(!sandbox.repo.is_shallow());
    assert_eq!(sandbox.repo.read_ref(NOTES_REF).unwrap(), None);
}

#[test]
fn a_tree_that_cannot_be_written_is_none() {
    let sandbox = Sandbox::new();
    let missing = Oid::new("1".repeat(40)).unwrap();
    let files = std::collections::BTreeMap::from([("lost.txt".to_owned(), missing)]);
    assert!(sandbox.repo.write_tree(&files).is_err(), "and not the tree as it was before");
}
