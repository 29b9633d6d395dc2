//! A session worktree that is gone (deleted by hand, by its agent, by a tool that tidies) comes back
//! from what is saved: the work in progress where that is newer than the branch, else the branch.
//! What could not come back is said, here and in the next contract.

use super::Driver;
use crate::git::{Repository, branch_ref, wip_ref};
use crate::host::{files, process};
use crate::model::names::Oid;
use crate::model::session::NotCaptured;
use crate::model::time::Timestamp;
use crate::store::short;
use anyhow::Result;
use std::path::PathBuf;

/// Says that a worktree is being laid out again, and how: a driver may be killed at it.
const MENDING_FILE: &str = "mending";
const FILL: &[u8] = b"fill";
const KEEP: &[u8] = b"keep";

impl Driver<'_> {
    fn mending_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(MENDING_FILE)
    }

    /// Lays the session worktree out again if it is gone and nobody works in it.
    pub(super) fn mend_worktree(&mut self) -> Result<()> {
        let (git_dir, worktree) = (self.git_dir(), self.worktree());
        let marker = self.mending_path();
        let whole = git_dir.join("HEAD").exists() && worktree.join(".git").exists();
        if !self.was_made() || whole && !marker.exists() {
            return Ok(());
        }
        let process = self.session().dispatch.as_ref().and_then(|dispatch| dispatch.process);
        if process.is_some_and(process::is_alive) {
            // Its own driver will see the end of it.
            return Ok(());
        }
        self.compare_config()?;
        if !marker.exists() {
            // Files that are still there are newer than anything saved.
            let left = std::fs::read_dir(&worktree).is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".relay"))
            });
            files::replace(&marker, if left { KEEP } else { FILL }, 0o600)?;
        }
        let branch = self.session().workplace.branch.clone();
        self.hub.repo.lay_worktree(&git_dir, &worktree, &branch)?;
        // Before git runs in it; what is missing is no change any more.
        self.compare_guard()?;
        let repo = self.worktree_repo()?;
        let tip = self.branch_again(&repo)?;
        if files::read(&marker, 16)?.as_deref() == Some(KEEP) {
            repo.restore_index()?;
            let shown = worktree.display();
            self.notice(format!(
                "the session worktree '{shown}' was no worktree any more: it is again"
            ));
        } else {
            self.fill_again(&repo, &tip)?;
            if self.session().leg == 0 {
                // No agent has worked in it: it gets all that a fresh one gets.
                self.furnish_again()?;
            }
        }
        files::remove(&marker)
    }

    /// The branch's tip; a branch that is gone too begins again where it is known to have been.
    fn branch_again(&mut self, repo: &Repository) -> Result<Oid> {
        let session = self.session();
        let name = branch_ref(&session.workplace.branch);
        if let Some(tip) = repo.read_ref(&name)? {
            return Ok(tip);
        }
        let wip = match repo.read_ref(&wip_ref(&session.session_id))? {
            Some(wip) => repo.read_commit(&wip)?.parents.first().cloned(),
            None => None,
        };
        let snapshot = session.snapshot.as_ref().filter(|snapshot| snapshot.on_branch);
        let snapshot = snapshot.map(|snapshot| snapshot.commit.clone());
        let known = match (wip, snapshot) {
            (Some(wip), Some(snapshot)) if repo.is_ancestor(&snapshot, &wip)? => wip,
            (wip, snapshot) => {
                snapshot.or(wip).unwrap_or_else(|| session.workplace.base_commit.clone())
            }
        };
        repo.swap_own_ref(&name, &known, None, "relay: it was gone")?;
        let branch = session.workplace.branch.clone();
        self.notice(format!(
            "the branch '{branch}' was gone: it begins again at {}",
            short(&known)
        ));
        Ok(known)
    }

    /// The saved tree that goes beyond `tip`, if there is one.
    fn newer_than(&self, repo: &Repository, tip: &Oid) -> Result<Option<Oid>> {
        let session = self.session();
        let wip = repo.read_ref(&wip_ref(&session.session_id))?;
        let aside = session.snapshot.as_ref().filter(|snapshot| !snapshot.on_branch);
        let aside = aside.map(|snapshot| snapshot.commit.clone());
        for saved in wip.into_iter().chain(aside) {
            if saved != *tip && repo.is_ancestor(tip, &saved)? {
                return Ok(Some(saved));
            }
        }
        Ok(None)
    }

    fn fill_again(&mut self, repo: &Repository, tip: &Oid) -> Result<()> {
        let from = self.newer_than(repo, tip)?;
        repo.refill(from.as_ref())?;
        let what = format!("the session worktree '{}'", self.worktree().display());
        let why = match &from {
            Some(saved) => {
                let at = Timestamp::from_epoch(repo.read_commit(saved)?.time);
                let at = at.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
                format!(
                    "it was gone and is restored as saved at {at} ({}): what was written after that, \
                     and every ignored file, is lost",
                    short(saved)
                )
            }
            None => format!(
                "it was gone and is restored from its branch ({}): what was not committed, and every \
                 ignored file, is lost",
                short(tip)
            ),
        };
        self.notice(format!("{what}: {why}"));
        self.lost.push(NotCaptured { what: "the session worktree".to_owned(), why });
        Ok(())
    }
}
