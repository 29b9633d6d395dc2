//! `git relay start`

use super::run::none_is_left;
use super::{no_commit_yet, open_hub, terminal};
use crate::agents::Seat;
use crate::cli::Start;
use crate::error::Fault;
use crate::host::config;
use crate::host::stand_by::stand_by;
use crate::host::terminal as tty;
use crate::model::names::AgentName;
use crate::model::session::PermissionLevel;
use crate::relay::start::{self, Task};
use crate::relay::{Hub, Options};
use crate::ui::out;
use crate::ui::terminal::{Teller, ask};
use anyhow::Result;

pub(super) fn run(args: &Start) -> Result<u8> {
    if !tty::is_one() {
        return Err(Fault::refused("this is no terminal, and the agents are to work in one")
            .hint("git relay run 'the task'")
            .into());
    }
    if let Some(code) = stand_by()? {
        return Ok(code);
    }
    let hub = open_hub()?;
    if hub.repo.head_commit()?.is_none() {
        return Err(no_commit_yet(&hub.repo)?);
    }
    let agents = agents(&hub, &args.agents, args.agent.as_ref())?;
    someone_is_here(&hub, &agents)?;
    let text = match &args.task {
        Some(text) => text.clone(),
        None => ask("What is to be done? (one line)").unwrap_or_default(),
    };
    let base = hub.repo.resolve(&args.base)?.ok_or_else(|| {
        Fault::usage(format!("'{}' is no commit here", args.base)).hint("git log --oneline")
    })?;
    let base = match args.include_dirty {
        true => start::commit_of_what_is_there(&hub, &base)?,
        false => base,
    };
    if !args.include_dirty && hub.repo.has_changes()? {
        out::say(
            "relay: your uncommitted changes stay where they are: the task starts from the last commit (--include-dirty takes them along)",
        );
    }
    let task = Task {
        text,
        agents,
        base,
        base_branch: start::branch_in(&hub.repo)?,
        // The person's own settings rule, and they are there to be asked.
        level: PermissionLevel::Ask,
        threshold_permille: match args.threshold {
            Some(share) => config::permille(share)?,
            None => hub.settings.threshold_permille,
        },
        adopted: None,
    };
    let mut teller = Teller::default();
    let mut report = |progress| teller.tell(progress);
    let driver = start::begin(&hub, &task, "start", Options::default(), &mut report)?;
    terminal::drive(driver, |_, _| Ok(()))
}

/// The agents that may have it, the one to begin with first. Whoever is named here, or in the
/// configuration, is consented to; where nobody is, the person is asked once.
pub(super) fn agents(
    hub: &Hub,
    named: &[String],
    first: Option<&String>,
) -> Result<Vec<AgentName>> {
    let mut agents = match config::names(named.to_vec())? {
        named if named.is_empty() => hub.settings.agents.clone(),
        named => named,
    };
    if let Some(first) = config::names(first.cloned().into_iter().collect())?.into_iter().next() {
        agents.retain(|agent| *agent != first);
        agents.insert(0, first);
    }
    if agents.is_empty() {
        none_is_left(hub)?;
        agents = confirmed(hub)?;
    }
    for agent in &agents {
        hub.seat(agent)?;
    }
    Ok(agents)
}

fn confirmed(hub: &Hub) -> Result<Vec<AgentName>> {
    let installed: Vec<AgentName> = Seat::installed(&hub.settings);
    let names: Vec<&str> = installed.iter().map(AgentName::as_str).collect();
    let nobody = Fault::usage("nobody has said which agents may receive this work")
        .hint("git relay agents, then: git relay start --agents A,B 'the task'");
    if names.is_empty() {
        return Err(nobody.into());
    }
    let question = format!(
        "May these agents receive this work, one after the other: {}? [y/N]",
        names.join(", ")
    );
    match ask(&question).as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("y" | "yes") => Ok(installed),
        _ => Err(nobody.into()),
    }
}

/// Refuses before anything is made when no agent at all could be started.
pub(super) fn someone_is_here(hub: &Hub, agents: &[AgentName]) -> Result<()> {
    let mut first = None;
    for agent in agents {
        match start::obstacles_at_terminal(hub, agent)?.into_iter().next() {
            None => return Ok(()),
            Some(obstacle) => first = first.or(Some(obstacle)),
        }
    }
    match first {
        Some(obstacle) => Err(Fault::environment(obstacle.what).hint(obstacle.hint).into()),
        None => Ok(()),
    }
}
