//! Which worktree of a repository a folder lies in, and what git says of files there.

use super::{Repository, normal};
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The worktrees of one repository.
#[derive(Debug)]
pub struct Places {
    /// Free of links.
    roots: Vec<PathBuf>,
    known: HashMap<PathBuf, Option<PathBuf>>,
}

/// Where a file stands now, in git's eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In the last commit, and the same.
    Committed,
    /// In the last commit, and other than there.
    Changed,
    /// Not in the last commit, added to the index.
    Added,
    /// Not known to git.
    Untracked,
    Ignored,
    /// In the last commit, and no longer there.
    Deleted,
    /// Neither there nor in the last commit.
    Gone,
}

impl Standing {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Changed => "changed, not committed",
            Self::Added => "added, not committed",
            Self::Untracked => "not tracked",
            Self::Ignored => "ignored",
            Self::Deleted => "deleted, not committed",
            Self::Gone => "not there",
        }
    }
}

impl Repository {
    /// All worktrees of this repository, those whose folders are gone too.
    pub fn places(&self) -> Result<Places> {
        let mut roots: Vec<PathBuf> = self
            .worktrees()?
            .into_iter()
            .filter(|tree| !tree.bare)
            .map(|tree| normal(&tree.path).unwrap_or(tree.path))
            .collect();
        if !roots.iter().any(|root| root == self.work_tree()) {
            roots.push(self.work_tree().to_owned());
        }
        Ok(Places { roots, known: HashMap::new() })
    }

    /// What git says now of these paths, relative to this worktree; a path it cannot be asked about
    /// is left out.
    pub fn standings(&self, paths: &BTreeSet<PathBuf>) -> Result<BTreeMap<PathBuf, Standing>> {
        let mut found = BTreeMap::new();
        if paths.is_empty() {
            return Ok(found);
        }
        let path_of = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let names = || paths.iter().map(|path| path.as_os_str());
        let head = ["--literal-pathspecs", "ls-files", "-z", "--"].map(OsStr::new);
        let tracked = self.git(head.into_iter().chain(names())).run()?;
        for path in tracked.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            found.insert(path_of(path), Standing::Committed);
        }
        let status = ["status", "--porcelain", "-z", "-uall", "--ignored", "--no-renames", "--"];
        let head = ["--literal-pathspecs"].into_iter().chain(status).map(OsStr::new);
        let changed = self.git(head.chain(names())).run()?;
        for entry in changed.split(|byte| *byte == 0).filter(|entry| entry.len() > 3) {
            let standing = match &entry[..2] {
                b"??" => Standing::Untracked,
                b"!!" => Standing::Ignored,
                [b'A', b'D'] => Standing::Gone,
                [b'A', _] => Standing::Added,
                [b'D', _] | [_, b'D'] => Standing::Deleted,
                _ => Standing::Changed,
            };
            found.insert(path_of(&entry[3..]), standing);
        }
        found.retain(|path, _| paths.contains(path));
        let committed = |standing: &Standing| *standing == Standing::Committed;
        let same = found.iter().filter(|(_, standing)| committed(standing));
        let same: BTreeSet<&[u8]> = same.map(|(path, _)| path.as_os_str().as_bytes()).collect();
        for path in self.changed_behind_flags(&same)? {
            found.insert(path_of(&path), Standing::Changed);
        }
        for path in paths {
            // Of an ignored folder only the folder is named.
            let is_there = || self.work_tree().join(path).symlink_metadata().is_ok();
            found.entry(path.clone()).or_insert_with(|| match is_there() {
                true => Standing::Ignored,
                false => Standing::Gone,
            });
        }
        Ok(found)
    }
}

impl Places {
    /// The worktree that `folder` lies in: as it is now or, where it is gone, as it would have.
    /// Not one below which another repository begins on the way there.
    pub fn of(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let place = self.look_up(folder);
        self.known.insert(folder.to_owned(), place.clone());
        place
    }

    fn look_up(&self, folder: &Path) -> Option<PathBuf> {
        let folder = free_of_links(folder)?;
        let root = self
            .roots
            .iter()
            .filter(|root| folder.starts_with(root))
            .max_by_key(|root| root.as_os_str().len())?;
        let between = folder.ancestors().take_while(|above| above != root);
        let is_ours = between.into_iter().all(|above| !above.join(".git").exists());
        is_ours.then(|| root.clone())
    }
}

/// An absolute path without links or dots, of which any part may be missing.
fn free_of_links(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() || path.as_os_str().as_bytes().contains_str("/..") {
        return path.is_absolute().then(|| path.canonicalize().ok()).flatten();
    }
    path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    })
}
