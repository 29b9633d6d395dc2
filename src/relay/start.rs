//! How a session begins: its signed ref first, everything else after it.

use super::ground_up::taken_ports;
use super::{Driver, Hub, Options, Progress};
use crate::agents::{Ground, Obstacle, ObstacleKind, Seat};
use crate::error::Fault;
use crate::git::branch_ref;
use crate::git::refs::SESSIONS;
use crate::git::{Caps, Repository};
use crate::host::{clock, files, lock, random};
use crate::model::names::{AgentName, Oid, SessionId};
use crate::model::session::{Adoption, PermissionLevel, Request, Session, Workplace, port_base};
use crate::model::shell::shell_word;
use crate::model::{foreign, screen};
use crate::store::{self, Stored};
use anyhow::{Context, Result};
use std::path::Component;
use std::time::Duration;

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Task {
    pub text: String,
    pub agents: Vec<AgentName>,
    pub base: Oid,
    /// The branch that the result is for, its short name.
    pub base_branch: Option<String>,
    pub level: PermissionLevel,
    pub threshold_permille: u32,
    /// Leg 1, where an agent has worked it already, and what the person wants with it.
    pub adopted: Option<(Adoption, Request)>,
}

/// Text beyond this is no task; it belongs into a file of the repository.
const TASK_BYTES_MOST: usize = 512 * 1024;

/// Begins a session for `task` and gives its driver. Nothing but the session's ref and lock is
/// made here: a killed command is rolled forward by `git relay resume`.
pub fn begin<'a>(
    hub: &'a Hub,
    task: &Task,
    actor: &'static str,
    options: Options,
    report: &'a mut dyn FnMut(Progress),
) -> Result<Driver<'a>> {
    super::not_in_a_leg()?;
    if task.text.trim().is_empty() {
        return Err(Fault::usage("the task is empty")
            .hint("git relay run 'Add a login page'")
            .into());
    }
    if task.text.len() > TASK_BYTES_MOST {
        return Err(Fault::usage("the task is longer than 512 KiB")
            .hint("put it into a file and name the file")
            .into());
    }
    hub.repo.can_relay()?;
    let key = hub.own_key()?;
    branches_can_be_made(hub)?;
    clear_unborn(hub)?;
    worktrees_can_be_made(hub)?;
    let redacted = foreign::clean(&task.text).text;
    let id = SessionId::from_task(&redacted, &random::hex(4)?).context("words make an id")?;
    let workplace = Workplace {
        worktree: hub.settings.worktree_dir.join(id.as_str()).to_string_lossy().into_owned(),
        branch: format!("{}/{id}", hub.settings.branch_prefix),
        base_commit: task.base.clone(),
        base_branch: task.base_branch.clone(),
        port_base: Some(port_base(&id, &taken_ports(hub)?)),
    };
    let mut session = Session::begin(id.clone(), redacted, workplace, clock::now());
    session.permission_level = task.level;
    session.agents.clone_from(&task.agents);
    session.threshold_permille = task.threshold_permille;
    (session.adopted, session.request) = task.adopted.clone().unzip();
    let held = lock::take(&hub.lock_path(&id), Duration::ZERO)?.context("a new session is ours")?;
    let tip = store::save(&hub.repo, &key, &session, "begun", actor, None, None)?;
    let stored = Stored { session, tip };
    report(Progress::Step { event: "begun".to_owned(), session: Box::new(stored.session.clone()) });
    Driver::with(hub, stored, held, actor, options, report)
}

/// The short name of the branch that is checked out in `repo`.
pub fn branch_in(repo: &Repository) -> Result<Option<String>> {
    let name = repo.head_branch()?;
    Ok(name.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)))
}

/// Refuses a branch that stands where the folder of the session branches belongs.
fn branches_can_be_made(hub: &Hub) -> Result<()> {
    let mut above = String::new();
    for part in hub.settings.branch_prefix.split('/') {
        above.push_str(part);
        if hub.repo.read_ref(&branch_ref(&above))?.is_some() {
            return Err(Fault::refused(format!(
                "a branch '{above}' exists, so there can be none below it: '{}/<session>'",
                hub.settings.branch_prefix
            ))
            .hint(format!(
                "git branch -m {} {}; or set branch_prefix",
                shell_word(&above),
                shell_word(format!("{above}-old"))
            ))
            .into());
        }
        above.push('/');
    }
    Ok(())
}

/// Refuses a file where session worktrees go, and a link there: the shared configuration may name
/// a folder of the repository and no other. A new folder of the repository is kept out of git's
/// sight.
fn worktrees_can_be_made(hub: &Hub) -> Result<()> {
    let dir = &hub.settings.worktree_dir;
    let (Some(main), true) = (hub.repo.main_work_tree(), dir.is_relative()) else { return Ok(()) };
    let inside = dir.components().all(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<_> = dir.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    for part in parts.iter().rev().filter(|_| inside) {
        let path = main.join(part);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(Fault::refused(format!("'{}' is not a folder", path.display()))
                .hint(format!(
                    "session worktrees go there; move it away: mv {} {}",
                    shell_word(&path),
                    shell_word(files::aside(&path))
                ))
                .into());
        }
    }
    if inside && !dir.starts_with(".relay") {
        hub.repo.exclude(&format!("/{}/", dir.display()))?;
    }
    Ok(())
}

/// Clears the ref locks of sessions that a killed command never came to begin: nobody would ever
/// meet them again. Whoever holds the session's own lock is alive, and its lock is left alone.
fn clear_unborn(hub: &Hub) -> Result<()> {
    for name in hub.repo.locked_refs(SESSIONS) {
        let Some(id) = name.strip_prefix(SESSIONS).and_then(SessionId::new) else { continue };
        if hub.repo.read_ref(&name)?.is_none()
            && let Some(_held) = lock::take(&hub.lock_path(&id), Duration::ZERO)?
        {
            hub.repo.clear_own_lock(&name)?;
        }
    }
    Ok(())
}

/// What keeps `agent` from starting in the person's terminal: it shows its own log-in there.
pub fn obstacles_at_terminal(hub: &Hub, agent: &AgentName) -> Result<Vec<Obstacle>> {
    let mut found = obstacles(hub, agent, PermissionLevel::Ask, false)?;
    found.retain(|obstacle| obstacle.kind != ObstacleKind::NotSignedIn);
    Ok(found)
}

/// A commit on `base` of everything in the main worktree as it is, committed or not; ignored files
/// are left out. Nothing there is touched, and nothing points to the commit yet.
pub fn commit_of_what_is_there(hub: &Hub, base: &Oid) -> Result<Oid> {
    let main = hub.repo.main_work_tree().context("a repository with a worktree")?;
    let repo = Repository::open(main)?;
    let subject = "relay: what was not committed when the session began";
    let taken = repo.take_snapshot(&Caps::default(), subject, clock::now().0, None)?;
    if let Some(operation) = taken.in_progress {
        return Err(Fault::refused(format!("a {operation} is in progress here"))
            .hint("end it, or start without --include-dirty")
            .into());
    }
    if let Some(lost) = taken.not_captured.first() {
        return Err(Fault::refused(format!(
            "'{}' cannot be taken along: {}",
            screen::line(&lost.what),
            lost.why
        ))
        .hint("git status, or start without --include-dirty")
        .into());
    }
    repo.durable()?;
    Ok(if taken.changed == 0 { base.clone() } else { taken.commit })
}

/// What keeps `agent` from starting here, as far as can be seen.
pub fn obstacles(
    hub: &Hub,
    agent: &AgentName,
    level: PermissionLevel,
    unsandboxed_shell: bool,
) -> Result<Vec<Obstacle>> {
    let Some(seat) = Seat::find(&hub.settings, agent) else {
        return Ok(vec![Obstacle {
            kind: ObstacleKind::NotInstalled,
            what: format!("'{agent}' is not configured any more"),
            hint: "git relay agents".to_owned(),
        }]);
    };
    let main = hub.repo.main_work_tree().unwrap_or_else(|| hub.repo.common_dir());
    let ground = Ground { main_work_tree: main, level, unsandboxed_shell };
    Ok((seat.agent.obstacles)(&seat, &ground))
}

/// How git gets to know who commits.
pub const TO_BE_KNOWN: &str =
    "git config --global user.name 'Your Name' && git config --global user.email you@example.com";

/// What is to be said where git does not know who the person is: an agent need not look whether its
/// commits came to be.
pub fn nobody_commits(repo: &Repository) -> Result<Option<String>> {
    let said = repo.identity_fault()?;
    Ok(said.map(|said| format!("no commit of yours or of an agent can be made here: {said}")))
}
