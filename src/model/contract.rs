//! The continuation contract: what is known when a leg ends, for the next agent and for audit.
//!
//! Stored as canonical JSON (`canon`), signed as bytes (`sign`), read back strictly: unknown
//! fields, other formats and non-canonical bytes are refused. Every statement says who it is
//! from ([`Standing`]); what is unknown is absent, never empty-but-claimed and never 0.

use super::names::{AgentName, ContractId, Digest, Oid, SessionId};
use super::quota::Reading;
use super::session::{Breach, NotCaptured, Outcome, PermissionLevel, SafePoint};
use super::time::Timestamp;
use super::transcript::PlanStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format word of a contract; a reader refuses every other one.
pub const CONTRACT_FORMAT: &str = "git-relay-contract@v1";
/// The core (what the note carries) is at most this long; bulk goes to attachments.
pub const CORE_BYTES_MOST: usize = 16 * 1024;
/// Files listed in the core; the rest stand in the attachment `manifest.jsonl`.
pub const FILES_IN_CORE_MOST: usize = 200;

/// How a fact is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// Seen by us: from git, or a structured record of the agent.
    Observed,
    /// Said by the user, or by an agent through `git relay record`, a trailer or a last note.
    Declared,
    /// Text out of a transcript or a file: untrusted.
    Quoted,
}

/// A text with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Statement {
    pub text: String,
    /// `user`, `claude leg 1`, `commit 1a2b3c4`.
    pub by: String,
    pub standing: Standing,
}

/// Who worked on the leg that this contract closes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct From {
    pub agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_session: Option<String>,
    pub outcome: Outcome,
    /// It took a signal to end it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanEntry {
    pub text: String,
    pub status: PlanStatus,
    pub by: String,
    pub standing: Standing,
    /// Marked done, but neither git nor a record of the agent shows a change of what it names.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub not_seen_in_git: bool,
}

/// One changed file, base commit against snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntry {
    /// UTF-8 path from the worktree's root; absent when `pathBase64` stands for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_base64: Option<String>,
    /// `added`, `changed`, `deleted`, `typeChanged`.
    pub status: FileStatus,
    /// Git's mode in octal (`100644`, `100755`, `120000`, `160000`); absent when deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
    /// Of the content as stored in git; absent when deleted or a submodule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub size_bytes: Option<u64>,
    /// False when only the snapshot holds it: no commit of the agent does.
    pub committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileStatus {
    Added,
    Changed,
    Deleted,
    TypeChanged,
}

/// The files changed since the base commit: the first [`FILES_IN_CORE_MOST`] and the total.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileManifest {
    pub total: u64,
    pub files: Vec<FileEntry>,
}

/// A piece of code that changed since the last safe point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InFlight {
    pub path: String,
    /// First changed line, counted from 1.
    pub line: u32,
    pub snippet: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandEntry {
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub tail: String,
}

/// A call that had no result when the agent ended: its outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenCallEntry {
    pub tool: String,
    pub summary: String,
}

/// What the contract is bound to beyond its own ids: never a path or a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repository {
    /// `sha1` or `sha256`.
    pub object_format: String,
    /// The root commits of the base commit's history, sorted; absent in a shallow clone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub root_commits: Vec<Oid>,
}

/// A file beside the contract in the state commit's tree, bound by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attachment {
    /// `manifest.jsonl`, `commands.jsonl`, `in-flight.diff`, `prompt.txt`, `facts.jsonl`.
    pub name: String,
    /// Lines in it.
    pub count: u64,
    pub size_bytes: u64,
    pub sha256: Digest,
}

/// The signed record of what is known when a leg ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contract {
    pub format: String,
    pub contract_id: ContractId,
    pub session_id: SessionId,
    /// The leg that ended.
    pub leg: u32,
    pub created_at: Timestamp,
    /// SHA-256 of the stored bytes of the previous contract of this session; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent_contract: Option<Digest>,
    pub from: From,
    /// The order of receivers at signing.
    pub candidates: Vec<AgentName>,
    pub reason: Breach,
    pub permission_level: PermissionLevel,
    pub branch: String,
    pub base_commit: Oid,
    pub snapshot_commit: Oid,
    pub snapshot_tree: Oid,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub safe_point: Option<SafePoint>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub staged: Vec<String>,
    /// The operation in progress in the worktree (`merge`, `rebase`), if one is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_progress: Option<String>,
    /// One line.
    pub task_goal: Statement,
    /// The task as given, whole where it fits; else its head and tail, with `prompt.txt` attached.
    pub initial_prompt: Statement,
    /// Later instructions of the user, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub later_prompts: Vec<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plan: Vec<PlanEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks_remaining: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub done: Vec<Statement>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_action: Option<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub do_not_redo: Vec<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub decisions: Vec<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub constraints: Vec<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub acceptance_assertions: Vec<Statement>,
    pub file_manifest: FileManifest,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub in_flight_code: Vec<InFlight>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_run: Vec<CommandEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skills_loaded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub open_calls: Vec<OpenCallEntry>,
    /// The agent's last words, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub last_messages: Vec<Statement>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub usage: Vec<Reading>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_captured: Vec<NotCaptured>,
    /// Kind of secret → how many were taken out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub redactions: BTreeMap<String, u32>,
    pub repository: Repository,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attachments: Vec<Attachment>,
}
