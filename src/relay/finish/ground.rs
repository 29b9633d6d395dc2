//! The session's own worktree and branch at its end: what they hold is kept by a ref, then they go.

use crate::git::{Caps, KeptPack, branch_ref, kept_ref};
use crate::host::clock;
use crate::model::names::Oid;
use crate::model::screen::line;
use crate::model::session::{NotCaptured, State};
use crate::model::shell::shell_word;
use crate::relay::Driver;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

/// What git notes in a worktree's git dir of commits that a merge, rebase or pick is about.
const PENDING: [&str; 5] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "rebase-merge/orig-head"];

/// In the worktree's git dir: all that is in the worktree is held, and it is being removed.
const GOING_FILE: &str = "relay-going";

/// The worktree as one commit that nothing holds yet.
pub(in crate::relay) struct Capture {
    /// The ref that is to hold it, and what that holds now.
    pub(in crate::relay) name: String,
    held: Option<Oid>,
    pub(in crate::relay) commit: Oid,
    is_made: bool,
    /// What is in the worktree and not in the commit.
    missed: Vec<NotCaptured>,
    /// See [`git::Snapshot`](crate::git::Snapshot).
    _kept: Option<Arc<KeptPack>>,
}

impl Capture {
    /// The commit, where it is one of ours that stands on what was committed there.
    pub(super) fn made(&self) -> Option<&Oid> {
        self.is_made.then_some(&self.commit)
    }
}

impl Driver<'_> {
    /// Captures the worktree as it stands; moves nothing.
    pub(in crate::relay) fn capture(&self, why: &str) -> Result<Capture> {
        let repo = self.worktree_repo()?;
        let id = &self.session().session_id;
        let name = kept_ref(id);
        let message = format!("relay: {why} ({id})");
        let taken = repo.take_snapshot(&Caps::default(), &message, clock::now().0, None)?;
        let held = repo.read_ref(&name)?;
        let pending = self.pending_commits();
        // A clean tree needs no commit of its own: the branch's tip is it.
        let is_clean = taken.in_progress.is_none() && pending.is_empty();
        let is_made = !is_clean || repo.tree_of(&taken.parent)? != taken.tree;
        let commit = if !is_made {
            taken.parent
        } else if pending.is_empty() {
            taken.commit
        } else {
            let mut parents = repo.read_commit(&taken.commit)?.parents;
            parents.extend(pending.into_iter().filter(|oid| repo.has_object(oid)));
            repo.write_commit(&taken.tree, &parents, &message, clock::now().0)?
        };
        // Taken already, by an attempt that was killed.
        let again = held.as_ref().filter(|held| {
            repo.tree_of(held).is_ok_and(|tree| tree == taken.tree)
                && repo.read_commit(held).ok().map(|held| held.parents)
                    == repo.read_commit(&commit).ok().map(|commit| commit.parents)
        });
        let commit = again.cloned().unwrap_or(commit);
        let (missed, _kept) = (taken.not_captured, taken.kept);
        Ok(Capture { name, held, commit, is_made, missed, _kept })
    }

    /// Makes the session's ref hold what was captured.
    pub(in crate::relay) fn hold(&self, capture: &Capture, why: &str) -> Result<()> {
        if capture.held.as_ref() == Some(&capture.commit) {
            return Ok(());
        }
        self.hub.repo.durable()?;
        self.hub.repo.swap_own_ref(&capture.name, &capture.commit, capture.held.as_ref(), why)
    }

    /// Holds what was done in the worktree after it was captured, beside that, or could not be read
    /// then. What cannot be captured even so is given back.
    pub(in crate::relay) fn hold_what_came_since(&self) -> Result<Vec<NotCaptured>> {
        if !self.is_whole() {
            return Ok(Vec::new());
        }
        let repo = &self.hub.repo;
        let why = match self.session().state {
            State::Aborted => "the tree when the session was aborted",
            _ => "the tree when the session was finished",
        };
        let mut capture = self.capture(why)?;
        if let Some(held) = &capture.held
            && !repo.is_ancestor(held, &capture.commit)?
        {
            let parents = repo.read_commit(&capture.commit)?.parents;
            let tree = repo.tree_of(&capture.commit)?;
            let mut is_held = tree == repo.tree_of(held)?;
            for parent in &parents {
                is_held = is_held && repo.is_ancestor(parent, held)?;
            }
            if is_held || repo.is_ancestor(&capture.commit, held)? {
                return Ok(capture.missed);
            }
            let id = &self.session().session_id;
            let message = format!("relay: {why} ({id})");
            let parents = [capture.commit, held.clone()];
            capture.commit = repo.write_commit(&tree, &parents, &message, clock::now().0)?;
        }
        self.hold(&capture, "finish")?;
        Ok(capture.missed)
    }

    /// Commits that only an operation in progress may name.
    fn pending_commits(&self) -> BTreeSet<Oid> {
        let texts =
            PENDING.iter().filter_map(|name| fs::read_to_string(self.git_dir().join(name)).ok());
        let words: Vec<String> = texts
            .flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>())
            .collect();
        words.into_iter().filter_map(Oid::new).collect()
    }

    /// Whether worktree and git dir of the session are both there.
    pub(in crate::relay) fn is_whole(&self) -> bool {
        self.hub.repo.is_laid_out(&self.git_dir(), &self.worktree())
    }

    /// Whether the session is over, `end` being how, and something of it lies about yet.
    pub(in crate::relay) fn is_over_untidied(&self, end: State) -> Result<bool> {
        if self.session().state != end {
            return Ok(false);
        }
        let branch = branch_ref(&self.session().workplace.branch);
        let goes = !self.keeps_branch() && self.hub.repo.read_ref(&branch)?.is_some();
        let is_taken = self.hub.must_not_be_taken(self.session()).is_err();
        Ok(goes || (self.worktree().exists() && !is_taken) || self.git_dir().exists())
    }

    /// Whether the session was finished with its branch as the result.
    fn keeps_branch(&self) -> bool {
        let branch = branch_ref(&self.session().workplace.branch);
        self.session().result.as_ref() == Some(&branch)
    }

    /// The tree is looked at only as git was configured for its agent.
    pub(in crate::relay) fn tidy_again(&mut self) -> Result<()> {
        if self.is_whole() {
            self.check_guard()?;
        }
        self.clear_streams()?;
        self.leave_ground();
        Ok(())
    }

    /// Takes the worktree and the branch away if nothing in them would be lost; else they stay, and
    /// how to remove them is said.
    ///
    /// The session is over by now: what fails here is said, with the command that does it.
    pub(in crate::relay) fn leave_ground(&mut self) {
        let (worktree, branch) = (self.worktree(), self.session().workplace.branch.clone());
        if let Err(error) = self.try_leave_ground() {
            self.notice(format!("the worktree could not be removed: {error:#}"));
            self.notice(format!(
                "  git worktree remove --force {} && git branch -D {}",
                shell_word(worktree),
                shell_word(branch)
            ));
        }
    }

    fn try_leave_ground(&mut self) -> Result<()> {
        let worktree = self.worktree();
        // Half gone: a command was killed here that had found nothing to be lost.
        let ignored =
            if self.is_whole() { self.worktree_repo()?.ignored_paths()? } else { Vec::new() };
        if !ignored.is_empty() {
            self.notice(format!(
                "the worktree stays, since it holds ignored files ({}): git worktree remove --force {}",
                ignored.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", "),
                shell_word(&worktree),
            ));
            return Ok(());
        }
        // A removal that was broken off had found nothing to be lost; what it left is no work.
        let going = self.git_dir().join(GOING_FILE);
        let missed = if going.exists() { Vec::new() } else { self.hold_what_came_since()? };
        if !missed.is_empty() {
            let named = missed.iter().take(3).map(|it| format!("{}: {}", line(&it.what), it.why));
            self.notice(format!(
                "the worktree stays, since not all in it could be saved ({}): git worktree remove --force {}",
                named.collect::<Vec<_>>().join("; "),
                shell_word(&worktree),
            ));
            return Ok(());
        }
        if self.git_dir().exists() {
            fs::write(&going, "")?;
        }
        if self.hub.must_not_be_taken(self.session()).is_err() {
            let shown = worktree.display();
            self.notice(format!("'{shown}' stays as it is: its files are not of this session"));
        }
        let repo = &self.hub.repo;
        repo.remove_worktree(&worktree)?;
        if self.keeps_branch() {
            return Ok(());
        }
        let branch = branch_ref(&self.session().workplace.branch);
        let kept = repo.read_ref(&kept_ref(&self.session().session_id))?;
        if let (Some(tip), Some(kept)) = (repo.read_ref(&branch)?, kept)
            && repo.is_ancestor(&tip, &kept)?
        {
            repo.delete_ref(&branch, &tip)?;
        }
        Ok(())
    }

    /// What can still be had of a session whose worktree was deleted by hand: its commits, and what
    /// was staged there. Held by the session's ref.
    pub(in crate::relay) fn keep_remains(&self) -> Result<Option<String>> {
        let repo = &self.hub.repo;
        let id = &self.session().session_id;
        let name = kept_ref(id);
        let own = branch_ref(&self.session().workplace.branch);
        let head = fs::read_to_string(self.git_dir().join("HEAD")).unwrap_or_default();
        let mut tips: Vec<Oid> = Vec::new();
        for tip in [repo.read_ref(&own)?, Oid::new(head.trim())].into_iter().flatten() {
            if repo.has_object(&tip) && !tips.contains(&tip) {
                tips.push(tip);
            }
        }
        tips.extend(self.pending_commits().into_iter().filter(|oid| repo.has_object(oid)));
        let Some(last) = tips.first().cloned() else { return Ok(None) };
        let index = self.git_dir().join("index");
        let is_index = index.exists();
        let staged = is_index.then(|| repo.tree_of_index(&index)).flatten();
        let tree = staged.unwrap_or(repo.tree_of(&last)?);
        let held = repo.read_ref(&name)?;
        let commit = if tips.len() == 1 && tree == repo.tree_of(&last)? {
            last
        } else {
            let message = format!("relay: what was left when the session was aborted ({id})");
            repo.write_commit(&tree, &tips, &message, clock::now().0)?
        };
        let is_held = |held: &Oid| {
            Ok::<bool, anyhow::Error>(
                repo.is_ancestor(&commit, held)?
                    || (repo.tree_of(held)? == tree && repo.read_commit(held)?.parents == tips),
            )
        };
        if let Some(held) = &held
            && is_held(held)?
        {
            return Ok(Some(name));
        }
        let (missed, _kept) = (Vec::new(), None);
        let remains = Capture { name: name.clone(), held, commit, is_made: true, missed, _kept };
        self.hold(&remains, "abort")?;
        Ok(Some(name))
    }
}
