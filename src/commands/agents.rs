//! `git relay agents`

use super::open_hub;
use crate::agents::{Pause, Seat};
use crate::cli::Listing;
use crate::model::screen;
use crate::model::session::PermissionLevel;
use crate::relay::start;
use crate::ui::out;
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Listing) -> Result<u8> {
    let hub = open_hub()?;
    let mut rows = Vec::new();
    let mut values = Vec::new();
    let mut hints = Vec::new();
    for seat in Seat::all(&hub.settings) {
        let obstacles = start::obstacles(&hub, &seat.name, PermissionLevel::Edit, false)?;
        let place = hub.settings.agents.iter().position(|agent| *agent == seat.name);
        let pause = match seat.agent.pause {
            Pause::Answer { .. } => "its hook",
            Pause::AnswerThenInterrupt { .. } => "its hook, then a signal",
            Pause::Interrupt => "a signal",
        };
        rows.push(vec![
            seat.name.to_string(),
            place.map_or("not in your order".into(), |place| format!("number {}", place + 1)),
            if obstacles.is_empty() { "could start now" } else { "could not start now" }.to_owned(),
            format!("paused by {pause}"),
        ]);
        values.push(json!({
            "name": seat.name, "title": seat.agent.title, "program": seat.program(),
            "order": place.map(|place| place + 1),
            "obstacles": obstacles.iter().map(|o| json!({"what": o.what, "hint": o.hint})).collect::<Vec<_>>(),
            "readsTranscript": seat.agent.transcript.is_some(),
        }));
        hints.extend(obstacles.into_iter().map(|obstacle| {
            let what = screen::first_chars(&screen::line(&obstacle.what), 200);
            format!("{what}\nhint: {}", obstacle.hint)
        }));
    }
    if args.json {
        out::json("agents", &values)?;
    } else {
        out::data(out::table(&rows).as_bytes())?;
    }
    for line in hints.iter().flat_map(|hint| hint.lines()) {
        out::say(line);
    }
    Ok(0)
}
