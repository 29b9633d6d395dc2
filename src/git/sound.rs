//! What another program's git had not flushed when the machine stopped: git makes neither loose
//! objects nor refs durable by itself (`core.fsync`), so that a power cut leaves empty files under
//! their names (tried on ext4, git 2.47.3).

use super::objects::lines;
use super::{Repository, to_gix};
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::index::entry::Mode;
use gix::object::tree::EntryKind;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// A torn index is kept under this name, the last one only.
const TORN_INDEX: &str = "relay-index-torn";
/// Entries of a reflog that are looked at, from its end.
const REFLOG_MOST: usize = 200;

impl Repository {
    /// Takes away loose objects that are empty files, and says how many. No object is empty, and a
    /// writer takes what has the name for there already.
    pub fn clear_empty_objects(&self) -> Result<usize> {
        let mut cleared = 0;
        let objects = self.common_dir.join("objects");
        for first_byte in 0..=u8::MAX {
            let folder = objects.join(format!("{first_byte:02x}"));
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let is_empty =
                    entry.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
                if is_empty {
                    let path = entry.path();
                    fs::remove_file(&path)
                        .with_context(|| format!("cannot remove the empty `{}`", path.display()))?;
                    cleared += 1;
                }
            }
        }
        Ok(cleared)
    }

    /// Whether everything that `commit` has beyond `known` can be read: its commits, and every file
    /// in each of them.
    pub fn is_whole(&self, commit: &Oid, known: &Oid) -> bool {
        let whole = || -> Result<()> {
            for (oid, found) in self.commits_between(known, commit)? {
                let before = found.parents.first().unwrap_or(known);
                for side in self.tree_changes(before, &oid)?.into_iter().filter_map(|it| it.new) {
                    if side.kind != EntryKind::Commit {
                        self.intact(side.id)?;
                    }
                }
            }
            self.tree_at(commit).map(drop)
        };
        whole().is_ok()
    }

    /// Where a branch (full name) stood, the latest first, as far as its reflog tells.
    pub fn stood_at(&self, branch: &str) -> Vec<Oid> {
        if self.reftable {
            let count = format!("--max-count={REFLOG_MOST}");
            let call = self.git(["reflog", "show", "--format=%H", &count, branch, "--"]);
            return call.run().map_or_else(
                |_| Vec::new(),
                |output| lines(&output).filter_map(Oid::new).collect(),
            );
        }
        read_reflog(&self.common_dir.join("logs").join(branch))
    }

    /// The same of what is checked out in this worktree. Its reflog outlives the branch's own.
    pub fn head_stood_at(&self) -> Vec<Oid> {
        if self.reftable {
            self.stood_at("HEAD")
        } else {
            read_reflog(&self.git_dir.join("logs/HEAD"))
        }
    }

    /// Puts a branch (full name) whose ref is torn, or leads to nothing, where it can stand.
    pub fn set_right(&self, branch: &str, to: &Oid) -> Result<()> {
        let found = self.read_ref(branch)?;
        if found.is_none() && !self.reftable {
            // Git refuses to write over a ref that it cannot read.
            fs::remove_file(self.ref_path(branch)).ok();
        }
        self.swap_own_ref(branch, to, found.as_ref(), "relay: what it stood at is gone")
    }

    /// Makes the index of this worktree anew from HEAD where it is torn, or where it names content
    /// that is not there; says whether it did. What was staged is in the worktree's files, and
    /// counts as not staged after this.
    pub fn set_index_right(&self) -> Result<bool> {
        if self.is_index_sound()? {
            return Ok(false);
        }
        let path = self.index_path();
        if path.exists() {
            fs::rename(&path, self.git_dir.join(TORN_INDEX))
                .with_context(|| format!("cannot move `{}` away", path.display()))?;
        }
        self.restore_index()?;
        Ok(true)
    }

    fn is_index_sound(&self) -> Result<bool> {
        let (Some(head), true) = (self.head_commit()?, self.index_path().exists()) else {
            return Ok(false);
        };
        let Ok(index) = self.read_index() else { return Ok(false) };
        let of_head = self.gix.index_from_tree(&to_gix(&self.tree_of(&head)?))?;
        let known: HashSet<_> = of_head.entries().iter().map(|entry| entry.id).collect();
        Ok(index
            .entries()
            .iter()
            .filter(|entry| entry.mode != Mode::COMMIT && !known.contains(&entry.id))
            .all(|entry| entry.id.is_empty_blob() || self.intact(entry.id).is_ok()))
    }
}

fn read_reflog(path: &Path) -> Vec<Oid> {
    let text = fs::read(path).unwrap_or_default();
    // A line is "<old> <new> <who> …".
    let mut stood: Vec<Oid> =
        lines(&text).filter_map(|line| Oid::new(line.split(' ').nth(1)?)).collect();
    stood.reverse();
    stood.truncate(REFLOG_MOST);
    stood
}
