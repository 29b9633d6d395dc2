//! What a finish would bring, and where to: worked out in memory, nothing changed.

use super::ground::Capture;
use super::{Order, short_name};
use crate::error::Fault;
use crate::git::branch_ref;
use crate::git::finish::Merged;
use crate::host::process;
use crate::model::fsm::{self, Effect};
use crate::model::names::Oid;
use crate::model::redact;
use crate::model::session::FinishKind;
use crate::model::shell::shell_word;
use crate::relay::{Driver, LEG_VARIABLE};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything that is to happen, before any of it does.
pub(super) struct Plan {
    pub(super) kind: FinishKind,
    /// Full name of the branch, and where it stands.
    pub(super) branch: String,
    pub(super) target: Oid,
    /// The worktree where it is checked out.
    pub(super) place: Option<PathBuf>,
    pub(super) capture: Capture,
    pub(super) left_out: Vec<String>,
    /// What is merged into the branch.
    pub(super) source: Oid,
    pub(super) merged: Merged,
    pub(super) is_there_already: bool,
    pub(super) message: String,
    /// The command that says the same again.
    pub(super) again: String,
}

/// A plan as a person reads it.
#[derive(Clone, Debug)]
pub struct Preview {
    pub kind: FinishKind,
    pub branch: String,
    pub place: Option<PathBuf>,
    pub is_there_already: bool,
    /// The session's own commits, newest first: id and subject.
    pub commits: Vec<(Oid, String)>,
    pub files: Vec<String>,
    pub left_out: Vec<String>,
    pub conflicts: Vec<String>,
    pub message: String,
    /// Why it would be refused.
    pub refusal: Option<String>,
}

impl Driver<'_> {
    pub(super) fn is_at_rest(&self) -> Result<()> {
        let session = self.session();
        let id = &session.session_id;
        if session.state.is_end() {
            return Err(Fault::refused(format!("session '{id}' is {}", session.state))
                .hint("git relay list")
                .into());
        }
        let alive = session.dispatch.as_ref().is_some_and(|dispatch| {
            !process::find_by_variable(LEG_VARIABLE, dispatch.nonce.as_str()).is_empty()
        });
        if alive || !matches!(fsm::due(session), Effect::Rest | Effect::Dispatch) {
            return Err(Fault::refused(format!(
                "session '{id}' is {}: its work is not at rest",
                session.state
            ))
            .hint(format!("git relay resume {id}"))
            .into());
        }
        self.hub.must_not_be_taken(session)?;
        if !self.is_whole() {
            self.compare_config()?;
            return Err(Fault::refused(format!(
                "the session worktree '{}' is gone",
                self.worktree().display()
            ))
            .hint(format!(
                "git worktree repair, where it was moved; else git relay resume {id}, which restores it, or git relay abort {id}, which keeps its commits"
            ))
            .into());
        }
        if let Some(operation) = self.worktree_repo()?.operation_in_progress() {
            return Err(Fault::refused(format!(
                "a {operation} is in progress in the session worktree"
            ))
            .hint(format!("git -C {} status", shell_word(self.worktree())))
            .into());
        }
        Ok(())
    }

    /// The full name of the branch the result goes to.
    pub(super) fn target(&self, order: &Order) -> Result<String> {
        let session = self.session();
        let again = format!("git relay finish {} --into BRANCH", session.session_id);
        let Some(name) = order.into.as_ref().or(session.workplace.base_branch.as_ref()) else {
            return Err(Fault::refused("the session did not start from a branch")
                .hint(again)
                .into());
        };
        let short = short_name(name);
        if short == session.workplace.branch {
            return Err(Fault::refused(format!("'{short}' is the session's own branch"))
                .hint(format!("git relay finish {} --keep", session.session_id))
                .into());
        }
        Ok(branch_ref(short))
    }

    pub(super) fn plan(&self, order: &Order) -> Result<Plan> {
        let repo = &self.hub.repo;
        let session = self.session();
        let branch = self.target(order)?;
        let target = repo.read_ref(&branch)?.ok_or_else(|| {
            Fault::refused(format!("there is no branch '{}'", short_name(&branch)))
                .hint(format!("git relay finish {} --into BRANCH", session.session_id))
        })?;
        let capture = self.capture("the tree when the session was finished")?;
        let last = &capture.commit;
        let left_out =
            if order.include_snapshot { Vec::new() } else { self.never_committed(last)? };
        let source = self.source(order.kind, last, &left_out)?;
        let merged = repo.merge(&target, &source)?;
        let brings_nothing = match &merged {
            Merged::Tree(tree) => *tree == repo.tree_of(&target)?,
            Merged::Conflicts { .. } => false,
        };
        let is_there_already = brings_nothing
            && (order.kind != FinishKind::Merge
                || match self.own_commits(last)?.first() {
                    Some((newest, _)) => repo.is_ancestor(newest, &target)?,
                    None => true,
                });
        Ok(Plan {
            kind: order.kind,
            place: repo.checked_out_at(&branch)?.filter(|place| place.is_dir()),
            branch,
            target,
            left_out: left_out.iter().map(|(path, _)| shown_path(path)).collect(),
            source,
            merged,
            is_there_already,
            message: self.message(order.message.as_deref()),
            again: self.again(order),
            capture,
        })
    }

    fn again(&self, order: &Order) -> String {
        let mut words = vec!["git relay finish".to_owned(), self.session().session_id.to_string()];
        words.extend((order.kind == FinishKind::Merge).then(|| "--merge".to_owned()));
        words.extend(order.include_snapshot.then(|| "--include-snapshot".to_owned()));
        for (flag, value) in [("--into", &order.into), ("--message", &order.message)] {
            words.extend(value.iter().flat_map(|value| [flag.to_owned(), shell_word(value)]));
        }
        words.join(" ")
    }

    /// The commit that is merged: with `left_out` as it was committed last. For a merge the
    /// session's own commits are behind it; for a squash the base alone.
    fn source(&self, kind: FinishKind, last: &Oid, left_out: &[(Vec<u8>, Oid)]) -> Result<Oid> {
        let repo = &self.hub.repo;
        let tree = repo.tree_with_paths_of(last, left_out)?;
        let (parent, message) = match kind {
            FinishKind::Merge if tree == repo.tree_of(last)? => return Ok(last.clone()),
            FinishKind::Merge => (last.clone(), "relay: leave out what no agent committed"),
            _ => (self.session().workplace.base_commit.clone(), "relay: result"),
        };
        // At the time of what it is made of: an attempt after a kill makes the same one.
        repo.write_commit(&tree, &[parent], message, repo.read_commit(last)?.time)
    }

    /// What of the session a merged `source` has left out.
    pub(super) fn left_out_of(&self, source: &Oid) -> Result<Vec<String>> {
        let repo = &self.hub.repo;
        let kept = crate::git::kept_ref(&self.session().session_id);
        match repo.read_ref(&kept)? {
            Some(last) if repo.tree_of(&last)? != repo.tree_of(source)? => {
                let left_out = self.never_committed(&last)?;
                Ok(left_out.iter().map(|(path, _)| shown_path(path)).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Paths whose content in `last` no agent committed, each with the commit that holds it as it
    /// was committed last (the base, for one that never was). Only a snapshot, or the worktree as
    /// it stands, holds the rest.
    fn never_committed(&self, last: &Oid) -> Result<Vec<(Vec<u8>, Oid)>> {
        let session = self.session();
        let repo = &self.hub.repo;
        let base = &session.workplace.base_commit;
        // Newest first: the first commit met that touches a path is the last one that did.
        let mut committed: BTreeMap<Vec<u8>, Oid> = BTreeMap::new();
        for (oid, parents) in self.own_commits(last)? {
            if let Some(parent) = parents.first() {
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

    /// The commits of agents (and people) up to `last`, newest first, with their parents: not
    /// those that we made to hold a tree.
    fn own_commits(&self, last: &Oid) -> Result<Vec<(Oid, Vec<Oid>)>> {
        let session = self.session();
        let repo = &self.hub.repo;
        let snapshots: Vec<Oid> = repo
            .list_refs(&format!("refs/relay/snapshots/{}/", session.session_id))?
            .into_iter()
            .map(|(_, oid)| oid)
            .collect();
        let all = repo.commits_between(&session.workplace.base_commit, last)?;
        let own = all.into_iter().filter(|(oid, commit)| {
            let ours = oid == last && commit.message.starts_with("relay: ");
            !ours && !snapshots.contains(oid)
        });
        Ok(own.map(|(oid, commit)| (oid, commit.parents)).collect())
    }

    pub(super) fn preview_of(&self, order: &Order) -> Result<Preview> {
        let repo = &self.hub.repo;
        let subject = |oid: &Oid| -> Result<String> {
            let message = repo.read_commit(oid)?.message;
            Ok(redact::redact(message.lines().next().unwrap_or_default()).text)
        };
        let commits = |last: &Oid| -> Result<Vec<(Oid, String)>> {
            let own = self.own_commits(last)?.into_iter();
            own.map(|(oid, _)| Ok((oid.clone(), subject(&oid)?))).collect()
        };
        if order.kind == FinishKind::Keep {
            let workplace = &self.session().workplace;
            let last = self.capture("the tree when the session was finished")?.commit;
            let tip = repo.read_ref(&branch_ref(&workplace.branch))?;
            let tip = tip.unwrap_or_else(|| last.clone());
            return Ok(Preview {
                kind: order.kind,
                branch: workplace.branch.clone(),
                place: None,
                is_there_already: false,
                commits: commits(&last)?,
                files: shown(&repo.touched_paths(&workplace.base_commit, &tip)?),
                left_out: shown(&repo.touched_paths(&tip, &last)?),
                conflicts: Vec::new(),
                message: String::new(),
                refusal: None,
            });
        }
        let plan = self.plan(order)?;
        let files = shown(&repo.touched_paths(&plan.target, plan.merged.tree())?);
        let refusal = self.look_at_target(&plan).err();
        Ok(Preview {
            kind: plan.kind,
            branch: short_name(&plan.branch).to_owned(),
            commits: commits(&plan.capture.commit)?,
            files,
            conflicts: match plan.merged {
                Merged::Conflicts { paths, .. } => paths,
                Merged::Tree(_) => Vec::new(),
            },
            place: plan.place,
            is_there_already: plan.is_there_already,
            left_out: plan.left_out,
            message: plan.message,
            refusal: refusal.map(|error| error.to_string()),
        })
    }
}

pub(super) fn shown(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| shown_path(path)).collect()
}

fn shown_path(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
