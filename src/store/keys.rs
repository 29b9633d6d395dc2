//! The project's key and the file that says who is believed.
//!
//! `<common git dir>/relay/project` names the project; its key lies in the user's data folder,
//! outside the repository, so that a sandbox can shut it off from an agent.

use crate::error::Fault;
use crate::git::Repository;
use crate::host::{env, files, random};
use crate::model::sign::SigningKey;
use crate::model::trust::{self, Trust};
use anyhow::{Context, Result};
use std::path::PathBuf;

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
    let Some(text) = files::read_text(&path, KEY_BYTES_MOST)? else {
        return Err(Fault::environment(format!("there is no key at '{}'", path.display()))
            .hint("git relay init")
            .into());
    };
    SigningKey::from_openssh_pem(&text)
        .with_context(|| format!("the key at '{}' cannot be used", path.display()))
}

/// Makes project id and key where they are missing, and believes the key; says what was made.
pub fn make(repo: &Repository) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    if project(repo)?.is_none() {
        files::replace(&project_path(repo), format!("{}\n", random::hex(16)?).as_bytes(), 0o644)?;
        made.push(project_path(repo));
    }
    let path = key_path(repo)?;
    if !path.exists() {
        let key = SigningKey::from_seed(random::bytes()?);
        let check = u32::from_le_bytes(random::bytes()?);
        files::replace(&path, key.to_openssh_pem("git-relay", check).as_bytes(), 0o600)?;
        let public = path.with_extension("pub");
        let line = format!("{}\n", key.public().to_openssh_line("git-relay"));
        files::replace(&public, line.as_bytes(), 0o644)?;
        made.push(path.clone());
    }
    let public = load_key(repo)?.public();
    let trust = load_trust(repo)?;
    // Only a key that was never here is added: one that was taken out of trust stays out.
    if !trust_path(repo).exists() {
        let line = trust::signer_line("relay", &public, "git-relay, made by init");
        files::replace(&trust_path(repo), format!("{line}\n").as_bytes(), 0o644)?;
        made.push(trust_path(repo));
    } else if !trust.signers.iter().any(|signer| signer.key == public) {
        return Err(Fault::integrity("this repository's own key is not believed")
            .hint(format!("git relay trust --add '{}'", path.with_extension("pub").display()))
            .into());
    }
    Ok(made)
}

/// Who is believed; nobody before `init`.
pub fn load_trust(repo: &Repository) -> Result<Trust> {
    let text = files::read_text(&trust_path(repo), TRUST_BYTES_MOST)?.unwrap_or_default();
    Ok(Trust::parse(&text))
}
