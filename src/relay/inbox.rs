//! Folding the inbox into the session.

use super::{Driver, LEG_VARIABLE};
use crate::error::Fault;
use crate::host::files;
use crate::model::foreign;
use crate::model::fsm::Event;
use crate::model::inbox::{self, Line, Says};
use crate::model::session::{Declared, Request, SafePoint, Session};
use crate::model::shell::shell_word;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Read at once; more waits for the next time.
const INBOX_BYTES_MOST: u64 = 64 * 1024 * 1024;
/// Facts one session holds: every state commit carries them.
const FACTS_MOST: usize = 1000;

/// The lines of the inbox beyond what the session has folded.
pub struct Unfolded {
    pub lines: Vec<Line>,
    /// The offset after them.
    pub offset: u64,
    /// Lines that are none of ours.
    pub odd: usize,
    /// The file is shorter than what was folded: it was tampered with, and is read from 0.
    pub shrunk: bool,
    /// Something else lies where the inbox belongs: nothing of it was read.
    pub foreign: bool,
}

/// Reads the inbox from `offset` on; changes nothing.
pub fn unfolded(path: &Path, offset: u64) -> Result<Unfolded> {
    let found = files::read_plain(path, offset, INBOX_BYTES_MOST);
    let is_plain = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let (mut bytes, len) = match found {
        Ok(found) => found.unwrap_or_default(),
        Err(error) if is_plain => return Err(error),
        Err(_) => {
            let lines = Vec::new();
            return Ok(Unfolded { lines, offset, odd: 0, shrunk: false, foreign: true });
        }
    };
    let shrunk = len < offset;
    let from = if shrunk { 0 } else { offset };
    if shrunk {
        bytes = files::read_plain(path, 0, INBOX_BYTES_MOST)?.unwrap_or_default().0;
    }
    let (lines, mut whole, odd) = inbox::read(&bytes);
    if whole == 0 && bytes.len() as u64 == INBOX_BYTES_MOST {
        // A line without an end is no line of ours: what follows it may be.
        whole = bytes.len();
    }
    Ok(Unfolded { lines, offset: from + whole as u64, odd, shrunk, foreign: false })
}

/// What lines state, redacted, as facts of `session`, and the last request among them.
pub fn facts(session: &Session, lines: &[Line]) -> (Vec<Declared>, Option<Request>) {
    let own = session.dispatch.as_ref().map(|dispatch| dispatch.nonce.as_str());
    let by = |nonce: &Option<String>| match nonce {
        Some(nonce) if Some(nonce.as_str()) == own => session.speaker(),
        Some(_) => "an agent that is gone".to_owned(),
        None => "user".to_owned(),
    };
    let mut facts: Vec<Declared> = Vec::new();
    let mut request = None;
    for line in lines {
        match &line.says {
            Says::Record { fact, text, nonce } => {
                let full = session.declared.len() + facts.len() >= FACTS_MOST;
                let known = session.declared.iter().chain(&facts).any(|known| known.id == line.id);
                if !known && !full {
                    facts.push(Declared {
                        id: line.id.clone(),
                        kind: *fact,
                        text: foreign::clean(text).text,
                        by: by(nonce),
                        leg: session.leg.max(1),
                        at: line.at,
                    });
                }
            }
            // A target nobody consented to does not count, the request does.
            Says::Handoff { to, reason, force, no_launch, nonce } => {
                request = Some(Request {
                    to: to.clone().filter(|to| session.agents.contains(to)),
                    reason: reason.as_deref().map(|reason| foreign::clean(reason).text),
                    by: by(nonce),
                    at: line.at,
                    force: *force,
                    no_launch: *no_launch,
                });
            }
            Says::Hook { .. } | Says::Paused { .. } | Says::SafePoint { .. } => {}
        }
    }
    (facts, request)
}

impl Driver<'_> {
    /// Folds the inbox and does nothing else.
    pub fn fold(&mut self) -> Result<()> {
        self.fold_inbox().map(drop)
    }

    pub(super) fn inbox_path(&self) -> PathBuf {
        self.git_dir().join("relay-inbox")
    }

    /// Makes the inbox, in the place of whatever an agent put there that is no plain file.
    pub(super) fn make_inbox(&self) -> Result<()> {
        let path = self.inbox_path();
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {
                return Err(Fault::refused(format!(
                    "'{}' is a folder where the inbox belongs",
                    path.display()
                ))
                .hint(format!("look at it, then: rm -r {}", shell_word(&path)))
                .into());
            }
            Ok(found) if !found.is_file() => files::remove(&path)?,
            _ => {}
        }
        drop(files::open_append(&path)?);
        Ok(())
    }

    /// Folds what the inbox holds beyond the offset; returns the new lines. A step is saved only
    /// when they change the session.
    pub(super) fn fold_inbox(&mut self) -> Result<Vec<Line>> {
        let found = unfolded(&self.inbox_path(), self.session().inbox_offset)?;
        if found.foreign {
            let path = self.inbox_path();
            self.notice_once(format!(
                "'{}' is no plain file: nothing was read of it",
                path.display()
            ));
        }
        if found.shrunk {
            self.notice("the inbox is shorter than what was read of it: reading it from its start");
        }
        if found.odd > 0 {
            self.notice(format!("{} inbox lines are not ours and were left out", found.odd));
        }
        if found.lines.is_empty() && found.odd == 0 && !found.shrunk {
            return Ok(found.lines);
        }
        let session = self.session();
        let (facts, request) = facts(session, &found.lines);
        let nonce = session.dispatch.as_ref().map(|dispatch| dispatch.nonce.as_str());
        let hooks_fired = !session.hooks_fired
            && found.lines.iter().any(|line| {
                matches!(&line.says, Says::Hook { nonce: heard, .. } if Some(heard.as_str()) == nonce)
            });
        let mut commits = found.lines.iter().filter_map(|line| match &line.says {
            Says::SafePoint { commit: Some(commit) } => {
                Some(SafePoint { commit: commit.clone(), at: line.at })
            }
            _ => None,
        });
        if let Some(safe_point) = commits.next_back()
            && self.hub.repo.read_commit(&safe_point.commit).is_ok()
        {
            let observed = Event::Observed { readings: Vec::new(), safe_point: Some(safe_point) };
            self.step(&observed, None)?;
        }
        let offset = found.offset;
        self.step(&Event::Folded { offset, facts, request, hooks_fired }, None)?;
        Ok(found.lines)
    }
}

/// The nonce of the leg that the calling process belongs to, if it is one of an agent's.
pub fn own_leg() -> Option<String> {
    crate::host::env::text(LEG_VARIABLE)
}
