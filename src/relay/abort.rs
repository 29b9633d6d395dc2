//! The end of a session whose result is not wanted, or not now.

use super::Driver;
use super::finish::must_not_be_finishing;
use super::leg::HowEnded;
use crate::error::Fault;
use crate::git::{kept_ref, refs};
use crate::host::process;
use crate::model::fsm::Event;
use crate::model::session::State;
use anyhow::Result;

/// What aborting does, or would do.
#[derive(Clone, Debug, Default)]
pub struct Aborted {
    /// The refs that hold the session's work.
    pub kept: Vec<String>,
    /// An agent is, or was, at work.
    pub agent_ends: bool,
}

impl Driver<'_> {
    /// Ends the session: the agent, then everything it left running; its tree is kept by a ref.
    pub fn abort(&mut self) -> Result<Aborted> {
        if self.is_over_untidied(State::Aborted)? {
            self.tidy_again()?;
            return self.aborted(false);
        }
        self.must_not_be_over()?;
        must_not_be_finishing(self.session())?;
        self.must_not_be_moved()?;
        let agent_ends = self.is_agent_alive();
        if self.session().dispatch.is_some() {
            let mut watch = self.attach()?;
            self.end_agent(&mut watch, HowEnded::ByUser)?;
            if let Some(dispatch) = self.session().dispatch.clone() {
                self.sweep(&dispatch.nonce)?;
            }
        }
        // Aborting must always be possible: a tree that cannot be kept, or must not be looked at
        // since its configuration was changed, is left as it is.
        let taken = self.hub.must_not_be_taken(self.session());
        let kept = match self.is_whole() || (taken.is_ok() && self.has_files()) {
            true => self.keep_whole().map(Some),
            false => self.keep_remains(),
        };
        let is_safe = kept.is_ok();
        if let Err(error) = &kept {
            self.notice(format!("{error:#}"));
            let worktree = self.worktree();
            self.notice(format!("the worktree is left as it is: {}", worktree.display()));
        }
        let result = kept.ok().flatten().unwrap_or_default();
        self.step(&Event::Aborted { result }, None)?;
        self.clear_streams()?;
        if is_safe {
            self.leave_ground();
        }
        self.aborted(agent_ends)
    }

    /// What `abort` would do; changes nothing.
    pub fn abort_preview(&self) -> Result<Aborted> {
        self.must_not_be_over()?;
        must_not_be_finishing(self.session())?;
        self.must_not_be_moved()?;
        let mut aborted = self.aborted(self.is_agent_alive())?;
        let name = kept_ref(&self.session().session_id);
        if !aborted.kept.contains(&name) {
            aborted.kept.insert(0, name);
        }
        Ok(aborted)
    }

    fn aborted(&self, agent_ends: bool) -> Result<Aborted> {
        let id = &self.session().session_id;
        let repo = &self.hub.repo;
        let mut kept: Vec<String> = Vec::new();
        if repo.read_ref(&kept_ref(id))?.is_some() {
            kept.push(kept_ref(id));
        }
        let snapshots = repo.list_refs(&format!("{}{id}/", refs::SNAPSHOTS))?;
        kept.extend(snapshots.into_iter().map(|(name, _)| name));
        Ok(Aborted { kept, agent_ends })
    }

    fn is_agent_alive(&self) -> bool {
        let dispatch = self.session().dispatch.as_ref();
        dispatch.and_then(|dispatch| dispatch.process).is_some_and(process::is_alive)
    }

    fn must_not_be_over(&self) -> Result<()> {
        let session = self.session();
        if !session.state.is_end() {
            return Ok(());
        }
        let (id, state) = (&session.session_id, session.state);
        Err(Fault::refused(format!("session '{id}' is {state}")).hint("git relay list").into())
    }

    fn keep_whole(&mut self) -> Result<String> {
        self.check_guard()?;
        self.clear_debris()?;
        let capture = self.capture("the tree when the session was aborted")?;
        self.hold(&capture, "abort")?;
        Ok(capture.name)
    }
}
