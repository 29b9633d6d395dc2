//! `git relay detect ID --show`: all that is known of one session.

use super::{open_repository, value};
use crate::agents::store::{Found, Running};
use crate::git::Repository;
use crate::host::clock;
use crate::model::transcript::{Ending, PlanStatus, Prompt, Transcript, Trouble};
use crate::model::{foreign, screen};
use crate::relay::detect::{self, Ours, fit};
use crate::ui::out;
use crate::ui::progress::ago;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Of a long text.
const CHARS_MOST: usize = 4000;
const LINE_CHARS_MOST: usize = 400;
/// The latest, of each kind.
const ITEMS_MOST: usize = 20;
const FILES_MOST: usize = 200;

pub(super) fn run(found: Found, running: &[Running], json: bool) -> Result<u8> {
    let transcript = found.read()?;
    let files = files(&found, &transcript);
    let row = detect::row(found, running, &Ours::default(), clock::now());
    let ids = [row.found.id.clone()];
    if json {
        let value = json!({"sessions": [value(&row, None)], "session": known(&transcript, &files)});
        out::json("detected", &value)?;
        return Ok(0);
    }
    super::print(std::slice::from_ref(&row), &ids, &mut None)?;
    print(&transcript, &files)?;
    Ok(0)
}

/// What a session wrote, and what git says of it now.
struct File {
    path: String,
    git: &'static str,
}

/// Where the files are now that the session wrote: of those in a worktree of this repository, as
/// git says. Of another one git is not asked: it runs the filters that are configured there, and
/// it was the transcript that named it.
fn files(found: &Found, transcript: &Transcript) -> Vec<File> {
    let cwd = found.cwd.clone().unwrap_or_default();
    let there = Repository::open(&cwd).ok();
    let here = open_repository().ok();
    let is_here = |repo: &Repository| {
        here.as_ref().is_some_and(|here| here.common_dir() == repo.common_dir())
    };
    let repo = there.as_ref().filter(|repo| is_here(repo));
    let below = |path: &Path| -> Option<PathBuf> {
        let folder = path.parent()?;
        let name = path.file_name()?;
        let real = folder.ancestors().find_map(|above| {
            Some(above.canonicalize().ok()?.join(folder.strip_prefix(above).ok()?))
        })?;
        Some(real.join(name).strip_prefix(repo?.work_tree()).ok()?.to_owned())
    };
    let touched: Vec<(PathBuf, Option<PathBuf>)> = transcript
        .files
        .iter()
        .rev()
        .take(FILES_MOST)
        .map(|touch| cwd.join(&touch.path))
        .map(|path| (path.clone(), below(&path)))
        .collect();
    let paths: BTreeSet<PathBuf> = touched.iter().filter_map(|(_, below)| below.clone()).collect();
    let says = repo.and_then(|repo| repo.standings(&paths).ok());
    let git = |below: Option<&PathBuf>| match (below, &says) {
        (Some(path), Some(says)) => says.get(path).map_or("not known", |standing| standing.word()),
        (None, Some(_)) => "not in this repository",
        (_, None) if repo.is_some() => "not known",
        (_, None) if there.is_some() => "not known: git is asked in its own repository only",
        (_, None) => "not known: no repository is there now",
    };
    touched
        .iter()
        .map(|(path, below)| File {
            path: fit(&below.as_ref().unwrap_or(path).to_string_lossy(), LINE_CHARS_MOST),
            git: git(below.as_ref()),
        })
        .collect()
}

fn print(transcript: &Transcript, files: &[File]) -> Result<()> {
    let mut prompts = transcript.prompts.iter();
    if let Some(first) = prompts.next() {
        section("asked")?;
        paragraph(&first.text)?;
    }
    for Prompt { text, at } in latest(prompts.as_slice()) {
        section(&format!("then asked{}", at.map_or(String::new(), |at| format!(", {}", ago(at)))))?;
        paragraph(text)?;
    }
    if let Some(summary) = &transcript.summary {
        section("summary of what was before, by the agent")?;
        paragraph(summary)?;
    }
    plan(transcript)?;
    decisions(transcript)?;
    commands(transcript)?;
    if !files.is_empty() {
        section("files, and what git says of them now")?;
        let rows: Vec<_> = files
            .iter()
            .map(|file| vec!["   ".to_owned(), file.git.to_owned(), file.path.clone()])
            .collect();
        out::data(out::table(&rows).as_bytes())?;
    }
    if let Some((last, before)) = transcript.messages.split_last() {
        section("said last")?;
        for message in before.iter().rev().take(2).rev() {
            item(message)?;
        }
        paragraph(last)?;
    }
    section("its last turn")?;
    item(&ending(transcript))?;
    for warning in &transcript.warnings {
        item(&format!("not all could be read: {warning}"))?;
    }
    Ok(())
}

fn plan(transcript: &Transcript) -> Result<()> {
    if transcript.plan.is_empty() {
        return Ok(());
    }
    let left = transcript.plan.iter().filter(|item| item.is_open()).count();
    section(&format!(
        "plan, as the agent stated it last: {left} of {} left",
        transcript.plan.len()
    ))?;
    for step in &transcript.plan {
        let mark = match step.status {
            PlanStatus::Completed => "[x]",
            PlanStatus::InProgress => "[>]",
            PlanStatus::Pending => "[ ]",
        };
        item(&format!("{mark} {}", step.text))?;
    }
    Ok(())
}

fn decisions(transcript: &Transcript) -> Result<()> {
    if !transcript.decisions.is_empty() || !transcript.refusals.is_empty() {
        section("decided")?;
    }
    let all = [latest(&transcript.decisions), latest(&transcript.refusals)];
    all.into_iter().flatten().try_for_each(|decision| item(decision))
}

fn commands(transcript: &Transcript) -> Result<()> {
    if !transcript.commands.is_empty() {
        section(&format!("commands, of {} the last", transcript.commands.len()))?;
    }
    for run in latest(&transcript.commands) {
        let code = run.exit_code.map_or("exit ?".to_owned(), |code| format!("exit {code}"));
        item(&format!("{code:<8} {}", run.command))?;
        if run.exit_code != Some(0)
            && let Some(last) =
                foreign::tail(&run.tail).text.lines().rev().find(|line| !line.trim().is_empty())
        {
            item(&format!("         {last}"))?;
        }
    }
    if !transcript.open_calls.is_empty() {
        section("called without a result: how these went is not known")?;
    }
    let open: BTreeMap<_, _> =
        transcript.open_calls.values().map(|call| ((&call.tool, &call.summary), ())).collect();
    for (tool, summary) in open.into_keys().take(ITEMS_MOST) {
        item(&format!("{tool} {summary}"))?;
    }
    Ok(())
}

fn latest<T>(all: &[T]) -> &[T] {
    &all[all.len().saturating_sub(ITEMS_MOST)..]
}

fn section(words: &str) -> Result<()> {
    out::data(b"\n")?;
    out::line(words)
}

fn item(words: &str) -> Result<()> {
    out::line(format!("    {}", screen::first_chars(&text(words), LINE_CHARS_MOST)))
}

/// A foreign text without secrets and without anything that moves a cursor.
fn text(words: &str) -> String {
    foreign::quoted(words).text
}

/// A foreign text, line by line and indented, so that none of it can be taken for ours.
fn paragraph(words: &str) -> Result<()> {
    let text = screen::first_chars(&text(words), CHARS_MOST);
    text.lines().try_for_each(|line| out::line(format!("    {line}")))
}

fn ending(transcript: &Transcript) -> String {
    match &transcript.ending {
        None => "is under way, or was broken off".to_owned(),
        Some(Ending::TurnEnded) => "ended: the agent said that it is done".to_owned(),
        Some(Ending::StoppedByHook) => "was stopped by a hook".to_owned(),
        Some(Ending::Interrupted) => "was interrupted".to_owned(),
        Some(Ending::Asks(question)) => format!("asks: {question}"),
        Some(Ending::Trouble(trouble)) => match trouble {
            Trouble::Limit { text, .. } => format!("hit the usage limit: {text}"),
            Trouble::Transient(text) => format!("was turned away for the moment: {text}"),
            Trouble::Overload(text) => format!("found the provider overloaded: {text}"),
            Trouble::Auth(text) => format!("was not let in: {text}"),
            Trouble::Context(text) => format!("filled its context: {text}"),
            Trouble::Other(text) => format!("failed: {text}"),
        },
    }
}

fn texts(all: &[String]) -> Vec<String> {
    all.iter().map(|words| text(words)).collect()
}

/// The same for programs.
fn known(transcript: &Transcript, files: &[File]) -> Value {
    let prompts: Vec<_> = transcript
        .prompts
        .iter()
        .map(|prompt| json!({"text": text(&prompt.text), "at": prompt.at}))
        .collect();
    let plan: Vec<_> = transcript
        .plan
        .iter()
        .map(|item| json!({"text": fit(&item.text, LINE_CHARS_MOST), "status": item.status}))
        .collect();
    let commands: Vec<_> = transcript
        .commands
        .iter()
        .map(|run| {
            json!({"command": text(&run.command), "exitCode": run.exit_code,
                "tail": foreign::tail(&run.tail).text})
        })
        .collect();
    let open: Vec<_> = transcript
        .open_calls
        .values()
        .map(|call| {
            json!({"tool": fit(&call.tool, LINE_CHARS_MOST),
            "summary": fit(&call.summary, LINE_CHARS_MOST)})
        })
        .collect();
    let files: Vec<_> =
        files.iter().map(|file| json!({"path": file.path, "git": file.git})).collect();
    json!({
        "prompts": prompts, "plan": plan, "decisions": texts(&transcript.decisions),
        "refusals": texts(&transcript.refusals), "commands": commands,
        "openCalls": open,
        "files": files, "messages": texts(&transcript.messages),
        "summary": transcript.summary.as_deref().map(text), "ending": fit(&ending(transcript), LINE_CHARS_MOST),
        "warnings": transcript.warnings,
    })
}
