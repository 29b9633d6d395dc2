//! The end of a session whose result is not wanted, or not now.

use super::finish::must_not_be_finishing;
use super::leg::HowEnded;
use super::{Driver, Hub, ask, not_in_a_leg};
use crate::git::{kept_ref, refs};
use crate::host::{lock, process};
use crate::model::fsm::Event;
use crate::model::names::SessionId;
use crate::model::session::State;
use anyhow::Result;
use rustix::process::Signal;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a driver that was asked may take to end its agent.
const PATIENCE: Duration = Duration::from_secs(60);

/// What aborting does, or would do.
#[derive(Clone, Debug, Default)]
pub struct Aborted {
    /// The refs that hold the session's work.
    pub kept: Vec<String>,
    /// An agent is, or was, at work.
    pub agent_ends: bool,
}

impl Hub {
    /// Asks the command that has an agent of this session at work to end it, as Ctrl-C there does,
    /// and waits until it lets go; `tell` hears first who that is. One that only ends by its person
    /// is left to refuse us.
    pub fn stop_driver(&self, id: &SessionId, tell: impl Fn(u32)) -> Result<()> {
        not_in_a_leg()?;
        let path = self.lock_path(id);
        let Some(driver) = lock::holder(&path).and_then(process::identify) else { return Ok(()) };
        let session = self.load(id)?.session;
        let agent = session.dispatch.as_ref().and_then(|dispatch| dispatch.process);
        if ask::is_inside(&session)
            || session.finishing.is_some()
            || process::is_stopped(driver)
            || !agent.is_some_and(process::is_alive)
        {
            return Ok(());
        }
        tell(driver.pid);
        process::signal(driver, Signal::INT);
        let until = Instant::now() + PATIENCE;
        while lock::is_held(&path) && Instant::now() < until {
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Ends the session: the agent, then everything it left running; its tree is kept by a ref.
    pub fn abort(&mut self) -> Result<Aborted> {
        if self.is_over_untidied(State::Aborted)? {
            self.tidy_again()?;
            return self.aborted(false);
        }
        ask::must_not_be_over(self.session())?;
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
        ask::must_not_be_over(self.session())?;
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

    fn keep_whole(&mut self) -> Result<String> {
        self.check_guard()?;
        self.clear_debris()?;
        let capture = self.capture("the tree when the session was aborted")?;
        self.hold(&capture, "abort")?;
        Ok(capture.name)
    }
}
