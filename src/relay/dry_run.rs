//! The contract that a hand-over would sign now, with nothing written: no object, no ref, no note,
//! no lock. The snapshot is taken into a scratch folder that goes with the command.

use super::pause::snapshot_of;
use super::{Hub, ask};
use crate::error::Fault;
use crate::git::{Caps, Repository};
use crate::host::clock;
use crate::model::digest::Draft;
use crate::model::fsm::{self, Event};
use crate::model::session::{Breach, LegEnd, Outcome, Session, Snapshot, State};
use crate::store::Stored;
use crate::store::audit::sha256;
use anyhow::{Context, Result};

impl Hub {
    /// What would be signed for `breach`; the agent may be at work meanwhile.
    ///
    /// # Errors
    /// Refused where a hand-over would sign nothing: no agent has begun, or the contract is there.
    pub fn dry_run(&self, stored: &Stored, breach: Breach) -> Result<Draft> {
        let mut session = stored.session.clone();
        let id = &stored.session.session_id;
        if matches!(session.state, State::EnvelopeBuilt | State::Dispatched | State::Resuming) {
            let (what, hint) = match session.contract {
                Some(_) => ("its contract is signed already", format!("git relay show {id}")),
                None => ("no agent has begun on it", format!("git relay resume {id}")),
            };
            return Err(Fault::refused(format!("nothing would be signed for '{id}': {what}"))
                .hint(hint)
                .into());
        }
        let found = ask::unfolded(&ask::inbox_path(self, &session), session.inbox_offset)?;
        let (facts, _) = ask::facts(&session, &found.lines);
        session.declared.extend(facts);
        self.must_not_be_moved(&session, &format!("git relay handoff --session {id} --dry-run"))?;
        self.must_not_be_taken(&session)?;
        if !self.worktree(&session).join(".git").exists() {
            return Err(Fault::refused(format!("the session worktree of '{id}' is gone"))
                .hint(format!("git relay resume {id}"))
                .into());
        }
        self.is_as_launched(&session)?;
        let folder = tempfile::Builder::new().prefix("relay-dry-run-").tempdir()?;
        let git_dir = self.git_dir(&session);
        let work =
            Repository::open_pinned(self.repo.common_dir(), &git_dir, &self.worktree(&session))
                .with_context(|| {
                    Fault::refused(format!("the session worktree of '{id}' cannot be read"))
                        .hint(format!("git relay resume {id}"))
                })?;
        let scratch = work.scratch(folder.path())?;
        if session.state == State::Running {
            session = after(&session, &Event::Breached(breach))?;
        }
        if session.state == State::Pausing {
            let leg_end = session.leg_end.clone().unwrap_or(LegEnd {
                outcome: Outcome::Paused,
                detail: None,
                open_items: Vec::new(),
                forced: false,
                resets_at: None,
                at: clock::now(),
            });
            let snapshot = snapshot(&scratch, &session)?;
            session = after(&session, &Event::Snapshotted { leg_end, snapshot })?;
        }
        self.draft(&scratch, stored, &session)
    }

    /// Nothing of git's may run here if the agent has rewritten its configuration.
    pub(super) fn is_as_launched(&self, session: &Session) -> Result<()> {
        let Some(expected) = &session.guard else { return Ok(()) };
        if sha256(&self.guard_facts(session)?.encoded()?) == *expected {
            return Ok(());
        }
        Err(Fault::integrity("configuration was changed during the leg")
            .hint(format!("to hear what: git relay resume {}", session.session_id))
            .into())
    }
}

fn after(session: &Session, event: &Event) -> Result<Session> {
    fsm::step(session, event, clock::now())
        .map_err(|refused| Fault::refused(refused.to_string()).into())
}

fn snapshot(scratch: &Repository, session: &Session) -> Result<Snapshot> {
    let subject = format!("relay: snapshot of session {}, leg {}", session.session_id, session.leg);
    let now = clock::now();
    let taken = scratch.take_snapshot(&Caps::default(), &subject, now.0, None)?;
    Ok(snapshot_of(taken, session.leg, now))
}
