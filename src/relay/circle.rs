//! Agents that hand a task to each other and change nothing: each hand-over is in order, and
//! together they would go on for ever.

use super::Driver;
use crate::model::session::{BreachReason, Request, Snapshot};
use anyhow::Result;

/// Counted in one drive: a person who says `resume` has looked, and means it.
#[derive(Debug, Default)]
pub(super) struct Circle {
    by_agent: bool,
    fruitless: usize,
}

impl Circle {
    /// Keeps who asked for the hand-over that is about to begin.
    pub(super) fn asked(&mut self, request: Option<&Request>) {
        self.by_agent = request.is_some_and(|request| request.by != "user");
    }
}

impl Driver<'_> {
    /// Counts the leg that ended in `snapshot`, if its own agent asked for its end.
    pub(super) fn count_circle(&mut self, snapshot: &Snapshot) -> Result<()> {
        let session = self.session();
        let asked = session.breach.as_ref().is_some_and(|b| b.reason == BreachReason::Request);
        let changed = match &session.snapshot {
            Some(before) => {
                let tip = if before.on_branch { &before.commit } else { &before.parent };
                before.tree != snapshot.tree || *tip != snapshot.parent
            }
            None => {
                let base = &session.workplace.base_commit;
                *base != snapshot.parent || self.hub.repo.tree_of(base)? != snapshot.tree
            }
        };
        if asked && self.circle.by_agent && !changed {
            self.circle.fruitless += 1;
        } else {
            self.circle.fruitless = 0;
        }
        Ok(())
    }

    /// Why nobody is started any more: every agent has passed the task on as it got it.
    pub(super) fn goes_in_circles(&self) -> Option<String> {
        let times = self.circle.fruitless;
        (times > self.session().agents.len()).then(|| {
            format!("the agents hand the task to each other and change nothing, {times} times now")
        })
    }
}
