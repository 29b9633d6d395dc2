//! A session worktree that is gone (deleted by hand, by its agent, by a tool that tidies) comes back
//! from what is saved: the work in progress where that is newer than the branch, else the branch.
//! What could not come back is said, here and in the next contract.

use super::{Driver, Hub};
use crate::error::Fault;
use crate::git::{Repository, branch_ref, snapshot_ref, wip_ref};
use crate::host::{clock, files, process};
use crate::model::fsm::Event;
use crate::model::names::Oid;
use crate::model::session::{NotCaptured, SafePoint, Session};
use crate::model::shell::shell_word;
use crate::model::time::Timestamp;
use crate::store::short;
use anyhow::Result;
use std::path::PathBuf;

/// Says that a worktree is being laid out again, and how: a driver may be killed at it.
const MENDING_FILE: &str = "mending";
const FILL: &[u8] = b"fill";
const KEEP: &[u8] = b"keep";

impl Hub {
    /// The ref that holds the newest of a session's work beside its worktree.
    pub fn saved_as(&self, session: &Session) -> String {
        let id = &session.session_id;
        let mut saved = vec![wip_ref(id)];
        saved.extend(session.snapshot.as_ref().map(|it| snapshot_ref(id, it.leg)));
        let is_there = |name: &String| matches!(self.repo.read_ref(name), Ok(Some(_)));
        let branch = branch_ref(&session.workplace.branch);
        saved.into_iter().find(is_there).unwrap_or(branch)
    }

    /// A worktree that lies elsewhere holds the work: none is laid out beside it, and nothing is
    /// saved or taken away without it. `again` is the command that is to be typed again.
    pub fn must_not_be_moved(&self, session: &Session, again: &str) -> Result<()> {
        let (git_dir, worktree) = (self.git_dir(session), self.worktree(session));
        let Some(place) = self.repo.moved_to(&git_dir, &worktree) else { return Ok(()) };
        // It is where it was, and `core.worktree` leads us elsewhere: the guard says so.
        let home =
            self.repo.common_dir().parent().map(|root| root.join(&session.workplace.worktree));
        if home.is_some_and(|home| home.canonicalize().is_ok_and(|home| home == place)) {
            return Ok(());
        }
        let (id, shown) = (&session.session_id, worktree.display());
        let old = shell_word(&worktree);
        let aside = match worktree.symlink_metadata() {
            Ok(_) => format!("mv {old} {} && ", shell_word(files::aside(&worktree))),
            Err(_) => String::new(),
        };
        let back = format!("{aside}mv {} {old}", shell_word(&place));
        Err(Fault::integrity(format!(
            "the worktree of session '{id}' was moved from '{shown}' to '{}'",
            place.display()
        ))
        .hint(format!("move it back: {back} && git worktree repair {old}; then: {again}"))
        .into())
    }

    /// What to do about a worktree that is not there, nobody knows since when and why.
    pub fn way_back(&self, session: &Session) -> String {
        let (id, shown) = (&session.session_id, self.worktree(session).display().to_string());
        let saved = self.saved_as(session);
        format!(
            "if it was moved, move it back to '{shown}' first; else git relay resume {id}, which \
             restores it, or git relay abort {id}, which ends it: both know no uncommitted work \
             after {saved}"
        )
    }

    /// Files of somebody's in the place of a session's worktree: nothing may be done with them.
    pub fn must_not_be_taken(&self, session: &Session) -> Result<()> {
        let (git_dir, worktree) = (self.git_dir(session), self.worktree(session));
        if !self.repo.is_taken(&git_dir, &worktree) {
            return Ok(());
        }
        let (id, shown) = (&session.session_id, worktree.display());
        let saved = self.saved_as(session);
        Err(Fault::integrity(format!(
            "the worktree of session '{id}' was deleted, and '{shown}' holds other files now; the \
             work is saved as {saved}"
        ))
        .hint(format!(
            "for a fresh worktree move them away: mv {} {}; then: git relay resume {id}",
            shell_word(&worktree),
            shell_word(files::aside(&worktree)),
        ))
        .into())
    }
}

impl Driver<'_> {
    /// Whether there is something in the place of the worktree, be it a worktree or not any more.
    pub(super) fn has_files(&self) -> bool {
        std::fs::read_dir(self.worktree()).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".relay"))
        })
    }

    pub(super) fn must_not_be_moved(&self) -> Result<()> {
        let id = &self.session().session_id;
        let again = match self.actor {
            "handoff" => format!("git relay handoff --session {id}"),
            "finish" => format!("git relay finish {id}"),
            "abort" => format!("git relay abort {id}"),
            _ => format!("git relay resume {id}"),
        };
        self.hub.must_not_be_moved(self.session(), &again)
    }

    fn mending_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(MENDING_FILE)
    }

    /// Lays the session worktree out again if it is gone and nobody works in it.
    pub(super) fn mend_worktree(&mut self) -> Result<()> {
        let (git_dir, worktree) = (self.git_dir(), self.worktree());
        let marker = self.mending_path();
        if !self.was_made() {
            return Ok(());
        }
        self.must_not_be_moved()?;
        self.hub.repo.must_be_real(&git_dir, &worktree, &self.session().session_id)?;
        self.hub.must_not_be_taken(self.session())?;
        if self.hub.repo.is_laid_out(&git_dir, &worktree) && !marker.exists() {
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
            files::replace(&marker, if self.has_files() { KEEP } else { FILL }, 0o600)?;
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

    /// After a drive that did not see its agent's end: the machine itself may have stopped, and what
    /// the agent's git had not flushed is torn. Its files are as they are; branch and index are set
    /// right, so that the snapshot takes everything in and the next agent's git works.
    pub(super) fn mend_torn(&mut self) -> Result<()> {
        let process = self.session().dispatch.as_ref().and_then(|dispatch| dispatch.process);
        if self.launched || self.is_sound || process.is_none_or(process::is_alive) {
            return Ok(());
        }
        let repo = self.worktree_repo()?;
        let cleared = repo.clear_empty_objects()?;
        if cleared > 0 {
            self.lose("objects of the repository", format!(
                "{cleared} were empty files and were taken away: the machine stopped before git had \
                 flushed them"
            ));
        }
        let tip = self.branch_again(&repo)?;
        let session = self.session();
        let base = &session.workplace.base_commit;
        let safe_point = session.safe_point.as_ref();
        if safe_point.is_some_and(|safe_point| !repo.is_whole(&safe_point.commit, base)) {
            let safe_point = Some(SafePoint { commit: tip, at: clock::now() });
            self.step(&Event::Observed { readings: Vec::new(), safe_point }, None)?;
        }
        if repo.set_index_right()? {
            self.lose(
                "the index of the session worktree",
                "it was torn and is made anew: what was \
                staged no longer is"
                    .to_owned(),
            );
        }
        self.is_sound = true;
        Ok(())
    }

    /// The branch's tip. One that is gone, or leads to what cannot be read, is set to where it
    /// stood last that is whole.
    fn branch_again(&mut self, repo: &Repository) -> Result<Oid> {
        let session = self.session();
        let name = branch_ref(&session.workplace.branch);
        let base = session.workplace.base_commit.clone();
        let snapshot = session.snapshot.as_ref().filter(|snapshot| snapshot.on_branch);
        let snapshot = snapshot.map(|snapshot| snapshot.commit.clone());
        let tip = repo.read_ref(&name)?;
        let known = snapshot.unwrap_or(base);
        if let Some(tip) = tip.as_ref().filter(|tip| **tip == known || repo.is_whole(tip, &known)) {
            return Ok(tip.clone());
        }
        let stood = self.hub.stood(session)?;
        let to = stood.into_iter().find(|(commit, _)| repo.is_whole(commit, &known));
        let (to, from) = to.ok_or_else(|| {
            let name = &self.session().workplace.branch;
            Fault::integrity(format!("no commit of the branch '{name}' can be read"))
                .hint("git fsck; what it names can come from another clone, or a backup")
        })?;
        repo.set_right(&name, &to)?;
        let why = match tip {
            Some(tip) => format!("its commit {} cannot be read", short(&tip)),
            None => "it was gone".to_owned(),
        };
        let branch = format!("the branch '{}'", self.session().workplace.branch);
        self.lose(&branch, format!("{why}: it begins again at {} ({from})", short(&to)));
        Ok(to)
    }

    /// Says what is lost, here and in the next contract.
    fn lose(&mut self, what: &str, why: String) {
        self.notice(format!("{what}: {why}"));
        self.lost.push(NotCaptured { what: what.to_owned(), why });
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
                     and every ignored file, is lost, unless it was moved",
                    short(saved)
                )
            }
            None => format!(
                "it was gone and is restored from its branch ({}): what was not committed, and every \
                 ignored file, is lost, unless it was moved",
                short(tip)
            ),
        };
        self.notice(format!("{what}: {why}"));
        self.lost.push(NotCaptured { what: "the session worktree".to_owned(), why });
        Ok(())
    }
}
