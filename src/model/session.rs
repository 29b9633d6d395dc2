//! The record a session's state commit holds (`state.json`): one task, worked on in one worktree
//! on one branch, by one agent at a time.

pub use super::adoption::{Adoption, Taken};
pub use super::outcome::{BreachReason, DispatchOutcome, Outcome};
pub use super::ports::{PORTS_EACH, port_base};

use super::names::{AgentName, ContractId, Digest, Nonce, Oid, SessionId};
use super::quota::{Reading, THRESHOLD_PERMILLE_DEFAULT};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The format word of `state.json`; a reader refuses every other one.
pub const STATE_FORMAT: &str = "git-relay-state@v1";

/// Where a session stands. Participles are facts, whose evidence is in the state commit; -ING
/// are intents, to be finished or undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    Running,
    Pausing,
    Snapshotted,
    EnvelopeBuilt,
    Dispatched,
    Resuming,
    Completed,
    Aborted,
}

impl State {
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Pausing,
        Self::Snapshotted,
        Self::EnvelopeBuilt,
        Self::Dispatched,
        Self::Resuming,
        Self::Completed,
        Self::Aborted,
    ];

    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted)
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Pausing => "PAUSING",
            Self::Snapshotted => "SNAPSHOTTED",
            Self::EnvelopeBuilt => "ENVELOPE_BUILT",
            Self::Dispatched => "DISPATCHED",
            Self::Resuming => "RESUMING",
            Self::Completed => "COMPLETED",
            Self::Aborted => "ABORTED",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What an agent may do, from least to most. Fixed by the person at `start`/`run` (and once more
/// when a session leaves the terminal); a receiver never gets more than the session's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionLevel {
    /// Look, change nothing.
    Read,
    /// Ask the person before each change (interactive only).
    Ask,
    /// Edit files and run commands in a sandbox: the default of `run`.
    Edit,
    /// No sandbox, no questions.
    All,
}

/// A fact that somebody stated through `git relay record`, a commit trailer or a last note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declared {
    /// Random id of the inbox line, 16 hex digits; a known id is dropped.
    pub id: String,
    pub kind: DeclaredKind,
    pub text: String,
    /// Who said so: an agent's name and leg (`claude leg 1`), `user`, or `commit 1a2b3c4`.
    pub by: String,
    pub leg: u32,
    pub at: Timestamp,
}

/// What a declared fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeclaredKind {
    Decision,
    Constraint,
    DoNotRedo,
    Done,
    Next,
    Plan,
    Assert,
}

impl DeclaredKind {
    pub const ALL: [Self; 7] = [
        Self::Decision,
        Self::Constraint,
        Self::DoNotRedo,
        Self::Done,
        Self::Next,
        Self::Plan,
        Self::Assert,
    ];

    /// The flag of `git relay record` and, after `Relay-`, the commit trailer.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Constraint => "constraint",
            Self::DoNotRedo => "do-not-redo",
            Self::Done => "done",
            Self::Next => "next",
            Self::Plan => "plan",
            Self::Assert => "assert",
        }
    }
}

/// Somebody asked for a hand-over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    pub by: String,
    pub at: Timestamp,
    /// Go on even if the receiver looks unable, or the agent cannot be asked first.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub force: bool,
    /// Save and sign, and start nobody.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub no_launch: bool,
}

/// Why the session is being handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Breach {
    pub reason: BreachReason,
    /// One line in words: the provider's sentence, the user's reason.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reading: Option<Reading>,
    /// The receiver that was asked for, if one was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<AgentName>,
    pub at: Timestamp,
}

/// A process as it can be told from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Process {
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

/// One start of an agent, intended, tried or done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dispatch {
    pub agent: AgentName,
    /// The log-in, where more than one of an agent is configured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<String>,
    pub nonce: Nonce,
    /// The leg this start would become on its receipt.
    pub leg: u32,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process: Option<Process>,
    /// The agent's own session id, once it said so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub received_at: Option<Timestamp>,
    /// `None` while it is under way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<DispatchOutcome>,
    /// Why it failed, in one line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resets_at: Option<Timestamp>,
    /// When it was at its limit, where nobody said until when.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit_seen_at: Option<Timestamp>,
}

impl Dispatch {
    /// The intent to start `agent` for `leg`.
    pub fn begin(agent: AgentName, nonce: Nonce, leg: u32, at: Timestamp) -> Self {
        Self {
            agent,
            account: None,
            nonce,
            leg,
            at,
            process: None,
            agent_session: None,
            received_at: None,
            outcome: None,
            detail: None,
            resets_at: None,
            limit_seen_at: None,
        }
    }
}

/// How the current leg ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LegEnd {
    pub outcome: Outcome,
    /// One line: the question asked, the error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// Open items of the last plan.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub open_items: Vec<String>,
    /// Whether it took a signal to end it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forced: bool,
    /// When the limit resets, if the provider said so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resets_at: Option<Timestamp>,
    pub at: Timestamp,
}

/// How a session's result comes to the user's branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FinishKind {
    /// One commit of it all.
    #[default]
    Squash,
    /// A merge commit, whose second parent has the session's own commits behind it.
    Merge,
    /// Not at all: the session's branch stays, and no other one moves.
    Keep,
}

/// A finish that has begun in a worktree of the user's: the intent, before git is asked to merge
/// there. What the result becomes is known only when the user has resolved its conflicts and their
/// hooks have agreed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finishing {
    pub kind: FinishKind,
    /// Full name of the branch.
    pub branch: String,
    /// Where the branch stood.
    pub target: Oid,
    /// What is merged into it.
    pub source: Oid,
    pub message: String,
    /// What stood uncommitted there, and is in the result: kept by this commit, and put back where
    /// the finish is taken back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub aside: Option<Oid>,
    /// The paths in conflict, once the user has been told of them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub conflicts: Vec<String>,
}

/// A commit at which no tool call was open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SafePoint {
    pub commit: Oid,
    pub at: Timestamp,
}

/// The commit that holds the whole working tree at a hand-over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    pub leg: u32,
    pub commit: Oid,
    pub tree: Oid,
    /// The session branch's tip before it; the snapshot's parent.
    pub parent: Oid,
    /// False when a merge or rebase was in progress: then the branch was not moved.
    pub on_branch: bool,
    /// The operation in progress (`merge`, `rebase`, …), named and never committed over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_progress: Option<String>,
    /// Paths that were staged, first 200.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub staged: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_captured: Vec<NotCaptured>,
    pub at: Timestamp,
}

/// Something the snapshot or the contract could not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotCaptured {
    /// The path, or what it is about.
    pub what: String,
    pub why: String,
}

/// The contract whose bytes are `contract.json` in the same commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContractRef {
    pub contract_id: ContractId,
    /// SHA-256 of the stored bytes.
    pub sha256: Digest,
    /// The leg it closes.
    pub leg: u32,
}

/// Where and how a session works; fixed when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workplace {
    /// The session worktree, relative to the main worktree's root where it is inside it.
    pub worktree: String,
    /// Short name, without `refs/heads/`.
    pub branch: String,
    pub base_commit: Oid,
    /// The branch the session started from and `finish` brings the result to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base_branch: Option<String>,
    /// The first of the ports that are this session's; [`PORTS_EACH`] of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port_base: Option<u16>,
}

/// The session: the whole truth about it is this record plus the chain it stands in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    pub format: String,
    pub session_id: SessionId,
    pub state: State,
    /// The running or last leg; 0 before the first receipt.
    pub leg: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The task as the user gave it, redacted.
    pub task: String,
    pub workplace: Workplace,
    pub permission_level: PermissionLevel,
    /// The agents that were consented to, in the user's order.
    pub agents: Vec<AgentName>,
    pub threshold_permille: u32,
    /// How far the inbox has been folded; always just after a newline.
    pub inbox_offset: u64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub declared: Vec<Declared>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<Request>,
    /// What leg 1 was, where an agent worked it before the session began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adopted: Option<Adoption>,
    /// The start that is under way or that the running leg came from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dispatch: Option<Dispatch>,
    /// Every start that is over, and the one that was received, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dispatches: Vec<Dispatch>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub breach: Option<Breach>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub leg_end: Option<LegEnd>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub safe_point: Option<SafePoint>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<Snapshot>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub contract: Option<ContractRef>,
    /// Latest reading of each window of the running agent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub readings: Vec<Reading>,
    /// Whether one of our hooks has fired in this leg.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hooks_fired: bool,
    /// Digest of the git configuration facts at launch, compared after the leg.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guard: Option<Digest>,
    /// A finish that is under way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finishing: Option<Finishing>,
    /// Where the result went (`finish`) or where the work stays reachable (`abort`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<String>,
}

impl Session {
    /// A session that begins: DISPATCHED for leg 1, with the task instead of a contract.
    pub fn begin(
        session_id: SessionId,
        task: String,
        workplace: Workplace,
        now: Timestamp,
    ) -> Self {
        Self {
            format: STATE_FORMAT.to_owned(),
            session_id,
            state: State::Dispatched,
            leg: 0,
            created_at: now,
            updated_at: now,
            task,
            workplace,
            permission_level: PermissionLevel::Edit,
            agents: Vec::new(),
            threshold_permille: THRESHOLD_PERMILLE_DEFAULT,
            inbox_offset: 0,
            declared: Vec::new(),
            request: None,
            adopted: None,
            dispatch: None,
            dispatches: Vec::new(),
            breach: None,
            leg_end: None,
            safe_point: None,
            snapshot: None,
            contract: None,
            readings: Vec::new(),
            hooks_fired: false,
            guard: None,
            finishing: None,
            result: None,
        }
    }

    /// Whether its agents work in a person's own terminal: only there is somebody to ask.
    pub fn is_interactive(&self) -> bool {
        self.permission_level == PermissionLevel::Ask
    }

    /// What it is to begin with is still where an agent left it.
    pub fn is_to_adopt(&self) -> bool {
        self.leg == 0 && self.adopted.is_some()
    }

    /// Whether a leg begins with this state, the one after `earlier`.
    pub fn begins_leg_after(&self, earlier: &Self) -> bool {
        let may = earlier.state == State::Resuming || earlier.is_to_adopt();
        may && self.state == State::Running
    }

    /// The adoption, while its agent's leg is the last one there was.
    pub fn adopted_leg(&self) -> Option<&Adoption> {
        self.adopted.as_ref().filter(|_| self.leg == 1)
    }

    /// The agent of the running or last leg, or the one being started.
    pub fn agent(&self) -> Option<&AgentName> {
        self.dispatch.as_ref().map(|dispatch| &dispatch.agent)
    }

    /// `claude leg 1`: how the current agent is named as the source of a fact.
    pub fn speaker(&self) -> String {
        match self.agent() {
            Some(agent) => format!("{agent} leg {}", self.leg.max(1)),
            None => "user".to_owned(),
        }
    }
}
