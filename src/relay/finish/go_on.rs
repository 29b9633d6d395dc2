//! A finish that was begun and is not over: killed, or left with conflicts for the user to resolve.

use super::merge::FINISH_VARIABLE;
use super::undo::must_be_unlocked;
use super::{Came, Finished, Order, listed, short_name};
use crate::error::Fault;
use crate::host::process;
use crate::model::session::{FinishKind, Finishing, Session, State};
use crate::relay::Driver;
use anyhow::Result;
use std::time::{Duration, Instant};

/// How long a git whose driver was killed may take to end.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);

impl Driver<'_> {
    /// Why nothing else can be done with the session now, and what can.
    pub(super) fn is_being_finished(&self, finishing: &Finishing) -> anyhow::Error {
        being_finished(self.session(), finishing)
    }

    /// The same of one that was left with conflicts, by what stands there now.
    pub(super) fn is_unresolved(&self, finishing: &Finishing) -> Result<anyhow::Error> {
        let unmerged = match self.place_of(finishing)? {
            Some(repo) => repo.unmerged_paths()?,
            None => return Ok(self.is_being_finished(finishing)),
        };
        if !unmerged.is_empty() {
            let now = Finishing { conflicts: unmerged, ..finishing.clone() };
            return Ok(self.is_being_finished(&now));
        }
        let id = &self.session().session_id;
        let branch = short_name(&finishing.branch);
        Ok(Fault::refused(format!(
            "the conflicts with '{branch}' are resolved, and not committed yet"
        ))
        .hint(format!(
            "git relay finish {id} --continue; or take it back: git relay finish {id} --abort"
        ))
        .into())
    }

    /// For a finish that was begun and not ended: what became of it, if that is the result. What
    /// was killed is taken back; conflicts are left to the user.
    pub(super) fn take_up(&mut self) -> Result<Option<Came>> {
        let Some(finishing) = self.session().finishing.clone() else { return Ok(None) };
        self.check_guard()?;
        self.wait_for_orphans()?;
        if let Some(came) = self.came(&finishing, false)? {
            return Ok(Some(came));
        }
        let is_left = match self.place_of(&finishing)? {
            Some(repo) => !repo.unmerged_paths()?.is_empty(),
            None => false,
        };
        if is_left || !finishing.conflicts.is_empty() {
            return Err(self.is_unresolved(&finishing)?);
        }
        self.take_back(&finishing)?;
        Ok(None)
    }

    /// The user has resolved the conflicts: commits what they have staged.
    pub fn finish_continue(&mut self, order: &Order) -> Result<Finished> {
        if self.is_over_untidied(State::Completed)? {
            return self.finish_after_the_step(order);
        }
        let finishing = self.must_be_finishing()?;
        self.check_guard()?;
        self.check_hooks()?;
        self.wait_for_orphans()?;
        if let Some(came) = self.came(&finishing, true)? {
            return self.conclude_later(came);
        }
        let id = self.session().session_id.clone();
        let back = format!("git relay finish {id} --abort");
        let Some(repo) = self.place_of(&finishing)? else {
            return Err(Fault::refused(format!(
                "'{}' is not checked out where it was, or has moved",
                short_name(&finishing.branch)
            ))
            .hint(back)
            .into());
        };
        let unmerged = repo.unmerged_paths()?;
        if !unmerged.is_empty() {
            let place = repo.work_tree().display();
            let files = listed(&unmerged);
            return Err(Fault::refused(format!("still in conflict: {files} (in '{place}')"))
                .hint(format!("mend them, git add them, then git relay finish {id} --continue"))
                .into());
        }
        must_be_unlocked(&repo, &finishing.branch)?;
        let staged = repo.staged_paths()?;
        if finishing.kind == FinishKind::Squash && staged.is_empty() {
            return self.nothing_is_left(&finishing);
        }
        if finishing.kind == FinishKind::Merge {
            repo.must_be_merging(&finishing.source)?;
        }
        let message = order.message.as_deref();
        let message = message.map_or(finishing.message.clone(), |text| self.message(Some(text)));
        let message = self.message_file(&message)?;
        let code = self.ask_git_to_commit(&repo, &message)?;
        if let Some(came) = self.came(&finishing, true)? {
            return self.conclude_later(came);
        }
        let code = code.map_or("ended by a signal".to_owned(), |code| format!("exit {code}"));
        Err(Fault::refused(format!(
            "your git, or a hook of yours, refused the commit ({code}) and says why above; what you \
             resolved is as you left it"
        ))
        .hint(format!("mend what it complains of, then git relay finish {id} --continue; or {back}"))
        .into())
    }

    /// The conflicts were resolved in favour of what was there.
    fn nothing_is_left(&mut self, finishing: &Finishing) -> Result<Finished> {
        self.take_back_files(finishing)?;
        let left_out = self.left_out_of(&finishing.source)?;
        let (kind, branch) = (finishing.kind, finishing.branch.clone());
        self.conclude_later(Came { kind, branch, commit: None, left_out })
    }

    /// Takes a finish back: the worktree of the user's is exactly what it was before it.
    pub fn finish_abort(&mut self) -> Result<String> {
        let finishing = self.must_be_finishing()?;
        self.check_guard()?;
        self.wait_for_orphans()?;
        if self.placed(&finishing, false)?.is_some() {
            return Err(Fault::refused(format!(
                "the result is on '{}' already",
                short_name(&finishing.branch)
            ))
            .hint(format!("git relay finish {}", self.session().session_id))
            .into());
        }
        self.take_back(&finishing)?;
        Ok(short_name(&finishing.branch).to_owned())
    }

    fn must_be_finishing(&self) -> Result<Finishing> {
        let id = &self.session().session_id;
        self.session().finishing.clone().ok_or_else(|| {
            Fault::refused(format!("no finish of session '{id}' is under way"))
                .hint(format!("git relay status {id}"))
                .into()
        })
    }

    /// A git of an attempt that was killed may still be at it.
    fn wait_for_orphans(&self) -> Result<()> {
        let id = self.session().session_id.as_str();
        let began = Instant::now();
        loop {
            // What it started in the background for good, a signing agent say, is not waited for.
            let found = process::find_by_variable(FINISH_VARIABLE, id);
            let Some(git) = found.into_iter().find(|found| process::is_called(*found, "git"))
            else {
                return Ok(());
            };
            if began.elapsed() > ORPHAN_PATIENCE {
                return Err(Fault::raced(format!(
                    "the git of a finish that was killed is still at work: process {}",
                    git.pid
                ))
                .hint("wait for it to end, then the same again")
                .into());
            }
            process::wait_end(git, Duration::from_millis(50));
        }
    }
}

/// While its result is being put on the user's branch, a session does nothing else.
pub fn must_not_be_finishing(session: &Session) -> Result<()> {
    session.finishing.as_ref().map_or(Ok(()), |finishing| Err(being_finished(session, finishing)))
}

/// Why a session that is being finished can do nothing else, and what to do.
fn being_finished(session: &Session, finishing: &Finishing) -> anyhow::Error {
    let id = &session.session_id;
    let branch = short_name(&finishing.branch);
    if finishing.conflicts.is_empty() {
        return Fault::refused(format!("session '{id}' is being finished into '{branch}'"))
            .hint(format!("git relay finish {id}"))
            .into();
    }
    Fault::refused(format!(
        "the result conflicts with '{branch}' in: {}; the conflicts are left there as git leaves them",
        listed(&finishing.conflicts)
    ))
    .hint(format!(
        "mend them, git add them, then git relay finish {id} --continue; or take it back: git relay finish {id} --abort"
    ))
    .into()
}
