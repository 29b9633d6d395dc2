//! Entry point of all hooks: `git-relay hook SOURCE EVENT`, SOURCE an agent or `git`.
//!
//! A hook asks and answers; it never drives and never waits. It runs inside somebody else's
//! commit or tool call: on its own failure it is silent and exits 0, with one line in a log.
//! Nothing is opened here but the inbox: no repository, no configuration, no clap.

use crate::agents;
use crate::host::{clock, env, files, process, terminal};
use crate::model::inbox::Says;
use crate::model::names::Oid;
use crate::relay::{ask, last_note, pause_file};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const REASON_BYTES_MOST: u64 = 4096;
/// Of what an agent tells its hook.
const PAYLOAD_BYTES_MOST: u64 = 64 << 20;
/// The file to keep things for the driver in; only at a terminal, where it is not the agent's own
/// output.
const SIGNS: &str = "GIT_RELAY_SIGNS";

/// Runs the hook; never fails and never says anything but the agent's answer.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let source = arguments.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    if source == "foreground" {
        return foreground(&arguments.collect::<Vec<_>>());
    }
    let event = arguments.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let is_git = source == "git";
    // The dispatcher of an agent's git runs the user's hook, our block in it, and then notes the
    // commit itself.
    if is_git && env::var("GIT_RELAY_DISPATCHER").is_some() {
        return ExitCode::SUCCESS;
    }
    // Without our variables this is no leg of a relay; a person may commit in its worktree.
    let Some(inbox) = ask::own_inbox().or_else(|| is_git.then(inbox_here).flatten()) else {
        return ExitCode::SUCCESS;
    };
    let Some(folder) =
        env::var("GIT_RELAY_FOLDER").map(PathBuf::from).or_else(|| folder_of(&inbox))
    else {
        return ExitCode::SUCCESS;
    };
    let folder = folder.as_path();
    let result = match source.as_str() {
        "git" if event == "post-commit" => safe_point(&inbox),
        "git" => Ok(()),
        agent => answer(agent, &event, &inbox, folder),
    };
    if let Err(error) = result {
        let line = format!("{source} {event}: {error:#}");
        _ = files::append_line(&folder.join("hook.log"), &line);
    }
    ExitCode::SUCCESS
}

/// Becomes the agent once the terminal is this process group's: a program that found itself in the
/// background would be stopped, or end, at its first look at the terminal.
fn foreground(argv: &[OsString]) -> ExitCode {
    let error = match terminal::wait_for_it() {
        Ok(()) => process::become_program(argv),
        Err(error) => error,
    };
    crate::ui::out::say(format!("relay: {error:#}"));
    ExitCode::from(127)
}

/// The inbox of the worktree that git runs this hook in, if it is a session's.
fn inbox_here() -> Option<PathBuf> {
    let git_dir = env::var("GIT_DIR").map_or_else(|| PathBuf::from(".git"), PathBuf::from);
    Some(git_dir.join("relay-inbox")).filter(|inbox| inbox.exists())
}

/// The private folder of the session whose inbox this is.
fn folder_of(inbox: &Path) -> Option<PathBuf> {
    let git_dir = inbox.parent()?;
    Some(git_dir.parent()?.parent()?.join("relay/sessions").join(git_dir.file_name()?))
}

/// A commit was made: one line, with the commit where it can be read off two small files.
fn safe_point(inbox: &Path) -> Result<()> {
    let git_dir = inbox.parent().context("the inbox lies in a git dir")?;
    ask::append(inbox, Says::SafePoint { commit: head(git_dir) })
}

/// HEAD's commit in the files backend: after a commit the branch's ref is loose.
fn head(git_dir: &Path) -> Option<Oid> {
    let text = |path: &Path| files::read_text(path, 4096).ok().flatten();
    let head = text(&git_dir.join("HEAD"))?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else {
        return Oid::new(head.trim_end());
    };
    let common = git_dir.join(text(&git_dir.join("commondir"))?.trim_end());
    Oid::new(text(&common.join(name))?.trim_end())
}

/// An agent's hook: the first one is a sign that hooks fire; when a pause is wanted, the answer
/// asks the agent for its last note, or stops it at this point.
fn answer(agent: &str, event: &str, inbox: &Path, folder: &Path) -> Result<()> {
    // Read to its end in any case: an agent that cannot write it may call the hook failed.
    let mut payload = Vec::new();
    io::stdin().lock().take(PAYLOAD_BYTES_MOST).read_to_end(&mut payload)?;
    let nonce = ask::own_leg().unwrap_or_default();
    let known = agents::ALL.into_iter().find(|known| known.name == agent);
    let at_terminal = known.map(|known| &known.terminal);
    if let (Some(signs), Some(keep)) = (env::var(SIGNS), at_terminal.and_then(|own| own.keep))
        && let Some(heard) = keep(event, &payload, clock::now())
    {
        files::append_line(Path::new(&signs), &heard.line())?;
    }
    if event == "SessionStart" {
        ask::append(inbox, Says::Hook { event: event.to_owned(), nonce: nonce.clone() })?;
    } else if folder.join(pause_file()).exists()
        && let Some((stop, tell)) = known.and_then(|known| known.pause.answers(event))
    {
        let text = match last_note::turn(folder, &payload)? {
            last_note::Turn::Answer => return Ok(()),
            last_note::Turn::Ask(text) => tell(&text),
            last_note::Turn::Stop => {
                let reason = files::read_text(&folder.join(pause_file()), REASON_BYTES_MOST)?;
                ask::append(inbox, Says::Paused { nonce })?;
                stop(&reason.unwrap_or_default())
            }
        };
        return crate::ui::out::data(format!("{text}\n").as_bytes());
    }
    if let Some(print) = at_terminal.and_then(|own| own.print).filter(|_| env::var(SIGNS).is_some())
        && let Some(text) = print(event, folder, &payload)?
    {
        crate::ui::out::data(&text)?;
    }
    Ok(())
}
