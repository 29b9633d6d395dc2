//! What an adopted session took along from a worktree still lies there, uncommitted, when its result
//! comes home. As long as it is the very same, the result may take its place: it is in it.

use super::merge::must_be_clean;
use super::plan::Plan;
use crate::git::{Caps, Repository, aside_ref, snapshot_ref};
use crate::host::clock;
use crate::model::names::Oid;
use crate::relay::Driver;
use anyhow::Result;

impl Driver<'_> {
    /// Which of `dirty` are as they were when they were taken along, and a capture of that worktree
    /// as it is now.
    pub(super) fn taken_along(
        &self,
        repo: &Repository,
        dirty: &[Vec<u8>],
    ) -> Result<Option<(Vec<Vec<u8>>, Oid)>> {
        let session = self.session();
        let taken = session.adopted.as_ref().and_then(|adoption| adoption.taken.as_ref());
        if dirty.is_empty() || taken.is_none_or(|taken| taken.commit.is_none()) {
            return Ok(None);
        }
        let Some(then) = repo.read_ref(&snapshot_ref(&session.session_id, 1))? else {
            return Ok(None);
        };
        let message = "relay: what stood there when the result came";
        let now = repo.take_copy(&Caps::default(), message, clock::now().0, None)?.commit;
        let mut same = Vec::new();
        for path in dirty {
            let here = repo.entry_at(&now, path)?;
            // An ignored file is in no capture.
            let is_seen = here.is_some() || !repo.stands(path);
            if is_seen && repo.entry_at(&then, path)? == here {
                same.push(path.clone());
            }
        }
        Ok((!same.is_empty()).then_some((same, now)))
    }

    /// Keeps by a ref what the result is to take the place of.
    pub(super) fn set_aside(&mut self, repo: &Repository, plan: &Plan) -> Result<Option<Oid>> {
        let touched = repo.touched_paths(&plan.target, plan.merged.tree())?;
        let mut dirty = repo.dirty_paths(&touched)?;
        let Some((paths, now)) = self.taken_along(repo, &dirty)? else { return Ok(None) };
        // Looked at before; somebody may have been at work there since.
        dirty.retain(|path| !paths.contains(path));
        must_be_clean(repo, &dirty, &plan.again)?;
        let id = self.session().session_id.clone();
        let message = format!("relay: what stood there when the result of session {id} came");
        let aside = repo.aside(&paths, &plan.target, &now, &message, clock::now().0)?;
        repo.durable()?;
        let name = aside_ref(&id);
        let held = repo.read_ref(&name)?;
        repo.swap_own_ref(&name, &aside, held.as_ref(), "finish")?;
        self.notice(format!(
            "{} files there are as they were taken along, and make way for the result; they stay reachable as {name}",
            paths.len()
        ));
        Ok(Some(aside))
    }
}
