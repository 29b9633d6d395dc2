//! Where Claude Code keeps its sessions: `projects/<encoded cwd>/<session>.jsonl` below its config
//! folder, and `sessions/<pid>.json` for each running one. What subagents did lies in folders
//! beside a session's file (older versions: in `agent-*.jsonl`).
//!
//! The encoding of the folder is lossy, so that its name says nothing: every file is asked.

use crate::agents::loose;
use crate::agents::store::{Context, Head, Held, Store, id_of, plain_id};
use crate::host::{files, records};
use crate::model::session::Process;
use std::path::{Path, PathBuf};

pub(super) const STORE: Store = Store {
    variable: "CLAUDE_CONFIG_DIR",
    below_home: ".claude",
    files: sessions,
    head,
    context,
    held,
};

const PID_FILE_BYTES_MOST: u64 = 64 * 1024;

fn sessions(home: &Path, each: &mut dyn FnMut(PathBuf, String)) {
    for project in records::folders(&home.join("projects")) {
        for entry in records::entries(&project) {
            let id = id_of(&entry.file_name(), ".jsonl").filter(|id| !id.starts_with("agent-"));
            if let Some(id) = id {
                each(entry.path(), id);
            }
        }
    }
}

fn head(head: &mut Head, line: &[u8]) {
    head.cwd = loose::text_at(line, &["cwd"]).map(|cwd| PathBuf::from(&*cwd));
    head.is_part = head.cwd.is_some() && loose::json_at(line, &["isSidechain"]) == Some(b"true");
}

/// The usage that came with the model's last answer. How much fits is not told.
fn context(line: &[u8]) -> Option<Context> {
    if loose::json_at(line, &["subtype"]) == Some(b"\"compact_boundary\"") {
        return Some(Context::default());
    }
    if loose::json_at(line, &["type"]) != Some(b"\"assistant\"")
        || loose::json_at(line, &["isSidechain"]) == Some(b"true")
    {
        return None;
    }
    let usage = loose::json_at(line, &["message", "usage"])?;
    let tokens = |key| loose::number_at(usage, &[key]).unwrap_or(0);
    let used = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let used = used.into_iter().map(tokens).fold(0, u64::saturating_add);
    // What Claude says in the model's place took nothing.
    (used > 0).then_some(Context { used: Some(used), most: None })
}

/// `sessions/<pid>.json`: it outlives a killed process, so that it counts only for a process that
/// lives and bears Claude's name.
fn held(process: Process, home: &Path) -> Option<Held> {
    let path = home.join("sessions").join(format!("{}.json", process.pid));
    let (bytes, _) = files::read_plain(&path, 0, PID_FILE_BYTES_MOST).ok().flatten()?;
    let started = loose::text_at(&bytes, &["procStart"]).map(|ticks| ticks.into_owned());
    if started.is_some_and(|ticks| ticks != process.start_ticks.to_string()) {
        return None;
    }
    Some(Held {
        id: plain_id(&loose::text_at(&bytes, &["sessionId"])?)?,
        is_busy: loose::text_at(&bytes, &["status"]).map(|status| status != "idle"),
    })
}
