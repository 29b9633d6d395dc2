//! Ref names in one place; reading, listing, compare-and-swap.
//!
//! Two ways to do it: by git's file protocol ([`files`]), and by the git program ([`program`]) for
//! repositories that keep their refs as reftable, and for every ref that may be the user's, since
//! git keeps its reflog. Git keeps no reflog for our prefix; the chain of commits is the history.

mod files;
mod program;
mod stack;

use super::Repository;
use super::lock::{Stale, clear_stale};
use crate::error::Fault;
use crate::model::names::{Oid, SessionId};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

pub const RELAY: &str = "refs/relay/";
pub const SESSIONS: &str = "refs/relay/sessions/";
pub const SNAPSHOTS: &str = "refs/relay/snapshots/";
pub const MOVED: &str = "refs/relay/moved/";
pub const NOTES_REF: &str = "refs/notes/relay";

/// Symbolic refs deeper than this are a loop.
const SYMBOLIC_DEPTH_MOST: usize = 5;

/// The chain of a session's state commits.
pub fn session_ref(session: &SessionId) -> String {
    format!("{SESSIONS}{session}")
}

/// Keeps the snapshot at the end of a leg from squash, amend and collection of garbage.
pub fn snapshot_ref(session: &SessionId, leg: u32) -> String {
    format!("{SNAPSHOTS}{session}/{leg}")
}

/// What a session that is over leaves: its last tree and, below it, its branch.
pub fn kept_ref(session: &SessionId) -> String {
    format!("refs/relay/kept/{session}")
}

/// The last state of a session whose own ref was moved under its driver.
pub fn moved_ref(session: &SessionId) -> String {
    format!("{MOVED}{session}")
}

/// The commit that `finish` made for the user's branch: written before that branch moves.
pub fn result_ref(session: &SessionId) -> String {
    format!("refs/relay/results/{session}")
}

/// What stood in the user's files when a finish was taken back, and was neither theirs nor ours.
pub fn undone_ref(session: &SessionId) -> String {
    format!("refs/relay/undone/{session}")
}

/// What stood uncommitted in the user's files when a result that holds it was brought there.
pub fn aside_ref(session: &SessionId) -> String {
    format!("refs/relay/aside/{session}")
}

/// The latest snapshot between hand-overs.
pub fn wip_ref(session: &SessionId) -> String {
    format!("{SNAPSHOTS}{session}/wip")
}

/// The full name of a branch.
pub fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// What a ref holds.
enum Value {
    Direct(Oid),
    Symbolic(String),
}

/// One way of keeping refs.
trait Refs {
    fn read(&self, name: &str) -> Result<Option<Value>>;
    fn list(&self, prefix: &str) -> Result<Vec<(String, Oid)>>;
    /// From `expected` (`None`: absent) to `new`; `Raced` when it stands elsewhere.
    fn swap(&self, name: &str, new: &Oid, expected: Option<&Oid>, why: &str) -> Result<()>;
    fn delete(&self, name: &str, expected: &Oid) -> Result<()>;
}

impl Repository {
    fn refs(&self, stale: Stale) -> Box<dyn Refs + '_> {
        if self.reftable {
            Box::new(program::Program { repo: self })
        } else {
            Box::new(files::Files { repo: self, stale })
        }
    }

    /// The commit a full ref name (or `HEAD`) stands for. A file that is empty or NUL, as a power
    /// cut leaves it, reads as if it were not there.
    pub fn read_ref(&self, name: &str) -> Result<Option<Oid>> {
        let refs = self.refs(Stale::Explain);
        let mut name = name.to_owned();
        for _ in 0..SYMBOLIC_DEPTH_MOST {
            match refs.read(&name)? {
                None => return Ok(None),
                Some(Value::Direct(oid)) => return Ok(Some(oid)),
                Some(Value::Symbolic(target)) => name = target,
            }
        }
        bail!(Fault::integrity(format!("`{name}` is part of a loop of symbolic refs")))
    }

    /// The commit checked out here; `None` when the branch has no commit yet.
    pub fn head_commit(&self) -> Result<Option<Oid>> {
        self.read_ref("HEAD")
    }

    /// The full name of the branch checked out here; `None` when HEAD is detached.
    pub fn head_branch(&self) -> Result<Option<String>> {
        Ok(match self.refs(Stale::Explain).read("HEAD")? {
            Some(Value::Symbolic(name)) => Some(name),
            Some(Value::Direct(_)) | None => None,
        })
    }

    /// All refs whose full name begins with `prefix`, sorted by name.
    pub fn list_refs(&self, prefix: &str) -> Result<Vec<(String, Oid)>> {
        self.refs(Stale::Explain).list(prefix)
    }

    /// Moves a ref from `expected` (`None`: it must not exist) to `new`; a lost race is a fault of
    /// kind `Raced` and changes nothing.
    pub fn swap_ref(&self, name: &str, new: &Oid, expected: Option<&Oid>, why: &str) -> Result<()> {
        if name.starts_with(RELAY) || name == NOTES_REF {
            self.refs(Stale::Explain).swap(name, new, expected, why)
        } else {
            program::Program { repo: self }.swap(name, new, expected, why)
        }
    }

    /// [`Repository::swap_ref`] for the holder of the session's lock: a `.lock` that stands for
    /// two seconds on a ref only this session writes is a dead command's, and is cleared.
    pub fn swap_own_ref(
        &self,
        name: &str,
        new: &Oid,
        expected: Option<&Oid>,
        why: &str,
    ) -> Result<()> {
        if name.starts_with(RELAY) {
            return self.refs(Stale::Clear).swap(name, new, expected, why);
        }
        if name == NOTES_REF {
            bail!("the notes ref has no single writer: write notes with write_note");
        }
        if !self.reftable {
            clear_stale(&self.ref_path(name))?;
            // Git locks HEAD too when the branch it stands for moves, to write its reflog.
            if self.head_branch()?.as_deref() == Some(name) && self.git_dir != self.common_dir {
                clear_stale(&self.git_dir.join("HEAD"))?;
            }
        }
        program::Program { repo: self }.swap(name, new, expected, why)
    }

    /// Clears what dead git programs have left locked in the linked worktree of `git_dir` and on
    /// its branch (full name), each after the wait; the caller knows that no agent is at work there,
    /// and that none was before `since`. With one of them in the way the next could not commit.
    pub fn clear_dead_locks(&self, git_dir: &Path, branch: &str, since: i64) -> Result<()> {
        if git_dir == self.common_dir {
            bail!("the locks of the main worktree are the user's");
        }
        for entry in std::fs::read_dir(git_dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "lock") {
                clear_stale(&path.with_extension(""))?;
            }
        }
        if self.reftable {
            let since = UNIX_EPOCH + Duration::from_secs(since.try_into().unwrap_or(0));
            return Ok(self.clear_dead_stack(git_dir, since)?);
        }
        clear_stale(&self.ref_path(branch))
    }

    /// The refs in the folder `prefix` whose lock file is there, whether or not they exist.
    pub fn locked_refs(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.ref_path(prefix)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Some(format!("{prefix}{}", name.strip_suffix(".lock")?))).collect()
    }

    /// The refs in the folder `prefix` whose file is there and empty, as a power cut leaves it, and
    /// that stand nowhere else; with the file.
    pub fn torn_refs(&self, prefix: &str) -> Result<Vec<(String, PathBuf)>> {
        let entries = std::fs::read_dir(self.ref_path(prefix)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut torn = Vec::new();
        for name in names.filter(|name| !self.reftable && !name.ends_with(".lock")) {
            let (name, file) =
                (format!("{prefix}{name}"), self.ref_path(&format!("{prefix}{name}")));
            // One that is gone meanwhile was a driver's own doing.
            if file.is_file() && self.read_ref(&name)?.is_none() && file.is_file() {
                torn.push((name, file));
            }
        }
        Ok(torn)
    }

    /// Every commit in the store that has `line` in its message, reachable or not. Slow: it looks at
    /// all of them.
    pub fn commits_that_say(&self, line: &str) -> Result<Vec<Oid>> {
        let words = ["cat-file", "--batch-all-objects", "--unordered"];
        let check = "--batch-check=%(objecttype) %(objectname)";
        let output = self.git(words.into_iter().chain([check])).run()?;
        let text = String::from_utf8_lossy(&output);
        let all = text.lines().filter_map(|row| Oid::new(row.strip_prefix("commit ")?));
        let says = |commit: &Oid| {
            self.read_commit(commit).is_ok_and(|it| it.message.lines().any(|found| found == line))
        };
        Ok(all.filter(says).collect())
    }

    /// Removes the lock of a ref of ours, for who holds the session's lock: nobody writes it now.
    pub fn clear_own_lock(&self, name: &str) -> Result<()> {
        if !name.starts_with(RELAY) {
            bail!("`{name}` may be the user's");
        }
        clear_stale(&self.ref_path(name))
    }

    /// For the one writer of notes among us: see `notes`.
    pub(super) fn swap_notes_ref(&self, new: &Oid, expected: Option<&Oid>) -> Result<()> {
        self.refs(Stale::Clear).swap(NOTES_REF, new, expected, "relay: note")
    }

    /// Deletes a ref if it stands at `expected`; one that is gone already is fine.
    pub fn delete_ref(&self, name: &str, expected: &Oid) -> Result<()> {
        self.refs(Stale::Explain).delete(name, expected)
    }

    fn must_stand_at(&self, name: &str, expected: Option<&Oid>) -> Result<()> {
        let found = self.read_ref(name)?;
        if found.as_ref() == expected {
            return Ok(());
        }
        let word = |oid: Option<&Oid>| oid.map_or("nothing".to_owned(), Oid::to_string);
        bail!(
            Fault::raced(format!(
                "`{name}` moved: expected {}, found {}",
                word(expected),
                word(found.as_ref())
            ))
            .hint("somebody else was first; run the command again")
        )
    }

    /// Where the file of a ref is, if refs are files.
    pub(super) fn ref_path(&self, name: &str) -> PathBuf {
        let own = !name.starts_with("refs/")
            || ["refs/bisect/", "refs/worktree/", "refs/rewritten/"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        let base: &Path = if own { &self.git_dir } else { &self.common_dir };
        base.join(name)
    }
}
