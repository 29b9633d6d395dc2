//! What a hook of an agent at a terminal keeps for the driver, one JSON line each: the agent's
//! standard output is the screen there, so its transcript and these lines tell how it goes.

use super::quota::Reading;
use super::transcript::Sign;
use serde::{Deserialize, Serialize};

/// One kept line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Heard {
    /// The agent is up; its own id of the session.
    Started(String),
    Readings(Vec<Reading>),
}

impl Heard {
    /// The line, without its newline.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a kept line tells; nothing if it is none of ours.
pub fn signs(line: &[u8]) -> Vec<Sign> {
    match serde_json::from_slice(line) {
        Ok(Heard::Started(id)) => vec![Sign::Started { agent_session: Some(id) }],
        Ok(Heard::Readings(readings)) => readings.into_iter().map(Sign::Reading).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_told_and_nothing_else_is() {
        let line = Heard::Started("an-id".into()).line();
        let told = signs(line.as_bytes());
        assert_eq!(told, [Sign::Started { agent_session: Some("an-id".into()) }]);
        assert_eq!(signs(b"step one"), []);
    }
}
