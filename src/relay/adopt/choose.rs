//! Which of the sessions on this machine is meant.

use super::{Caller, Known};
use crate::agents::store::{self, Found, Running, Wanted};
use crate::error::Fault;
use crate::git::Repository;
use crate::host::{clock, env};
use crate::relay::Hub;
use crate::relay::detect::{self, Ours, Row};
use anyhow::Result;

/// One that was at work this much later than all others is plainly meant.
const MARGIN_S: i64 = 3600;
/// Sessions that are looked at and shown, the newest.
const ROWS_MOST: usize = 8;

/// What a search came to.
#[derive(Debug)]
pub enum Choice {
    Plain(Box<Found>),
    /// Several could be meant; newest first.
    Doubt(Vec<Row>),
    Nothing,
}

/// The session that begins with the id `named`, else the caller's own, else the one of the worktree
/// we are in that is plainly meant.
pub fn choose(
    hub: &Hub,
    known: &Known,
    running: &[Running],
    named: Option<&str>,
    caller: Option<&Caller>,
) -> Result<Choice> {
    let homes = store::homes(running);
    if let (Some(caller), Some(named)) = (caller, named)
        && !caller.id.starts_with(named)
    {
        return Err(Fault::refused(format!(
            "this is a shell of {}'s, which can pass on no session but its own",
            caller.agent
        ))
        .hint("git relay adopt")
        .into());
    }
    if let Some(id) = caller.map(|caller| caller.id.as_str()).or(named) {
        let mut found = store::named(&homes, id);
        found.retain(|it| caller.is_none_or(|caller| it.agent().name == caller.agent));
        if found.len() > 1 {
            nearest(hub, &mut found)?;
        }
        return Ok(match found.len() {
            0 => Choice::Nothing,
            1 => Choice::Plain(Box::new(found.remove(0))),
            _ => Choice::Doubt(rows(hub, found, running)),
        });
    }
    let here = Repository::open(&env::current_folder()?)?.work_tree().to_owned();
    let mut places = hub.repo.places()?;
    let is_here = |cwd: Option<&std::path::Path>| {
        cwd.and_then(|cwd| places.of(cwd)).is_some_and(|place| *place == *here)
    };
    let mut found = store::search(&homes, Wanted::default(), is_here).found;
    found.retain(|found| known.must_be_new(found).is_ok());
    let (over, found): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| known.over(found).is_some());
    if let (Some(last), true) = (over.first(), found.is_empty())
        && let Some(session) = known.over(last)
    {
        let (agent, id, ours, state) =
            (last.agent().name, &last.id, &session.session_id, session.state);
        return Err(Fault::refused(format!(
            "{agent}'s session {id} was adopted before, as session '{ours}' ({state}), and it wrote nothing since"
        ))
        .hint(format!("to adopt it again all the same: git relay adopt {id}"))
        .into());
    }
    Ok(plain(rows(hub, found, running)))
}

/// Of several with one name, those that worked in this worktree; else those of this repository.
fn nearest(hub: &Hub, found: &mut Vec<Found>) -> Result<()> {
    let here = Repository::open(&env::current_folder()?)?.work_tree().to_owned();
    let mut places = hub.repo.places()?;
    let place =
        |it: &Found| it.cwd.as_deref().and_then(|cwd| places.of(cwd)).map(|it| it.to_path_buf());
    let at: Vec<_> = found.iter().map(place).collect();
    let is_here = |place: &Option<std::path::PathBuf>| place.as_ref() == Some(&here);
    let (some_here, some_ours) = (at.iter().any(is_here), at.iter().any(Option::is_some));
    let mut at = at.iter();
    found.retain(|_| {
        let place = at.next().unwrap_or(&None);
        if some_here { is_here(place) } else { !some_ours || place.is_some() }
    });
    Ok(())
}

/// The one that is plainly meant.
fn plain(mut rows: Vec<Row>) -> Choice {
    let Some(newest) = rows.first() else { return Choice::Nothing };
    let near = |row: &Row| newest.found.modified.0 - row.found.modified.0 < MARGIN_S;
    let at_limit = |row: &Row| row.last_turn == "limit";
    let others = || rows[1..].iter();
    let alone = others().all(|row| !near(row) && row.pid.is_none());
    // Of several that were just at work, the one that cannot go on.
    let stands_out =
        at_limit(newest) && others().all(|row| row.pid.is_none() && !(near(row) && at_limit(row)));
    match alone || stands_out {
        true => Choice::Plain(Box::new(rows.swap_remove(0).found)),
        false => Choice::Doubt(rows),
    }
}

fn rows(hub: &Hub, found: Vec<Found>, running: &[Running]) -> Vec<Row> {
    let (ours, now) = (Ours::of_repository(hub), clock::now());
    let newest = found.into_iter().take(ROWS_MOST);
    newest.map(|found| detect::row(found, running, &ours, now)).collect()
}
