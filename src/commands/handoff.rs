//! `git relay handoff`: asks where somebody drives or may not drive, drives where nobody does.

use super::{found_here, open_hub, terminal};
use crate::cli::Handoff;
use crate::error::{Fault, Kind, kind_of};
use crate::host::stand_by::stand_by;
use crate::host::{clock, lock, process};
use crate::model::canon;
use crate::model::fsm::Event;
use crate::model::inbox::Says;
use crate::model::names::{AgentName, Oid, SessionId};
use crate::model::receivers;
use crate::model::session::{Breach, BreachReason, DeclaredKind, Session, State};
use crate::relay::{Driver, End, Hub, Options, Progress, ask, finish, start};
use crate::store::{self, Stored, keys};
use crate::ui::terminal::Teller;
use crate::ui::{out, progress};
use anyhow::{Context, Result};
use serde_json::json;
use signal_hook::consts::SIGINT;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a driver is watched after it was asked.
const WATCH: Duration = Duration::from_secs(600);

/// So many looks in a row at a leg that is over say that somebody is waited for.
const IDLE_LOOKS: u32 = 4;

pub(super) fn run(args: &Handoff) -> Result<u8> {
    let to = args.to.as_deref().map(receiver).transpose()?;
    // From inside the session's own agent: ask, never wait for the death of our own parent.
    if !args.dry_run
        && let Some(inbox) = ask::own_inbox()
        && ask::own_leg().is_some()
    {
        return ask_and_leave(&inbox, args, to, ask::own_leg(), None);
    }
    if !args.dry_run
        && !args.no_launch
        && let Some(code) = stand_by()?
    {
        return Ok(code);
    }
    let hub = open_hub()?;
    let session = session(&hub, args)?;
    finish::must_not_be_finishing(&session)?;
    let id = session.session_id.clone();
    if session.is_to_adopt() {
        return Err(Fault::refused(format!(
            "session '{id}' has not begun: what it adopts is not here yet"
        ))
        .hint(format!("git relay resume {id}"))
        .into());
    }
    if let Some(to) = &to {
        hub.seat(to)?;
    }
    if args.dry_run {
        return dry_run(&hub, args, &id, to);
    }
    let inbox = ask::inbox_path(&hub, &session);
    if ask::is_inside(&session) {
        return ask_and_leave(&inbox, args, to, ask::leg_of(&session), Some(&id));
    }
    is_for_somebody_else(&hub, args, &session, to.as_ref())?;
    // Whoever nobody is to be started for is not looked at, but one that is named is waited for.
    if !args.force && (!args.no_launch || is_exhausted(&session, to.as_ref())) {
        somebody_could_start(&hub, &session, to.as_ref())?;
    }
    let options = Options { no_launch: args.no_launch, ..Options::default() };
    let mut teller = Teller::default();
    let mut report = |progress| teller.tell(progress);
    let mut driver = match Driver::take(&hub, &id, "handoff", options, &mut report) {
        Ok(driver) => driver,
        Err(error) if kind_of(&error) == Kind::Raced => {
            is_consented(&session, to.as_ref())?;
            let before = hub.load(&id)?.tip;
            append(&inbox, args, to, None)?;
            out::say("relay: the driver of this session has been asked; this is what it does:");
            return watch(&hub, &id, args, session.leg, before);
        }
        Err(error) => return Err(error),
    };
    // Who names an agent at a shell, and may drive, consents to it.
    if let Some(to) = &to
        && !session.agents.contains(to)
    {
        let mut agents = session.agents.clone();
        agents.push(to.clone());
        driver.step(&Event::Consented { agents }, None)?;
    }
    driver.make_ground()?;
    append(&inbox, args, to, None)?;
    terminal::drive(driver, |driver, end| tell_json(args, driver.session(), "driven", Some(end)))
}

/// The session that is meant, which is named with `--session` or without.
fn session(hub: &Hub, args: &Handoff) -> Result<Session> {
    if let Some(agent) = args.name.as_deref().and_then(AgentName::new)
        && hub.seat(&agent).is_ok()
    {
        return Err(Fault::usage(format!("'{agent}' is an agent, and a session is named here"))
            .hint(format!("git relay handoff --to {agent}"))
            .into());
    }
    let named = args.session.as_deref().or(args.name.as_deref());
    ask::open_session(hub, named, "git relay handoff --session NAME")
}

/// The agent in `AGENT[@ACCOUNT]`.
fn receiver(text: &str) -> Result<AgentName> {
    if let Some((agent, account)) = text.split_once('@') {
        return Err(Fault::usage(format!(
            "accounts of one agent cannot be told apart yet, so not '{account}' of '{agent}'"
        ))
        .hint("git relay handoff --to AGENT")
        .into());
    }
    AgentName::new(text).ok_or_else(|| {
        Fault::usage(format!("'{text}' is not an agent's name")).hint("git relay agents").into()
    })
}

fn ask_and_leave(
    inbox: &Path,
    args: &Handoff,
    to: Option<AgentName>,
    by: Option<String>,
    session: Option<&SessionId>,
) -> Result<u8> {
    append(inbox, args, to, by)?;
    out::say("The hand-over is asked for: end your turn now.");
    if args.json {
        out::json("handoff", &json!({"did": "asked", "sessionId": session}))?;
    }
    Ok(0)
}

fn is_for_somebody_else(
    hub: &Hub,
    args: &Handoff,
    session: &Session,
    to: Option<&AgentName>,
) -> Result<()> {
    let id = &session.session_id;
    let at_work = session.dispatch.as_ref().and_then(|dispatch| dispatch.process);
    let at_work = at_work.is_some_and(process::is_alive) && session.leg_end.is_none();
    if at_work && to.is_some() && to == session.agent() {
        return Err(Fault::refused(format!(
            "'{}' is at work on it already",
            args.to.as_deref().unwrap_or_default()
        ))
        .hint(format!("git relay status {id}"))
        .into());
    }
    let alone = session.agents.iter().all(|agent| Some(agent) == session.agent());
    if to.is_none() && alone && !args.no_launch {
        return Err(Fault::refused("there is no other agent to hand over to")
            .hint(format!(
                "git relay resume {id}, or with more agents: git relay resume {id} --agents {}",
                found_here(&hub.settings)
            ))
            .into());
    }
    Ok(())
}

fn is_consented(session: &Session, to: Option<&AgentName>) -> Result<()> {
    let Some(to) = to.filter(|to| !session.agents.contains(to)) else { return Ok(()) };
    let names: Vec<&str> = session.agents.iter().map(AgentName::as_str).collect();
    Err(Fault::refused(format!("'{to}' was not consented to for this session"))
        .hint(format!(
            "press Ctrl-C where its driver runs, then: git relay resume {} --agents {},{to}",
            session.session_id,
            names.join(",")
        ))
        .into())
}

fn is_exhausted(session: &Session, to: Option<&AgentName>) -> bool {
    to.is_some_and(|to| receivers::reset_of(session, to, clock::now()).is_some())
}

/// Refuses, before anything is asked or stopped, what could only end with nobody at work.
fn somebody_could_start(hub: &Hub, session: &Session, to: Option<&AgentName>) -> Result<()> {
    let now = clock::now();
    let level = session.permission_level;
    let mut resets = Vec::new();
    let mut first = None;
    let order = receivers::order(session);
    let asked = match to {
        Some(to) => std::slice::from_ref(to),
        None => &order,
    };
    for agent in asked {
        if let Some(reset) = receivers::reset_of(session, agent, now) {
            resets.push((reset, agent));
        } else if to.is_none() && receivers::rests(session, agent, now) {
            continue;
        } else {
            match start::obstacles(hub, agent, level, false)?.into_iter().next() {
                None => return Ok(()),
                Some(obstacle) => first = first.or(Some(obstacle)),
            }
        }
    }
    if let Some(obstacle) = first {
        return Err(Fault::environment(obstacle.what).hint(obstacle.hint).into());
    }
    let id = &session.session_id;
    let here = found_here(&hub.settings);
    Err(match resets.into_iter().min() {
        Some((reset, agent)) => Fault::new(
            Kind::Exhausted,
            format!("the window of '{agent}' is used up until {reset} ({})", progress::ago(reset)),
        )
        .hint(match to {
            Some(to) => format!(
                "let the next free agent take it: git relay handoff --session {id}; or wait for it: \
                 git relay handoff --session {id} --to {to} --force"
            ),
            None => format!("wait for it, or with more agents: git relay resume {id} --agents {here}"),
        }),
        None => Fault::new(Kind::Exhausted, "no other agent could start now")
            .hint(format!("git relay resume {id} --agents {here}")),
    }
    .into())
}

fn append(inbox: &Path, args: &Handoff, to: Option<AgentName>, by: Option<String>) -> Result<()> {
    if let Some(text) = &args.next {
        let says = Says::Record { fact: DeclaredKind::Next, text: text.clone(), nonce: None };
        ask::append_as(inbox, says, by.clone())?;
    }
    let says = Says::Handoff {
        to,
        reason: args.reason.clone(),
        force: args.force,
        no_launch: args.no_launch,
        nonce: None,
    };
    ask::append_as(inbox, says, by)
}

/// Shows the steps another command takes until the next agent has taken over.
fn watch(hub: &Hub, id: &SessionId, args: &Handoff, leg: u32, mut seen: Oid) -> Result<u8> {
    let began = Instant::now();
    let mut idle_looks = 0;
    // Ctrl-C ends the look, not what is looked at.
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
    loop {
        let driven = lock::is_held(&hub.lock_path(id));
        let stored = hub.load(id)?;
        tell_since(hub, &stored, &seen)?;
        seen = stored.tip;
        let session = stored.session;
        // The driver of a leg that is over takes its next step at once, unless it asks its person.
        let rests = session.state == State::Running && session.leg_end.is_some();
        idle_looks = if driven && rests && session.is_interactive() { idle_looks + 1 } else { 0 };
        if idle_looks == IDLE_LOOKS {
            out::say(
                "relay: its agent was left, and the person at its terminal is asked what is meant: \
                 press h there to hand over",
            );
        }
        let taken = session.leg > leg && session.state == State::Running;
        let saved = args.no_launch && !driven && session.state == State::EnvelopeBuilt;
        let code = if taken || saved || session.state.is_end() {
            0
        } else if !driven {
            out::say(format!("relay: its driver ended. Go on: git relay resume {id}"));
            1
        } else if interrupted.load(Ordering::Relaxed) {
            out::say(format!("relay: the hand-over goes on. Look: git relay status {id}"));
            1
        } else if began.elapsed() > WATCH {
            out::say(format!("relay: still at it. Look: git relay status {id}"));
            0
        } else {
            sleep(Duration::from_millis(250));
            continue;
        };
        tell_json(args, &session, "asked", None)?;
        return Ok(code);
    }
}

/// Tells every step after `seen`.
fn tell_since(hub: &Hub, stored: &Stored, seen: &Oid) -> Result<()> {
    let id = &stored.session.session_id;
    let mut steps = Vec::new();
    let mut at = stored.tip.clone();
    while at != *seen {
        let commit = hub.repo.read_commit(&at)?;
        let session = Box::new(store::load_at(&hub.repo, &hub.trust, id, &at)?);
        steps
            .push(Progress::Step { event: store::event_word(&commit.message).to_owned(), session });
        let Some(parent) = commit.parents.first().cloned() else { break };
        at = parent;
    }
    steps.into_iter().rev().for_each(progress::tell);
    Ok(())
}

/// What was done, by whom the session goes on, and how driving ended if it was driven here.
fn tell_json(args: &Handoff, session: &Session, did: &str, end: Option<&End>) -> Result<()> {
    if !args.json {
        return Ok(());
    }
    let contract = session.contract.as_ref().map(|known| &known.contract_id);
    let value = json!({
        "sessionId": session.session_id, "did": did, "state": session.state, "leg": session.leg,
        "agent": session.agent(), "contractId": contract, "end": end.map(End::word),
    });
    out::json("handoff", &value)
}

/// Shows the contract that would be signed, in the form that `show` has.
fn dry_run(hub: &Hub, args: &Handoff, id: &SessionId, to: Option<AgentName>) -> Result<u8> {
    let breach = Breach {
        reason: BreachReason::Request,
        text: args.reason.clone(),
        reading: None,
        target: to,
        at: clock::now(),
    };
    let draft = hub.dry_run(&hub.load(id)?, breach)?;
    let bytes = canon::encode(&draft.contract).context("a contract can be encoded")?;
    if args.json {
        out::data(&bytes)?;
        return Ok(0);
    }
    let value: serde_json::Value = serde_json::from_slice(&bytes)?;
    for line in serde_json::to_string_pretty(&value)?.lines() {
        out::line(line)?;
    }
    let key = keys::load_key(&hub.repo)?.public().fingerprint();
    out::say(format!("not signed, and nothing was written: it would be signed by {key}"));
    Ok(0)
}
