//! The last note: an agent that is to pause and whose window is not used up is asked, once, by its
//! own hook, to state what the next one must know. It answers through `git relay record`, whose
//! inbox every sandbox leaves open, so that the facts are *declared* and never prose that somebody
//! has to understand. It costs one turn of its model and no deadline of its own.
//!
//! Driver and hook talk by files in the session's private folder, since a hook opens nothing else:
//! the text to ask with lies in [`NOTE_FILE`] until a hook takes it, which is the proof that it is
//! asked once; [`TOLD_FILE`] says that the agent was told, with the note or without.

use super::{Driver, hooks};
use crate::agents::Pause;
use crate::host::files;
use crate::model::session::{Breach, BreachReason, PermissionLevel};
use crate::model::shell::shell_word;
use anyhow::Result;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub const NOTE_FILE: &str = "note";
pub const TOLD_FILE: &str = "told";
/// From here on a turn may be the one that is refused.
const USED_PERMILLE_MOST: u32 = 990;
const TEXT_BYTES_MOST: u64 = 4096;

impl Driver<'_> {
    /// Lays out the text that a hook of the agent is to ask with, if it is to be asked at all.
    pub(super) fn wish_for_note(&self, style: Pause) -> Result<()> {
        let session = self.session();
        let seat_asks = !matches!(style, Pause::Interrupt);
        // Asked already, by a driver that was killed since.
        if self.has_told() || !seat_asks || session.permission_level < PermissionLevel::Edit {
            return Ok(());
        }
        if !session.breach.as_ref().is_some_and(has_a_turn_left) {
            return Ok(());
        }
        let relay = hooks::program_link(self.hub.repo.common_dir());
        let text = format!(
            "git relay is about to hand this task over to another agent, and this is your last \
             turn. Tell the next agent what it must know, in one shell command and nothing else:\n\
             {} record --done 'what is finished' --next 'the one next action' \
             --do-not-redo 'what must not be done again' --decision 'what was decided, and why'\n\
             Give a flag as often as you need it, and leave out what does not apply. Then end your \
             turn: do not start anything new.",
            shell_word(&relay)
        );
        files::replace(&self.note_path(NOTE_FILE), text.as_bytes(), 0o600)
    }

    /// Whether a hook has told the agent to stop: what ends its turn then is not the task's end.
    pub(super) fn has_told(&self) -> bool {
        self.note_path(TOLD_FILE).exists()
    }

    pub(super) fn forget_note(&self) -> Result<()> {
        files::remove(&self.note_path(NOTE_FILE))?;
        files::remove(&self.note_path(TOLD_FILE))
    }

    fn note_path(&self, name: &str) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(name)
    }
}

/// Whether the window leaves room for one more turn, as far as is known.
fn has_a_turn_left(breach: &Breach) -> bool {
    match breach.reason {
        BreachReason::Request => true,
        BreachReason::Threshold => {
            breach.reading.as_ref().is_some_and(|known| known.used_permille < USED_PERMILLE_MOST)
        }
        BreachReason::Limit | BreachReason::Failed | BreachReason::Unknown => false,
    }
}

/// What a hook finds when a pause is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The agent is to be asked, by this hook and by no other one.
    Ask(String),
    /// The call is the answer to that: it may pass.
    Answer,
    /// The agent is to stop here.
    Stop,
}

/// Says, in the hook of the agent's boundary, what is to be done there, and leaves the mark that
/// the agent was told. `payload` is what the agent gave its hook.
pub fn turn(folder: &Path, payload: &[u8]) -> Result<Turn> {
    let (note, told) = (folder.join(NOTE_FILE), folder.join(TOLD_FILE));
    let text = files::read_text(&note, TEXT_BYTES_MOST)?;
    // Of two hooks at the same moment one wins the name.
    if let Some(text) = text
        && fs::rename(&note, &told).is_ok()
    {
        return Ok(Turn::Ask(text));
    }
    if told.exists() && is_record(payload) {
        return Ok(Turn::Answer);
    }
    drop(files::open_append(&told)?);
    Ok(Turn::Stop)
}

/// Whether the tool call in a hook's payload is `git relay record`, as agents are told to call it.
/// No guard: the agent's sandbox is that.
fn is_record(payload: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(payload).unwrap_or_default();
    let words = match &value["tool_input"]["command"] {
        Value::String(line) => line.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => return false,
    };
    words.split("relay").skip(1).any(|rest| {
        rest.trim_start_matches(['\'', '"']).split_whitespace().next() == Some("record")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(command: &str) -> Vec<u8> {
        serde_json::json!({"tool_input": {"command": command}}).to_string().into_bytes()
    }

    #[test]
    fn one_hook_asks_the_answer_passes_and_everything_else_stops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(NOTE_FILE), "please").unwrap();
        assert_eq!(turn(path, &call("make")).unwrap(), Turn::Ask("please".into()));
        for line in ["/r/.git/relay/bin/git-relay record --done x", "git relay record --next y"] {
            assert_eq!(turn(path, &call(line)).unwrap(), Turn::Answer, "{line}");
        }
        let quoted = call("cd x && '/a b/.git/relay/bin/git-relay' record --done x");
        assert_eq!(turn(path, &quoted).unwrap(), Turn::Answer);
        for line in ["make", "git relay handoff", "git relay", "echo record relay"] {
            assert_eq!(turn(path, &call(line)).unwrap(), Turn::Stop, "{line}");
        }
        assert_eq!(turn(path, b"rubbish").unwrap(), Turn::Stop);
    }

    #[test]
    fn without_a_note_to_ask_for_the_agent_is_stopped_and_that_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let record = call("git relay record --done x");
        assert_eq!(turn(folder.path(), &record).unwrap(), Turn::Stop);
        assert!(folder.path().join(TOLD_FILE).exists());
    }
}
