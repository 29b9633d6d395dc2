//! `git relay detect`

mod show;

use super::{open_hub, open_repository};
use crate::agents::store::{self, Found, Home, Looked, Running, Search, Wanted};
use crate::cli::Detect;
use crate::error::Fault;
use crate::git::place::Places;
use crate::host::{clock, env};
use crate::model::screen;
use crate::model::time::Timestamp;
use crate::relay::detect::{self, Ours, Row, Standing};
use crate::ui::out;
use crate::ui::progress::{ago, share};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

/// Of the prompt in a row, so that it is one line on most screens; `--json` has more.
const PROMPT_CHARS_MOST: usize = 90;

pub(super) fn run(args: &Detect) -> Result<u8> {
    let (homes, running) = detect::look();
    match &args.id {
        Some(id) => one(args, id, &homes, &running),
        None => list(args, &homes, &running),
    }
}

fn list(args: &Detect, homes: &[Home], running: &[Running]) -> Result<u8> {
    let since = args.since.as_deref().map(moment).transpose()?;
    let mut places = match args.all {
        true => None,
        false => Some(places()?),
    };
    let wanted = Wanted { since, ..Wanted::default() };
    let Search { mut found, looked } = store::search(homes, wanted, |cwd| match &mut places {
        None => true,
        Some(places) => cwd.is_some_and(|cwd| places.of(cwd).is_some()),
    });
    let total = found.len();
    let ids: Vec<String> = detect::short_ids(&found).into_iter().map(str::to_owned).collect();
    found.truncate(args.limit);
    let rows = rows(found, running);
    if args.json {
        let sessions: Vec<Value> =
            rows.iter().map(|row| value(row, place(&mut places, row))).collect();
        let looked: Vec<Value> = looked.iter().map(looked_value).collect();
        let value = json!({"sessions": sessions, "total": total, "lookedAt": looked});
        out::json("detected", &value)?;
        return Ok(0);
    }
    print(&rows, &ids, &mut places)?;
    if total > rows.len() {
        out::say(format!("{} more: say --limit {total} to see all", total - rows.len()));
    }
    if total == 0 {
        nothing(args, &looked);
    }
    let is_short = |looked: &&Looked| looked.unread > 0 || args.all && looked.packed > 0;
    for looked in looked.iter().filter(|looked| total == 0 || is_short(looked)) {
        out::say(told(looked));
    }
    Ok(0)
}

/// The session that an id names, shortly or whole.
fn one(args: &Detect, id: &str, homes: &[Home], running: &[Running]) -> Result<u8> {
    let mut named = store::named(homes, id);
    let found = match named.len() {
        1 => named.remove(0),
        0 => {
            return Err(Fault::refused(format!("no session is called '{id}'"))
                .hint("git relay detect --all")
                .into());
        }
        some => {
            let ids = detect::short_ids(&named).join(", ");
            return Err(Fault::refused(format!("'{id}' is the beginning of {some} ids: {ids}"))
                .hint("say more of it")
                .into());
        }
    };
    if args.show {
        return show::run(found, running, args.json);
    }
    let short = detect::short_ids(std::slice::from_ref(&found))[0].to_owned();
    let rows = rows(vec![found], running);
    match args.json {
        true => out::json("detected", &json!({"sessions": [value(&rows[0], None)]}))?,
        false => print(&rows, &[short], &mut None)?,
    }
    Ok(0)
}

fn places() -> Result<Places> {
    let repo = open_repository().map_err(|error| {
        error.context(Fault::refused("there is no repository here").hint("git relay detect --all"))
    })?;
    repo.places()
}

fn rows(found: Vec<Found>, running: &[Running]) -> Vec<Row> {
    // Where nothing is ready for relays, nothing is ours.
    let ours = match found.is_empty() {
        true => Ours::default(),
        false => open_hub().map(|hub| Ours::of_repository(&hub)).unwrap_or_default(),
    };
    let now = clock::now();
    found.into_iter().map(|found| detect::row(found, running, &ours, now)).collect()
}

/// A moment so long ago: `7d`, `12h`, `30m`, `2w`.
fn moment(age: &str) -> Result<Timestamp> {
    let unit = match age.chars().next_back() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        _ => 0,
    };
    let amount = age.get(..age.len().saturating_sub(1)).and_then(|text| text.parse::<u32>().ok());
    match amount {
        Some(amount) if unit > 0 => Ok(clock::now().plus_seconds(-i64::from(amount) * unit)),
        _ => Err(Fault::usage(format!("'{age}' is no age"))
            .hint("git relay detect --since 7d")
            .into()),
    }
}

/// The worktree that a session is in, if its rows are of one repository.
fn place(places: &mut Option<Places>, row: &Row) -> Option<String> {
    let cwd = row.found.cwd.as_deref()?;
    places.as_mut()?.of(cwd).map(out::path)
}

fn value(row: &Row, worktree: Option<String>) -> Value {
    let Row { found, .. } = row;
    let until = match row.standing {
        Standing::Limited(until) => until,
        _ => None,
    };
    let plan = row.plan.map(|(done, total)| json!({"done": done, "total": total}));
    let context = row.context.map(|it| json!({"tokens": it.used, "window": it.most}));
    json!({
        "id": found.id, "agent": found.agent().name, "account": account(&found.home),
        "model": row.model, "modifiedAt": found.modified, "sizeBytes": found.size,
        "transcript": out::path(&found.transcript), "cwd": found.cwd.as_ref().map(out::path),
        "worktree": worktree, "state": row.standing.word(), "lastTurn": row.last_turn, "limitedUntil": until,
        "pid": row.pid, "firstPrompt": row.prompt, "plan": plan, "filesTouched": row.files,
        "context": context, "readings": row.readings, "relaySession": row.relay,
        "endOnly": row.is_partial,
    })
}

/// The folder of an account that is not the agent's usual one.
fn account(home: &Home) -> Option<String> {
    (!home.is_default).then(|| out::path(&home.path))
}

fn print(rows: &[Row], ids: &[String], places: &mut Option<Places>) -> Result<()> {
    let heads: Vec<Vec<String>> = rows.iter().zip(ids).map(|(row, id)| head(row, id)).collect();
    let heads = out::table(&heads);
    for (row, head) in rows.iter().zip(heads.lines()) {
        out::line(head)?;
        let prompt = row.prompt.as_deref().unwrap_or("(its prompt is not known)");
        out::line(format!("    {}", screen::first_chars(prompt, PROMPT_CHARS_MOST)))?;
        let more = more(row, place(places, row));
        if !more.is_empty() {
            out::line(format!("    {}", more.join(", ")))?;
        }
    }
    Ok(())
}

fn head(row: &Row, id: &str) -> Vec<String> {
    let at_least = if row.is_partial { "or more " } else { "" };
    vec![
        id.to_owned(),
        row.found.agent().name.to_owned(),
        standing(row),
        ago(row.found.modified),
        row.plan.map_or("no plan".to_owned(), |(done, all)| format!("plan {done}/{all}")),
        match row.files {
            1 => format!("1 {at_least}file"),
            files => format!("{files} {at_least}files"),
        },
    ]
}

fn standing(row: &Row) -> String {
    let mut text = match row.standing {
        Standing::Limited(Some(until)) => format!("limited until {until} ({})", ago(until)),
        Standing::Limited(None) => "limited".to_owned(),
        Standing::Ended if row.last_turn == "damaged" => {
            "ended; its transcript is damaged at its end".to_owned()
        }
        Standing::Ended => format!("ended: {}", row.last_turn),
        standing => standing.word().to_owned(),
    };
    if let (Some(pid), Standing::Limited(_)) = (row.pid, row.standing) {
        text.push_str(&format!(", still open as process {pid}"));
    }
    text
}

fn more(row: &Row, worktree: Option<String>) -> Vec<String> {
    let mut more = Vec::new();
    if let Some(session) = &row.relay {
        more.push(format!("a leg of session {session}: git relay status {session}"));
    }
    let here = env::current_folder().ok();
    match (&row.found.cwd, worktree) {
        (Some(cwd), _) if here.as_deref() == Some(cwd) => {}
        (Some(cwd), _) => more.push(format!("in {}", shown(cwd))),
        (None, _) => more.push("its folder is not known".to_owned()),
    }
    more.extend(row.model.clone());
    if let Some((used, most)) = row.context.and_then(|context| Some((context.used?, context.most)))
    {
        more.push(match most {
            Some(most) => format!("context {used} of {most} tokens"),
            None => format!("context {used} tokens"),
        });
    }
    more.extend(
        row.readings.iter().map(|read| format!("{} ({})", share(read), ago(read.observed_at))),
    );
    more.extend(
        account(&row.found.home).map(|folder| format!("account {}", shown(Path::new(&folder)))),
    );
    more
}

/// A path, short where it is below the user's home.
fn shown(path: &Path) -> String {
    let home = env::home().ok();
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

fn nothing(args: &Detect, looked: &[Looked]) {
    let files: usize = looked.iter().map(|looked| looked.files).sum();
    out::say(match (args.all || files == 0, &args.since) {
        (_, Some(since)) => format!("no agent's session of the last {since} was found"),
        (true, None) => "no agent's session was found".to_owned(),
        (false, None) => "no agent's session of this repository was found; \
             of all folders: git relay detect --all"
            .to_owned(),
    });
}

fn told(looked: &Looked) -> String {
    let place = format!("{}: {}", looked.home.agent.name, shown(&looked.home.path));
    let mut words = match (looked.is_there, looked.is_own, looked.files) {
        (false, ..) => "not there".to_owned(),
        (_, false, _) => "belongs to somebody else, not read".to_owned(),
        (.., 1) => "1 session".to_owned(),
        (.., files) => format!("{files} sessions"),
    };
    for (some, why) in [(looked.unread, "cannot be read"), (looked.packed, "compressed")] {
        if some > 0 {
            words.push_str(&format!(", {some} of them {why}"));
        }
    }
    format!("looked at {place}: {words}")
}

fn looked_value(looked: &Looked) -> Value {
    json!({
        "agent": looked.home.agent.name, "folder": out::path(&looked.home.path),
        "isThere": looked.is_there, "isOwn": looked.is_own, "files": looked.files,
        "unread": looked.unread, "compressed": looked.packed,
    })
}
