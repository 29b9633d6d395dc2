//! The calls that the model makes, and what their results say they did.

use super::plan::{listed_tasks, made_task, task_changed, task_status, tasks_are_plan, todos};
use super::{Block, Detail, Input, Item, Record, by_person, loose};
use crate::agents::loose::Raw;
use crate::model::cut::{one_line, shorten};
use crate::model::transcript::{
    COMMAND_BYTES_MOST, Effect, FileTouch, LABEL_BYTES_MOST, PLAN_ITEMS_MOST, PlanItem, PlanStatus,
    TouchKind, Transcript,
};

/// A call that the model made: what it will have done once its result is in.
pub(super) fn call(transcript: &mut Transcript, block: &Block<'_>, is_main: bool) {
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
            Effect::Command(shorten(&command, COMMAND_BYTES_MOST))
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
            Effect::Question { text: question(&tool, &input), by_id: Vec::new() }
        }
        "Skill" => {
            let name = loose::text(input.skill).or_else(|| loose::text(input.command));
            transcript.skill(&name.unwrap_or_default());
            Effect::Known
        }
        "Task" | "Agent" if is_main => Effect::Report,
        _ => Effect::Known,
    };
    transcript.opened(&id, &tool, &summary(&input), effect);
}

/// The result of a call.
pub(super) fn result(
    transcript: &mut Transcript,
    record: &Record<'_>,
    block: &Block<'_>,
    is_main: bool,
) {
    let Some(id) = loose::text(block.tool_use_id) else {
        return;
    };
    let is_error = loose::flag(block.is_error) == Some(true);
    let denial = loose::text(record.denial);
    let open = transcript.open_calls.get(&*id);
    let lists_tasks = open.is_none_or(|open| open.tool.starts_with("Task"));
    let tool = open.map(|open| format!("{}: {}", open.tool, open.summary));
    let effect = transcript.closed(&id);
    // What was only read is not read again here, however long it is.
    let matters = effect != Effect::Known || lists_tasks;
    let detail = record.result_detail.filter(|_| matters);
    let detail: Detail<'_> = loose::object(detail).unwrap_or_default();
    let content = loose::result(block.content.filter(|_| matters)).unwrap_or_default();
    let content = match without_reminders(&content) {
        "(Bash completed with no output)" => "",
        content => content,
    };
    match effect {
        Effect::Command(command) => {
            // Where nothing says that it never ran, it may have been broken off: what follows tells.
            if denial.as_deref() == Some("user-rejected") {
                if !never_ran(record) {
                    transcript.scratch.refused.push((id.into_owned(), command));
                }
            } else if denial.is_none() {
                ran(transcript, (&*id, &*command), &detail, content, block.is_error);
            }
        }
        Effect::Files(files) if !is_error => {
            wrote(transcript, &files, &detail, content);
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
        Effect::TaskChanged { id, text, status } if !is_error && is_meant(&detail) => {
            task_changed(transcript, &id, text, status);
        }
        Effect::Question { text, .. } => {
            transcript.ending = None;
            transcript.scratch.asked = is_error.then_some(text);
            if !is_error {
                answered(transcript, &detail);
            }
        }
        Effect::Report if !is_error => transcript.reported(content),
        Effect::Known if is_main && detail.tasks.is_some() && !is_error => {
            listed_tasks(transcript, detail.tasks);
        }
        _ => {}
    }
    if let (true, Some(denial), Some(tool)) = (is_main, denial, tool) {
        denied(transcript, record, &denial, &one_line(&tool, LABEL_BYTES_MOST));
    }
}

/// Whether a call that a person rejected had not begun (Claude Code 2.1.332; older ones do not say).
fn never_ran(record: &Record<'_>) -> bool {
    by_person(record) || loose::flag(record.denied_before_run) == Some(true)
}

/// A call was not let through.
fn denied(transcript: &mut Transcript, record: &Record<'_>, denial: &str, tool: &str) {
    let words = loose::text(record.feedback).unwrap_or_default();
    if denial == "user-rejected" && never_ran(record) {
        transcript.refused(tool, &words);
    }
    if !words.trim().is_empty() {
        transcript.ask(&words, loose::moment(record.timestamp));
    } else if transcript.scratch.asked.is_none()
        && (denial == "user-rejected" || denial.starts_with("automode-"))
    {
        transcript.scratch.asked = Some(tool.to_owned());
    }
}

/// A person answered questions, or approved a plan: `{"answers": {question: answer}}`, `{"plan"}`.
fn answered(transcript: &mut Transcript, detail: &Detail<'_>) {
    for (question, answer) in loose::members(detail.answers) {
        if let Some(answer) = loose::text(Some(answer)) {
            transcript.answered(&question, &answer);
        }
    }
    if let Some(plan) = loose::text(detail.plan) {
        transcript.say_once(&plan);
        transcript.decided(&format!("the user approved this plan: {plan}"));
    }
}

/// The files that a call wrote.
fn wrote(transcript: &mut Transcript, files: &[FileTouch], detail: &Detail<'_>, content: &str) {
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

/// Whether a task that we know was changed: a forked session has lost its list, and is told so.
fn is_meant(detail: &Detail<'_>) -> bool {
    loose::flag(detail.success) != Some(false) || loose::is(detail.error, "Task not found")
}

/// A command ran, or Claude itself said why it did not.
fn ran(
    transcript: &mut Transcript,
    (call, command): (&str, &str),
    detail: &Detail<'_>,
    content: &str,
    is_error: Raw<'_>,
) {
    if loose::flag(is_error) != Some(true) || !content.starts_with("<tool_use_error>") {
        let (exit_code, output) = outcome(detail, content, is_error);
        transcript.ran(call, command, exit_code, output);
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

/// What a person is asked, in one line.
pub(super) fn question(tool: &str, input: &Input<'_>) -> String {
    if tool == "ExitPlanMode" {
        return "approve the plan?".to_owned();
    }
    let questions: Vec<_> = loose::array(input.questions)
        .filter_map(|item| loose::text(loose::object::<Item<'_>>(Some(item))?.question))
        .collect();
    one_line(&questions.join(" "), LABEL_BYTES_MOST)
}

/// A call in one line: the first of these that it has.
pub(super) fn summary(input: &Input<'_>) -> String {
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
