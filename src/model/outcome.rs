//! The words for how things ended and why: what a script compares and a person reads.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a leg ended, from the agent's structured end record, never from an exit code alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It ended its turn and its last plan has no open item.
    Done,
    /// It hit its usage limit.
    Limit,
    /// It stopped because we asked it to.
    Paused,
    /// An error that is not the limit: overload, log-in, full context, a crash.
    Failed,
    /// It waits for a person: it asked something, or ended its turn with open items in its plan.
    Asks,
    /// The user ended it.
    Killed,
    /// No end record.
    Unknown,
}

impl Outcome {
    /// Whether this end calls for a hand-over by itself. An agent that finished, asks, or was
    /// ended by its user does not.
    pub const fn is_breach(self) -> bool {
        matches!(self, Self::Limit | Self::Failed | Self::Unknown | Self::Paused)
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Limit => "limit",
            Self::Paused => "paused",
            Self::Failed => "failed",
            Self::Asks => "asks",
            Self::Killed => "killed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Why a session is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BreachReason {
    /// A reading crossed the threshold.
    Threshold,
    /// The usage limit itself.
    Limit,
    /// `git relay handoff`.
    Request,
    /// The leg ended `failed`.
    Failed,
    /// The leg ended without an end record.
    Unknown,
}

impl BreachReason {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Limit => "limit",
            Self::Request => "request",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// What came of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DispatchOutcome {
    /// The receipt came: this agent took over.
    Received,
    /// It was exhausted.
    Limit,
    /// It was not logged in.
    Auth,
    /// It could not be started, ended early, or sent no receipt in time.
    Failed,
}

impl DispatchOutcome {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Limit => "limit",
            Self::Auth => "auth",
            Self::Failed => "failed",
        }
    }
}
