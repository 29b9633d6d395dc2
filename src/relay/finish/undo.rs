//! What became of a finish in the user's worktree: the result, or a merge that is taken back.

use super::{Came, short_name};
use crate::git::undo::Undo;
use crate::git::{Repository, aside_ref, in_the_way, undone_ref};
use crate::host::{clock, files};
use crate::model::fsm::Event;
use crate::model::names::Oid;
use crate::model::session::Finishing;
use crate::relay::Driver;
use anyhow::Result;
use std::path::Path;

impl Driver<'_> {
    pub(super) fn take_back(&mut self, finishing: &Finishing) -> Result<()> {
        self.take_back_files(finishing)?;
        files::remove(&self.message_path())?;
        self.step(&Event::FinishUndone, None)
    }

    pub(super) fn take_back_files(&mut self, finishing: &Finishing) -> Result<()> {
        let Some(repo) = self.place_of(finishing)? else {
            self.notice(format!(
                "'{}' is not checked out where it was, or has moved: no file is put back",
                short_name(&finishing.branch)
            ));
            if finishing.aside.is_some() {
                let kept = aside_ref(&self.session().session_id);
                self.notice(format!("what was not committed there stays reachable as {kept}"));
            }
            return Ok(());
        };
        must_be_unlocked(&repo, &finishing.branch)?;
        let merged = repo.merge_with_head(&finishing.source)?;
        let id = self.session().session_id.clone();
        let keep = undone_ref(&id);
        let kept = repo.undo_merge(&Undo {
            old: &finishing.target,
            new: merged.tree(),
            aside: finishing.aside.as_ref(),
            keep: &keep,
            message: &format!("relay: files as they were when a finish was taken back ({id})"),
            time: clock::now().0,
        })?;
        if kept {
            self.notice(format!("what you had made of the files stays reachable as {keep}"));
        }
        Ok(())
    }

    /// The worktree where the merge was begun, if it is still there and nothing else was done.
    pub(super) fn place_of(&self, finishing: &Finishing) -> Result<Option<Repository>> {
        let hub = &self.hub.repo;
        if hub.read_ref(&finishing.branch)?.as_ref() != Some(&finishing.target) {
            return Ok(None);
        }
        let place = hub.checked_out_at(&finishing.branch)?.filter(|place| place.is_dir());
        let Some(place) = place else { return Ok(None) };
        let repo = self.open_place(&place)?;
        let is_there = repo.head_branch()?.as_ref() == Some(&finishing.branch);
        Ok(is_there.then_some(repo))
    }

    pub(super) fn open_place(&self, place: &Path) -> Result<Repository> {
        let mut repo = Repository::open(place)?;
        repo.set_durability(self.hub.repo.durability());
        Ok(repo)
    }

    pub(super) fn came(&self, finishing: &Finishing, by_user: bool) -> Result<Option<Came>> {
        let Some(commit) = self.arrived(finishing, by_user)? else { return Ok(None) };
        Ok(Some(Came {
            kind: finishing.kind,
            branch: finishing.branch.clone(),
            commit: Some(commit),
            left_out: self.left_out_of(&finishing.source)?,
        }))
    }

    /// The result, if it is on the branch, with nothing left there of a git that was killed then.
    pub(super) fn arrived(&self, finishing: &Finishing, by_user: bool) -> Result<Option<Oid>> {
        let Some(commit) = self.placed(finishing, by_user)? else { return Ok(None) };
        let place = self.hub.repo.checked_out_at(&finishing.branch)?.filter(|place| place.is_dir());
        if let Some(place) = place {
            let repo = self.open_place(&place)?;
            must_be_unlocked(&repo, &finishing.branch)?;
            repo.forget_merge(&finishing.source, &self.trailer())?;
        }
        Ok(Some(commit))
    }

    /// The result, if it is on the branch: the commit after `target` that has our trailer, or that
    /// is a merge of ours. `by_user`: they say that they are done, so it is whatever came first.
    pub(super) fn placed(&self, finishing: &Finishing, by_user: bool) -> Result<Option<Oid>> {
        let repo = &self.hub.repo;
        let Some(tip) = repo.read_ref(&finishing.branch)? else { return Ok(None) };
        if !repo.is_ancestor(&finishing.target, &tip)? {
            return Ok(None);
        }
        let trailer = self.trailer();
        let mut at = tip;
        let mut found = None;
        while at != finishing.target {
            let commit = repo.read_commit(&at)?;
            let Some(parent) = commit.parents.first().cloned() else { return Ok(None) };
            let ours = commit.message.lines().any(|line| line == trailer)
                || commit.parents[1..].contains(&finishing.source);
            if ours || (by_user && parent == finishing.target) {
                found = Some(at);
            }
            at = parent;
        }
        Ok(found)
    }
}

pub(super) fn must_be_unlocked(repo: &Repository, branch: &str) -> Result<()> {
    let Some(lock) = repo.lock_in_the_way(branch) else { return Ok(()) };
    Err(in_the_way(&lock).into())
}
