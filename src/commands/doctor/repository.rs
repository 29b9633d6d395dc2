//! The repository: key and trust, our refs and what would overwrite them, sessions, locks.

use super::{Finding, Level};
use crate::error::hint_of;
use crate::git::NOTES_REF;
use crate::git::refs::SESSIONS;
use crate::host::{clock, files, lock, process};
use crate::model::names::SessionId;
use crate::model::shell::shell_word;
use crate::model::sign::GIT_NAMESPACE;
use crate::model::time::Timestamp;
use crate::relay::Hub;
use crate::store::{self, audit};
use crate::ui::progress::ago;
use anyhow::Result;
use std::collections::BTreeSet;
use std::time::Duration;

/// A git command at work holds a lock for moments.
const LOCK_IDLE: Duration = Duration::from_secs(2);
/// Clocks of machines that share a repository are never quite the same.
const CLOCK_SLACK_S: i64 = 60;
const LOG_BYTES_MOST: u64 = 1 << 20;

pub(super) fn keys(hub: &Hub, fix: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let key = match store::keys::load_key(&hub.repo) {
        Ok(key) => key.public(),
        Err(error) => return vec![Finding::of("key", &error)],
    };
    if let Ok(path) = store::keys::key_path(&hub.repo)
        && files::is_open_to_others(&path)
    {
        let what = format!("'{}' can be read by others", path.display());
        let mended = fix && files::make_private(&path).is_ok();
        found.push(match mended {
            true => Finding::new(Level::Fixed, "key", what),
            false => Finding::problem("key", what).next(format!("chmod 600 {}", shell_word(&path))),
        });
    }
    match hub.trust.check(&key, GIT_NAMESPACE, clock::now()) {
        Ok(_) => found.push(Finding::ok("key", format!("{}, believed", key.fingerprint()))),
        Err(error) => {
            let public = store::keys::key_path(&hub.repo).map(|path| path.with_extension("pub"));
            let next = public.map(|path| format!("git relay trust --add {}", shell_word(path)));
            let what = format!("this repository's own key: {error}");
            found.push(Finding::problem("trust", what).next(next.unwrap_or_default()));
        }
    }
    for warning in &hub.trust.warnings {
        found.push(Finding::problem("trust", warning.to_string()).next("git relay trust"));
    }
    found
}

pub(super) fn refs(hub: &Hub, fix: bool) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    if hub.repo.read_ref(NOTES_REF)?.is_none() {
        let what = format!("{NOTES_REF} is not there, so 'git log --notes=relay' warns");
        if fix {
            hub.repo.make_empty_notes_ref(clock::now().0)?;
            found.push(Finding::new(Level::Fixed, "notes", what));
        } else {
            found.push(Finding::problem("notes", what).next("git relay doctor --fix"));
        }
    }
    // The user's configuration: told, never changed.
    for (remote, spec) in hub.repo.overwriting_fetches()? {
        let what = format!("a fetch from '{remote}' overwrites contracts of this clone ({spec})");
        let pattern = spec.replace('+', "\\+").replace('*', "\\*");
        found.push(Finding::problem("notes", what).next(format!(
            "git config --replace-all {} {} {}",
            shell_word(format!("remote.{remote}.fetch")),
            shell_word(format!("+refs/notes/*:refs/notes/remotes/{remote}/*")),
            shell_word(format!("^{pattern}$"))
        )));
    }
    if found.is_empty() {
        found.push(Finding::ok("notes", "no fetch overwrites them"));
    }
    Ok(found)
}

pub(super) fn sessions(hub: &Hub) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for lost in store::list_lost(&hub.repo, &hub.trust)? {
        found.push(Finding::of(&format!("session {}", lost.id), &lost.fault.into()));
    }
    for id in store::list(&hub.repo)? {
        let subject = format!("session {id}");
        let session = match hub.load(&id) {
            Ok(stored) => stored.session,
            Err(error) => {
                found.push(Finding::of(&subject, &error));
                continue;
            }
        };
        if is_ahead(session.updated_at, clock::now()) {
            let what =
                format!("its last step is {}: the clock was set back", ago(session.updated_at));
            found.push(Finding::problem(&subject, what).next("date"));
        }
        if session.state.is_end() {
            continue;
        }
        let agent = session.dispatch.as_ref();
        let agent = agent.filter(|agent| agent.process.is_some_and(process::is_alive));
        if let Some(agent) = agent.filter(|_| !lock::is_held(&hub.lock_path(&id))) {
            let what =
                format!("{} is at work, and no command watches for its end or limit", agent.agent);
            let next = format!("git relay resume {id}");
            found.push(Finding::problem(&subject, what).next(next));
        }
        if session.dispatch.is_some()
            && let Err(error) = hub.must_have_branch(&session)
        {
            found.push(Finding::of(&subject, &error));
        }
        let worktree = hub.worktree(&session);
        let again = format!("git relay resume {id}");
        if let Err(error) = hub.must_not_be_moved(&session, &again) {
            let next = hint_of(&error).unwrap_or_default();
            found.push(Finding::problem(&subject, format!("{error}")).next(next));
        } else if session.dispatch.is_some() && !worktree.join(".git").exists() {
            let what = format!("its worktree '{}' is gone", worktree.display());
            found.push(Finding::problem(&subject, what).next(hub.way_back(&session)));
        }
        let log = files::read_text(&hub.folder(&id).join("hook.log"), LOG_BYTES_MOST)?;
        if let Some(last) = log.as_deref().and_then(|text| text.lines().last()) {
            found.push(Finding::note(&subject, format!("a hook of ours failed: {last}")));
        }
    }
    Ok(found)
}

/// What `git relay verify` would find broken. A note that is gone is written again from the contract
/// that is stored; one that was changed is never written over.
pub(super) fn stored(hub: &Hub, fix: bool) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for id in store::list(&hub.repo)? {
        // One that cannot be loaded is named already.
        let Ok(stored) = hub.load(&id) else { continue };
        let looked_at = match audit::session(&hub.repo, &hub.trust, &stored) {
            Ok(looked_at) => looked_at,
            Err(error) => {
                found.push(Finding::of(&format!("session {id}"), &error));
                continue;
            }
        };
        known.extend(looked_at.iter().filter_map(|one| one.commit.clone()));
        for one in looked_at.into_iter().filter(|one| one.fault.is_some()) {
            let lost = one.lost_note_of.filter(|_| fix);
            let mut told = broken(&format!("session {id}"), one, Some(&id));
            match lost.map(|leg| hub.write_lost_note(&stored, leg)) {
                Some(Ok(())) => (told.level, told.next) = (Level::Fixed, None),
                Some(Err(error)) => told = Finding::of(&told.subject, &error),
                None => {}
            }
            found.push(told);
        }
    }
    let others = audit::other_notes(&hub.repo, &hub.trust, &known)?;
    let others = others.into_iter().filter(|one| one.fault.is_some());
    found.extend(others.map(|one| broken("notes", one, None)));
    Ok(found)
}

fn broken(subject: &str, one: audit::Finding, id: Option<&SessionId>) -> Finding {
    let what = format!("{}: {}", one.subject, one.fault.unwrap_or_default());
    let verify = || match id {
        Some(id) => format!("git relay verify {id}"),
        None => "git relay verify".to_owned(),
    };
    Finding::problem(subject, what).next(one.next.unwrap_or_else(verify))
}

/// Locks that nobody seems to hold. Ours are those of session refs, which only the holder of the
/// session's own lock may move; every other one may be the user's git, and is only named.
pub(super) fn locks(hub: &Hub, fix: bool) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let sessions = hub.repo.common_dir().join(SESSIONS);
    for stale in hub.repo.locks().into_iter().filter(|lock| lock.idle >= LOCK_IDLE) {
        let what =
            format!("'{}' has been there for {} s", stale.path.display(), stale.idle.as_secs());
        let id = stale
            .path
            .strip_prefix(&sessions)
            .ok()
            .and_then(|rest| SessionId::new(rest.to_str()?.strip_suffix(".lock")?));
        let Some(id) = id else {
            let next = format!(
                "a git command is at work, or died; if none runs: rm {}",
                shell_word(&stale.path)
            );
            found.push(Finding::problem("lock", what).next(next));
            continue;
        };
        let held = lock::take(&hub.lock_path(&id), Duration::ZERO)?;
        found.push(match (held, fix) {
            (None, _) => Finding::ok("lock", format!("{what}; session '{id}' is being driven")),
            (Some(_held), true) => {
                hub.repo.clear_own_lock(&format!("{SESSIONS}{id}"))?;
                Finding::new(Level::Fixed, "lock", what)
            }
            (Some(_), false) => Finding::problem("lock", format!("{what}, left by a dead command"))
                .next("git relay doctor --fix"),
        });
    }
    if found.is_empty() {
        found.push(Finding::ok("locks", "none is in the way"));
    }
    Ok(found)
}

/// Whether a step was taken at a time that is yet to come.
fn is_ahead(step: Timestamp, now: Timestamp) -> bool {
    step.0 > now.0 + CLOCK_SLACK_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_told_from_one_that_is_a_little_off() {
        let now = Timestamp(1_795_997_341);
        assert!(is_ahead(Timestamp(now.0 + CLOCK_SLACK_S + 1), now));
        assert!(!is_ahead(Timestamp(now.0 + CLOCK_SLACK_S), now));
    }
}
