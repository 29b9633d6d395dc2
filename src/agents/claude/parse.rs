//! What Claude Code leaves: its transcript (`projects/<cwd>/<session>.jsonl`) and its live
//! `--output-format stream-json`. Both are one record a line and share most fields, the
//! transcript's in camelCase, the stream's in snake_case.
//!
//! Absent on purpose: usage of tokens, `api-request*` records (they hold the system prompt), and
//! any conclusion from what the model or a tool *said*: an error is an error only in a record that
//! Claude itself marked as one.

use crate::agents::loose::{self, Raw, loose};
use crate::model::quota::{Reading, permille};
use crate::model::time::Timestamp;
use crate::model::transcript::{
    Effect, Ending, FileTouch, LABEL_BYTES_MOST, PLAN_ITEMS_MOST, PlanItem, PlanStatus, Sign,
    TEXT_BYTES_MOST, TouchKind, Transcript, Trouble, one_line, shorten,
};
use std::borrow::Cow;

loose!(Record {
    kind = "type",
    subtype,
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

loose!(Message { model, content, stop_reason });

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
});

loose!(Item { content, subject, status, id, question, to, tool_name, tool_input });

/// Folds one line of the transcript into `transcript`.
pub fn fold(transcript: &mut Transcript, line: &[u8]) {
    let record: Record<'_> = match loose::record(line) {
        Ok(Some(record)) => record,
        Ok(None) => return,
        Err(why) => return transcript.warn(why),
    };
    match loose::text(record.kind).as_deref() {
        Some("assistant") => assistant(transcript, &record),
        Some("user") => user(transcript, &record),
        Some("attachment") => attachment(transcript, &record),
        Some("system")
            if record.is_main()
                && loose::is(record.subtype, "stop_hook_summary")
                && loose::flag(record.prevented) == Some(true) =>
        {
            transcript.ending = Some(Ending::StoppedByHook);
        }
        _ => {}
    }
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

    /// The trouble that this record states, if it states one.
    fn trouble(&self, text: &str) -> Trouble {
        loose!(Params { rate_limit_info });
        let params: Params<'_> = loose::object(self.api_params).unwrap_or_default();
        let limits: Limits<'_> = loose::object(self.quota_limits)
            .or_else(|| loose::object(params.rate_limit_info))
            .unwrap_or_default();
        let status = self.api_status.map(|status| Cow::Borrowed(status.get()));
        let facts = [
            (Field::Terminal, loose::text(self.terminal_reason)),
            (Field::Code, loose::text(self.api_error)),
            (Field::Kind, loose::text(self.error)),
            (Field::Type, loose::text(self.api_type)),
            // A throttled request says "rejected" too, but names no reset.
            (Field::Quota, loose::text(limits.status.filter(|_| limits.resets_at.is_some()))),
            (Field::Text, Some(Cow::Owned(text.replace('’', "'")))),
            (Field::Status, status),
        ];
        let class = CLASSES.iter().find(|(field, value, _)| {
            facts.iter().any(|(known, fact)| {
                let fact = fact.as_deref().unwrap_or_default();
                known == field
                    && if *field == Field::Text { fact.starts_with(value) } else { fact == *value }
            })
        });
        let text = shorten(text, LABEL_BYTES_MOST);
        match class.map(|(_, _, class)| class) {
            Some(Class::Limit) => {
                Trouble::Limit { resets_at: loose::epoch(limits.resets_at), text }
            }
            Some(Class::Transient) => Trouble::Transient(text),
            Some(Class::Overload) => Trouble::Overload(text),
            Some(Class::Auth) => Trouble::Auth(text),
            Some(Class::Context) => Trouble::Context(text),
            None => Trouble::Other(text),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Class {
    Limit,
    Transient,
    Overload,
    Auth,
    Context,
}

/// Where an error record says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `terminal_reason` of the result.
    Terminal,
    /// `api_error`.
    Code,
    /// `error` of the message.
    Kind,
    /// `api_error_type`, the service's own.
    Type,
    /// `status` of the limits that came with the error.
    Quota,
    /// The beginning of the sentence, in a record already marked as an API error.
    Text,
    /// `api_error_status`.
    Status,
}

/// What an error is, most telling sign first: the first row that holds decides. A 429 alone is the
/// last to be believed, and is never the usage limit.
const CLASSES: &[(Field, &str, Class)] = &[
    (Field::Terminal, "prompt_too_long", Class::Context),
    (Field::Terminal, "blocking_limit", Class::Context),
    (Field::Terminal, "rapid_refill_breaker", Class::Context),
    (Field::Code, "usage_limit_reached", Class::Limit),
    (Field::Code, "model_requires_usage_credits", Class::Limit),
    (Field::Code, "autocompact_thrashing", Class::Context),
    (Field::Code, "long_context_credits_required", Class::Context),
    (Field::Code, "message_over_context_limit", Class::Context),
    (Field::Code, "api_key_auth_disabled", Class::Auth),
    (Field::Code, "gateway_session_expired", Class::Auth),
    (Field::Code, "gateway_signin_required", Class::Auth),
    (Field::Code, "invalid_credential_header", Class::Auth),
    (Field::Code, "oauth_refresh_store_refused", Class::Auth),
    (Field::Code, "org_disabled_credential", Class::Auth),
    (Field::Code, "provider_credentials", Class::Auth),
    (Field::Code, "stored_login_refused", Class::Auth),
    (Field::Kind, "account_on_hold", Class::Auth),
    (Field::Kind, "authentication_failed", Class::Auth),
    (Field::Kind, "cloud_credential_error", Class::Auth),
    (Field::Kind, "oauth_org_not_allowed", Class::Auth),
    (Field::Kind, "verification_required", Class::Auth),
    (Field::Kind, "billing_error", Class::Limit),
    (Field::Kind, "overloaded", Class::Overload),
    (Field::Type, "authentication_error", Class::Auth),
    (Field::Type, "permission_error", Class::Auth),
    (Field::Type, "billing_error", Class::Limit),
    (Field::Type, "overloaded_error", Class::Overload),
    (Field::Quota, "rejected", Class::Limit),
    (Field::Text, "API Error: Server is temporarily limiting requests", Class::Transient),
    (Field::Text, "You've hit your ", Class::Limit),
    (Field::Text, "Claude AI usage limit reached", Class::Limit),
    (Field::Text, "Credit balance is too low", Class::Limit),
    (Field::Text, "Not logged in", Class::Auth),
    (Field::Text, "Invalid API key", Class::Auth),
    (Field::Text, "Prompt is too long", Class::Context),
    (Field::Type, "rate_limit_error", Class::Transient),
    (Field::Kind, "rate_limit", Class::Transient),
    (Field::Status, "401", Class::Auth),
    (Field::Status, "403", Class::Auth),
    (Field::Status, "413", Class::Context),
    (Field::Status, "429", Class::Transient),
    (Field::Status, "529", Class::Overload),
];

fn assistant(transcript: &mut Transcript, record: &Record<'_>) {
    let Some(message) = loose::object::<Message<'_>>(record.message) else {
        return;
    };
    let is_main = record.is_main();
    if record.is_synthetic(&message) {
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
            Effect::Question(question) => Some(Ending::Asks(question.clone())),
            _ => None,
        }),
    };
}

/// A call that the model made: what it will have done once its result is in.
fn call(transcript: &mut Transcript, block: &Block<'_>, is_main: bool) {
    let Some(id) = loose::text(block.id) else {
        return;
    };
    let tool = loose::text(block.name).unwrap_or_default();
    let input: Input<'_> = loose::object(block.input).unwrap_or_default();
    let files = |path: Raw<'_>, kind| {
        let path = loose::text(path).unwrap_or_default().into_owned();
        Effect::Files(vec![FileTouch { path, kind }])
    };
    let effect = match &*tool {
        "Bash" | "PowerShell" => {
            let command = loose::text(input.command).unwrap_or_default();
            Effect::Command(shorten(&command, TEXT_BYTES_MOST))
        }
        // Whether it makes or changes the file stands in the result.
        "Write" => files(input.file_path, TouchKind::Added),
        "Edit" if loose::is(input.old_string, "") => files(input.file_path, TouchKind::Added),
        "Edit" | "MultiEdit" => files(input.file_path, TouchKind::Changed),
        "NotebookEdit" => files(input.notebook_path, TouchKind::Changed),
        "TodoWrite" if is_main => {
            let before = std::mem::take(&mut transcript.plan);
            transcript.plan_is(todos(input.todos));
            Effect::PlanBefore(before)
        }
        "TaskCreate" if is_main => {
            let text = loose::text(input.subject).unwrap_or_default();
            let text = one_line(&text, LABEL_BYTES_MOST);
            Effect::TaskMade(PlanItem { text, status: PlanStatus::Pending })
        }
        "TaskUpdate" if is_main => Effect::TaskChanged {
            id: loose::text(input.task_id).unwrap_or_default().into_owned(),
            text: loose::text(input.subject).map(|text| one_line(&text, LABEL_BYTES_MOST)),
            status: loose::text(input.status).and_then(|status| task_status(&status)),
        },
        "AskUserQuestion" | "ExitPlanMode" if is_main => {
            let plan = loose::text(input.plan).unwrap_or_default();
            if !plan.is_empty() {
                transcript.say(&plan);
            }
            Effect::Question(question(&tool, &input))
        }
        "Skill" => {
            let name = loose::text(input.skill).or_else(|| loose::text(input.command));
            transcript.skill(&name.unwrap_or_default());
            Effect::Known
        }
        _ => Effect::Known,
    };
    transcript.opened(&id, &tool, &summary(&input), effect);
}

/// The results of calls, what the user typed, or what Claude says in the user's name.
fn user(transcript: &mut Transcript, record: &Record<'_>) {
    let Some(message) = loose::object::<Message<'_>>(record.message) else {
        return;
    };
    let is_main = record.is_main();
    if loose::flag(record.compact_summary) == Some(true) {
        if is_main && let Some(text) = loose::blocks(message.content) {
            transcript.summary = Some(shorten(&text, TEXT_BYTES_MOST));
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
    if is_result || !is_main {
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

/// The result of a call.
fn result(transcript: &mut Transcript, record: &Record<'_>, block: &Block<'_>, is_main: bool) {
    let Some(id) = loose::text(block.tool_use_id) else {
        return;
    };
    let detail: Detail<'_> = loose::object(record.result_detail).unwrap_or_default();
    let content = loose::blocks(block.content).unwrap_or_default();
    let content = match without_reminders(&content) {
        "(Bash completed with no output)" => "",
        content => content,
    };
    let is_error = loose::flag(block.is_error) == Some(true);
    let denial = loose::text(record.denial);
    let tool =
        transcript.open_calls.get(&*id).map(|open| format!("{}: {}", open.tool, open.summary));
    match transcript.closed(&id) {
        Effect::Command(command) => {
            // Refused and broken off look alike; what follows tells them apart.
            if denial.as_deref() == Some("user-rejected") {
                transcript.scratch.refused.push((id.into_owned(), command));
            } else if denial.is_none() && !(is_error && content.starts_with("<tool_use_error>")) {
                let (exit_code, output) = outcome(&detail, content, block.is_error);
                transcript.ran(&id, &command, exit_code, output);
            }
        }
        Effect::Files(files) if !is_error => {
            let failed = loose::text(detail.error).is_some_and(|error| !error.is_empty());
            if failed || loose::flag(detail.staged) == Some(true) {
                return;
            }
            for file in files {
                let kind = match loose::text(detail.kind).as_deref() {
                    Some("create") => TouchKind::Added,
                    Some("update") => TouchKind::Changed,
                    _ if detail.file_path.is_some() => file.kind,
                    // Some runs keep no detail.
                    _ if content.starts_with("File created") => TouchKind::Added,
                    _ => TouchKind::Changed,
                };
                transcript.touch(&file.path, kind);
            }
        }
        Effect::PlanBefore(before) if is_error => transcript.plan = before,
        Effect::TaskMade(item) if !is_error => {
            if let Some(id) = made_task(&detail, content)
                && transcript.tasks.len() < PLAN_ITEMS_MOST
            {
                transcript.tasks.push((id, item));
                tasks_are_plan(transcript);
            }
        }
        Effect::TaskChanged { id, text, status }
            if !is_error && loose::flag(detail.success) != Some(false) =>
        {
            let Some(at) = transcript.tasks.iter().position(|(known, _)| *known == id) else {
                return;
            };
            match status {
                Some(None) => {
                    transcript.tasks.remove(at);
                }
                Some(Some(status)) => transcript.tasks[at].1.status = status,
                None => {}
            }
            if let Some(text) = text
                && let Some((_, item)) =
                    transcript.tasks.get_mut(at).filter(|(known, _)| *known == id)
            {
                item.text = text;
            }
            tasks_are_plan(transcript);
        }
        Effect::Question(question) => {
            transcript.ending = None;
            transcript.scratch.asked = is_error.then_some(question);
            if !is_error && let Some(plan) = loose::text(detail.plan) {
                transcript.say_once(&plan);
            }
        }
        Effect::Known if is_main && detail.tasks.is_some() && !is_error => {
            listed_tasks(transcript, detail.tasks);
        }
        _ => {}
    }
    if is_main
        && transcript.scratch.asked.is_none()
        && denial.is_some_and(|denial| denial == "user-rejected" || denial.starts_with("automode-"))
    {
        transcript.scratch.asked = tool.map(|tool| one_line(&tool, LABEL_BYTES_MOST));
    }
}

/// The exit code of a shell command, where it is known for certain, and its output.
fn outcome<'a>(detail: &Detail<'_>, content: &'a str, is_error: Raw<'_>) -> (Option<i64>, &'a str) {
    match loose::flag(is_error) {
        Some(true) => {
            let Some(rest) = content.strip_prefix("Exit code ") else {
                return (None, content);
            };
            let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
            match code.trim().parse() {
                Ok(code) => (Some(code), output),
                Err(_) => (None, content),
            }
        }
        // `grep` without a hit is no error, nor is it 0; a command in the background has no end.
        Some(false)
            if loose::flag(detail.interrupted) != Some(true)
                && detail.background.is_none()
                && detail.timed_out.is_none()
                && detail.interpretation.is_none() =>
        {
            (Some(0), content)
        }
        _ => (None, content),
    }
}

/// `text` without the reminder that Claude hangs on to results.
fn without_reminders(text: &str) -> &str {
    let mut text = text.trim_end();
    while text.ends_with("</system-reminder>")
        && let Some(from) = text.rfind("<system-reminder>")
    {
        text = text[..from].trim_end();
    }
    text
}

fn todos(raw: Raw<'_>) -> Vec<PlanItem> {
    loose::array(raw)
        .into_iter()
        .filter_map(|item| {
            let item: Item<'_> = loose::object(Some(item))?;
            let text = loose::text(item.content)?.into_owned();
            let status = loose::text(item.status).unwrap_or_default();
            Some(PlanItem { text, status: plan_status(&status) })
        })
        .collect()
}

/// What is not known to be done is still to do.
fn plan_status(status: &str) -> PlanStatus {
    match status {
        "completed" => PlanStatus::Completed,
        "in_progress" => PlanStatus::InProgress,
        _ => PlanStatus::Pending,
    }
}

/// A status as in [`Effect::TaskChanged`].
fn task_status(status: &str) -> Option<Option<PlanStatus>> {
    match status {
        "" => None,
        "deleted" => Some(None),
        status => Some(Some(plan_status(status))),
    }
}

/// The id of a task just made, from the result's detail or, where there is none, from its sentence
/// `Task #1 created successfully: …`.
fn made_task(detail: &Detail<'_>, content: &str) -> Option<String> {
    if let Some(task) = loose::object::<Item<'_>>(detail.task) {
        return loose::text(task.id).map(Cow::into_owned);
    }
    let rest = content.strip_prefix("Task #")?;
    let (id, rest) = rest.split_once(' ')?;
    rest.starts_with("created").then(|| id.to_owned())
}

/// The whole list, as TaskList shows it.
fn listed_tasks(transcript: &mut Transcript, tasks: Raw<'_>) {
    let listed: Vec<_> = loose::array(tasks)
        .into_iter()
        .take(PLAN_ITEMS_MOST)
        .filter_map(|item| {
            let item: Item<'_> = loose::object(Some(item))?;
            let text = one_line(&loose::text(item.subject)?, LABEL_BYTES_MOST);
            let status = plan_status(&loose::text(item.status)?);
            Some((loose::text(item.id)?.into_owned(), PlanItem { text, status }))
        })
        .collect();
    if !listed.is_empty() {
        transcript.tasks = listed;
        tasks_are_plan(transcript);
    }
}

fn tasks_are_plan(transcript: &mut Transcript) {
    let items: Vec<_> = transcript.tasks.iter().map(|(_, item)| item.clone()).collect();
    transcript.plan_is(items);
}

/// What a person is asked, in one line.
fn question(tool: &str, input: &Input<'_>) -> String {
    if tool == "ExitPlanMode" {
        return "approve the plan?".to_owned();
    }
    let questions: Vec<_> = loose::array(input.questions)
        .into_iter()
        .filter_map(|item| loose::text(loose::object::<Item<'_>>(Some(item))?.question))
        .collect();
    one_line(&questions.join(" "), LABEL_BYTES_MOST)
}

/// A call in one line: the first of these that it has.
fn summary(input: &Input<'_>) -> String {
    let known = [
        input.command,
        input.file_path,
        input.notebook_path,
        input.subject,
        input.skill,
        input.pattern,
        input.path,
        input.url,
        input.query,
        input.description,
        input.prompt,
    ];
    let text = known.into_iter().find_map(loose::text);
    one_line(&text.unwrap_or_default(), LABEL_BYTES_MOST)
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

loose!(Limits {
    status,
    resets_at = "resetsAt",
    kind = "rateLimitType",
    utilization,
    windows = "unifiedWindows",
});

/// The windows that Claude names, with their lengths in minutes. A weekly window of one model
/// counts as weekly where no more is said.
const WINDOWS: &[(&str, u32)] = &[
    ("five_hour", 300),
    ("seven_day", 10_080),
    ("seven_day_opus", 10_080),
    ("seven_day_sonnet", 10_080),
];

/// The readings in a record of limits; a window without a share is no reading.
fn readings(raw: Raw<'_>, source: &str, observed_at: Timestamp) -> Vec<Reading> {
    loose!(Windows { five_hour, seven_day });
    let limits: Limits<'_> = loose::object(raw).unwrap_or_default();
    let windows: Windows<'_> = loose::object(limits.windows).unwrap_or_default();
    let reading = |window: &Limits<'_>, window_minutes| {
        let used_permille = permille(loose::number(window.utilization)?, 1000.0)?;
        let resets_at = loose::epoch(window.resets_at);
        let source = source.to_owned();
        Some(Reading { source, window_minutes, used_permille, resets_at, observed_at })
    };
    let unified: Vec<_> = [(windows.five_hour, 300), (windows.seven_day, 10_080)]
        .into_iter()
        .filter_map(|(window, minutes)| reading(&loose::object(window)?, minutes))
        .collect();
    if !unified.is_empty() {
        return unified;
    }
    let kind = loose::text(limits.kind).unwrap_or_default();
    WINDOWS
        .iter()
        .find(|(name, _)| *name == kind)
        .and_then(|(_, minutes)| reading(&limits, *minutes))
        .into_iter()
        .collect()
}

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
    let blocks = loose::array(message.content);
    if blocks.is_empty() || message.model.is_none() {
        return;
    }
    signs.push(Sign::ModelMade);
    if !record.is_main() {
        return;
    }
    for block in blocks {
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
        let content = loose::blocks(block.content).unwrap_or_default();
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
        .into_iter()
        .filter_map(|denial| {
            let denial: Item<'_> = loose::object(Some(denial))?;
            let tool = loose::text(denial.tool_name).unwrap_or_default();
            let input: Input<'_> = loose::object(denial.tool_input).unwrap_or_default();
            Some(match &*tool {
                "AskUserQuestion" | "ExitPlanMode" => question(&tool, &input),
                _ => format!("{tool}: {}", summary(&input)),
            })
        })
        .next_back();
    denied.map_or(Ending::TurnEnded, |denied| Ending::Asks(one_line(&denied, LABEL_BYTES_MOST)))
}

#[cfg(test)]
mod tests;
