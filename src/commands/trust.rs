//! `git relay trust`

use super::open_hub;
use crate::cli::Trust;
use crate::error::Fault;
use crate::host::files;
use crate::model::sign::PublicKey;
use crate::model::trust::{self, Trust as Known};
use crate::relay::{Hub, not_in_a_leg};
use crate::store::keys;
use crate::ui::out;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

pub(super) fn run(args: &Trust) -> Result<u8> {
    let hub = open_hub()?;
    if args.path {
        out::line(keys::trust_path(&hub.repo).to_string_lossy())?;
        return Ok(0);
    }
    if args.add.is_some() || args.remove.is_some() {
        not_in_a_leg()?;
    }
    if let Some(file) = &args.add {
        return add(&hub, file, &args.principal);
    }
    if let Some(fingerprint) = &args.remove {
        return remove(&hub, fingerprint);
    }
    if args.json {
        let signers: Vec<_> = hub
            .trust
            .signers
            .iter()
            .map(|signer| {
                json!({
                    "principals": signer.principals, "namespaces": signer.namespaces,
                    "fingerprint": signer.key.fingerprint(),
                })
            })
            .collect();
        out::json("signers", &signers)?;
        return Ok(0);
    }
    for signer in &hub.trust.signers {
        out::line(format!("{}  {}", signer.key.fingerprint(), signer.principals.join(",")))?;
    }
    for warning in &hub.trust.warnings {
        out::say(format!("warning: {warning}"));
    }
    Ok(0)
}

fn add(hub: &Hub, file: &Path, principal: &str) -> Result<u8> {
    let text = files::read_text(file, 64 * 1024)?.ok_or_else(|| {
        Fault::refused(format!("there is no file '{}'", file.display())).hint("ls ~/.ssh/*.pub")
    })?;
    let key = PublicKey::from_openssh_line(text.trim_end()).map_err(|error| {
        Fault::refused(format!("'{}' holds no Ed25519 public key: {error}", file.display()))
            .hint("ssh-keygen -t ed25519")
    })?;
    if hub.trust.signers.iter().any(|signer| signer.key == key) {
        out::say(format!("{} is believed already", key.fingerprint()));
        return Ok(0);
    }
    let path = keys::trust_path(&hub.repo);
    let mut lines = files::read_text(&path, 1 << 20)?.unwrap_or_default();
    if !lines.is_empty() && !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines.push_str(&trust::signer_line(principal, &key, "added by git relay trust"));
    lines.push('\n');
    files::replace(&path, lines.as_bytes(), 0o644)?;
    out::say(format!("{} is believed from now on", key.fingerprint()));
    Ok(0)
}

fn remove(hub: &Hub, fingerprint: &str) -> Result<u8> {
    let path = keys::trust_path(&hub.repo);
    let text = files::read_text(&path, 1 << 20)?.unwrap_or_default();
    let names = |line: &str| {
        Known::parse(line).signers.iter().any(|signer| signer.key.fingerprint() == fingerprint)
    };
    let kept: String =
        text.lines().filter(|line| !names(line)).map(|line| format!("{line}\n")).collect();
    if kept == text {
        return Err(Fault::refused(format!("no believed key has the fingerprint '{fingerprint}'"))
            .hint("git relay trust")
            .into());
    }
    files::replace(&path, kept.as_bytes(), 0o644)?;
    out::say(format!("{fingerprint} is believed no more"));
    Ok(0)
}
