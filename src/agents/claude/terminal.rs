//! Claude Code in a person's own terminal: the person's settings rule, our hooks come beside
//! theirs, and the status line, whose input is the only place where usage stands, is wrapped.

use super::{config_folder, launch};
use crate::agents::loose::{self, loose};
use crate::agents::{Launch, Order, Seat, sentence};
use crate::host::{files, process};
use crate::model::heard::Heard;
use crate::model::names::Nonce;
use crate::model::quota::{Reading, permille};
use crate::model::time::Timestamp;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The person's own status line command, for our hook to run.
const STATUSLINE_FILE: &str = "claude-statusline";
/// An organisation's settings come before all others.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";
/// Claude drops the output of a status line that takes longer.
const STATUSLINE_PATIENCE: Duration = Duration::from_secs(5);

/// A session id of Claude's must be a UUID: the nonce, with version and variant of a random one.
pub(super) fn session(nonce: &Nonce) -> String {
    let hex = nonce.as_str();
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// No permission flag. What is to be read is system text too, so that `/clear` and a compaction
/// leave it in place.
pub(super) fn start(_: &Seat, order: &Order<'_>) -> Result<Launch> {
    let mut settings = json!({"hooks": launch::hooks(order)});
    let own = own_statusline(order);
    let command = own.as_ref().and_then(|line| line["command"].as_str()).unwrap_or_default();
    files::replace(&order.folder.join(STATUSLINE_FILE), command.as_bytes(), 0o600)?;
    let mut line = own.unwrap_or_else(|| json!({"type": "command"}));
    line["command"] = launch::hook_command(order, "statusline").into();
    settings["statusLine"] = line;
    let path = order.folder.join("claude-terminal.json");
    files::replace(&path, settings.to_string().as_bytes(), 0o600)?;
    let mut argv = vec![order.program.into(), "--settings".into(), path.into()];
    argv.extend(["--session-id".into(), session(order.nonce).into()]);
    argv.extend(["--append-system-prompt-file".into(), order.prompt_file.into()]);
    argv.push(sentence(order.shown_file).into());
    Ok(Launch { argv, ..Launch::default() })
}

/// The status line that would be shown without us, in Claude's order. In a worktree inside the
/// repository the local settings of the main tree apply (tried).
fn own_statusline(order: &Order<'_>) -> Option<Value> {
    let main = order.common_dir.parent();
    let mut places = vec![PathBuf::from(MANAGED)];
    for root in [Some(order.worktree), main].into_iter().flatten() {
        places.push(root.join(".claude/settings.local.json"));
    }
    places.push(order.worktree.join(".claude/settings.json"));
    places.extend(config_folder().map(|folder| folder.join("settings.json")));
    places.iter().find_map(|path| {
        let text = files::read_text(path, 4 << 20).ok().flatten()?;
        let settings: Value = serde_json::from_str(&text).ok()?;
        let line = settings.get("statusLine")?.clone();
        line["command"].is_string().then_some(line)
    })
}

loose!(Payload { session_id, rate_limits });
loose!(Windows { five_hour, seven_day });
loose!(Window { used_percentage, resets_at });

/// The start with Claude's own id (`/clear` begins another session), and what the status line is
/// given to show.
pub(super) fn keep(event: &str, payload: &[u8], now: Timestamp) -> Option<Heard> {
    let payload: Payload<'_> = loose::record(payload).ok().flatten()?;
    if event == "SessionStart" {
        return Some(Heard::Started(loose::text(payload.session_id)?.into_owned()));
    }
    let readings = readings(&payload, now);
    (event == "statusline" && !readings.is_empty()).then_some(Heard::Readings(readings))
}

fn readings(payload: &Payload<'_>, observed_at: Timestamp) -> Vec<Reading> {
    let windows: Windows<'_> = loose::object(payload.rate_limits).unwrap_or_default();
    [(windows.five_hour, 300), (windows.seven_day, 10_080)]
        .into_iter()
        .filter_map(|(window, window_minutes)| {
            let window: Window<'_> = loose::object(window)?;
            Some(Reading {
                source: "statusline".to_owned(),
                window_minutes,
                used_permille: permille(loose::number(window.used_percentage)?, 10.0)?,
                resets_at: loose::epoch(window.resets_at),
                observed_at,
            })
        })
        .collect()
}

/// The person's own status line for the same input, else a short one of ours.
pub(super) fn print(event: &str, folder: &Path, payload: &[u8]) -> Result<Option<Vec<u8>>> {
    if event != "statusline" {
        return Ok(None);
    }
    let own = files::read_text(&folder.join(STATUSLINE_FILE), 64 * 1024)?.unwrap_or_default();
    if !own.is_empty() {
        let output = process::run(&["sh", "-c", &own], &[], payload, STATUSLINE_PATIENCE)?;
        return Ok(Some(output.stdout));
    }
    let parsed: Option<Payload<'_>> = loose::record(payload).ok().flatten();
    let readings = readings(&parsed.unwrap_or_default(), Timestamp(0));
    let used: Vec<String> = readings
        .iter()
        .map(|reading| {
            let window = if reading.window_minutes == 300 { "5 h" } else { "7 d" };
            format!("{window}: {} %", reading.used_permille / 10)
        })
        .collect();
    let line = if used.is_empty() {
        "relay".to_owned()
    } else {
        format!("relay · {}", used.join(" · "))
    };
    Ok(Some(format!("{line}\n").into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_uuid_made_of_the_nonce() {
        let nonce = Nonce::new("0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(session(&nonce), "01234567-89ab-4def-8123-456789abcdef");
    }

    #[test]
    fn usage_is_read_off_what_the_status_line_is_given() {
        let payload = br#"{"session_id":"x","rate_limits":{"five_hour":{"used_percentage":82.5,"resets_at":1796004534},"seven_day":{"used_percentage":31,"resets_at":1796342934}}}"#;
        let Some(Heard::Readings(found)) = keep("statusline", payload, Timestamp(7)) else {
            panic!("no readings")
        };
        let found: Vec<_> = found.iter().map(|r| (r.window_minutes, r.used_permille)).collect();
        assert_eq!(found, [(300, 825), (10_080, 310)]);
        // Before the first answer, and with an API key, there is none: unknown, not 0.
        assert_eq!(keep("statusline", br#"{"session_id":"x"}"#, Timestamp(7)), None);
    }
}
