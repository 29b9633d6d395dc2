//! A session worktree that was deleted, by hand or by its agent, is laid out again.

use super::lock::clear_stale;
use super::worktree::{MAKES_VARIABLE, MARK, own_folder};
use super::{Repository, branch_ref};
use crate::error::Fault;
use crate::host::{files, process};
use crate::model::names::{Oid, SessionId};
use crate::model::shell::shell_word;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Of the one line of a file that makes a worktree.
const POINTER_BYTES_MOST: u64 = 64 * 1024;

impl Repository {
    /// Whether git finds its way from `path` to `git_dir` and back.
    pub fn is_laid_out(&self, git_dir: &Path, path: &Path) -> bool {
        let all = ["HEAD", "commondir", "gitdir"].iter().all(|name| !is_torn(&git_dir.join(name)));
        all && !is_torn(&path.join(".git"))
    }

    /// Whether `path` holds files and is not the worktree of `git_dir`, which was deleted there: it
    /// has neither git's pointer nor our own folder, and no file that git's index knows.
    pub fn is_taken(&self, git_dir: &Path, path: &Path) -> bool {
        let is_gone = |name: &str| path.join(name).symlink_metadata().is_err();
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder || !is_gone(".git") || !is_gone(".relay") || is_empty() {
            return false;
        }
        let options = gix::index::decode::Options::default();
        let index = git_dir.join("index");
        let Ok(index) = gix::index::File::at(index, self.gix.object_hash(), false, options) else {
            return true;
        };
        !index.entries().iter().any(|entry| {
            let file = path.join(OsStr::from_bytes(entry.path(&index)));
            let (mtime, number) = (entry.stat.mtime, entry.stat.ino);
            // The number alone is given to another file soon.
            file.symlink_metadata().is_ok_and(|found| {
                let now = (found.ino() as u32, found.mtime() as u32, found.mtime_nsec());
                now == (number, mtime.secs, i64::from(mtime.nsecs))
            })
        })
    }

    /// Where the worktree of `git_dir` is, if git knows it elsewhere than at `path`: `git worktree
    /// move` and `git worktree repair` write that down, and its pointer leads back.
    pub fn moved_to(&self, git_dir: &Path, path: &Path) -> Option<PathBuf> {
        let line = |file: &Path| files::read(file, POINTER_BYTES_MOST).ok().flatten();
        let known = line(&git_dir.join("gitdir"))?;
        let pointer = git_dir.join(OsStr::from_bytes(known.trim_ascii_end()));
        let place = pointer.parent()?.canonicalize().ok()?;
        if path.canonicalize().is_ok_and(|path| path == place) {
            return None;
        }
        let leads = line(&pointer)?;
        let leads =
            place.join(OsStr::from_bytes(leads.strip_prefix(b"gitdir: ")?.trim_ascii_end()));
        (leads.canonicalize().ok()? == git_dir.canonicalize().ok()?).then_some(place)
    }

    /// Refuses a link, or anything else that we did not make, in place of the worktree of session
    /// `id` or of a folder above it: nothing is ever written or read through it.
    pub fn must_be_real(&self, git_dir: &Path, path: &Path, id: &SessionId) -> Result<()> {
        let refused = |found: &Path, what: &str| {
            let (from, to) = (shell_word(found), shell_word(files::aside(found)));
            let found = found.display();
            Fault::integrity(format!("'{found}', of the worktree of session '{id}', is {what}"))
                .hint(format!("move it away: mv {from} {to}; then: git relay resume {id}"))
        };
        let root = self.main_work_tree().unwrap_or(&self.common_dir);
        let inside = path.strip_prefix(root).ok();
        let inside = inside
            .filter(|rest| rest.components().all(|part| matches!(part, Component::Normal(_))));
        let depth = inside.map_or(1, |rest| rest.components().count());
        let above: Vec<&Path> = path.ancestors().take(depth).collect();
        for part in above.into_iter().rev() {
            match fs::symlink_metadata(part) {
                Ok(found) if found.is_symlink() => bail!(refused(part, "a link")),
                Ok(found) if !found.is_dir() => bail!(refused(part, "no folder")),
                _ => {}
            }
        }
        let pointer = path.join(".git");
        match fs::symlink_metadata(&pointer) {
            Ok(found) if found.is_symlink() => bail!(refused(&pointer, "a link")),
            Ok(found) if !found.is_file() => bail!(refused(path, "a repository of its own")),
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
        let text = files::read(&pointer, POINTER_BYTES_MOST)?.unwrap_or_default();
        let leads = text
            .strip_prefix(b"gitdir: ")
            .map(|to| path.join(OsStr::from_bytes(to.trim_ascii_end())));
        let other = leads
            .and_then(|to| to.canonicalize().ok())
            .filter(|to| git_dir.canonicalize().map_or(true, |own| own != *to));
        match other {
            Some(_) => bail!(refused(path, "another repository's")),
            None => Ok(()),
        }
    }

    /// Writes what makes `path` the worktree of `git_dir` on `branch` (short name) again, where it
    /// is missing. No git program runs and no file is checked out: its configuration may have been
    /// rewritten, which can be looked at only once these files are there.
    pub fn lay_worktree(&self, git_dir: &Path, path: &Path, branch: &str) -> Result<()> {
        let failed = || format!("cannot make `{}`", path.display());
        fs::create_dir_all(path).with_context(failed)?;
        if !self.is_laid_out(git_dir, path) {
            if is_torn(&git_dir.join("HEAD")) && self.is_reftable() {
                bail!(
                    Fault::refused(format!("`{}` is gone", git_dir.display()))
                        .hint("git worktree list shows those there are")
                );
            }
            let full = branch_ref(branch);
            let write = |name: &str, text: String| {
                let file = git_dir.join(name);
                if is_torn(&file) { files::replace(&file, text.as_bytes(), 0o644) } else { Ok(()) }
            };
            fs::create_dir_all(git_dir).with_context(failed)?;
            write("commondir", "../..\n".to_owned())?;
            write("gitdir", format!("{}\n", path.join(".git").display()))?;
            write(MARK, format!("{full}\n"))?;
            write("HEAD", format!("ref: {full}\n"))?;
        }
        own_folder(path)?;
        let pointer = path.join(".git");
        if is_torn(&pointer) {
            let text = format!("gitdir: {}\n", git_dir.display());
            files::replace(&pointer, text.as_bytes(), 0o644)?;
        }
        Ok(())
    }

    /// Fills this empty worktree with the files of `from`; without it, with those of its own index.
    /// The index stays as it is, so that what `from` has beyond it is uncommitted again.
    pub fn refill(&self, from: Option<&Oid>) -> Result<()> {
        let has_index = self.index_path().exists();
        if !has_index {
            self.git(["read-tree", "HEAD"]).run()?;
        }
        self.show_skipped()?;
        let scratch = self.git_dir.join("relay-refill");
        fs::remove_file(&scratch).ok();
        let index = match from {
            Some(from) => {
                self.git(["read-tree", from.as_str()]).env("GIT_INDEX_FILE", &scratch).run()?;
                scratch.clone()
            }
            None => self.index_path(),
        };
        // What is in conflict has no one content; git says so by its exit code, and does the rest.
        let call = self.git(["checkout-index", "--all", "--force", "--quiet"]);
        call.env("GIT_INDEX_FILE", &index).output()?;
        fs::remove_file(&scratch).ok();
        // Exit 1 only says that something differs.
        self.git(["update-index", "-q", "--refresh"]).output()?;
        Ok(())
    }

    /// Makes this worktree hold the files of `from`, uncommitted on `base`, which is checked out.
    /// Nobody has worked in it yet. `before` is what an attempt that was killed was at: what it
    /// laid out here and `from` does not have goes again.
    pub fn lay_over(&self, base: &Oid, from: &Oid, before: Option<&Oid>) -> Result<()> {
        let makes = self.work_tree.to_string_lossy().into_owned();
        process::sweep(MAKES_VARIABLE, &makes, Duration::from_secs(2))?;
        clear_stale(&self.index_path())?;
        let read = |words: &[&str], tree: &Oid| {
            let call = self.git(["read-tree", "--reset"]).args(words).args([tree.as_str()]);
            // What a partial clone lacks is fetched: no agent has been at work here.
            call.env("GIT_NO_LAZY_FETCH", "0").env(MAKES_VARIABLE, &makes).run()
        };
        let is_sparse = self.is_sparse();
        if let Some(before) = before {
            if is_sparse {
                for path in self.touched_paths(base, before)? {
                    self.remove_file(&path)?;
                }
            }
            read(&[], before)?;
            read(&["-u"], base)?;
        }
        read(&["-u"], from)?;
        read(&[], base)?;
        if is_sparse {
            // Git has left out what lies outside the sparse checkout.
            self.lay_out_changes(base, from)?;
        }
        // Exit 1 only says that something differs.
        self.git(["update-index", "-q", "--refresh"]).output()?;
        Ok(())
    }

    /// Writes the files in which `from` differs from `base`, wherever they lie.
    fn lay_out_changes(&self, base: &Oid, from: &Oid) -> Result<()> {
        let mut there = Vec::new();
        for change in self.tree_changes(base, from)?.into_iter().filter(|it| it.new.is_some()) {
            there.extend_from_slice(&change.path);
            there.push(0);
        }
        if there.is_empty() {
            return Ok(());
        }
        let index = self.git_dir.join("relay-refill");
        files::remove(&index)?;
        self.git(["read-tree", from.as_str()]).env("GIT_INDEX_FILE", &index).run()?;
        let call = self.git(["checkout-index", "-f", "-z", "--stdin"]).stdin(there);
        call.env("GIT_INDEX_FILE", &index).run()?;
        files::remove(&index)
    }

    /// An index for a worktree whose files are there and whose index is not.
    pub fn restore_index(&self) -> Result<()> {
        if !self.index_path().exists() {
            self.git(["read-tree", "HEAD"]).run()?;
        }
        Ok(())
    }
}

/// A file of one line that is not there, or is not whole: a machine that stops leaves it empty, full
/// of NULs, or holding what another file had.
fn is_torn(file: &Path) -> bool {
    let Ok(Some(bytes)) = files::read(file, POINTER_BYTES_MOST) else { return true };
    let line = bytes.trim_ascii_end();
    let is_whole = match file.file_name().map(OsStr::as_bytes) {
        Some(b"HEAD") => match line.strip_prefix(b"ref:") {
            Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
            None => std::str::from_utf8(line).is_ok_and(|id| Oid::new(id).is_some()),
        },
        Some(b".git") => line.strip_prefix(b"gitdir: ").is_some_and(|path| !path.is_empty()),
        _ => !line.is_empty(),
    };
    // A path may hold anything else.
    !is_whole || line.contains(&0)
}
