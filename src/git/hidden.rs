//! Tracked files that git is told not to look at: `update-index --assume-unchanged` and
//! `--skip-worktree`, and what a sparse checkout leaves out. Neither gix nor `git status` compares
//! them with the worktree, and an agent writes to them all the same.

use super::Repository;
use super::capture::Captured;
use super::index::doubt_if_recent;
use super::survey::{Findings, Wanted};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::object::tree::EntryKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

impl Repository {
    /// Compares the entries that carry such a flag with what is on disk, by their stat data.
    pub(super) fn look_behind_flags(
        &self,
        found: &mut Findings,
        index: &gix::index::File,
    ) -> Result<()> {
        let is_sparse = self.is_sparse();
        let options = self.gix.stat_options()?;
        let mut folders = Folders { repository: self, known: None };
        for (number, entry) in index.entries().iter().enumerate().filter(|(_, it)| is_hidden(it)) {
            let path = entry.path(index);
            let above = folders.above(path);
            let on_disk = (above == Above::Folder)
                .then(|| gix::index::fs::Metadata::from_path_no_follow(&self.on_disk(path)).ok())
                .flatten();
            let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
            let Some(on_disk) = on_disk else {
                if !skipped || above == Above::Other {
                    found.wanted.entry(path.to_owned()).or_insert(Wanted::Remove);
                } else if !is_sparse {
                    found.miss(path, "it is not there, and git is told to skip it");
                }
                continue;
            };
            let same = Stat::from_fs(&on_disk).is_ok_and(|stat| {
                stat.matches(&entry.stat, options)
                    && !entry.stat.is_racy(index.timestamp(), options)
            });
            // What git looked at all the same (it does in a sparse checkout) is known to differ.
            if !same || found.wanted.contains_key(path) {
                found.hidden.push(number);
                let wanted = Wanted::Write { tracked: true };
                found.wanted.entry(path.to_owned()).or_insert(wanted);
            }
        }
        Ok(())
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.gix.config_snapshot().boolean("core.sparseCheckout") == Some(true)
    }

    /// Takes the flag from entries that somebody has git skip, so that they are laid out as all
    /// others are; what a sparse checkout leaves out stays as it is.
    pub(super) fn show_skipped(&self) -> Result<()> {
        if self.is_sparse() {
            return Ok(());
        }
        let index = self.read_index()?;
        let mut skipped = Vec::new();
        for entry in index.entries().iter().filter(|it| it.flags.contains(Flags::SKIP_WORKTREE)) {
            skipped.extend_from_slice(entry.path(&index));
            skipped.push(0);
        }
        if !skipped.is_empty() {
            let call = self.git(["update-index", "--no-skip-worktree", "-z", "--stdin"]);
            call.stdin(skipped).run()?;
        }
        Ok(())
    }

    /// Takes out again what turned out to be the same, so that its flag stays.
    pub(super) fn settle_hidden(
        found: &mut Findings,
        captured: &mut BTreeMap<BString, Captured>,
        index: &gix::index::File,
        began: SystemTime,
    ) {
        for number in std::mem::take(&mut found.hidden) {
            let entry = &index.entries()[number];
            let path = entry.path(index);
            let is_same = |file: &Captured| file.id == entry.id && mode_of(file.kind) == entry.mode;
            if captured.get(path).is_some_and(is_same)
                && let Some(mut file) = captured.remove(path)
            {
                doubt_if_recent(&mut file.stat, began);
                found.wanted.remove(path);
                found.refreshed.push((number, file.stat));
            }
        }
    }

    /// Which of these paths, relative to this worktree and not changed for git, are changed behind
    /// such a flag.
    pub(super) fn changed_behind_flags(
        &self,
        paths: &BTreeSet<&[u8]>,
    ) -> Result<BTreeSet<BString>> {
        let index = self.read_index()?;
        let mut changed = BTreeSet::new();
        for entry in index.entries().iter().filter(|entry| is_hidden(entry)) {
            let path = entry.path(&index);
            if !paths.contains(path.as_bytes()) {
                continue;
            }
            // A link is not compared: git would read what it leads to.
            let on_disk = self.on_disk(path);
            if !on_disk.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let hash = self.git(["hash-object", "--"]).args([OsStr::from_bytes(path)]);
            let now = hash.run()?;
            if now.trim() != entry.id.to_string().as_bytes() {
                changed.insert(path.to_owned());
            }
        }
        Ok(changed)
    }
}

/// For a walk through the folders: it would pass over one of which all files are flagged. Ignore
/// files keep theirs, which says that they count also where they are not laid out.
pub(super) fn without_flags(index: &gix::index::File) -> gix::index::File {
    let mut index = index.clone();
    for (entry, path) in index.entries_mut_with_paths() {
        if !path.ends_with(b".gitignore") {
            entry.flags.remove(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID);
        }
    }
    index
}

fn is_hidden(entry: &gix::index::Entry) -> bool {
    entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID)
        && entry.stage() == Stage::Unconflicted
        && entry.mode != Mode::COMMIT
        && entry.mode != Mode::DIR
}

pub(super) fn mode_of(kind: EntryKind) -> Mode {
    match kind {
        EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
        EntryKind::Link => Mode::SYMLINK,
        EntryKind::Commit => Mode::COMMIT,
        EntryKind::Blob | EntryKind::Tree => Mode::FILE,
    }
}

/// What the folders above a file are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Folder,
    Gone,
    /// One of them is a link or a file.
    Other,
}

/// Entries come sorted: what is known of the last folder spares a look at most files of a sparse
/// checkout.
struct Folders<'a> {
    repository: &'a Repository,
    /// A folder; where it cannot be reached, the topmost above it that is not one.
    known: Option<(BString, Above)>,
}

impl Folders<'_> {
    fn above(&mut self, path: &BStr) -> Above {
        let folder = path.rfind_byte(b'/').map_or(b"".as_bstr(), |end| path[..end].as_bstr());
        if let Some((known, above)) = &self.known {
            let below = *above != Above::Folder
                && folder.strip_prefix(known.as_slice()).is_some_and(|rest| rest.starts_with(b"/"));
            if known == folder || below {
                return *above;
            }
        }
        let ends = folder.find_iter(b"/").chain((!folder.is_empty()).then_some(folder.len()));
        for part in ends.map(|end| folder[..end].as_bstr()) {
            let above = match self.repository.on_disk(part).symlink_metadata() {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => Above::Other,
                Err(_) => Above::Gone,
            };
            self.known = Some((part.to_owned(), above));
            return above;
        }
        self.known = Some((folder.to_owned(), Above::Folder));
        Above::Folder
    }
}
