//! What is known of a session that was found on this machine, whoever started it.

use super::Hub;
use crate::agents::store::{self, Context, Found, Running};
use crate::model::foreign;
use crate::model::names::SessionId;
use crate::model::quota::Reading;
use crate::model::screen;
use crate::model::session::Session;
use crate::model::time::Timestamp;
use crate::model::transcript::{Ending, Transcript, Trouble};
use crate::store as states;
use std::cmp::Reverse;
use std::path::Path;

const PROMPT_CHARS_MOST: usize = 400;

/// What a session that was found is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A process of its agent is in the middle of a turn.
    Working,
    /// A process of its agent waits for its person.
    Idle,
    /// At its account's limit, which opens again then, where that is told. Its process may live.
    Limited(Option<Timestamp>),
    /// No process works on it.
    Ended,
    /// Whether a process works on it cannot be told.
    Unknown,
}

impl Standing {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Limited(_) => "limited",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }

    /// What the last records and the processes say together, at `now`.
    pub fn of(ending: Option<&Ending>, process: Process, now: Timestamp) -> Self {
        match (ending, process) {
            (Some(Ending::Trouble(Trouble::Limit { resets_at, .. })), _)
                if resets_at.is_none_or(|resets_at| resets_at > now) =>
            {
                Self::Limited(*resets_at)
            }
            (_, Process::Busy) => Self::Working,
            (_, Process::Waits) => Self::Idle,
            (None, Process::Lives) => Self::Working,
            (Some(_), Process::Lives) => Self::Idle,
            (_, Process::None) => Self::Ended,
            (_, Process::Unknown) => Self::Unknown,
        }
    }
}

/// Whether a process works on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Busy,
    Waits,
    /// It is there; whether it is in a turn the records say.
    Lives,
    None,
    Unknown,
}

impl Process {
    /// The one of `running` that works on `found`. One that does not say what it works on may be
    /// at any session of its folder that was written to since it began.
    pub fn of(found: &Found, running: &[Running], can_be_seen: bool) -> Self {
        match found.process(running) {
            Some(process) => match process.works_on(&found.id).and_then(|held| held.is_busy) {
                Some(true) => Self::Busy,
                Some(false) => Self::Waits,
                None => Self::Lives,
            },
            None if !can_be_seen => Self::Unknown,
            None => {
                let may_be = |other: &&Running| {
                    other.held.is_empty()
                        && other.agent.name == found.agent().name
                        && other.cwd.is_some()
                        && other.cwd == found.cwd
                        && other.since.is_none_or(|since| since <= found.modified)
                };
                if running.iter().any(|other| may_be(&other)) { Self::Unknown } else { Self::None }
            }
        }
    }
}

/// A session as it is listed. Texts are redacted and fit for a screen.
#[derive(Debug)]
pub struct Row {
    pub found: Found,
    pub standing: Standing,
    /// How its last turn ended, in a word.
    pub last_turn: &'static str,
    pub pid: Option<u32>,
    pub model: Option<String>,
    pub prompt: Option<String>,
    /// Items done, and all.
    pub plan: Option<(usize, usize)>,
    pub files: usize,
    /// Only the session's end was read: there may be more files.
    pub is_partial: bool,
    pub context: Option<Context>,
    pub readings: Vec<Reading>,
    /// The session of ours that it is a leg of.
    pub relay: Option<SessionId>,
}

/// Reads the end of a session.
pub fn row(found: Found, running: &[Running], ours: &Ours, now: Timestamp) -> Row {
    let recent = found.recent();
    let is_torn = recent.as_ref().is_none_or(|recent| recent.is_torn);
    let recent = recent.unwrap_or_default();
    let Transcript { ending, model, prompts, plan, files, readings, .. } = recent.transcript;
    let first = match recent.is_partial {
        true => found.first_prompt(),
        false => prompts.into_iter().next().map(|prompt| prompt.text),
    };
    let process = Process::of(&found, running, crate::host::running::can_be_seen());
    Row {
        standing: Standing::of(ending.as_ref(), process, now),
        last_turn: match process {
            // Whoever still writes has half a line there at times.
            Process::None if is_torn => "damaged",
            _ => last_turn(ending.as_ref()),
        },
        pid: found.process(running).map(|running| running.process.pid),
        model: model.map(|model| fit(&model, PROMPT_CHARS_MOST)),
        prompt: first.map(|text| fit(&text, PROMPT_CHARS_MOST)),
        plan: (!plan.is_empty())
            .then(|| (plan.iter().filter(|item| !item.is_open()).count(), plan.len())),
        files: files.len(),
        is_partial: recent.is_partial,
        context: recent.context,
        readings,
        relay: ours.of(&found),
        found,
    }
}

fn last_turn(ending: Option<&Ending>) -> &'static str {
    match ending {
        None => "open",
        Some(Ending::TurnEnded) => "done",
        Some(Ending::StoppedByHook) => "stopped",
        Some(Ending::Interrupted) => "interrupted",
        Some(Ending::Asks(_)) => "asks",
        Some(Ending::Trouble(Trouble::Limit { .. })) => "limit",
        Some(Ending::Trouble(_)) => "failed",
    }
}

/// A text on one line, without secrets and without anything that moves a cursor.
pub fn fit(text: &str, chars_most: usize) -> String {
    screen::first_chars(&foreign::one_line(text), chars_most)
}

/// The sessions of this repository that are ours, to tell their agents' from others.
#[derive(Debug, Default)]
pub struct Ours {
    /// The agent's own id, the session, for every leg.
    legs: Vec<(String, SessionId)>,
    /// Worktree and session.
    worktrees: Vec<(std::path::PathBuf, SessionId)>,
}

impl Ours {
    /// A session that cannot be read is left out: `git relay list` names it.
    pub fn of_repository(hub: &Hub) -> Self {
        let mut ours = Self::default();
        let ids = states::list(&hub.repo).unwrap_or_default();
        let loaded = ids.iter().filter_map(|id| Some(hub.load(id).ok()?.session));
        let mut sessions: Vec<Session> = loaded.collect();
        // Of several that adopted the same one: the open one, else the newest.
        sessions.sort_by_key(|session| (session.state.is_end(), Reverse(session.updated_at)));
        for session in sessions {
            let id = session.session_id.clone();
            let starts = session.dispatches.iter().chain(&session.dispatch);
            let adopted = session.adopted.iter().map(|adopted| adopted.agent_session.clone());
            let known = starts.filter_map(|start| start.agent_session.clone()).chain(adopted);
            ours.legs.extend(known.map(|agent| (agent, id.clone())));
            ours.worktrees.push((hub.worktree(&session), id));
        }
        ours
    }

    /// The session that `found` is a leg of: it says so itself, or works in its worktree.
    fn of(&self, found: &Found) -> Option<SessionId> {
        let is_in = |place: &Path| found.cwd.as_ref().is_some_and(|cwd| cwd.starts_with(place));
        let leg = self.legs.iter().find(|(agent, _)| *agent == found.id);
        let worktree = || self.worktrees.iter().find(|(place, _)| is_in(place));
        leg.map(|(_, id)| id).or_else(|| worktree().map(|(_, id)| id)).cloned()
    }
}

/// As many first characters of each id as tell it from all others, eight at least.
pub fn short_ids(found: &[Found]) -> Vec<&str> {
    const CHARS_LEAST: usize = 8;
    let mut order: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    order.sort_unstable();
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let short = |id: &'_ str| {
        let at = order.partition_point(|other| *other < id);
        let before = at.checked_sub(1).map_or(0, |before| shared(order[before], id));
        let after = order.get(at + 1).map_or(0, |after| shared(after, id));
        (before.max(after) + 1).max(CHARS_LEAST).min(id.len())
    };
    found.iter().map(|found| &found.id[..short(&found.id)]).collect()
}

/// The config folders that are looked into, and the processes that are there.
pub fn look() -> (Vec<store::Home>, Vec<Running>) {
    let running = store::running();
    (store::homes(&running), running)
}
