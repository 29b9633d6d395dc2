//! What one line of the live stream of `exec --json` tells, and of the rollout file.

use super::trouble::{readings, trouble};
use super::{Item, Line, Payload, loose};
use crate::model::cut::one_line;
use crate::model::time::Timestamp;
use crate::model::transcript::{Ending, LABEL_BYTES_MOST, Sign, Trouble};
use std::borrow::Cow;

/// What one line of the live stream of `exec --json` tells.
pub fn signs(line: &[u8], _now: Timestamp) -> Vec<Sign> {
    loose!(Event {
        kind = "type",
        thread_id,
        item,
        error,
        message,
    });
    loose!(Failure { message, codex_error_info });
    let Ok(Some(event)) = loose::record::<Event<'_>>(line) else {
        return Vec::new();
    };
    let mut signs = Vec::new();
    match loose::text(event.kind).as_deref() {
        Some("thread.started") => {
            let agent_session = loose::text(event.thread_id)
                .filter(|id| !id.is_empty() && id.len() <= LABEL_BYTES_MOST)
                .map(Cow::into_owned);
            signs.push(Sign::Started { agent_session });
        }
        Some(kind @ ("item.started" | "item.updated" | "item.completed")) => {
            if let Some(item) = loose::object::<Item<'_>>(event.item) {
                item_signs(&mut signs, kind, &item);
            }
        }
        Some("turn.completed") => signs.push(Sign::Ended(Ending::TurnEnded)),
        Some("turn.failed") => {
            let failure: Failure<'_> = loose::object(event.error).unwrap_or_default();
            let message = loose::text(failure.message).unwrap_or_default();
            let trouble = trouble(failure.codex_error_info, &message);
            signs.push(Sign::Ended(Ending::Trouble(trouble)));
        }
        Some("error") => {
            let message = loose::text(event.message).unwrap_or_default();
            if message.starts_with("Reconnecting...") {
                signs.push(Sign::Retrying(one_line(&message, LABEL_BYTES_MOST)));
            } else {
                // A failed turn follows; what is not known for an end waits for it.
                match trouble(None, &message) {
                    Trouble::Other(_) => {}
                    trouble => signs.push(Sign::Ended(Ending::Trouble(trouble))),
                }
            }
        }
        _ => {}
    }
    signs
}

fn item_signs(signs: &mut Vec<Sign>, kind: &str, item: &Item<'_>) {
    let call = loose::text(item.id).unwrap_or_default().into_owned();
    match loose::text(item.kind).as_deref() {
        Some("agent_message" | "reasoning") => signs.push(Sign::ModelMade),
        Some(
            "command_execution" | "file_change" | "mcp_tool_call" | "web_search"
            | "collab_tool_call",
        ) => {
            signs.push(Sign::ModelMade);
            match kind {
                "item.started" => signs.push(Sign::ToolStarted { call }),
                "item.completed" => signs.push(Sign::ToolEnded { call }),
                _ => {}
            }
        }
        Some("todo_list") => {
            // Codex completes the list itself when a turn ends, also when it fails.
            if kind != "item.completed" {
                signs.push(Sign::ModelMade);
            }
            let open = loose::array(item.items)
                .filter_map(|item| loose::object::<Item<'_>>(Some(item)))
                .filter(|item| loose::flag(item.completed) != Some(true))
                .count();
            signs.push(Sign::Plan { open });
        }
        _ => {}
    }
}

/// The readings in one line of the rollout file, which the live stream does not have.
pub fn rollout_signs(line: &[u8], now: Timestamp) -> Vec<Sign> {
    let Ok(Some(line)) = loose::record::<Line<'_>>(line) else {
        return Vec::new();
    };
    if !loose::is(line.kind, "event_msg") {
        return Vec::new();
    }
    let payload: Payload<'_> = loose::object(line.payload).unwrap_or_default();
    if !loose::is(payload.kind, "token_count") {
        return Vec::new();
    }
    readings(payload.rate_limits, now).into_iter().map(Sign::Reading).collect()
}
