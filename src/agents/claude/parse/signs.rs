//! What one line of the live stream tells.

use super::calls::{question, summary};
use super::plan::{made_task, task_status, todos};
use super::trouble::readings;
use super::{Block, Detail, Input, Item, Message, Record, loose};
use crate::model::cut::one_line;
use crate::model::time::Timestamp;
use crate::model::transcript::{Ending, LABEL_BYTES_MOST, PlanStatus, Sign, Trouble};
use std::borrow::Cow;

/// What one line of the live stream tells.
///
/// A usage limit comes twice: with the message that states it, where the reset time stands, and
/// with the result, which has none.
pub fn signs(line: &[u8], now: Timestamp) -> Vec<Sign> {
    let Ok(Some(record)) = loose::record::<Record<'_>>(line) else {
        return Vec::new();
    };
    let mut signs = Vec::new();
    match loose::text(record.kind).as_deref() {
        Some("system") if loose::is(record.subtype, "init") => {
            let agent_session = loose::text(record.session)
                .filter(|id| !id.is_empty() && id.len() <= LABEL_BYTES_MOST)
                .map(Cow::into_owned);
            signs.push(Sign::Started { agent_session });
        }
        Some("system") if loose::is(record.subtype, "api_retry") => {
            signs.push(Sign::Retrying(retry(&record)));
        }
        Some("assistant") => assistant_signs(&mut signs, &record),
        Some("user") if record.is_main() => result_signs(&mut signs, &record),
        Some("rate_limit_event") => {
            let readings = readings(record.rate_limit_info, "rate_limit_event", now);
            signs.extend(readings.into_iter().map(Sign::Reading));
        }
        Some("result") => signs.push(Sign::Ended(ending(&record))),
        _ => {}
    }
    signs
}

fn assistant_signs(signs: &mut Vec<Sign>, record: &Record<'_>) {
    let Some(message) = loose::object::<Message<'_>>(record.message) else {
        return;
    };
    if record.is_synthetic(&message) {
        let text = loose::blocks(message.content).unwrap_or_default();
        let trouble = record.trouble(&text);
        if record.is_main() && matches!(trouble, Trouble::Limit { .. }) {
            signs.push(Sign::Ended(Ending::Trouble(trouble)));
        }
        return;
    }
    if loose::array(message.content).next().is_none() || message.model.is_none() {
        return;
    }
    signs.push(Sign::ModelMade);
    if !record.is_main() {
        return;
    }
    for block in loose::array(message.content) {
        let Some(block) = loose::object::<Block<'_>>(Some(block)) else {
            continue;
        };
        if !loose::is(block.kind, "tool_use") {
            continue;
        }
        if let Some(call) = loose::text(block.id) {
            signs.push(Sign::ToolStarted { call: call.into_owned() });
        }
        if loose::is(block.name, "TodoWrite") {
            let input: Input<'_> = loose::object(block.input).unwrap_or_default();
            let open = todos(input.todos).iter().filter(|item| item.is_open()).count();
            signs.push(Sign::Plan { open });
        }
    }
}

fn result_signs(signs: &mut Vec<Sign>, record: &Record<'_>) {
    let message: Message<'_> = loose::object(record.message).unwrap_or_default();
    let detail: Detail<'_> = loose::object(record.result_detail).unwrap_or_default();
    for block in loose::array(message.content) {
        let Some(block) = loose::object::<Block<'_>>(Some(block)) else {
            continue;
        };
        if !loose::is(block.kind, "tool_result") {
            continue;
        }
        if let Some(call) = loose::text(block.tool_use_id) {
            signs.push(Sign::ToolEnded { call: call.into_owned() });
        }
        if loose::flag(block.is_error) == Some(true) {
            continue;
        }
        let content = loose::result(block.content).unwrap_or_default();
        if let Some(task) = made_task(&detail, &content) {
            signs.push(Sign::Task { task, open: true });
        } else if let Some(task) = loose::text(detail.task_id)
            && let Some(change) = loose::object::<Item<'_>>(detail.status_change)
            && let Some(status) = loose::text(change.to).and_then(|status| task_status(&status))
        {
            let open = status.is_some_and(|status| status != PlanStatus::Completed);
            signs.push(Sign::Task { task: task.into_owned(), open });
        }
    }
}

/// A retry in one line.
fn retry(record: &Record<'_>) -> String {
    let number = |raw| loose::integer(raw).map_or("?".to_owned(), |number| number.to_string());
    let error = loose::text(record.error).unwrap_or_default();
    let line = format!(
        "{} {error}, attempt {} of {}, next in {} ms",
        number(record.error_status),
        number(record.attempt),
        number(record.max_retries),
        number(record.retry_delay_ms)
    );
    one_line(&line, LABEL_BYTES_MOST)
}

/// How a run ended, from its `result` record. `subtype` says "success" of a run that hit the limit.
fn ending(record: &Record<'_>) -> Ending {
    let reason = loose::text(record.terminal_reason).unwrap_or_default();
    match &*reason {
        "hook_stopped" | "stop_hook_prevented" => return Ending::StoppedByHook,
        "aborted_tools" | "aborted_streaming" => return Ending::Interrupted,
        _ if loose::flag(record.interrupted_by_shutdown) == Some(true) => {
            return Ending::Interrupted;
        }
        _ => {}
    }
    let subtype = loose::text(record.subtype).unwrap_or_default();
    if subtype != "success" || loose::flag(record.is_error) != Some(false) {
        let text = loose::text(record.result).filter(|text| !text.trim().is_empty());
        let text = text.unwrap_or_else(|| {
            let errors = loose::array(record.errors);
            let errors: Vec<_> =
                errors.into_iter().filter_map(|error| loose::text(Some(error))).collect();
            Cow::Owned(errors.join("; "))
        });
        let text = if text.is_empty() { subtype } else { text };
        return Ending::Trouble(record.trouble(&text));
    }
    let denied = loose::array(record.permission_denials)
        .filter_map(|denial| {
            let denial: Item<'_> = loose::object(Some(denial))?;
            let tool = loose::text(denial.tool_name).unwrap_or_default();
            let input: Input<'_> = loose::object(denial.tool_input).unwrap_or_default();
            Some(match &*tool {
                "AskUserQuestion" | "ExitPlanMode" => question(&tool, &input),
                _ => format!("{tool}: {}", summary(&input)),
            })
        })
        .last();
    denied.map_or(Ending::TurnEnded, |denied| Ending::Asks(one_line(&denied, LABEL_BYTES_MOST)))
}
