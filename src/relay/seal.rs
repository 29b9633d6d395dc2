//! From what the agent left to a signed contract: SNAPSHOTTED to ENVELOPE_BUILT.

use super::watch::Watch;
use super::{Driver, Hub, adopt};
use crate::agents::{Seat, history};
use crate::error::Fault;
use crate::git::Repository;
use crate::host::{clock, files, process, random};
use crate::model::canon;
use crate::model::contract::{Contract, Repository as Bound};
use crate::model::digest::{self, Facts};
use crate::model::fsm::Event;
use crate::model::names::{ContractId, Oid};
use crate::model::note;
use crate::model::receivers;
use crate::model::session::{ContractRef, Declared, DeclaredKind, Dispatch, NotCaptured, Session};
use crate::model::sign::{self, CONTRACT_NAMESPACE, SigningKey};
use crate::model::time::Timestamp;
use crate::model::transcript::{PlanStatus, Transcript};
use crate::store::audit::{self, Verified, sha256};
use crate::store::{Sealed, Stored, sealed_at, short};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::time::Duration;

const IN_FLIGHT_BYTES_MOST: usize = 256 * 1024;
const TRAILER_COMMITS_MOST: usize = 500;

impl Driver<'_> {
    /// Builds, redacts and signs the contract of the leg that ended, and swaps it in with the
    /// state. Killed before the swap, nothing of it was ever seen; after it, it is never rebuilt.
    pub(super) fn seal(&mut self) -> Result<()> {
        let (contract, attachments) = {
            let draft = self.hub.draft(&self.hub.repo, &self.stored, self.session())?;
            (draft.contract, draft.attachments)
        };
        let bytes = canon::encode(&contract).context("a contract can be encoded")?;
        let signature = self.contract_key()?.sign(&bytes)?;
        let sealed = Sealed { signature, attachments: attachments.into_iter().collect(), bytes };
        let known = ContractRef {
            contract_id: contract.contract_id.clone(),
            sha256: sha256(&sealed.bytes),
            leg: contract.leg,
        };
        self.step(&Event::Contracted(known), Some(&sealed))
    }

    /// Open items of the agent's last plan, redacted.
    pub(super) fn open_items(&self, watch: &Watch) -> Vec<String> {
        let Some(mut dispatch) = self.session().dispatch.clone() else { return Vec::new() };
        dispatch.agent_session = watch.leg.agent_session.clone().or(dispatch.agent_session);
        let Ok((transcript, _)) = self.hub.transcript(self.session(), &dispatch) else {
            return Vec::new();
        };
        transcript
            .plan
            .iter()
            .filter(|item| item.status != PlanStatus::Completed)
            .map(|item| crate::model::foreign::one_line(&item.text))
            .collect()
    }

    /// The key that signs contracts: the project's, or the one the user named.
    fn contract_key(&self) -> Result<ContractKey> {
        let Some(path) = &self.hub.settings.signing_key else {
            return Ok(ContractKey::Project(self.key.clone()));
        };
        let text = files::read_text(path, 64 * 1024)?.ok_or_else(|| {
            Fault::environment(format!("there is no signing key at '{}'", path.display()))
                .hint("set signing_key to a key file, or take it out of your configuration")
        })?;
        if text.starts_with("ssh-") {
            return Ok(ContractKey::Held(path.to_string_lossy().into_owned()));
        }
        let key = SigningKey::from_openssh_pem(&text)
            .with_context(|| format!("the key at '{}' cannot be used", path.display()))?;
        Ok(ContractKey::Project(key))
    }
}

impl Hub {
    /// The contract that `session` gives, whose snapshot is in `repo`; `stored` is what the chain
    /// holds of it so far.
    pub(super) fn draft(
        &self,
        repo: &Repository,
        stored: &Stored,
        session: &Session,
    ) -> Result<digest::Draft> {
        let dispatch = session.dispatch.clone().context("a leg has a dispatch")?;
        let snapshot = session.snapshot.clone().context("SNAPSHOTTED has a snapshot")?;
        let (transcript, lost) = self.transcript(session, &dispatch)?;
        let mut snapshot = snapshot;
        snapshot.not_captured.extend(lost);
        let base = &session.workplace.base_commit;
        let since = session.safe_point.as_ref().map_or(base, |safe_point| &safe_point.commit);
        let (in_flight, diff) = repo.in_flight(since, &snapshot.tree, IN_FLIGHT_BYTES_MOST)?;
        let files = repo.changed_files(base, &snapshot.commit)?;
        let trailers = trailers(repo, base, &snapshot.parent, session.leg)?;
        let previous = self.previous(stored)?;
        let bound = Bound {
            object_format: repo.object_format().to_owned(),
            root_commits: if repo.is_shallow() { Vec::new() } else { repo.root_commits(base)? },
        };
        let candidates = receivers::order(session);
        Ok(digest::build(&Facts {
            session,
            agent: &dispatch.agent,
            breach: session.breach.as_ref().context("a hand-over has a breach")?,
            leg_end: session.leg_end.as_ref().context("a hand-over follows the leg's end")?,
            snapshot: &snapshot,
            transcript: &transcript,
            trailers: &trailers,
            files: &files,
            in_base: &named_in(repo, base, &transcript)?,
            in_flight: &in_flight,
            in_flight_diff: &diff,
            repository: &bound,
            previous: previous.as_ref().zip(session.contract.as_ref().map(|known| &known.sha256)),
            contract_id: ContractId::new(format!("c-{}", random::hex(8)?))
                .context("8 hex digits make an id")?,
            candidates: &candidates,
            now: clock::now(),
        }))
    }

    /// The contract of the leg before, whose facts live on. It must hold: a forged one is refused.
    fn previous(&self, stored: &Stored) -> Result<Option<Contract>> {
        if stored.session.contract.is_none() {
            return Ok(None);
        }
        // As it was brought in: the state names the snapshot of the leg that ended now.
        let at = self.contract_of(stored, None)?;
        let verified = audit::contract(&self.repo, &self.trust, &at)?;
        Ok(Some(verified.contract))
    }

    /// What the agent's own transcript of this dispatch holds, and what of it could not be had.
    pub(super) fn transcript(
        &self,
        session: &Session,
        dispatch: &Dispatch,
    ) -> Result<(Transcript, Option<NotCaptured>)> {
        let lost = |why: &str| {
            Some(NotCaptured { what: format!("transcript of {}", dispatch.agent), why: why.into() })
        };
        let Some(seat) = Seat::find(&self.settings, &dispatch.agent) else {
            return Ok((Transcript::default(), lost("this agent is not configured any more")));
        };
        let (Some(find), Some(fold)) = (seat.agent.transcript, seat.agent.fold) else {
            return Ok((Transcript::default(), lost("this agent keeps none that we can read")));
        };
        let adoption = session.adopted.as_ref().filter(|_| dispatch.leg == 1);
        let path = match adoption {
            Some(adoption) => adopt::transcript_of(self, adoption),
            None => dispatch.agent_session.as_deref().and_then(find),
        };
        let Some(path) = path else {
            return Ok((Transcript::default(), lost("it was not found")));
        };
        let mut transcript = history::read(&path, fold)?;
        if let Some(adoption) = adoption {
            self.moved(adoption, transcript.cwd.as_deref()).transcript(&mut transcript);
        }
        let why = transcript.warnings.first().cloned();
        Ok((transcript, why.and_then(|why| lost(&why))))
    }
}

/// The files that finished items of the plan name and `base` has.
fn named_in(repo: &Repository, base: &Oid, transcript: &Transcript) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for name in transcript.plan.iter().flat_map(digest::changed_by) {
        if repo.entry_at(base, name.as_bytes())?.is_some() {
            found.insert(name.to_owned());
        }
    }
    Ok(found)
}

/// Whoever signs a contract.
enum ContractKey {
    Project(SigningKey),
    /// A public key whose private half ssh-agent holds.
    Held(String),
}

impl ContractKey {
    fn sign(&self, bytes: &[u8]) -> Result<String> {
        match self {
            Self::Project(key) => Ok(key.sign(CONTRACT_NAMESPACE, bytes)),
            Self::Held(path) => {
                let argv = ["ssh-keygen", "-Y", "sign", "-f", path, "-n", CONTRACT_NAMESPACE];
                let output = process::run(&argv, &[], bytes, Duration::from_secs(60))?;
                if output.code != Some(0) {
                    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    return Err(Fault::environment(format!("ssh-agent did not sign: {words}"))
                        .hint("ssh-add -l")
                        .into());
                }
                Ok(String::from_utf8(output.stdout)?)
            }
        }
    }
}

/// Facts stated in `Relay-…` trailers of the agent's own commits. They are read, never written.
fn trailers(repo: &Repository, base: &Oid, tip: &Oid, leg: u32) -> Result<Vec<Declared>> {
    let mut facts = Vec::new();
    let commits = repo.commits_between(base, tip)?;
    for (oid, commit) in commits.iter().take(TRAILER_COMMITS_MOST) {
        for line in commit.message.lines() {
            let Some((key, text)) =
                line.strip_prefix("Relay-").and_then(|rest| rest.split_once(':'))
            else {
                continue;
            };
            let kind =
                DeclaredKind::ALL.into_iter().find(|kind| key.eq_ignore_ascii_case(kind.word()));
            if let Some(kind) = kind {
                facts.push(Declared {
                    id: oid.as_str()[..16].to_owned(),
                    kind,
                    text: text.trim().to_owned(),
                    by: format!("commit {}", &short(oid)[..7]),
                    leg,
                    at: Timestamp::from_epoch(commit.time).unwrap_or(Timestamp(0)),
                });
            }
        }
    }
    Ok(facts)
}

impl Hub {
    /// The contract that closed `leg` of a session (the last one for `None`), with the state
    /// commit that brought it in.
    pub fn contract_of(&self, stored: &Stored, leg: Option<u32>) -> Result<Stored> {
        let id = &stored.session.session_id;
        let mut found: Option<Stored> = None;
        let mut at = stored.clone();
        loop {
            let known = at.session.contract.as_ref();
            match &found {
                Some(later) if later.session.contract.as_ref() != known => break,
                None if known.is_none() => break,
                _ => {}
            }
            if known.is_some_and(|known| leg.is_none_or(|leg| leg == known.leg)) {
                found = Some(at.clone());
            }
            let Some(tip) = self.repo.read_commit(&at.tip)?.parents.first().cloned() else { break };
            let session: Session = crate::store::load_at(&self.repo, &self.trust, id, &tip)?;
            at = Stored { session, tip };
        }
        found.ok_or_else(|| {
            let which =
                leg.map_or("no contract yet".into(), |leg| format!("no contract for leg {leg}"));
            Fault::refused(format!("session '{id}' has {which}"))
                .hint(format!("git relay log {id}"))
                .into()
        })
    }

    /// Writes the note of a contract that holds, where there is none, out of the stored bytes.
    pub(super) fn write_note_of(&self, verified: &Verified) -> Result<()> {
        let raw = sign::dearmor(&verified.sealed.signature)?;
        let ours = note::write(&verified.sealed.bytes, &verified.contract, &raw);
        let on = &verified.contract.snapshot_commit;
        self.repo.update_note(on, clock::now().0, |there| match there {
            Some(there) => there.to_vec(),
            None => note::merge(None, &ours).into_bytes(),
        })
    }

    /// Writes the note of the contract that closed `leg` again. It is not signed anew.
    pub fn write_lost_note(&self, stored: &Stored, leg: u32) -> Result<()> {
        let at = self.contract_of(stored, Some(leg))?;
        self.write_note_of(&audit::contract(&self.repo, &self.trust, &at)?)
    }

    /// The stored bytes of a contract.
    pub fn sealed(&self, stored: &Stored) -> Result<Sealed> {
        sealed_at(&self.repo, &stored.tip)?.context("its state commit has a contract")
    }
}
