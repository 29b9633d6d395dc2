//! How Claude Code is started headless, in its own sandbox.

use super::config_folder;
use crate::agents::{Ground, Launch, Obstacle, ObstacleKind, Order, Seat, not_installed};
use crate::error::Fault;
use crate::host::{env, files, process};
use crate::model::session::PermissionLevel;
use crate::model::shell::shell_word;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

const EVENTS: [&str; 5] = ["SessionStart", "PreToolUse", "PostToolBatch", "Stop", "StopFailure"];

/// Any of these logs it in; their values are never read.
const TOKENS: [&str; 5] = [
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];

pub(super) fn obstacles(seat: &Seat, ground: &Ground<'_>) -> Vec<Obstacle> {
    if seat.program().is_none() {
        return vec![not_installed(seat)];
    }
    let mut found = Vec::new();
    if !signed_in() {
        found.push(Obstacle {
            kind: ObstacleKind::NotSignedIn,
            what: "'claude' is not logged in".into(),
            hint: "run claude once and type /login".into(),
        });
    }
    match seat.level(ground.level) {
        PermissionLevel::Edit if !sandbox_works() && !unsandboxed(seat, ground) => {
            found.push(Obstacle {
                kind: ObstacleKind::NoSandbox,
                what: "the sandbox of 'claude' cannot run here (it needs bubblewrap and socat)"
                    .into(),
                hint: "apt-get install bubblewrap socat, or say --unsandboxed-shell".into(),
            });
        }
        _ => {}
    }
    found
}

/// The log-in as far as it can be seen: a token variable or the credentials file. The file is
/// not opened.
fn signed_in() -> bool {
    TOKENS.iter().any(|name| env::var(name).is_some())
        || config_folder().is_some_and(|folder| folder.join(".credentials.json").is_file())
        // macOS keeps the log-in in the keychain: unknown here, so not an obstacle.
        || cfg!(target_os = "macos")
}

fn sandbox_works() -> bool {
    let probe = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "true",
    ];
    env::find_program("socat").is_some()
        && process::run(&probe, &[], b"", Duration::from_secs(10))
            .is_ok_and(|output| output.code == Some(0))
}

fn unsandboxed(seat: &Seat, ground: &Ground<'_>) -> bool {
    ground.unsandboxed_shell || seat.table.unsandboxed_shell
}

pub(super) fn launch(seat: &Seat, order: &Order<'_>) -> Result<Launch> {
    let level = seat.level(order.level);
    let sandboxed = level == PermissionLevel::Edit && sandbox_works();
    let mut warnings = Vec::new();
    if level == PermissionLevel::Edit && !sandboxed {
        // It worked when the receiver was looked at, or was waived; it may be neither by now.
        anyhow::ensure!(
            order.unsandboxed_shell || seat.table.unsandboxed_shell,
            Fault::environment("the sandbox of 'claude' cannot run here")
                .hint("apt-get install bubblewrap socat, or say --unsandboxed-shell")
        );
        warnings.push("the shell of 'claude' runs without a sandbox".to_owned());
    }
    let settings = order.folder.join("claude-settings.json");
    files::replace(&settings, settings_json(order, sandboxed).to_string().as_bytes(), 0o600)?;
    let mode: &[&str] = match level {
        PermissionLevel::All => &["--permission-mode", "bypassPermissions"],
        PermissionLevel::Edit => &["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
        PermissionLevel::Ask | PermissionLevel::Read => &["--permission-mode", "plan"],
    };
    let mut argv = vec![order.program.into(), "-p".into()];
    argv.extend(["--output-format", "stream-json", "--verbose"].map(Into::into));
    argv.extend(mode.iter().map(Into::into));
    argv.push("--settings".into());
    argv.push(settings.into());
    Ok(Launch { argv, prompt_on_stdin: true, warnings, ..Launch::default() })
}

/// Hooks beside the user's own, and the sandbox that leaves the session worktree open for commits
/// and shuts the rest of the common git dir and the keys.
fn settings_json(order: &Order<'_>, sandboxed: bool) -> Value {
    let mut settings = json!({"hooks": hooks(order)});
    if sandboxed {
        settings["sandbox"] = json!({
            "enabled": true,
            "failIfUnavailable": true,
            "autoAllowBashIfSandboxed": true,
            "allowUnsandboxedCommands": false,
            "filesystem": {"denyRead": deny_read(order), "denyWrite": deny_write(order)},
        });
    }
    settings
}

pub(super) fn hook_command(order: &Order<'_>, event: &str) -> String {
    format!("{} hook claude {event}", shell_word(order.relay))
}

pub(super) fn hooks(order: &Order<'_>) -> Value {
    let hook = |event: &str| json!([{"hooks": [{"type": "command", "command": hook_command(order, event)}]}]);
    EVENTS.into_iter().map(|event| (event.to_owned(), hook(event))).collect::<Map<_, _>>().into()
}

fn deny_read(order: &Order<'_>) -> Vec<String> {
    let mut paths = vec![shown(order.key_folder)];
    paths.extend(env::home().ok().map(|home| shown(&home.join(".ssh"))));
    paths
}

/// One by one: denying `.git` or `.git/refs/heads` as a whole breaks commits. Most may be missing,
/// but `packed-refs` must exist (the driver makes it).
fn deny_write(order: &Order<'_>) -> Vec<String> {
    let fixed = [
        "refs/relay",
        "refs/notes",
        "refs/tags",
        "refs/remotes",
        "refs/stash",
        "relay",
        "packed-refs",
        "info",
        "HEAD",
        "index",
        "logs/HEAD",
        "FETCH_HEAD",
    ];
    // In reftable `refs/heads` is a file, and a path below it cannot be shut.
    let is_file = |name: &str| !order.reftable || !(name.contains("refs") || name == "logs/HEAD");
    let files = fixed.into_iter().filter(|name| is_file(name));
    let mut paths: Vec<String> = files.map(|name| shown(&order.common_dir.join(name))).collect();
    paths.push(shown(&order.git_dir.join("gitdir")));
    for branch in order.other_branches {
        paths.push(shown(&order.common_dir.join(branch)));
        paths.push(shown(&order.common_dir.join("logs").join(branch)));
    }
    paths
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
