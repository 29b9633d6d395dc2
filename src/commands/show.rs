//! `git relay show`

use super::open_hub;
use crate::cli::Show;
use crate::host::files;
use crate::relay::{ask, hooks, render};
use crate::store::audit;
use crate::ui::out;
use anyhow::Result;

pub(super) fn run(args: &Show) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref(), "git relay show NAME")?;
    let at = hub.contract_of(&hub.load(&id)?, args.leg)?;
    let verified = audit::contract(&hub.repo, &hub.trust, &at)?;
    if let Some(folder) = &args.export {
        let write = |name: &str, bytes: &[u8]| files::replace(&folder.join(name), bytes, 0o644);
        write("contract.json", &verified.sealed.bytes)?;
        write("contract.json.sig", verified.sealed.signature.as_bytes())?;
        for (name, bytes) in &verified.sealed.attachments {
            write(name, bytes)?;
        }
        out::say(format!(
            "wrote contract.json, contract.json.sig and attachments to {}",
            folder.display()
        ));
        return Ok(0);
    }
    if args.json {
        out::data(&verified.sealed.bytes)?;
        return Ok(0);
    }
    if args.envelope {
        let relay = hooks::program_link(hub.repo.common_dir());
        out::data(render(&verified, &relay.to_string_lossy()).as_bytes())?;
        return Ok(0);
    }
    let value: serde_json::Value = serde_json::from_slice(&verified.sealed.bytes)?;
    for line in serde_json::to_string_pretty(&value)?.lines() {
        out::line(line)?;
    }
    out::say(format!("verified: signed by {}", verified.fingerprint));
    Ok(0)
}
