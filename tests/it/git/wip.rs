//! The snapshot of a worktree in which somebody is at work.

use super::*;
use std::collections::BTreeMap;

const BASE: &str = "refs/heads/main";

fn take(sandbox: &Sandbox, earlier: Option<&Oid>) -> Oid {
    let base = sandbox.repo.read_ref(BASE).unwrap().unwrap();
    let cache = sandbox.main.join(".git/relay-wip-index");
    sandbox.session.take_wip(&cache, "relay: work", TIME, earlier, &base).unwrap().commit
}

fn names(sandbox: &Sandbox, commit: &Oid) -> Vec<String> {
    let list = git(&sandbox.main, &["ls-tree", "-r", "--name-only", commit.as_str()]);
    list.lines().map(str::to_owned).collect()
}

/// Makes what was written so far look old enough for its time stamp to count.
fn age(sandbox: &Sandbox) {
    for name in git(&sandbox.work, &["ls-files", "-mo", "--exclude-standard"]).lines() {
        let at = sandbox.work.join(name);
        assert!(
            Command::new("touch").args(["-d", "2026-01-01"]).arg(at).status().unwrap().success()
        );
    }
}

fn private_files(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(sandbox.session.git_dir()).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn it_holds_what_a_snapshot_would_and_touches_nothing() {
    let sandbox = Sandbox::new();
    write(&sandbox.work.join("a.txt"), "staged\n");
    write(&sandbox.work.join("forced.log"), "ignored, and added by force\n");
    git(&sandbox.work, &["add", "-f", "a.txt", "forced.log"]);
    write(&sandbox.work.join("a.txt"), "changed again\n");
    write(&sandbox.work.join("new/one.txt"), "new\n");
    write(&sandbox.work.join("junk.log"), "ignored\n");
    fs::remove_file(sandbox.work.join("b.txt")).unwrap();
    let before = private_files(&sandbox);
    let wip = take(&sandbox, None);
    assert_eq!(private_files(&sandbox), before, "the agent's own git dir was written");
    assert_eq!(take(&sandbox, Some(&wip)), wip, "nothing changed: it is the same one");
    let tree = sandbox.repo.tree_of(&wip).unwrap();
    assert_eq!(sandbox.snapshot().tree, tree);
    assert!(names(&sandbox, &wip).contains(&"forced.log".to_owned()));
}

#[test]
fn what_did_not_change_is_known_by_its_time_stamp() {
    let sandbox = Sandbox::new();
    for number in 0..50 {
        write(&sandbox.work.join(format!("new-{number}.txt")), format!("{number}\n"));
    }
    write(&sandbox.work.join("a.txt"), "changed\n");
    age(&sandbox);
    let first = take(&sandbox, None);
    // By stat data alone, without a look into a file: nothing differs from our own index.
    let cache = sandbox.main.join(".git/relay-wip-index");
    let mut differs = Command::new("git");
    differs.current_dir(&sandbox.work).env("GIT_INDEX_FILE", &cache);
    let output = differs.args(["diff-files", "--name-only"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    write(&sandbox.work.join("a.txt"), "changed once more\n");
    fs::remove_file(sandbox.work.join("new-7.txt")).unwrap();
    let second = take(&sandbox, Some(&first));
    let changed = git(&sandbox.main, &["diff", "--name-only", first.as_str(), second.as_str()]);
    assert_eq!(changed.trim_end(), "a.txt\nnew-7.txt");
    // A torn cache is no cache.
    fs::write(&cache, b"DIRC").unwrap();
    assert_eq!(take(&sandbox, Some(&second)), second);
}

#[test]
fn the_cache_does_not_outlive_what_is_ignored_and_what_is_committed() {
    let sandbox = Sandbox::new();
    write(&sandbox.work.join("out/one.bin"), "made by a build\n");
    let first = take(&sandbox, None);
    assert!(names(&sandbox, &first).contains(&"out/one.bin".to_owned()));
    write(&sandbox.work.join(".gitignore"), "*.log\n/build/\n/out/\n");
    let second = take(&sandbox, Some(&first));
    let third = take(&sandbox, Some(&second));
    assert!(!names(&sandbox, &third).contains(&"out/one.bin".to_owned()), "it is ignored now");
    // A file where a folder was, across a commit.
    write(&sandbox.work.join("thing/inner.txt"), "x\n");
    let fourth = take(&sandbox, Some(&third));
    fs::remove_dir_all(sandbox.work.join("thing")).unwrap();
    write(&sandbox.work.join("thing"), "a file\n");
    git(&sandbox.work, &["add", "-A"]);
    git(&sandbox.work, &["commit", "-qm", "all"]);
    let fifth = take(&sandbox, Some(&fourth));
    assert_eq!(sandbox.repo.tree_of(&fifth).unwrap(), sandbox.snapshot().tree);
    assert!(names(&sandbox, &fifth).contains(&"thing".to_owned()));
    git(&sandbox.main, &["fsck", "--strict"]);
}

#[test]
fn it_stands_on_the_base_also_where_the_agent_left_it() {
    let sandbox = Sandbox::new();
    git(&sandbox.work, &["checkout", "-q", "--orphan", "fresh"]);
    git(&sandbox.work, &["commit", "-qm", "anew"]);
    let wip = take(&sandbox, None);
    let base = sandbox.repo.read_ref(BASE).unwrap().unwrap();
    assert!(sandbox.repo.is_ancestor(&base, &wip).unwrap());
}
