//! What agents keep of their sessions on this machine: found, told apart, read within bounds.
//!
//! Only reads, and only what belongs to this user: an agent's config folder may itself be a link,
//! and so may the folder of sessions in it; below that no link is followed. All text found is
//! *quoted*: untrusted, not yet redacted.

use super::{ALL, Agent, history};
use crate::error::Fault;
use crate::host::records::Records;
use crate::host::{env, records, running};
use crate::model::session::Process;
use crate::model::time::Timestamp;
use crate::model::transcript::{LINE_BYTES_MOST, Transcript};
use anyhow::{Context as _, Result};
use serde::de::IgnoredAny;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How an agent keeps its sessions.
#[derive(Debug)]
pub struct Store {
    /// The variable that names its config folder.
    pub variable: &'static str,
    /// Its config folder without that variable, below the user's home.
    pub below_home: &'static str,
    /// Every session below a config folder, by the names of files.
    pub files: fn(&Path, &mut dyn FnMut(Kept)),
    /// What one line says of the session as a whole. The line may be cut anywhere.
    pub head: fn(&mut Head, &[u8]),
    /// What one line says of the context that is used.
    pub context: fn(&[u8]) -> Option<Context>,
    /// The sessions that a process of this agent works on, by its config folder.
    pub held: fn(Process, &Path) -> Vec<Held>,
}

/// How one session is kept.
#[derive(Debug)]
pub enum Kept {
    /// In a file of its own, with its id.
    File(PathBuf, String),
    /// In a form that is not read here.
    Packed,
}

/// What the first lines of a session's file say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The folder that it was started in.
    pub cwd: Option<PathBuf>,
    /// It is part of another session, not one that a person had.
    pub is_part: bool,
}

/// How full the model's context is, in tokens; unknown right after a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    pub used: Option<u64>,
    pub most: Option<u64>,
}

/// A session that a process works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub id: String,
    /// Whether it is in the middle of a turn, where that is told.
    pub is_busy: Option<bool>,
}

/// A config folder of an agent: an account, and the sessions had with it.
#[derive(Clone, Debug)]
pub struct Home {
    pub agent: &'static Agent,
    pub path: PathBuf,
    /// It is where this agent looks without being told otherwise.
    pub is_default: bool,
}

/// One session of an agent's own, found in its store.
#[derive(Clone, Debug)]
pub struct Found {
    pub home: Home,
    /// The agent's own id: ASCII letters, digits, `-` and `_`.
    pub id: String,
    pub transcript: PathBuf,
    /// From inside the file; `None` where its first megabytes do not say.
    pub cwd: Option<PathBuf>,
    pub modified: Timestamp,
    pub size: u64,
}

/// A process of an agent's.
#[derive(Clone, Debug)]
pub struct Running {
    pub agent: &'static Agent,
    pub process: Process,
    /// When it began.
    pub since: Option<Timestamp>,
    /// Its config folder.
    pub home: Option<PathBuf>,
    /// The folder that it works in.
    pub cwd: Option<PathBuf>,
    /// The sessions that it works on; none where that cannot be told.
    pub held: Vec<Held>,
}

/// Which sessions are searched for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Written to since then.
    pub since: Option<Timestamp>,
    /// What its id begins with.
    pub id: &'a str,
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Search {
    /// Newest first.
    pub found: Vec<Found>,
    pub looked: Vec<Looked>,
}

/// What was seen in one config folder.
#[derive(Clone, Debug)]
pub struct Looked {
    pub home: Home,
    pub is_there: bool,
    /// It belongs to this user; else nothing in it is read.
    pub is_own: bool,
    /// How many files of sessions there are, wanted or not.
    pub files: usize,
    /// Of these, those that their agent has compressed.
    pub packed: usize,
    /// Of these, files that could not be read, or are no plain files of this user's.
    pub unread: usize,
}

/// The end of a session, as far as it is read for a listing.
#[derive(Debug, Default)]
pub struct Recent {
    pub transcript: Transcript,
    /// What came before was not read.
    pub is_partial: bool,
    /// Its last record is none, or only the beginning of one.
    pub is_torn: bool,
    pub context: Option<Context>,
}

/// Bytes of a file that are read first.
const HEAD_BYTES: usize = 4 * 1024;
/// Bytes of all files together that are read beyond that, where a head does not say enough.
const HEADS_BYTES_MOST: usize = 256 * 1024 * 1024;
const ID_BYTES_MOST: usize = 128;
/// Of a session of more than twice this size, the last bytes are read for a listing; else all.
const RECENT_BYTES_MOST: usize = 2 * 1024 * 1024;

/// The agents that keep sessions where they can be found.
pub fn agents() -> impl Iterator<Item = (&'static Agent, &'static Store)> {
    ALL.into_iter().filter_map(|agent| Some((agent, agent.store.as_ref()?)))
}

/// An id as it may stand in a file's name and on a screen; `None` for anything else.
pub fn plain_id(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let fits = (1..=ID_BYTES_MOST).contains(&text.len()) && !text.starts_with('-');
    (fits && text.bytes().all(is_plain)).then(|| text.to_owned())
}

/// The processes of agents of this user.
pub fn running() -> Vec<Running> {
    let names: Vec<_> = agents().map(|(agent, _)| agent.binary).collect();
    let found = running::called(&names).into_iter().filter_map(|(process, name)| {
        let (agent, store) = agents().find(|(agent, _)| agent.binary == name)?;
        let cwd = running::folder_of(process.pid);
        let [named, home] = running::variables_of(process.pid, [store.variable, "HOME"]);
        let home = match (named.map(PathBuf::from), home) {
            (Some(named), _) => cwd.as_ref().map(|cwd| cwd.join(named)),
            (None, Some(home)) => Some(PathBuf::from(home).join(store.below_home)),
            (None, None) => None,
        };
        let held = home.as_ref().map(|home| (store.held)(process, home)).unwrap_or_default();
        Some(Running { agent, process, since: running::began(process), home, cwd, held })
    });
    found.collect()
}

/// The config folders of all agents: the usual ones, those the environment names, and those of
/// running agents; each once, whether it is there or not.
pub fn homes(running: &[Running]) -> Vec<Home> {
    let user = env::home().ok();
    let mut homes: Vec<Home> = Vec::new();
    for (agent, store) in agents() {
        let usual = user.as_ref().map(|home| home.join(store.below_home));
        let named = env::var(store.variable).map(PathBuf::from);
        let named = named.map(|path| std::path::absolute(&path).unwrap_or(path));
        let of_running = running.iter().filter(|other| other.agent.name == agent.name);
        let others = named.into_iter().chain(of_running.filter_map(|other| other.home.clone()));
        let all = usual.map(|path| (path, true)).into_iter();
        let mut known: Vec<PathBuf> = Vec::new();
        for (path, is_default) in all.chain(others.map(|path| (path, false))) {
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if !known.contains(&real) {
                known.push(real);
                homes.push(Home { agent, path, is_default });
            }
        }
    }
    homes
}

/// The sessions below `homes` that are wanted, and whose folder `is_wanted` takes.
pub fn search(
    homes: &[Home],
    wanted: Wanted<'_>,
    mut is_wanted: impl FnMut(Option<&Path>) -> bool,
) -> Search {
    let mut search = Search::default();
    let mut buffer = Vec::new();
    let mut more = HEADS_BYTES_MOST;
    for home in homes {
        let Some(store) = &home.agent.store else { continue };
        let about = fs::metadata(&home.path).ok();
        let mut looked = Looked {
            home: home.clone(),
            is_there: about.is_some(),
            is_own: about.is_some_and(|about| records::is_own(&about)),
            files: 0,
            packed: 0,
            unread: 0,
        };
        let mut each = |kept: Kept| {
            looked.files += 1;
            let Kept::File(transcript, id) = kept else {
                looked.packed += 1;
                return;
            };
            if !id.starts_with(wanted.id) {
                return;
            }
            let Some(records) = Records::open(&transcript) else {
                looked.unread += 1;
                return;
            };
            if wanted.since.is_some_and(|since| records.modified < since) {
                return;
            }
            let Some(head) = head(store, &records, &mut buffer, &mut more) else {
                looked.unread += 1;
                return;
            };
            if !head.is_part && is_wanted(head.cwd.as_deref()) {
                let Records { modified, size, .. } = records;
                let home = home.clone();
                search.found.push(Found { home, id, transcript, cwd: head.cwd, modified, size });
            }
        };
        if looked.is_own {
            (store.files)(&home.path, &mut each);
        }
        search.looked.push(looked);
    }
    search.found.sort_by(|a, b| (b.modified, &a.id).cmp(&(a.modified, &b.id)));
    search
}

/// Reads the head of a file until it says where the session was started: a little at first, then
/// twice as much each time, about one longest line of it. `None` when that takes more than is left
/// for all files together.
fn head(store: &Store, records: &Records, buffer: &mut Vec<u8>, more: &mut usize) -> Option<Head> {
    let mut bytes = HEAD_BYTES;
    loop {
        let mut head = Head::default();
        records.read(buffer, 0, bytes).ok()?;
        for line in buffer.split(|byte| *byte == b'\n') {
            (store.head)(&mut head, line);
            if head.cwd.is_some() || head.is_part {
                return Some(head);
            }
        }
        if buffer.len() < bytes || bytes > LINE_BYTES_MOST {
            return Some(head);
        }
        bytes *= 2;
        *more = more.checked_sub(bytes)?;
    }
}

/// The sessions, wherever they were had, that `id` or the beginning of one names, or the path of
/// its transcript.
pub fn named(homes: &[Home], id: &str) -> Vec<Found> {
    let Some(id) = plain_id(id) else {
        let Ok(path) = fs::canonicalize(id) else { return Vec::new() };
        let mut found = search(homes, Wanted::default(), |_| true).found;
        found.retain(|found| fs::canonicalize(&found.transcript).is_ok_and(|it| it == path));
        return found;
    };
    let mut found = search(homes, Wanted { since: None, id: &id }, |_| true).found;
    if found.iter().any(|found| found.id == id) {
        found.retain(|found| found.id == id);
    }
    found
}

impl Running {
    pub fn works_on(&self, id: &str) -> Option<&Held> {
        self.held.iter().find(|held| held.id == id)
    }
}

impl Found {
    pub fn agent(&self) -> &'static Agent {
        self.home.agent
    }

    /// The process that works on it.
    pub fn process<'a>(&self, running: &'a [Running]) -> Option<&'a Running> {
        running.iter().find(|other| {
            other.agent.name == self.agent().name && other.works_on(&self.id).is_some()
        })
    }

    /// What the user typed first, from the first megabytes of the file.
    pub fn first_prompt(&self) -> Option<String> {
        let fold = self.agent().fold?;
        let records = Records::open(&self.transcript)?;
        let mut transcript = Transcript::default();
        let mut bytes = 0;
        let read = records.lines(0, |line| {
            fold(&mut transcript, line);
            bytes += line.len();
            match transcript.prompts.is_empty() && bytes < LINE_BYTES_MOST {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        read.ok()?;
        transcript.prompts.into_iter().next().map(|prompt| prompt.text)
    }

    /// The end of the session, in bounded time.
    pub fn recent(&self) -> Option<Recent> {
        let fold = self.agent().fold?;
        let records = Records::open(&self.transcript)?;
        let mut bytes = Vec::new();
        let from = match records.size {
            size if size <= 2 * RECENT_BYTES_MOST as u64 => 0,
            size => size - RECENT_BYTES_MOST as u64,
        };
        records.read(&mut bytes, from, 2 * RECENT_BYTES_MOST).ok()?;
        let mut recent = Recent { is_partial: from > 0, ..Recent::default() };
        let whole = if recent.is_partial { memchr::memchr(b'\n', &bytes)? + 1 } else { 0 };
        let lines = || bytes[whole..].split(|byte| *byte == b'\n');
        lines().for_each(|line| fold(&mut recent.transcript, line));
        let last = lines().rev().find(|line| !line.trim_ascii().is_empty());
        recent.is_torn =
            last.is_none_or(|line| serde_json::from_slice::<IgnoredAny>(line).is_err());
        recent.context = lines().rev().find_map(self.agent().store.as_ref()?.context);
        // Tasks are told one by one: what was made before is not known here.
        if recent.is_partial && !recent.transcript.tasks.is_empty() {
            recent.transcript.plan.clear();
        }
        Some(recent)
    }

    /// The whole session.
    pub fn read(&self) -> Result<Transcript> {
        let fold = self.agent().fold.context("every agent with a store has a parser")?;
        if Records::open(&self.transcript).is_none() {
            let path = self.transcript.display();
            return Err(Fault::raced(format!("'{path}' can no longer be read"))
                .hint("look again: git relay detect --all")
                .into());
        }
        history::read(&self.transcript, fold)
    }
}

/// The id in a file's name, without its ending.
pub(super) fn id_of(name: &std::ffi::OsStr, ending: &str) -> Option<String> {
    let stem = name.as_bytes().strip_suffix(ending.as_bytes())?;
    plain_id(std::str::from_utf8(stem).ok()?)
}
