//! What Claude Code leaves: its transcript (`projects/<cwd>/<session>.jsonl`) and its live
//! `--output-format stream-json`. Both are one record a line and share most fields, the
//! transcript's in camelCase, the stream's in snake_case.
//!
//! Absent on purpose: usage of tokens, `api-request*` records (they hold the system prompt), and
//! any conclusion from what the model or a tool *said*: an error is an error only in a record that
//! Claude itself marked as one.

mod calls;
mod plan;
mod signs;
#[cfg(test)]
mod tests;
mod trouble;

use crate::agents::loose::{self, Raw, loose};
use crate::model::lineage::{Kind, Parent};
use crate::model::transcript::{Effect, Ending, LABEL_BYTES_MOST, Transcript, Trouble};
use calls::{call, result};
use std::borrow::Cow;
use trouble::readings;

pub use signs::signs;

loose!(Record {
    kind = "type",
    subtype,
    uuid,
    parent = "parentUuid",
    logical_parent = "logicalParentUuid",
    message,
    timestamp,
    cwd,
    session = "sessionId" | "session_id",
    sidechain = "isSidechain",
    parent_call = "parent_tool_use_id",
    meta = "isMeta",
    hidden = "isVisibleInTranscriptOnly",
    compact_summary = "isCompactSummary",
    row_source = "rowSource",
    prompt_source = "promptSource",
    result_detail = "toolUseResult" | "tool_use_result",
    denial = "toolDenialKind",
    denied_before_run = "toolDenialBeforeRun",
    permission = "permissionDecision",
    feedback = "userFeedback",
    attachment,
    prevented = "preventedContinuation",
    // An API error, in the record of a message.
    error,
    is_api_error = "isApiErrorMessage" | "is_api_error_message",
    api_error = "apiError" | "api_error",
    api_status = "apiErrorStatus" | "api_error_status",
    api_type = "apiErrorType" | "api_error_type",
    api_params = "apiErrorParams" | "api_error_params",
    quota_limits = "quotaLimits",
    // Only in the stream.
    rate_limit_info,
    attempt,
    max_retries,
    retry_delay_ms,
    error_status,
    is_error,
    terminal_reason,
    result,
    errors,
    permission_denials,
    interrupted_by_shutdown,
});

loose!(Message { id, model, content, stop_reason });

loose!(Block {
    kind = "type",
    text,
    id,
    name,
    input,
    tool_use_id,
    content,
    is_error,
});

loose!(Input {
    command,
    file_path,
    notebook_path,
    old_string,
    todos,
    subject,
    task_id = "taskId",
    status,
    skill,
    questions,
    plan,
    description,
    pattern,
    path,
    url,
    query,
    prompt,
});

loose!(Detail {
    kind = "type",
    file_path = "filePath",
    interrupted,
    background = "backgroundTaskId",
    timed_out = "timedOutAfterMs",
    interpretation = "returnCodeInterpretation",
    staged,
    error,
    success,
    task,
    tasks,
    task_id = "taskId",
    status_change = "statusChange",
    plan,
    answers,
});

loose!(Permission { decision, source });

loose!(Item { content, subject, status, id, question, to, tool_name, tool_input });

/// Folds one line of the transcript into `transcript`.
pub fn fold(transcript: &mut Transcript, line: &[u8]) {
    let record: Record<'_> = match loose::record(line) {
        Ok(Some(record)) => record,
        Ok(None) => return,
        Err(why) => return transcript.warn(why),
    };
    let kind = loose::text(record.kind).unwrap_or_default();
    if !matches!(&*kind, "assistant" | "user" | "attachment" | "system") {
        return;
    }
    let message: Message<'_> = loose::object(record.message).unwrap_or_default();
    if record.is_main() && !is_on_the_way(transcript, &kind, &record, &message) {
        return;
    }
    match &*kind {
        "assistant" => assistant(transcript, &record, &message),
        "user" => user(transcript, &record, &message),
        "attachment" => attachment(transcript, &record),
        "system" if record.is_main() && loose::is(record.subtype, "compact_boundary") => {
            transcript.compacted(None);
        }
        "system"
            if record.is_main()
                && loose::is(record.subtype, "stop_hook_summary")
                && loose::flag(record.prevented) == Some(true) =>
        {
            transcript.ending = Some(Ending::StoppedByHook);
        }
        _ => {}
    }
}

/// Whether this record leads to the end of the session: Claude's file is a tree, and a prompt that
/// was taken back and written anew leaves a branch behind. A compaction begins a tree of its own
/// that goes on from where the last one ended.
fn is_on_the_way(
    transcript: &mut Transcript,
    kind: &str,
    record: &Record<'_>,
    message: &Message<'_>,
) -> bool {
    let Some(id) = loose::text(record.uuid) else { return true };
    let parent = loose::text(record.parent.or(record.logical_parent));
    let parent = parent.as_deref().map_or(Parent::Root, Parent::On);
    let is_result = || {
        if record.result_detail.is_some() {
            return true;
        }
        let mut blocks = loose::array(message.content);
        let block = blocks.next().and_then(|block| loose::object::<Block<'_>>(Some(block)));
        block.is_some_and(|block| block.tool_use_id.is_some())
    };
    let speaks = match kind {
        "assistant" => true,
        "user" => loose::flag(record.compact_summary) != Some(true) && !is_result(),
        _ => false,
    };
    let answer = loose::text(message.id.filter(|_| kind == "assistant")).unwrap_or_default();
    let kind = if speaks { Kind::Speaks } else { Kind::Follows };
    transcript.scratch.lineage.counts(&id, parent, kind, &answer)
}

impl Record<'_> {
    /// Whether this belongs to the session itself, not to a subagent of it.
    fn is_main(&self) -> bool {
        loose::flag(self.sidechain) != Some(true) && self.parent_call.is_none()
    }

    /// Whether Claude wrote this message itself, in place of the model.
    fn is_synthetic(&self, message: &Message<'_>) -> bool {
        loose::is(message.model, "<synthetic>")
            || loose::flag(self.is_api_error) == Some(true)
            || loose::text(self.error).is_some()
    }
}

fn assistant(transcript: &mut Transcript, record: &Record<'_>, message: &Message<'_>) {
    let is_main = record.is_main();
    if record.is_synthetic(message) {
        let is_error =
            loose::flag(record.is_api_error) == Some(true) || loose::text(record.error).is_some();
        if is_main && is_error {
            let text = loose::blocks(message.content).unwrap_or_default();
            transcript.ending = Some(Ending::Trouble(record.trouble(&text)));
            if let Some(at) = loose::moment(record.timestamp) {
                for reading in readings(record.quota_limits, "quotaLimits", at) {
                    transcript.observe(reading);
                }
            }
        }
        return;
    }
    if is_main {
        note_origin(transcript, record);
        note(&mut transcript.model, message.model);
        transcript.scratch.refused.clear();
    }
    for block in loose::array(message.content) {
        let Some(block) = loose::object::<Block<'_>>(Some(block)) else {
            continue;
        };
        match loose::text(block.kind).as_deref() {
            Some("text") if is_main => {
                transcript.say(&loose::text(block.text).unwrap_or_default());
            }
            Some("tool_use") => call(transcript, &block, is_main),
            _ => {}
        }
    }
    if !is_main {
        return;
    }
    transcript.ending = match loose::text(message.stop_reason).as_deref() {
        Some("end_turn" | "stop_sequence") => {
            Some(transcript.scratch.asked.clone().map_or(Ending::TurnEnded, Ending::Asks))
        }
        Some("refusal") => Some(Ending::Trouble(Trouble::Other("the model refused".to_owned()))),
        // A question stays open beside the other calls of its message.
        _ => transcript.scratch.effects.values().find_map(|effect| match effect {
            Effect::Question { text, .. } => Some(Ending::Asks(text.clone())),
            _ => None,
        }),
    };
}

/// The results of calls, what the user typed, or what Claude says in the user's name.
fn user(transcript: &mut Transcript, record: &Record<'_>, message: &Message<'_>) {
    let is_main = record.is_main();
    if loose::flag(record.compact_summary) == Some(true) {
        if is_main {
            transcript.compacted(loose::blocks(message.content).as_deref());
        }
        return;
    }
    let mut typed: Vec<Cow<'_, str>> = loose::text(message.content).into_iter().collect();
    let mut is_result = false;
    for block in loose::array(message.content) {
        let Some(block) = loose::object::<Block<'_>>(Some(block)) else {
            continue;
        };
        match loose::text(block.kind).as_deref() {
            Some("tool_result") => {
                is_result = true;
                result(transcript, record, &block, is_main);
            }
            Some("text") => typed.extend(loose::text(block.text)),
            _ => {}
        }
    }
    if !is_main {
        return;
    }
    if is_result {
        // A person can say something to the call that they allow.
        if by_person(record) {
            let said: Vec<_> = typed.iter().filter_map(|text| prompt(text)).collect();
            transcript.ask(&said.join("\n\n"), loose::moment(record.timestamp));
        }
        return;
    }
    if record.prompt_source.is_none() && typed.iter().any(|text| is_break_off(text)) {
        for (call, command) in std::mem::take(&mut transcript.scratch.refused) {
            transcript.ran(&call, &command, None, "");
        }
        transcript.ending = Some(Ending::Interrupted);
        return;
    }
    let is_own =
        loose::text(record.row_source).is_some_and(|source| matches!(&*source, "harness" | "hook"));
    if is_own || loose::flag(record.meta) == Some(true) || loose::flag(record.hidden) == Some(true)
    {
        return;
    }
    note_origin(transcript, record);
    let typed: Vec<_> = typed.iter().filter_map(|text| prompt(text)).collect();
    transcript.ask(&typed.join("\n\n"), loose::moment(record.timestamp));
}

/// Whether a person allowed or refused the call (Claude Code 2.1.332; older ones do not say).
fn by_person(record: &Record<'_>) -> bool {
    let permission: Permission<'_> = loose::object(record.permission).unwrap_or_default();
    loose::text(permission.source).is_some_and(|source| source.starts_with("user_"))
}

/// The marks that Claude leaves where a person stopped it.
fn is_break_off(text: &str) -> bool {
    matches!(text, "[Request interrupted by user]" | "[Request interrupted by user for tool use]")
}

/// What begins a text that Claude puts in the user's name.
const INJECTED: &[&str] = &[
    "<system-reminder>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification",
    "<teammate-message",
    "<user-memory-input>",
    "Caveat: The messages below were generated by the user while running local commands",
];

/// The part of `text` that a person typed.
fn prompt(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    if INJECTED.iter().any(|beginning| text.starts_with(beginning)) {
        return None;
    }
    // A slash command: only its arguments can hold a task.
    if text.starts_with("<command-name>") || text.starts_with("<command-message>") {
        let name = between(text, "<command-name>", "</command-name>")?;
        let arguments = between(text, "<command-args>", "</command-args>")?;
        return (!arguments.is_empty()).then(|| Cow::Owned(format!("{name} {arguments}")));
    }
    Some(Cow::Borrowed(text))
}

fn between<'a>(text: &'a str, opening: &str, closing: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(opening)?;
    rest.split_once(closing).map(|(inner, _)| inner.trim())
}

fn attachment(transcript: &mut Transcript, record: &Record<'_>) {
    loose!(Attachment {
        kind = "type",
        prompt,
        mode = "commandMode",
        origin,
        meta = "isMeta",
    });
    loose!(Origin { kind });
    // Prompt snapshots are large and hold nothing for us.
    let small = record.attachment.filter(|raw| raw.get().len() <= 64 * 1024);
    let Some(attachment) = loose::object::<Attachment<'_>>(small) else {
        return;
    };
    if !record.is_main() {
        return;
    }
    match loose::text(attachment.kind).as_deref() {
        Some("hook_stopped_continuation") => transcript.ending = Some(Ending::StoppedByHook),
        // Typed while Claude was at work: it has no user record of its own.
        Some("queued_command") => {
            let origin: Origin<'_> = loose::object(attachment.origin).unwrap_or_default();
            let by_person = loose::text(origin.kind).is_none_or(|kind| kind == "human");
            let to_model = loose::text(attachment.mode).is_none_or(|mode| mode == "prompt");
            let is_meta = loose::flag(attachment.meta) == Some(true);
            if by_person
                && to_model
                && !is_meta
                && let Some(text) = loose::blocks(attachment.prompt)
                && let Some(text) = prompt(&text)
            {
                transcript.ask(&text, loose::moment(record.timestamp));
            }
        }
        _ => {}
    }
}

fn note_origin(transcript: &mut Transcript, record: &Record<'_>) {
    note(&mut transcript.agent_session, record.session);
    note(&mut transcript.cwd, record.cwd);
}

/// Keeps the latest value of a short text.
fn note(kept: &mut Option<String>, raw: Raw<'_>) {
    if let Some(text) = loose::text(raw)
        && !text.is_empty()
        && text.len() <= LABEL_BYTES_MOST * 4
        && kept.as_deref() != Some(&*text)
    {
        *kept = Some(text.into_owned());
    }
}
