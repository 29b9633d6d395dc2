//! What a finish says in git: the message of the user's commit, and the signed note on it.

use crate::host::clock;
use crate::model::contract::Contract;
use crate::model::names::Oid;
use crate::model::note::{self, FINISH_FORMAT, FinishRecord, FinishedLeg, RecordKind};
use crate::model::screen::{first_chars, one_line};
use crate::model::session::{DeclaredKind, DispatchOutcome, Outcome};
use crate::model::{canon, redact, sign};
use crate::relay::Driver;
use crate::store::audit;
use anyhow::{Context, Result};

const SUBJECT_CHARS_MOST: usize = 72;
/// Of decisions, and of things done; a message is no archive, the contracts are.
const ITEMS_MOST: usize = 12;
const ITEM_CHARS_MOST: usize = 200;

impl Driver<'_> {
    /// By this line a result is known again, whoever made the commit in the end.
    pub(super) fn trailer(&self) -> String {
        format!("Relay-Session: {}", self.session().session_id)
    }

    /// The message of the result: `given`, or one made of the task and of what the contracts say
    /// was done and decided. The session's trailer is always there.
    pub(super) fn message(&self, given: Option<&str>) -> String {
        let session = self.session();
        let trailer = self.trailer() + "\n";
        if let Some(given) = given {
            let gap = if ends_in_trailers(given) { "\n" } else { "\n\n" };
            return format!("{}{gap}{trailer}", given.trim_end());
        }
        let mut text = first_chars(&one_line(&session.task), SUBJECT_CHARS_MOST);
        text.push_str("\n\n");
        let contract = self.last_contract();
        let of = |contract: Option<&Contract>, kind| -> Vec<String> {
            let stated = contract.map(|contract| match kind {
                DeclaredKind::Done => contract.done.as_slice(),
                _ => contract.decisions.as_slice(),
            });
            let stated = stated.unwrap_or_default().iter().map(|statement| &statement.text);
            let since = session.declared.iter().filter(|fact| fact.kind == kind);
            let mut items: Vec<String> = Vec::new();
            for item in stated.chain(since.map(|fact| &fact.text)) {
                let item = first_chars(&one_line(item), ITEM_CHARS_MOST);
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            items
        };
        for (heading, kind) in [("Done", DeclaredKind::Done), ("Decided", DeclaredKind::Decision)] {
            text.push_str(&section(heading, &of(contract.as_ref(), kind)));
        }
        for leg in self.legs() {
            text.push_str(&format!("Relay-Leg: {} {} {}\n", leg.leg, leg.agent, leg.outcome));
        }
        redact::redact(&(text + &trailer)).text
    }

    /// The last contract, if there is one and it holds.
    fn last_contract(&self) -> Option<Contract> {
        self.session().contract.as_ref()?;
        let at = self.hub.contract_of(&self.stored, None).ok()?;
        Some(audit::contract(&self.hub.repo, &self.hub.trust, &at).ok()?.contract)
    }

    /// Who worked on the session, leg by leg.
    fn legs(&self) -> Vec<FinishedLeg> {
        let session = self.session();
        let received =
            session.dispatches.iter().filter(|d| d.outcome == Some(DispatchOutcome::Received));
        received
            .map(|dispatch| {
                let at = self.hub.contract_of(&self.stored, Some(dispatch.leg)).ok();
                let ended = match &at {
                    Some(stored) => stored.session.leg_end.as_ref(),
                    None => session.leg_end.as_ref().filter(|_| dispatch.leg == session.leg),
                };
                FinishedLeg {
                    leg: dispatch.leg,
                    agent: dispatch.agent.clone(),
                    outcome: ended.map_or(Outcome::Unknown, |end| end.outcome),
                    contract_id: at.and_then(|stored| Some(stored.session.contract?.contract_id)),
                }
            })
            .collect()
    }

    /// A signed record on the result commit, once, so that the user's own branch tells the story.
    pub(super) fn note_finish(&self, commit: &Oid) -> Result<()> {
        let record = FinishRecord {
            format: FINISH_FORMAT.to_owned(),
            session_id: self.session().session_id.clone(),
            result_commit: commit.clone(),
            legs: self.legs(),
            created_at: clock::now(),
        };
        let core = canon::encode(&record).context("a finish record can be encoded")?;
        let raw = sign::dearmor(&self.key.sign(sign::CONTRACT_NAMESPACE, &core))?;
        let ours = note::write_finish(&core, &record, &raw);
        self.hub.repo.update_note(commit, clock::now().0, |there| {
            let there = there.map(String::from_utf8_lossy);
            match &there {
                Some(text) if self.tells_of_this(text) => text.as_bytes().to_vec(),
                _ => note::merge(there.as_deref(), &ours).into_bytes(),
            }
        })
    }

    /// What is broken of the session's record does not keep the result from coming; it is said.
    pub(super) fn tell_broken_notes(&mut self) -> Result<()> {
        let found = audit::session(&self.hub.repo, &self.hub.trust, &self.stored)?;
        let broken: Vec<String> = found
            .into_iter()
            .filter(|one| one.fault.is_some() && one.commit.is_some())
            .map(|one| one.subject)
            .collect();
        if !broken.is_empty() {
            let id = self.session().session_id.clone();
            self.notice(format!(
                "the {} does not hold; what helps: git relay verify {id}",
                broken.join(", the ")
            ));
        }
        Ok(())
    }

    fn tells_of_this(&self, note: &str) -> bool {
        note::read(note).iter().filter(|record| record.kind == RecordKind::Finish).any(|record| {
            canon::decode::<FinishRecord>(&record.core)
                .is_ok_and(|known| known.session_id == self.session().session_id)
        })
    }
}

fn section(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut text = format!("{heading}:\n");
    for item in items.iter().take(ITEMS_MOST) {
        text.push_str(&format!("- {item}\n"));
    }
    if items.len() > ITEMS_MOST {
        text.push_str(&format!("- and {} more\n", items.len() - ITEMS_MOST));
    }
    text + "\n"
}

/// Whether the last paragraph (not the only one) is trailers already.
fn ends_in_trailers(message: &str) -> bool {
    let Some((_, last)) = message.trim_end().rsplit_once("\n\n") else { return false };
    last.lines().all(|line| {
        line.split_once(": ").is_some_and(|(key, _)| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    })
}
