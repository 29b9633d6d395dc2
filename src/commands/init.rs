//! `git relay init`

use super::{no_commit_yet, open_repository};
use crate::agents::Seat;
use crate::cli::Init;
use crate::error::Fault;
use crate::git::Repository;
use crate::git::hook_file::Way;
use crate::host::{clock, config, files, lock};
use crate::model::names::{AgentName, SessionId};
use crate::model::shell::shell_word;
use crate::relay::start::{TO_BE_KNOWN, nobody_commits};
use crate::relay::{hooks, not_in_a_leg};
use crate::store::keys;
use crate::ui::out;
use anyhow::Result;
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn run(args: &Init) -> Result<u8> {
    // Who may receive work is not for an agent to say.
    not_in_a_leg()?;
    let repo = open_repository()?;
    if args.remove_hooks {
        return remove_hooks(&repo);
    }
    repo.can_relay()?;
    if repo.head_commit()?.is_none() {
        return Err(no_commit_yet(&repo)?);
    }
    let settings = config::load(repo.common_dir(), repo.main_work_tree())?;
    let wanted = config::names(args.agents.clone())?;
    for agent in &wanted {
        if Seat::find(&settings, agent).is_none() {
            return Err(Fault::usage(format!("no agent is called '{agent}'"))
                .hint("git relay agents")
                .into());
        }
    }
    // Several at once would each make a key.
    let lock = repo.common_dir().join("relay/init.lock");
    let _one_at_a_time = lock::take(&lock, Duration::from_secs(30))?;
    let (mut made, way) = make(&repo)?;
    tell_strangers(&repo)?;
    if let Some(what) = nobody_commits(&repo)? {
        out::say(what);
        out::say(format!("hint: {TO_BE_KNOWN}"));
    }
    let installed: Vec<AgentName> = Seat::installed(&settings);
    // What the configuration says already, narrowed perhaps by a shared file, is not written down
    // again: that would make the narrowing last.
    let (order, is_new) = match (wanted.is_empty(), settings.agents.is_empty()) {
        (false, _) => (wanted, true),
        (true, false) => (settings.agents, false),
        (true, true) => (ask_order(&installed)?, true),
    };
    if is_new && !order.is_empty() {
        made.extend(write_order(&repo, &order)?);
    }
    if args.json {
        let made: Vec<String> = made.iter().map(out::path).collect();
        let value = json!({
            "made": made, "installed": installed, "agents": order,
            "publicKey": keys::load_key(&repo)?.public().fingerprint(), "hook": way_json(&way),
        });
        out::json("init", &value)?;
        return Ok(0);
    }
    tell(&made, &installed, &order);
    if let Way::ByHand { why, line, file } = &way {
        out::say(format!("{why}. To have your own commits in a session's worktree noted,"));
        out::say(format!("add to {file}:"));
        out::say(format!("  {line}"));
    }
    Ok(0)
}

/// Says which sessions here cannot be gone on with, since nobody believes their key: with
/// `.git/relay` gone, a new key was made, and the old one is believed only by who says so.
fn tell_strangers(repo: &Repository) -> Result<()> {
    for stranger in keys::strangers(repo, &keys::load_trust(repo)?)? {
        let names: Vec<&str> = stranger.sessions.iter().map(SessionId::as_str).collect();
        let known = if stranger.path.is_some() { "a key of yours" } else { "a key" };
        out::say(format!(
            "sessions here are signed by {known} that this repository does not believe, {}: {}",
            stranger.fingerprint,
            names.join(", ")
        ));
        let file = stranger.path.map_or("FILE".to_owned(), shell_word);
        out::say(format!("hint: to go on with them: git relay trust --add {file}"));
    }
    Ok(())
}

/// Makes what is missing; what was made, and how people's own commits are noted.
fn make(repo: &Repository) -> Result<(Vec<PathBuf>, Way)> {
    let mut made = keys::make(repo)?;
    made.extend(hooks::write(repo.common_dir())?);
    if repo.exclude("/.relay/")? {
        made.push(repo.common_dir().join("info/exclude"));
    }
    // Some agents' sandboxes can shut this file against writing only if it is there (tried on
    // Claude Code 2.1.332); without it they could move every branch.
    let packed_refs = repo.common_dir().join("packed-refs");
    if !repo.is_reftable() && !packed_refs.exists() {
        drop(files::open_append(&packed_refs)?);
        made.push(packed_refs);
    }
    repo.make_empty_notes_ref(clock::now().0)?;
    let (way, is_new) = repo.install_hook(&hooks::program_link(repo.common_dir()))?;
    if let (Way::Block(path), true) = (&way, is_new) {
        made.push(path.clone());
    }
    Ok((made, way))
}

/// Takes the block out of the hook file; what else `init` made is harmless without it.
fn remove_hooks(repo: &Repository) -> Result<u8> {
    match repo.remove_hook()? {
        Some(path) => out::say(format!("took git relay's block out of {}", path.display())),
        None => out::say("no hook file of this repository holds git relay's block"),
    }
    Ok(0)
}

fn way_json(way: &Way) -> serde_json::Value {
    match way {
        Way::Block(path) => json!({"file": path, "byHand": null}),
        Way::ByHand { why, line, file } => {
            json!({"file": file, "byHand": {"why": why, "line": line}})
        }
    }
}

/// Says what was made, who is here and who may receive work.
fn tell(made: &[PathBuf], installed: &[AgentName], order: &[AgentName]) {
    for path in made {
        out::say(format!("made {}", path.display()));
    }
    let names = |list: &[AgentName]| {
        let words: Vec<&str> = list.iter().map(AgentName::as_str).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    out::say(format!("agents found here: {}", names(installed)));
    if order.is_empty() {
        out::say("agents to hand over to: none yet");
        out::say(match installed {
            [] => "hint: git relay agents".to_owned(),
            _ => format!("hint: git relay init --agents {}", names(installed).replace(", ", ",")),
        });
    } else {
        out::say(format!("agents to hand over to, in this order: {}", names(order)));
        let absent: Vec<AgentName> =
            order.iter().filter(|agent| !installed.contains(agent)).cloned().collect();
        if !absent.is_empty() {
            out::say(format!("not installed here: {}", names(&absent)));
        }
        if absent.len() < order.len() {
            out::say("ready: git relay run 'the task'");
        }
    }
}

/// At a terminal, asks who may receive hand-overs; elsewhere nobody is consented to.
fn ask_order(installed: &[AgentName]) -> Result<Vec<AgentName>> {
    if installed.is_empty() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(Vec::new());
    }
    let words: Vec<&str> = installed.iter().map(AgentName::as_str).collect();
    out::say(format!("Work may be handed over to: {}", words.join(",")));
    out::say("Press Enter to agree, or type the names in your order, separated by commas:");
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    match typed.trim() {
        "" => Ok(installed.to_vec()),
        list => config::names(list.split(',').map(str::to_owned).collect()),
    }
}

/// Keeps the order in the clone's own file, and everything else that stands there.
fn write_order(repo: &Repository, order: &[AgentName]) -> Result<Option<PathBuf>> {
    let path = repo.common_dir().join("relay/config.toml");
    let old = files::read_text(&path, 256 * 1024)?.unwrap_or_default();
    let names: Vec<String> = order.iter().map(|agent| format!("\"{agent}\"")).collect();
    let line = format!("agents = [{}]", names.join(", "));
    let mut rows: Vec<&str> =
        old.lines().filter(|row| !row.trim_start().starts_with("agents")).collect();
    rows.insert(0, &line);
    let new = format!("{}\n", rows.join("\n"));
    if new == old {
        return Ok(None);
    }
    files::replace(&path, new.as_bytes(), 0o644)?;
    Ok(Some(path))
}
