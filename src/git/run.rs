//! The one door to the git program.
//!
//! Every call: arguments as a list, git's own variables scrubbed from the environment, the three
//! directories pinned, hooks and file-system monitor off, no prompt, no optional lock, no
//! collection of garbage, output captured and bounded. Parsing stays with the caller.

use super::Repository;
use crate::error::Fault;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// What `git rev-parse --local-env-vars` prints: variables that would redirect a child to another
/// repository. A test compares this with the installed git.
pub const LOCAL_ENV_VARS: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Not local to a repository, but able to change what a call of ours does or asks.
const OTHER_ENV_VARS: [&str; 12] = [
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_NAMESPACE",
    "GIT_NOTES_REF",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_SEQUENCE_EDITOR",
    "GIT_TRACE",
    "GIT_TRACE2_EVENT",
    "SSH_ASKPASS",
];

const PINNED_CONFIG: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    // Git gives up on another's lock after 100 ms by itself.
    "core.filesRefLockTimeout=2000",
    "reftable.lockTimeout=2000",
    // `log --show-signature` runs them, also before the configuration has been looked at.
    "gpg.program=gpg",
    "gpg.ssh.program=ssh-keygen",
];

/// Who makes the commits that are ours, and the user's where git knows nobody.
const OUR_IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", super::objects::AUTHOR_NAME),
    ("GIT_AUTHOR_EMAIL", super::objects::AUTHOR_EMAIL),
    ("GIT_COMMITTER_NAME", super::objects::AUTHOR_NAME),
    ("GIT_COMMITTER_EMAIL", super::objects::AUTHOR_EMAIL),
];

/// More output than this ends the call.
const OUTPUT_BYTES_MOST: u64 = 1 << 30;
/// What is kept of the error stream.
const ERROR_BYTES_MOST: u64 = 64 * 1024;

/// A call of git, to be built up and then run.
pub struct GitCall {
    args: Vec<OsString>,
    envs: Vec<(&'static str, OsString)>,
    directory: PathBuf,
    stdin: Vec<u8>,
    as_person: bool,
}

/// How a call ended, whatever its exit code.
pub struct GitOutput {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Repository {
    /// A call of git pinned to this worktree.
    pub fn git<I, S>(&self, args: I) -> GitCall
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut call = GitCall {
            args: Vec::new(),
            envs: vec![
                ("GIT_DIR", self.git_dir.clone().into()),
                ("GIT_COMMON_DIR", self.common_dir.clone().into()),
                ("GIT_WORK_TREE", self.work_tree.clone().into()),
            ],
            directory: self.work_tree.clone(),
            stdin: Vec::new(),
            as_person: false,
        };
        if self.durability == super::Durability::Full {
            call.args.extend(["-c".into(), "core.fsync=committed,reference".into()]);
        }
        call.args(args)
    }

    /// A call as the user would type it in this worktree: their environment, identity, hooks and
    /// signing, and no directory pinned, since a hook would see that. Only once it is known that
    /// no agent has changed what git runs.
    pub fn git_as_person<I, S>(&self, args: I) -> GitCall
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let call = GitCall {
            args: Vec::new(),
            envs: Vec::new(),
            directory: self.work_tree.clone(),
            stdin: Vec::new(),
            as_person: true,
        };
        // A collection of garbage in the background would outlive us.
        call.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]).args(args)
    }
}

impl GitCall {
    pub fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.envs.push((name, value.into()));
        self
    }

    /// Runs in another folder than the worktree's root.
    pub fn directory(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.directory);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// In our name: for a user whom git does not know.
    pub fn as_us(mut self) -> Self {
        self.envs.extend(OUR_IDENTITY.map(|(name, value)| (name, value.into())));
        self
    }

    /// Runs it with all that it and its hooks have to say shown on standard error.
    pub fn show(self) -> Result<Option<i32>> {
        let shown =
            || -> io::Result<Stdio> { Ok(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?)) };
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(shown()?).stderr(shown()?);
        let status = command
            .status()
            .with_context(|| format!("cannot start git in `{}`", self.directory.display()))?;
        Ok(status.code())
    }

    /// [`GitCall::show`], but what git says on standard output is shown only when it did not come
    /// to a good end; hooks speak on standard error.
    pub fn show_trouble(self) -> Result<Option<i32>> {
        let mut command = self.command();
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let output = command
            .stdin(Stdio::null())
            .stderr(stderr)
            .output()
            .with_context(|| format!("cannot start git in `{}`", self.directory.display()))?;
        if !output.status.success() {
            io::stderr().write_all(&output.stdout)?;
        }
        Ok(output.status.code())
    }

    /// Runs it; any exit code is an answer.
    pub fn output(self) -> Result<GitOutput> {
        let (output, whole) = self.capture(OUTPUT_BYTES_MOST)?;
        if !whole {
            bail!(Fault::refused(format!("`{}` wrote more than 1 GiB", self.words())));
        }
        Ok(output)
    }

    /// Runs it and gives at most the first `most` bytes of its output, and whether that was all;
    /// it is ended when there is more.
    pub fn head(self, most: u64) -> Result<(Vec<u8>, bool)> {
        let (output, whole) = self.capture(most)?;
        if whole && output.code != Some(0) {
            return Err(output.failure(&self.words()));
        }
        Ok((output.stdout, whole))
    }

    fn capture(&self, most: u64) -> Result<(GitOutput, bool)> {
        let mut command = self.command();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.directory.is_dir() => {
                bail!(
                    Fault::environment("the git program is not on PATH")
                        .hint("install git 2.38 or newer")
                )
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("cannot start git in `{}`", self.directory.display())
                });
            }
        };
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("stdout was asked to be a pipe");
        let mut stderr = child.stderr.take().expect("stderr was asked to be a pipe");
        let (out, err) = thread::scope(|scope| {
            if let Some(mut stdin) = stdin.take() {
                let bytes = &self.stdin;
                // A child that ends before it has read everything says why on its own.
                scope.spawn(move || stdin.write_all(bytes));
            }
            let err = scope.spawn(move || drain(&mut stderr, ERROR_BYTES_MOST));
            let out = drain(&mut stdout, most);
            if !matches!(out, Ok((_, true))) {
                // The pipe is not read any further: it must not wait for us, nor we for it.
                let _ = child.kill();
            }
            (out, err.join().expect("reading a pipe does not panic"))
        });
        let (stdout, whole) = out.context("cannot read the output of git")?;
        let (stderr, _) = err.context("cannot read the messages of git")?;
        let status = child.wait().context("cannot wait for git")?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok((GitOutput { code: status.code(), stdout, stderr }, whole))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        if self.as_person {
            let elsewhere = LOCAL_ENV_VARS.iter().filter(|name| !name.starts_with("GIT_CONFIG"));
            elsewhere.for_each(|name| _ = command.env_remove(name));
        } else {
            Self::pin(&mut command);
        }
        command
            .args(&self.args)
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What nobody's environment or configuration may change about a call of ours.
    fn pin(command: &mut Command) {
        for name in LOCAL_ENV_VARS.iter().chain(&OTHER_ENV_VARS) {
            command.env_remove(name);
        }
        command.envs([
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
        ]);
        // Content under another object's name is no content of that object.
        command.env("GIT_NO_REPLACE_OBJECTS", "1");
        command.envs(OUR_IDENTITY);
        for setting in PINNED_CONFIG {
            command.args(["-c", setting]);
        }
    }

    /// Runs it and gives its output; any exit code but 0 is a failure.
    pub fn run(self) -> Result<Vec<u8>> {
        let named = words(&self.args);
        let output = self.output()?;
        if output.code == Some(0) {
            return Ok(output.stdout);
        }
        Err(output.failure(&named))
    }

    /// The words of the call as a person would type them, for messages.
    pub fn words(&self) -> String {
        words(&self.args)
    }
}

impl GitOutput {
    /// This outcome as an error that names the call and git's last word on it.
    pub fn failure(&self, words: &str) -> anyhow::Error {
        if self.stderr.contains("unknown repository extension")
            || self.stderr.contains("unknown value for 'extensions.")
        {
            return Fault::environment("the installed git is too old for this repository")
                .hint("install git 2.45 or newer")
                .into();
        }
        let machine = [
            ("No space left on device", io::ErrorKind::StorageFull),
            ("Disk quota exceeded", io::ErrorKind::QuotaExceeded),
            ("Read-only file system", io::ErrorKind::ReadOnlyFilesystem),
        ];
        if let Some((_, kind)) = machine.into_iter().find(|(said, _)| self.stderr.contains(said)) {
            return anyhow::Error::from(io::Error::from(kind)).context(format!("`{words}` failed"));
        }
        let said = self.stderr.lines().rev().find(|line| !line.trim().is_empty());
        let code = match self.code {
            Some(code) => format!("exit {code}"),
            None => "ended by a signal".to_owned(),
        };
        Fault::refused(format!("`{words}` failed ({code}): {}", said.unwrap_or("no message")))
            .into()
    }
}

/// The first `most` bytes, and whether that was all; what is beyond is read and dropped for the
/// error stream, and left unread for the output.
fn drain(from: &mut impl Read, most: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut kept = Vec::new();
    from.by_ref().take(most).read_to_end(&mut kept)?;
    let whole = (kept.len() as u64) < most || from.read(&mut [0])? == 0;
    if !whole && most == ERROR_BYTES_MOST {
        io::copy(from, &mut io::sink())?;
    }
    Ok((kept, whole))
}

fn words(args: &[OsString]) -> String {
    let mut words = String::from("git");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "-c" {
            args.next();
            continue;
        }
        words.push(' ');
        words.push_str(&arg.to_string_lossy());
    }
    words
}
