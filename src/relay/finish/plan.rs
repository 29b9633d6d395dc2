//! What a finish would bring, and where to: worked out in memory, nothing changed.

use super::ground::Capture;
use super::{Order, short_name};
use crate::error::Fault;
use crate::git::finish::Merged;
use crate::git::refs::SNAPSHOTS;
use crate::git::{branch_ref, kept_ref};
use crate::host::process;
use crate::model::fsm::{self, Effect};
use crate::model::names::Oid;
use crate::model::redact;
use crate::model::session::FinishKind;
use crate::model::shell::shell_word;
use crate::relay::{Driver, LEG_VARIABLE};
use anyhow::Result;
use std::collections::BTreeSet;
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
    /// Whether the commits behind that are others than the session's own.
    pub(super) is_anew: bool,
    pub(super) merged: Merged,
    pub(super) is_there_already: bool,
    pub(super) message: String,
    /// The command that says the same again.
    pub(super) again: String,
    /// The same for a branch that the result can go to.
    pub(super) elsewhere: String,
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
    /// Whether they are brought written anew, without the snapshots between them.
    pub is_anew: bool,
    pub files: Vec<String>,
    pub left_out: Vec<String>,
    /// What no agent committed and a branch that is kept holds none the less.
    pub only_saved: Vec<String>,
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
        self.must_not_be_moved()?;
        self.hub.must_not_be_taken(session)?;
        if !self.is_whole() {
            self.compare_config()?;
            return Err(Fault::refused(format!(
                "the session worktree '{}' is gone",
                self.worktree().display()
            ))
            .hint(self.hub.way_back(session))
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
        let Some(name) = order.into.as_ref().or(session.workplace.base_branch.as_ref()) else {
            return Err(Fault::refused("the session did not start from a branch")
                .hint(self.elsewhere(order)?)
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
        let branch = self.target(order)?;
        let Some(target) = repo.read_ref(&branch)? else {
            let what = format!("there is no branch '{}'", short_name(&branch));
            return Err(Fault::refused(what).hint(self.elsewhere(order)?).into());
        };
        let capture = self.capture("the tree when the session was finished")?;
        let last = &capture.commit;
        let bare = match order.include_snapshot {
            true => last.clone(),
            false => self.bare(last, capture.made())?,
        };
        let source = self.source(order.kind, last, &bare)?;
        let merged = repo.merge(&target, &source)?;
        let brings_nothing = match &merged {
            Merged::Tree(tree) => *tree == repo.tree_of(&target)?,
            Merged::Conflicts { .. } => false,
        };
        let is_there_already = brings_nothing
            && (order.kind != FinishKind::Merge
                || match self.own_commits(&capture)?.first() {
                    Some(newest) => repo.is_ancestor(newest, &target)?,
                    None => true,
                });
        let is_anew = order.kind == FinishKind::Merge && !repo.is_ancestor(&bare, last)?;
        Ok(Plan {
            kind: order.kind,
            place: repo.checked_out_at(&branch)?.filter(|place| place.is_dir()),
            branch,
            target,
            left_out: shown(&repo.touched_paths(&bare, last)?),
            is_anew,
            source,
            merged,
            is_there_already,
            message: self.message(order.message.as_deref()),
            elsewhere: self.elsewhere(order)?,
            again: self.again(order),
            capture,
        })
    }

    /// The command that brings the result to a branch that there is: the one the session started
    /// from, else the one that is checked out, else any that is no session's.
    pub(super) fn elsewhere(&self, order: &Order) -> Result<String> {
        let repo = &self.hub.repo;
        let base = self.session().workplace.base_branch.as_deref().map(branch_ref);
        let all = repo.list_refs("refs/heads/")?.into_iter().map(|(name, _)| name);
        let all: Vec<String> = all.filter(|name| !name.starts_with("refs/heads/relay/")).collect();
        let known = base.into_iter().chain(repo.head_branch()?).find(|name| all.contains(name));
        Ok(match known.as_ref().or(all.first()) {
            Some(name) => {
                self.again(&Order { into: Some(short_name(name).to_owned()), ..order.clone() })
            }
            None => format!("git relay finish {} --keep", self.session().session_id),
        })
    }

    fn again(&self, order: &Order) -> String {
        let mut words = vec!["git relay finish".to_owned(), self.session().session_id.to_string()];
        words.extend((order.kind == FinishKind::Merge).then(|| "--merge".to_owned()));
        for (flag, is_set) in [
            ("--include-snapshot", order.include_snapshot),
            ("--accept-config", self.options.accept_config),
            ("--dry-run", order.dry_run),
        ] {
            words.extend(is_set.then(|| flag.to_owned()));
        }
        for (flag, value) in [("--into", &order.into), ("--message", &order.message)] {
            words.extend(value.iter().flat_map(|value| [flag.to_owned(), shell_word(value)]));
        }
        words.join(" ")
    }

    /// The commit that is merged, of `bare`: the session's work as far as it is to be brought. For a
    /// merge its commits are behind it; for a squash the base alone.
    fn source(&self, kind: FinishKind, last: &Oid, bare: &Oid) -> Result<Oid> {
        if kind == FinishKind::Merge {
            return Ok(bare.clone());
        }
        let repo = &self.hub.repo;
        let parent = self.session().workplace.base_commit.clone();
        // At the time of what it is made of: an attempt after a kill makes the same one.
        let time = repo.read_commit(last)?.time;
        repo.write_commit(&repo.tree_of(bare)?, &[parent], "relay: result", time)
    }

    /// What of the session a merged `source` has left out.
    pub(super) fn left_out_of(&self, source: &Oid) -> Result<Vec<String>> {
        let repo = &self.hub.repo;
        let kept = repo.read_ref(&kept_ref(&self.session().session_id))?;
        Ok(match kept {
            Some(last) => shown(&repo.touched_paths(source, &last)?),
            None => Vec::new(),
        })
    }

    /// `last` as if nothing had ever been saved but what agents (and people) committed: what it
    /// does not hold only a snapshot holds, or the worktree as it stands.
    pub(super) fn bare(&self, last: &Oid, made: Option<&Oid>) -> Result<Oid> {
        let mut ours = self.snapshots()?;
        ours.extend(made.cloned());
        self.hub.repo.without(&ours, &self.session().workplace.base_commit, last)
    }

    /// The commits that we made of the worktree for contracts.
    fn snapshots(&self) -> Result<BTreeSet<Oid>> {
        let refs =
            self.hub.repo.list_refs(&format!("{SNAPSHOTS}{}/", self.session().session_id))?;
        Ok(refs.into_iter().map(|(_, oid)| oid).collect())
    }

    /// The commits of agents (and people) up to what was captured, newest first: not those that we
    /// made to hold a tree.
    fn own_commits(&self, capture: &Capture) -> Result<Vec<Oid>> {
        let snapshots = self.snapshots()?;
        let base = &self.session().workplace.base_commit;
        let all = self.hub.repo.commits_between(base, &capture.commit)?.into_iter();
        let own = all.map(|(oid, _)| oid);
        Ok(own.filter(|oid| !snapshots.contains(oid) && capture.made() != Some(oid)).collect())
    }

    pub(super) fn preview_of(&self, order: &Order) -> Result<Preview> {
        let repo = &self.hub.repo;
        let subject = |oid: &Oid| -> Result<String> {
            let message = repo.read_commit(oid)?.message;
            Ok(redact::redact(message.lines().next().unwrap_or_default()).text)
        };
        let commits = |capture: &Capture| -> Result<Vec<(Oid, String)>> {
            let own = self.own_commits(capture)?.into_iter();
            own.map(|oid| Ok((oid.clone(), subject(&oid)?))).collect()
        };
        if order.kind == FinishKind::Keep {
            let workplace = &self.session().workplace;
            let capture = self.capture("the tree when the session was finished")?;
            let last = &capture.commit;
            let tip = repo.read_ref(&branch_ref(&workplace.branch))?;
            let tip = tip.unwrap_or_else(|| last.clone());
            return Ok(Preview {
                kind: order.kind,
                branch: workplace.branch.clone(),
                place: None,
                is_there_already: false,
                commits: commits(&capture)?,
                is_anew: false,
                files: shown(&repo.touched_paths(&workplace.base_commit, &tip)?),
                left_out: shown(&repo.touched_paths(&tip, last)?),
                only_saved: shown(&repo.touched_paths(&self.bare(&tip, None)?, &tip)?),
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
            commits: commits(&plan.capture)?,
            is_anew: plan.is_anew,
            files,
            conflicts: match plan.merged {
                Merged::Conflicts { paths, .. } => paths,
                Merged::Tree(_) => Vec::new(),
            },
            place: plan.place,
            is_there_already: plan.is_there_already,
            left_out: plan.left_out,
            only_saved: Vec::new(),
            message: plan.message,
            refusal: refusal.map(|error| error.to_string()),
        })
    }
}

pub(super) fn shown(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}
