//! `git relay abort`

use super::open_hub;
use crate::cli::Abort;
use crate::relay::{Driver, Options, ask};
use crate::ui::{out, progress};
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Abort) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_to_end(&hub, args.session.as_deref(), "git relay abort NAME")?;
    // The only one that is open may be another than is meant: at work it is ended by its name.
    if !args.dry_run && args.session.is_some() {
        hub.stop_driver(&id, |pid| {
            out::say(format!("relay: process {pid} drives it, and is asked to end its agent"));
        })?;
    }
    let mut report = progress::tell;
    let mut driver = Driver::take(&hub, &id, "abort", Options::default(), &mut report)?;
    let aborted = if args.dry_run { driver.abort_preview()? } else { driver.abort()? };
    if args.json {
        let value = json!({
            "sessionId": id, "dryRun": args.dry_run, "kept": aborted.kept,
            "agentEnds": aborted.agent_ends,
        });
        out::json("abort", &value)?;
    }
    if args.dry_run {
        let (worktree, branch) = (driver.worktree(), &driver.session().workplace.branch);
        if aborted.agent_ends {
            out::say("relay: would end the agent at work");
        }
        out::say(format!("relay: would remove the worktree {} and {branch}", worktree.display()));
    }
    let stays = if args.dry_run { "would stay" } else { "stays" };
    for name in &aborted.kept {
        out::say(format!("relay: its work {stays} reachable as {name}"));
    }
    Ok(0)
}
