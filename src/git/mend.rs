//! A session worktree that was deleted, by hand or by its agent, is laid out again.

use super::lock::clear_stale;
use super::worktree::{MAKES_VARIABLE, MARK};
use super::{Repository, branch_ref};
use crate::error::Fault;
use crate::host::{files, process};
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::time::Duration;

impl Repository {
    /// Writes what makes `path` the worktree of `git_dir` on `branch` (short name) again, where it
    /// is missing. No git program runs and no file is checked out: its configuration may have been
    /// rewritten, which can be looked at only once these files are there.
    pub fn lay_worktree(&self, git_dir: &Path, path: &Path, branch: &str) -> Result<()> {
        let failed = || format!("cannot make `{}`", path.display());
        fs::create_dir_all(path).with_context(failed)?;
        if !git_dir.join("HEAD").exists() {
            if self.is_reftable() {
                bail!(
                    Fault::refused(format!("`{}` is gone", git_dir.display()))
                        .hint("git worktree list shows those there are")
                );
            }
            let full = branch_ref(branch);
            let write = |name: &str, text: String| {
                files::replace(&git_dir.join(name), text.as_bytes(), 0o644)
            };
            fs::create_dir_all(git_dir).with_context(failed)?;
            write("commondir", "../..\n".to_owned())?;
            write("gitdir", format!("{}\n", path.join(".git").display()))?;
            write(MARK, format!("{full}\n"))?;
            write("HEAD", format!("ref: {full}\n"))?;
        }
        let pointer = path.join(".git");
        if !pointer.exists() {
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
        if let Some(before) = before {
            read(&[], before)?;
            read(&["-u"], base)?;
        }
        read(&["-u"], from)?;
        read(&[], base)?;
        // Exit 1 only says that something differs.
        self.git(["update-index", "-q", "--refresh"]).output()?;
        Ok(())
    }

    /// An index for a worktree whose files are there and whose index is not.
    pub fn restore_index(&self) -> Result<()> {
        if !self.index_path().exists() {
            self.git(["read-tree", "HEAD"]).run()?;
        }
        Ok(())
    }
}
