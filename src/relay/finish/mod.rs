//! The end of a session whose result is wanted. The user's branch moves once, by the user's own git
//! where it is checked out; whatever leaves the session's worktree stays reachable by a ref that is
//! named.

mod aside;
mod branch;
mod go_on;
mod ground;
mod merge;
mod plan;
mod tell;
mod undo;

pub use go_on::must_not_be_finishing;
pub use plan::Preview;

use super::Driver;
use crate::error::Fault;
use crate::git::{branch_ref, kept_ref, result_ref};
use crate::host::files;
use crate::model::fsm::Event;
use crate::model::names::Oid;
use crate::model::session::{FinishKind, State};
use anyhow::{Context, Result};
use plan::Plan;

const PATHS_SAID_MOST: usize = 20;

/// How a session is to be finished.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub kind: FinishKind,
    /// Short name of the branch, where it is not the one the session started from.
    pub into: Option<String>,
    pub message: Option<String>,
    pub include_snapshot: bool,
    /// It was asked for as a preview.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Finished {
    pub kind: FinishKind,
    /// `None` when the branch has all of it already.
    pub commit: Option<Oid>,
    pub branch: String,
    /// The ref that holds the last tree and, below it, every commit of the session.
    pub kept: String,
    /// Paths that no agent committed and that were left out.
    pub left_out: Vec<String>,
}

/// A result that is where it belongs.
struct Came {
    kind: FinishKind,
    /// Full name.
    branch: String,
    commit: Option<Oid>,
    left_out: Vec<String>,
}

impl Driver<'_> {
    /// Brings the session's result to `into` (or the branch it started from).
    ///
    /// # Errors
    /// Refused before anything is changed: an agent may still run, a merge is in progress, the
    /// branch is gone, the worktree where it is checked out is not clean where it would be
    /// touched, the user's hooks or signing say no. Each says what is in the way. Conflicts are
    /// refused too where the branch is checked out nowhere; else they are left there.
    pub fn finish(&mut self, order: &Order) -> Result<Finished> {
        if self.is_over_untidied(State::Completed)? {
            return self.finish_after_the_step(order);
        }
        if let Some(came) = self.take_up()? {
            return self.conclude_later(came);
        }
        self.look_at_rest()?;
        self.fold_inbox()?;
        self.clear_debris()?;
        self.tell_broken_notes()?;
        self.hub.repo.must_have_notes()?;
        if order.kind == FinishKind::Keep {
            return self.finish_in_place();
        }
        let plan = self.plan(order)?;
        self.look_at_target(&plan)?;
        self.hold(&plan.capture, "the tree when the session was finished")?;
        let commit = match self.placed_before(&plan)? {
            Some(made) => Some(made),
            None if plan.is_there_already => None,
            None => Some(self.place(&plan)?),
        };
        let Plan { kind, branch, left_out, .. } = plan;
        self.conclude(Came { kind, branch, commit, left_out })
    }

    /// What `finish` would do; changes nothing.
    pub fn preview(&mut self, order: &Order) -> Result<Preview> {
        match &self.session().finishing {
            Some(finishing) if !finishing.conflicts.is_empty() => {
                return Err(self.is_unresolved(finishing)?);
            }
            _ => must_not_be_finishing(self.session())?,
        }
        // Nothing is mended here that finishing would mend.
        self.is_at_rest()?;
        self.compare_guard()?;
        self.check_hooks()?;
        self.hub.must_have_branch(self.session())?;
        self.preview_of(order)
    }

    /// The checks that every way of finishing begins with. They change nothing.
    fn look_at_rest(&mut self) -> Result<()> {
        self.is_at_rest()?;
        self.check_guard()?;
        self.check_hooks()
    }

    /// Leaves the branch where it is, and ends.
    fn finish_in_place(&mut self) -> Result<Finished> {
        let branch = branch_ref(&self.session().workplace.branch);
        let tip = self.hub.repo.read_ref(&branch)?.ok_or_else(|| {
            Fault::refused(format!("the session's branch '{}' is gone", short_name(&branch)))
                .hint(format!("git relay abort {}", self.session().session_id))
        })?;
        let capture = self.capture("the tree when the session was finished")?;
        self.hold(&capture, "finish")?;
        let left_out = self.hub.repo.touched_paths(&tip, &capture.commit)?;
        let held = self.hub.repo.touched_paths(&self.bare(&tip, None)?, &tip)?;
        if !held.is_empty() {
            let branch = short_name(&branch);
            self.notice(format!(
                "the snapshots on {branch} hold what no agent committed: {}",
                listed(&plan::shown(&held))
            ));
        }
        if tip != self.session().workplace.base_commit {
            self.note_finish(&tip)?;
        }
        self.step(&Event::Finished { result: branch.clone() }, None)?;
        self.clear_streams()?;
        self.leave_ground();
        Ok(Finished {
            kind: FinishKind::Keep,
            commit: Some(tip),
            branch: short_name(&branch).to_owned(),
            kept: capture.name,
            left_out: plan::shown(&left_out),
        })
    }

    /// [`Driver::conclude`], where the session's worktree may have been worked in since the result
    /// was made of it.
    fn conclude_later(&mut self, came: Came) -> Result<Finished> {
        self.hold_what_came_since()?;
        self.conclude(came)
    }

    /// The result is where it belongs: says so in a note and in the state, and tidies up.
    fn conclude(&mut self, came: Came) -> Result<Finished> {
        let hub = self.hub;
        let Came { kind, branch, commit, left_out } = came;
        let id = self.session().session_id.clone();
        hub.repo.durable()?;
        if let Some(commit) = &commit {
            let holder = result_ref(&id);
            let held = hub.repo.read_ref(&holder)?;
            if held.as_ref() != Some(commit) {
                hub.repo.swap_own_ref(&holder, commit, held.as_ref(), "finish")?;
            }
            self.note_finish(commit)?;
        }
        let result = match &commit {
            Some(commit) => commit.clone(),
            None => hub.repo.read_ref(&branch)?.context("the branch was just there")?,
        };
        files::remove(&self.message_path())?;
        self.step(&Event::Finished { result: result.to_string() }, None)?;
        self.clear_streams()?;
        self.leave_ground();
        let branch = short_name(&branch).to_owned();
        Ok(Finished { kind, commit, branch, kept: kept_ref(&id), left_out })
    }

    /// For a session that is over, whose last command was killed (or refused to look at the tree)
    /// before it had tidied away.
    pub(super) fn finish_after_the_step(&mut self, order: &Order) -> Result<Finished> {
        self.tidy_again()?;
        let id = &self.session().session_id;
        let own = branch_ref(&self.session().workplace.branch);
        let kept_in_place = self.session().result.as_ref() == Some(&own);
        let holder = if kept_in_place { own.clone() } else { result_ref(id) };
        let commit = self.hub.repo.read_ref(&holder)?;
        let branch = if kept_in_place { own } else { self.target(order)? };
        Ok(Finished {
            kind: if kept_in_place { FinishKind::Keep } else { order.kind },
            commit,
            branch: short_name(&branch).to_owned(),
            kept: kept_ref(id),
            left_out: Vec::new(),
        })
    }

    /// A commit that an attempt put on a branch without a worktree, before it was killed.
    fn placed_before(&self, plan: &Plan) -> Result<Option<Oid>> {
        let made = self.hub.repo.read_ref(&result_ref(&self.session().session_id))?;
        match made {
            Some(made) if self.hub.repo.is_ancestor(&made, &plan.target)? => Ok(Some(made)),
            _ => Ok(None),
        }
    }
}

/// Paths in a sentence, as many as one can read.
fn listed(paths: &[String]) -> String {
    let mut text = paths[..paths.len().min(PATHS_SAID_MOST)].join(", ");
    if paths.len() > PATHS_SAID_MOST {
        text.push_str(&format!(" and {} more", paths.len() - PATHS_SAID_MOST));
    }
    text
}

fn short_name(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}
