//! Sessions in refs: `refs/relay/sessions/<session>` is a chain of signed commits, one per step,
//! and the whole truth about a session. One compare-and-swap of that ref is the step; nothing
//! here decides what the step is.
//!
//! Tree of a state commit: `state.json`, and from ENVELOPE_BUILT on `contract.json`,
//! `contract.sig` and `attachments/`.

pub mod audit;
pub mod keys;

use crate::error::Fault;
use crate::git::refs::{MOVED, SESSIONS};
use crate::git::{Repository, session_ref};
use crate::host::clock;
use crate::model::canon;
use crate::model::names::{Oid, SessionId};
use crate::model::session::{STATE_FORMAT, Session};
use crate::model::shell::shell_word;
use crate::model::sign::{self, GIT_NAMESPACE, SigningKey};
use crate::model::trust::Trust;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

const STATE_FILE: &str = "state.json";
const CONTRACT_FILE: &str = "contract.json";
const SIGNATURE_FILE: &str = "contract.sig";
const ATTACHMENTS: &str = "attachments/";

/// A contract as it is stored: the bytes that were signed, never a re-encoding of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub bytes: Vec<u8>,
    /// Armored SSHSIG over `bytes`.
    pub signature: String,
    /// By name, without the folder.
    pub attachments: BTreeMap<String, Vec<u8>>,
}

/// A session as it was loaded: its tip was signed by a believed key and read strictly.
#[derive(Clone, Debug)]
pub struct Stored {
    pub session: Session,
    pub tip: Oid,
}

/// Reads the session's tip and checks its signature.
///
/// # Errors
/// Refused: no such session. Integrity: unsigned, signed by a key that is not believed, not
/// exactly the bytes we write, or a record of another session.
pub fn load(repo: &Repository, trust: &Trust, id: &SessionId) -> Result<Stored> {
    let name = session_ref(id);
    let Some(tip) = repo.read_ref(&name)? else {
        let lost = list_lost(repo, trust)?.into_iter().find(|lost| lost.id == *id);
        return Err(lost
            .map_or_else(
                || Fault::refused(format!("there is no session '{id}'")).hint("git relay list"),
                |lost| lost.fault,
            )
            .into());
    };
    let session = load_at(repo, trust, id, &tip)?;
    Ok(Stored { session, tip })
}

/// Reads one state commit of the chain of `id`, as [`load`] does the tip.
pub fn load_at(repo: &Repository, trust: &Trust, id: &SessionId, commit: &Oid) -> Result<Session> {
    let broken = |why: String| {
        Fault::integrity(format!("state commit {} of session '{id}': {why}", short(commit)))
            .hint(format!("git relay verify {id}"))
    };
    let found = repo.read_commit(commit).map_err(|error| broken(format!("{error:#}")))?;
    let signature = found.signature.as_deref().ok_or_else(|| broken("it is not signed".into()))?;
    let signer = sign::verify(signature, GIT_NAMESPACE, &found.signed_payload)
        .map_err(|error| broken(error.to_string()))?;
    trust
        .check(&signer, GIT_NAMESPACE, clock::now())
        .map_err(|error| broken(format!("its key {}: {error}", signer.fingerprint())))?;
    let bytes = repo
        .read_tree_file(&found.tree, STATE_FILE)
        .map_err(|error| broken(format!("{error:#}")))?
        .ok_or_else(|| broken(format!("it has no {STATE_FILE}")))?;
    let session: Session =
        canon::decode(&bytes).map_err(|error| broken(format!("{STATE_FILE}: {error}")))?;
    if session.format != STATE_FORMAT {
        return Err(broken(format!("its format is '{}'", session.format)).into());
    }
    if session.session_id != *id {
        return Err(broken(format!("it belongs to session '{}'", session.session_id)).into());
    }
    Ok(session)
}

/// A session whose ref is gone or torn.
#[derive(Debug)]
pub struct Lost {
    pub id: SessionId,
    /// Its last state, where it is known.
    pub kept: Option<Oid>,
    pub fault: Fault,
}

/// Sessions whose ref is gone and whose last state their driver kept, or whose ref is torn.
pub fn list_lost(repo: &Repository, trust: &Trust) -> Result<Vec<Lost>> {
    let mut found = Vec::new();
    for (name, kept) in repo.list_refs(MOVED)? {
        let Some(id) = name.strip_prefix(MOVED).and_then(SessionId::new) else { continue };
        if repo.read_ref(&session_ref(&id))?.is_none() {
            let fault = lost(&id, &kept, "it is gone");
            found.push(Lost { id, kept: Some(kept), fault });
        }
    }
    for (name, file) in repo.torn_refs(SESSIONS)? {
        let Some(id) = name.strip_prefix(SESSIONS).and_then(SessionId::new) else { continue };
        if found.iter().any(|lost| lost.id == id) {
            continue;
        }
        let kept = newest_state(repo, trust, &id)?;
        found.push(Lost { fault: torn(&id, &file, kept.as_ref()), id, kept });
    }
    Ok(found)
}

/// The newest state of the session among all commits here that hold.
fn newest_state(repo: &Repository, trust: &Trust, id: &SessionId) -> Result<Option<Oid>> {
    let mut all = repo.commits_that_say(&format!("Session: {id}"))?;
    all.retain(|commit| load_at(repo, trust, id, commit).is_ok());
    let mut before = Vec::new();
    for commit in &all {
        before.extend(repo.read_commit(commit)?.parents);
    }
    all.retain(|commit| !before.contains(commit));
    // Two that nothing follows: a step that lost a race, say. Which of them held nobody can tell.
    Ok(all.pop().filter(|_| all.is_empty()))
}

fn torn(id: &SessionId, file: &Path, kept: Option<&Oid>) -> Fault {
    let (name, shown) = (session_ref(id), shell_word(file));
    let what = format!("the ref of session '{id}' is an empty file: the machine stopped at it");
    match kept {
        Some(kept) => Fault::integrity(format!("{what}; the newest state here is {}", short(kept)))
            .hint(format!(
                "rm {shown} && git update-ref {name} {kept}, then: git relay resume {id}"
            )),
        None => Fault::integrity(format!("{what}; which state was its last cannot be told")).hint(
            format!(
                "git fsck --lost-found names the commits there are; rm {shown} gives the session up"
            ),
        ),
    }
}

/// The ref of a session is not where its driver put it (`found` says where it is): what `kept`
/// names is the last state.
pub fn lost(id: &SessionId, kept: &Oid, found: &str) -> Fault {
    let name = session_ref(id);
    Fault::integrity(format!(
        "somebody other than its driver moved `{name}`: {found}; its last state is {}",
        short(kept)
    ))
    .hint(format!("git update-ref {name} {kept}, then: git relay resume {id}"))
}

/// Every session of the repository, by id.
pub fn list(repo: &Repository) -> Result<Vec<SessionId>> {
    Ok(repo
        .list_refs(SESSIONS)?
        .into_iter()
        .filter_map(|(name, _)| SessionId::new(name.strip_prefix(SESSIONS)?))
        .collect())
}

/// Moves the session's ref from `expected` to a new signed commit that holds `session`: the step.
///
/// What was written before the step (snapshot objects, say) is made durable with it. A new
/// contract comes as `sealed`; else the one in the tree of `expected` is carried on.
///
/// # Errors
/// Raced: the ref is not at `expected`.
pub fn save(
    repo: &Repository,
    key: &SigningKey,
    session: &Session,
    event: &str,
    actor: &str,
    expected: Option<&Oid>,
    sealed: Option<&Sealed>,
) -> Result<Oid> {
    let mut files: BTreeMap<String, Oid> = match expected {
        Some(commit) => repo.list_tree(commit)?.into_iter().collect(),
        None => BTreeMap::new(),
    };
    if let Some(sealed) = sealed {
        files.clear();
        files.insert(CONTRACT_FILE.into(), repo.write_blob(&sealed.bytes)?);
        files.insert(SIGNATURE_FILE.into(), repo.write_blob(sealed.signature.as_bytes())?);
        for (name, bytes) in &sealed.attachments {
            files.insert(format!("{ATTACHMENTS}{name}"), repo.write_blob(bytes)?);
        }
    }
    let state = canon::encode(session).context("a session can be encoded")?;
    // What is signed must be readable: a state that is not would end the session for good.
    canon::decode::<Session>(&state).context("a state can be read back")?;
    files.insert(STATE_FILE.into(), repo.write_blob(&state)?);
    let tree = repo.write_tree(&files)?;
    let parents: Vec<Oid> = expected.into_iter().cloned().collect();
    let message = format!(
        "relay: {event}\n\nSession: {}\nState: {}\nLeg: {}\nActor: {actor}\n",
        session.session_id, session.state, session.leg
    );
    let payload = repo.commit_payload(&tree, &parents, &message, session.updated_at.0);
    let signature = key.sign(GIT_NAMESPACE, &payload);
    let commit = repo.write_signed_commit(&payload, &signature)?;
    repo.durable()?;
    repo.swap_own_ref(&session_ref(&session.session_id), &commit, expected, event)?;
    Ok(commit)
}

/// The contract stored in a state commit, unverified; `None` before ENVELOPE_BUILT.
pub fn sealed_at(repo: &Repository, commit: &Oid) -> Result<Option<Sealed>> {
    let Some(bytes) = repo.read_tree_file(commit, CONTRACT_FILE)? else { return Ok(None) };
    let signature = repo.read_tree_file(commit, SIGNATURE_FILE)?.unwrap_or_default();
    let mut attachments = BTreeMap::new();
    for (path, blob) in repo.list_tree(commit)? {
        if let Some(name) = path.strip_prefix(ATTACHMENTS) {
            attachments.insert(name.to_owned(), repo.read_blob(&blob)?);
        }
    }
    // A signature that is not text cannot verify; the check that follows says so.
    let signature = String::from_utf8(signature).unwrap_or_default();
    Ok(Some(Sealed { bytes, signature, attachments }))
}

/// The event out of a state commit's message.
pub fn event_word(message: &str) -> &str {
    message.lines().next().and_then(|subject| subject.strip_prefix("relay: ")).unwrap_or("?")
}

/// The first digits of an object id, as people read it.
pub fn short(oid: &Oid) -> &str {
    &oid.as_str()[..10]
}
