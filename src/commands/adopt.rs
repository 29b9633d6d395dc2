//! `git relay adopt`

use super::run::tell_json;
use super::{
    code_of, found_here, open_hub, open_repository, run as headless, start as interactive, terminal,
};
use crate::agents::store::{self, Found, Running};
use crate::cli::{Adopt, Level};
use crate::error::Fault;
use crate::git::Repository;
use crate::host::stand_by::stand_by;
use crate::host::terminal as tty;
use crate::host::{clock, config, lock};
use crate::model::foreign;
use crate::model::names::AgentName;
use crate::model::session::{Adoption, PermissionLevel, Process, Request};
use crate::model::shell::shell_word;
use crate::relay::adopt::{self, Caller, Choice, Known, Place};
use crate::relay::detect::{self, Standing};
use crate::relay::start::{self, Task};
use crate::relay::{Hub, Options, not_in_a_leg};
use crate::ui::terminal::Teller;
use crate::ui::{out, progress};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Of a prompt in a list.
const PROMPT_CHARS_MOST: usize = 60;
/// For who adopts just now to have begun its session.
const TURN_PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(args: &Adopt) -> Result<u8> {
    not_in_a_leg()?;
    let running = store::running();
    let hub = open_hub().map_err(|error| place_of_named(args, &running, error))?;
    let caller = adopt::caller(&running)?;
    if !args.no_launch
        && !args.headless
        && caller.is_none()
        && let Some(code) = stand_by()?
    {
        return Ok(code);
    }
    // Another one that adopts at the same time begins its session before we look, or after ours.
    let turn = lock::take(&hub.repo.common_dir().join("relay/adopt.lock"), TURN_PATIENCE)?;
    let Some(turn) = turn else {
        return Err(Fault::raced("another `git relay adopt` is at it")
            .hint("git relay adopt")
            .into());
    };
    let known = Known::of(&hub)?;
    let found = which(&hub, args, &known, &running, caller.as_ref())?;
    known.must_be_new(&found)?;
    if let Some(before) = known.before(&found) {
        let (ours, state) = (&before.session_id, before.state);
        out::say(format!("relay: it was adopted before, as session {ours} ({state})"));
    }
    let place = adopt::place_of(&hub, &found, args.clean, &typed(args, Some(&found.id), &[]))?;
    let process = at_work(args, &found, &running, caller.as_ref())?;
    let launches = !args.no_launch && caller.is_none();
    let task = task(&hub, args, &found, place, process, launches)?;
    if let Some(caller) = &caller {
        return for_later(&hub, args, &task, caller);
    }
    let options = Options { no_launch: args.no_launch, ..Options::default() };
    let mut teller = Teller::default();
    let mut report = |progress| teller.tell(progress);
    let mut driver = start::begin(&hub, &task, "adopt", options, &mut report)?;
    drop(turn);
    if args.no_launch {
        let end = driver.drive()?;
        progress::tell_end(&end, driver.session());
        tell_json(&driver, &end, args.json)?;
        return Ok(code_of(&end));
    }
    driver.announced();
    terminal::drive(driver, |driver, end| tell_json(driver, end, args.json))
}

/// What was typed after the verb, to be said again with `id` and `more`.
fn typed(args: &Adopt, id: Option<&str>, more: &[&str]) -> String {
    let level = args.level.as_ref().and_then(ValueEnum::to_possible_value);
    let flags = [
        (args.include_dirty, "--include-dirty"),
        (args.clean, "--clean"),
        (args.headless, "--headless"),
        (args.force, "--force"),
        (args.no_launch, "--no-launch"),
        (args.json, "--json"),
    ];
    let mut words: Vec<String> = id.map(shell_word).into_iter().collect();
    if let Some(to) = &args.to {
        words.extend(["--to".to_owned(), shell_word(to)]);
    }
    words.extend(flags.iter().filter(|(is_said, _)| *is_said).map(|(_, flag)| (*flag).to_owned()));
    if let Some(level) = level {
        words.extend(["--level".to_owned(), level.get_name().to_owned()]);
    }
    words.extend(
        more.iter()
            .filter(|flag| **flag != "--force" || !args.force)
            .map(|flag| (*flag).to_owned()),
    );
    words.join(" ")
}

/// Outside every repository: where the session that was named worked, if that is known.
fn place_of_named(args: &Adopt, running: &[Running], error: anyhow::Error) -> anyhow::Error {
    let named = args.id.as_deref().map(|id| store::named(&store::homes(running), id));
    let Some([found]) = named.as_deref() else { return error };
    let Some(cwd) = found.cwd.as_deref().filter(|cwd| Repository::open(cwd).is_ok()) else {
        return error;
    };
    if open_repository().is_ok() {
        return error;
    }
    error.context(Fault::refused("there is no repository here").hint(format!(
        "cd {} && git relay adopt {}",
        shell_word(cwd),
        typed(args, Some(&found.id), &[])
    )))
}

fn which(
    hub: &Hub,
    args: &Adopt,
    known: &Known,
    running: &[Running],
    caller: Option<&Caller>,
) -> Result<Found> {
    match adopt::choose(hub, known, running, args.id.as_deref(), caller)? {
        Choice::Plain(found) => Ok(*found),
        Choice::Nothing if args.id.as_ref().is_some_and(|id| Path::new(id).is_dir()) => {
            let folder = args.id.as_deref().unwrap_or_default();
            Err(Fault::refused(format!("'{folder}' is a folder, and no agent's session"))
                .hint(format!(
                    "for the one plainly meant there: cd {} && git relay adopt {}",
                    shell_word(folder),
                    typed(args, None, &[])
                ))
                .into())
        }
        Choice::Nothing => Err(Fault::refused(match &args.id {
            Some(id) => format!("no agent's session '{id}' was found on this machine"),
            None => "no agent's session was found that worked in this folder".to_owned(),
        })
        .hint("git relay detect --all")
        .into()),
        Choice::Doubt(rows) => {
            let rows: Vec<Vec<String>> = rows
                .into_iter()
                .map(|row| {
                    let age = progress::ago(row.found.modified);
                    let state = match (row.standing, row.last_turn) {
                        (Standing::Ended, "limit") => "ended at its limit",
                        (standing, _) => standing.word(),
                    };
                    let prompt = row.prompt.as_deref().unwrap_or("-");
                    let prompt = detect::fit(prompt, PROMPT_CHARS_MOST);
                    let agent = row.found.agent().name.to_owned();
                    vec![row.found.id, agent, state.to_owned(), age, prompt]
                })
                .collect();
            out::table(&rows).lines().for_each(out::say);
            let same = args.id.is_some() && rows.iter().all(|row| row[0] == rows[0][0]);
            Err(Fault::refused("several sessions could be meant, so it must be named")
                .hint(match same {
                    true => {
                        "in the worktree where the one that is meant worked: git relay adopt ID"
                            .to_owned()
                    }
                    false => format!("git relay adopt {}", typed(args, Some("ID"), &[])),
                })
                .into())
        }
    }
}

/// The process that works on it, if there is one that may be ended.
fn at_work(
    args: &Adopt,
    found: &Found,
    running: &[Running],
    caller: Option<&Caller>,
) -> Result<Option<Process>> {
    let agent = found.agent().name;
    let Some(works) = found.process(running) else {
        let can_be_seen = crate::host::running::can_be_seen();
        if detect::Process::of(found, running, can_be_seen) == detect::Process::Unknown {
            out::say(format!(
                "relay: whether a {agent} that runs still works on this session cannot be told: end it first if it does"
            ));
        }
        return Ok(None);
    };
    let pid = works.process.pid;
    if caller.is_none() && works.held.len() > 1 {
        let others = works.held.len() - 1;
        return Err(Fault::refused(format!(
            "{agent} (process {pid}) works with it, and with {others} other sessions: it is not ended for one"
        ))
        .hint(format!("close that session there, then: git relay adopt {}", found.id))
        .into());
    }
    if args.force || caller.is_some() {
        return Ok(Some(works.process));
    }
    Err(Fault::refused(format!(
        "{agent} (process {pid}) still runs with it, and may go on by itself, at the reset of its limit say"
    ))
    .hint(format!(
        "leave it there, or have it ended between two of its calls (SIGINT, then SIGTERM, then SIGKILL): git relay adopt {}",
        typed(args, Some(&found.id), &["--force"])
    ))
    .into())
}

fn task(
    hub: &Hub,
    args: &Adopt,
    found: &Found,
    place: Place,
    process: Option<Process>,
    launches: bool,
) -> Result<Task> {
    let name = AgentName::new(found.agent().name).context("an adapter's name is one")?;
    let level = match args.headless {
        true => headless::level(args.level.unwrap_or(Level::Edit)),
        false => PermissionLevel::Ask,
    };
    let transcript = found.read()?;
    let prompt = transcript.prompts.first().map(|prompt| foreign::quoted(&prompt.text).text);
    let prompt = prompt.ok_or_else(|| {
        Fault::refused(format!("nobody has asked {name} anything in its session {}", found.id))
            .hint("git relay detect")
    })?;
    let home = &found.home;
    let config_folder = match home.is_default {
        true => None,
        false => Some(written(&home.path)?),
    };
    let adoption = Adoption {
        agent: name,
        agent_session: found.id.clone(),
        account: None,
        config_folder,
        include_dirty: !args.clean && place.source.is_some(),
        source: place.source,
        process,
        force: args.force,
        last_seen_at: found.modified.min(clock::now()),
        taken: None,
    };
    let (agents, to) = receivers(hub, args, &adoption.agent, launches.then_some(level))?;
    let request = Request {
        to,
        reason: Some("adopted".to_owned()),
        by: "user".to_owned(),
        at: clock::now(),
        force: false,
        no_launch: args.no_launch,
    };
    Ok(Task {
        text: hub.moved(&adoption, transcript.cwd.as_deref()).text(&prompt),
        agents,
        base: place.base,
        base_branch: place.branch,
        level,
        threshold_permille: hub.settings.threshold_permille,
        adopted: Some((adoption, request)),
    })
}

/// Who may receive it, and who is asked for. Refused where somebody is to be `launched` now, at that
/// level, and nobody could be.
fn receivers(
    hub: &Hub,
    args: &Adopt,
    giver: &AgentName,
    launched: Option<PermissionLevel>,
) -> Result<(Vec<AgentName>, Option<AgentName>)> {
    let to = config::names(args.to.clone().into_iter().collect())?.into_iter().next();
    let has_terminal = tty::is_one();
    let mut agents = hub.settings.agents.clone();
    // Who names an agent here consents to it.
    agents.extend(to.clone().filter(|to| !hub.settings.agents.contains(to)));
    if agents.is_empty() && !has_terminal {
        return Err(Fault::usage("nobody has said which agents may receive this work")
            .hint(format!(
                "name one: git relay adopt {}; or all, for good: git relay init --agents {}",
                typed(args, args.id.as_deref(), &["--to AGENT"]),
                found_here(&hub.settings)
            ))
            .into());
    }
    let named: Vec<String> = agents.iter().map(ToString::to_string).collect();
    let agents = interactive::agents(hub, &named, None)?;
    let Some(level) = launched else { return Ok((agents, to)) };
    if !args.headless && !has_terminal {
        return Err(Fault::refused("this is no terminal, and the agents are to work in one")
            .hint(format!("git relay adopt {}", typed(args, args.id.as_deref(), &["--headless"])))
            .into());
    }
    let asked: Vec<AgentName> = match &to {
        Some(to) => vec![to.clone()],
        None => agents.iter().filter(|agent| *agent != giver).cloned().collect(),
    };
    if asked.is_empty() {
        return Err(Fault::refused(format!(
            "there is no other agent than {giver} to hand over to"
        ))
        .hint(format!("git relay adopt {}", typed(args, args.id.as_deref(), &["--to AGENT"])))
        .into());
    }
    match args.headless {
        true => headless::someone_can_start(hub, &asked, level, false)?,
        false => interactive::someone_is_here(hub, &asked)?,
    }
    Ok((agents, to))
}

/// From inside the agent's own shell: nothing can end the caller, and its turn is not over. What it
/// leaves is looked at by whoever goes on.
fn for_later(hub: &Hub, args: &Adopt, task: &Task, caller: &Caller) -> Result<u8> {
    let mut report = progress::tell;
    let begun = start::begin(hub, task, "adopt", Options::default(), &mut report);
    let driver = begun.map_err(|error| {
        error.context(Fault::refused("the session could not be begun from this shell").hint(
            format!(
                "end your turn now; then, in a shell of your own: git relay adopt {}",
                caller.id
            ),
        ))
    })?;
    let id = driver.session().session_id.clone();
    out::say(format!("End your turn now. Then, in a shell of your own: git relay resume {id}"));
    if args.json {
        out::json("run", &json!({"end": "asked", "sessionId": id}))?;
    }
    Ok(0)
}

/// A folder as a session's state can name it.
fn written(folder: &Path) -> Result<String> {
    let text = folder.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let what = format!("the path of its folder '{}' is not UTF-8", folder.display());
        Fault::refused(what).hint("git relay detect").into()
    })
}
