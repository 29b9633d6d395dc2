//! What differs between HEAD, index and worktree: the list a snapshot is made from.
//!
//! gix looks first, for speed. It gives up as a whole on one file or folder it may not read; then
//! the git program looks, which goes on past such things.

use super::Repository;
use super::capture::special;
use super::objects::mode_word;
use crate::model::session::NotCaptured;
use anyhow::{Result, bail};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::dir::walk::EmissionMode;
use gix::index::entry::{Mode, Stat};
use gix::object::tree::EntryKind;
use gix::status::index_worktree::Item as WorktreeItem;
use gix::status::plumbing::index_as_worktree::{Change, EntryStatus};
use gix::worktree::IndexPersistedOrInMemory;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Ours inside the worktree (envelope and the like): never part of a snapshot.
pub(super) const OWN_FOLDER: &[u8] = b".relay/";

/// What to do with one path that differs between index and worktree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Write { tracked: bool },
    Remove,
}

#[derive(Default)]
pub(super) struct Findings {
    /// HEAD against index.
    pub(super) staged: BTreeMap<BString, Option<(EntryKind, gix::ObjectId)>>,
    /// Index against worktree.
    pub(super) wanted: BTreeMap<BString, Wanted>,
    /// Entries whose content is the same under new stat data.
    pub(super) refreshed: Vec<(usize, Stat)>,
    /// Entries behind a flag that tells git not to look, whose content may differ.
    pub(super) hidden: Vec<usize>,
    pub(super) conflict: bool,
    pub(super) missed: Vec<NotCaptured>,
}

impl Findings {
    pub(super) fn miss(&mut self, path: &BStr, why: impl Into<String>) {
        self.missed.push(NotCaptured { what: path.to_str_lossy().into_owned(), why: why.into() });
    }
}

impl Repository {
    pub(super) fn survey(
        &self,
        index: &gix::index::File,
        head_tree: gix::ObjectId,
    ) -> Result<Findings> {
        let mut found = match self.survey_by_gix(index, head_tree) {
            Ok(found) => found,
            Err(error) => self.survey_by_git().map_err(|second| second.context(error))?,
        };
        self.look_behind_flags(&mut found, index)?;
        self.look_into_submodules(&mut found, index)?;
        Ok(found)
    }

    /// What differs between HEAD, index and worktree; reads content only where stat data cannot
    /// tell, writes nothing.
    fn survey_by_gix(
        &self,
        index: &gix::index::File,
        head_tree: gix::ObjectId,
    ) -> Result<Findings> {
        use gix::status::{Item, Submodule, UntrackedFiles, tree_index::TrackRenames};
        // A walk of our own beside the status, which would not name what is no file and no link.
        // Also where the user has set status.showUntrackedFiles=no.
        let walk = self.gix.dirwalk_options()?.emit_untracked(EmissionMode::Matching);
        let walk = self.gix.dirwalk_iter(
            IndexPersistedOrInMemory::InMemory(super::hidden::without_flags(index)),
            None::<BString>,
            Default::default(),
            walk,
        )?;
        let status = self
            .gix
            .status(gix::progress::Discard)?
            .index(IndexPersistedOrInMemory::InMemory(index.clone()))
            .head_tree(head_tree)
            .untracked_files(UntrackedFiles::None)
            .index_worktree_rewrites(None)
            .tree_index_track_renames(TrackRenames::Disabled)
            .index_worktree_submodules(Submodule::Given {
                // Their commit only: see `submodules` for what is inside.
                ignore: gix::submodule::config::Ignore::Dirty,
                check_dirty: false,
            });
        let mut found = Findings::default();
        let mut links: Vec<BString> = Vec::new();
        for item in status.into_iter(Vec::new())? {
            match item? {
                Item::TreeIndex(change) => note_staged(&mut found, change),
                Item::IndexWorktree(WorktreeItem::Modification {
                    entry,
                    entry_index,
                    rela_path,
                    status,
                }) => {
                    if entry.mode == Mode::COMMIT {
                        links.push(rela_path.clone());
                    }
                    self.note_modified(&mut found, rela_path, entry_index, status);
                }
                Item::IndexWorktree(_) => bail!("gix names what it was told not to look for"),
            }
        }
        for item in walk {
            self.note_untracked(&mut found, &item?.entry);
        }
        // Gitlinks that no .gitmodules describes are not looked at by the status above.
        for entry in index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT) {
            let path = entry.path(index);
            if !links.iter().any(|link| link == path) && self.on_disk(path).join(".git").exists() {
                found.wanted.entry(path.to_owned()).or_insert(Wanted::Write { tracked: true });
            }
        }
        Ok(found)
    }

    fn note_modified(
        &self,
        found: &mut Findings,
        path: BString,
        entry_index: usize,
        status: EntryStatus<(), gix::submodule::Status>,
    ) {
        let wanted = match status {
            EntryStatus::NeedsUpdate(stat) => {
                found.refreshed.push((entry_index, stat));
                return;
            }
            EntryStatus::Conflict { .. } => {
                found.conflict = true;
                match self.on_disk(path.as_bstr()).symlink_metadata() {
                    Ok(_) => Wanted::Write { tracked: true },
                    Err(_) => Wanted::Remove,
                }
            }
            EntryStatus::IntentToAdd => Wanted::Write { tracked: false },
            EntryStatus::Change(Change::Removed) => Wanted::Remove,
            EntryStatus::Change(Change::Modification { .. } | Change::Type { .. }) => {
                Wanted::Write { tracked: true }
            }
            EntryStatus::Change(Change::SubmoduleModification(_)) => {
                Wanted::Write { tracked: true }
            }
        };
        found.wanted.insert(path, wanted);
    }

    fn note_untracked(&self, found: &mut Findings, entry: &gix::dir::Entry) {
        use gix::dir::entry::{Kind, Status};
        let path = entry.rela_path.as_bstr();
        if entry.status != Status::Untracked || path.starts_with(OWN_FOLDER) {
            return;
        }
        match entry.disk_kind {
            Some(Kind::File | Kind::Symlink) => {
                found.wanted.entry(path.to_owned()).or_insert(Wanted::Write { tracked: false });
            }
            Some(Kind::Repository) => found.miss(path, "nested repository"),
            Some(Kind::Untrackable) => self.miss_special(found, path),
            Some(Kind::Directory) => found.miss(path, "folder that cannot be looked into"),
            None => found.miss(path, "cannot be looked at"),
        }
    }

    /// A named pipe or the like, which is never opened.
    pub(super) fn miss_special(&self, found: &mut Findings, path: &BStr) {
        let metadata = self.on_disk(path).symlink_metadata();
        found.miss(path, metadata.ok().and_then(|it| special(&it)).unwrap_or("not a regular file"));
    }

    pub(super) fn on_disk(&self, path: &BStr) -> PathBuf {
        self.work_tree.join(OsStr::from_bytes(path))
    }
}

fn note_staged(found: &mut Findings, change: gix::diff::index::Change) {
    use gix::diff::index::ChangeRef;
    let kind = |mode: Mode| mode.to_tree_entry_mode().map(|mode| mode.kind());
    match change {
        ChangeRef::Addition { location, entry_mode, id, .. }
        | ChangeRef::Modification { location, entry_mode, id, .. } => {
            if let Some(kind) = kind(entry_mode).filter(|kind| mode_word(*kind).is_some()) {
                found.staged.insert(location.into_owned(), Some((kind, id.into_owned())));
            }
        }
        ChangeRef::Deletion { location, .. } => {
            found.staged.entry(location.into_owned()).or_insert(None);
        }
        ChangeRef::Rewrite { source_location, location, entry_mode, id, copy, .. } => {
            if !copy {
                found.staged.entry(source_location.into_owned()).or_insert(None);
            }
            if let Some(kind) = kind(entry_mode) {
                found.staged.insert(location.into_owned(), Some((kind, id.into_owned())));
            }
        }
    }
}
