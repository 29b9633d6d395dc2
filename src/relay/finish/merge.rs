//! Putting the result on the user's branch.
//!
//! Where it is checked out the user's own git merges and commits there, so that their hooks, their
//! signing and their conflicts are as they know them. The intent is in the session's state before
//! that, and says enough to take everything back, or to go on, after a kill at any instant.

use super::plan::Plan;
use super::undo::must_be_unlocked;
use super::{listed, short_name};
use crate::error::Fault;
use crate::git::finish::Merged;
use crate::git::{Repository, result_ref};
use crate::host::files;
use crate::model::fsm::Event;
use crate::model::names::Oid;
use crate::model::redact;
use crate::model::session::{FinishKind, Finishing};
use crate::model::shell::shell_word;
use crate::relay::Driver;
use anyhow::Result;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Carried by the user's git, and by nothing else, while it merges for us; its value is the session.
pub(super) const FINISH_VARIABLE: &str = "GIT_RELAY_FINISHES";
const CONFLICTS_MOST: usize = 100;
/// Hooks that a commit would run, and a commit without a worktree does not.
const COMMIT_HOOKS: [&str; 5] =
    ["pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit"];

impl Plan {
    /// Without a worktree there is no place for conflicts.
    pub(super) fn must_merge_cleanly(&self) -> Result<()> {
        let Merged::Conflicts { paths, .. } = &self.merged else { return Ok(()) };
        let branch = short_name(&self.branch);
        Err(Fault::refused(format!(
            "the result conflicts with '{branch}' in: {}; and '{branch}' is checked out nowhere, so \
             there is no place to resolve that",
            listed(paths)
        ))
        .hint(format!(
            "git switch {} && {}; the conflicts are left there",
            shell_word(branch),
            self.again
        ))
        .into())
    }
}

impl Driver<'_> {
    /// Refuses what cannot be brought to where it is to go.
    pub(super) fn look_at_target(&self, plan: &Plan) -> Result<()> {
        match &plan.place {
            _ if plan.is_there_already => Ok(()),
            Some(place) => self.look_at_place(&self.open_place(place)?, plan),
            None => plan.must_merge_cleanly(),
        }
    }

    /// Moves the branch; returns the result.
    pub(super) fn place(&mut self, plan: &Plan) -> Result<Oid> {
        if plan.is_anew {
            self.notice(
                "the session's commits are written anew, without the snapshots between them",
            );
        }
        match &plan.place {
            Some(place) => self.merge_at(place, plan),
            None => self.merge_in_memory(plan),
        }
    }

    fn merge_in_memory(&mut self, plan: &Plan) -> Result<Oid> {
        let repo = &self.hub.repo;
        let mut parents = vec![plan.target.clone()];
        if plan.kind == FinishKind::Merge {
            parents.push(plan.source.clone());
        }
        let silent = repo.hooks_among(&COMMIT_HOOKS);
        let holder = result_ref(&self.session().session_id);
        let held = repo.read_ref(&holder)?;
        let commit = match held.clone() {
            Some(made) if self.is_made_already(&made, plan, &parents)? => made,
            _ => repo.commit_for_user(plan.merged.tree(), &parents, &plan.message).map_err(
                |error| {
                    error.context(
                        Fault::refused("git did not make the commit; nothing is changed")
                            .hint(self.signing_hint(&plan.again)),
                    )
                },
            )?,
        };
        if held.as_ref() != Some(&commit) {
            repo.durable()?;
            repo.swap_own_ref(&holder, &commit, held.as_ref(), "finish")?;
        }
        let moved = repo.swap_ref(&plan.branch, &commit, Some(&plan.target), "relay: finish");
        // The git of an attempt that was killed may have been faster.
        if repo.read_ref(&plan.branch)?.as_ref() != Some(&commit) {
            moved?;
        }
        if !silent.is_empty() {
            self.notice(format!(
                "'{}' is checked out nowhere, so these hooks of yours did not run: {}",
                short_name(&plan.branch),
                silent.join(", ")
            ));
        }
        Ok(commit)
    }

    /// Whether an attempt that was killed has made this very commit.
    fn is_made_already(&self, made: &Oid, plan: &Plan, parents: &[Oid]) -> Result<bool> {
        let made = self.hub.repo.read_commit(made)?;
        Ok(made.tree == *plan.merged.tree()
            && made.parents == parents
            && made.message.trim_end() == plan.message.trim_end())
    }

    /// Refuses what git would refuse, or what could not be taken back to exactly what it was.
    fn look_at_place(&self, repo: &Repository, plan: &Plan) -> Result<()> {
        let (place, word) = (repo.work_tree().display(), shell_word(repo.work_tree()));
        let (branch, again) = (short_name(&plan.branch), &plan.again);
        if repo.is_of_a_session()? {
            return Err(Fault::refused(format!("'{branch}' is the branch of another session"))
                .hint(&plan.elsewhere)
                .into());
        }
        if let Some(operation) = repo.operation_in_progress() {
            return Err(Fault::refused(format!("a {operation} is in progress in '{place}'"))
                .hint(format!("git -C {word} status says how to end it; then: {again}"))
                .into());
        }
        must_be_unlocked(repo, &plan.branch)?;
        let touched = repo.touched_paths(&plan.target, plan.merged.tree())?;
        let mut dirty = repo.dirty_paths(&touched)?;
        let along = self.taken_along(repo, &dirty)?.map_or(Vec::new(), |(paths, _)| paths);
        dirty.retain(|path| !along.contains(path));
        let along = super::plan::shown(&along);
        let mut staged = repo.staged_paths()?;
        staged.retain(|path| !along.contains(path));
        if !staged.is_empty() {
            return Err(Fault::refused(format!(
                "'{place}' has staged changes, which the commit would take along: {}",
                listed(&staged)
            ))
            .hint(match staged.iter().all(|path| plan.left_out.contains(path)) {
                // They are in the session's tree as well.
                true if self.session().adopted.is_some() => format!(
                    "to bring them, too: {again} --include-snapshot; to leave them out: git -C {word} stash && {again}"
                ),
                _ => put_aside(&word, "stash", again),
            })
            .into());
        }
        must_be_clean(repo, &dirty, again)
    }

    fn merge_at(&mut self, place: &Path, plan: &Plan) -> Result<Oid> {
        let repo = self.open_place(place)?;
        let aside = self.set_aside(&repo, plan)?;
        let finishing = Finishing {
            kind: plan.kind,
            branch: plan.branch.clone(),
            target: plan.target.clone(),
            source: plan.source.clone(),
            message: redact::redact(&plan.message).text,
            aside,
            conflicts: Vec::new(),
        };
        self.step(&Event::Finishing(finishing.clone()), None)?;
        if let Some(aside) = &finishing.aside {
            repo.clear_for(aside)?;
        }
        let message = self.message_file(&plan.message)?;
        let code = self.ask_git_to_merge(&repo, &finishing, &message)?;
        let conflicts = repo.unmerged_paths()?;
        if !conflicts.is_empty() {
            return Err(self.leave_conflicts(&repo, finishing, conflicts, &plan.message));
        }
        let code = match (plan.kind, code) {
            (FinishKind::Squash, Some(0)) => self.ask_git_to_commit(&repo, &message)?,
            (_, code) => code,
        };
        if let Some(commit) = self.arrived(&finishing, false)? {
            return Ok(commit);
        }
        self.take_back(&finishing)?;
        let code = code.map_or("ended by a signal".to_owned(), |code| format!("exit {code}"));
        Err(Fault::refused(format!(
            "your git, or a hook of yours, refused the commit ({code}) and says why above; nothing \
             is changed"
        ))
        .hint(self.signing_hint(&plan.again))
        .into())
    }

    /// What to do when git does not make the user's commit.
    fn signing_hint(&self, again: &str) -> String {
        match self.hub.repo.is_set("commit.gpgSign").unwrap_or(false) {
            true => format!(
                "your commits are signed: where the key cannot be asked for here, run {again} at a \
                 terminal, or git -c commit.gpgSign=false {}",
                again.trim_start_matches("git ")
            ),
            false => format!("mend what it complains of, then {again}"),
        }
    }

    fn ask_git_to_merge(
        &self,
        repo: &Repository,
        finishing: &Finishing,
        message: &Path,
    ) -> Result<Option<i32>> {
        // Said in full, since settings of the user's could say otherwise.
        let call = repo.users_git("merge")?.args(["--quiet", "--no-autostash"]);
        let call = match finishing.kind {
            FinishKind::Merge => {
                call.args(["--no-squash", "--no-ff", "--commit", "--no-edit", "-F"]).args([message])
            }
            _ => call.args(["--squash", "--ff", "--no-verify-signatures"]),
        };
        let call = call.args([finishing.source.as_str()]);
        // That a squash moves no branch is what we asked for, and no news to the user.
        call.env(FINISH_VARIABLE, self.session().session_id.as_str()).show_trouble()
    }

    pub(super) fn ask_git_to_commit(
        &self,
        repo: &Repository,
        message: &Path,
    ) -> Result<Option<i32>> {
        let call = repo.users_git("commit")?.args(["--quiet", "-F"]).args([message]);
        call.env(FINISH_VARIABLE, self.session().session_id.as_str()).show()
    }

    /// A message may be longer than a command line, and is nobody else's to read.
    pub(super) fn message_file(&self, message: &str) -> Result<PathBuf> {
        let path = self.message_path();
        files::replace(&path, message.as_bytes(), 0o600)?;
        Ok(path)
    }

    pub(super) fn message_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join("finish-message")
    }

    /// Notes that the user has conflicts to resolve, and what they are to do.
    fn leave_conflicts(
        &mut self,
        repo: &Repository,
        finishing: Finishing,
        conflicts: Vec<String>,
        message: &str,
    ) -> anyhow::Error {
        // The index has them all; the state says enough to go on.
        let conflicts: Vec<String> = conflicts.into_iter().take(CONFLICTS_MOST).collect();
        let left = Finishing { conflicts, ..finishing };
        // Else a plain `git commit` would offer git's list of what was squashed.
        let offered = match left.kind {
            FinishKind::Squash => {
                files::replace(&repo.git_dir().join("SQUASH_MSG"), message.as_bytes(), 0o644)
            }
            _ => Ok(()),
        };
        match offered.and_then(|()| self.step(&Event::Finishing(left.clone()), None)) {
            Ok(()) => {
                self.notice(format!("the conflicts are in {}", repo.work_tree().display()));
                self.is_being_finished(&left)
            }
            Err(error) => error,
        }
    }
}

/// Refuses, naming them, changes of the user's that the result would overwrite. `again` is the
/// command to say once they are out of the way.
pub(super) fn must_be_clean(repo: &Repository, dirty: &[Vec<u8>], again: &str) -> Result<()> {
    if dirty.is_empty() {
        return Ok(());
    }
    let ignored = repo.ignored_paths()?;
    let is_ignored = |path: &Vec<u8>| {
        ignored.iter().any(|ignored| path == ignored.trim_end_matches('/').as_bytes())
    };
    // `--include-untracked` leaves ignored files, and `--all` alone would take every one of them.
    let stash = match dirty.iter().any(is_ignored) {
        true => {
            let words = dirty.iter().map(|path| shell_word(OsStr::from_bytes(path)));
            format!("stash push --all -- {}", words.collect::<Vec<_>>().join(" "))
        }
        false => "stash --include-untracked".to_owned(),
    };
    Err(Fault::refused(format!(
        "'{}' has changes of yours in: {}",
        repo.work_tree().display(),
        listed(&super::plan::shown(dirty))
    ))
    .hint(put_aside(&shell_word(repo.work_tree()), &stash, again))
    .into())
}

/// How to have changes in the worktree `word` out of the way, go on, and have them back.
fn put_aside(word: &str, stash: &str, again: &str) -> String {
    format!("git -C {word} {stash} && {again}; to have them back then: git -C {word} stash pop")
}
