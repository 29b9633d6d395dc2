//! The readable lines of a contract: at most [`LINES_MOST`], each on its own.
//!
//! [`LINES_MOST`]: super::LINES_MOST

use super::LINE_CHARS_MOST;
use crate::model::contract::{Contract, Statement};
use crate::model::screen::{first_chars, one_line};
use crate::model::transcript::PlanStatus;

const DO_NOT_REDO_MOST: usize = 3;
const DECISIONS_MOST: usize = 2;
/// Hex digits of a commit that a person needs.
const SHORT_OID: usize = 12;

pub(super) fn contract(contract: &Contract) -> Vec<String> {
    let mut texts = vec![who(contract), format!("goal: {}", contract.task_goal.text)];
    texts.extend(progress(contract));
    texts.extend(contract.next_action.iter().map(|next| format!("next action: {}", next.text)));
    texts.extend(newest("do not redo", &contract.do_not_redo, DO_NOT_REDO_MOST));
    texts.extend(newest("decision", &contract.decisions, DECISIONS_MOST));
    texts.push(files(contract));
    let snapshot = short(contract.snapshot_commit.as_str());
    texts.push(format!("branch {}, snapshot {snapshot}", contract.branch));
    let reason = contract.reason.reason.word();
    texts.push(match &contract.reason.text {
        Some(text) => format!("reason: {reason}: {text}"),
        None => format!("reason: {reason}"),
    });
    numbered(contract.contract_id.as_str(), &texts)
}

/// Each text on one line after an id and its number.
pub(super) fn numbered(id: &str, texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let line = format!("{id} {:02} {}", at + 1, one_line(text));
            first_chars(&line, LINE_CHARS_MOST)
        })
        .collect()
}

pub(super) fn short(oid: &str) -> &str {
    &oid[..SHORT_OID.min(oid.len())]
}

fn who(contract: &Contract) -> String {
    let from = &contract.from;
    let forced = if from.forced { ", forced" } else { "" };
    let next: Vec<&str> = contract.candidates.iter().map(|agent| agent.as_str()).collect();
    let next = if next.is_empty() { "nobody".to_owned() } else { next.join(", ") };
    format!("{}, leg {} ended: {}{forced}; next: {next}", from.agent, contract.leg, from.outcome)
}

fn progress(contract: &Contract) -> Option<String> {
    let plan = &contract.plan;
    let finished = plan.iter().filter(|item| item.status == PlanStatus::Completed).count();
    match (plan.len(), contract.tasks_remaining.len()) {
        (0, 0) if contract.done.is_empty() => None,
        (0, 0) => Some(format!("done: {}", contract.done.len())),
        (0, open) => Some(format!("open tasks: {open}; first: {}", contract.tasks_remaining[0])),
        (all, 0) => Some(format!("plan: {finished} of {all} done")),
        (all, _) => {
            Some(format!("plan: {finished} of {all} done; open: {}", contract.tasks_remaining[0]))
        }
    }
}

/// The newest entries; the last line says how many there are besides.
fn newest(name: &str, said: &[Statement], most: usize) -> Vec<String> {
    let from = said.len().saturating_sub(most);
    let mut lines: Vec<String> =
        said[from..].iter().map(|said| format!("{name}: {}", said.text)).collect();
    if let (1.., Some(first)) = (from, lines.first_mut()) {
        *first = format!("{name} (and {from} before it): {}", said[from].text);
    }
    lines
}

/// The core lists files that no commit holds first: once it lists another, it has all of them.
fn files(contract: &Contract) -> String {
    let manifest = &contract.file_manifest;
    let listed = manifest.files.len();
    let uncommitted = manifest.files.iter().filter(|file| !file.committed).count();
    let all_known = listed as u64 == manifest.total || uncommitted < listed;
    match (uncommitted, all_known) {
        (0, false) => format!("files: {} changed", manifest.total),
        (n, true) => {
            format!("files: {} changed, {n} in no commit but the snapshot", manifest.total)
        }
        (n, false) => {
            format!("files: {} changed, at least {n} in no commit but the snapshot", manifest.total)
        }
    }
}
