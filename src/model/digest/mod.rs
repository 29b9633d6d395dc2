//! Transcript and git facts to contract: what is kept, in which order, within which limits.
//!
//! Three steps, each in its file: `sources` gathers everything that is known, cleaned (sanitised,
//! then redacted, whole texts before any cut); `attach` writes the bulk as attachments; `bounds`
//! fits the core under [`CORE_BYTES_MOST`], giving up the least worth first. The same facts
//! always give the same bytes.
//!
//! [`CORE_BYTES_MOST`]: super::contract::CORE_BYTES_MOST

mod attach;
mod bans;
mod bounds;
mod claims;
mod clean;
mod limits;
mod lists;
mod sources;
#[cfg(test)]
mod tests;

use super::contract::{Contract, FileEntry, InFlight, Repository};
use super::names::{AgentName, ContractId, Digest};
use super::session::{Breach, Declared, LegEnd, Session, Snapshot};
use super::time::Timestamp;
use super::transcript::Transcript;
use clean::Cleaner;
use std::collections::BTreeSet;

pub use attach::{COMMANDS, DIFF, FACTS, MANIFEST, PROMPT, digest as attachment_digest};
pub use claims::changed_by;

/// Everything that is known when a leg ends, as it was found: nothing here is redacted yet.
pub struct Facts<'a> {
    /// The session in SNAPSHOTTED: task, declared facts of all legs, readings.
    pub session: &'a Session,
    /// Who worked on the leg that ended.
    pub agent: &'a AgentName,
    pub breach: &'a Breach,
    pub leg_end: &'a LegEnd,
    pub snapshot: &'a Snapshot,
    /// What the agent left behind in this leg.
    pub transcript: &'a Transcript,
    /// Facts out of commit trailers, `by` being `commit 1a2b3c4`.
    pub trailers: &'a [Declared],
    /// Base commit against snapshot.
    pub files: &'a [FileEntry],
    /// Which of the files that the plan says were changed ([`changed_by`]) the base commit has.
    pub in_base: &'a BTreeSet<String>,
    pub in_flight: &'a [InFlight],
    /// What changed since the last safe point, as a diff; empty when nothing did.
    pub in_flight_diff: &'a [u8],
    pub repository: &'a Repository,
    /// The contract before this one, verified, with the digest of its stored bytes.
    pub previous: Option<(&'a Contract, &'a Digest)>,
    pub contract_id: ContractId,
    pub candidates: &'a [AgentName],
    pub now: Timestamp,
}

/// A contract ready to be signed, and the files it binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub contract: Contract,
    /// Name and bytes, in the order in which the contract lists them.
    pub attachments: Vec<(String, Vec<u8>)>,
}

/// Builds the contract of the leg that ended. No secret gets past this.
pub fn build(facts: &Facts<'_>) -> Draft {
    let mut cleaner = Cleaner::default();
    let mut whole = sources::gather(facts, &mut cleaner);
    let diff = attach::diff(facts.in_flight_diff, &mut cleaner, &mut whole.not_captured);
    whole.redactions = cleaner.found();
    let attachments = attach::all(&whole, diff);
    bounds::fit(&whole, attachments)
}
