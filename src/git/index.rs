//! The session worktree's own index: replaced by one of the snapshot's tree, so that `git status`
//! there is empty and the next agent's `git add ONE && git commit` changes one file.
//!
//! The snapshot prepares that index beside the real one, with the stat data it saw; installing is
//! then two renames. Without a prepared one (killed, tidied away) it is made from the tree alone.

use super::lock::{LockFile, Stale};
use super::{Repository, to_gix};
use crate::error::Fault;
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use gix::index::entry::{Flags, Stage, Stat};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file changed this shortly before it was read might change again within the same time stamp.
const TICK: Duration = Duration::from_millis(20);
/// The same where the file system keeps whole seconds only.
const WHOLE_SECONDS_TICK: Duration = Duration::from_secs(2);

impl Repository {
    pub(super) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    fn prepared_path(&self, tree: &Oid) -> PathBuf {
        self.git_dir.join(format!("relay-index-{tree}"))
    }

    /// The index as it is on disk now; an empty one if there is none.
    pub(super) fn read_index(&self) -> Result<gix::index::File> {
        let index = match self.gix.open_index() {
            Ok(index) => index,
            Err(_) if !self.index_path().exists() => gix::index::File::from_state(
                gix::index::State::new(self.gix.object_hash()),
                self.index_path(),
            ),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot read `{}`", self.index_path().display()))
                    .map_err(|error| {
                        error.context(
                            Fault::refused("the index of the session worktree cannot be read")
                                .hint("git status there says more"),
                        )
                    });
            }
        };
        if index.is_sparse() { self.expanded_index() } else { Ok(index) }
    }

    /// Git writes out, into a file of ours, the folders that a sparse index keeps as one entry.
    fn expanded_index(&self) -> Result<gix::index::File> {
        let path = self.git_dir.join("relay-index-full");
        let _ = fs::remove_file(&path);
        fs::copy(self.index_path(), &path)
            .with_context(|| format!("cannot copy `{}`", self.index_path().display()))?;
        self.git(["-c", "index.sparse=false", "update-index", "--force-write-index"])
            .env("GIT_INDEX_FILE", &path)
            .run()?;
        let index = gix::index::File::at(
            &path,
            self.gix.object_hash(),
            false,
            gix::index::decode::Options::default(),
        )?;
        fs::remove_file(&path).ok();
        if index.is_sparse() {
            bail!(
                Fault::environment("this worktree has a sparse index that git does not expand")
                    .hint("git sparse-checkout reapply --no-sparse-index")
            );
        }
        Ok(index)
    }

    /// Stores an index for [`Repository::install_index`] to put in place.
    pub(super) fn prepare_index(&self, index: &gix::index::File, tree: &Oid) -> Result<()> {
        self.forget_prepared()?;
        let path = self.prepared_path(tree);
        self.write_index(index, File::create(&path), &path)
    }

    fn write_index(
        &self,
        index: &gix::index::File,
        file: std::io::Result<File>,
        path: &Path,
    ) -> Result<()> {
        let file = file.with_context(|| format!("cannot make `{}`", path.display()))?;
        let mut out = BufWriter::with_capacity(64 * 1024, file);
        index.write_to(&mut out, gix::index::write::Options::default())?;
        out.flush().with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Prepared indexes of snapshots that never got this far.
    fn forget_prepared(&self) -> Result<()> {
        let list = fs::read_dir(&self.git_dir)
            .with_context(|| format!("cannot list `{}`", self.git_dir.display()))?;
        for entry in list.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"relay-index-") {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Replaces this worktree's index by one of the snapshot `tree`. Only for a session worktree
    /// whose agent is gone: a lock left there for two seconds is a dead process's and is cleared.
    pub fn install_index(&self, tree: &Oid) -> Result<()> {
        if self.git_dir == self.common_dir {
            bail!("the main worktree's index is the user's and is never replaced");
        }
        let prepared = self.prepared_path(tree);
        if !prepared.exists() {
            if self.index_is_of(tree)? {
                return Ok(());
            }
            self.prepare_from_tree(tree, &prepared)?;
        }
        let mut lock = LockFile::acquire(&self.index_path(), Stale::Clear)?;
        lock.fill_from(&prepared)?;
        lock.commit(self.durability)
    }

    /// Whether the index holds exactly this tree, stages and flags included.
    fn index_is_of(&self, tree: &Oid) -> Result<bool> {
        let index = self.read_index()?;
        let wanted = self.gix.index_from_tree(&to_gix(tree))?;
        Ok(index.entries().len() == wanted.entries().len()
            && index.entries().iter().zip(wanted.entries()).all(|(found, entry)| {
                found.stage() == Stage::Unconflicted
                    && !found.flags.contains(Flags::INTENT_TO_ADD)
                    && found.id == entry.id
                    && found.mode == entry.mode
                    && found.path(&index) == entry.path(&wanted)
            }))
    }

    /// The slow way: entries from the tree, stat data from the old index where it is of the same
    /// content, then git looks at the rest.
    fn prepare_from_tree(&self, tree: &Oid, path: &Path) -> Result<()> {
        self.forget_prepared()?;
        let old = self.read_index()?;
        let mut new = self.gix.index_from_tree(&to_gix(tree))?;
        let written = old.timestamp();
        let written = u64::try_from(written.unix_seconds())
            .map_or(UNIX_EPOCH, |secs| UNIX_EPOCH + Duration::new(secs, written.nanoseconds()));
        for (entry, path) in new.entries_mut_with_paths() {
            let Some(known) = old.entry_by_path(path) else {
                continue;
            };
            if known.id == entry.id && known.mode == entry.mode {
                entry.stat = known.stat;
                entry.flags |= known.flags & (Flags::SKIP_WORKTREE | Flags::ASSUME_VALID);
                if known.flags.contains(Flags::SKIP_WORKTREE) {
                    entry.flags |= Flags::EXTENDED;
                }
                doubt_if_recent(&mut entry.stat, written);
            }
        }
        self.write_index(&new, File::create(path), path)?;
        // Exit 1 only says that something differs from the worktree.
        self.git(["update-index", "-q", "--refresh"]).env("GIT_INDEX_FILE", path).output()?;
        Ok(())
    }

    /// Moves the session branch (full name) from the snapshot's parent to the snapshot. HEAD stays
    /// on the branch, files and index are not looked at. Done already: nothing happens.
    pub fn move_branch(&self, branch: &str, from: &Oid, to: &Oid) -> Result<()> {
        let is_done = || Ok::<bool, anyhow::Error>(self.read_ref(branch)?.as_ref() == Some(to));
        if is_done()? {
            return Ok(());
        }
        match self.swap_own_ref(branch, to, Some(from), "relay: snapshot") {
            // Git was killed after it had moved the branch, or one that a dead driver had started
            // came to it after all.
            Err(_) if self.read_ref(branch)?.as_ref() == Some(to) => {
                self.clear_dead_locks(&self.git_dir, branch, self.read_commit(to)?.time)
            }
            done => done,
        }
    }
}

/// Makes git read the file again at its next look, where its time stamp is too young to prove
/// that the content is still the one we read ("racy git").
pub(super) fn doubt_if_recent(stat: &mut Stat, read_at: SystemTime) {
    let modified = UNIX_EPOCH + Duration::new(u64::from(stat.mtime.secs), stat.mtime.nsecs);
    let tick = if stat.mtime.nsecs == 0 { WHOLE_SECONDS_TICK } else { TICK };
    if modified + tick >= read_at {
        stat.size = 0;
    }
}
