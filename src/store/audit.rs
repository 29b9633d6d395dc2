//! Checks of what is stored: a contract against repository, chain and trust; a whole chain; the
//! note. Each failure says which one it is; nothing is repaired here.

mod notes;

pub use notes::{Note, note, other_notes};

use super::{Sealed, Stored, load_at, sealed_at, short};
use crate::error::Fault;
use crate::git::refs::SNAPSHOTS;
use crate::git::{Repository, session_ref, snapshot_ref, wip_ref};
use crate::host::clock;
use crate::model::canon;
use crate::model::contract::{CONTRACT_FORMAT, CORE_BYTES_MOST, Contract};
use crate::model::fsm;
use crate::model::names::{Digest, Oid};
use crate::model::session::{Adoption, PermissionLevel, Session, State};
use crate::model::sign::{self, CONTRACT_NAMESPACE};
use crate::model::trust::Trust;
use anyhow::Result;
use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::new(hex).expect("SHA-256 is 64 hex digits")
}

/// A contract that holds: the record, the bytes that were checked, and whose key signed them.
#[derive(Clone, Debug)]
pub struct Verified {
    pub contract: Contract,
    pub sealed: Sealed,
    pub fingerprint: String,
}

/// Reads the contract of `stored` back from git and checks everything it is bound to.
///
/// # Errors
/// Integrity, naming what does not hold. Refused when there is no contract yet.
pub fn contract(repo: &Repository, trust: &Trust, stored: &Stored) -> Result<Verified> {
    let id = &stored.session.session_id;
    let Some(sealed) = sealed_at(repo, &stored.tip)? else {
        return Err(match &stored.session.contract {
            Some(_) => broken(&stored.session, "contract.json is gone").into(),
            None => Fault::refused(format!("session '{id}' has no contract yet"))
                .hint(format!("git relay status {id}"))
                .into(),
        });
    };
    let previous = previous_contract(repo, trust, stored)?;
    check(repo, trust, &stored.session, sealed, previous.as_ref())
        .map_err(|why| broken(&stored.session, &why).into())
}

fn broken(session: &Session, why: &str) -> Fault {
    let name = session.contract.as_ref().map_or("contract", |known| known.contract_id.as_str());
    Fault::integrity(format!("contract '{name}' of session '{}': {why}", session.session_id))
        .hint(format!("git relay verify {}", session.session_id))
}

/// The digest of the contract before the stored one, out of the chain.
fn previous_contract(repo: &Repository, trust: &Trust, stored: &Stored) -> Result<Option<Digest>> {
    let Some(current) = &stored.session.contract else { return Ok(None) };
    let mut commit = stored.tip.clone();
    while let Some(parent) = repo.read_commit(&commit)?.parents.first().cloned() {
        let earlier = load_at(repo, trust, &stored.session.session_id, &parent)?;
        match earlier.contract {
            Some(contract) if contract.leg < current.leg => return Ok(Some(contract.sha256)),
            Some(_) => commit = parent,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// All checks of one contract; the error is a fragment that says which one failed.
fn check(
    repo: &Repository,
    trust: &Trust,
    session: &Session,
    sealed: Sealed,
    previous: Option<&Digest>,
) -> Result<Verified, String> {
    let Some(known) = &session.contract else { return Err("the state names none".into()) };
    if sha256(&sealed.bytes) != known.sha256 {
        return Err("its bytes are not the ones the state names".into());
    }
    if sealed.bytes.len() > CORE_BYTES_MOST {
        return Err("it is longer than a contract may be".into());
    }
    let signer = sign::verify(&sealed.signature, CONTRACT_NAMESPACE, &sealed.bytes)
        .map_err(|error| format!("signature: {error}"))?;
    trust
        .check(&signer, CONTRACT_NAMESPACE, clock::now())
        .map_err(|error| format!("its key {}: {error}", signer.fingerprint()))?;
    let contract: Contract =
        canon::decode(&sealed.bytes).map_err(|error| format!("its record: {error}"))?;
    belongs(session, &contract, previous)?;
    exists(repo, session, &contract)?;
    attached(&sealed, &contract)?;
    Ok(Verified { contract, sealed, fingerprint: signer.fingerprint() })
}

/// Whether the contract is of this session, leg and place in the chain.
fn belongs(
    session: &Session,
    contract: &Contract,
    previous: Option<&Digest>,
) -> Result<(), String> {
    let known = session.contract.as_ref().ok_or("the state names none")?;
    if contract.format != CONTRACT_FORMAT {
        return Err(format!("its format is '{}'", contract.format));
    }
    if contract.session_id != session.session_id {
        return Err(format!("it belongs to session '{}'", contract.session_id));
    }
    if contract.contract_id != known.contract_id {
        return Err(format!("it is contract '{}'", contract.contract_id));
    }
    if contract.leg != known.leg {
        return Err(format!("it closes leg {}, not leg {}", contract.leg, known.leg));
    }
    // Once the next agent has taken over the session is one leg ahead of its contract.
    let ahead = match session.state {
        State::EnvelopeBuilt | State::Dispatched | State::Resuming => Some(0),
        State::Running | State::Pausing | State::Snapshotted => Some(1),
        State::Completed | State::Aborted => None,
    };
    if ahead.is_some_and(|ahead| known.leg + ahead != session.leg) {
        return Err(format!(
            "it closes leg {}, and the session is in leg {}",
            known.leg, session.leg
        ));
    }
    if contract.parent_contract.as_ref() != previous {
        return Err("its parent is not the contract before it".into());
    }
    if contract.base_commit != session.workplace.base_commit {
        return Err("its base commit is not the session's".into());
    }
    if contract.branch != session.workplace.branch {
        return Err("its branch is not the session's".into());
    }
    if contract.permission_level > session.permission_level {
        return Err("it grants more than the session has".into());
    }
    let snapshot = session.snapshot.as_ref().filter(|snapshot| snapshot.leg == contract.leg);
    match snapshot {
        Some(snapshot) if snapshot.commit != contract.snapshot_commit => {
            Err("its snapshot is not the session's".into())
        }
        Some(_) => Ok(()),
        None => Err("the state names no snapshot of its leg".into()),
    }
}

/// Whether what the contract is bound to exists in this repository.
fn exists(repo: &Repository, session: &Session, contract: &Contract) -> Result<(), String> {
    let words = |error: anyhow::Error| format!("{error:#}");
    if contract.repository.object_format != repo.object_format() {
        return Err(format!("it is of a {} repository", contract.repository.object_format));
    }
    let snapshot = repo
        .read_commit(&contract.snapshot_commit)
        .map_err(|_| format!("snapshot {} is not here", short(&contract.snapshot_commit)))?;
    if snapshot.tree != contract.snapshot_tree {
        return Err("the tree of its snapshot is another one".into());
    }
    repo.read_commit(&contract.base_commit)
        .map_err(|_| format!("base commit {} is not here", short(&contract.base_commit)))?;
    if !repo.is_ancestor(&contract.base_commit, &contract.snapshot_commit).map_err(words)? {
        return Err("its snapshot does not descend from its base commit".into());
    }
    let held = repo.read_ref(&snapshot_ref(&session.session_id, contract.leg)).map_err(words)?;
    if held.as_ref() != Some(&contract.snapshot_commit) {
        return Err("the snapshot ref does not hold its snapshot".into());
    }
    if !contract.repository.root_commits.is_empty() && !repo.is_shallow() {
        let roots = repo.root_commits(&contract.base_commit).map_err(words)?;
        // A contract names the first of very many roots only.
        if contract.repository.root_commits.iter().any(|root| !roots.contains(root)) {
            return Err("it is of another repository".into());
        }
    }
    Ok(())
}

fn attached(sealed: &Sealed, contract: &Contract) -> Result<(), String> {
    for named in &contract.attachments {
        let Some(bytes) = sealed.attachments.get(&named.name) else {
            return Err(format!("attachment '{}' is gone", named.name));
        };
        if sha256(bytes) != named.sha256 || bytes.len() as u64 != named.size_bytes {
            return Err(format!("attachment '{}' was changed", named.name));
        }
    }
    match sealed
        .attachments
        .keys()
        .find(|name| !contract.attachments.iter().any(|named| named.name == **name))
    {
        Some(name) => Err(format!("attachment '{name}' was added")),
        None => Ok(()),
    }
}

/// Checks that the whole chain below the tip was made step by step: every commit signed by a
/// believed key, every step one that can happen, and the ref not set back to an older state.
///
/// # Errors
/// Integrity, naming the state commit that does not hold.
pub fn chain(repo: &Repository, trust: &Trust, stored: &Stored) -> Result<()> {
    let id = &stored.session.session_id;
    let broken = |at: &Oid, why: String| {
        Fault::integrity(format!("state commit {} of session '{id}': {why}", short(at)))
            .hint(format!("git relay verify {id}"))
    };
    if let Some(why) = set_back(repo, &stored.session)? {
        return Err(broken(&stored.tip, why).into());
    }
    let mut at = stored.tip.clone();
    let mut later = stored.session.clone();
    loop {
        let parents = repo.read_commit(&at)?.parents;
        let Some(parent) = parents.first().cloned() else { break };
        let earlier = load_at(repo, trust, id, &parent)?;
        if let Some(why) = link_fault(&earlier, &later, parents.len()) {
            return Err(broken(&at, why).into());
        }
        (at, later) = (parent, earlier);
    }
    match root_fault(&later) {
        Some(why) => Err(broken(&at, why).into()),
        None => Ok(()),
    }
}

/// A snapshot of a leg that the session has not reached: its ref was set back to an older state,
/// with a signature that is good and a contract that is old.
fn set_back(repo: &Repository, session: &Session) -> Result<Option<String>> {
    let snapshots = repo.list_refs(&format!("{SNAPSHOTS}{}/", session.session_id))?;
    let legs = snapshots.iter().filter_map(|(name, _)| name.rsplit('/').next()?.parse().ok());
    let last: u32 = legs.max().unwrap_or(0);
    Ok((last > session.leg).then(|| {
        format!(
            "it is an old one: a snapshot of leg {last} exists, and it is in leg {}",
            session.leg
        )
    }))
}

/// Why `later` cannot be the step after `earlier`.
fn link_fault(earlier: &Session, later: &Session, parents: usize) -> Option<String> {
    if parents > 1 {
        return Some(format!("it has {parents} parents"));
    }
    if !fsm::may_follow(earlier.state, later.state) {
        return Some(format!("{} does not lead to {}", earlier.state, later.state));
    }
    if later.leg != earlier.leg + u32::from(later.begins_leg_after(earlier)) {
        return Some(format!("leg {} does not lead to leg {}", earlier.leg, later.leg));
    }
    let sealed = earlier.state == State::Snapshotted && later.state == State::EnvelopeBuilt;
    if !sealed && earlier.contract != later.contract {
        return Some(format!("{} to {} brings no contract", earlier.state, later.state));
    }
    let fixed = [
        (earlier.workplace == later.workplace, "its workplace"),
        (earlier.task == later.task, "its task"),
        (earlier.created_at == later.created_at, "its beginning"),
        (
            earlier.permission_level == later.permission_level
                || (earlier.is_interactive() && later.permission_level == PermissionLevel::Edit),
            "its permission level",
        ),
        (Adoption::goes_on(&earlier.adopted, &later.adopted), "what it adopts"),
    ];
    let changed = fixed.into_iter().find(|(same, _)| !same)?.1;
    Some(format!("{changed} was changed, which no step does"))
}

/// Why a chain cannot begin with `first`.
fn root_fault(first: &Session) -> Option<String> {
    let begins = first.state == State::Dispatched && first.leg == 0 && first.contract.is_none();
    (!begins).then(|| format!("a session does not begin in {}, leg {}", first.state, first.leg))
}

/// One thing that `verify` looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// `state a1b2c3`, `contract c-1234abcd`, `note on a1b2c3`.
    pub subject: String,
    /// The commit that a note is on.
    pub commit: Option<Oid>,
    /// `None` when it holds.
    pub fault: Option<String>,
    /// What helps, where something does.
    pub next: Option<String>,
    /// The leg whose contract holds while its note is gone: that can be written again.
    pub lost_note_of: Option<u32>,
}

impl Finding {
    pub fn new(subject: impl Into<String>, fault: Option<String>) -> Self {
        Self { subject: subject.into(), commit: None, fault, next: None, lost_note_of: None }
    }
}

/// Walks a session's chain from its tip and checks every state commit, every contract in it and
/// its note. Never stops at the first fault.
pub fn session(repo: &Repository, trust: &Trust, stored: &Stored) -> Result<Vec<Finding>> {
    let id = &stored.session.session_id;
    let mut findings = Vec::new();
    let mut later: Option<(Session, usize)> = None;
    let mut fault = set_back(repo, &stored.session)?;
    let mut commit = Some(stored.tip.clone());
    while let Some(at) = commit {
        let subject = format!("state {}", short(&at));
        let session = match load_at(repo, trust, id, &at) {
            Ok(session) => session,
            Err(error) => {
                findings.push(Finding::new(subject, Some(format!("{error:#}"))));
                break;
            }
        };
        let parents = repo.read_commit(&at)?.parents;
        // A step that does not hold is named at the later of its two states.
        if let Some((later, parents)) = &later
            && let Some(why) = link_fault(&session, later, *parents)
            && let Some(last) = findings.iter_mut().rfind(|f| f.subject.starts_with("state "))
        {
            last.fault.get_or_insert(why);
        }
        fault = fault.or_else(|| parents.is_empty().then(|| root_fault(&session)).flatten());
        let fault = fault.take();
        findings.push(Finding::new(subject, fault));
        if first_with_its_contract(repo, trust, &session, &at)? {
            let here = Stored { session: session.clone(), tip: at.clone() };
            findings.extend(contract_and_note(repo, trust, &here));
        }
        commit = parents.first().cloned();
        later = Some((session, parents.len()));
    }
    findings.reverse();
    findings.extend(wip(repo, &stored.session)?);
    Ok(findings)
}

/// The work in progress, if there is some: a commit that can be read and stands on the base.
fn wip(repo: &Repository, session: &Session) -> Result<Option<Finding>> {
    let Some(at) = repo.read_ref(&wip_ref(&session.session_id))? else { return Ok(None) };
    let base = &session.workplace.base_commit;
    let fault = match repo.is_ancestor(base, &at) {
        Ok(true) => None,
        Ok(false) => Some("it does not descend from the session's base commit".to_owned()),
        Err(error) => Some(format!("{error:#}")),
    };
    Ok(Some(Finding::new(format!("work in progress {}", short(&at)), fault)))
}

/// Whether `commit` is the one that brought in its contract.
fn first_with_its_contract(
    repo: &Repository,
    trust: &Trust,
    session: &Session,
    commit: &Oid,
) -> Result<bool> {
    if session.contract.is_none() {
        return Ok(false);
    }
    match repo.read_commit(commit)?.parents.first() {
        Some(parent) => Ok(load_at(repo, trust, &session.session_id, parent)
            .map_or(true, |earlier| earlier.contract != session.contract)),
        None => Ok(true),
    }
}

fn contract_and_note(repo: &Repository, trust: &Trust, stored: &Stored) -> Vec<Finding> {
    let name = stored.session.contract.as_ref().map_or("", |known| known.contract_id.as_str());
    let subject = format!("contract {name}");
    let verified = match contract(repo, trust, stored) {
        Ok(verified) => verified,
        Err(error) => {
            return vec![Finding::new(subject, Some(format!("{error:#}")))];
        }
    };
    let on = verified.contract.snapshot_commit.clone();
    let mut found = Finding::new(format!("note on {}", short(&on)), None);
    match note(repo, trust, &on, Some(&verified)) {
        Ok(Note::Holds) => {}
        // Before the driver's next step the note may be missing: it is a projection.
        Ok(Note::Gone) if stored.session.state == State::EnvelopeBuilt && is_tip(repo, stored) => {}
        Ok(Note::Gone) => {
            found.fault = Some("incomplete: the note is gone".into());
            found.next = Some("git relay doctor --fix".into());
            found.lost_note_of = Some(verified.contract.leg);
        }
        Ok(Note::Broken(why)) => {
            found.fault = Some(why);
            found.next = Some(format!(
                "git notes --ref=relay show {on}; to have it written anew: git notes --ref=relay remove {on}, then git relay doctor --fix"
            ));
        }
        Err(error) => found.fault = Some(format!("{error:#}")),
    }
    found.commit = Some(on);
    vec![Finding::new(subject, None), found]
}

fn is_tip(repo: &Repository, stored: &Stored) -> bool {
    repo.read_ref(&session_ref(&stored.session.session_id))
        .is_ok_and(|tip| tip.as_ref() == Some(&stored.tip))
}
