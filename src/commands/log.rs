//! `git relay log`

use super::open_hub;
use crate::cli::Log;
use crate::git::session_ref;
use crate::model::names::Oid;
use crate::relay::ask;
use crate::store::{self, keys, short};
use crate::ui::out;
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Log) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref(), "git relay log NAME")?;
    let stored = hub.load(&id)?;
    if args.signatures {
        let command = [
            "-c".to_owned(),
            format!("gpg.ssh.allowedSignersFile={}", keys::trust_path(&hub.repo).display()),
            "log".into(),
            "--show-signature".into(),
            "--first-parent".into(),
            session_ref(&id),
        ];
        out::say(format!(
            "git -c gpg.ssh.allowedSignersFile=\"$(git relay trust --path)\" log --show-signature \
             --first-parent {}",
            session_ref(&id)
        ));
        out::data(&hub.repo.git(command).run()?)?;
        return Ok(0);
    }
    let mut entries = Vec::new();
    let mut at: Option<Oid> = Some(stored.tip.clone());
    while let Some(oid) = at {
        let session = store::load_at(&hub.repo, &hub.trust, &id, &oid)?;
        let commit = hub.repo.read_commit(&oid)?;
        let event = store::event_word(&commit.message).to_owned();
        entries.push((oid, event, session));
        at = commit.parents.first().cloned();
    }
    if args.json {
        let rows: Vec<_> = entries
            .iter()
            .map(|(oid, event, session)| {
                json!({
                    "commit": oid, "event": event, "state": session.state, "leg": session.leg,
                    "agent": session.agent(), "at": session.updated_at,
                    "contractId": session.contract.as_ref().map(|known| &known.contract_id),
                })
            })
            .collect();
        out::json("log", &rows)?;
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|(oid, event, session)| {
            vec![
                short(oid).to_owned(),
                session.updated_at.to_string(),
                session.state.to_string(),
                format!("leg {}", session.leg),
                session.agent().map_or("-".into(), ToString::to_string),
                event.clone(),
            ]
        })
        .collect();
    out::data(out::table(&rows).as_bytes())?;
    Ok(0)
}
