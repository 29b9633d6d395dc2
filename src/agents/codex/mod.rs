//! Codex (facts tried on 0.171.0).

mod launch;
pub mod parse;
mod store;
mod terminal;

use super::{Agent, AtTerminal, Pause, Seat};
use crate::host::env;
use crate::model::time::Timestamp;
use crate::model::transcript::Sign;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

pub static AGENT: Agent = Agent {
    name: "codex",
    title: "Codex",
    binary: "codex",
    obstacles: launch::obstacles,
    launch: launch::launch,
    terminal: AtTerminal {
        launch: terminal::start,
        session: None,
        keep: Some(terminal::keep),
        print: Some(terminal::print),
    },
    signs,
    // `exec --json` never shows usage; the rollout has it after each tool result.
    transcript_signs: Some(parse::rollout_signs),
    transcript: Some(transcript),
    store: Some(store::STORE),
    fold: Some(parse::fold),
    keeps: None,
    // It ignores `continue: false`. A refused tool is a boundary between calls; left alone, the
    // model may go on trying.
    // The model is asked by a refusal too: it reads why, and makes another call or none.
    pause: Pause::AnswerThenInterrupt { event: "PreToolUse", answer: deny, ask: deny },
    caller: Some("CODEX_THREAD_ID"),
    debris: &[],
};

fn signs(_: &Seat, line: &[u8], now: Timestamp) -> Vec<Sign> {
    parse::signs(line, now)
}

fn deny(reason: &str) -> String {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }})
    .to_string()
}

/// `$CODEX_HOME` or `~/.codex`.
fn config_folder() -> Option<PathBuf> {
    match env::var("CODEX_HOME") {
        Some(folder) => Some(folder.into()),
        None => env::home().ok().map(|home| home.join(".codex")),
    }
}

/// `sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl`, newest day first.
fn transcript(id: &str) -> Option<PathBuf> {
    let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let sessions = config_folder().filter(|_| plain)?.join("sessions");
    let ending = format!("-{id}.jsonl");
    let mut days = vec![sessions];
    for _ in ["year", "month", "day"] {
        days = days.iter().flat_map(|folder| entries(folder)).collect();
        days.sort_unstable_by(|a, b| b.cmp(a));
    }
    days.iter().flat_map(|day| entries(day)).find(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(&ending))
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
