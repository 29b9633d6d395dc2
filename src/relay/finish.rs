//! The two ends of a session. Whatever leaves the worktree stays reachable by a ref that is named.

use super::leg::HowEnded;
use super::{Driver, LEG_VARIABLE};
use crate::error::Fault;
use crate::git::finish::Merged;
use crate::git::{Caps, Repository, branch_ref, kept_ref};
use crate::host::{clock, process};
use crate::model::fsm::{self, Effect, Event};
use crate::model::names::Oid;
use crate::model::note::{self, FINISH_FORMAT, FinishRecord, FinishedLeg};
use crate::model::screen::{first_chars, one_line};
use crate::model::session::{DispatchOutcome, Outcome};
use crate::model::{canon, sign};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// How a session is to be finished.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Short name of the branch, where it is not the one the session started from.
    pub into: Option<String>,
    pub message: Option<String>,
    pub include_snapshot: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Finished {
    /// `None` when the branch has all of it already.
    pub commit: Option<Oid>,
    pub branch: String,
    /// The ref that holds the last tree and, below it, every commit of the session.
    pub kept: String,
    /// Paths that no agent committed and that were left out.
    pub left_out: Vec<String>,
}

impl Driver<'_> {
    /// Ends the session: the agent, then everything it left running; its tree is kept by a ref.
    /// Returns the refs that hold its work.
    pub fn abort(&mut self) -> Result<Vec<String>> {
        if self.session().dispatch.is_some() && !self.session().state.is_end() {
            let mut watch = self.attach()?;
            self.end_agent(&mut watch, HowEnded::ByUser)?;
            if let Some(dispatch) = self.session().dispatch.clone() {
                self.sweep(&dispatch.nonce)?;
            }
        }
        let mut kept = Vec::new();
        let mut is_safe = true;
        if self.git_dir().join("HEAD").exists() && self.worktree().exists() {
            // Aborting must always be possible: a tree that cannot be kept, or must not be looked
            // at since its configuration was changed, is left as it is.
            match self.keep_whole() {
                Ok(name) => kept.push(name),
                Err(error) => {
                    is_safe = false;
                    self.notice(format!("{error:#}"));
                    let worktree = self.worktree();
                    self.notice(format!("the worktree is left as it is: {}", worktree.display()));
                }
            }
        }
        let result = kept.join(" ");
        self.step(&Event::Aborted { result }, None)?;
        self.clear_streams()?;
        if is_safe {
            self.leave_ground();
        }
        Ok(kept)
    }

    /// Brings the session's result to `into` (or the branch it started from) as one commit.
    ///
    /// # Errors
    /// Refused before anything is changed: an agent may still run, a merge is in progress, the
    /// branch is gone, the result conflicts with it, or its worktree is not clean where it would
    /// be touched. Each names the paths.
    pub fn finish(&mut self, order: &Order) -> Result<Finished> {
        self.is_at_rest()?;
        self.fold_inbox()?;
        self.check_guard()?;
        self.clear_debris()?;
        let branch = self.target(order)?;
        let hub = self.hub;
        let target = hub.repo.read_ref(&branch)?.ok_or_else(|| {
            Fault::refused(format!("there is no branch '{}'", short_name(&branch)))
                .hint(format!("git relay finish {} --into BRANCH", self.session().session_id))
        })?;
        let kept = self.keep("the tree when the session was finished")?;
        let last = hub.repo.read_ref(&kept)?.context("it was just kept")?;
        let left_out =
            if order.include_snapshot { Vec::new() } else { self.never_committed(&last)? };
        let base = self.session().workplace.base_commit.clone();
        let tree = hub.repo.tree_with_paths_of(&last, &left_out)?;
        let result = hub.repo.write_commit(&tree, &[base], "relay: result", clock::now().0)?;
        let merged = match hub.repo.merge(&target, &result)? {
            Merged::Tree(tree) => tree,
            Merged::Conflicts(paths) => {
                return Err(Fault::refused(format!(
                    "the result conflicts with '{}' in: {}",
                    short_name(&branch),
                    paths.join(", ")
                ))
                .hint(format!(
                    "git merge {kept}, mend it by hand, commit, then git relay finish {}",
                    self.session().session_id
                ))
                .into());
            }
        };
        let message = match &order.message {
            Some(message) => message.clone(),
            None => self.message(),
        };
        let commit = if merged == hub.repo.read_commit(&target)?.tree {
            None
        } else {
            let commit =
                hub.repo.commit_for_user(&merged, std::slice::from_ref(&target), &message)?;
            self.place(&branch, &target, &commit)?;
            self.note_finish(&commit)?;
            Some(commit)
        };
        let result = commit.as_ref().unwrap_or(&target).to_string();
        self.step(&Event::Finished { result }, None)?;
        self.clear_streams()?;
        self.leave_ground();
        Ok(Finished {
            commit,
            branch: short_name(&branch).to_owned(),
            kept,
            left_out: left_out
                .iter()
                .map(|(path, _)| String::from_utf8_lossy(path).into())
                .collect(),
        })
    }

    fn is_at_rest(&self) -> Result<()> {
        let session = self.session();
        let alive = session.dispatch.as_ref().is_some_and(|dispatch| {
            !process::find_by_variable(LEG_VARIABLE, dispatch.nonce.as_str()).is_empty()
        });
        if session.state.is_end() {
            return Err(Fault::refused(format!(
                "session '{}' is {}",
                session.session_id, session.state
            ))
            .hint("git relay list")
            .into());
        }
        if alive || !matches!(fsm::due(session), Effect::Rest | Effect::Dispatch) {
            return Err(Fault::refused(format!(
                "session '{}' is {}: its work is not at rest",
                session.session_id, session.state
            ))
            .hint(format!("git relay resume {}", session.session_id))
            .into());
        }
        if let Some(operation) = self.worktree_repo()?.operation_in_progress() {
            return Err(Fault::refused(format!(
                "a {operation} is in progress in the session worktree"
            ))
            .hint(format!("git -C '{}' status", self.worktree().display()))
            .into());
        }
        Ok(())
    }

    /// The full name of the branch the result goes to.
    fn target(&self, order: &Order) -> Result<String> {
        let session = self.session();
        match order.into.as_ref().or(session.workplace.base_branch.as_ref()) {
            Some(name) => Ok(branch_ref(name)),
            None => Err(Fault::refused("the session did not start from a branch")
                .hint(format!("git relay finish {} --into BRANCH", session.session_id))
                .into()),
        }
    }

    /// Paths whose content in `last` no agent committed, each with the commit that holds it as it
    /// was committed last (the base, for one that never was). Only a snapshot, or the worktree as
    /// it stands, holds the rest.
    fn never_committed(&self, last: &Oid) -> Result<Vec<(Vec<u8>, Oid)>> {
        let session = self.session();
        let repo = &self.hub.repo;
        let base = &session.workplace.base_commit;
        let snapshots: Vec<Oid> = repo
            .list_refs(&format!("refs/relay/snapshots/{}/", session.session_id))?
            .into_iter()
            .map(|(_, oid)| oid)
            .collect();
        // Newest first: the first commit met that touches a path is the last one that did.
        let mut committed: BTreeMap<Vec<u8>, Oid> = BTreeMap::new();
        for (oid, commit) in repo.commits_between(base, last)? {
            let ours = oid == *last && commit.message.starts_with("relay: ");
            if ours || snapshots.contains(&oid) {
                continue;
            }
            if let Some(parent) = commit.parents.first() {
                for path in repo.touched_paths(parent, &oid)? {
                    committed.entry(path).or_insert_with(|| oid.clone());
                }
            }
        }
        let mut left_out = Vec::new();
        for path in repo.touched_paths(base, last)? {
            let source = committed.remove(&path).unwrap_or_else(|| base.clone());
            if repo.entry_at(&source, &path)? != repo.entry_at(last, &path)? {
                left_out.push((path, source));
            }
        }
        Ok(left_out)
    }

    /// Moves the branch; where it is checked out, that tree goes along if it is clean.
    fn place(&mut self, branch: &str, old: &Oid, new: &Oid) -> Result<()> {
        let hub = self.hub;
        hub.repo.durable()?;
        let Some(place) = hub.repo.checked_out_at(branch)? else {
            return hub.repo.swap_ref(branch, new, Some(old), "relay: finish");
        };
        let repo = Repository::open(&place)?;
        let dirty = repo.dirty_paths(&repo.touched_paths(old, new)?)?;
        if !dirty.is_empty() {
            return Err(Fault::refused(format!(
                "'{}' has changes of yours in: {}",
                place.display(),
                dirty.join(", ")
            ))
            .hint("git stash, then the same again")
            .into());
        }
        let lock = repo.git_dir().join("index.lock");
        if lock.exists() {
            return Err(Fault::refused(format!("'{}' is in the way", lock.display()))
                .hint(format!(
                    "a git command is at work there, or died; if none runs: rm '{}'",
                    lock.display()
                ))
                .into());
        }
        repo.update_work_tree(old, new)?;
        // The branch may be locked, or have moved in this moment: the user's tree goes back.
        hub.repo.swap_ref(branch, new, Some(old), "relay: finish").or_else(|error| {
            repo.update_work_tree(new, old)?;
            Err(error)
        })
    }

    /// The default message: the task, and which legs made it.
    fn message(&self) -> String {
        let session = self.session();
        let mut text = first_chars(&one_line(&session.task), 72);
        text.push_str("\n\n");
        for leg in self.legs() {
            text.push_str(&format!("Relay-Leg: {} {} {}\n", leg.leg, leg.agent, leg.outcome));
        }
        text.push_str(&format!("Relay-Session: {}\n", session.session_id));
        text
    }

    /// Who worked on the session, leg by leg.
    fn legs(&self) -> Vec<FinishedLeg> {
        let session = self.session();
        let received =
            session.dispatches.iter().filter(|d| d.outcome == Some(DispatchOutcome::Received));
        received
            .map(|dispatch| {
                let at = self.hub.contract_of(&self.stored, Some(dispatch.leg)).ok();
                let ended = match &at {
                    Some(stored) => stored.session.leg_end.as_ref(),
                    None => session.leg_end.as_ref().filter(|_| dispatch.leg == session.leg),
                };
                FinishedLeg {
                    leg: dispatch.leg,
                    agent: dispatch.agent.clone(),
                    outcome: ended.map_or(Outcome::Unknown, |end| end.outcome),
                    contract_id: at.and_then(|stored| Some(stored.session.contract?.contract_id)),
                }
            })
            .collect()
    }

    /// A signed record on the result commit, so that the user's own branch tells the story.
    fn note_finish(&self, commit: &Oid) -> Result<()> {
        let record = FinishRecord {
            format: FINISH_FORMAT.to_owned(),
            session_id: self.session().session_id.clone(),
            result_commit: commit.clone(),
            legs: self.legs(),
            created_at: clock::now(),
        };
        let core = canon::encode(&record).context("a finish record can be encoded")?;
        let raw = sign::dearmor(&self.key.sign(sign::CONTRACT_NAMESPACE, &core))?;
        let text = note::write_finish(&core, &record, &raw);
        self.hub.repo.write_note(commit, text.as_bytes(), clock::now().0)
    }

    fn keep_whole(&mut self) -> Result<String> {
        self.check_guard()?;
        self.clear_debris()?;
        self.keep("the tree when the session was aborted")
    }

    /// Commits the worktree as it stands onto the session's kept ref; returns the ref's name.
    pub(super) fn keep(&mut self, why: &str) -> Result<String> {
        let repo = self.worktree_repo()?;
        let id = &self.session().session_id;
        let name = kept_ref(id);
        let message = format!("relay: {why} ({id})");
        let taken = repo.take_snapshot(&Caps::default(), &message, clock::now().0, None)?;
        let held = repo.read_ref(&name)?;
        if let Some(held) = &held
            && repo.read_commit(held)?.tree == taken.tree
        {
            return Ok(name);
        }
        // A clean tree needs no commit of its own: the branch's tip is it.
        let clean = repo.read_commit(&taken.parent)?.tree == taken.tree;
        let commit = if clean { &taken.parent } else { &taken.commit };
        repo.durable()?;
        repo.swap_own_ref(&name, commit, held.as_ref(), why)?;
        Ok(name)
    }

    /// Takes the worktree and the branch away if nothing in them would be lost; else they stay, and
    /// how to remove them is said.
    ///
    /// The session is over by now: what fails here is said, with the command that does it.
    pub(super) fn leave_ground(&mut self) {
        let (worktree, branch) = (self.worktree(), self.session().workplace.branch.clone());
        if let Err(error) = self.try_leave_ground() {
            self.notice(format!("the worktree could not be removed: {error:#}"));
            let worktree = worktree.display();
            self.notice(format!(
                "  git worktree remove --force '{worktree}' && git branch -D {branch}"
            ));
        }
    }

    fn try_leave_ground(&mut self) -> Result<()> {
        let worktree = self.worktree();
        if !worktree.exists() {
            return Ok(());
        }
        let ignored = self.worktree_repo()?.ignored_paths()?;
        let branch = branch_ref(&self.session().workplace.branch);
        if ignored.is_empty() {
            self.hub.repo.remove_worktree(&worktree)?;
            if let Some(tip) = self.hub.repo.read_ref(&branch)? {
                self.hub.repo.delete_ref(&branch, &tip)?;
            }
            return Ok(());
        }
        self.notice(format!(
            "the worktree stays, since it holds ignored files ({}): git worktree remove --force '{}'",
            ignored.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", "),
            worktree.display(),
        ));
        Ok(())
    }
}

fn short_name(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}
