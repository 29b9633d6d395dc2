//! What Codex leaves: its rollout file (`sessions/YYYY/MM/DD/rollout-*.jsonl`) and the live stream
//! of `codex exec --json`.
//!
//! The rollout says most things twice: as `response_item` (what the model and the tools exchanged)
//! and as `event_msg` with an item (what happened). Both are read, because older versions and torn
//! files hold only one, and a call that both describe is one call, by its id.
//!
//! Absent on purpose: reasoning, tokens, `base_instructions` and other vendor text, and any
//! conclusion from what the model or a tool *said*.

mod calls;
mod shell;
mod signs;
#[cfg(test)]
mod tests;
mod trouble;

use crate::agents::loose::{self, Raw, loose};
use crate::model::cut::{one_line, shorten};
use crate::model::transcript::{
    Effect, Ending, LABEL_BYTES_MOST, PlanItem, PlanStatus, TEXT_BYTES_MOST, Transcript, Trouble,
};
use calls::{called, changed, executed, returned};
use shell::{command, patch, patch_summary};
use trouble::{readings, trouble};

pub use signs::{rollout_signs, signs};

loose!(Line {
    timestamp,
    kind = "type",
    payload,
});

loose!(Payload {
    kind = "type",
    id,
    session_id,
    cwd,
    model,
    role,
    content,
    name,
    arguments,
    input,
    call_id,
    output,
    action,
    item,
    message,
    replacement_history,
    rate_limits,
    error,
    codex_error_info,
    last_agent_message,
    reason,
    num_turns,
    // As in an item: older versions wrote these as events.
    command,
    exit_code,
    aggregated_output,
    changes,
    success,
    plan,
});

loose!(Item {
    kind = "type",
    id,
    content,
    text,
    command,
    exit_code,
    status,
    aggregated_output,
    changes,
    items,
    completed,
});

loose!(Arguments { cmd, command, input, plan, explanation, questions, query, url, path });

/// Folds one line of the rollout file into `transcript`.
pub fn fold(transcript: &mut Transcript, line: &[u8]) {
    let line: Line<'_> = match loose::record(line) {
        Ok(Some(line)) => line,
        Ok(None) => return,
        Err(why) => return transcript.warn(why),
    };
    let fold: fn(&mut Transcript, &Line<'_>, &Payload<'_>) = match loose::text(line.kind).as_deref()
    {
        Some("session_meta") => session,
        Some("turn_context") => turn_context,
        Some("response_item") => exchanged,
        Some("event_msg") => happened,
        Some("compacted") => compacted,
        _ => return,
    };
    if let Some(payload) = loose::object::<Payload<'_>>(line.payload) {
        fold(transcript, &line, &payload);
    }
}

/// The file's own session comes first; a forked one repeats its parent's after it.
fn session(transcript: &mut Transcript, _: &Line<'_>, payload: &Payload<'_>) {
    if transcript.agent_session.is_none() {
        note(&mut transcript.agent_session, payload.id);
        note(&mut transcript.agent_session, payload.session_id.filter(|_| payload.id.is_none()));
        note(&mut transcript.cwd, payload.cwd);
    }
}

fn turn_context(transcript: &mut Transcript, _: &Line<'_>, payload: &Payload<'_>) {
    note(&mut transcript.cwd, payload.cwd);
    note(&mut transcript.model, payload.model);
}

/// A compaction leaves a summary, or the history that stands for what was before.
fn compacted(transcript: &mut Transcript, _: &Line<'_>, payload: &Payload<'_>) {
    let message = loose::text(payload.message).filter(|text| !text.trim().is_empty());
    let summary = message.or_else(|| {
        let said = loose::array(payload.replacement_history).filter_map(|item| {
            let item: Payload<'_> = loose::object(Some(item))?;
            loose::blocks(item.content).filter(|text| !is_injected(text))
        });
        said.last()
    });
    transcript.compacted(summary.as_deref());
}

/// What the model and the tools exchanged.
fn exchanged(transcript: &mut Transcript, _: &Line<'_>, payload: &Payload<'_>) {
    let call = loose::text(payload.call_id).unwrap_or_default();
    match loose::text(payload.kind).as_deref() {
        Some("message") if loose::is(payload.role, "assistant") => {
            transcript.say_once(&loose::blocks(payload.content).unwrap_or_default());
        }
        Some("function_call") => {
            let tool = loose::text(payload.name).unwrap_or_default();
            let arguments = loose::text(payload.arguments).unwrap_or_default();
            let arguments: Arguments<'_> = loose::embedded(&arguments).unwrap_or_default();
            called(transcript, &call, &tool, &arguments);
        }
        Some("custom_tool_call") => {
            let tool = loose::text(payload.name).unwrap_or_default();
            let input = loose::text(payload.input).unwrap_or_default();
            let effect = match &*tool {
                "apply_patch" => patch(&input, transcript.cwd.as_deref()),
                _ => Effect::Known,
            };
            transcript.opened(&call, &tool, &patch_summary(&effect, &input), effect);
        }
        Some("local_shell_call") => {
            let action: Arguments<'_> = loose::object(payload.action).unwrap_or_default();
            called(transcript, &call, "local_shell", &action);
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let output = payload.output;
            loose!(Wrapped { content });
            let wrapped: Wrapped<'_> = loose::object(output).unwrap_or_default();
            let text = loose::result(output).or_else(|| loose::result(wrapped.content));
            let text = text.unwrap_or_default();
            // Older versions: JSON in a text, which has to be whole.
            let text = if text.starts_with('{') { loose::text(output) } else { Some(text) };
            returned(transcript, &call, &text.unwrap_or_default());
        }
        _ => {}
    }
}

/// What happened.
fn happened(transcript: &mut Transcript, line: &Line<'_>, payload: &Payload<'_>) {
    let call = loose::text(payload.call_id).unwrap_or_default();
    match loose::text(payload.kind).as_deref() {
        Some("item_completed") => {
            if let Some(item) = loose::object::<Item<'_>>(payload.item) {
                item_completed(transcript, line, &item);
            }
        }
        Some("user_message") => {
            asked(transcript, line, &loose::text(payload.message).unwrap_or_default());
        }
        Some("agent_message") => {
            transcript.say_once(&loose::text(payload.message).unwrap_or_default());
        }
        Some("exec_command_end") => {
            let exit_code = loose::integer(payload.exit_code);
            let output = loose::result(payload.aggregated_output).unwrap_or_default();
            executed(transcript, &call, &command(payload.command), exit_code, &output);
        }
        Some("patch_apply_end") if loose::flag(payload.success) == Some(true) => {
            changed(transcript, &call, payload.changes);
        }
        Some("plan_update") => transcript.plan_is(steps(payload.plan)),
        Some("token_count") => {
            if let Some(at) = loose::moment(line.timestamp) {
                for reading in readings(payload.rate_limits, at) {
                    transcript.observe(reading);
                }
            }
        }
        Some("task_started" | "turn_started") => transcript.ending = None,
        Some("task_complete" | "turn_complete") => {
            loose!(Failure { message, codex_error_info });
            if let Some(failure) = loose::object::<Failure<'_>>(payload.error) {
                let message = loose::text(failure.message).unwrap_or_default();
                transcript.ending = Some(failed(transcript, failure.codex_error_info, &message));
            } else if payload.last_agent_message.is_some()
                // Older versions state the error before, as an event.
                || !matches!(transcript.ending, Some(Ending::Trouble(_)))
            {
                transcript.ending = Some(Ending::TurnEnded);
            }
        }
        // Prompts taken back at the terminal, each with its turn.
        Some("thread_rolled_back") => {
            let count = loose::integer(payload.num_turns).unwrap_or(0);
            transcript.take_back(usize::try_from(count).unwrap_or(0));
        }
        Some("turn_aborted") => {
            transcript.ending = match loose::text(payload.reason).as_deref() {
                Some("replaced") => None,
                Some("interrupted") | None => Some(Ending::Interrupted),
                Some(reason) => {
                    let reason = one_line(reason, LABEL_BYTES_MOST);
                    Some(Ending::Trouble(Trouble::Other(reason)))
                }
            };
        }
        Some("error") => {
            let message = loose::text(payload.message).unwrap_or_default();
            transcript.ending = Some(failed(transcript, payload.codex_error_info, &message));
        }
        _ => {}
    }
}

/// How a turn failed. When a usage limit ends stands in the reading of the window that is used up.
fn failed(transcript: &Transcript, info: Raw<'_>, message: &str) -> Ending {
    Ending::Trouble(match trouble(info, message) {
        Trouble::Limit { text, .. } => {
            let used_up =
                transcript.readings.iter().filter(|reading| reading.used_permille >= 1000);
            Trouble::Limit {
                resets_at: used_up.filter_map(|reading| reading.resets_at).max(),
                text,
            }
        }
        trouble => trouble,
    })
}

fn item_completed(transcript: &mut Transcript, line: &Line<'_>, item: &Item<'_>) {
    let call = loose::text(item.id).unwrap_or_default();
    match loose::text(item.kind).as_deref() {
        Some("UserMessage") => {
            asked(transcript, line, &loose::blocks(item.content).unwrap_or_default());
        }
        Some("AgentMessage") => {
            transcript.say_once(&loose::blocks(item.content).unwrap_or_default());
        }
        Some("Plan") => transcript.say_once(&loose::text(item.text).unwrap_or_default()),
        Some("FileChange") if loose::is(item.status, "completed") => {
            changed(transcript, &call, item.changes);
        }
        Some("CommandExecution") if !loose::is(item.status, "declined") => {
            let exit_code = loose::integer(item.exit_code);
            let output = loose::result(item.aggregated_output).unwrap_or_default();
            executed(transcript, &call, &command(item.command), exit_code, &output);
        }
        _ => {}
    }
}

/// A prompt; two records may state it, one right after the other.
fn asked(transcript: &mut Transcript, line: &Line<'_>, text: &str) {
    let at = loose::moment(line.timestamp);
    let text = text.trim();
    let is_known = transcript.prompts.last().is_some_and(|last| {
        let near = match (last.at, at) {
            (Some(last), Some(at)) => at.seconds_since(last) <= 2,
            _ => true,
        };
        near && last.text == shorten(text, TEXT_BYTES_MOST)
    });
    if !is_known && !is_injected(text) {
        transcript.ask(text, at);
    }
}

/// What begins a text that Codex puts in the user's name.
const INJECTED: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<hook_prompt",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    INJECTED.iter().any(|beginning| text.starts_with(beginning))
}

/// The steps of `update_plan`.
fn steps(raw: Raw<'_>) -> Vec<PlanItem> {
    loose!(Step { step, status });
    loose::array(raw)
        .filter_map(|step| {
            let step: Step<'_> = loose::object(Some(step))?;
            let status = match loose::text(step.status).as_deref() {
                Some("completed") => PlanStatus::Completed,
                Some("in_progress") => PlanStatus::InProgress,
                // What is not known to be done is still to do.
                _ => PlanStatus::Pending,
            };
            Some(PlanItem { text: loose::text(step.step)?.into_owned(), status })
        })
        .collect()
}

/// Keeps the latest value of a short text.
fn note(kept: &mut Option<String>, raw: Raw<'_>) {
    if let Some(text) = loose::text(raw)
        && !text.is_empty()
        && text.len() <= LABEL_BYTES_MOST * 4
    {
        *kept = Some(text.into_owned());
    }
}
