//! Taking a merge back in a worktree of the user's, whatever became of it: finished and staged,
//! left with conflicts, half resolved, or killed half-way. What stands in the files and is neither
//! the merge's nor what was there before is kept by a ref first.

use super::Repository;
use super::objects::mode_word;
use crate::host::files;
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use gix::object::tree::EntryKind;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A merge that is to be taken back.
pub struct Undo<'a> {
    /// The commit that was checked out before; every touched path was clean then.
    pub old: &'a Oid,
    /// What the merge makes of the files, conflicts included.
    pub new: &'a Oid,
    /// What was set aside for the merge, and is put back.
    pub aside: Option<&'a Oid>,
    /// Where to keep what is neither of both, and under which message.
    pub keep: &'a str,
    pub message: &'a str,
    pub time: i64,
}

impl Repository {
    /// Puts every path that the merge touches back to what it was, in index and files, and ends
    /// the merge. Says whether anything had to be kept.
    pub fn undo_merge(&self, undo: &Undo) -> Result<bool> {
        let touched = self.touched_paths(undo.old, undo.new)?;
        let dirty = self.dirty_paths(&touched)?;
        let dirty: Vec<&Vec<u8>> = touched.iter().filter(|path| dirty.contains(path)).collect();
        let mut foreign = Vec::new();
        for path in &dirty {
            let known = [Some(undo.new), Some(undo.old), undo.aside].into_iter().flatten();
            let mut is_known = false;
            for commit in known {
                is_known |= self.holds_beginning(path, commit)?;
            }
            if !is_known {
                foreign.push(path.as_slice());
            }
        }
        if !foreign.is_empty() {
            self.keep_paths(&foreign, undo)?;
        }
        self.restore(&dirty, undo.old)?;
        if let Some(aside) = undo.aside {
            self.put_back(aside)?;
        }
        self.git(["merge", "--quit"]).run()?;
        files::remove(&self.git_dir.join("SQUASH_MSG"))?;
        Ok(!foreign.is_empty())
    }

    /// Forgets a merge of `source` that has come to its end: a git that was killed after it had
    /// made the commit leaves word that it is still at it.
    pub fn forget_merge(&self, source: &Oid, trailer: &str) -> Result<()> {
        let text = |name: &str| fs::read_to_string(self.git_dir.join(name)).unwrap_or_default();
        let head = text("MERGE_HEAD");
        let is_ours = head.contains(source.as_str())
            || (head.is_empty() && text("MERGE_MSG").contains(trailer));
        if is_ours {
            self.git(["merge", "--quit"]).run()?;
        }
        let squashed = text("SQUASH_MSG");
        if squashed.contains(source.as_str()) || squashed.contains(trailer) {
            files::remove(&self.git_dir.join("SQUASH_MSG"))?;
        }
        Ok(())
    }

    /// A commit of `old` with these paths as they stand now, held by the ref.
    fn keep_paths(&self, paths: &[&[u8]], undo: &Undo) -> Result<()> {
        let index = self.git_dir.join("relay-undo-index");
        files::remove(&index)?;
        let git = |args: &[&str]| self.git(args).env("GIT_INDEX_FILE", &index);
        git(&["read-tree", undo.old.as_str()]).run()?;
        let names = paths.join(&0);
        git(&["update-index", "--add", "--remove", "-z", "--stdin"]).stdin(names).run()?;
        let tree = self.tree_of_index(&index).context("git write-tree named no tree")?;
        files::remove(&index)?;
        let held = self.read_ref(undo.keep)?;
        let parents: Vec<Oid> =
            [Some(undo.old.clone()), held.clone()].into_iter().flatten().collect();
        let commit = self.write_commit(&tree, &parents, undo.message, undo.time)?;
        self.durable()?;
        self.swap_own_ref(undo.keep, &commit, held.as_ref(), "finish")
    }

    /// Sets index and files of `paths` to what `to` holds.
    pub(super) fn restore(&self, paths: &[&Vec<u8>], to: &Oid) -> Result<()> {
        let mut files = Vec::new();
        for path in paths {
            match self.entry_at(to, path)? {
                Some(_) => {
                    files.extend_from_slice(path);
                    files.push(0);
                }
                None => self.remove_file(path)?,
            }
        }
        self.stage(paths, to)?;
        if !files.is_empty() {
            self.git(["checkout-index", "-f", "-u", "-z", "--stdin"]).stdin(files).run()?;
        }
        Ok(())
    }

    /// Sets the index of `paths` to what `to` holds.
    pub(super) fn stage(&self, paths: &[&Vec<u8>], to: &Oid) -> Result<()> {
        let tree = self.tree_at(to)?;
        let nothing = "0".repeat(to.as_str().len());
        let mut entries = Vec::new();
        for path in paths {
            let entry = tree.lookup_entry(path.split(|byte| *byte == b'/'))?;
            let word = entry.and_then(|entry| {
                Some((mode_word(entry.mode().kind())?, entry.oid().to_hex().to_string()))
            });
            let line = match word {
                Some((mode, oid)) => format!("{mode} {oid}\t"),
                None => format!("0 {nothing}\t"),
            };
            entries.extend_from_slice(line.as_bytes());
            entries.extend_from_slice(path);
            entries.push(0);
        }
        if !entries.is_empty() {
            self.git(["update-index", "-z", "--index-info"]).stdin(entries).run()?;
        }
        Ok(())
    }

    /// Removes a file of this worktree, and the folders that it leaves empty.
    pub(super) fn remove_file(&self, path: &[u8]) -> Result<()> {
        let on_disk = self.on_disk(path.as_bstr());
        match fs::remove_file(&on_disk) {
            // A folder there is not the merge's.
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
                ) =>
            {
                return Err(error)
                    .with_context(|| format!("cannot remove `{}`", on_disk.display()));
            }
            _ => {}
        }
        let folders = on_disk.ancestors().skip(1).take_while(|folder| *folder != self.work_tree);
        for folder in folders {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the file is missing, or begins what git writes there for `commit`: the doing of a
    /// git that was killed.
    fn holds_beginning(&self, path: &[u8], commit: &Oid) -> Result<bool> {
        let on_disk = self.on_disk(path.as_bstr());
        let Ok(found) = on_disk.symlink_metadata() else { return Ok(true) };
        let tree = self.tree_at(commit)?;
        let Some(entry) = tree.lookup_entry(path.split(|byte| *byte == b'/'))? else {
            return Ok(false);
        };
        let mut name = OsString::from(format!("{commit}:"));
        name.push(OsStr::from_bytes(path));
        let call = self.git(["cat-file"]);
        match entry.mode().kind() {
            EntryKind::Link if found.is_symlink() => {
                let wanted = call.args(["blob"]).args([name]).run()?;
                Ok(link(&on_disk)? == wanted)
            }
            EntryKind::Blob | EntryKind::BlobExecutable if found.is_file() => {
                let wanted = call.args(["--filters"]).args([name]).run()?;
                Ok(wanted.starts_with(&fs::read(&on_disk)?))
            }
            EntryKind::Commit => Ok(found.is_dir()),
            _ => Ok(false),
        }
    }
}

impl Repository {
    /// The tree of an index file; `None` where it has none, say with conflicts in it.
    pub fn tree_of_index(&self, index: &Path) -> Option<Oid> {
        let output = self.git(["write-tree"]).env("GIT_INDEX_FILE", index).run().ok()?;
        Oid::new(output.trim().to_str_lossy())
    }
}

fn link(path: &Path) -> Result<Vec<u8>> {
    let target =
        fs::read_link(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(target.as_os_str().as_bytes().to_vec())
}
