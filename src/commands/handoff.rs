//! `git relay handoff`: asks where somebody drives or may not drive, drives where nobody does.

use super::open_hub;
use super::run::tell_end;
use crate::cli::Handoff;
use crate::error::{Fault, Kind, kind_of};
use crate::host::{lock, process};
use crate::model::inbox::Says;
use crate::model::names::{AgentName, SessionId};
use crate::model::session::{DeclaredKind, State};
use crate::relay::{Driver, Hub, Options, Progress, ask, finish};
use crate::store;
use crate::ui::{out, progress};
use anyhow::Result;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a driver is watched after it was asked.
const WATCH: Duration = Duration::from_secs(600);

pub(super) fn run(args: &Handoff) -> Result<u8> {
    let to = match &args.to {
        Some(text) => Some(AgentName::new(text.as_str()).ok_or_else(|| {
            Fault::usage(format!("'{text}' is not an agent's name")).hint("git relay agents")
        })?),
        None => None,
    };
    // From inside the session's own agent: ask, never wait for the death of our own parent.
    if let Some(inbox) = ask::own_inbox()
        && ask::own_leg().is_some()
    {
        append(&inbox, args, to)?;
        out::say("The hand-over is asked for: end your turn now.");
        return Ok(0);
    }
    let hub = open_hub()?;
    let session = ask::open_session(&hub, args.session.as_deref())?;
    finish::must_not_be_finishing(&session)?;
    let id = session.session_id.clone();
    if let Some(to) = &to {
        hub.seat(to)?;
    }
    let at_work = session.dispatch.as_ref().and_then(|dispatch| dispatch.process);
    let at_work = at_work.is_some_and(process::is_alive) && session.leg_end.is_none();
    if at_work && to.is_some() && to.as_ref() == session.agent() {
        return Err(Fault::refused(format!(
            "'{}' is at work on it already",
            args.to.as_deref().unwrap_or_default()
        ))
        .hint(format!("git relay status {id}"))
        .into());
    }
    if to.is_none() && session.agents.iter().all(|agent| Some(agent) == session.agent()) {
        return Err(Fault::refused("there is no other agent to hand over to")
            .hint(format!(
                "git relay resume {id}, or with more agents: git relay resume {id} --agents A,B"
            ))
            .into());
    }
    if let Some(to) = &to
        && !session.agents.contains(to)
    {
        let names: Vec<&str> = session.agents.iter().map(AgentName::as_str).collect();
        return Err(Fault::refused(format!("'{to}' was not consented to for this session"))
            .hint(format!("git relay resume {id} --agents {},{to}", names.join(",")))
            .into());
    }
    append(&ask::inbox_path(&hub, &session), args, to)?;
    let mut report = progress::tell;
    let mut driver = match Driver::take(&hub, &id, "handoff", Options::default(), &mut report) {
        Ok(driver) => driver,
        Err(error) if kind_of(&error) == Kind::Raced => {
            out::say("relay: the driver of this session has been asked; this is what it does:");
            return watch(&hub, &id, session.leg);
        }
        Err(error) => return Err(error),
    };
    let end = driver.drive()?;
    tell_end(&driver, &end, false)
}

fn append(inbox: &Path, args: &Handoff, to: Option<AgentName>) -> Result<()> {
    if let Some(text) = &args.next {
        ask::append(
            inbox,
            Says::Record { fact: DeclaredKind::Next, text: text.clone(), nonce: None },
        )?;
    }
    ask::append(
        inbox,
        Says::Handoff { to, reason: args.reason.clone(), force: args.force, nonce: None },
    )
}

/// Shows the steps another command takes until the next agent has taken over.
fn watch(hub: &Hub, id: &SessionId, leg: u32) -> Result<u8> {
    let began = Instant::now();
    let mut seen = None;
    while began.elapsed() < WATCH {
        let stored = hub.load(id)?;
        if seen.as_ref() != Some(&stored.tip) {
            let event = store::event_of(&hub.repo, &stored.tip)?;
            progress::tell(Progress::Step { event, session: Box::new(stored.session.clone()) });
            seen = Some(stored.tip);
        }
        let session = stored.session;
        if session.leg > leg && session.state == State::Running || session.state.is_end() {
            return Ok(0);
        }
        if !lock::is_held(&hub.lock_path(id)) {
            out::say(format!("relay: its driver ended. Go on: git relay resume {id}"));
            return Ok(1);
        }
        sleep(Duration::from_millis(250));
    }
    out::say(format!("relay: still at it. Look: git relay status {id}"));
    Ok(0)
}
