//! Leg 1 of a session that an agent worked before there was one: what it left is brought into the
//! session's worktree, and from then on it is a leg like any other, to be handed over.
//!
//! The session's state says which agent's session it is and where that worked; both are looked at
//! again by whoever drives, so that a command that is killed is gone on with by `git relay resume`.

mod caller;
mod choose;
mod part;
mod place;

pub use caller::{Caller, caller};
pub use choose::{Choice, choose};
pub use place::{Known, Place, place_of};

use super::leg::{HowEnded, Leg};
use super::{Driver, End, Hub};
use crate::agents::Debris;
use crate::agents::store::{self, Home};
use crate::error::Fault;
use crate::git::{Caps, Repository, branch_ref, wip_ref};
use crate::host::config::Secrets;
use crate::host::{clock, env, files, random};
use crate::model::adoption::Left;
use crate::model::foreign;
use crate::model::fsm::Event;
use crate::model::moved::Moved;
use crate::model::names::{Nonce, Oid};
use crate::model::session::{Adoption, Dispatch, Taken};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

impl Driver<'_> {
    /// Parts from the agent, takes what it left, and makes it leg 1.
    pub(super) fn adopt(&mut self) -> Result<Option<End>> {
        let adoption = self.session().adopted.clone().context("there is something to adopt")?;
        let Some(how) = self.part_from(&adoption)? else { return Ok(Some(End::Killed)) };
        let nonce = Nonce::new(random::hex(32)?).context("32 hex digits make a nonce")?;
        let dispatch = Dispatch {
            account: adoption.account.clone(),
            agent_session: Some(adoption.agent_session.clone()),
            received_at: Some(adoption.last_seen_at),
            ..Dispatch::begin(adoption.agent.clone(), nonce, 1, adoption.last_seen_at)
        };
        if transcript_of(self.hub, &adoption).is_none() {
            let (agent, id) = (&adoption.agent, &adoption.agent_session);
            let what = format!("the transcript of {agent}'s session {id} is gone");
            let hint = format!("git relay abort {}", self.session().session_id);
            return Err(Fault::refused(what).hint(hint).into());
        }
        let (transcript, _) = self.hub.transcript(self.session(), &dispatch)?;
        let taken = self.take_along(&adoption)?;
        let open = transcript.plan.iter().filter(|item| item.is_open());
        let open_items = open.map(|item| foreign::one_line(&item.text)).collect();
        let leg = Leg::of(transcript);
        let how = match how {
            HowEnded::ByItself if leg.was_interrupted() => HowEnded::ByHand,
            how => how,
        };
        let leg_end = leg.end(how, open_items, adoption.last_seen_at);
        self.step(&Event::Adopted { dispatch, left: Left { taken, leg_end } }, None)?;
        self.furnish()?;
        Ok(None)
    }

    /// Makes the session's worktree with what the agent left: its commits below, the rest
    /// uncommitted. Doing it again after a kill takes what is there then.
    fn take_along(&mut self, adoption: &Adoption) -> Result<Taken> {
        let session = self.session().clone();
        let (branch, base) = (&session.workplace.branch, &session.workplace.base_commit);
        let worktree = self.worktree();
        let source = adoption.source.as_deref().filter(|_| adoption.include_dirty);
        let Some(source) = source else {
            self.hub.repo.add_worktree(&worktree, branch, base)?;
            let parent = base.clone();
            let (staged, not_captured) = (Vec::new(), Vec::new());
            return Ok(Taken { parent, commit: None, staged, not_captured });
        };
        let mut repo = Repository::open(&self.hub.place(source))?;
        let here = self.hub.place(source);
        let is_there = repo.common_dir() == self.hub.repo.common_dir()
            && repo.work_tree().canonicalize().ok() == here.canonicalize().ok();
        if !is_there {
            let what = format!(
                "'{}', where it worked, is no worktree of this repository any more",
                here.display()
            );
            let hint = format!(
                "put it back, then git relay resume {id}; or: git relay abort {id}",
                id = session.session_id
            );
            return Err(Fault::refused(what).hint(hint).into());
        }
        repo.set_durability(self.hub.repo.durability());
        place::must_be_at_rest(&repo, &format!("git relay resume {}", session.session_id))?;
        let name = wip_ref(&session.session_id);
        let held = repo.read_ref(&name)?;
        let id = &session.session_id;
        let message = format!("relay: what {} had not committed, for session {id}", adoption.agent);
        let now = clock::now().0;
        let mut taken = repo.take_copy(&Caps::default(), &message, now, held.as_ref())?;
        if !repo.is_ancestor(base, &taken.commit)? {
            // It has moved to another branch since the session began.
            let parents = [taken.parent.clone(), base.clone()];
            taken.commit = repo.write_commit(&taken.tree, &parents, &message, now)?;
        }
        self.secrets_may_come(&repo, &taken.parent, &taken.commit)?;
        repo.durable()?;
        if held.as_ref() != Some(&taken.commit) {
            repo.swap_own_ref(&name, &taken.commit, held.as_ref(), "adopt")?;
        }
        // An attempt that was killed may have begun the branch where the source was then.
        let begun = self.hub.repo.read_ref(&branch_ref(branch))?;
        let parent = begun.unwrap_or(taken.parent);
        self.hub.repo.add_worktree(&worktree, branch, &parent)?;
        self.worktree_repo()?.lay_over(&parent, &taken.commit, held.as_ref())?;
        self.leave_masks_behind(adoption, &repo)?;
        Ok(Taken {
            parent,
            commit: Some(taken.commit),
            staged: taken.staged.iter().map(|path| words(path)).collect(),
            not_captured: taken
                .not_captured
                .into_iter()
                .map(|mut lost| {
                    lost.what = words(&lost.what);
                    lost
                })
                .collect(),
        })
    }

    fn secrets_may_come(&mut self, repo: &Repository, since: &Oid, commit: &Oid) -> Result<()> {
        if self.hub.settings.secrets != Secrets::Refuse {
            return Ok(());
        }
        let found = self.secrets_in(repo, since, commit)?;
        if found.is_empty() {
            return Ok(());
        }
        found.into_iter().for_each(|words| self.notice(words));
        let id = &self.session().session_id;
        Err(Fault::refused("there are secrets in the work tree, and secrets = \"refuse\"")
            .hint(format!("take them out, then git relay resume {id}"))
            .into())
    }

    /// The empty, read-only files that an agent's sandbox shows, or left when it was ended hard,
    /// are nobody's work.
    fn leave_masks_behind(&self, adoption: &Adoption, source: &Repository) -> Result<()> {
        let tracked = self.worktree_repo()?.tracked_paths()?;
        for debris in self.hub.seat(&adoption.agent)?.agent.debris {
            let Debris::InWorktree(name) = debris else { continue };
            let found = std::fs::symlink_metadata(source.work_tree().join(name));
            let is_mask = found.is_ok_and(|found| {
                found.is_file() && found.len() == 0 && found.permissions().readonly()
            });
            if is_mask && !tracked.contains(*name) {
                files::remove(&self.worktree().join(name))?;
            }
        }
        Ok(())
    }
}

impl Hub {
    /// A place of the repository as a state names it: relative to the main worktree's root.
    fn place(&self, path: &str) -> PathBuf {
        let root = self.repo.main_work_tree().unwrap_or_else(|| self.repo.common_dir());
        root.join(path)
    }

    /// How texts of the agent are to be read in the session's worktree. `cwd` is the folder it
    /// worked in, as it spelled it.
    pub fn moved(&self, adoption: &Adoption, cwd: Option<&str>) -> Moved {
        let root = adoption.source.as_deref().map(|source| self.place(source));
        Moved::from(spellings(root.as_deref(), cwd))
    }
}

/// The file of what is adopted, found again by the agent's own id and by where it worked: an id may
/// be there more than once, in a copied project say. A link in its place is not followed.
pub(super) fn transcript_of(hub: &Hub, adoption: &Adoption) -> Option<PathBuf> {
    let (agent, keeps) =
        store::agents().find(|(agent, _)| agent.name == adoption.agent.as_str())?;
    let path = match &adoption.config_folder {
        Some(folder) => PathBuf::from(folder),
        None => env::home().ok()?.join(keeps.below_home),
    };
    let home = Home { agent, path, is_default: adoption.config_folder.is_none() };
    let mut found = store::named(&[home], &adoption.agent_session);
    found.retain(|found| found.id == adoption.agent_session);
    let Some(source) = adoption.source.as_deref().map(|source| hub.place(source)) else {
        // Where it worked was gone when it was adopted: only one can be told from others.
        return found.pop().filter(|_| found.is_empty()).map(|found| found.transcript);
    };
    // Git is not asked: a worktree that is half made would keep it from answering.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(&source);
    let worked_there = |cwd: &Path| cwd.starts_with(&source) || real(cwd).starts_with(&root);
    found.retain(|found| found.cwd.as_deref().is_some_and(worked_there));
    found.into_iter().next().map(|found| found.transcript)
}

/// Every known spelling of the root that an agent worked in: as it is, and as the agent's own
/// folder spells it, which may go through a link.
pub fn spellings(root: Option<&Path>, cwd: Option<&str>) -> Vec<String> {
    let mut all = Vec::new();
    let Some(root) = root else {
        // It is gone: the folder it was started in is all that is known of it.
        all.extend(cwd.map(str::to_owned));
        return all;
    };
    all.extend(root.to_str().map(str::to_owned));
    if let Ok(real) = root.canonicalize() {
        all.extend(real.to_str().map(str::to_owned));
        let inside = cwd.map(Path::new).and_then(|cwd| {
            let depth = cwd.canonicalize().ok()?.strip_prefix(&real).ok()?.components().count();
            cwd.ancestors().nth(depth)?.to_str()
        });
        all.extend(inside.map(str::to_owned));
    }
    all
}

/// A name out of a work tree as a state of ours may hold it.
fn words(text: &str) -> String {
    foreign::line(text)
}
