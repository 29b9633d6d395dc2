//! `git relay finish`

use super::open_hub;
use crate::cli::Finish;
use crate::relay::finish::Order;
use crate::relay::{Driver, Options, ask};
use crate::ui::{out, progress};
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Finish) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref())?;
    let mut report = progress::tell;
    let mut driver = Driver::take(&hub, &id, "finish", Options::default(), &mut report)?;
    let order = Order {
        into: args.into.clone(),
        message: args.message.clone(),
        include_snapshot: args.include_snapshot,
    };
    let finished = driver.finish(&order)?;
    if args.json {
        let value = json!({
            "sessionId": id, "branch": finished.branch, "commit": finished.commit,
            "kept": finished.kept, "leftOut": finished.left_out,
        });
        out::json("finish", &value)?;
    }
    for path in &finished.left_out {
        out::say(format!("relay: left out, since no agent committed it: {path}"));
    }
    if !finished.left_out.is_empty() {
        out::say(format!("relay: to have it: git checkout {} -- PATH", finished.kept));
    }
    match &finished.commit {
        Some(commit) => {
            out::say(format!("relay: {} is now {}", finished.branch, &commit.as_str()[..10]));
        }
        None => out::say(format!("relay: {} has all of it already", finished.branch)),
    }
    out::say(format!("relay: every commit of the session stays reachable as {}", finished.kept));
    Ok(0)
}
