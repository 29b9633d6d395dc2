//! What Codex leaves: its rollout file (`sessions/YYYY/MM/DD/rollout-*.jsonl`) and the live stream
//! of `codex exec --json`.
//!
//! The rollout says most things twice: as `response_item` (what the model and the tools exchanged)
//! and as `event_msg` with an item (what happened). Both are read, because older versions and torn
//! files hold only one, and a call that both describe is one call, by its id.
//!
//! Absent on purpose: reasoning, tokens, `base_instructions` and other vendor text, and any
//! conclusion from what the model or a tool *said*.

use crate::agents::loose::{self, Raw, loose};
use crate::model::quota::{Reading, permille};
use crate::model::time::Timestamp;
use crate::model::transcript::{
    Effect, Ending, FileTouch, LABEL_BYTES_MOST, PlanItem, PlanStatus, Sign, TEXT_BYTES_MOST,
    TouchKind, Transcript, Trouble, one_line, shorten,
};
use std::borrow::Cow;

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

loose!(Arguments { cmd, command, input, plan, questions, query, url, path });

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
        loose::array(payload.replacement_history).into_iter().rev().find_map(|item| {
            let item: Payload<'_> = loose::object(Some(item))?;
            loose::blocks(item.content).filter(|text| !is_injected(text))
        })
    });
    if let Some(summary) = summary {
        transcript.summary = Some(shorten(&summary, TEXT_BYTES_MOST));
    }
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
            let text = loose::blocks(output).or_else(|| loose::blocks(wrapped.content));
            returned(transcript, &call, &text.unwrap_or_default());
        }
        _ => {}
    }
}

/// A call that the model made: what it will have done once its result is in.
fn called(transcript: &mut Transcript, call: &str, tool: &str, arguments: &Arguments<'_>) {
    let cwd = transcript.cwd.clone();
    let command = command(arguments.cmd.or(arguments.command));
    let mut summary = loose::text(arguments.query)
        .or_else(|| loose::text(arguments.url))
        .or_else(|| loose::text(arguments.path))
        .unwrap_or_default();
    let effect = match tool {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" => {
            if is_patch(&command) {
                patch(&command, cwd.as_deref())
            } else {
                Effect::Command(shorten(&command, TEXT_BYTES_MOST))
            }
        }
        "apply_patch" => patch(&loose::text(arguments.input).unwrap_or_default(), cwd.as_deref()),
        "update_plan" => {
            let before = std::mem::take(&mut transcript.plan);
            transcript.plan_is(steps(arguments.plan));
            Effect::PlanBefore(before)
        }
        "request_user_input" => {
            loose!(Question { question });
            let questions: Vec<_> = loose::array(arguments.questions)
                .into_iter()
                .filter_map(|item| loose::text(loose::object::<Question<'_>>(Some(item))?.question))
                .collect();
            summary = Cow::Owned(one_line(&questions.join(" "), LABEL_BYTES_MOST));
            transcript.ending = Some(Ending::Asks(summary.clone().into_owned()));
            Effect::Question(summary.clone().into_owned())
        }
        _ => Effect::Known,
    };
    if summary.is_empty() {
        summary = Cow::Owned(patch_summary(&effect, &command));
    }
    transcript.opened(call, tool, &summary, effect);
}

/// The output of a call.
fn returned(transcript: &mut Transcript, call: &str, output: &str) {
    let outcome = Outcome::read(output);
    match transcript.closed(call) {
        Effect::Command(command) if !outcome.is_refused => {
            transcript.ran(call, &command, outcome.exit_code, &outcome.output);
        }
        Effect::Files(files) if outcome.exit_code == Some(0) => {
            for file in files {
                transcript.touch(&file.path, file.kind);
            }
        }
        Effect::PlanBefore(before) if outcome.is_refused => transcript.plan = before,
        Effect::Question(_) => transcript.ending = None,
        _ => {}
    }
}

/// What the output of a tool says about how it went.
struct Outcome<'a> {
    exit_code: Option<i64>,
    /// It was never run: a hook or a person said no.
    is_refused: bool,
    output: Cow<'a, str>,
}

impl<'a> Outcome<'a> {
    fn read(text: &'a str) -> Self {
        loose!(Wrapped { output, metadata });
        loose!(Metadata { exit_code });
        // Older versions: `{"output":"…","metadata":{"exit_code":0}}`.
        if let Some(wrapped) = loose::embedded::<Wrapped<'_>>(text)
            && let Some(output) = loose::text(wrapped.output)
        {
            let metadata: Metadata<'_> = loose::object(wrapped.metadata).unwrap_or_default();
            let exit_code = loose::integer(metadata.exit_code);
            return Self { exit_code, is_refused: false, output: Cow::Owned(output.into_owned()) };
        }
        // Only the head is Codex's; below `Output:` a command may print anything.
        let (head, output) = match text.split_once("\nOutput:\n") {
            Some((head, output)) => (head, output),
            None => (text, text),
        };
        let mut exit_code = head.lines().take(8).find_map(|line| {
            let code = line
                .strip_prefix("Exit code: ")
                .or_else(|| line.strip_prefix("Process exited with code "))?;
            code.trim().parse().ok()
        });
        if exit_code.is_none() && text.starts_with("Success.") {
            exit_code = Some(0);
        }
        let is_refused = REFUSALS.iter().any(|beginning| head.starts_with(beginning));
        Self { exit_code, is_refused, output: Cow::Borrowed(output) }
    }
}

/// What stands in place of an output when the tool was not run.
const REFUSALS: &[&str] = &[
    "Command blocked by ",
    "Tool call blocked by ",
    "exec command rejected by user",
    "patch rejected by user",
];

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
            let output = loose::text(payload.aggregated_output).unwrap_or_default();
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
            let output = loose::text(item.aggregated_output).unwrap_or_default();
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

/// A command that ran. Its raw output may still come, or have come.
fn executed(
    transcript: &mut Transcript,
    call: &str,
    command: &str,
    exit_code: Option<i64>,
    output: &str,
) {
    // A process that was killed has -1 here: it has no code of its own.
    let exit_code = exit_code.filter(|code| *code >= 0);
    transcript.ran(call, command, exit_code, output);
    known(transcript, call);
}

/// The raw result of this call brings nothing more.
fn known(transcript: &mut Transcript, call: &str) {
    if let Some(effect) = transcript.scratch.effects.get_mut(call) {
        *effect = Effect::Known;
    }
}

/// Files that were written: `{path: {type, move_path}}`.
fn changed(transcript: &mut Transcript, call: &str, changes: Raw<'_>) {
    loose!(Change {
        kind = "type",
        move_path,
    });
    for (path, change) in loose::members(changes) {
        let change: Change<'_> = loose::object(Some(change)).unwrap_or_default();
        let path = absolute(&path, transcript.cwd.as_deref());
        match (loose::text(change.kind).as_deref(), loose::text(change.move_path)) {
            (_, Some(to)) if !to.is_empty() => {
                transcript.touch(&path, TouchKind::Deleted);
                let to = absolute(&to, transcript.cwd.as_deref());
                transcript.touch(&to, TouchKind::Added);
            }
            (Some("add"), _) => transcript.touch(&path, TouchKind::Added),
            (Some("delete"), _) => transcript.touch(&path, TouchKind::Deleted),
            _ => transcript.touch(&path, TouchKind::Changed),
        }
    }
    known(transcript, call);
}

/// A command as the model meant it: without the shell that Codex puts around it.
fn command(raw: Raw<'_>) -> String {
    if let Some(text) = loose::text(raw) {
        return match words(&text) {
            Some(words) => match script(&words) {
                Some(script) => script.to_owned(),
                None => text.into_owned(),
            },
            None => text.into_owned(),
        };
    }
    let words: Vec<_> =
        loose::array(raw).into_iter().filter_map(|word| loose::text(Some(word))).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string()).collect();
    match script(&words) {
        Some(script) => script.to_owned(),
        None => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// The script of `bash -lc SCRIPT`.
fn script(words: &[String]) -> Option<&str> {
    let [shell, option, script] = words else {
        return None;
    };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(shell, "bash" | "sh" | "zsh" | "dash");
    (is_shell && matches!(&**option, "-c" | "-lc")).then_some(script)
}

/// A word as one would type it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// The words of a shell command of at most three words; `None` for more, and for anything but
/// plain words and quotes.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' => return None,
            c => word.get_or_insert_default().push(c),
        }
        if words.len() > 2 {
            return None;
        }
    }
    words.extend(word);
    Some(words)
}

/// Whether a shell command is nothing but a patch, which Codex takes out of it.
fn is_patch(command: &str) -> bool {
    let command = command.trim_start();
    (command.starts_with("apply_patch") || command.starts_with("applypatch"))
        && command.contains("*** Begin Patch")
}

/// The files that a patch text names.
fn patch(text: &str, cwd: Option<&str>) -> Effect {
    let mut files: Vec<FileTouch> = Vec::new();
    for line in text.lines() {
        let heads = [
            ("*** Add File: ", TouchKind::Added),
            ("*** Update File: ", TouchKind::Changed),
            ("*** Delete File: ", TouchKind::Deleted),
        ];
        let head = heads
            .iter()
            .find_map(|(head, kind)| line.strip_prefix(head).map(|path| (path.trim(), *kind)));
        if let Some((path, kind)) = head {
            files.push(FileTouch { path: absolute(path, cwd), kind });
        } else if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(from) = files.last_mut()
        {
            from.kind = TouchKind::Deleted;
            files.push(FileTouch { path: absolute(to.trim(), cwd), kind: TouchKind::Added });
        }
    }
    Effect::Files(files)
}

/// A patch in one line: its files; anything else as it is.
fn patch_summary(effect: &Effect, otherwise: &str) -> String {
    match effect {
        Effect::Files(files) => {
            let paths: Vec<_> = files.iter().map(|file| &*file.path).collect();
            one_line(&paths.join(" "), LABEL_BYTES_MOST)
        }
        _ => one_line(otherwise, LABEL_BYTES_MOST),
    }
}

/// Items give absolute paths, patches relative ones: both become absolute, so that one file is one.
fn absolute(path: &str, cwd: Option<&str>) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => {
            let path = path.strip_prefix("./").unwrap_or(path);
            format!("{}/{path}", cwd.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// The steps of `update_plan`.
fn steps(raw: Raw<'_>) -> Vec<PlanItem> {
    loose!(Step { step, status });
    loose::array(raw)
        .into_iter()
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

/// The readings in `rate_limits`. A window is told by its length, never by its slot; other meters
/// than Codex's own have windows of the same lengths and are left out.
fn readings(raw: Raw<'_>, observed_at: Timestamp) -> Vec<Reading> {
    loose!(Limits { limit_id, primary, secondary });
    loose!(Window { used_percent, window_minutes, resets_at, resets_in_seconds });
    let limits: Limits<'_> = loose::object(raw).unwrap_or_default();
    if loose::text(limits.limit_id).is_some_and(|id| id != "codex") {
        return Vec::new();
    }
    [limits.primary, limits.secondary]
        .into_iter()
        .filter_map(|window| {
            let window: Window<'_> = loose::object(window)?;
            let resets_in = loose::integer(window.resets_in_seconds).filter(|wait| *wait >= 0);
            Some(Reading {
                source: "token_count".to_owned(),
                window_minutes: whole_window(loose::integer(window.window_minutes)?)?,
                used_permille: permille(loose::number(window.used_percent)?, 10.0)?,
                resets_at: loose::epoch(window.resets_at)
                    .or_else(|| resets_in.map(|wait| observed_at.plus_seconds(wait))),
                observed_at,
            })
        })
        .collect()
}

/// The service rounds: 299 is the five-hour window too.
fn whole_window(minutes: i64) -> Option<u32> {
    let known = [300, 10_080].into_iter().find(|known| (minutes - known).abs() <= 3);
    u32::try_from(known.unwrap_or(minutes)).ok().filter(|minutes| *minutes > 0)
}

#[derive(Clone, Copy, Debug)]
enum Class {
    Limit,
    Transient,
    Overload,
    Auth,
    Context,
}

/// `codex_error_info`, which decides where it is there and says more than "other".
const CODES: &[(&str, Class)] = &[
    ("usage_limit_exceeded", Class::Limit),
    ("rate_limit_exceeded", Class::Transient),
    ("server_overloaded", Class::Overload),
    ("flex_unavailable", Class::Overload),
    ("policy_capacity_unavailable", Class::Overload),
    ("unauthorized", Class::Auth),
    ("context_window_exceeded", Class::Context),
];

/// The HTTP status inside `codex_error_info`.
const STATUSES: &[(i64, Class)] = &[
    (401, Class::Auth),
    (403, Class::Auth),
    (429, Class::Transient),
    (503, Class::Overload),
    (529, Class::Overload),
];

/// How the messages of a failed turn begin, with straight apostrophes. Not read anywhere else.
const MESSAGES: &[(&str, Class)] = &[
    ("You've hit your usage limit", Class::Limit),
    ("Quota exceeded. Check your plan and billing details", Class::Limit),
    ("To use Codex with your ChatGPT plan, upgrade", Class::Limit),
    ("exceeded retry limit, last status: 401", Class::Auth),
    ("exceeded retry limit, last status: 403", Class::Auth),
    ("exceeded retry limit, last status: 429", Class::Transient),
    ("exceeded retry limit, last status: 503", Class::Overload),
    ("exceeded retry limit, last status: 529", Class::Overload),
    ("unexpected status 401", Class::Auth),
    ("unexpected status 403", Class::Auth),
    ("unexpected status 429", Class::Transient),
    ("unexpected status 503", Class::Overload),
    ("unexpected status 529", Class::Overload),
    ("Selected model is at capacity", Class::Overload),
    ("Missing environment variable: ", Class::Auth),
    ("Your access token could not be refreshed", Class::Auth),
    ("Codex ran out of room in the model's context window", Class::Context),
];

/// What a failed turn's error is. Its text names a reset time in the machine's local time without
/// a zone, so none is taken from it: a reading has it.
fn trouble(info: Raw<'_>, message: &str) -> Trouble {
    loose!(Status { http_status_code });
    let code = loose::text(info);
    let status = loose::members(info).into_iter().find_map(|(_, detail)| {
        loose::integer(loose::object::<Status<'_>>(Some(detail))?.http_status_code)
    });
    let plain = message.replace('’', "'");
    let class = CODES
        .iter()
        .find(|(known, _)| code.as_deref() == Some(*known))
        .map(|(_, class)| class)
        .or_else(|| {
            STATUSES.iter().find(|(known, _)| status == Some(*known)).map(|(_, class)| class)
        })
        .or_else(|| {
            MESSAGES
                .iter()
                .find(|(beginning, _)| plain.trim_start().starts_with(beginning))
                .map(|(_, class)| class)
        });
    let text = shorten(message, LABEL_BYTES_MOST);
    match class {
        Some(Class::Limit) => Trouble::Limit { resets_at: None, text },
        Some(Class::Transient) => Trouble::Transient(text),
        Some(Class::Overload) => Trouble::Overload(text),
        Some(Class::Auth) => Trouble::Auth(text),
        Some(Class::Context) => Trouble::Context(text),
        None => Trouble::Other(text),
    }
}

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
                .into_iter()
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

#[cfg(test)]
mod tests;
