//! `git relay status`

use super::{found_here, open_hub};
use crate::agents::Pause;
use crate::cli::One;
use crate::error::hint_of;
use crate::git::{branch_ref, kept_ref};
use crate::host::{clock, files, lock, process};
use crate::model::fsm::{self, Effect};
use crate::model::names::AgentName;
use crate::model::receivers;
use crate::model::session::{Outcome, Session, State};
use crate::model::time::Timestamp;
use crate::relay::{Hub, ask};
use crate::ui::out;
use crate::ui::progress::{ago, share};
use crate::ui::standing::standing;
use anyhow::Result;
use serde_json::{Value, json};

/// The newest facts that are shown; `--json` has all.
const FACTS_SHOWN_MOST: usize = 10;

pub(super) fn run(args: &One) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref(), "git relay status NAME")?;
    let session = hub.load(&id)?.session;
    let inbox = ask::unfolded(&ask::inbox_path(&hub, &session), session.inbox_offset)?;
    let (facts, request) = ask::facts(&session, &inbox.lines);
    let driven = lock::is_held(&hub.lock_path(&id));
    let alive = session
        .dispatch
        .as_ref()
        .and_then(|dispatch| dispatch.process)
        .is_some_and(process::is_alive);
    let blocked = blocked(&hub, &session);
    let again = format!("git relay resume {id}");
    let taken = hub.must_not_be_moved(&session, &again).and(hub.must_not_be_taken(&session));
    let taken = taken.err().filter(|_| !session.state.is_end());
    let next = match (&blocked, session.state.is_end() || driven) {
        _ if taken.is_some() => taken.as_ref().and_then(hint_of).map(str::to_owned),
        (Some(_), false) => Some(format!(
            "look at what changed and put it back, or git relay resume {id} --accept-config"
        )),
        _ => next_command(&hub, &session, driven),
    };
    let hook_faults = files::read_text(&hub.folder(&id).join("hook.log"), 1 << 20)?;
    if args.json {
        let value = json!({
            "session": session, "driven": driven, "agentAlive": alive, "next": next,
            "standing": standing(&session, driven, alive),
            "blocked": blocked, "exhausted": exhausted(&session),
            "worktree": out::path(hub.worktree(&session)),
            "notYetSigned": {"facts": facts, "request": request},
            "hookFaults": hook_faults.as_deref().map_or(0, |text| text.lines().count()),
        });
        out::json("status", &value)?;
        return Ok(0);
    }
    let mut rows = rows(&hub, &session, driven, alive);
    for fact in &facts {
        rows.push(vec!["not yet signed".into(), format!("{}: {}", fact.kind.word(), fact.text)]);
    }
    if let Some(what) = blocked {
        rows.push(vec!["blocked".into(), format!("changed since launch: {what}")]);
    }
    if let Some(taken) = &taken {
        rows.push(vec!["worktree".into(), taken.to_string()]);
    }
    if request.is_some() {
        rows.push(vec!["not yet signed".into(), "a hand-over is asked for".into()]);
    }
    if let Some(last) = hook_faults.as_deref().and_then(|text| text.lines().last()) {
        rows.push(vec!["hook fault".into(), last.to_owned()]);
    }
    if let Some(next) = next {
        rows.push(vec!["next".into(), next]);
    }
    out::data(out::table(&rows).as_bytes())?;
    Ok(0)
}

fn rows(hub: &Hub, session: &Session, driven: bool, alive: bool) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("session", session.session_id.to_string());
    row("task", session.task.lines().next().unwrap_or_default().chars().take(90).collect());
    let by = if driven { "driven by a command" } else { "no command drives it" };
    row("state", format!("{} since {} ({by})", session.state, ago(session.updated_at)));
    row("that is", standing(session, driven, alive));
    if let Some(dispatch) = &session.dispatch {
        let how = if alive { "at work" } else { "not running" };
        row("agent", format!("{}, leg {} ({how})", dispatch.agent, dispatch.leg));
        if alive {
            let stream = hub.folder(&session.session_id).join(format!("{}.stream", dispatch.nonce));
            row("its output", stream.display().to_string());
        }
        let hooked = hub
            .seat(&dispatch.agent)
            .is_ok_and(|seat| !matches!(seat.agent.pause, Pause::Interrupt));
        if alive && hooked && session.state == State::Running && !session.hooks_fired {
            row("hooks", "none of ours has fired in this leg yet".into());
        }
    }
    let waits = alive && matches!(session.state, State::Dispatched | State::Resuming);
    if waits && session.is_interactive() {
        row("waiting", "for you, in its terminal (trust, login or update prompt?)".into());
    }
    rows_of_finish(hub, session, &mut row);
    if session.state == State::EnvelopeBuilt
        && let Some(agent) = receivers::next(session, clock::now())
    {
        row("goes to", agent.to_string());
    }
    for reading in &session.readings {
        row("usage", format!("{}, {}", share(reading), ago(reading.observed_at)));
    }
    if session.readings.is_empty() {
        row("usage", "unknown".into());
    }
    if let Some(end) = &session.leg_end {
        let detail = end.detail.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        row("leg ended", format!("{}{detail}", end.outcome));
        for item in &end.open_items {
            row("open item", item.clone());
        }
    }
    for dispatch in session.dispatches.iter().filter(|d| d.leg > session.leg) {
        let why = dispatch.outcome.map_or("", |outcome| outcome.word());
        let detail = dispatch.detail.as_deref().unwrap_or_default();
        row("tried", format!("{}: {why} {detail}", dispatch.agent));
    }
    for (agent, reset) in used_up(session) {
        let until = match reset {
            Some(reset) => format!("until {reset} ({})", ago(reset)),
            None => "nobody told until when".to_owned(),
        };
        row("exhausted", format!("{agent}, {until}"));
    }
    for fact in session.declared.iter().rev().take(FACTS_SHOWN_MOST).rev() {
        row("recorded", format!("{} ({}): {}", fact.kind.word(), fact.by, fact.text));
    }
    if let Some(contract) = &session.contract {
        row("contract", format!("{} (closes leg {})", contract.contract_id, contract.leg));
    }
    let order: Vec<&str> = session.agents.iter().map(|agent| agent.as_str()).collect();
    row("agents", order.join(", "));
    rows_of_place(hub, session, &mut row);
    rows
}

/// Where the work is; of a session that is over, only what is still there.
fn rows_of_place(hub: &Hub, session: &Session, row: &mut impl FnMut(&str, String)) {
    let (branch, worktree) = (&session.workplace.branch, hub.worktree(session));
    let is_there = |name: &str| matches!(hub.repo.read_ref(name), Ok(Some(_)));
    let is_over = session.state.is_end();
    if !is_over || is_there(&branch_ref(branch)) {
        let gone = match is_over || session.dispatch.is_none() {
            true => None,
            false => hub.must_have_branch(session).err(),
        };
        let how = gone.as_ref().and_then(hint_of).map(|how| format!(", and it is gone: {how}"));
        row("branch", format!("{branch}{}", how.unwrap_or_default()));
    }
    if !is_over || worktree.exists() {
        row("worktree", worktree.display().to_string());
    }
    let kept = kept_ref(&session.session_id);
    if is_over && is_there(&kept) {
        row("kept as", kept);
    }
}

/// A finish that is under way.
fn rows_of_finish(hub: &Hub, session: &Session, row: &mut impl FnMut(&str, String)) {
    let Some(finishing) = &session.finishing else { return };
    if let Ok(Some(place)) = hub.repo.checked_out_at(&finishing.branch) {
        row("finishes in", place.display().to_string());
    }
    let branch = finishing.branch.trim_start_matches("refs/heads/");
    let conflicts = finishing.conflicts.join(", ");
    row(
        "finish",
        match finishing.conflicts.is_empty() {
            true => format!("was begun into {branch}, and broken off"),
            false => format!("into {branch}; conflicts are left there in: {conflicts}"),
        },
    );
}

/// What the guard would stop a driver for, exit 4. Beside an agent at work it is said as well.
fn blocked(hub: &Hub, session: &Session) -> Option<String> {
    if session.state.is_end() {
        return None;
    }
    hub.changed_since_launch(session).unwrap_or_else(|error| Some(format!("{error:#}")))
}

/// The agents whose window is used up, and until when that is known.
fn used_up(session: &Session) -> Vec<(&AgentName, Option<Timestamp>)> {
    let now = clock::now();
    let agents = session.agents.iter().filter(|_| !session.state.is_end());
    agents.filter_map(|agent| Some((agent, receivers::exhausted(session, agent, now)?))).collect()
}

fn exhausted(session: &Session) -> Vec<Value> {
    let found = used_up(session).into_iter();
    found.map(|(agent, reset)| json!({"agent": agent, "resetsAt": reset})).collect()
}

/// The one command that goes on, if a person is to say one.
fn next_command(hub: &Hub, session: &Session, driven: bool) -> Option<String> {
    let id = &session.session_id;
    if session.state.is_end() || driven {
        return None;
    }
    if let Some(finishing) = &session.finishing {
        return Some(match finishing.conflicts.is_empty() {
            true => format!("git relay finish {id}"),
            false => format!(
                "resolve, git add, then git relay finish {id} --continue; or git relay finish {id} --abort"
            ),
        });
    }
    Some(match (fsm::due(session), &session.leg_end) {
        (Effect::Rest, Some(end)) if end.outcome == Outcome::Done => {
            format!("git relay finish {id}, or git relay handoff --session {id}")
        }
        (Effect::Rest, Some(end)) if end.outcome == Outcome::Asks => {
            format!("git relay resume {id} --answer TEXT")
        }
        (Effect::Dispatch, _) if used_up(session).len() == session.agents.len() => {
            let first = receivers::first_reset(session, clock::now());
            let when = first.map_or("later".to_owned(), |reset| format!("after {reset}"));
            format!(
                "git relay resume {id}, {when}; or now: git relay resume {id} --agents {}",
                found_here(&hub.settings)
            )
        }
        _ => format!("git relay resume {id}"),
    })
}
