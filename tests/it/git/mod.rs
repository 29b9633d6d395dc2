//! The git room against the real git program, in scratch repositories.
//!
//! Proved here: what the snapshot holds and leaves alone, that index and branch can be redone,
//! that no concurrent writer of refs or notes loses anything, that git accepts what we write.

mod bench;
mod facts;
mod hand_over;
mod hidden;
mod objects;
mod places;
mod refs;
mod reftable;
mod snapshot;
mod wip;

use git_relay::git::{Caps, Durability, Repository, Snapshot};
use git_relay::model::names::Oid;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The worktree at `work`, by what the repository keeps of it, as a driver opens it.
fn open_work(common: &Path, work: &Path) -> anyhow::Result<Repository> {
    let git_dir = common.join("worktrees").join(work.file_name().unwrap());
    Repository::open_pinned(common, &git_dir, work)
}

/// A repository in a folder of its own, with one commit and one session worktree.
struct Sandbox {
    _folder: TempDir,
    main: PathBuf,
    work: PathBuf,
    repo: Repository,
    session: Repository,
}

const TIME: i64 = 1_795_997_341;

fn git_command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    for name in git_relay::git::run::LOCAL_ENV_VARS {
        command.env_remove(name);
    }
    command
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn git(directory: &Path, args: &[&str]) -> String {
    let output = git_command(directory).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// What `git init` is told for every kind of repository that the installed git can make.
fn kinds() -> Vec<&'static [&'static str]> {
    let all: [&[&str]; 4] = [
        &[],
        &["--object-format=sha256"],
        &["--ref-format=reftable"],
        &["--ref-format=reftable", "--object-format=sha256"],
    ];
    all.into_iter()
        .filter(|kind| {
            let folder = TempDir::new().unwrap();
            let made =
                git_command(folder.path()).args(["init", "-q"]).args(*kind).output().unwrap();
            made.status.success()
        })
        .collect()
}

impl Sandbox {
    fn new() -> Self {
        Self::with(&[], |_| {})
    }

    fn with(init: &[&str], fill: impl FnOnce(&Path)) -> Self {
        let folder = TempDir::new().unwrap();
        let main = folder.path().join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &[&["init", "-q", "-b", "main"], init].concat());
        for name in ["a.txt", "b.txt", "dir/c.txt", "dir/deep/d.txt"] {
            write(&main.join(name), format!("{name}\n"));
        }
        write(&main.join(".gitignore"), "*.log\n/build/\n");
        fill(&main);
        git(&main, &["add", "-A"]);
        git(&main, &["commit", "-qm", "begin"]);
        let mut repo = Repository::open(&main).unwrap();
        repo.set_durability(Durability::None);
        repo.exclude("/.relay/").unwrap();
        let work = main.join(".relay/sessions/s1");
        let base = repo.head_commit().unwrap().unwrap();
        repo.add_worktree(&work, "relay/s1", &base).unwrap();
        let mut session = open_work(repo.common_dir(), &work).unwrap();
        session.set_durability(Durability::None);
        Self { _folder: folder, main, work, repo, session }
    }

    fn snapshot(&self) -> Snapshot {
        self.session.take_snapshot(&Caps::default(), "relay: snapshot", TIME, None).unwrap()
    }

    /// The three steps of the driver.
    fn hand_over(&self) -> Snapshot {
        let snapshot = self.snapshot();
        self.session.durable().unwrap();
        self.session.install_index(&snapshot.tree).unwrap();
        self.session
            .move_branch("refs/heads/relay/s1", &snapshot.parent, &snapshot.commit)
            .unwrap();
        snapshot
    }

    /// What git itself would put into a tree: a private index, `add -A`, `write-tree`.
    fn tree_by_git(&self) -> String {
        self.tree_by_git_with(&[])
    }

    fn tree_by_git_with(&self, settings: &[&str]) -> String {
        let index = self.session.git_dir().join("by-git");
        let source = self.session.git_dir().join("index");
        if source.exists() {
            fs::copy(source, &index).unwrap();
        }
        let with_index = |args: &[&str]| {
            let mut command = git_command(&self.work);
            for setting in settings {
                command.args(["-c", setting]);
            }
            let output = command.env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        with_index(&["add", "-A", "--ignore-errors"]);
        let tree = with_index(&["write-tree"]).trim().to_owned();
        let _ = fs::remove_file(index);
        tree
    }

    fn status(&self) -> String {
        git(&self.work, &["status", "--porcelain"])
    }
}

/// Every byte of a worktree and of what belongs to it in the git dir.
fn fingerprint(main: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![main.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".git") || path.ends_with(".relay") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), fs::read(&path).unwrap_or_default()));
            }
        }
    }
    for name in ["index", "HEAD", "config", "refs/heads/main", "logs/HEAD"] {
        let path = main.join(".git").join(name);
        found.push((path.clone(), fs::read(path).unwrap_or_default()));
    }
    found.sort();
    found
}

fn change_everything(work: &Path) {
    write(&work.join("a.txt"), "changed\n");
    fs::remove_file(work.join("b.txt")).unwrap();
    write(&work.join("new file.txt"), "new\n");
    write(&work.join("line\nbreak"), "odd\n");
    write(&work.join(OsStr::from_bytes(b"caf\xe9.txt")), "not UTF-8\n");
    write(&work.join("ignored.log"), "no\n");
    write(&work.join("build/out"), "no\n");
    symlink("nowhere", work.join("dangling")).unwrap();
    fs::set_permissions(work.join("dir/c.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(work.join("dir/deep/d.txt")).unwrap();
    symlink("../c.txt", work.join("dir/deep/d.txt")).unwrap();
    write(&work.join(".relay/envelope.md"), "ours\n");
}
