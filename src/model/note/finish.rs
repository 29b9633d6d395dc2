//! The record of a finished session: it hangs on the result commit, so that the user's own branch
//! tells who made it.

use super::LINES_MOST;
use super::lines::{numbered, short};
use crate::model::digest::attachment_digest;
use crate::model::names::{AgentName, ContractId, Oid, SessionId};
use crate::model::session::Outcome;
use crate::model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The format word of a finish record; a reader refuses every other one.
pub const FINISH_FORMAT: &str = "git-relay-finish@v1";

/// Who worked on a session, and what came of it. Signed like a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinishRecord {
    pub format: String,
    pub session_id: SessionId,
    pub result_commit: Oid,
    pub legs: Vec<FinishedLeg>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinishedLeg {
    pub leg: u32,
    pub agent: AgentName,
    pub outcome: Outcome,
    /// Absent for a leg that was not handed over, as the last one is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub contract_id: Option<ContractId>,
}

/// The readable lines; they begin with `f-` and eight digits of the record's own SHA-256.
pub(super) fn lines(finish: &FinishRecord, core: &[u8]) -> Vec<String> {
    let id = format!("f-{}", &attachment_digest(core).as_str()[..8]);
    let result = short(finish.result_commit.as_str());
    let mut texts = vec![format!("session {} finished: {result}", finish.session_id)];
    let room = LINES_MOST - texts.len();
    // The last line says how many legs there are besides.
    let shown = if finish.legs.len() > room { room - 1 } else { finish.legs.len() };
    for leg in &finish.legs[..shown] {
        let contract = leg.contract_id.as_ref().map_or(String::new(), |id| format!("; {id}"));
        texts.push(format!("leg {}: {}, {}{contract}", leg.leg, leg.agent, leg.outcome));
    }
    if shown < finish.legs.len() {
        texts.push(format!("and {} more legs", finish.legs.len() - shown));
    }
    numbered(&id, &texts)
}
