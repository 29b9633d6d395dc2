//! Which repositories and worktrees are opened, made and removed.

use super::*;
use git_relay::error::{Kind, kind_of};

#[test]
fn what_cannot_be_opened_is_refused_with_a_hint() {
    let folder = TempDir::new().unwrap();
    let refused = |path: &Path| {
        let error = Repository::open(path).err().expect("must be refused");
        assert!(git_relay::error::hint_of(&error).is_some(), "{error:#}");
        kind_of(&error)
    };
    assert_eq!(refused(folder.path()), Kind::Refused);
    let bare = folder.path().join("bare.git");
    fs::create_dir(&bare).unwrap();
    git(&bare, &["init", "-q", "--bare"]);
    assert_eq!(refused(&bare), Kind::Refused);
    let unborn = folder.path().join("unborn");
    fs::create_dir(&unborn).unwrap();
    git(&unborn, &["init", "-q", "-b", "main"]);
    let unborn = Repository::open(&unborn).unwrap();
    assert_eq!(unborn.head_commit().unwrap(), None);
    assert_eq!(unborn.head_branch().unwrap().as_deref(), Some("refs/heads/main"));
}

#[test]
fn a_worktree_opens_by_its_record_and_not_by_its_own_word() {
    let sandbox = Sandbox::new();
    let base = sandbox.repo.head_commit().unwrap().unwrap();
    sandbox.repo.add_worktree(&sandbox.work, "relay/s1", &base).unwrap();
    let elsewhere = TempDir::new().unwrap();
    git(elsewhere.path(), &["init", "-q"]);
    write(
        &sandbox.work.join(".git"),
        format!("gitdir: {}\n", elsewhere.path().join(".git").display()),
    );
    let opened = open_work(sandbox.repo.common_dir(), &sandbox.work).unwrap();
    assert_eq!(opened.head_branch().unwrap().as_deref(), Some("refs/heads/relay/s1"));
    assert_eq!(opened.work_tree(), sandbox.session.work_tree());
    assert_eq!(opened.main_work_tree(), sandbox.repo.main_work_tree());
    write(
        &sandbox.session.git_dir().join("commondir"),
        elsewhere.path().join(".git").as_os_str().as_bytes(),
    );
    let error = open_work(sandbox.repo.common_dir(), &sandbox.work).err().unwrap();
    assert_eq!(kind_of(&error), Kind::Integrity);
}

#[test]
fn worktrees_are_listed_and_only_ours_removed() {
    let sandbox = Sandbox::new();
    let list = sandbox.repo.worktrees().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list[1].branch.as_deref(), Some("refs/heads/relay/s1"));
    let at = sandbox.repo.checked_out_at("refs/heads/relay/s1").unwrap().unwrap();
    assert_eq!(at, fs::canonicalize(&sandbox.work).unwrap());
    assert_eq!(sandbox.repo.checked_out_at("refs/heads/none").unwrap(), None);
    let theirs = sandbox.main.parent().unwrap().join("theirs");
    git(&sandbox.main, &["worktree", "add", "-q", theirs.to_str().unwrap()]);
    assert_eq!(kind_of(&sandbox.repo.remove_worktree(&theirs).unwrap_err()), Kind::Refused);
    write(&sandbox.work.join("dirty"), "x\n");
    sandbox.repo.remove_worktree(&sandbox.work).unwrap();
    sandbox.repo.remove_worktree(&sandbox.work).unwrap();
    assert_eq!(sandbox.repo.worktrees().unwrap().len(), 2);
    assert!(!sandbox.work.exists());
    sandbox.repo.exclude("/.relay/").unwrap();
    let text = fs::read_to_string(sandbox.main.join(".git/info/exclude")).unwrap();
    assert_eq!(text.matches("/.relay/").count(), 1);
}

#[test]
fn the_scrubbed_variables_are_those_git_names() {
    let folder = TempDir::new().unwrap();
    let named = git(folder.path(), &["rev-parse", "--local-env-vars"]);
    for name in named.lines() {
        assert!(git_relay::git::run::LOCAL_ENV_VARS.contains(&name), "{name} is not scrubbed");
    }
}

#[test]
fn files_of_somebody_s_where_a_worktree_was_half_made_stay() {
    let sandbox = Sandbox::new();
    let (base, work) =
        (sandbox.repo.head_commit().unwrap().unwrap(), sandbox.work.with_file_name("s2"));
    let add = ["worktree", "add", "-q", "--no-checkout", "-b", "relay/s2"];
    git(&sandbox.main, &[&add[..], &[work.to_str().unwrap()]].concat());
    fs::remove_file(work.join(".git")).unwrap();
    write(&work.join("mine.txt"), "mine\n");
    let error = sandbox.repo.add_worktree(&work, "relay/s2", &base).unwrap_err();
    assert_eq!(kind_of(&error), Kind::Refused, "{error:#}");
    assert_eq!(fs::read(work.join("mine.txt")).unwrap(), b"mine\n");
    fs::remove_file(work.join("mine.txt")).unwrap();
    sandbox.repo.add_worktree(&work, "relay/s2", &base).unwrap();
    assert!(work.join("a.txt").exists());
}

#[test]
fn where_a_file_stands_is_told_also_where_git_does_not_look() {
    use git_relay::git::place::Standing;
    let sandbox = Sandbox::new();
    for (flag, file) in [("--assume-unchanged", "a.txt"), ("--skip-worktree", "b.txt")] {
        git(&sandbox.work, &["update-index", flag, file]);
    }
    git(&sandbox.work, &["update-index", "--assume-unchanged", "dir/c.txt"]);
    write(&sandbox.work.join("a.txt"), "changed\n");
    write(&sandbox.work.join("b.txt"), "changed\n");
    let paths = ["a.txt", "b.txt", "dir/c.txt"].map(PathBuf::from);
    let found = sandbox.session.standings(&paths.into_iter().collect()).unwrap();
    let found: Vec<Standing> = found.into_values().collect();
    assert_eq!(found, [Standing::Changed, Standing::Changed, Standing::Committed]);
}
