//! Entry point of all hooks: `git-relay hook SOURCE EVENT`, SOURCE an agent or `git`.
//!
//! A hook asks and answers; it never drives and never waits. It runs inside somebody else's
//! commit or tool call: on its own failure it is silent and exits 0, with one line in a log.
//! Nothing is opened here but the inbox: no repository, no configuration, no clap.

use crate::agents;
use crate::host::{env, files};
use crate::model::inbox::Says;
use crate::model::names::Oid;
use crate::relay::{ask, last_note, pause_file};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

const REASON_BYTES_MOST: u64 = 4096;
/// Of what an agent tells its hook: enough for a shell command.
const PAYLOAD_BYTES_MOST: u64 = 1 << 20;

/// Runs the hook; never fails and never says anything but the agent's answer.
pub fn run(mut arguments: impl Iterator<Item = OsString>) {
    let mut word = || arguments.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let (source, event) = (word(), word());
    // Without our variables this is not a leg of a relay.
    let (Some(inbox), Some(folder)) = (ask::own_inbox(), env::var("GIT_RELAY_FOLDER")) else {
        return;
    };
    let folder = Path::new(&folder);
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
    let mut stdin = io::stdin().lock();
    let wanted = folder.join(pause_file()).exists();
    if wanted {
        stdin.by_ref().take(PAYLOAD_BYTES_MOST).read_to_end(&mut payload)?;
    }
    io::copy(&mut stdin.take(64 << 20), &mut io::sink())?;
    let nonce = ask::own_leg().unwrap_or_default();
    if event == "SessionStart" {
        ask::append(inbox, Says::Hook { event: event.to_owned(), nonce })?;
        return Ok(());
    }
    if !wanted {
        return Ok(());
    }
    let known = agents::ALL.into_iter().find(|known| known.name == agent);
    let Some((stop, tell)) = known.and_then(|known| known.pause.answers(event)) else {
        return Ok(());
    };
    let text = match last_note::turn(folder, &payload)? {
        last_note::Turn::Answer => return Ok(()),
        last_note::Turn::Ask(text) => tell(&text),
        last_note::Turn::Stop => {
            let reason = files::read_text(&folder.join(pause_file()), REASON_BYTES_MOST)?;
            ask::append(inbox, Says::Paused { nonce })?;
            stop(&reason.unwrap_or_default())
        }
    };
    crate::ui::out::data(format!("{text}\n").as_bytes())
}
