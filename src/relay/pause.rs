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
use crate::model::inbox::{Line, Says};
use crate::model::names::{Nonce, Oid};
use crate::model::session::{Outcome, SafePoint, Snapshot};
use crate::model::time::Timestamp;
use crate::model::{foreign, redact, screen};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Instant;

/// The file whose presence tells our hooks that a pause is wanted; it holds the reason.
pub const PAUSE_FILE: &str = "pause";
/// Says that the agent is being ended by signals: the driver may be killed before it says so.
const FORCED_FILE: &str = "forced";
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
        files::remove(&self.pause_path())?;
        files::remove(&self.forced_path())?;
        self.forget_note()
    }

    fn forced_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(FORCED_FILE)
    }

    /// Ends the agent at a safe point if it runs, sweeps, saves the tree.
    pub(super) fn pause(&mut self) -> Result<()> {
        let mut watch = self.attach()?;
        let how = if self.is_alive(&mut watch)? {
            self.ask_to_pause(&mut watch)?
        } else if self.forced_path().exists() {
            // By a driver that was killed before it saw the end, as in the next case.
            HowEnded::Forced
        } else if self.pause_path().exists() {
            HowEnded::Asked
        } else {
            HowEnded::ByItself
        };
        let how = if how == HowEnded::Asked && self.has_told() { HowEnded::Told } else { how };
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
        self.count_circle(&snapshot)?;
        self.step(&Event::Snapshotted { leg_end, snapshot }, None)
    }

    /// Tells the agent through its own hook, waits for it, and signals when the deadline is over.
    fn ask_to_pause(&mut self, watch: &mut Watch) -> Result<HowEnded> {
        let reason = "git relay is handing this task over to another agent. End your turn now: \
                      do not start anything new.";
        let deadline = Instant::now() + self.hub.settings.pause_deadline;
        let style = watch.seat().agent.pause;
        // First the note: the hook that finds the pause wanted must find it.
        self.wish_for_note(style)?;
        files::replace(&self.pause_path(), reason.as_bytes(), 0o600)?;
        let nonce = watch.nonce();
        let mut has_noted = false;
        loop {
            if !self.is_alive(watch)? {
                return Ok(HowEnded::Asked);
            }
            watch.look()?;
            let lines = self.fold_inbox()?;
            let refused = lines.iter().any(|line| matches!(line.says, Says::Paused { .. }));
            has_noted |= self.has_told() && lines.iter().any(|line| noted_by(line, &nonce));
            let at_boundary = match style {
                Pause::AnswerThenInterrupt { .. } if refused => true,
                // What it was asked for is here: left alone, the model may go on trying.
                Pause::AnswerThenInterrupt { .. } if has_noted => !watch.leg.has_open_call(),
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
                files::replace(&self.forced_path(), b"", 0o600)?;
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
        self.settle_wip(&taken.commit)?;
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
        Ok(snapshot_of(taken, session.leg, clock::now()))
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
        taken.not_captured.extend(self.lost.iter().cloned());
        if let Some(along) = session.adopted_leg().and_then(|adoption| adoption.taken.as_ref()) {
            taken.not_captured.extend(along.not_captured.iter().cloned());
            // Here it is only uncommitted; where it comes from it was staged.
            taken.staged.extend(along.staged.iter().cloned());
        }
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
        let base = self.session().workplace.base_commit.clone();
        let found = self.secrets_in(repo, &base, &snapshot.commit)?;
        let any = !found.is_empty();
        for words in found {
            self.notice(words);
        }
        if any && self.hub.settings.secrets == Secrets::Refuse {
            let id = &self.session().session_id;
            return Err(Fault::refused(
                "there are secrets in the work tree, and secrets = \"refuse\"",
            )
            .hint(format!("take them out, then git relay resume {id}"))
            .into());
        }
        Ok(())
    }

    /// A line for each file with secrets that differs between two commits.
    pub(super) fn secrets_in(
        &mut self,
        repo: &Repository,
        since: &Oid,
        commit: &Oid,
    ) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (path, blob) in repo.changed_blobs(since, commit)? {
            let path = screen::line(&String::from_utf8_lossy(&path));
            if repo.blob_size(&blob)? > SCANNED_FILE_BYTES_MOST {
                self.notice_once(format!("too large to look for secrets in: '{path}'"));
                continue;
            }
            let bytes = repo.read_blob(&blob)?;
            let found = redact::find_in_bytes(&bytes);
            if found.is_empty() {
                continue;
            }
            let mut words: Vec<String> = found
                .iter()
                .take(SECRETS_NAMED_MOST)
                .map(|(kind, line)| format!("{kind} in line {line}"))
                .collect();
            if found.len() > SECRETS_NAMED_MOST {
                words.push(format!("and {} more", found.len() - SECRETS_NAMED_MOST));
            }
            lines.push(format!("secret in the work tree: '{path}': {}", words.join(", ")));
        }
        if lines.len() > FILES_NAMED_MOST {
            let more = lines.len() - FILES_NAMED_MOST;
            lines.truncate(FILES_NAMED_MOST);
            lines.push(format!("and in {more} more files"));
        }
        Ok(lines)
    }
}

/// What the state keeps of a snapshot that was taken of the leg `leg`.
pub(super) fn snapshot_of(taken: Taken, leg: u32, at: Timestamp) -> Snapshot {
    Snapshot {
        leg,
        on_branch: taken.in_progress.is_none(),
        commit: taken.commit,
        tree: taken.tree,
        parent: taken.parent,
        in_progress: taken.in_progress,
        staged: taken.staged,
        not_captured: taken.not_captured,
        at,
    }
}

/// Whether a line is a fact stated by the agent of the dispatch `nonce`.
fn noted_by(line: &Line, nonce: &Nonce) -> bool {
    matches!(&line.says, Says::Record { nonce: Some(by), .. } if by == nonce.as_str())
}

/// A name out of the work tree as a state or a message of ours may hold it.
fn words(text: &str) -> String {
    foreign::line(text)
}
