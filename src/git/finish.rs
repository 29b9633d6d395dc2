//! Bringing a session's result to the user's branch: a merge in memory, and the little that must
//! be known about a branch that is checked out somewhere.

use super::Repository;
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// How a three-way merge came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Clean: the tree of the result, written and pointed to by nothing.
    Tree(Oid),
    /// The paths in conflict; nothing was changed.
    Conflicts(Vec<String>),
}

impl Repository {
    /// Merges two commits in memory; no worktree, index or ref is looked at or changed.
    pub fn merge(&self, ours: &Oid, theirs: &Oid) -> Result<Merged> {
        let call = self.git([
            "merge-tree",
            "--write-tree",
            "--name-only",
            "--no-messages",
            "-z",
            ours.as_str(),
            theirs.as_str(),
        ]);
        let words = call.words();
        let output = call.output()?;
        let mut fields = output.stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        match output.code {
            Some(0) => {
                let tree = fields.next().and_then(|field| Oid::new(field.to_str_lossy()));
                Ok(Merged::Tree(tree.context("git merge-tree named no tree")?))
            }
            Some(1) => {
                let paths: BTreeSet<String> =
                    fields.skip(1).map(|path| path.to_str_lossy().into_owned()).collect();
                Ok(Merged::Conflicts(paths.into_iter().collect()))
            }
            _ => Err(output.failure(&words)),
        }
    }

    /// A commit in the user's own name (ours only where git knows none): the result that `finish`
    /// puts on the user's branch.
    pub fn commit_for_user(&self, tree: &Oid, parents: &[Oid], message: &str) -> Result<Oid> {
        let mut call = self.git(["commit-tree", "-F", "-"]);
        for parent in parents {
            call = call.args(["-p", parent.as_str()]);
        }
        if self.config("user.name").is_some() && self.config("user.email").is_some() {
            call = call.as_user();
        }
        let output = call.args([tree.as_str()]).stdin(message).run()?;
        Oid::new(output.trim().to_str_lossy()).context("git commit-tree named no commit")
    }

    /// The paths that differ between two commits, or trees.
    pub fn touched_paths(&self, old: &Oid, new: &Oid) -> Result<Vec<Vec<u8>>> {
        Ok(self.tree_changes(old, new)?.into_iter().map(|change| change.path.into()).collect())
    }

    /// Which of `touched` are not clean in this worktree (changed, staged, or in the way of a new
    /// file), and so would be lost by an update.
    pub fn dirty_paths(&self, touched: &[Vec<u8>]) -> Result<Vec<String>> {
        let output = self
            .git(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"])
            .args(["--ignored=matching", "--ignore-submodules=none"])
            .run()?;
        let names: BTreeSet<&[u8]> = touched.iter().map(Vec::as_slice).collect();
        let mut dirty = BTreeSet::new();
        for field in output.split(|byte| *byte == 0) {
            let Some(path) = field.get(3..) else { continue };
            let (path, is_folder) = match path.strip_suffix(b"/") {
                Some(folder) => (folder, true),
                None => (path, false),
            };
            // Besides the path itself: a file where a folder must go, a folder where a file must.
            let in_the_way = |touched: &Vec<u8>| {
                under(path, touched)
                    || (under(touched, path) && (!is_folder || self.stands(touched)))
            };
            if names.contains(path) || touched.iter().any(in_the_way) {
                dirty.insert(path.to_str_lossy().into_owned());
            }
        }
        Ok(dirty.into_iter().collect())
    }

    fn stands(&self, path: &[u8]) -> bool {
        self.work_tree.join(OsStr::from_bytes(path)).symlink_metadata().is_ok()
    }

    /// Brings index and files of this worktree from one tree to another, touching what differs
    /// only; refused by git when something there is not clean.
    pub fn update_work_tree(&self, old: &Oid, new: &Oid) -> Result<()> {
        // A file that was only touched would be taken for a changed one.
        self.git(["update-index", "-q", "--refresh"]).output()?;
        self.git(["read-tree", "-m", "-u", old.as_str(), new.as_str()]).run()?;
        Ok(())
    }
}

fn under(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}
