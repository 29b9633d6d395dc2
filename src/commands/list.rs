//! `git relay list`

use super::open_hub;
use crate::cli::Listing;
use crate::host::{lock, process};
use crate::model::session::Session;
use crate::relay::Hub;
use crate::store;
use crate::ui::out;
use crate::ui::progress::ago;
use crate::ui::standing::standing;
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Listing) -> Result<u8> {
    let hub = open_hub()?;
    let mut sessions = Vec::new();
    let mut broken = Vec::new();
    for id in store::list(&hub.repo)? {
        match hub.load(&id) {
            Ok(stored) => sessions.push(stored.session),
            Err(error) => broken.push((id, format!("{error:#}"))),
        }
    }
    for lost in store::list_lost(&hub.repo, &hub.trust)? {
        broken.push((lost.id, lost.fault.to_string()));
    }
    sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_at));
    if args.json {
        let rows: Vec<_> = sessions
            .iter()
            .map(|session| {
                json!({
                    "sessionId": session.session_id, "state": session.state, "leg": session.leg,
                    "agent": session.agent(), "updatedAt": session.updated_at,
                    "driven": lock::is_held(&hub.lock_path(&session.session_id)),
                    "standing": words(&hub, session),
                    "branch": session.workplace.branch, "task": session.task,
                })
            })
            .chain(broken.iter().map(|(id, why)| json!({"sessionId": id, "broken": why})))
            .collect();
        out::json("sessions", &rows)?;
    } else {
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .map(|session| {
                vec![
                    session.session_id.to_string(),
                    session.state.to_string(),
                    words(&hub, session),
                    format!("leg {}", session.leg),
                    session.agent().map_or("-".into(), ToString::to_string),
                    ago(session.updated_at),
                    session.task.lines().next().unwrap_or_default().chars().take(60).collect(),
                ]
            })
            .collect();
        out::data(out::table(&rows).as_bytes())?;
        if sessions.is_empty() && broken.is_empty() {
            out::say("no session yet: git relay run 'the task'");
        }
    }
    for (id, why) in &broken {
        out::say(format!("session '{id}' cannot be read: {why}"));
    }
    Ok(if broken.is_empty() { 0 } else { 4 })
}

fn words(hub: &Hub, session: &Session) -> String {
    let process = session.dispatch.as_ref().and_then(|dispatch| dispatch.process);
    let driven = lock::is_held(&hub.lock_path(&session.session_id));
    standing(session, driven, process.is_some_and(process::is_alive))
}
