//! Claude Code (facts tried on 2.1.332).

mod launch;
pub mod parse;
mod store;
mod terminal;

use super::{Agent, AtTerminal, Debris, Keeps, Pause, Seat};
use crate::host::{env, files};
use crate::model::time::Timestamp;
use crate::model::transcript::Sign;
use serde_json::json;
use std::path::{Path, PathBuf};

pub static AGENT: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    binary: "claude",
    obstacles: launch::obstacles,
    launch: launch::launch,
    terminal: AtTerminal {
        launch: terminal::start,
        session: Some(terminal::session),
        keep: Some(terminal::keep),
        print: Some(terminal::print),
    },
    signs,
    transcript_signs: None,
    transcript: Some(transcript),
    store: Some(store::STORE),
    fold: Some(parse::fold),
    keeps: Some(Keeps { days: keeps_days, setting: "cleanupPeriodDays in its settings.json" }),
    // After all calls of a batch: no tool call is open then. `PostToolUse` would stop between
    // parallel calls.
    pause: Pause::Answer { event: "PostToolBatch", answer: stop, ask: tell },
    caller: Some("CLAUDE_CODE_SESSION_ID"),
    debris: &DEBRIS,
};

fn signs(_: &Seat, line: &[u8], now: Timestamp) -> Vec<Sign> {
    parse::signs(line, now)
}

fn stop(reason: &str) -> String {
    json!({"continue": false, "stopReason": reason}).to_string()
}

/// The model reads it with the results of the batch and goes on.
fn tell(text: &str) -> String {
    json!({"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": text}})
        .to_string()
}

/// `$CLAUDE_CONFIG_DIR` or `~/.claude`.
fn config_folder() -> Option<PathBuf> {
    match env::var("CLAUDE_CONFIG_DIR") {
        Some(folder) => Some(folder.into()),
        None => env::home().ok().map(|home| home.join(".claude")),
    }
}

const KEEPS_DAYS: u64 = 30;
const SETTINGS_BYTES_MOST: u64 = 1 << 20;

/// `cleanupPeriodDays` of the user's settings; the program clears older transcripts as it starts.
fn keeps_days() -> u64 {
    let path = config_folder().map(|folder| folder.join("settings.json"));
    let bytes = path.and_then(|path| files::read(&path, SETTINGS_BYTES_MOST).ok().flatten());
    bytes
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .and_then(|settings| settings.get("cleanupPeriodDays")?.as_u64())
        .unwrap_or(KEEPS_DAYS)
}

/// `projects/<encoded cwd>/<id>.jsonl`. The encoding of the folder is lossy, so every project is
/// asked for the id, which is unique.
fn transcript(id: &str) -> Option<PathBuf> {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let projects = config_folder()?.join("projects");
    std::fs::read_dir(projects)
        .ok()
        .filter(|_| plain)?
        .filter_map(Result::ok)
        .map(|project| project.path().join(format!("{id}.jsonl")))
        .find(|path| Path::is_file(path))
}

/// Masks that the sandbox lays over files while a command runs. SIGKILL, and a limit while a
/// background shell runs, leave them; the next agent's `git add -A` would commit them, and with
/// `config.lock` there every `git config` fails.
const DEBRIS: [Debris; 25] = [
    Debris::InCommonDir("config.lock"),
    Debris::InWorktree(".bash_profile"),
    Debris::InWorktree(".bashrc"),
    Debris::InWorktree(".gitconfig"),
    Debris::InWorktree(".gitmodules"),
    Debris::InWorktree(".idea"),
    Debris::InWorktree(".mcp.json"),
    Debris::InWorktree(".profile"),
    Debris::InWorktree(".ripgreprc"),
    Debris::InWorktree(".vscode"),
    Debris::InWorktree(".zprofile"),
    Debris::InWorktree(".zshrc"),
    Debris::InWorktree(".claude/agents"),
    Debris::InWorktree(".claude/commands"),
    Debris::InWorktree(".claude/hooks"),
    Debris::InWorktree(".claude/launch.json"),
    Debris::InWorktree(".claude/loop.md"),
    Debris::InWorktree(".claude/output-styles"),
    Debris::InWorktree(".claude/routines"),
    Debris::InWorktree(".claude/scheduled_tasks.json"),
    Debris::InWorktree(".claude/settings.json"),
    Debris::InWorktree(".claude/settings.local.json"),
    Debris::InWorktree(".claude/skills"),
    Debris::InWorktree(".claude/workflows"),
    Debris::InWorktree(".claude/.cc-writes"),
];
