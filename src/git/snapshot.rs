//! The snapshot: the whole session worktree as one commit, without touching index, HEAD or files.
//!
//! gix finds what differs from HEAD (staged and not, untracked, not ignored), the caps are applied
//! to that list, then the content is written through the same filters as `git add`. One file that
//! cannot be captured is named and the rest goes on: `git add` would stop there.

use super::bundle::{Bundle, KeptPack};
use super::capture::Captured;
use super::hidden::mode_of;
use super::index::doubt_if_recent;
use super::objects::written_tree;
use super::survey::{Findings, Wanted};
use super::{Repository, worktree};
use crate::error::Fault;
use crate::model::names::Oid;
use crate::model::session::NotCaptured;
use crate::model::shell::shell_word;
use anyhow::{Result, bail};
use gix::bstr::{BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage};
use gix::object::tree::EntryKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// By path: what stands there then, or nothing.
type Edits = BTreeMap<BString, Option<(EntryKind, gix::ObjectId)>>;

/// Names listed in a snapshot's `staged` and `not_captured`; more are counted.
const NAMES_MOST: usize = 200;

/// How much one snapshot takes in at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub new_files: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { file_bytes: 100 << 20, total_bytes: 2 << 30, new_files: 100_000 }
    }
}

/// What was captured. The commit is an object so far: nothing points to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub commit: Oid,
    pub tree: Oid,
    /// What HEAD stood at: the snapshot's parent.
    pub parent: Oid,
    /// Paths that were staged, the first 200.
    pub staged: Vec<String>,
    /// `merge`, `rebase`, …, `conflict` where only the index says so, or `checkout of …` when HEAD
    /// is not on the session's branch. Such a worktree's index and branch stay as they are.
    pub in_progress: Option<String>,
    pub not_captured: Vec<NotCaptured>,
    /// Where it came in a pack: keeps that until a ref names the commit.
    pub kept: Option<Arc<KeptPack>>,
    /// Files that differ from the parent.
    pub changed: usize,
}

impl Repository {
    /// Captures this worktree. Writes objects and one prepared index, moves nothing; make the
    /// objects durable before anything is made to point to the commit.
    ///
    /// `earlier` is the commit of an attempt that was killed: where it still says exactly what the
    /// worktree holds, it is the result again, whether or not the branch has moved to it.
    pub fn take_snapshot(
        &self,
        caps: &Caps,
        message: &str,
        time: i64,
        earlier: Option<&Oid>,
    ) -> Result<Snapshot> {
        let (snapshot, index) = self.take(self.read_index()?, caps, message, time, earlier)?;
        if snapshot.in_progress.is_none() && self.git_dir != self.common_dir {
            self.prepare_index(&index, &snapshot.tree)?;
        }
        Ok(snapshot)
    }

    /// Captures a worktree of the user's: objects are written, and nothing of it is touched.
    pub fn take_copy(
        &self,
        caps: &Caps,
        message: &str,
        time: i64,
        earlier: Option<&Oid>,
    ) -> Result<Snapshot> {
        let (snapshot, _) = self.take(self.read_index()?, caps, message, time, earlier)?;
        Ok(snapshot)
    }

    /// Captures what differs from HEAD, looked for through `index`; gives that index again, as it
    /// would be of the snapshot's tree.
    pub(super) fn take(
        &self,
        index: gix::index::File,
        caps: &Caps,
        message: &str,
        time: i64,
        earlier: Option<&Oid>,
    ) -> Result<(Snapshot, gix::index::File)> {
        let began = SystemTime::now();
        let branch = worktree::branch_of(&self.git_dir)?;
        let head = self.ground(branch.as_deref())?;
        let head_tree = self.tree_at(&head)?;
        let mut found = self.survey(&index, head_tree.id)?;
        self.apply_caps(&mut found, caps);
        let mut bundle = Bundle::of(found.wanted.len());
        let mut captured = self.capture(&mut found, &index, &mut bundle)?;
        Self::settle_hidden(&mut found, &mut captured, &index, began);
        let staged = staged_names(&found, &index);

        let mut edits = std::mem::take(&mut found.staged);
        for (path, wanted) in &found.wanted {
            match (wanted, captured.get(path)) {
                (Wanted::Write { .. }, Some(file)) => {
                    edits.insert(path.clone(), Some((file.kind, file.id)));
                }
                (Wanted::Write { .. }, None) => {}
                (Wanted::Remove, _) => {
                    edits.insert(path.clone(), None);
                }
            }
        }
        let (tree, kept) = self.edited(head_tree.id, &edits, bundle)?;
        let kept = kept.map(Arc::new);
        let in_progress = self.in_the_way(branch.as_deref(), found.conflict)?;
        let (commit, parent) = match self.still_true(earlier, &head, &tree) {
            Some(again) => again,
            None => {
                let mut parents = vec![head.clone()];
                if let Some(branch) = branch.filter(|_| in_progress.is_some())
                    && let Some(tip) = self.read_ref(&branch)?
                    && !self.is_ancestor(&tip, &head)?
                {
                    // In a rebase, say: the branch's own commits must not fall out of history.
                    parents.push(tip);
                }
                (self.write_commit(&tree, &parents, message, time)?, head)
            }
        };
        let index = self.index_after(index, &found, &captured, began);
        let not_captured = shortened(found.missed);
        let changed = edits.len();
        let snapshot =
            Snapshot { commit, tree, parent, staged, in_progress, not_captured, kept, changed };
        Ok((snapshot, index))
    }

    /// Writes the tree that `edits` make of another, and stores the objects that were kept for it.
    fn edited(
        &self,
        tree: gix::ObjectId,
        edits: &Edits,
        bundle: Option<Bundle>,
    ) -> Result<(Oid, Option<KeptPack>)> {
        let mut gix = self.gix.clone();
        if let Some(bundle) = &bundle {
            bundle.name_to(&mut gix);
        }
        let mut editor = gix.find_tree(tree)?.edit()?;
        // Removals first: a file may stand where a folder was, and the other way round.
        for path in edits.iter().filter(|(_, to)| to.is_none()).map(|(path, _)| path) {
            editor.remove(path.as_bstr())?;
        }
        for (path, (kind, id)) in edits.iter().filter_map(|(path, to)| Some((path, (*to)?))) {
            editor.upsert(path.as_bstr(), kind, id)?;
        }
        let tree = written_tree(&editor)?;
        let Some(mut bundle) = bundle else { return Ok((tree, None)) };
        bundle.take_from(&gix)?;
        Ok((tree, self.store(&bundle)?))
    }

    /// The commit to build on: what is checked out, or the session's own branch where that has no
    /// commit (`git checkout --orphan`).
    fn ground(&self, branch: Option<&str>) -> Result<Oid> {
        if let Some(head) = self.head_commit()? {
            return Ok(head);
        }
        if let Some(branch) = branch
            && let Some(tip) = self.read_ref(branch)?
        {
            return Ok(tip);
        }
        bail!(Fault::refused("there is no commit yet to build on").hint(match branch {
            Some(branch) => format!(
                "the branch is gone; git reflog shows where it was: git branch {} COMMIT",
                shell_word(branch.strip_prefix("refs/heads/").unwrap_or(branch))
            ),
            None => "git commit --allow-empty -m begin".to_owned(),
        }))
    }

    /// What keeps the snapshot off the session's branch, in a word or two.
    fn in_the_way(&self, branch: Option<&str>, conflict: bool) -> Result<Option<String>> {
        if let Some(operation) = self.operation_in_progress() {
            return Ok(Some(operation.to_owned()));
        }
        if conflict {
            return Ok(Some("conflict".to_owned()));
        }
        let Some(branch) = branch else {
            return Ok(None);
        };
        Ok(match self.head_branch()? {
            Some(head) if head == branch => None,
            Some(head) => {
                Some(format!("checkout of {}", head.strip_prefix("refs/heads/").unwrap_or(&head)))
            }
            None => Some("checkout of no branch".to_owned()),
        })
    }

    /// An earlier snapshot that holds this tree and stands on, or is, what is checked out.
    fn still_true(&self, earlier: Option<&Oid>, head: &Oid, tree: &Oid) -> Option<(Oid, Oid)> {
        let earlier = earlier?;
        let commit = self.read_commit(earlier).ok()?;
        let parent = commit.parents.first()?;
        let here = head == earlier || head == parent;
        (here && commit.tree == *tree).then(|| (earlier.clone(), parent.clone()))
    }

    /// Takes out what is above the caps. Tracked files come first, so that a flood of new files
    /// never pushes out an edit.
    fn apply_caps(&self, found: &mut Findings, caps: &Caps) {
        let mut total = 0_u64;
        let mut new_files = 0_usize;
        let mut left_out: Vec<(BString, String)> = Vec::new();
        for tracked_turn in [true, false] {
            for (path, wanted) in &found.wanted {
                let Wanted::Write { tracked } = wanted else {
                    continue;
                };
                if *tracked != tracked_turn {
                    continue;
                }
                let Ok(metadata) = self.on_disk(path.as_bstr()).symlink_metadata() else {
                    continue;
                };
                if !metadata.is_file() {
                    continue;
                }
                let size = metadata.len();
                let why = if size > caps.file_bytes {
                    format!("{size} bytes, more than {} a file", caps.file_bytes)
                } else if total.saturating_add(size) > caps.total_bytes {
                    format!("the snapshot would hold more than {} bytes", caps.total_bytes)
                } else if !tracked && new_files >= caps.new_files {
                    format!("more than {} new files", caps.new_files)
                } else {
                    total += size;
                    new_files += usize::from(!tracked);
                    continue;
                };
                left_out.push((path.clone(), why));
            }
        }
        for (path, why) in left_out {
            found.wanted.remove(&path);
            found.miss(path.as_bstr(), why);
        }
    }

    /// The index that matches the snapshot's tree.
    fn index_after(
        &self,
        mut index: gix::index::File,
        found: &Findings,
        captured: &BTreeMap<BString, Captured>,
        began: SystemTime,
    ) -> gix::index::File {
        for (entry_index, stat) in &found.refreshed {
            index.entries_mut()[*entry_index].stat = *stat;
        }
        index.remove_entries(|_, path, entry| {
            entry.stage() != Stage::Unconflicted
                || entry.flags.contains(Flags::INTENT_TO_ADD)
                || captured.contains_key(path)
                || found.wanted.get(path) == Some(&Wanted::Remove)
        });
        for (path, file) in captured {
            let mode = mode_of(file.kind);
            index.dangerously_push_entry(file.stat, file.id, Flags::empty(), mode, path.as_bstr());
        }
        index.sort_entries();
        for entry in index.entries_mut() {
            if entry.mode != Mode::COMMIT {
                doubt_if_recent(&mut entry.stat, began);
            }
        }
        index.remove_tree();
        index.remove_resolve_undo();
        index
    }
}

fn staged_names(found: &Findings, index: &gix::index::File) -> Vec<String> {
    found
        .staged
        .keys()
        .filter(|path| {
            !index
                .entry_by_path(path.as_bstr())
                .is_some_and(|entry| entry.flags.contains(Flags::INTENT_TO_ADD))
        })
        .take(NAMES_MOST)
        .map(|path| path.to_str_lossy().into_owned())
        .collect()
}

fn shortened(mut missed: Vec<NotCaptured>) -> Vec<NotCaptured> {
    missed.sort_by(|a, b| a.what.cmp(&b.what));
    missed.dedup();
    if missed.len() > NAMES_MOST {
        let more = missed.len() - NAMES_MOST;
        missed.truncate(NAMES_MOST);
        missed.push(NotCaptured { what: format!("{more} more"), why: "not listed here".into() });
    }
    missed
}
