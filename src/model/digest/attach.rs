//! The bulk that does not go into the core: whole lists and texts, bound by digest.

use super::clean::Cleaner;
use crate::model::canon::encode;
use crate::model::contract::{Attachment, Contract, PlanEntry, Statement};
use crate::model::names::Digest;
use crate::model::session::NotCaptured;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Every changed file, one JSON object a line; always there.
pub const MANIFEST: &str = "manifest.jsonl";
/// Every command in order, one JSON object a line.
pub const COMMANDS: &str = "commands.jsonl";
/// What changed since the last safe point, as a diff.
pub const DIFF: &str = "in-flight.diff";
/// The task as given, where the core holds it shortened.
pub const PROMPT: &str = "prompt.txt";
/// Every statement, one JSON object a line, where the core could not hold them all whole.
pub const FACTS: &str = "facts.jsonl";

/// A diff above this is cut at a line, and `notCaptured` says so: the snapshot has it all.
const DIFF_BYTES_MOST: usize = 4 * 1024 * 1024;

/// An attachment that may go with the contract.
pub(super) struct Made {
    pub(super) entry: Attachment,
    pub(super) bytes: Vec<u8>,
}

/// The diff, cleaned as a whole before it is cut: it is there to be read, not to be applied, and
/// an escape sequence in it could part a secret until somebody shows it.
pub(super) fn diff(
    bytes: &[u8],
    clean: &mut Cleaner,
    not_captured: &mut Vec<NotCaptured>,
) -> Vec<u8> {
    let mut text = clean.text(&String::from_utf8_lossy(bytes));
    if text.len() > DIFF_BYTES_MOST {
        let mut end = DIFF_BYTES_MOST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        end = text[..end].rfind('\n').map_or(end, |at| at + 1);
        let why = format!("cut after {end} of {} bytes; the snapshot holds all of it", text.len());
        not_captured.push(NotCaptured { what: DIFF.to_owned(), why });
        text.truncate(end);
    }
    text.into_bytes()
}

/// Every attachment that could be needed, in the order of the contract's list.
pub(super) fn all(whole: &Contract, diff: Vec<u8>) -> Vec<Made> {
    let files = whole.file_manifest.files.iter().map(line);
    let commands = whole.commands_run.iter().map(line);
    let prompt = whole.initial_prompt.text.clone().into_bytes();
    [
        (MANIFEST, lines(files)),
        (COMMANDS, lines(commands)),
        (DIFF, diff),
        (PROMPT, prompt),
        (FACTS, facts(whole)),
    ]
    .into_iter()
    .filter(|(name, bytes)| *name == MANIFEST || !bytes.is_empty())
    .map(|(name, bytes)| made(name, bytes))
    .collect()
}

fn made(name: &str, bytes: Vec<u8>) -> Made {
    let newlines = bytes.iter().filter(|b| **b == b'\n').count();
    let unended = usize::from(bytes.last().is_some_and(|last| *last != b'\n'));
    let entry = Attachment {
        name: name.to_owned(),
        count: (newlines + unended) as u64,
        size_bytes: bytes.len() as u64,
        sha256: digest(&bytes),
    };
    Made { entry, bytes }
}

/// The SHA-256 of `bytes` in lower-case hex.
pub fn digest(bytes: &[u8]) -> Digest {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        for nibble in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is a hex digit"));
        }
    }
    Digest::new(hex).expect("64 hex digits are a digest")
}

/// One line of a `.jsonl`: canonical JSON, which is UTF-8 on one line.
fn line<T: Serialize>(entry: &T) -> String {
    let bytes = encode(entry).expect("our records have a canonical form");
    String::from_utf8(bytes).expect("canonical JSON is UTF-8")
}

fn lines(lines: impl Iterator<Item = String>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// A statement with the list it is from.
#[derive(Serialize)]
struct Fact<'a, T> {
    list: &'static str,
    entry: &'a T,
}

fn facts(whole: &Contract) -> Vec<u8> {
    let statements: [(&'static str, &[Statement]); 7] = [
        ("doNotRedo", &whole.do_not_redo),
        ("constraints", &whole.constraints),
        ("decisions", &whole.decisions),
        ("acceptanceAssertions", &whole.acceptance_assertions),
        ("done", &whole.done),
        ("laterPrompts", &whole.later_prompts),
        ("lastMessages", &whole.last_messages),
    ];
    let plan = whole.plan.iter().map(|entry: &PlanEntry| line(&Fact { list: "plan", entry }));
    let next = whole.next_action.iter().map(|entry| line(&Fact { list: "nextAction", entry }));
    let tasks =
        whole.tasks_remaining.iter().map(|entry| line(&Fact { list: "tasksRemaining", entry }));
    let statements = statements
        .into_iter()
        .flat_map(|(list, entries)| entries.iter().map(move |entry| line(&Fact { list, entry })));
    let calls = whole.open_calls.iter().map(|entry| line(&Fact { list: "openCalls", entry }));
    let staged = whole.staged.iter().map(|entry| line(&Fact { list: "staged", entry }));
    let skills =
        whole.skills_loaded.iter().map(|entry| line(&Fact { list: "skillsLoaded", entry }));
    let missing = whole.not_captured.iter().map(|entry| line(&Fact { list: "notCaptured", entry }));
    lines(
        plan.chain(tasks)
            .chain(next)
            .chain(statements)
            .chain(calls)
            .chain(staged)
            .chain(skills)
            .chain(missing),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_lower_case_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b"").as_str(), empty);
    }

    #[test]
    fn a_last_line_without_an_end_counts() {
        assert_eq!(made("x", b"a\nb".to_vec()).entry.count, 2);
        assert_eq!(made("x", b"a\nb\n".to_vec()).entry.count, 2);
        assert_eq!(made("x", Vec::new()).entry.count, 0);
    }
}
