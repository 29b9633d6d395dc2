//! One file (or folder) per agent: facts, parser, launch, hook answers. No agent's file knows
//! another agent, and no file outside this room knows any agent by name.
//!
//! An agent is a record of functions; what it cannot do is `None`. A new one is a file, its
//! `mod` line and its line in [`ALL`].

pub mod claude;
pub mod codex;
pub mod custom;
pub mod history;
mod loose;
#[cfg(test)]
mod recorded;
pub mod store;
mod trouble;

use crate::host::config::{AgentTable, Settings};
use crate::host::env;
use crate::model::heard::Heard;
use crate::model::names::{AgentName, Nonce, SessionId};
use crate::model::session::PermissionLevel;
use crate::model::time::Timestamp;
use crate::model::transcript::{Sign, Transcript};
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Every agent that has an adapter, in the order they are listed.
pub const ALL: [&Agent; 2] = [&claude::AGENT, &codex::AGENT];

/// What we know of one kind of agent.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    /// As people write it.
    pub title: &'static str,
    /// The program's name on PATH.
    pub binary: &'static str,
    /// What keeps it from starting here, as far as can be seen without running it.
    pub obstacles: fn(&Seat, &Ground<'_>) -> Vec<Obstacle>,
    /// How to start it headless for one leg.
    pub launch: fn(&Seat, &Order<'_>) -> Result<Launch>,
    /// How it works in a person's own terminal.
    pub terminal: AtTerminal,
    /// What one line of its standard output tells.
    pub signs: fn(&Seat, &[u8], Timestamp) -> Vec<Sign>,
    /// What one line of its transcript tells while it runs, where its output does not say all.
    pub transcript_signs: Option<LineSigns>,
    /// Its transcript of the session it calls by this id.
    pub transcript: Option<fn(&str) -> Option<PathBuf>>,
    /// How it keeps its sessions, where others than ours can be found.
    pub store: Option<store::Store>,
    /// How long it keeps transcripts; `None` where it keeps them for good.
    pub keeps: Option<Keeps>,
    /// Folds one line of its transcript.
    pub fold: Option<fn(&mut Transcript, &[u8])>,
    /// What its hook answers, by event, when a pause is wanted.
    pub pause: Pause,
    /// A variable that its shell commands see, with its session id as value.
    pub caller: Option<&'static str>,
    /// What it leaves in the worktree or git dir when it is ended hard; see [`Debris`].
    pub debris: &'static [Debris],
}

/// An agent clears away old transcripts by itself.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// After so many days, as its settings say now.
    pub days: fn() -> u64,
    /// The setting, and where it is.
    pub setting: &'static str,
}

/// How an agent works in a person's own terminal. Its standard output is the screen, so that what
/// it does is told by its transcript, and by what its hooks keep for the driver.
#[derive(Debug)]
pub struct AtTerminal {
    pub launch: fn(&Seat, &Order<'_>) -> Result<Launch>,
    /// Its own id of the session that is started with this nonce, where it is told one.
    pub session: Option<fn(&Nonce) -> String>,
    /// What is kept of a hook's payload, by event. Without it, whoever wrote the agent appends
    /// lines to the file that `GIT_RELAY_SIGNS` names, read like its standard output headless.
    pub keep: Option<HookKeep>,
    /// What a hook prints where no pause is wanted, by event; with the session's private folder
    /// and the payload.
    pub print: Option<HookPrint>,
}

pub type HookKeep = fn(&str, &[u8], Timestamp) -> Option<Heard>;
pub type HookPrint = fn(&str, &Path, &[u8]) -> Result<Option<Vec<u8>>>;

/// The whole prompt of an agent at a terminal: what it is to read lies in this file.
pub fn sentence(file: &str) -> String {
    format!("Read the file {file}: it says what is to be done here. Then go on with that.")
}

/// What one line of a transcript tells.
pub type LineSigns = fn(&[u8], Timestamp) -> Vec<Sign>;

/// What a hook prints for a text.
pub type Answer = fn(&str) -> String;

/// How an agent is asked to stop between two tool calls. `ask` is the answer of the same hook that
/// tells the model something and lets it have one more turn.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// Its hook's answer to `event` ends the run.
    Answer { event: &'static str, answer: Answer, ask: Answer },
    /// Its hook's answer to `event` refuses the tool; then SIGINT ends the run at that boundary.
    AnswerThenInterrupt { event: &'static str, answer: Answer, ask: Answer },
    /// It has no hook: SIGINT as soon as no tool call is open.
    Interrupt,
}

impl Pause {
    /// The answers of the hook of `event` when a pause is wanted: the one that stops the agent, and
    /// the one that asks it something first.
    pub fn answers(self, event: &str) -> Option<(Answer, Answer)> {
        match self {
            Self::Answer { event: at, answer, ask }
            | Self::AnswerThenInterrupt { event: at, answer, ask } => {
                (at == event).then_some((answer, ask))
            }
            Self::Interrupt => None,
        }
    }
}

/// Something empty that an agent's sandbox leaves behind when it is killed, and that would be
/// taken for the user's: removed after the sweep if it is an empty, read-only file that git does
/// not track.
#[derive(Clone, Copy, Debug)]
pub enum Debris {
    /// Relative to the session worktree.
    InWorktree(&'static str),
    /// Relative to the common git dir.
    InCommonDir(&'static str),
}

/// An agent as this user has it: its record and the user's table for it.
#[derive(Clone, Debug)]
pub struct Seat {
    pub name: AgentName,
    pub agent: &'static Agent,
    pub table: AgentTable,
}

impl Seat {
    /// Where its program is; `None` when it is not installed.
    pub fn program(&self) -> Option<PathBuf> {
        match (&self.table.binary, &self.table.command) {
            (Some(path), _) => path.is_file().then(|| path.clone()),
            (None, Some(command)) => env::find_program(command.first()?),
            (None, None) => env::find_program(self.agent.binary),
        }
    }

    pub fn signs(&self, line: &[u8], now: Timestamp) -> Vec<Sign> {
        (self.agent.signs)(self, line, now)
    }

    /// What there was none of, in one that ended and is not known to have come to an end.
    pub fn told_no_end(&self) -> &'static str {
        match std::ptr::eq(self.agent, &custom::AGENT) {
            true => "no line matched 'done'",
            false => "did not say how its turn ended",
        }
    }

    /// The nearest level it can be held to that is not above `wanted`, headless.
    pub fn level(&self, wanted: PermissionLevel) -> PermissionLevel {
        match wanted {
            PermissionLevel::All if self.table.all => PermissionLevel::All,
            PermissionLevel::All | PermissionLevel::Edit => PermissionLevel::Edit,
            // Headless there is nobody to ask.
            PermissionLevel::Ask | PermissionLevel::Read => PermissionLevel::Read,
        }
    }

    /// Whether the user's configuration or the agent itself describes `name`.
    pub fn find(settings: &Settings, name: &AgentName) -> Option<Self> {
        let table = settings.agent_tables.get(name).cloned().unwrap_or_default();
        let agent = match ALL.into_iter().find(|agent| agent.name == name.as_str()) {
            Some(agent) => agent,
            None if table.command.is_some() => &custom::AGENT,
            None => return None,
        };
        Some(Self { name: name.clone(), agent, table })
    }

    /// The same of one that worked here and is perhaps not configured any more: nothing that it
    /// told is understood then, and its end is seen all the same.
    pub fn or_unknown(settings: &Settings, name: &AgentName) -> Self {
        let unknown =
            || Self { name: name.clone(), agent: &custom::AGENT, table: AgentTable::default() };
        Self::find(settings, name).unwrap_or_else(unknown)
    }

    /// Every agent whose program is on this machine.
    pub fn installed(settings: &Settings) -> Vec<AgentName> {
        let all = Self::all(settings).into_iter();
        all.filter(|seat| seat.program().is_some()).map(|seat| seat.name).collect()
    }

    /// Every agent known here: those with an adapter, then those of the user's configuration.
    pub fn all(settings: &Settings) -> Vec<Self> {
        let built_in = ALL.into_iter().filter_map(|agent| AgentName::new(agent.name));
        let described = settings
            .agent_tables
            .keys()
            .filter(|name| ALL.into_iter().all(|agent| agent.name != name.as_str()))
            .cloned();
        built_in.chain(described).filter_map(|name| Self::find(settings, &name)).collect()
    }
}

/// Where an agent would be started: what its log-in, trust and sandbox are looked up for.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub main_work_tree: &'a Path,
    pub level: PermissionLevel,
    /// The user let agents' shells run unsandboxed for this session.
    pub unsandboxed_shell: bool,
}

/// Why an agent could not start, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub kind: ObstacleKind,
    /// A lower-case fragment.
    pub what: String,
    /// A command to run once, or what to set.
    pub hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObstacleKind {
    NotInstalled,
    NotSignedIn,
    NoSandbox,
    Level,
}

/// One start of an agent for one leg.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub program: &'a Path,
    pub level: PermissionLevel,
    pub session: &'a SessionId,
    pub nonce: &'a Nonce,
    pub worktree: &'a Path,
    /// The session's branch, its short name.
    pub branch: &'a str,
    /// The session worktree's own git dir.
    pub git_dir: &'a Path,
    pub common_dir: &'a Path,
    /// Private folder of this session for settings, prompts and streams.
    pub folder: &'a Path,
    /// The prompt; headless it is given on standard input.
    pub prompt_file: &'a Path,
    /// The same in the session worktree, relative to it, for an agent at a terminal.
    pub shown_file: &'a str,
    /// This program, for hook lines.
    pub relay: &'a Path,
    pub key_folder: &'a Path,
    /// All refs are one table, which an agent must write to commit: none can be shut by itself.
    pub reftable: bool,
    /// Other branches of the repository, in full (`refs/heads/…`), that it may not move.
    pub other_branches: &'a [String],
    /// Variables every agent gets; an adapter may have to pass them on by other ways too.
    pub variables: &'a [(String, String)],
    pub unsandboxed_shell: bool,
    pub trust_folder: bool,
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub argv: Vec<OsString>,
    /// Beyond those every agent gets; `None` takes one away.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Whether the prompt goes to standard input.
    pub prompt_on_stdin: bool,
    /// What the user should know, one line each.
    pub warnings: Vec<String>,
}

/// The obstacle of a program that is not there.
pub(crate) fn not_installed(seat: &Seat) -> Obstacle {
    Obstacle {
        kind: ObstacleKind::NotInstalled,
        what: match seat.table.command.as_ref().map(|command| command.first()) {
            Some(Some(program)) => {
                format!("the program '{program}' of '{}' is not here", seat.name)
            }
            Some(None) => format!("the command of '{}' is empty", seat.name),
            None => format!("'{}' is not installed", seat.name),
        },
        hint: if seat.table.binary.is_some() || seat.table.command.is_some() {
            format!("look at [agent.{}] in your configuration", seat.name)
        } else {
            format!("install {} so that '{}' is on PATH", seat.agent.title, seat.agent.binary)
        },
    }
}
