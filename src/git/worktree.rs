//! Linked worktrees: make, list, remove; and the exclude entry that keeps ours out of sight.

use super::lock::{clear_stale, sync_folder_of};
use super::{Durability, Repository, branch_ref, normal};
use crate::error::Fault;
use crate::host::{files, process};
use crate::model::names::Oid;
use crate::model::shell::shell_word;
use anyhow::{Context, Result, bail};
use gix::bstr::ByteSlice;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In the git dir of a worktree we made, with the name of its branch: only such a one do we ever
/// remove.
pub(super) const MARK: &str = "relay-worktree";
/// What git writes into `locked` while it is still making a worktree.
const INITIALIZING: &[u8] = b"initializing";
/// Set for the git that makes a worktree, and for its children, to the worktree's path.
pub const MAKES_VARIABLE: &str = "GIT_RELAY_MAKES";

/// A worktree as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    pub head: Option<Oid>,
    /// Full ref name; `None` when detached or bare.
    pub branch: Option<String>,
    pub bare: bool,
    /// Its folder is gone.
    pub prunable: bool,
}

impl Repository {
    /// Makes the worktree `path` on the new branch `branch` (short name) at `base`, files checked
    /// out through the filters as `git worktree add` does, hooks off. Doing it twice is fine, also
    /// after a kill in between; a branch or a folder that is not ours is refused. Only one command
    /// at a time may do it for one path.
    pub fn add_worktree(&self, path: &Path, branch: &str, base: &Oid) -> Result<()> {
        let full = branch_ref(branch);
        if let Some(git_dir) = git_dir_of(&self.common_dir, path)?
            && is_made_by_us(&git_dir)
        {
            return Ok(());
        }
        // The git of an attempt that was killed may still be at it.
        let makes = path.to_string_lossy().into_owned();
        process::sweep(MAKES_VARIABLE, &makes, Duration::from_secs(2))?;
        if !self.is_left_whole(path, &full, base)? {
            self.make_worktree(path, branch, &full, base, &makes)?;
        }
        self.fill_worktree(path, &full, base, &makes)
    }

    /// Branch and worktree, no file checked out yet.
    fn make_worktree(
        &self,
        path: &Path,
        branch: &str,
        full: &str,
        base: &Oid,
        makes: &str,
    ) -> Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make `{}`", parent.display()))?;
        }
        if !self.reftable {
            clear_stale(&self.ref_path(full))?;
        }
        // Its own checkout is a `git reset`, which locks the packed refs: killed there, it would
        // leave that lock in everybody's way.
        let call = self.git(["worktree", "add", "--quiet", "--no-checkout"]);
        let call = call.env(MAKES_VARIABLE, makes);
        let call = match self.read_ref(full)? {
            None => {
                let call = call.args(["--no-track", "-b", branch]);
                call.args([path]).args([base.as_str()])
            }
            // Made by an attempt that was killed before the worktree was there.
            Some(tip) if tip == *base && self.checked_out_at(full)?.is_none() => {
                call.args([path]).args([branch])
            }
            Some(_) => bail!(
                Fault::refused(format!("the branch `{branch}` exists already"))
                    .hint(format!("look at it first: git log {}", shell_word(branch)))
            ),
        };
        let words = call.words();
        let output = self.write_refs(call)?;
        if output.code == Some(0) { Ok(()) } else { Err(output.failure(&words)) }
    }

    /// What an attempt that was killed has left at `path`: `true` when git came to its end there.
    /// What is half made is taken away: nobody has worked in it yet.
    fn is_left_whole(&self, path: &Path, full: &str, base: &Oid) -> Result<bool> {
        let name = path.file_name().context("a worktree has a name")?;
        let by_name = self.common_dir.join("worktrees").join(name);
        let Some(git_dir) = git_dir_of(&self.common_dir, path)? else {
            let text = fs::read(by_name.join("gitdir")).unwrap_or_default();
            if !text.trim().is_empty() {
                bail!(
                    Fault::refused(format!("`{}` is another worktree's", by_name.display()))
                        .hint("git worktree list shows it")
                );
            }
            // Killed before git wrote whose it is; git would take another name beside it.
            remove_all(&by_name)?;
            return Ok(false);
        };
        let locked = fs::read(git_dir.join("locked")).unwrap_or_default();
        if locked.starts_with(INITIALIZING) || !path.join(".git").exists() {
            // Of what git makes there, this is all by then; other files would be somebody's.
            files::remove(&path.join(".git"))?;
            fs::remove_dir(path).ok();
            remove_all(&git_dir)?;
            return Ok(false);
        }
        let worktree = Self::open_pinned(&self.common_dir, &git_dir, path)?;
        let ours = worktree.head_branch()?.as_deref() == Some(full);
        if ours && self.read_ref(full)?.as_ref() == Some(base) {
            return Ok(true);
        }
        bail!(
            Fault::refused(format!("`{}` is a worktree already", path.display()))
                .hint("git worktree list shows it")
        )
    }

    /// Checks the files out, and marks the worktree as ours: from then on somebody may work in it.
    fn fill_worktree(&self, path: &Path, full: &str, base: &Oid, makes: &str) -> Result<()> {
        let Some(git_dir) = git_dir_of(&self.common_dir, path)? else {
            bail!("git made `{}` and does not list it", path.display());
        };
        clear_stale(&git_dir.join("index"))?;
        let worktree = Self::open_pinned(&self.common_dir, &git_dir, path)?;
        let call = worktree.git(["read-tree", "--reset", "-u", base.as_str()]);
        // A partial clone may not have these files yet. No agent has been at work here: what is
        // fetched is fetched as the user's own checkout would.
        let call = call.env("GIT_NO_LAZY_FETCH", "0");
        call.env(MAKES_VARIABLE, makes).run()?;
        own_folder(path)?;
        // In one piece: a mark without its branch would count as one.
        files::replace(&git_dir.join(MARK), format!("{full}\n").as_bytes(), 0o644)?;
        self.durable()
    }

    /// Removes a worktree that we made, with everything in it. The caller has made sure that
    /// nothing in it is unsaved. One that is gone already is fine; a folder in its place that is
    /// none stays.
    pub fn remove_worktree(&self, path: &Path) -> Result<()> {
        let name = path.file_name().context("a worktree has a name")?;
        let gone = self.common_dir.join("relay/gone").join(name);
        let Some(git_dir) = git_dir_of(&self.common_dir, path)? else {
            return remove_all(&gone);
        };
        if !is_made_by_us(&git_dir) {
            bail!(
                Fault::refused(format!("`{}` was not made by git relay", path.display()))
                    .hint(format!("git worktree remove {}", shell_word(path)))
            );
        }
        // Not by git: killed half-way it leaves a git dir of which nobody knows whose it was.
        if fs::symlink_metadata(path.join(".git")).is_ok_and(|found| found.is_file()) {
            remove_tree(path)?;
        } else {
            fs::remove_dir(path).ok();
        }
        remove_all(&gone)?;
        files::make_folder(&self.common_dir.join("relay/gone"))?;
        fs::rename(&git_dir, &gone)
            .with_context(|| format!("cannot remove `{}`", git_dir.display()))?;
        remove_all(&gone)?;
        // As git does when the last one goes.
        _ = fs::remove_dir(self.common_dir.join("worktrees"));
        Ok(())
    }

    /// Whether this is a worktree that we made.
    pub fn is_ours(&self) -> bool {
        is_made_by_us(&self.git_dir)
    }

    /// All worktrees, the main one first.
    pub fn worktrees(&self) -> Result<Vec<Worktree>> {
        let output = self.git(["worktree", "list", "--porcelain", "-z"]).run()?;
        let mut found = Vec::new();
        let mut current = Worktree::default();
        for field in output.split(|byte| *byte == 0) {
            let (key, value) = field.split_once_str(" ").unwrap_or((field, b""));
            match key {
                b"worktree" => current.path = PathBuf::from(OsStr::from_bytes(value)),
                b"HEAD" => {
                    current.head = Oid::new(value.to_str_lossy()).filter(|oid| !is_zero(oid));
                }
                b"branch" => current.branch = Some(value.to_str_lossy().into_owned()),
                b"bare" => current.bare = true,
                b"prunable" => current.prunable = true,
                b"" if !current.path.as_os_str().is_empty() => {
                    // Git names a git dir that lies elsewhere in place of its main worktree.
                    if let Some(main) = self.main_work_tree()
                        && !current.bare
                        && current.path == self.common_dir
                    {
                        current.path = main.to_owned();
                    }
                    found.push(std::mem::take(&mut current));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The worktree where a branch (full name) is checked out, or being rebased or bisected.
    pub fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>> {
        let worktrees = self.worktrees()?;
        if let Some(found) = worktrees.iter().find(|tree| tree.branch.as_deref() == Some(branch)) {
            return Ok(Some(found.path.clone()));
        }
        let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        for tree in worktrees {
            let git_dir = match git_dir_of(&self.common_dir, &tree.path)? {
                Some(git_dir) => git_dir,
                None => self.common_dir.clone(),
            };
            let busy = ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"]
                .iter()
                .filter_map(|file| fs::read_to_string(git_dir.join(file)).ok())
                .any(|text| text.trim() == branch || text.trim() == short);
            if busy {
                return Ok(Some(tree.path));
            }
        }
        Ok(None)
    }

    /// Adds a pattern to `info/exclude`, once; says whether it had to.
    pub fn exclude(&self, pattern: &str) -> Result<bool> {
        let path = self.common_dir.join("info/exclude");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        };
        if text.lines().any(|line| line.trim() == pattern.as_bytes()) {
            return Ok(false);
        }
        let mut line = String::new();
        if text.last().is_some_and(|byte| *byte != b'\n') {
            line.push('\n');
        }
        line.push_str(pattern);
        line.push('\n');
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(self.common_dir.join("info"))?;
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(line.as_bytes())?;
            if self.durability == Durability::Full {
                file.sync_all()?;
                sync_folder_of(&path)?;
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(true)
    }
}

/// Whether the worktree of this git dir was made by us, to the end.
pub fn is_made_by_us(git_dir: &Path) -> bool {
    git_dir.join(MARK).exists()
}

/// The branch (full name) of a worktree that we made.
pub(super) fn branch_of(git_dir: &Path) -> Result<Option<String>> {
    let mark = git_dir.join(MARK);
    match fs::read_to_string(&mark) {
        Ok(text) => Ok(Some(text.trim_end().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", mark.display())),
    }
}

/// The git dir that the repository keeps for the linked worktree at `work_tree`.
pub(super) fn git_dir_of(common_dir: &Path, work_tree: &Path) -> Result<Option<PathBuf>> {
    let Ok(wanted) = normal(work_tree) else {
        return Ok(None);
    };
    let folder = common_dir.join("worktrees");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot list `{}`", folder.display()));
        }
    };
    for entry in entries {
        let git_dir = entry.with_context(|| format!("cannot list `{}`", folder.display()))?.path();
        let Ok(text) = fs::read(git_dir.join("gitdir")) else {
            continue;
        };
        let dot_git = git_dir.join(OsStr::from_bytes(text.trim_end()));
        if let Some(path) = dot_git.parent()
            && normal(path).is_ok_and(|path| path == wanted)
        {
            return Ok(Some(git_dir));
        }
    }
    Ok(None)
}

/// Removes a folder with all in it; one that is gone already is fine.
pub(super) fn remove_all(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Makes our folder in a worktree, by which it is known also where its `.git` is gone.
pub(super) fn own_folder(path: &Path) -> Result<()> {
    files::make_folder(&path.join(".relay"))
}

/// Removes a worktree's folder, that which tells it from any other last: killed on the way, it is
/// known again.
fn remove_tree(path: &Path) -> Result<()> {
    let failed = || format!("cannot remove `{}`", path.display());
    for entry in fs::read_dir(path).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if entry.file_name() == ".git" {
            continue;
        }
        match entry.file_type().with_context(failed)?.is_dir() {
            true => remove_all(&entry.path())?,
            false => files::remove(&entry.path())?,
        }
    }
    remove_all(path)
}

fn is_zero(oid: &Oid) -> bool {
    oid.as_str().bytes().all(|byte| byte == b'0')
}
