//! How a session begins: its signed ref first, everything else after it.

use super::{Driver, Hub, Options, Progress};
use crate::agents::{Ground, Obstacle};
use crate::error::Fault;
use crate::git::refs::SESSIONS;
use crate::host::{clock, lock, random};
use crate::model::names::{AgentName, Oid, SessionId};
use crate::model::redact;
use crate::model::session::{PermissionLevel, Session, Workplace};
use crate::store::{self, Stored};
use anyhow::{Context, Result};
use std::time::Duration;

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Task {
    pub text: String,
    pub agents: Vec<AgentName>,
    pub base: Oid,
    pub level: PermissionLevel,
    pub threshold_permille: u32,
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
    if hub.repo.read_ref("refs/heads/relay")?.is_some() {
        return Err(Fault::refused(
            "a branch 'relay' exists, so git cannot make 'relay/<session>'",
        )
        .hint("git branch -m relay relay-old")
        .into());
    }
    clear_unborn(hub)?;
    if let Some(main) = hub.repo.main_work_tree() {
        let ours = main.join(".relay");
        if std::fs::symlink_metadata(&ours).is_ok_and(|found| !found.is_dir()) {
            return Err(Fault::refused(format!("'{}' is not a folder", ours.display()))
                .hint("move it away: session worktrees go there")
                .into());
        }
    }
    let redacted = redact::redact(&task.text).text;
    let id = SessionId::from_task(&redacted, &random::hex(4)?).context("words make an id")?;
    let workplace = Workplace {
        worktree: format!(".relay/sessions/{id}"),
        branch: format!("relay/{id}"),
        base_commit: task.base.clone(),
        base_branch: hub
            .repo
            .head_branch()?
            .and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)),
    };
    let mut session = Session::begin(id.clone(), redacted, workplace, clock::now());
    session.permission_level = task.level;
    session.agents.clone_from(&task.agents);
    session.threshold_permille = task.threshold_permille;
    let held = lock::take(&hub.lock_path(&id), Duration::ZERO)?.context("a new session is ours")?;
    let key = store::keys::load_key(&hub.repo)?;
    let tip = store::save(&hub.repo, &key, &session, "begun", actor, None, None)?;
    let stored = Stored { session, tip };
    report(Progress::Step { event: "begun".to_owned(), session: Box::new(stored.session.clone()) });
    Driver::with(hub, stored, held, actor, options, report)
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

/// What keeps `agent` from starting here, as far as can be seen.
pub fn obstacles(
    hub: &Hub,
    agent: &AgentName,
    level: PermissionLevel,
    unsandboxed_shell: bool,
) -> Result<Vec<Obstacle>> {
    let seat = hub.seat(agent)?;
    let main = hub.repo.main_work_tree().unwrap_or_else(|| hub.repo.common_dir());
    let ground = Ground { main_work_tree: main, level, unsandboxed_shell };
    Ok((seat.agent.obstacles)(&seat, &ground))
}
