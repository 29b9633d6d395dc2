//! The contract with its lists whole again, from the attachments that hold what the core could not.

use super::Attachments;
use crate::model::contract::{Contract, FileEntry};
use crate::model::digest::{DIFF, FACTS, MANIFEST, PROMPT};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A contract, and the diff of what was in flight.
pub(super) struct Whole {
    pub(super) contract: Contract,
    pub(super) diff: String,
}

/// One line of the attachment `facts.jsonl`.
#[derive(Deserialize)]
struct Fact {
    list: String,
    entry: Value,
}

/// An attachment that is absent or cannot be read leaves what the core says.
pub(super) fn whole(core: &Contract, attachments: &Attachments) -> Whole {
    let mut contract = core.clone();
    if let Some(prompt) = text(attachments, PROMPT) {
        contract.initial_prompt.text = prompt.to_owned();
    }
    if let Some(files) = text(attachments, MANIFEST).and_then(all_lines::<FileEntry>) {
        contract.file_manifest.files = files;
    }
    if let Some(facts) = text(attachments, FACTS).and_then(all_lines::<Fact>) {
        restore(&mut contract.do_not_redo, &facts, "doNotRedo");
        restore(&mut contract.constraints, &facts, "constraints");
        restore(&mut contract.decisions, &facts, "decisions");
        restore(&mut contract.acceptance_assertions, &facts, "acceptanceAssertions");
        restore(&mut contract.done, &facts, "done");
        restore(&mut contract.later_prompts, &facts, "laterPrompts");
        restore(&mut contract.last_messages, &facts, "lastMessages");
        restore(&mut contract.plan, &facts, "plan");
        restore(&mut contract.tasks_remaining, &facts, "tasksRemaining");
        restore(&mut contract.open_calls, &facts, "openCalls");
        restore(&mut contract.not_captured, &facts, "notCaptured");
        let mut next = Vec::new();
        restore(&mut next, &facts, "nextAction");
        contract.next_action = next.pop().or(contract.next_action);
    }
    let diff = text(attachments, DIFF).unwrap_or("").to_owned();
    Whole { contract, diff }
}

fn text<'a>(attachments: &'a Attachments, name: &str) -> Option<&'a str> {
    attachments.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// Every line read, or nothing.
fn all_lines<T: DeserializeOwned>(lines: &str) -> Option<Vec<T>> {
    lines.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

/// Puts the whole list in place of the core's part of it.
fn restore<T: DeserializeOwned>(list: &mut Vec<T>, facts: &[Fact], name: &str) {
    let entries = facts.iter().filter(|fact| fact.list == name);
    let entries: Option<Vec<T>> = entries.map(|fact| T::deserialize(&fact.entry).ok()).collect();
    if let Some(entries) = entries {
        *list = entries;
    }
}
