//! The safe pause and the snapshot: PAUSING to SNAPSHOTTED.

use super::Driver;
use super::leg::HowEnded;
use super::watch::Watch;
use crate::agents::Pause;
use crate::error::Fault;
use crate::git::{Caps, Repository, Snapshot as Taken, branch_ref, snapshot_ref};
use crate::host::config::Secrets;
use crate::host::{clock, files};
use crate::model::fsm::Event;
use crate::model::inbox::Says;
use crate::model::session::{Outcome, SafePoint, Snapshot};
use crate::model::{redact, screen};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Instant;

/// The file whose presence tells our hooks that a pause is wanted; it holds the reason.
pub const PAUSE_FILE: &str = "pause";
/// Trailer of a snapshot's message: a path that was staged.
const STAGED: &str = "Relay-Staged: ";
/// How many files of the work tree with secrets are named one by one, and how many in each.
const FILES_NAMED_MOST: usize = 20;
const SECRETS_NAMED_MOST: usize = 5;
const SCANNED_FILE_BYTES_MOST: u64 = 4 * 1024 * 1024;

impl Driver<'_> {
    fn pause_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(PAUSE_FILE)
    }

    /// Takes back what tells hooks to stop the agent. It stays until the next agent is about to be
    /// started, as the proof that this one was asked.
    pub(super) fn forget_pause(&self) -> Result<()> {
        files::remove(&self.pause_path())
    }

    /// Ends the agent at a safe point if it runs, sweeps, saves the tree.
    pub(super) fn pause(&mut self) -> Result<()> {
        let mut watch = self.attach()?;
        let how = if self.is_alive(&mut watch)? {
            self.ask_to_pause(&mut watch)?
        } else if self.pause_path().exists() {
            // Asked by a driver that was killed before it saw the end.
            HowEnded::Asked
        } else {
            HowEnded::ByItself
        };
        watch.look_last()?;
        let nonce = self.session().dispatch.as_ref().context("a leg has a dispatch")?.nonce.clone();
        self.sweep(&nonce)?;
        self.fold_inbox()?;
        let leg_end = match &self.session().leg_end {
            Some(end) => end.clone(),
            None => watch.leg.end(how, self.open_items(&watch), clock::now()),
        };
        // It finished while it was asked to stop: an agent that finished is finished.
        if self.session().leg_end.is_none() && leg_end.outcome == Outcome::Done {
            return self.step(&Event::PauseUndone(leg_end), None);
        }
        self.check_guard()?;
        self.clear_debris()?;
        let snapshot = self.snapshot()?;
        self.step(&Event::Snapshotted { leg_end, snapshot }, None)
    }

    /// Tells the agent through its own hook, waits for it, and signals when the deadline is over.
    fn ask_to_pause(&mut self, watch: &mut Watch) -> Result<HowEnded> {
        let reason = "git relay is handing this task over to another agent. End your turn now: \
                      do not start anything new.";
        files::replace(&self.pause_path(), reason.as_bytes(), 0o600)?;
        let deadline = Instant::now() + self.hub.settings.pause_deadline;
        let style = watch.seat().agent.pause;
        loop {
            if !self.is_alive(watch)? {
                return Ok(HowEnded::Asked);
            }
            watch.look()?;
            let refused =
                self.fold_inbox()?.iter().any(|line| matches!(line.says, Says::Paused { .. }));
            let at_boundary = match style {
                Pause::AnswerThenInterrupt { .. } if refused => true,
                // Its hook ends it; without a hook that fires, a signal between two calls does.
                Pause::Answer { .. } | Pause::AnswerThenInterrupt { .. } => {
                    !self.session().hooks_fired && watch.leg.is_between_calls()
                }
                Pause::Interrupt => !watch.leg.has_open_call(),
            };
            if at_boundary || watch.leg.is_idle() {
                self.end_agent(watch, HowEnded::Asked)?;
                return Ok(HowEnded::Asked);
            }
            if Instant::now() > deadline || self.is_interrupted() {
                self.notice("the agent did not pause in time and is being ended");
                self.end_agent(watch, HowEnded::Forced)?;
                return Ok(HowEnded::Forced);
            }
            self.wait_tick(watch);
        }
    }

    /// Saves the whole session worktree: objects, ref, index, branch, in this order. A driver that
    /// was killed in between finds the snapshot by its ref and redoes the rest.
    fn snapshot(&mut self) -> Result<Snapshot> {
        let session = self.session().clone();
        let repo = self.worktree_repo()?;
        let holder = snapshot_ref(&session.session_id, session.leg);
        let taken = self.take_or_find(&repo, &holder)?;
        if taken.in_progress.is_none() {
            repo.install_index(&taken.tree)?;
            let branch = branch_ref(&session.workplace.branch);
            repo.move_branch(&branch, &taken.parent, &taken.commit)?;
        }
        if let Some(operation) = &taken.in_progress {
            self.notice(format!("a {operation} is in progress: the branch was not moved"));
        }
        for lost in &taken.not_captured {
            self.notice(format!("not captured: '{}': {}", screen::line(&lost.what), lost.why));
        }
        if session.safe_point.is_none() && taken.parent != session.workplace.base_commit {
            // No hook told of a commit, but there is one: the branch's tip before the snapshot.
            let safe_point = Some(SafePoint { commit: taken.parent.clone(), at: clock::now() });
            self.step(&Event::Observed { readings: Vec::new(), safe_point }, None)?;
        }
        Ok(Snapshot {
            leg: session.leg,
            on_branch: taken.in_progress.is_none(),
            commit: taken.commit,
            tree: taken.tree,
            parent: taken.parent,
            in_progress: taken.in_progress,
            staged: taken.staged,
            not_captured: taken.not_captured,
            at: clock::now(),
        })
    }

    /// Takes the snapshot and holds it by `holder`, or finds the one a killed driver took of the
    /// very same tree. What was staged is kept in its message, since the index is replaced next.
    fn take_or_find(&mut self, repo: &Repository, holder: &str) -> Result<Taken> {
        let session = self.session();
        let now = clock::now().0;
        let subject =
            format!("relay: snapshot of session {}, leg {}", session.session_id, session.leg);
        let held = repo.read_ref(holder)?;
        let mut taken = repo.take_snapshot(&Caps::default(), &subject, now, held.as_ref())?;
        for lost in &mut taken.not_captured {
            lost.what = words(&lost.what);
        }
        // Before any ref moves: where secrets are refused none may get onto the branch.
        self.warn_of_secrets(repo, &taken)?;
        if held.as_ref() == Some(&taken.commit) {
            let message = repo.read_commit(&taken.commit)?.message;
            let staged = message.lines().filter_map(|line| line.strip_prefix(STAGED));
            taken.staged = staged.map(str::to_owned).collect();
            return Ok(taken);
        }
        taken.staged = taken.staged.iter().map(|path| words(path)).collect();
        let base = &self.session().workplace.base_commit;
        let off_base = !repo.is_ancestor(base, &taken.parent)?;
        if off_base || !taken.staged.is_empty() {
            let lines: Vec<String> =
                taken.staged.iter().map(|path| format!("{STAGED}{path}")).collect();
            let message = format!("{subject}\n\n{}\n", lines.join("\n"));
            let mut parents = vec![taken.parent.clone()];
            // The agent took its branch back behind the base, or off it: the snapshot descends
            // from both, so that no history is lost and the contract can be bound to the base.
            if off_base {
                parents.push(base.clone());
            }
            taken.commit = repo.write_commit(&taken.tree, &parents, &message, now)?;
        }
        repo.durable()?;
        repo.swap_own_ref(holder, &taken.commit, held.as_ref(), "snapshot")?;
        Ok(taken)
    }

    /// A secret in the work tree is the user's: it is named, and refused where the user said so.
    fn warn_of_secrets(&mut self, repo: &Repository, snapshot: &Taken) -> Result<()> {
        let base = &self.session().workplace.base_commit.clone();
        let mut named = 0;
        for (path, blob) in repo.changed_blobs(base, &snapshot.commit)? {
            let path = screen::line(&String::from_utf8_lossy(&path));
            if repo.blob_size(&blob)? > SCANNED_FILE_BYTES_MOST {
                self.notice(format!("too large to look for secrets in: '{path}'"));
                continue;
            }
            let bytes = repo.read_blob(&blob)?;
            let found = redact::find_in_bytes(&bytes);
            if found.is_empty() {
                continue;
            }
            named += 1;
            if named <= FILES_NAMED_MOST {
                let mut words: Vec<String> = found
                    .iter()
                    .take(SECRETS_NAMED_MOST)
                    .map(|(kind, line)| format!("{kind} in line {line}"))
                    .collect();
                if found.len() > SECRETS_NAMED_MOST {
                    words.push(format!("and {} more", found.len() - SECRETS_NAMED_MOST));
                }
                self.notice(format!("secret in the work tree: '{path}': {}", words.join(", ")));
            }
        }
        if named > FILES_NAMED_MOST {
            self.notice(format!("and in {} more files", named - FILES_NAMED_MOST));
        }
        if named > 0 && self.hub.settings.secrets == Secrets::Refuse {
            let id = &self.session().session_id;
            return Err(Fault::refused(
                "there are secrets in the work tree, and secrets = \"refuse\"",
            )
            .hint(format!("take them out, then git relay resume {id}"))
            .into());
        }
        Ok(())
    }
}

/// A name out of the work tree as a state or a message of ours may hold it.
fn words(text: &str) -> String {
    redact::redact(&screen::line(text)).text
}
