//! `git relay run`

use super::{code_of, found_here, no_commit_yet, open_hub};
use crate::cli::{Level, Run};
use crate::error::Fault;
use crate::host::config;
use crate::model::names::AgentName;
use crate::model::session::{PermissionLevel, Session};
use crate::relay::start::{self, Task};
use crate::relay::{Driver, End, Hub, Options};
use crate::ui::{out, progress};
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Run) -> Result<u8> {
    let hub = open_hub()?;
    let task = task(&hub, args)?;
    let options = Options {
        unsandboxed_shell: args.unsandboxed_shell,
        no_launch: args.no_launch,
        ..Options::default()
    };
    if !options.no_launch {
        someone_can_start(&hub, &task.agents, task.level, options.unsandboxed_shell)?;
    }
    if hub.repo.has_changes()? {
        out::say(
            "relay: your uncommitted changes stay where they are: the task starts from the last commit",
        );
    }
    let mut report = progress::tell;
    let mut driver = start::begin(&hub, &task, "run", options, &mut report)?;
    let end = driver.drive()?;
    progress::tell_end(&end, driver.session());
    tell_json(&driver, &end, args.json)?;
    Ok(code_of(&end))
}

/// Tells how driving ended as JSON, if that is wanted.
pub(super) fn tell_json(driver: &Driver<'_>, end: &End, is_wanted: bool) -> Result<()> {
    if !is_wanted {
        return Ok(());
    }
    let session: &Session = driver.session();
    let (resets_at, detail, open_items) = match end {
        End::Asks { detail, open_items } => (None, detail.clone(), open_items.clone()),
        End::Failed { detail } => (None, detail.clone(), Vec::new()),
        End::Exhausted { resets_at } => (*resets_at, None, Vec::new()),
        End::Done | End::Killed | End::NotStarted | End::Next { .. } | End::Over(_) => {
            (None, None, Vec::new())
        }
    };
    let value = json!({
        "sessionId": session.session_id, "end": end.word(), "state": session.state,
        "leg": session.leg, "branch": session.workplace.branch,
        "worktree": out::path(driver.worktree()), "resetsAt": resets_at, "detail": detail,
        "openItems": open_items,
    });
    out::json("run", &value)
}

/// Refuses where the shared file leaves none of the agents that were named.
pub(super) fn none_is_left(hub: &Hub) -> Result<()> {
    let left_out: Vec<&str> = hub.settings.left_out.iter().map(AgentName::as_str).collect();
    if left_out.is_empty() {
        return Ok(());
    }
    let names = left_out.join(",");
    Err(Fault::usage(format!("the shared '.relay.toml' leaves none of your agents ({names})"))
        .hint(format!(
            "name one of its 'agents' in your configuration; or all the same, say --agents {names} here"
        ))
        .into())
}

fn task(hub: &Hub, args: &Run) -> Result<Task> {
    let agents = match config::names(args.agents.clone())? {
        named if named.is_empty() => hub.settings.agents.clone(),
        named => named,
    };
    if agents.is_empty() {
        none_is_left(hub)?;
        return Err(Fault::usage("nobody has said which agents may receive this work")
            .hint(format!(
                "git relay init --agents {}, or say --agents here",
                found_here(&hub.settings)
            ))
            .into());
    }
    for agent in &agents {
        hub.seat(agent)?;
    }
    if hub.repo.head_commit()?.is_none() {
        return Err(no_commit_yet(&hub.repo)?);
    }
    let base = hub.repo.resolve(&args.base)?.ok_or_else(|| {
        Fault::usage(format!("'{}' is no commit here", args.base)).hint("git log --oneline")
    })?;
    Ok(Task {
        text: args.task.clone(),
        agents,
        base,
        base_branch: start::branch_in(&hub.repo)?,
        level: level(args.level),
        threshold_permille: match args.threshold {
            Some(share) => config::permille(share)?,
            None => hub.settings.threshold_permille,
        },
        adopted: None,
    })
}

pub(super) fn level(level: Level) -> PermissionLevel {
    match level {
        Level::Read => PermissionLevel::Read,
        Level::Edit => PermissionLevel::Edit,
        Level::All => PermissionLevel::All,
    }
}

/// Refuses before anything is made when no agent at all could start.
pub(super) fn someone_can_start(
    hub: &Hub,
    agents: &[AgentName],
    level: PermissionLevel,
    unsandboxed_shell: bool,
) -> Result<()> {
    let mut first = None;
    for agent in agents {
        match start::obstacles(hub, agent, level, unsandboxed_shell)?.into_iter().next() {
            None => return Ok(()),
            Some(obstacle) => first = first.or(Some(obstacle)),
        }
    }
    match first {
        Some(obstacle) => Err(Fault::environment(obstacle.what).hint(obstacle.hint).into()),
        None => Ok(()),
    }
}
