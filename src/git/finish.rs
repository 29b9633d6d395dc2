//! Bringing a session's result to the user's branch: a merge in memory, the user's own git where
//! the branch is checked out, and the little that must be known about that worktree before.

use super::Repository;
use super::lock::lock_path;
use super::run::GitCall;
use crate::error::Fault;
use crate::host::files;
use crate::model::names::Oid;
use crate::model::shell::shell_word;
use anyhow::{Context, Result, bail};
use gix::bstr::ByteSlice;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Git's own locks in a worktree's git dir that would stop it in the middle of a merge.
const LOCKABLE: [&str; 5] = ["index", "HEAD", "ORIG_HEAD", "AUTO_MERGE", "MERGE_RR"];

/// How a three-way merge came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Clean: the tree of the result, written and pointed to by nothing.
    Tree(Oid),
    /// The paths in conflict, and the tree as a merge would leave the files; nothing was changed.
    Conflicts { paths: Vec<String>, tree: Oid },
}

impl Merged {
    /// What a worktree holds after the merge.
    pub fn tree(&self) -> &Oid {
        match self {
            Self::Tree(tree) | Self::Conflicts { tree, .. } => tree,
        }
    }
}

impl Repository {
    /// Merges two commits in memory; no worktree, index or ref is looked at or changed.
    pub fn merge(&self, ours: &Oid, theirs: &Oid) -> Result<Merged> {
        self.merge_in_memory(ours.as_str(), theirs)
    }

    /// The same with what is checked out here: byte for byte what `git merge` makes of the files,
    /// whose conflict markers name both sides as they were asked for.
    pub fn merge_with_head(&self, theirs: &Oid) -> Result<Merged> {
        self.merge_in_memory("HEAD", theirs)
    }

    fn merge_in_memory(&self, ours: &str, theirs: &Oid) -> Result<Merged> {
        let call = self.git([
            "merge-tree",
            "--write-tree",
            "--name-only",
            "--no-messages",
            "-z",
            ours,
            theirs.as_str(),
        ]);
        let words = call.words();
        let output = call.output()?;
        let mut fields = output.stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        if !matches!(output.code, Some(0 | 1)) {
            return Err(output.failure(&words));
        }
        let tree = fields.next().and_then(|field| Oid::new(field.to_str_lossy()));
        let tree = tree.context("git merge-tree named no tree")?;
        if output.code == Some(0) {
            return Ok(Merged::Tree(tree));
        }
        let paths: BTreeSet<String> = fields.map(|path| path.to_str_lossy().into_owned()).collect();
        Ok(Merged::Conflicts { paths: paths.into_iter().collect(), tree })
    }

    /// A call of the user's own git in this worktree, in our name where git knows none of theirs.
    pub fn users_git(&self, command: &str) -> Result<GitCall> {
        let call = self.git_as_person([command]);
        let configured = self.config("user.name").is_some() && self.config("user.email").is_some();
        let known = configured
            || self.git_as_person(["var", "GIT_COMMITTER_IDENT"]).output()?.code == Some(0);
        Ok(if known { call } else { call.as_us() })
    }

    /// A commit of the user's on a branch that is checked out nowhere: signed if theirs are.
    pub fn commit_for_user(&self, tree: &Oid, parents: &[Oid], message: &str) -> Result<Oid> {
        let mut call = self.users_git("commit-tree")?.args(["-F", "-"]);
        // Plumbing does not look at the setting by itself.
        if self.is_set("commit.gpgSign")? {
            call = call.args(["-S"]);
        }
        for parent in parents {
            call = call.args(["-p", parent.as_str()]);
        }
        let output = call.args([tree.as_str()]).stdin(message).run()?;
        Oid::new(output.trim().to_str_lossy()).context("git commit-tree named no commit")
    }

    /// Whether a yes-or-no setting is on for the user.
    pub fn is_set(&self, key: &str) -> Result<bool> {
        let call = self.git_as_person(["config", "--type=bool", "--get", key]);
        let words = call.words();
        let output = call.output()?;
        match output.code {
            Some(0) => Ok(output.stdout.trim() == b"true"),
            Some(1) => Ok(false),
            _ => Err(output.failure(&words)),
        }
    }

    /// Which of `names` the user has as hooks.
    pub fn hooks_among(&self, names: &[&str]) -> Vec<String> {
        let folder = self.work_tree.join(self.users_hooks());
        let found = names.iter().filter(|name| folder.join(name).is_file());
        found.map(|name| (*name).to_owned()).collect()
    }

    /// The paths that differ between two commits, or trees.
    pub fn touched_paths(&self, old: &Oid, new: &Oid) -> Result<Vec<Vec<u8>>> {
        Ok(self.tree_changes(old, new)?.into_iter().map(|change| change.path.into()).collect())
    }

    /// Which of `touched` are not clean in this worktree (changed, staged, or in the way of a new
    /// file), and so would be lost by an update.
    pub fn dirty_paths(&self, touched: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        let output = self
            .git(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"])
            .args(["--ignored=matching", "--ignore-submodules=none"])
            .run()?;
        let names: BTreeSet<&[u8]> = touched.iter().map(Vec::as_slice).collect();
        // Git does not say so of these, and would not overwrite them either.
        let mut dirty: BTreeSet<Vec<u8>> =
            self.changed_behind_flags(&names)?.into_iter().map(Vec::from).collect();
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
                dirty.insert(path.to_owned());
            }
        }
        Ok(dirty.into_iter().collect())
    }

    /// Paths whose index entry is not that of HEAD: a commit would take them along.
    pub fn staged_paths(&self) -> Result<Vec<String>> {
        let call = self.git(["diff-index", "--cached", "--name-only", "-z", "--no-renames"]);
        Ok(names(&call.args(["HEAD", "--"]).run()?))
    }

    /// Paths that a merge has left in conflict.
    pub fn unmerged_paths(&self) -> Result<Vec<String>> {
        Ok(names(
            &self.git(["diff", "--name-only", "--diff-filter=U", "-z", "--no-renames"]).run()?,
        ))
    }

    /// Whether there is anything at this path.
    pub fn stands(&self, path: &[u8]) -> bool {
        self.work_tree.join(OsStr::from_bytes(path)).symlink_metadata().is_ok()
    }

    /// A lock that would stop git in the middle of moving `branch` (full name) with this worktree.
    pub fn lock_in_the_way(&self, branch: &str) -> Option<PathBuf> {
        let own = LOCKABLE.map(|name| self.git_dir.join(name));
        let all = own.into_iter().chain([self.ref_path(branch)]);
        all.map(|path| lock_path(&path)).find(|lock| lock.exists())
    }

    /// Whether this worktree is one that we made for a session.
    pub fn is_of_a_session(&self) -> Result<bool> {
        Ok(super::worktree::branch_of(&self.git_dir)?.is_some())
    }

    /// Makes sure that the next commit here is a merge with `theirs`: git writes that down last,
    /// and may have been killed before.
    pub fn must_be_merging(&self, theirs: &Oid) -> Result<()> {
        let path = self.git_dir.join("MERGE_HEAD");
        match fs::read_to_string(&path) {
            Ok(text) if text.lines().any(|line| line.trim() == theirs.as_str()) => Ok(()),
            Ok(_) => bail!(
                Fault::refused(format!(
                    "another merge is in progress in `{}`",
                    self.work_tree.display()
                ))
                .hint(format!("git -C {} status", shell_word(&self.work_tree)))
            ),
            Err(_) => files::replace(&path, format!("{theirs}\n").as_bytes(), 0o644),
        }
    }
}

fn names(output: &[u8]) -> Vec<String> {
    let fields = output.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let names: BTreeSet<String> = fields.map(|path| path.to_str_lossy().into_owned()).collect();
    names.into_iter().collect()
}

fn under(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}
