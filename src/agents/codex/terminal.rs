//! Codex in a person's own terminal: the person's settings rule, our hooks come beside theirs.

use super::launch;
use crate::agents::loose::{self, loose};
use crate::agents::{Launch, Order, Seat, sentence};
use crate::host::files;
use crate::model::cut::shorten;
use crate::model::heard::Heard;
use crate::model::time::Timestamp;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// What a hook tells the model at the start; Codex cuts the middle out of 10,000 characters.
const CONTEXT_FILE: &str = "codex-context";
const CONTEXT_BYTES_MOST: usize = 9000;

/// Without `--no-daemon` an `app-server` outlives the session (tried on 0.171.0). No permission
/// flag. `developer_instructions` would put what is to be read into argv, for everybody to see.
pub(super) fn start(_: &Seat, order: &Order<'_>) -> Result<Launch> {
    let prompt = files::read_text(order.prompt_file, 1 << 20)?.unwrap_or_default();
    let context = shorten(&prompt, CONTEXT_BYTES_MOST);
    files::replace(&order.folder.join(CONTEXT_FILE), context.as_bytes(), 0o600)?;
    let mut argv = vec![order.program.into(), "--no-daemon".into()];
    launch::beside(order, &mut |words| argv.extend(words.iter().map(Into::into)));
    argv.push(sentence(order.shown_file).into());
    Ok(Launch { argv, ..Launch::default() })
}

/// The start with Codex's own id, by which its rollout file is found.
pub(super) fn keep(event: &str, payload: &[u8], _: Timestamp) -> Option<Heard> {
    loose!(Payload { session_id });
    let payload: Payload<'_> = loose::record(payload).ok().flatten()?;
    let id = loose::text(payload.session_id)?.into_owned();
    (event == "SessionStart").then_some(Heard::Started(id))
}

pub(super) fn print(event: &str, folder: &Path, _: &[u8]) -> Result<Option<Vec<u8>>> {
    let context = match event {
        "SessionStart" => files::read_text(&folder.join(CONTEXT_FILE), 64 * 1024)?,
        _ => None,
    };
    Ok(context.map(|context| {
        json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}})
            .to_string()
            .into_bytes()
    }))
}
