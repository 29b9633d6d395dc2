//! The snapshot between hand-overs, of a worktree in which an agent is at work: nothing of the
//! agent's is locked or written, and only what changed since the last one is read again.
//!
//! The stat cache is an index file of ours in the session's private folder. It is laid over the
//! agent's own index, which knows what was added by force; either only says where to look, since
//! every file's stat data is compared with the worktree.

use super::Repository;
use super::snapshot::{Caps, Snapshot};
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::bstr::{BString, ByteSlice};
use gix::index::entry::{Mode, Stage, Stat};
use std::fs;
use std::io::Write;
use std::path::Path;

type Entry = (BString, gix::ObjectId, Mode, Stat);

impl Repository {
    /// Captures this worktree as [`Repository::take_snapshot`] does, and moves and prepares
    /// nothing. `cache` is the stat cache; `earlier` is the result again where it still holds, and
    /// `base` is always below the result.
    pub fn take_wip(
        &self,
        cache: &Path,
        message: &str,
        time: i64,
        earlier: Option<&Oid>,
        base: &Oid,
    ) -> Result<Snapshot> {
        let caps = Caps::default();
        let index = self.laid_over(cache)?;
        let taken = match self.take(index, &caps, message, time, earlier) {
            // Two views that do not go together; the agent's alone does.
            Err(_) if cache.exists() => {
                fs::remove_file(cache).ok();
                self.take(self.read_index()?, &caps, message, time, earlier)
            }
            taken => taken,
        };
        let (mut snapshot, index) = taken?;
        self.keep_cache(cache, &index, &snapshot.commit)?;
        if !self.is_ancestor(base, &snapshot.commit)? {
            let parents = [snapshot.parent.clone(), base.clone()];
            snapshot.commit = self.write_commit(&snapshot.tree, &parents, message, time)?;
        }
        Ok(snapshot)
    }

    /// The agent's index with what the cache knows better or beside it.
    fn laid_over(&self, cache: &Path) -> Result<gix::index::File> {
        let mut index = self.read_index()?;
        let options = gix::index::decode::Options::default();
        let known = match gix::index::File::at(cache, self.gix.object_hash(), false, options) {
            Ok(known) if cache.exists() => known,
            // None yet, or one that a killed driver tore.
            _ => return Ok(index),
        };
        let mut new: Vec<Entry> = Vec::new();
        for (entry, path) in known.entries().iter().map(|entry| (entry, entry.path(&known))) {
            if entry.stage() != Stage::Unconflicted || !entry.flags.is_empty() {
                continue;
            }
            let own = index.entry_mut_by_path_and_stage(path, Stage::Unconflicted);
            match own {
                Some(own)
                    if (own.stat.mtime.secs, own.stat.mtime.nsecs)
                        < (entry.stat.mtime.secs, entry.stat.mtime.nsecs) =>
                {
                    (own.id, own.mode, own.stat) = (entry.id, entry.mode, entry.stat);
                }
                Some(_) => {}
                None => new.push((path.to_owned(), entry.id, entry.mode, entry.stat)),
            }
        }
        for (path, id, mode, stat) in new {
            let flags = gix::index::entry::Flags::empty();
            index.dangerously_push_entry(stat, id, flags, mode, path.as_bstr());
        }
        index.sort_entries();
        index.remove_tree();
        Ok(index)
    }

    /// Keeps the stat cache, unless what is ignored may have changed: the cache would go on naming
    /// files that are ignored now.
    fn keep_cache(&self, cache: &Path, index: &gix::index::File, commit: &Oid) -> Result<()> {
        let parent = self.read_commit(commit)?.parents.first().cloned();
        let touched = match &parent {
            Some(parent) => self.touched_paths(parent, commit)?,
            None => Vec::new(),
        };
        if touched.iter().any(|path| path.ends_with(b".gitignore")) {
            fs::remove_file(cache).ok();
            return Ok(());
        }
        let failed = || format!("cannot write `{}`", cache.display());
        let folder = cache.parent().context("the cache lies in a folder")?;
        let mut file =
            tempfile::Builder::new().prefix(".relay-").tempfile_in(folder).with_context(failed)?;
        index.write_to(&mut file, gix::index::write::Options::default())?;
        file.flush().with_context(failed)?;
        file.persist(cache).map(drop).map_err(|error| error.error).with_context(failed)
    }
}
