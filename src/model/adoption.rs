//! Where a session comes from whose first leg an agent worked before there was a session: somebody
//! started it without us, and we take up what it left.

use super::names::{AgentName, Oid};
use super::session::{LegEnd, NotCaptured, Process};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Fixed when the session begins, but for `taken`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Adoption {
    pub agent: AgentName,
    /// The agent's own id of its session, by which its transcript is found.
    pub agent_session: String,
    /// Its log-in, where it is known by a name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<String>,
    /// Its configuration folder, where it is not the one it would have now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config_folder: Option<String>,
    /// The root of the worktree where it worked, relative to the main worktree's root where it is
    /// inside it. Absent where it is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    /// Whether what is not committed there comes along.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub include_dirty: bool,
    /// It ran when it was adopted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process: Option<Process>,
    /// The person said that it is to be ended; else it is waited for.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub force: bool,
    /// When it was at work last, as far as its transcript says.
    pub last_seen_at: Timestamp,
    /// What of it came into the session's worktree; absent until it is there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub taken: Option<Taken>,
}

/// What came along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taken {
    /// The commit that the agent's work stands on.
    pub parent: Oid,
    /// The commit that holds what was not committed, where it was taken along.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<Oid>,
    /// Paths that were staged, first 200.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub staged: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_captured: Vec<NotCaptured>,
}

impl Adoption {
    /// Whether `later` tells of the same adoption, which may have come further.
    pub fn goes_on(earlier: &Option<Self>, later: &Option<Self>) -> bool {
        let (Some(earlier), Some(later)) = (earlier, later) else { return earlier == later };
        let bare = |it: &Self| Self { taken: None, ..it.clone() };
        bare(earlier) == bare(later) && (earlier.taken.is_none() || earlier.taken == later.taken)
    }
}

/// What is known of leg 1 once the agent's work is in the session's worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub taken: Taken,
    pub leg_end: LegEnd,
}
