//! Entry point of all hooks: `git-relay hook SOURCE EVENT`, SOURCE an agent or `git`.
//!
//! A hook asks and answers; it never drives and never waits. It runs inside somebody else's
//! commit or tool call: on its own failure it is silent and exits 0, with one line in a log.
//! Nothing is opened here but the inbox: no repository, no configuration, no clap.

use crate::agents;
use crate::host::{env, files};
use crate::model::inbox::Says;
use crate::model::names::Oid;
use crate::relay::{ask, pause_file};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const REASON_BYTES_MOST: u64 = 4096;

/// Runs the hook; never fails and never says anything but the agent's answer.
pub fn run(mut arguments: impl Iterator<Item = OsString>) {
    let mut word = || arguments.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let (source, event) = (word(), word());
    let is_git = source == "git";
    // The dispatcher of an agent's git runs the user's hook, our block in it, and then notes the
    // commit itself.
    if is_git && env::var("GIT_RELAY_DISPATCHER").is_some() {
        return;
    }
    // Without our variables this is no leg of a relay; a person may commit in its worktree.
    let Some(inbox) = ask::own_inbox().or_else(|| is_git.then(inbox_here).flatten()) else {
        return;
    };
    let Some(folder) =
        env::var("GIT_RELAY_FOLDER").map(PathBuf::from).or_else(|| folder_of(&inbox))
    else {
        return;
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
/// that stops the agent at this point.
fn answer(agent: &str, event: &str, inbox: &Path, folder: &Path) -> Result<()> {
    // The payload is not needed, but an agent that cannot write it may call the hook failed.
    io::copy(&mut io::stdin().lock().take(64 << 20), &mut io::sink())?;
    let nonce = ask::own_leg().unwrap_or_default();
    if event == "SessionStart" {
        ask::append(inbox, Says::Hook { event: event.to_owned(), nonce })?;
        return Ok(());
    }
    let Some(reason) = files::read_text(&folder.join(pause_file()), REASON_BYTES_MOST)? else {
        return Ok(());
    };
    let known = agents::ALL.into_iter().find(|known| known.name == agent);
    if let Some(text) = known.and_then(|known| known.pause.answer(event, &reason)) {
        ask::append(inbox, Says::Paused { nonce })?;
        crate::ui::out::data(format!("{text}\n").as_bytes())?;
    }
    Ok(())
}
