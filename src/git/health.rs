//! What can be wrong with a repository: hooks that do not fire, locks in the way, fetches that
//! would overwrite. Looked at, never mended here; nothing in the repository changes.

use super::Repository;
use super::run::LOCAL_ENV_VARS;
use super::worktree::MAKES_VARIABLE;
use crate::host::process;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PROBE_PATIENCE: Duration = Duration::from_secs(60);
/// What hook tools of a project are told by; a trial commit has them beside it.
const TOOL_FILES: [&str; 6] = [
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook-local.yml",
    ".lefthook.yml",
    ".lefthook-local.yml",
    ".pre-commit-config.yaml",
];
/// Variables that would make a person's commit look like an agent's.
const LEG_VARIABLES: [&str; 5] = [
    "GIT_RELAY_LEG",
    "GIT_RELAY_INBOX",
    "GIT_RELAY_FOLDER",
    "GIT_RELAY_DISPATCHER",
    "GIT_RELAY_HOOKS_INDEX",
];

/// How a trial commit went.
#[derive(Debug)]
pub struct Trial {
    /// Whether git ran the hook up to our entry, and that did its work.
    pub reached: bool,
    /// The last thing the hook said.
    pub said: String,
}

/// A lock file in the repository, and for how long nobody has touched it.
#[derive(Debug)]
pub struct Lock {
    pub path: PathBuf,
    pub idle: Duration,
}

/// Makes a commit in a scratch repository, with the hooks of `hooks`, and looks whether our entry
/// was reached. The hooks run there and not in `project`: whatever they do is done in the scratch
/// repository. With `as_agent` it is the commit of an agent that we started.
pub fn try_hooks(
    hooks: &Path,
    project: &Path,
    as_agent: bool,
    path: Option<&str>,
) -> Result<Trial> {
    let folder = tempfile::Builder::new().prefix("relay-trial-").tempdir()?;
    let root = folder.path().canonicalize()?;
    let git_dir = root.join(".git");
    let inbox = git_dir.join("relay-inbox");
    // Without a template: no sample and no hook of the user's comes in.
    let made = scratch_git(&root, &["init", "-q", "--template="], &[])?;
    anyhow::ensure!(made.code == Some(0), "git cannot make a scratch repository");
    fs::write(&inbox, "")?;
    for name in TOOL_FILES {
        if project.join(name).is_file() {
            fs::copy(project.join(name), root.join(name))?;
        }
    }
    let mut words: Vec<String> = vec!["--work-tree".into(), shown(&root)];
    for setting in [
        format!("core.hooksPath={}", shown(hooks)),
        "commit.gpgSign=false".into(),
        "user.name=git relay".into(),
        "user.email=relay@localhost".into(),
    ] {
        words.extend(["-c".to_owned(), setting]);
    }
    words.extend(["commit", "-q", "--no-verify", "--allow-empty", "-m", "a trial"].map(Into::into));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (to, beside) = (shown(&inbox), shown(&root));
    let mut extra = Vec::new();
    if as_agent {
        extra.extend([("GIT_RELAY_INBOX", to.as_str()), ("GIT_RELAY_FOLDER", beside.as_str())]);
    }
    extra.extend(path.map(|path| ("PATH", path)));
    let done = scratch_git(&root, &words, &extra);
    // A hook that did not end in time goes on without the git that was killed.
    process::sweep(MAKES_VARIABLE, &beside, Duration::from_secs(1))?;
    let said = match done {
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => format!("{error:#}"),
    };
    let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let inbox = fs::read_to_string(&inbox).unwrap_or_default();
    Ok(Trial { reached: inbox.contains("\"kind\":\"safePoint\""), said: said.to_owned() })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Git in the scratch repository at `root`, with nothing of the caller's that points elsewhere.
fn scratch_git(root: &Path, words: &[&str], extra: &[(&str, &str)]) -> Result<process::Output> {
    let (root, git_dir) = (shown(root), shown(&root.join(".git")));
    let mut argv = vec!["env"];
    for name in LOCAL_ENV_VARS.iter().chain(&LEG_VARIABLES) {
        argv.extend(["-u", name]);
    }
    argv.extend(["git", "-C", &root, "--git-dir", &git_dir]);
    argv.extend(words);
    let fixed = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        (MAKES_VARIABLE, &root),
    ];
    process::run(&argv, &[fixed.as_slice(), extra].concat(), b"", PROBE_PATIENCE)
}

impl Repository {
    /// The version of the git program, as it says it.
    pub fn git_version(&self) -> Result<String> {
        let said = self.git(["version"]).run()?;
        let said = said.to_str_lossy();
        Ok(said.trim().trim_start_matches("git version ").to_owned())
    }

    /// Why git would refuse to commit for the person, since it does not know who they are; `None`
    /// where it knows, or guesses and is content with that.
    pub fn identity_fault(&self) -> Result<Option<String>> {
        for asked in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let output = self.git_as_person(["var", asked]).output()?;
            if output.code != Some(0) {
                let said = output.stderr.lines().rev().find(|line| !line.trim().is_empty());
                let said = said.unwrap_or("no message");
                return Ok(Some(said.strip_prefix("fatal: ").unwrap_or(said).to_owned()));
            }
        }
        Ok(None)
    }

    /// The fetch refspecs of remotes that would overwrite notes or sessions of this clone: remote
    /// and refspec.
    pub fn overwriting_fetches(&self) -> Result<Vec<(String, String)>> {
        let output = self.git(["config", "-z", "--get-regexp", r"^remote\..*\.fetch$"]).output()?;
        let mut found = Vec::new();
        for entry in output.stdout.split(|byte| *byte == 0) {
            let Some((key, spec)) = entry.split_once_str("\n") else { continue };
            let (key, spec) = (key.to_str_lossy(), spec.to_str_lossy());
            let target = spec.split_once(':').map_or("", |(_, target)| target);
            let ours = ["refs/*", "refs/notes/*", "refs/notes/relay", "refs/relay/*"];
            if spec.starts_with('+') && ours.contains(&target) {
                let remote = key.trim_start_matches("remote.").trim_end_matches(".fetch");
                found.push((remote.to_owned(), spec.into_owned()));
            }
        }
        Ok(found)
    }

    /// Lock files of git's that would stand in the way: of the repository as a whole, of our refs,
    /// and of linked worktrees.
    pub fn locks(&self) -> Vec<Lock> {
        let mut paths: Vec<PathBuf> =
            ["index", "HEAD", "config", "packed-refs", "refs/notes/relay"]
                .map(|name| self.common_dir.join(format!("{name}.lock")))
                .into();
        for entry in fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten()
        {
            paths.extend(["index.lock", "HEAD.lock"].map(|name| entry.path().join(name)));
        }
        if !self.is_reftable() {
            for name in self.locked_refs(super::refs::SESSIONS) {
                paths.push(super::lock::lock_path(&self.ref_path(&name)));
            }
        }
        let lock = |path: PathBuf| {
            let changed = fs::symlink_metadata(&path).and_then(|found| found.modified()).ok()?;
            let idle = SystemTime::now().duration_since(changed).unwrap_or_default();
            Some(Lock { path, idle })
        };
        paths.into_iter().filter_map(lock).collect()
    }

    /// Where `core.hooksPath` is set, and to what, as git names it.
    pub fn hooks_path_origin(&self) -> Result<Option<String>> {
        let asked = ["config", "--show-origin", "-z", "--get-all", "core.hooksPath"];
        let output = self.git(asked).output()?;
        let fields: Vec<_> = output.stdout.split(|byte| *byte == 0).collect();
        let found = fields.chunks_exact(2).rfind(|pair| pair[0] != b"command line:");
        Ok(found.map(|pair| pair[0].to_str_lossy().trim_start_matches("file:").to_owned()))
    }
}

/// Whether the hooks in `theirs` are byte for byte those of `ours`: what git would run after a
/// commit, and what that runs in turn where husky made it.
pub fn same_hooks(ours: &Path, theirs: &Path) -> Result<bool> {
    let read = |path: PathBuf| crate::host::files::read(&path, 1 << 20);
    for name in ["post-commit", "h", "../post-commit"] {
        if read(ours.join(name)).context("hooks can be compared")? != read(theirs.join(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}
