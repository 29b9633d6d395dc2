//! Any program the user describes under `[agent.NAME]` in the user's own configuration, so that an
//! agent nobody wrote an adapter for can take part.
//!
//! It has no hook and no transcript that we read: what it tells is what its lines on standard
//! output match, and what it states through `git relay record`.

use super::{
    Agent, AtTerminal, Ground, Launch, Obstacle, ObstacleKind, Order, Pause, Seat, not_installed,
};
use crate::error::Fault;
use crate::host::config::PromptBy;
use crate::model::quota::{Reading, permille};
use crate::model::session::PermissionLevel;
use crate::model::time::Timestamp;
use crate::model::transcript::{Ending, Sign, Trouble};
use anyhow::Result;
use regex::{Captures, Regex};
use std::cell::RefCell;
use std::collections::HashMap;

pub static AGENT: Agent = Agent {
    name: "custom",
    title: "a program of your own",
    binary: "",
    obstacles,
    launch,
    terminal: AtTerminal { launch: at_terminal, session: None, keep: None, print: None },
    signs,
    transcript_signs: None,
    transcript: None,
    store: None,
    fold: None,
    keeps: None,
    pause: Pause::Interrupt,
    caller: None,
    debris: &[],
};

fn obstacles(seat: &Seat, ground: &Ground<'_>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if seat.program().is_none() {
        found.push(not_installed(seat));
    }
    // We know no sandbox for it: what it may do is what the user's description lets it do.
    if ground.level == PermissionLevel::Read {
        found.push(Obstacle {
            kind: ObstacleKind::Level,
            what: format!("'{}' cannot be held to reading", seat.name),
            hint: "use --level edit, or another agent".into(),
        });
    }
    if ground.level == PermissionLevel::All && !seat.table.all {
        found.push(Obstacle {
            kind: ObstacleKind::Level,
            what: format!("'{}' may not have the level 'all'", seat.name),
            hint: format!(
                "write all = true under [agent.{}] in your own configuration, or use --level edit",
                seat.name
            ),
        });
    }
    for (key, pattern) in [("receipt", &seat.table.receipt), ("done", &seat.table.done)] {
        if pattern.is_none() {
            found.push(Obstacle {
                kind: ObstacleKind::NotInstalled,
                what: format!("agent '{}' has no '{key}': it could never take over", seat.name),
                hint: format!("write it under [agent.{}] in your configuration", seat.name),
            });
        }
    }
    let words = seat.table.command.as_deref().unwrap_or_default();
    if seat.table.prompt == PromptBy::File && !words.iter().any(|w| w.contains("{prompt_file}")) {
        found.push(Obstacle {
            kind: ObstacleKind::NotInstalled,
            what: format!("the command of '{}' does not name {{prompt_file}}", seat.name),
            hint: format!("look at [agent.{}] in your configuration", seat.name),
        });
    }
    found
}

fn launch(seat: &Seat, order: &Order<'_>) -> Result<Launch> {
    let command = seat.table.command.as_ref().ok_or_else(|| {
        Fault::usage(format!("agent '{}' has no 'command'", seat.name))
            .hint(format!("write it under [agent.{}] in your configuration", seat.name))
    })?;
    let fill = |word: &String| {
        word.replace("{prompt_file}", &order.prompt_file.to_string_lossy())
            .replace("{worktree}", &order.worktree.to_string_lossy())
            .replace("{session}", order.session.as_str())
            .replace("{nonce}", order.nonce.as_str())
    };
    let mut argv: Vec<_> = command.iter().map(|word| fill(word).into()).collect();
    argv[0] = order.program.into();
    Ok(Launch {
        argv,
        prompt_on_stdin: seat.table.prompt == PromptBy::Stdin,
        warnings: vec![format!("'{}' runs without a sandbox of ours", seat.name)],
        ..Launch::default()
    })
}

/// The same command; what it would be given on standard input it finds in a file, as others do.
fn at_terminal(seat: &Seat, order: &Order<'_>) -> Result<Launch> {
    let warnings = match seat.table.prompt {
        PromptBy::Stdin => vec![format!(
            "'{}' finds its task in {} here: its standard input is your terminal (Ctrl-D ends one \
             that waits for more)",
            seat.name, order.shown_file
        )],
        PromptBy::File => Vec::new(),
    };
    Ok(Launch { prompt_on_stdin: false, warnings, ..launch(seat, order)? })
}

thread_local! {
    /// Compiled patterns: a stream has many lines and a handful of patterns.
    static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
}

fn compiled(pattern: &str) -> Option<Regex> {
    COMPILED.with_borrow_mut(|known| match known.get(pattern) {
        Some(regex) => regex.clone(),
        None => {
            let regex = Regex::new(pattern).ok();
            known.insert(pattern.to_owned(), regex.clone());
            regex
        }
    })
}

fn signs(seat: &Seat, line: &[u8], now: Timestamp) -> Vec<Sign> {
    let line = String::from_utf8_lossy(line);
    let table = &seat.table;
    let hit = |pattern: &Option<String>| {
        pattern.as_deref().and_then(compiled).is_some_and(|p| p.is_match(&line))
    };
    let mut signs = Vec::new();
    // Without a pattern, any line is a sign of life.
    if table.start.is_none() || hit(&table.start) {
        signs.push(Sign::Started { agent_session: None });
    }
    if hit(&table.receipt) {
        signs.push(Sign::ModelMade);
    }
    let captures = table.reading.as_deref().and_then(compiled);
    if let Some(found) = captures.as_ref().and_then(|pattern| pattern.captures(&line)) {
        signs.extend(reading(seat, &found, now).map(Sign::Reading));
    }
    let text = || line.trim().to_owned();
    if hit(&table.limit) {
        let trouble = Trouble::Limit { resets_at: None, text: text() };
        signs.push(Sign::Ended(Ending::Trouble(trouble)));
    } else if hit(&table.failed) {
        signs.push(Sign::Ended(Ending::Trouble(Trouble::Other(text()))));
    } else if hit(&table.asks) {
        signs.push(Sign::Ended(Ending::Asks(text())));
    } else if hit(&table.done) {
        signs.push(Sign::Ended(Ending::TurnEnded));
    }
    signs
}

fn reading(seat: &Seat, found: &Captures<'_>, now: Timestamp) -> Option<Reading> {
    let number = |name| found.name(name).and_then(|text| text.as_str().parse::<f64>().ok());
    Some(Reading {
        source: seat.name.to_string(),
        window_minutes: number("window").map_or(300, |minutes| minutes as u32),
        used_permille: permille(number("used")?, 10.0)?,
        resets_at: number("resets").and_then(|seconds| Timestamp::from_epoch(seconds as i64)),
        observed_at: now,
    })
}
