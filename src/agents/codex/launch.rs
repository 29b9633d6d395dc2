//! How Codex is started headless, in its own sandbox, with hooks trusted for this run only.

use super::config_folder;
use crate::agents::{Ground, Launch, Obstacle, ObstacleKind, Order, Seat, not_installed};
use crate::host::{env, files};
use crate::model::session::PermissionLevel;
use crate::model::shell::shell_word;
use anyhow::Result;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Event and the label it has in hook keys.
const EVENTS: [(&str, &str); 4] = [
    ("SessionStart", "session_start"),
    ("PreToolUse", "pre_tool_use"),
    ("PostToolUse", "post_tool_use"),
    ("Stop", "stop"),
];

pub(super) fn obstacles(seat: &Seat, _: &Ground<'_>) -> Vec<Obstacle> {
    if seat.program().is_none() {
        return vec![not_installed(seat)];
    }
    if signed_in() {
        return Vec::new();
    }
    vec![Obstacle {
        kind: ObstacleKind::NotSignedIn,
        what: "'codex' is not logged in".into(),
        hint: "codex login".into(),
    }]
}

/// The log-in as far as it can be seen: `auth.json`, the variable that `exec` takes, or a
/// provider of the user's own with its key variable set. `auth.json` is not opened.
fn signed_in() -> bool {
    let Some(folder) = config_folder() else { return false };
    if env::var("CODEX_API_KEY").is_some() || folder.join("auth.json").is_file() {
        return true;
    }
    let text = files::read_text(&folder.join("config.toml"), 1 << 20).ok().flatten();
    let config: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let provider = config
        .get("model_provider")
        .and_then(toml::Value::as_str)
        .and_then(|name| config.get("model_providers")?.get(name));
    match provider.map(|provider| provider.get("env_key").and_then(toml::Value::as_str)) {
        Some(Some(variable)) => env::var(variable).is_some(),
        Some(None) => true,
        None => false,
    }
}

pub(super) fn launch(seat: &Seat, order: &Order<'_>) -> Result<Launch> {
    let mut argv = vec![order.program.into()];
    let mut push = |words: &[&str]| argv.extend(words.iter().map(Into::into));
    push(&["exec", "--json"]);
    match seat.level(order.level) {
        PermissionLevel::All => push(&["-s", "danger-full-access"]),
        PermissionLevel::Edit => {
            push(&["-c", "default_permissions=\"relay\""]);
            push(&["-c", &format!("permissions.relay={}", profile(order)?)]);
        }
        PermissionLevel::Ask | PermissionLevel::Read => push(&["-s", "read-only"]),
    }
    beside(order, &mut push);
    if order.trust_folder {
        let root = order.worktree.to_string_lossy();
        push(&["-c", &format!("projects={{{}={{trust_level=\"trusted\"}}}}", quoted(&root))]);
    }
    push(&["-"]);
    Ok(Launch { argv, prompt_on_stdin: true, ..Launch::default() })
}

/// What every start is given: the plan tool, our variables and our hooks.
pub(super) fn beside(order: &Order<'_>, push: &mut impl FnMut(&[&str])) {
    push(&["-c", "tools.update_plan.enabled=true"]);
    push(&["-c", &format!("shell_environment_policy.set={}", variables(order))]);
    for (event, hook) in hooks(order) {
        push(&["-c", &format!("hooks.{event}={hook}")]);
    }
    push(&["-c", &format!("hooks.state={}", trusted(order))]);
}

/// The sandbox: workspace-write, with what a commit in a linked worktree writes to opened, and the
/// keys shut even to reading. A profile, since `-s workspace-write --add-dir` cannot deny reads,
/// and with `-s` beside it a profile counts for nothing (both tried).
///
/// The repository is named too: `/tmp` and `$TMPDIR`, which compilers need, are writable, and it
/// may lie in there. The nearest entry above a path decides.
fn profile(order: &Order<'_>) -> Result<String> {
    let mut entries: Vec<(PathBuf, &str)> = Vec::new();
    let mut enter = |path: PathBuf, access| entries.push((path, access));
    let common = order.common_dir;
    if let Some(root) = common.parent().filter(|_| common.ends_with(".git")) {
        enter(root.into(), "read");
    }
    enter(common.into(), "read");
    enter(order.worktree.into(), "write");
    // Opening the common git dir as a whole does not help; these must exist before.
    let branches = order.branch.rsplit_once('/').map_or("relay", |(folder, _)| folder);
    let refs = match order.reftable {
        true => vec!["reftable".to_owned()],
        false => vec![format!("refs/heads/{branches}"), format!("logs/refs/heads/{branches}")],
    };
    for name in &refs {
        files::make_folder(&common.join(name))?;
    }
    enter(order.git_dir.into(), "write");
    for name in refs.into_iter().chain(["objects".to_owned()]) {
        enter(common.join(name), "write");
    }
    let pointers = ["gitdir", "commondir"].map(|name| order.git_dir.join(name));
    let others = order.other_branches.iter().map(|branch| common.join(branch));
    for path in pointers.into_iter().chain(others).filter(|path| path.is_file()) {
        enter(path, "read");
    }
    enter(order.worktree.join(".git"), "read");
    enter(order.key_folder.into(), "deny");
    if let Ok(home) = env::home() {
        enter(home.join(".ssh"), "deny");
    }
    let entries: Vec<String> = entries
        .iter()
        .map(|(path, access)| format!("{}=\"{access}\"", quoted(&path.to_string_lossy())))
        .collect();
    Ok(format!("{{extends=\":workspace\",filesystem={{{}}}}}", entries.join(",")))
}

/// Our variables for its shells, given again: a user's `shell_environment_policy` may drop them,
/// or drop the `GIT_CONFIG_KEY_n` and leave their count, which breaks every git call.
fn variables(order: &Order<'_>) -> String {
    let pairs: Vec<String> =
        order.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn command(order: &Order<'_>, event: &str) -> String {
    format!("{} hook codex {event}", shell_word(order.relay))
}

fn hooks(order: &Order<'_>) -> Vec<(&'static str, String)> {
    EVENTS
        .into_iter()
        .map(|(event, _)| {
            let command = quoted(&command(order, event));
            (event, format!("[{{hooks=[{{type=\"command\",command={command}}}]}}]"))
        })
        .collect()
}

/// Codex runs a hook only when its hash was accepted. For hooks given by `-c` the acceptance can
/// be given by `-c` too, which changes no file and trusts nothing else.
fn trusted(order: &Order<'_>) -> String {
    let entries: Vec<String> = EVENTS
        .into_iter()
        .map(|(event, label)| {
            let key = format!("/<session-flags>/config.toml:{label}:0:0");
            let hash = hook_hash(label, &command(order, event));
            format!("{}={{trusted_hash=\"{hash}\"}}", quoted(&key))
        })
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// The hash Codex 0.171.0 has for a command hook (equal to `currentHash` of its app-server's
/// `hooks/list`): SHA-256 over the normalised hook as compact JSON with sorted keys.
fn hook_hash(label: &str, command: &str) -> String {
    let normalised = json!({
        "event_name": label,
        "hooks": [{"async": false, "command": command, "timeout": 600, "type": "command"}],
    });
    let digest = Sha256::digest(normalised.to_string().as_bytes());
    digest.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_strings_are_basic_ones() {
        for text in ["plain", "it's \"quoted\" \\ here", "two\nlines"] {
            let table: toml::Table = format!("x={}", quoted(text)).parse().unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }
}
