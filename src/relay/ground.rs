//! The ground an agent works on: the session worktree, its environment, and the git configuration
//! that must be the same after the leg as before it.

use super::{Driver, LEG_VARIABLE};
use crate::agents::Seat;
use crate::error::Fault;
use crate::git::run::LOCAL_ENV_VARS;
use crate::git::worktree::is_made_by_us;
use crate::git::{Repository, branch_ref, guard};
use crate::host::{config, env, files};
use crate::model::canon;
use crate::model::fsm::Event;
use crate::model::names::{Digest, Nonce};
use crate::model::session::Session;
use crate::store::audit::sha256;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

const GUARD_FILE: &str = "guard.json";
/// Holds the nonce of the leg after which all was as it had been.
const SETTLED_FILE: &str = "settled";
/// Says that hooks or the like were found changed after a leg: they may be its agent's, in all legs
/// that follow, until somebody accepts them.
const PLANTED_FILE: &str = "planted";
const SHOWN_FILE: &str = "silenced.json";
const GUARD_BYTES_MOST: u64 = 4 * 1024 * 1024;

impl Driver<'_> {
    /// The session worktree's root.
    pub fn worktree(&self) -> PathBuf {
        self.hub.worktree(self.session())
    }

    /// The session worktree's own git dir, as git names it: by the last part of its path.
    pub(super) fn git_dir(&self) -> PathBuf {
        self.hub.git_dir(self.session())
    }

    /// Opens the session worktree by what we recorded, not by what its `.git` file says now.
    pub(super) fn worktree_repo(&self) -> Result<Repository> {
        let mut repo =
            Repository::open_pinned(self.hub.repo.common_dir(), &self.git_dir(), &self.worktree())?;
        repo.set_durability(self.hub.repo.durability());
        Ok(repo)
    }

    /// Makes what a session needs and does not have yet: branch, worktree, private folder. The
    /// session's ref comes first, so that a killed `start` is rolled forward from here.
    pub fn make_ground(&mut self) -> Result<()> {
        let session = self.session().clone();
        if session.state.is_end() {
            return Ok(());
        }
        files::make_folder(&self.hub.folder(&session.session_id))?;
        // What it is made from is looked at only when its agent has ended.
        if session.is_to_adopt() {
            return Ok(());
        }
        if session.leg > 0 {
            self.mend_worktree()?;
            // Only then is it known to hold all that was taken along.
            return if session.adopted_leg().is_some() { self.furnish() } else { Ok(()) };
        }
        if session.dispatch.is_some() && self.is_whole() {
            return Ok(());
        }
        if self.was_made() {
            self.mend_worktree()?;
            if !self.is_whole() {
                return Ok(());
            }
        } else {
            let (worktree, workplace) = (self.worktree(), &session.workplace);
            self.hub.repo.add_worktree(&worktree, &workplace.branch, &workplace.base_commit)?;
        }
        self.furnish()
    }

    /// Whether the session's worktree has once been whole: until then it may be half made,
    /// whatever is there of it.
    pub(super) fn was_made(&self) -> bool {
        self.session().leg > 0 || is_made_by_us(&self.git_dir()) || self.is_furnished()
    }

    /// Environment of every process of the leg `nonce`, and of nothing else.
    pub(super) fn variables(&self, seat: &Seat, nonce: &Nonce) -> Result<Vec<(String, String)>> {
        let session = &self.session().session_id;
        let shown = |path: PathBuf| path.to_string_lossy().into_owned();
        let hooks = self.hub.repo.common_dir().join("relay/hooks");
        // After what is there already: a caller's own entries keep their numbers.
        let first: usize =
            env::text("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
        let mut pairs = vec![
            ("core.hooksPath", shown(hooks)),
            // A gc packs the refs and removes the folders a sandbox was opened for (tried on
            // Codex 0.171.0: commits then fail).
            ("gc.auto", "0".to_owned()),
            ("maintenance.auto", "false".to_owned()),
        ];
        if self.hub.repo.is_reftable() {
            // One lock for all refs: a commit must outlast another session's, and the time after
            // which that of a dead one is cleared.
            pairs.push(("reftable.lockTimeout", "10000".to_owned()));
        }
        pairs.extend(self.excludes(seat)?.map(|path| ("core.excludesFile", shown(path))));
        let mut variables = vec![
            (LEG_VARIABLE.to_owned(), nonce.to_string()),
            ("GIT_RELAY_INBOX".to_owned(), shown(self.inbox_path())),
            ("GIT_RELAY_FOLDER".to_owned(), shown(self.hub.folder(session))),
            ("GIT_RELAY_HOOKS_INDEX".to_owned(), first.to_string()),
            ("GIT_CONFIG_COUNT".to_owned(), (first + pairs.len()).to_string()),
        ];
        for (name, value) in super::ground_up::place_variables(self.session()) {
            variables.push((name.to_owned(), value));
        }
        for (offset, (key, value)) in pairs.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{}", first + offset), key.to_owned()));
            variables.push((format!("GIT_CONFIG_VALUE_{}", first + offset), value));
        }
        Ok(variables)
    }

    /// Variables to take away from an agent: those that would point its git elsewhere.
    pub(super) fn scrubbed(&self) -> impl Iterator<Item = (OsString, Option<OsString>)> {
        LOCAL_ENV_VARS
            .into_iter()
            .filter(|name| !name.starts_with("GIT_CONFIG"))
            .map(|name| (name.into(), None))
    }

    /// The branches an agent must not move, where each is a file that can be shut: all but the
    /// session's own.
    pub(super) fn other_branches(&self) -> Result<Vec<String>> {
        if self.hub.repo.is_reftable() {
            return Ok(Vec::new());
        }
        let own = branch_ref(&self.session().workplace.branch);
        let branches = self.hub.repo.list_refs("refs/heads/")?;
        Ok(branches.into_iter().map(|(name, _)| name).filter(|name| *name != own).collect())
    }

    /// Records the git configuration facts as they are now; their digest goes into the state.
    pub(super) fn record_guard(&self) -> Result<Digest> {
        let folder = self.hub.folder(&self.session().session_id);
        // What an earlier leg's agent may have planted is no leg's beginning.
        if !folder.join(PLANTED_FILE).exists() {
            self.record_silenced()?;
        }
        files::remove(&folder.join(SETTLED_FILE))?;
        let bytes = self.hub.guard_facts(self.session())?.encoded()?;
        files::replace(&folder.join(GUARD_FILE), &bytes, 0o600)?;
        Ok(sha256(&bytes))
    }

    /// Takes what our own git calls are deaf to, as it is now, for what the person has.
    fn record_silenced(&self) -> Result<()> {
        let folder = self.hub.folder(&self.session().session_id);
        let shown = guard::silenced_facts(self.hub.repo.common_dir())?;
        let shown = canon::encode(&shown).context("facts can be encoded")?;
        files::replace(&folder.join(SHOWN_FILE), &shown, 0o600)?;
        files::remove(&folder.join(PLANTED_FILE))
    }

    /// The agent is gone and all was as it had been: what changes outside the repository from now
    /// on is the person's doing.
    fn settle_guard(&self) -> Result<()> {
        let Some(dispatch) = &self.session().dispatch else { return Ok(()) };
        let path = self.hub.folder(&self.session().session_id).join(SETTLED_FILE);
        if files::read(&path, 64)?.as_deref() == Some(dispatch.nonce.as_str().as_bytes()) {
            return Ok(());
        }
        // Lost in a power cut, it is only compared once more.
        std::fs::write(&path, dispatch.nonce.as_str())
            .with_context(|| format!("cannot write '{}'", path.display()))
    }

    /// Names what changed of the things that our own git calls are deaf to: hooks, the file-system
    /// monitor. No reason to stop, but people should know.
    fn tell_silenced(&mut self) -> Result<()> {
        let what = self.hub.silenced_changes(self.session())?;
        let planted = self.hub.folder(&self.session().session_id).join(PLANTED_FILE);
        if what.is_empty() {
            return files::remove(&planted);
        }
        if !self.hub.is_settled(self.session())? {
            files::replace(&planted, b"", 0o600)?;
        }
        self.notice_once(format!("changed during a leg, look at it: {what}"));
        Ok(())
    }

    /// Before the user's own git runs for us, and with it their hooks: those must be the ones that
    /// they had when the agent was started.
    pub(super) fn check_hooks(&mut self) -> Result<()> {
        let what = self.hub.silenced_changes(self.session())?;
        if what.is_empty() || self.options.accept_config {
            return Ok(());
        }
        let id = &self.session().session_id;
        Err(Fault::integrity(format!(
            "your commit would run what was changed during a leg: {what}"
        ))
        .hint(format!("look at it, then put it back, or: git relay finish {id} --accept-config"))
        .into())
    }

    /// [`Driver::compare_guard`], in a worktree that is there.
    pub(super) fn check_guard(&mut self) -> Result<()> {
        self.mend_worktree()?;
        self.compare_guard()?;
        self.mend_torn()
    }

    /// Before a worktree is taken for gone: a changed `core.worktree` makes it look so.
    pub(super) fn compare_config(&self) -> Result<()> {
        match self.hub.changed_since_launch(self.session())? {
            Some(what) if !self.options.accept_config => Err(self.changed(&what)),
            _ => Ok(()),
        }
    }

    fn changed(&self, what: &str) -> anyhow::Error {
        let id = &self.session().session_id;
        Fault::integrity(format!("configuration was changed during the leg: {what}"))
            .hint(format!(
                "look at it, then put it back, or, if it was you: git relay resume {id} --accept-config"
            ))
            .into()
    }

    /// Compares the git configuration with what it was when the agent was started; called before
    /// the first git program runs after a leg, since a rewritten configuration would run the
    /// agent's code with our hands.
    pub(super) fn compare_guard(&mut self) -> Result<()> {
        let Some(expected) = self.session().guard.clone() else { return Ok(()) };
        self.tell_silenced()?;
        if self.options.accept_config {
            self.record_silenced()?;
        }
        let facts = self.hub.guard_facts(self.session())?;
        if sha256(&facts.encoded()?) == expected {
            return self.settle_guard();
        }
        if self.options.accept_config {
            let guard = self.record_guard()?;
            self.step(&Event::GuardAccepted { guard }, None)?;
            return self.settle_guard();
        }
        let what = self.hub.differences(self.session(), &facts)?.join(", ");
        Err(self.changed(&what))
    }
}

/// What is compared before and after a leg.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    /// Of the repository's own configuration.
    repository: BTreeMap<String, String>,
    /// Of what lies outside it, where people change things as soon as no agent is at work.
    outside: BTreeMap<String, String>,
}

impl Facts {
    pub(super) fn encoded(&self) -> Result<Vec<u8>> {
        canon::encode(self).context("facts can be encoded")
    }

    fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = guard::differences(&self.repository, &after.repository);
        found.extend(guard::differences(&self.outside, &after.outside));
        found
    }
}

impl super::Hub {
    /// Whether all was looked at since the last agent ended, and was as it had been.
    fn is_settled(&self, session: &Session) -> Result<bool> {
        let settled = files::read(&self.folder(&session.session_id).join(SETTLED_FILE), 64)?;
        Ok(settled.is_some_and(|nonce| {
            session.dispatch.as_ref().is_some_and(|d| d.nonce.as_str().as_bytes() == nonce)
        }))
    }

    /// What an agent may have changed of what trial commits would run, in one line; empty where
    /// that is nothing, or a person's doing since.
    pub fn may_be_planted(&self, session: &Session) -> Result<String> {
        let planted = self.folder(&session.session_id).join(PLANTED_FILE).exists();
        match planted || !self.is_settled(session)? {
            true => self.silenced_changes(session),
            false => Ok(String::new()),
        }
    }

    /// What changed since launch of the things that our own git calls are deaf to, in one line; empty
    /// where nothing did, or nothing was recorded.
    fn silenced_changes(&self, session: &Session) -> Result<String> {
        let path = self.folder(&session.session_id).join(SHOWN_FILE);
        let Some(before) = files::read(&path, GUARD_BYTES_MOST)? else {
            return Ok(String::new());
        };
        let Ok(before) = canon::decode::<BTreeMap<String, String>>(&before) else {
            return Ok(String::new());
        };
        let now = guard::silenced_facts(self.repo.common_dir())?;
        Ok(guard::differences(&before, &now).join(", "))
    }

    /// The facts as they are now; once they were found unchanged after a leg, those outside the
    /// repository's own configuration stay as they were then.
    pub(super) fn guard_facts(&self, session: &Session) -> Result<Facts> {
        let common = self.repo.common_dir();
        let repository =
            guard::guard_facts(common, &self.git_dir(session), &self.worktree(session))?;
        if self.is_settled(session)?
            && let Some(recorded) = self.recorded_facts(session)?
        {
            return Ok(Facts { repository, outside: recorded.outside });
        }
        let mut outside = guard::outer_facts(common)?;
        if let Some(runs) = config::what_runs()? {
            outside.insert("your own config.toml".to_owned(), sha256(runs.as_bytes()).to_string());
        }
        Ok(Facts { repository, outside })
    }

    /// What differs from launch so that a driver would stop, in words; of a worktree that is gone,
    /// and will be laid out again, only what stands in configuration.
    pub fn changed_since_launch(&self, session: &Session) -> Result<Option<String>> {
        let Some(expected) = &session.guard else { return Ok(None) };
        let facts = self.guard_facts(session)?;
        if sha256(&facts.encoded()?) == *expected {
            return Ok(None);
        }
        let mut what = self.differences(session, &facts)?;
        if !self.repo.is_laid_out(&self.git_dir(session), &self.worktree(session)) {
            what.retain(|difference| difference.starts_with("config "));
        }
        Ok((!what.is_empty()).then(|| what.join(", ")))
    }

    fn differences(&self, session: &Session, now: &Facts) -> Result<Vec<String>> {
        Ok(match self.recorded_facts(session)? {
            Some(before) => before.differences(now),
            None => vec!["it cannot be said what, the record of it is gone".to_owned()],
        })
    }

    /// The facts at launch, if the record of them is whole.
    fn recorded_facts(&self, session: &Session) -> Result<Option<Facts>> {
        let path = self.folder(&session.session_id).join(GUARD_FILE);
        let bytes = files::read(&path, GUARD_BYTES_MOST)?;
        let bytes = bytes.filter(|bytes| Some(sha256(bytes)) == session.guard);
        Ok(bytes.and_then(|bytes| canon::decode(&bytes).ok()))
    }

    /// The root of a session's worktree.
    pub fn worktree(&self, session: &Session) -> PathBuf {
        let root = self.repo.main_work_tree().unwrap_or_else(|| self.repo.common_dir());
        root.join(&session.workplace.worktree)
    }

    /// The git dir of a session's worktree: `start` chose a path whose last part is the session,
    /// and git names the folder after it.
    pub fn git_dir(&self, session: &Session) -> PathBuf {
        self.repo.common_dir().join("worktrees").join(session.session_id.as_str())
    }
}
