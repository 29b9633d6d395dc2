//! The inbox: one JSON line per request or fact, appended by whoever cannot write our refs.
//!
//! A line is *declared*: never a command, never a path to follow. The only request is a
//! hand-over, and its target counts only among the consented agents.

use super::names::{AgentName, Oid};
use super::session::DeclaredKind;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A line is at most this long, so that one `write(2)` appends it whole.
pub const LINE_BYTES_MOST: usize = 4096;

/// One line of the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// 16 random hex digits; a known id is dropped.
    pub id: String,
    pub at: Timestamp,
    #[serde(flatten)]
    pub says: Says,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Says {
    /// One of our hooks fired in an agent.
    Hook { event: String, nonce: String },
    /// Our hook refused a tool because a pause is wanted: a moment between two calls.
    Paused { nonce: String },
    /// A commit was made.
    SafePoint {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        commit: Option<Oid>,
    },
    /// `git relay record`.
    Record {
        fact: DeclaredKind,
        text: String,
        /// The dispatch nonce of the agent whose shell said it; absent for a person's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        nonce: Option<String>,
    },
    /// `git relay handoff`.
    Handoff {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        to: Option<AgentName>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        force: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        no_launch: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        nonce: Option<String>,
    },
}

/// The lines in `bytes` that are whole, and how many bytes they are; what is no line of ours is
/// counted. A torn last line waits for its end.
pub fn read(bytes: &[u8]) -> (Vec<Line>, usize, usize) {
    let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
    let mut lines = Vec::new();
    let mut odd = 0;
    for raw in bytes[..whole].split(|byte| *byte == b'\n').filter(|raw| !raw.is_empty()) {
        match serde_json::from_slice::<Line>(raw) {
            Ok(line) if raw.len() <= LINE_BYTES_MOST && is_id(&line.id) => lines.push(line),
            _ => odd += 1,
        }
    }
    (lines, whole, odd)
}

fn is_id(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_strictly_and_a_torn_one_waits() {
        let line = Line {
            id: "0123456789abcdef".into(),
            at: Timestamp(0),
            says: Says::Record {
                fact: DeclaredKind::DoNotRedo,
                text: "migration 42".into(),
                nonce: None,
            },
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"id":"0123456789abcdef","at":"1970-01-01T00:00:00Z","kind":"record","fact":"doNotRedo","text":"migration 42"}"#
        );
        let bytes = format!("{text}\nrubbish\n{{\"id\":\"x\"}}\n{text}");
        let (lines, whole, odd) = read(bytes.as_bytes());
        assert_eq!((lines, odd), (vec![line], 2));
        assert_eq!(&bytes[whole..], text);
    }
}
