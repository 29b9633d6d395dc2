//! The project's key and the file that says who is believed.
//!
//! `<common git dir>/relay/project` names the project; its key lies in the user's data folder,
//! outside the repository, so that a sandbox can shut it off from an agent.

use crate::error::{Fault, of_the_machine};
use crate::git::{Repository, session_ref};
use crate::host::{env, files, random};
use crate::model::names::SessionId;
use crate::model::shell::shell_word;
use crate::model::sign::{self, GIT_NAMESPACE, PublicKey, SigningKey};
use crate::model::trust::{self, Trust};
use anyhow::Result;
use std::path::{Path, PathBuf};

const KEY_BYTES_MOST: u64 = 64 * 1024;
const TRUST_BYTES_MOST: u64 = 1024 * 1024;

/// The folder that holds all project keys; agents' sandboxes deny it.
pub fn key_folder() -> Result<PathBuf> {
    Ok(env::data_folder()?.join("keys"))
}

/// The allowed-signers file of this repository.
pub fn trust_path(repo: &Repository) -> PathBuf {
    repo.common_dir().join("relay/allowed_signers")
}

fn project_path(repo: &Repository) -> PathBuf {
    repo.common_dir().join("relay/project")
}

/// The project's id, 16 hex digits; `None` before `init`.
pub fn project(repo: &Repository) -> Result<Option<String>> {
    let Some(text) = files::read_text(&project_path(repo), 64)? else { return Ok(None) };
    let id = text.trim_end();
    // It becomes part of a path: nothing but hex may stand there.
    if id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(Some(id.to_owned()))
    } else {
        Err(Fault::integrity(format!(
            "'{}' does not hold a project id",
            project_path(repo).display()
        ))
        .hint("git relay init")
        .into())
    }
}

/// Where the key of this project lies.
pub fn key_path(repo: &Repository) -> Result<PathBuf> {
    let project = project(repo)?.ok_or_else(not_ready)?;
    Ok(key_folder()?.join(project).join("ed25519"))
}

fn not_ready() -> anyhow::Error {
    Fault::refused("this repository is not ready for relays").hint("git relay init").into()
}

/// The project's key.
pub fn load_key(repo: &Repository) -> Result<SigningKey> {
    let path = key_path(repo)?;
    let unusable = |why: String| {
        let (shown, word) = (path.display(), shell_word(&path));
        let old = shell_word(path.with_extension("old"));
        Fault::environment(format!("the key at '{shown}' cannot be used: {why}"))
            .hint(format!("put it back from a backup; or: mv {word} {old}, then: git relay init"))
    };
    let read = files::read_text(&path, KEY_BYTES_MOST);
    let Some(text) = read.map_err(|error| unusable(format!("{error:#}")))? else {
        return Err(Fault::environment(format!("there is no key at '{}'", path.display()))
            .hint("put it back from a backup; or have another made, and believed: git relay init")
            .into());
    };
    if text.trim().is_empty() {
        return Err(unusable("it is empty".to_owned()).into());
    }
    Ok(SigningKey::from_openssh_pem(&text).map_err(|error| unusable(error.to_string()))?)
}

/// Puts the key where it belongs, outside the repository.
fn keep_key(path: &Path, key: &SigningKey) -> Result<()> {
    let check = u32::from_le_bytes(random::bytes()?);
    let line = format!("{}\n", key.public().to_openssh_line("git-relay"));
    files::replace(path, key.to_openssh_pem("git-relay", check).as_bytes(), 0o600)
        .and_then(|()| files::replace(&path.with_extension("pub"), line.as_bytes(), 0o644))
        .map_err(|error| match of_the_machine(&error) {
            Some(_) => error,
            None => Fault::environment(format!("the key cannot be kept: {error:#}"))
                .hint("XDG_DATA_HOME=/a/folder/of/yours git relay init")
                .into(),
        })
}

/// Makes project id and key where they are missing, and believes the key; says what was made.
pub fn make(repo: &Repository) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    if project(repo)?.is_none() {
        files::replace(&project_path(repo), format!("{}\n", random::hex(16)?).as_bytes(), 0o644)?;
        made.push(project_path(repo));
    }
    let path = key_path(repo)?;
    let is_new = !path.exists();
    if is_new {
        keep_key(&path, &SigningKey::from_seed(random::bytes()?))?;
        made.push(path.clone());
    }
    let public = load_key(repo)?.public();
    let trust = load_trust(repo)?;
    // Only a key that was never here is added: one that was taken out of trust stays out.
    if is_new || !trust_path(repo).exists() {
        let mut lines = files::read_text(&trust_path(repo), TRUST_BYTES_MOST)?.unwrap_or_default();
        if !lines.is_empty() && !lines.ends_with('\n') {
            lines.push('\n');
        }
        lines.push_str(&trust::signer_line("relay", &public, "git-relay, made by init"));
        lines.push('\n');
        files::replace(&trust_path(repo), lines.as_bytes(), 0o644)?;
        made.push(trust_path(repo));
    } else if !trust.signers.iter().any(|signer| signer.key == public) {
        return Err(Fault::integrity("this repository's own key is not believed")
            .hint(format!("git relay trust --add {}", shell_word(path.with_extension("pub"))))
            .into());
    }
    Ok(made)
}

/// A key that signed sessions of this repository and is not believed here.
#[derive(Debug)]
pub struct Stranger {
    pub fingerprint: String,
    pub sessions: Vec<SessionId>,
    /// Its public half among the user's own keys, where it is one of them.
    pub path: Option<PathBuf>,
}

/// The keys of sessions here that are not believed: what a lost trust file, or a fetch, leaves.
pub fn strangers(repo: &Repository, trust: &Trust) -> Result<Vec<Stranger>> {
    let mut found: Vec<Stranger> = Vec::new();
    for id in super::list(repo)? {
        let Some(tip) = repo.read_ref(&session_ref(&id))? else { continue };
        let Ok(commit) = repo.read_commit(&tip) else { continue };
        let Some(signature) = commit.signature.as_deref() else { continue };
        let Ok(key) = sign::verify(signature, GIT_NAMESPACE, &commit.signed_payload) else {
            continue;
        };
        if trust.signers.iter().any(|signer| signer.key == key) {
            continue;
        }
        let fingerprint = key.fingerprint();
        match found.iter_mut().find(|known| known.fingerprint == fingerprint) {
            Some(known) => known.sessions.push(id),
            None => {
                let path = own_public(&key);
                found.push(Stranger { fingerprint, sessions: vec![id], path });
            }
        }
    }
    Ok(found)
}

/// The file of a public key, if it is that of one of the user's projects.
fn own_public(key: &PublicKey) -> Option<PathBuf> {
    let projects = std::fs::read_dir(key_folder().ok()?).ok()?.flatten();
    projects.map(|project| project.path().join("ed25519.pub")).find(|path| {
        let text = files::read_text(path, KEY_BYTES_MOST).ok().flatten().unwrap_or_default();
        PublicKey::from_openssh_line(text.trim_end()).is_ok_and(|found| found == *key)
    })
}

/// Who is believed; nobody before `init`.
pub fn load_trust(repo: &Repository) -> Result<Trust> {
    let text = files::read_text(&trust_path(repo), TRUST_BYTES_MOST)?.unwrap_or_default();
    Ok(Trust::parse(&text))
}
