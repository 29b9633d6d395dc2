//! Reftable keeps all refs behind one lock: a git that dies while it holds `tables.list.lock`
//! shuts every ref of the repository, the user's too, and nothing in it says whose it was.
//!
//! So our own writers take turns, and leave a mark while their git runs. A lock is cleared only
//! with proof that it is a dead one's and ours: such a mark stands (or an agent was ended), the
//! lock is this user's and not older, for two seconds nothing touched it, and no process has it.

use crate::git::Repository;
use crate::git::lock::{STALE_AFTER, identity};
use crate::git::run::{GitCall, GitOutput};
use crate::host::process;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

/// Set for a git that writes refs, and for its children, to the process whose turn it is.
const TURN_VARIABLE: &str = "GIT_RELAY_TURN";

impl Repository {
    /// Waits until nothing that a dead command has begun can move a ref any more.
    pub fn settle_refs(&self) -> Result<()> {
        let stands = || fs::metadata(self.turn_path()).is_ok_and(|mark| mark.len() > 0);
        if self.reftable && stands() {
            let turn = self.take_turn()?;
            if self.stack_locks(&self.git_dir).is_empty() {
                turn.set_len(0).context("cannot take back a mark")?;
            }
        }
        Ok(())
    }

    fn turn_path(&self) -> PathBuf {
        self.common_dir.join("relay/reftable.lock")
    }

    /// Runs a git that writes refs.
    pub(in crate::git) fn write_refs(&self, call: GitCall) -> Result<GitOutput> {
        if !self.reftable {
            return call.output();
        }
        let turn = self.take_turn()?;
        let output = call.env(TURN_VARIABLE, std::process::id().to_string()).output()?;
        // One that fails was killed, or lost a git of its own, perhaps with the lock in its hand. An
        // agent that wants to commit meanwhile waits, but not for long.
        if output.code != Some(0) {
            self.clear_dead_stack(&self.git_dir, turn.metadata()?.modified()?)?;
        }
        if output.code == Some(0) || self.stack_locks(&self.git_dir).is_empty() {
            turn.set_len(0).context("cannot take back a mark")?;
        }
        Ok(output)
    }

    /// Waits for this writer's turn, ends and clears what one that died has left, leaves a mark.
    fn take_turn(&self) -> Result<File> {
        let path = self.turn_path();
        let open = || -> io::Result<(File, String, SystemTime)> {
            fs::create_dir_all(self.common_dir.join("relay"))?;
            let mut file = File::options().create(true).read(true).append(true).open(&path)?;
            file.lock()?;
            let mut mark = String::new();
            file.read_to_string(&mut mark)?;
            let since = file.metadata()?.modified()?;
            Ok((file, mark, since))
        };
        let (mut file, mark, since) =
            open().with_context(|| format!("cannot take a turn at `{}`", path.display()))?;
        if !mark.is_empty() {
            process::sweep(TURN_VARIABLE, &mark, STALE_AFTER)?;
            self.clear_dead_stack(&self.git_dir, since)?;
        }
        // Over a lock that stays the old mark stays as well: its time is the proof.
        if mark.is_empty() || self.stack_locks(&self.git_dir).is_empty() {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
        }
        Ok(file)
    }

    /// Clears the locks that a git of ours, begun after `since`, has left at its death on the refs
    /// that all worktrees share and on those of the worktree of `git_dir`.
    pub(super) fn clear_dead_stack(&self, git_dir: &Path, since: SystemTime) -> io::Result<()> {
        let mut locks = self.stack_locks(git_dir);
        locks.retain(|lock| {
            fs::symlink_metadata(lock).is_ok_and(|found| {
                found.uid() == rustix::process::geteuid().as_raw()
                    && found.modified().is_ok_and(|made| made >= since)
            })
        });
        if locks.is_empty() {
            return Ok(());
        }
        let seen: Vec<_> = locks.iter().map(|lock| identity(lock)).collect();
        thread::sleep(STALE_AFTER);
        for (lock, seen) in locks.iter().zip(seen) {
            // The lock of a table is closed while its table, mapped, is being compacted. The list of
            // tables is open in every git, one that waits for this very lock too.
            let table = lock.with_extension("");
            let in_use = process::may_have(lock)
                || (!table.ends_with("tables.list") && process::may_have(&table));
            if seen.is_some() && identity(lock) == seen && !in_use {
                match fs::remove_file(lock) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The lock files of the refs of all worktrees and of those of one.
    pub(super) fn stack_locks(&self, git_dir: &Path) -> Vec<PathBuf> {
        let mut folders = vec![self.common_dir.join("reftable"), git_dir.join("reftable")];
        folders.dedup();
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "lock")).collect()
    }
}
