//! What the next agent is told, rendered from a verified contract and from nothing else.
//!
//! The words stand in `templates/envelope.md`; the choice of what is shown is made here. The same
//! contract, attachments and frame give the same bytes for ever (`tests/vectors/envelope/`).
//! Whatever others wrote is fenced or flattened to one line, and never stands outside.

mod limits;
mod sections;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod whole;

use super::contract::Contract;
use super::cut::shorten;
use super::transcript::TEXT_BYTES_MOST;
use std::collections::BTreeMap;

/// How the first line of every envelope begins; a prompt that begins so is ours.
pub const ENVELOPE_MARK: &str = "<!-- git relay contract ";
/// How the last line of every envelope begins; without it the text did not arrive whole.
pub const END_MARK: &str = "<!-- end of relay contract ";
/// The line after the task in the prompt of leg 1; a prompt that has it is ours.
pub const FIRST_MARK: &str = "<!-- git relay: how this task is kept -->";
/// The fixed sentence an interactive agent is started with: argv never holds any content.
pub const OPENING: &str =
    "Read the file .relay/envelope.md in this folder and carry on with the task it describes.";

/// How long an envelope may be, if nobody says otherwise.
pub const TOKENS_MOST: usize = 8000;
/// No smaller budget is kept: goal, open tasks, next action and do-not-redo need it.
pub const TOKENS_LEAST: usize = CONTEXT_BYTES_MOST / BYTES_PER_TOKEN;
/// The estimate that budgets rest on.
pub const BYTES_PER_TOKEN: usize = 4;
/// What a hook may add to an agent's context: Claude and Codex cut at about 10,000 characters.
pub const CONTEXT_BYTES_MOST: usize = 9000;

/// The attachments of a contract, verified, by name.
pub type Attachments = BTreeMap<String, Vec<u8>>;

/// The envelope, within `token_budget` (but see [`TOKENS_LEAST`]).
///
/// The contract must have been verified, and the attachments against the contract's digests.
/// `signer_fingerprint` is that of the key that was verified; `record_command` is how the agent's
/// shell calls this program, quoted for it. Both are part of the bytes.
pub fn render(
    contract: &Contract,
    attachments: &Attachments,
    signer_fingerprint: &str,
    record_command: &str,
    token_budget: usize,
) -> String {
    let bytes_most = token_budget.max(TOKENS_LEAST).saturating_mul(BYTES_PER_TOKEN);
    let whole = whole::whole(contract, attachments);
    let frame = Frame { signer_fingerprint, record_command };
    let mut limits = limits::ROOMY;
    let mut steps = limits::STEPS.iter();
    loop {
        let text = sections::all(&whole, &limits, frame);
        // The last step fits the least budget, unless the frame itself is absurd.
        let step = if text.len() <= bytes_most { None } else { steps.next() };
        let Some(step) = step else { return text };
        step(&mut limits);
    }
}

/// What the envelope says beyond the contract.
#[derive(Clone, Copy)]
struct Frame<'a> {
    signer_fingerprint: &'a str,
    record_command: &'a str,
}

/// The prompt of leg 1: the task as given, then how the session is kept.
pub fn first_prompt(task: &str, session: &str, record_command: &str) -> String {
    format!("{}\n\n{}\n", task.trim_end(), about(session, record_command))
}

fn about(session: &str, record_command: &str) -> String {
    template::fill(
        "first",
        &[("mark", FIRST_MARK), ("session", session), ("record", record_command)],
    )
}

/// Whether a prompt in a transcript is the task or words of ours, and so nothing the user said
/// later.
pub fn is_ours(prompt: &str, task: &str) -> bool {
    let prompt = prompt.trim();
    prompt.starts_with(ENVELOPE_MARK)
        || prompt.starts_with(OPENING)
        || prompt.contains(FIRST_MARK)
        || prompt == task.trim()
        || prompt == shorten(task, TEXT_BYTES_MOST).trim()
}
