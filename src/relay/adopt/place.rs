//! The worktree where an agent worked that is to be adopted. It is only read.

use crate::agents::store::Found;
use crate::error::Fault;
use crate::git::Repository;
use crate::model::names::{Oid, SessionId};
use crate::model::screen;
use crate::model::session::{Adoption, Session};
use crate::model::shell::shell_word;
use crate::relay::{Hub, start};
use crate::store;
use anyhow::Result;
use std::path::Path;

/// Where the session is to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub base: Oid,
    /// Short name of the branch that is checked out there.
    pub branch: Option<String>,
    /// The worktree's root, as a state names it; `None` where the place is gone.
    pub source: Option<String>,
}

/// Looks at the place where `found` worked. `typed`: what followed the verb, for a hint.
///
/// # Errors
/// Refused, before anything is made: it is gone, is in another repository, has nothing to build
/// on, or an operation of git's is under way there.
pub fn place_of(hub: &Hub, found: &Found, clean: bool, typed: &str) -> Result<Place> {
    let id = &found.id;
    let Some(cwd) = &found.cwd else {
        return Err(Fault::refused(format!(
            "the transcript of {}'s session {id} does not say where it worked",
            found.agent().name
        ))
        .hint("git relay detect")
        .into());
    };
    let shown = screen::line(&cwd.to_string_lossy());
    if !cwd.is_dir() {
        if !clean {
            return Err(Fault::refused(format!("'{shown}', where it worked, is gone"))
                .hint(format!(
                    "to go on from what is checked out here, without what was not committed there: git relay adopt {typed} --clean"
                ))
                .into());
        }
        return begun_at(&hub.repo, None);
    }
    let repo = Repository::open(cwd).map_err(|error| {
        error.context(
            Fault::refused(format!("'{shown}', where it worked, is in no git repository"))
                .hint("git relay detect"),
        )
    })?;
    if repo.common_dir() != hub.repo.common_dir() {
        return Err(Fault::refused(format!("it worked in '{shown}', another repository"))
            .hint(format!("cd {} && git relay adopt {typed}", shell_word(cwd)))
            .into());
    }
    if repo.is_ours() {
        let name = repo.git_dir().file_name().and_then(|name| name.to_str());
        let session = name.and_then(SessionId::new).map_or("SESSION".into(), |id| id.to_string());
        return Err(Fault::refused(format!("it worked in the worktree of session '{session}'"))
            .hint(format!("git relay status {session}"))
            .into());
    }
    must_be_at_rest(&repo, &format!("git relay adopt {typed}"))?;
    let main = hub.repo.main_work_tree().unwrap_or_else(|| hub.repo.common_dir());
    let root = repo.work_tree();
    let source = match root.strip_prefix(main) {
        Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Ok(inside) => inside,
        Err(_) => root,
    };
    let Some(source) = source.to_str() else {
        return Err(Fault::refused(format!(
            "the path of '{}' is not UTF-8",
            screen::line(&root.to_string_lossy())
        ))
        .hint(format!("git worktree move {} NEW-PATH", shell_word(root)))
        .into());
    };
    begun_at(&repo, Some(source.to_owned()))
}

fn begun_at(repo: &Repository, source: Option<String>) -> Result<Place> {
    let base = repo.head_commit()?.ok_or_else(|| {
        Fault::refused("there is no commit yet where it worked")
            .hint("git commit --allow-empty -m 'Initial commit'")
    })?;
    Ok(Place { base, branch: start::branch_in(repo)?, source })
}

/// What a merge or the like has half done is no state to take along.
pub(super) fn must_be_at_rest(repo: &Repository, again: &str) -> Result<()> {
    let operation = match repo.operation_in_progress() {
        Some(operation) => operation,
        None if !repo.unmerged_paths()?.is_empty() => "merge with conflicts",
        None => return Ok(()),
    };
    let (place, word) = (repo.work_tree().display(), shell_word(repo.work_tree()));
    Err(Fault::refused(format!("a {operation} is in progress in '{place}', where it worked"))
        .hint(format!("git -C {word} status says how to end it; then: {again}"))
        .into())
}

/// The sessions of this repository, to tell what is one of theirs already.
#[derive(Debug)]
pub struct Known(Vec<Session>);

impl Known {
    /// One that cannot be read is left out: `git relay list` names it.
    pub fn of(hub: &Hub) -> Result<Self> {
        let ids = store::list(&hub.repo)?;
        let loaded = ids.iter().filter_map(|id| Some(hub.load(id).ok()?.session));
        let mut all: Vec<Session> = loaded.collect();
        // What is lost can come back.
        for lost in store::list_lost(&hub.repo, &hub.trust)? {
            let kept = lost.kept.as_ref();
            let state = kept.map(|kept| store::load_at(&hub.repo, &hub.trust, &lost.id, kept));
            all.extend(state.and_then(Result::ok));
        }
        Ok(Self(all))
    }

    /// Refuses a session of an agent's that is adopted already, or is a leg that we started.
    pub fn must_be_new(&self, found: &Found) -> Result<()> {
        let (agent, id) = (found.agent().name, found.id.as_str());
        self.0.iter().try_for_each(|session| must_not_be_of(session, agent, id))
    }

    /// The newest session that is over and had taken it.
    pub fn before(&self, found: &Found) -> Option<&Session> {
        let (agent, id) = (found.agent().name, found.id.as_str());
        let taken = self.0.iter().filter(|session| {
            session.leg > 0
                && session.state.is_end()
                && session.adopted.as_ref().is_some_and(|it| is_of(it, agent, id))
        });
        taken.max_by_key(|session| session.updated_at)
    }

    /// [`Self::before`], where its agent wrote nothing since: it is hardly meant again.
    pub(super) fn over(&self, found: &Found) -> Option<&Session> {
        self.before(found).filter(|session| found.modified <= session.updated_at)
    }
}

fn is_of(adoption: &Adoption, agent: &str, id: &str) -> bool {
    adoption.agent.as_str() == agent && adoption.agent_session == id
}

fn must_not_be_of(session: &Session, agent: &str, id: &str) -> Result<()> {
    let ours = &session.session_id;
    let is_over = session.state.is_end();
    let is_adopted = session.adopted.as_ref().is_some_and(|it| is_of(it, agent, id));
    if is_adopted && is_over {
        return Ok(());
    }
    let on = match is_over {
        true => format!("git relay log {ours}"),
        false => {
            format!("git relay resume {ours}, or to pass it on: git relay handoff --session {ours}")
        }
    };
    if is_adopted {
        return Err(Fault::refused(format!(
            "{agent}'s session {id} was adopted already, as session '{ours}'"
        ))
        .hint(on)
        .into());
    }
    let leg = session.dispatches.iter().find(|dispatch| {
        dispatch.agent.as_str() == agent && dispatch.agent_session.as_deref() == Some(id)
    });
    leg.map_or(Ok(()), |leg| {
        let what = format!("{agent}'s session {id} is leg {} of session '{ours}'", leg.leg);
        Err(Fault::refused(what).hint(on).into())
    })
}
