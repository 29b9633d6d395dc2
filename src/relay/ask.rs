//! Asking: one inbox line, for whoever may not drive.

use super::{Hub, inbox};
use crate::error::Fault;
use crate::host::{clock, env, files, lock, process, random};
use crate::model::cut::shorten;
use crate::model::foreign;
use crate::model::inbox::{LINE_BYTES_MOST, Line, Says};
use crate::model::names::SessionId;
use crate::model::session::{Outcome, Session, State};
use crate::model::shell::shell_word;
use crate::store;
use anyhow::Result;
use std::cmp::Reverse;
use std::path::PathBuf;

pub use inbox::{Unfolded, facts, own_leg, unfolded};

/// Open sessions that are named where one must be.
const NAMES_MOST: usize = 5;

/// Where the inbox of a session is.
pub fn inbox_path(hub: &Hub, session: &Session) -> PathBuf {
    hub.git_dir(session).join("relay-inbox")
}

/// The inbox of the leg this very process belongs to, without opening a repository.
pub fn own_inbox() -> Option<PathBuf> {
    env::var("GIT_RELAY_INBOX").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Appends one line that says `says`. Text is redacted here already, so that no secret lies in
/// the inbox, and shortened to what one write can append.
pub fn append(path: &std::path::Path, says: Says) -> Result<()> {
    append_as(path, says, own_leg())
}

/// [`append`], said by the agent of the dispatch `by`, or by a person.
pub fn append_as(path: &std::path::Path, says: Says, by: Option<String>) -> Result<()> {
    let mut line = Line { id: random::hex(16)?, at: clock::now(), says };
    if let Says::Record { nonce, .. } | Says::Handoff { nonce, .. } = &mut line.says {
        *nonce = by;
    }
    if let Says::Record { text, .. } | Says::Handoff { reason: Some(text), .. } = &mut line.says {
        *text = foreign::clean(text).text;
    }
    let mut text = serde_json::to_string(&line)?;
    let mut room = LINE_BYTES_MOST;
    while text.len() >= LINE_BYTES_MOST {
        room = room * 3 / 4;
        match &mut line.says {
            Says::Record { text, .. } => *text = shorten(text, room),
            Says::Handoff { reason: Some(reason), .. } => *reason = shorten(reason, room),
            _ => anyhow::bail!("an inbox line is too long"),
        }
        text = serde_json::to_string(&line)?;
    }
    files::append_line(path, &text)
}

/// The nonce of the leg we speak in: by our variable, or by who started us.
pub fn leg_of(session: &Session) -> Option<String> {
    own_leg().or_else(|| {
        is_inside(session).then(|| Some(session.dispatch.as_ref()?.nonce.to_string())).flatten()
    })
}

/// Whether this very process was started by the session's own agent, however far below it: an agent
/// may have taken our variables away.
pub fn is_inside(session: &Session) -> bool {
    let agent = session.dispatch.as_ref().and_then(|dispatch| dispatch.process);
    let Some(agent) = agent.filter(|agent| process::is_alive(*agent)) else { return false };
    process::ancestors().any(|pid| pid == agent.pid)
}

/// The session that is meant: named, or that of the agent we run in, or that of the worktree we
/// are in, or the only one that is not over. `how` one is named: `NAME` is where it stands.
pub fn session_meant(hub: &Hub, named: Option<&str>, how: &str) -> Result<SessionId> {
    if let Some(text) = named {
        let id = SessionId::new(text).ok_or_else(|| {
            Fault::usage(format!("'{text}' is not a session's name")).hint("git relay list")
        })?;
        if hub.repo.read_ref(&crate::git::session_ref(&id))?.is_some() {
            return Ok(id);
        }
        // The four digits at the end, or a beginning, are enough where they are plain.
        let lost = store::list_lost(&hub.repo, &hub.trust)?.into_iter().map(|lost| lost.id);
        let like: Vec<SessionId> = store::list(&hub.repo)?
            .into_iter()
            .chain(lost)
            .filter(|known| known.as_str().starts_with(text) || known.as_str().ends_with(text))
            .collect();
        return match <[SessionId; 1]>::try_from(like) {
            Ok([only]) => Ok(only),
            Err(like) if like.is_empty() => {
                Err(Fault::refused(format!("there is no session '{text}'"))
                    .hint("git relay list")
                    .into())
            }
            Err(_) => Err(Fault::refused(format!("'{text}' could be several sessions"))
                .hint("git relay list")
                .into()),
        };
    }
    let own = env::text("GIT_RELAY_SESSION").and_then(SessionId::new);
    let here = hub.here.clone();
    let all = store::list(&hub.repo)?;
    for id in own.into_iter().chain(here) {
        if all.contains(&id) {
            return Ok(id);
        }
    }
    let mut open = Vec::new();
    let mut unreadable = None;
    for id in &all {
        // One that cannot be read keeps nobody from the others; `list` and `verify` name it.
        match hub.load(id) {
            Ok(stored) if !stored.session.state.is_end() => open.push(stored.session),
            Ok(_) => {}
            Err(error) => unreadable = unreadable.or(Some(error)),
        }
    }
    match (open.len(), unreadable) {
        (1, _) => Ok(open.remove(0).session_id),
        (0, Some(error)) => Err(error),
        (0, None) => Err(none_is_open(hub, all.is_empty())?),
        _ => Err(several_are_open(open, how).into()),
    }
}

/// The command line with every word as it was typed, and the session named as `how` says.
pub fn again(how: &str, id: &SessionId) -> String {
    let typed = env::words();
    let named = if how.contains("--session ") { "--session " } else { "" };
    let mut words = vec!["git relay".to_owned()];
    words.extend(typed.first().map(shell_word));
    words.push(format!("{named}{id}"));
    words.extend(typed.iter().skip(1).map(shell_word));
    words.join(" ")
}

/// The session whose finish is in a conflict, where it is the only one.
pub fn in_conflict(hub: &Hub) -> Result<Option<SessionId>> {
    let mut found = Vec::new();
    for id in store::list(&hub.repo)? {
        let finishing = hub.load(&id).ok().and_then(|stored| stored.session.finishing);
        found.extend(finishing.map(|_| id));
    }
    Ok(<[SessionId; 1]>::try_from(found).ok().map(|[only]| only))
}

fn several_are_open(mut open: Vec<Session>, how: &str) -> Fault {
    open.sort_by_key(|session| Reverse(session.updated_at));
    let words = |session: &Session| format!("{} ({})", session.session_id, session.state);
    let mut names: Vec<String> = open.iter().take(NAMES_MOST).map(words).collect();
    if open.len() > NAMES_MOST {
        names.push(format!("and {} more", open.len() - NAMES_MOST));
    }
    Fault::refused(format!("several sessions are open, so it must be named: {}", names.join(", ")))
        .hint(again(how, &open[0].session_id))
}

/// [`session_meant`] for a verb that ends a session. The only one that is open may be another than
/// the one that was ended a moment ago, so one that is neither named nor where we are must be done,
/// or be the only one there ever was where it is given up.
pub fn session_to_end(hub: &Hub, named: Option<&str>, how: &str) -> Result<SessionId> {
    let id = session_meant(hub, named, how)?;
    let own = env::text("GIT_RELAY_SESSION");
    if named.is_some() || hub.here.as_ref() == Some(&id) || own.as_deref() == Some(id.as_str()) {
        return Ok(id);
    }
    let session = hub.load(&id)?.session;
    let end = session.leg_end.as_ref();
    let is_done =
        session.state == State::Running && end.is_some_and(|end| end.outcome == Outcome::Done);
    let is_alone = || Ok::<_, anyhow::Error>(store::list(&hub.repo)?.len() == 1);
    // Whoever drives it is told of first.
    let is_driven = lock::is_held(&hub.lock_path(&id));
    if is_done
        || is_driven
        || session.finishing.is_some()
        || (how.contains(" abort ") && is_alone()?)
    {
        return Ok(id);
    }
    let open = end.map(|end| end.open_items.join("; ")).filter(|items| !items.is_empty());
    let open = open.map(|items| format!("; open: {items}")).unwrap_or_default();
    let state = session.state;
    Err(Fault::refused(format!(
        "session '{id}' is the only one that is open, and its work is not done ({state}{open}): it must be named"
    ))
    .hint(again(how, &id))
    .into())
}

fn none_is_open(hub: &Hub, none_at_all: bool) -> Result<anyhow::Error> {
    if let Some(lost) = store::list_lost(&hub.repo, &hub.trust)?.into_iter().next() {
        return Ok(lost.fault.into());
    }
    Ok(match none_at_all {
        true => Fault::refused("there is no session").hint("git relay run 'the task'"),
        false => Fault::refused("no session is open").hint("git relay list"),
    }
    .into())
}

/// The session that is meant; refused when it is over.
pub fn open_session(hub: &Hub, named: Option<&str>, how: &str) -> Result<Session> {
    let id = session_meant(hub, named, how)?;
    let session = hub.load(&id)?.session;
    must_not_be_over(&session)?;
    Ok(session)
}

/// Refuses what can only be done with a session that goes on; says where the result of this one is.
pub fn must_not_be_over(session: &Session) -> Result<()> {
    if !session.state.is_end() {
        return Ok(());
    }
    let (id, state, at) = (&session.session_id, session.state, session.updated_at);
    let result = session.result.as_deref().filter(|result| !result.is_empty());
    let result = result.map(|name| format!(", its result is {name}")).unwrap_or_default();
    Err(Fault::refused(format!("session '{id}' is {state} since {at}{result}"))
        .hint("git relay list; for another: git relay run 'the task'")
        .into())
}
