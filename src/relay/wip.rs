//! The work in progress between hand-overs: `refs/relay/snapshots/<session>/wip`, so that a
//! worktree that is deleted costs a minute of work and not a leg.

use super::{Driver, watch::Watch};
use crate::git::wip_ref;
use crate::host::clock;
use crate::host::config::Secrets;
use crate::model::session::State;
use anyhow::Result;
use std::time::{Instant, SystemTime};

/// The stat cache, in the session's private folder.
const CACHE_FILE: &str = "wip-index";

/// Of this drive.
#[derive(Debug)]
pub(super) struct Wip {
    taken: Instant,
    /// When HEAD of the session worktree had moved last, by its reflog.
    head_moved: Option<SystemTime>,
}

impl Default for Wip {
    fn default() -> Self {
        Self { taken: Instant::now(), head_moved: None }
    }
}

impl Driver<'_> {
    /// Takes one when it is time and the moment is safe: no call is open, or a commit was just made.
    /// The agent goes on meanwhile, and whatever goes wrong here is said and stops nobody.
    pub(super) fn keep_wip(&mut self, watch: &Watch) {
        if self.session().state != State::Running
            || self.wip.taken.elapsed() < self.hub.settings.wip_interval
        {
            return;
        }
        let reflog = self.git_dir().join("logs/HEAD");
        let head_moved = reflog.metadata().and_then(|found| found.modified()).ok();
        // While a command of such an agent runs, its sandbox shows files that are none.
        let committed = head_moved != self.wip.head_moved && watch.seat().agent.debris.is_empty();
        if watch.leg.has_open_call() && !committed {
            return;
        }
        let taken = self.take_wip();
        self.wip = Wip { taken: Instant::now(), head_moved };
        if let Err(error) = taken {
            self.notice_once(format!("no snapshot of the work in progress: {error:#}"));
        }
    }

    fn take_wip(&mut self) -> Result<()> {
        // Filters run: not where the agent has just named them.
        self.hub.is_as_launched(self.session())?;
        let session = self.session().clone();
        let repo = self.worktree_repo()?;
        let pointer = self.worktree().join(".git");
        if !pointer.exists() {
            return Ok(());
        }
        let name = wip_ref(&session.session_id);
        let held = repo.read_ref(&name)?;
        let cache = self.hub.folder(&session.session_id).join(CACHE_FILE);
        let message = format!(
            "relay: work in progress of session {}, leg {}",
            session.session_id, session.leg
        );
        let base = &session.workplace.base_commit;
        let taken = repo.take_wip(&cache, &message, clock::now().0, held.as_ref(), base)?;
        // A tree that is being deleted is no work in progress: the one before is what is wanted.
        if held.as_ref() == Some(&taken.commit) || !pointer.exists() {
            return Ok(());
        }
        // What the one before holds was looked at then.
        let since = held.as_ref().unwrap_or(base);
        let secrets = self.secrets_in(&repo, since, &taken.commit)?;
        let refused = !secrets.is_empty() && self.hub.settings.secrets == Secrets::Refuse;
        for words in secrets {
            self.notice_once(words);
        }
        if refused {
            anyhow::bail!("there are secrets in the work tree, and secrets = \"refuse\"");
        }
        repo.durable()?;
        repo.swap_own_ref(&name, &taken.commit, held.as_ref(), "work in progress")
    }

    /// After a snapshot there is nothing in progress beyond it.
    pub(super) fn settle_wip(&self, snapshot: &crate::model::names::Oid) -> Result<()> {
        let name = wip_ref(&self.session().session_id);
        match self.hub.repo.read_ref(&name)? {
            Some(held) if held != *snapshot => {
                self.hub.repo.swap_own_ref(&name, snapshot, Some(&held), "snapshot")
            }
            _ => Ok(()),
        }
    }
}
