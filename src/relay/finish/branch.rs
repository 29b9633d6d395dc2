//! A session's branch that is gone, or cannot be read: where it stood last, as far as that is known.

use crate::error::Fault;
use crate::git::{Repository, branch_ref, wip_ref};
use crate::model::names::Oid;
use crate::model::session::Session;
use crate::model::shell::shell_word;
use crate::relay::Hub;
use anyhow::Result;

impl Hub {
    /// Where the branch stood and how that is known, the likeliest first; the base is always there.
    pub(in crate::relay) fn stood(&self, session: &Session) -> Result<Vec<(Oid, &'static str)>> {
        let repo = &self.repo;
        let name = branch_ref(&session.workplace.branch);
        let base = &session.workplace.base_commit;
        let mut stood: Vec<(Oid, &'static str)> =
            repo.stood_at(&name).into_iter().map(|oid| (oid, "its reflog")).collect();
        let git_dir = self.git_dir(session);
        if let Ok(own) =
            Repository::open_pinned(repo.common_dir(), &git_dir, &self.worktree(session))
            && own.head_branch().ok().flatten().as_ref() == Some(&name)
        {
            for oid in own.head_stood_at() {
                if repo.has_object(&oid) && repo.is_ancestor(base, &oid).unwrap_or(false) {
                    stood.push((oid, "the reflog of its worktree"));
                }
            }
        }
        let snapshot = session.snapshot.as_ref().filter(|snapshot| snapshot.on_branch);
        let snapshot = snapshot.map(|snapshot| snapshot.commit.clone());
        // What the wip snapshot stands on was the branch's tip then.
        let wip =
            match repo.read_ref(&wip_ref(&session.session_id))?.map(|it| repo.read_commit(&it)) {
                Some(Ok(wip)) => wip.parents.first().cloned(),
                _ => None,
            };
        let goes_on = match (&snapshot, &wip) {
            (Some(snapshot), Some(wip)) => repo.is_ancestor(snapshot, wip).unwrap_or(false),
            _ => false,
        };
        let both = if goes_on { [wip, snapshot] } else { [snapshot, wip] };
        stood.extend(both.into_iter().flatten().map(|oid| (oid, "its last snapshot")));
        stood.push((base.clone(), "the commit that the session started from"));
        Ok(stood)
    }

    /// Refuses a branch that is gone, and names the command that brings it back.
    pub fn must_have_branch(&self, session: &Session) -> Result<()> {
        let branch = &session.workplace.branch;
        if self.repo.read_ref(&branch_ref(branch))?.is_some() {
            return Ok(());
        }
        let stood = self.stood(session)?;
        let last = stood.into_iter().find(|(oid, _)| self.repo.has_object(oid));
        let fault = Fault::refused(format!("the session's branch '{branch}' is gone"));
        Err(match last {
            Some((oid, from)) => fault.hint(format!(
                "git branch {} {} brings it back, by {from}",
                shell_word(branch),
                &oid.as_str()[..10]
            )),
            None => fault.hint("git fsck"),
        }
        .into())
    }
}
