//! After an agent: nothing of its leg may run on, and nothing of its sandbox may lie about.

use super::{Driver, LEG_VARIABLE};
use crate::agents::{Debris, Seat};
use crate::git::branch_ref;
use crate::host::{env, files, process};
use crate::model::names::Nonce;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const EXCLUDES_BYTES_MOST: u64 = 1 << 20;

impl Driver<'_> {
    /// Ends every process that carries the leg's nonce, reaps our own child, and clears the locks
    /// that their git, or a dead driver's, has left in the session worktree.
    pub(super) fn sweep(&mut self, nonce: &Nonce) -> Result<()> {
        let ended = process::sweep(LEG_VARIABLE, nonce.as_str(), Duration::from_secs(2))?;
        if ended > 0 {
            self.notice(format!("ended {ended} processes that the agent had left running"));
        }
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        let branch = branch_ref(&self.session().workplace.branch);
        let since = self.session().dispatch.as_ref().map_or(0, |dispatch| dispatch.at.0);
        self.hub.repo.clear_dead_locks(&self.git_dir(), &branch, since)
    }

    /// Removes what agents printed: it may hold secrets, and it is needed only while a dispatch is
    /// under way, to follow it and to catch up after a crash. Call it where none is.
    pub(super) fn clear_streams(&self) -> Result<()> {
        let folder = self.hub.folder(&self.session().session_id);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "stream" || kind == "errors") {
                files::remove(&path)?;
            }
        }
        Ok(())
    }

    /// While a shell command of such an agent runs, its sandbox shows device files in the worktree,
    /// and `git add -A` in there fails on them. They are ignored by the git of that agent alone:
    /// by a file of ours that begins with the user's own `core.excludesFile`.
    pub(super) fn excludes(&self, seat: &Seat) -> Result<Option<PathBuf>> {
        let masks: Vec<&str> = seat
            .agent
            .debris
            .iter()
            .filter_map(|debris| match debris {
                Debris::InWorktree(name) if !self.worktree().join(name).exists() => Some(*name),
                _ => None,
            })
            .collect();
        if masks.is_empty() {
            return Ok(None);
        }
        let users = match self.hub.repo.config_path("core.excludesFile") {
            Some(path) => Some(path),
            None => env::git_folder().ok().map(|folder| folder.join("ignore")),
        };
        let users = match users {
            Some(path) => files::read(&path, EXCLUDES_BYTES_MOST).ok().flatten(),
            None => None,
        };
        let mut bytes = users.unwrap_or_default();
        bytes.push(b'\n');
        for name in masks {
            bytes.extend_from_slice(format!("/{name}\n").as_bytes());
        }
        let path = self.hub.folder(&self.session().session_id).join("excludes");
        files::replace(&path, &bytes, 0o600)?;
        Ok(Some(path))
    }

    /// Removes the empty, read-only masks that an agent's sandbox left. A file that git tracks, or
    /// that holds anything, or that can be written, is the user's.
    pub(super) fn clear_debris(&mut self) -> Result<()> {
        let Some(agent) = self.session().agent().cloned() else { return Ok(()) };
        let Some(seat) = Seat::find(&self.hub.settings, &agent) else { return Ok(()) };
        let tracked = self.worktree_repo()?.tracked_paths()?;
        for debris in seat.agent.debris {
            let path: PathBuf = match debris {
                Debris::InCommonDir(name) => self.hub.repo.common_dir().join(name),
                Debris::InWorktree(name) if tracked.contains(*name) => continue,
                Debris::InWorktree(name) => self.worktree().join(name),
            };
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.is_file() && found.len() == 0 && found.permissions().readonly() {
                files::remove(&path)?;
            }
        }
        Ok(())
    }
}
