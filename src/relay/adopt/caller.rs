//! Whether this very command was started by an agent, and by which of its sessions: what the
//! environment says and what the processes above us are must agree.

use crate::agents::store::{self, Running};
use crate::error::Fault;
use crate::host::{env, process};
use crate::model::session::Process;
use anyhow::Result;

/// The agent in whose shell we are.
#[derive(Clone, Debug)]
pub struct Caller {
    pub agent: &'static str,
    /// Its own id of its session.
    pub id: String,
    pub process: Process,
}

/// The nearest agent above this command.
///
/// # Errors
/// Refused: environment and processes do not say the same.
pub fn caller(running: &[Running]) -> Result<Option<Caller>> {
    let said: Vec<(&str, &str, String)> = store::agents()
        .filter_map(|(agent, _)| Some((agent.name, agent.caller?)))
        .filter_map(|(agent, name)| Some((agent, name, env::text(name)?)))
        .collect();
    let above = process::ancestors()
        .skip(1)
        .find_map(|pid| running.iter().find(|other| other.process.pid == pid));
    let Some(above) = above else {
        let Some((agent, name, id)) = said.into_iter().next() else { return Ok(None) };
        return Err(Fault::refused(format!(
            "{name} says that this is a shell of {agent}'s, and no {agent} can be seen above it"
        ))
        .hint(format!("in a shell of your own: git relay adopt {}", shown(&id)))
        .into());
    };
    let agent = above.agent.name;
    let pid = above.process.pid;
    let own = said.into_iter().find(|(name, _, _)| *name == agent).map(|(_, _, id)| id);
    let Some(id) = own.as_deref().and_then(store::plain_id) else {
        return Err(Fault::refused(format!(
            "this was started by {agent} (process {pid}), which does not say by which session of its"
        ))
        .hint("in a shell of your own: git relay adopt")
        .into());
    };
    if let Some(held) = above.held.first().filter(|_| above.works_on(&id).is_none()) {
        return Err(Fault::refused(format!(
            "the environment is that of {agent}'s session {id}, and {agent} (process {pid}) works on {}",
            held.id
        ))
        .hint("in a shell of your own: git relay adopt")
        .into());
    }
    Ok(Some(Caller { agent, id, process: above.process }))
}

/// An id that comes from outside, for a hint.
fn shown(id: &str) -> String {
    store::plain_id(id).unwrap_or_else(|| "ID".to_owned())
}
