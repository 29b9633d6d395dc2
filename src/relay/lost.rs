//! A session ref that somebody moved or deleted while its driver held the lock. Nobody but the
//! driver may move it: the state it knows is kept by another ref, the agent is ended, since it works
//! for a session that is not ours any more, and how to go on is said. Nothing is put back by itself.

use super::{Driver, LEG_VARIABLE};
use crate::git::{moved_ref, session_ref};
use crate::host::process;
use crate::model::names::Oid;
use crate::store::{self, short};
use anyhow::Result;
use rustix::process::Signal;
use std::time::Duration;

/// Between two signals to the agent.
const PATIENCE: Duration = Duration::from_secs(10);

impl Driver<'_> {
    /// What to say of a step that lost a race for the session's own ref: `error` as it is where the
    /// ref stands as it should.
    pub(super) fn of_lost_ref(&mut self, error: anyhow::Error) -> anyhow::Error {
        let id = self.session().session_id.clone();
        let (name, tip) = (session_ref(&id), self.stored.tip.clone());
        let found = match self.hub.repo.read_ref(&name) {
            Ok(Some(at)) if at == tip => return error,
            Ok(Some(at)) => format!("it stands at {}", short(&at)),
            Ok(None) => "it is gone".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        if let Err(error) = self.keep_tip(&tip) {
            self.notice(format!("the state could not be kept: {error:#}"));
        }
        if let Err(error) = self.end_what_works() {
            self.notice(format!("the agent could not be ended: {error:#}"));
        }
        store::lost(&id, &tip, &found).into()
    }

    /// Keeps the state from the collection of garbage.
    fn keep_tip(&self, tip: &Oid) -> Result<()> {
        let name = moved_ref(&self.session().session_id);
        let held = self.hub.repo.read_ref(&name)?;
        self.hub.repo.swap_own_ref(&name, tip, held.as_ref(), "the session's ref was moved")
    }

    fn end_what_works(&mut self) -> Result<()> {
        let Some(dispatch) = self.session().dispatch.clone() else { return Ok(()) };
        let own = self.child.as_ref().and_then(|child| process::identify(child.id()));
        let worker = own.or(dispatch.process).filter(|process| process::is_alive(*process));
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            let Some(worker) = worker.filter(|worker| process::is_alive(*worker)) else { break };
            process::signal_group(worker, signal);
            process::signal_group(worker, Signal::CONT);
            process::wait_end(worker, PATIENCE);
        }
        process::sweep(LEG_VARIABLE, dispatch.nonce.as_str(), Duration::from_secs(2))?;
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        self.tend_terminal(false);
        if worker.is_some() {
            self.notice(format!("{} was ended; its files stay as they are", dispatch.agent));
        }
        Ok(())
    }

    /// At the beginning of a drive: a state that is kept is part of the session's chain again, or
    /// somebody has to say what is to hold.
    pub(super) fn let_go_of_kept(&self) -> Result<()> {
        let id = &self.session().session_id;
        let Some(kept) = self.hub.repo.read_ref(&moved_ref(id))? else { return Ok(()) };
        if !self.hub.repo.is_ancestor(&kept, &self.stored.tip)? {
            let found = format!("it stands at {}", short(&self.stored.tip));
            return Err(store::lost(id, &kept, &found).into());
        }
        self.hub.repo.delete_ref(&moved_ref(id), &kept)
    }
}
