//! The calls that the model makes, and what their outputs say they did.

use super::shell::{absolute, command, is_patch, patch, patch_summary};
use super::{Arguments, loose, steps};
use crate::agents::loose::Raw;
use crate::model::cut::{one_line, shorten};
use crate::model::transcript::{
    COMMAND_BYTES_MOST, Effect, Ending, LABEL_BYTES_MOST, TouchKind, Transcript,
};
use std::borrow::Cow;

/// A call that the model made: what it will have done once its result is in.
pub(super) fn called(
    transcript: &mut Transcript,
    call: &str,
    tool: &str,
    arguments: &Arguments<'_>,
) {
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
                Effect::Command(shorten(&command, COMMAND_BYTES_MOST))
            }
        }
        "apply_patch" => patch(&loose::text(arguments.input).unwrap_or_default(), cwd.as_deref()),
        "update_plan" => {
            let before = std::mem::take(&mut transcript.plan);
            transcript.plan_is(steps(arguments.plan));
            // Why the plan is this one now.
            transcript.decided(&loose::text(arguments.explanation).unwrap_or_default());
            Effect::PlanBefore(before)
        }
        "request_user_input" => {
            let asked: Vec<Question<'_>> = loose::array(arguments.questions)
                .filter_map(|item| loose::object(Some(item)))
                .collect();
            let all: Vec<_> = asked.iter().filter_map(|it| loose::text(it.question)).collect();
            let text = one_line(&all.join(" "), LABEL_BYTES_MOST);
            let by_id = asked.iter().filter_map(Question::by_id).collect();
            summary = Cow::Owned(text.clone());
            transcript.ending = Some(Ending::Asks(text.clone()));
            Effect::Question { text, by_id }
        }
        _ => Effect::Known,
    };
    if summary.is_empty() {
        summary = Cow::Owned(patch_summary(&effect, &command));
    }
    transcript.opened(call, tool, &summary, effect);
}

/// The output of a call.
pub(super) fn returned(transcript: &mut Transcript, call: &str, output: &str) {
    let outcome = Outcome::read(output);
    if output.trim_end().ends_with(" rejected by user")
        && outcome.is_refused
        && let Some(open) = transcript.open_calls.get(call)
    {
        let call = format!("{}: {}", open.tool, open.summary);
        transcript.refused(&call, "");
    }
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
        Effect::Question { by_id, .. } => {
            transcript.ending = None;
            answered(transcript, &by_id, output);
        }
        _ => {}
    }
}

loose!(Question { id, question, is_secret = "isSecret" | "is_secret" });

impl Question<'_> {
    /// Id and question; the answer to a secret one is not looked at.
    fn by_id(&self) -> Option<(String, String)> {
        if loose::flag(self.is_secret) == Some(true) {
            return None;
        }
        Some((loose::text(self.id)?.into_owned(), loose::text(self.question)?.into_owned()))
    }
}

/// What a person answered: `{"answers": {id: {"answers": [text]}}}` (Codex 0.171).
fn answered(transcript: &mut Transcript, by_id: &[(String, String)], output: &str) {
    loose!(Answers { answers });
    let given: Answers<'_> = loose::embedded(output).unwrap_or_default();
    for (id, answer) in loose::members(given.answers) {
        let answer: Answers<'_> = loose::object(Some(answer)).unwrap_or_default();
        let texts: Vec<_> =
            loose::array(answer.answers).filter_map(|text| loose::text(Some(text))).collect();
        if let Some((_, question)) = by_id.iter().find(|(known, _)| *known == id) {
            transcript.answered(question, &texts.join(", "));
        }
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

/// A command that ran. Its raw output may still come, or have come.
pub(super) fn executed(
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
pub(super) fn known(transcript: &mut Transcript, call: &str) {
    if let Some(effect) = transcript.scratch.effects.get_mut(call) {
        *effect = Effect::Known;
    }
}

/// Files that were written: `{path: {type, move_path}}`.
pub(super) fn changed(transcript: &mut Transcript, call: &str, changes: Raw<'_>) {
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
