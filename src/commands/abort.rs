//! `git relay abort`

use super::open_hub;
use crate::cli::Abort;
use crate::relay::{Driver, Options, ask};
use crate::ui::{out, progress};
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Abort) -> Result<u8> {
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref())?;
    let mut report = progress::tell;
    let mut driver = Driver::take(&hub, &id, "abort", Options::default(), &mut report)?;
    let kept = driver.abort()?;
    if args.json {
        out::json("abort", &json!({"sessionId": id, "kept": kept}))?;
    }
    for name in &kept {
        out::say(format!("relay: its work stays reachable as {name}"));
    }
    Ok(0)
}
