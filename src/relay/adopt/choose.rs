//! Which of the sessions on this machine is meant.

use super::Caller;
use crate::agents::store::{self, Found, Running};
use crate::error::Fault;
use crate::git::Repository;
use crate::host::env;
use crate::model::screen;
use crate::model::transcript::{Ending, Trouble};
use crate::relay::Hub;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// One that was at work this much later than all others is plainly meant.
const MARGIN_S: i64 = 3600;
/// Candidates that are looked at and shown.
const CANDIDATES_MOST: usize = 8;

/// What a search came to.
#[derive(Debug)]
pub enum Choice {
    Plain(Box<Found>),
    /// Several could be meant; newest first.
    Doubt(Vec<Candidate>),
    Nothing,
}

/// A session that could be meant.
#[derive(Debug)]
pub struct Candidate {
    pub found: Found,
    pub runs: bool,
    pub is_limited: bool,
}

/// The session that begins with the id `named`, else the caller's own, else the one of the worktree
/// we are in that is plainly meant.
pub fn choose(
    hub: &Hub,
    running: &[Running],
    named: Option<&str>,
    caller: Option<&Caller>,
) -> Result<Choice> {
    let homes = store::homes(running);
    if let Some(caller) = caller {
        if named.is_some_and(|named| !caller.id.starts_with(named)) {
            return Err(Fault::refused(format!(
                "this is a shell of {}'s, which can pass on no session but its own",
                caller.agent
            ))
            .hint("git relay adopt")
            .into());
        }
        let all = store::search(&homes, None, |_| true).found;
        let own = all.into_iter().find(|it| it.agent().name == caller.agent && it.id == caller.id);
        return Ok(own.map_or(Choice::Nothing, |own| Choice::Plain(Box::new(own))));
    }
    if let Some(named) = named {
        let all = store::search(&homes, None, |_| true).found;
        let like: Vec<Found> = store::named(&all, named).into_iter().cloned().collect();
        return Ok(match like.len() {
            0 => Choice::Nothing,
            1 => Choice::Plain(Box::new(like.into_iter().next().expect("there is one"))),
            _ => Choice::Doubt(candidates(like, running)),
        });
    }
    let here = Here::now(hub)?;
    let found = store::search(&homes, None, |cwd| cwd.is_some_and(|cwd| here.is_in(cwd))).found;
    let new =
        found.into_iter().filter(|it| super::must_be_new(hub, it.agent().name, &it.id).is_ok());
    Ok(plain(candidates(new.collect(), running)))
}

/// The one that is plainly meant.
fn plain(mut candidates: Vec<Candidate>) -> Choice {
    let Some(newest) = candidates.first() else { return Choice::Nothing };
    let near = |it: &Candidate| newest.found.modified.0 - it.found.modified.0 < MARGIN_S;
    let others = || candidates[1..].iter();
    let alone = others().all(|it| !near(it) && !it.runs);
    // Of several that were just at work, the one that cannot go on by itself.
    let stands_out =
        newest.is_limited && others().all(|it| !it.runs && !(near(it) && it.is_limited));
    match alone || stands_out {
        true => Choice::Plain(Box::new(candidates.swap_remove(0).found)),
        false => Choice::Doubt(candidates),
    }
}

fn candidates(found: Vec<Found>, running: &[Running]) -> Vec<Candidate> {
    let all = found.into_iter().take(CANDIDATES_MOST).map(|found| {
        let ending = found.read().ok().and_then(|transcript| transcript.ending);
        Candidate {
            runs: found.process(running).is_some(),
            is_limited: matches!(ending, Some(Ending::Trouble(Trouble::Limit { .. }))),
            found,
        }
    });
    all.collect()
}

impl Candidate {
    /// What was asked first, on one line.
    pub fn prompt(&self) -> String {
        let text = self.found.first_prompt().unwrap_or_default();
        screen::line(&crate::model::redact::redact(&text).text)
    }
}

/// The worktree that the command was started in, among all of the repository.
struct Here {
    root: PathBuf,
    all: Vec<PathBuf>,
}

impl Here {
    fn now(hub: &Hub) -> Result<Self> {
        let root = Repository::open(&env::current_folder()?)?.work_tree().to_owned();
        let all = hub.repo.worktrees()?.into_iter().map(|tree| tree.path).collect();
        Ok(Self { root, all })
    }

    /// Whether the innermost worktree that holds `folder` is this one.
    fn is_in(&self, folder: &Path) -> bool {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let inside = self.all.iter().filter(|root| folder.starts_with(root));
        let innermost = inside.max_by_key(|root| root.components().count());
        innermost.is_some_and(|root| *root == self.root)
    }
}
