//! `git relay finish`

use super::open_hub;
use crate::cli::Finish;
use crate::model::names::SessionId;
use crate::model::session::FinishKind;
use crate::relay::finish::{Finished, Order, Preview};
use crate::relay::{Driver, Options, ask};
use crate::ui::{out, progress};
use anyhow::Result;
use serde_json::json;

/// Of a preview's lists; `--json` has all.
const NAMES_SHOWN_MOST: usize = 20;

pub(super) fn run(args: &Finish) -> Result<u8> {
    let hub = open_hub()?;
    let id = match ask::in_conflict(&hub)? {
        Some(id) if args.session.is_none() && (args.go_on || args.abort) => id,
        _ => ask::session_to_end(&hub, args.session.as_deref(), "git relay finish NAME")?,
    };
    let mut report = progress::tell;
    let options = Options { accept_config: args.accept_config, ..Options::default() };
    let mut driver = Driver::take(&hub, &id, "finish", options, &mut report)?;
    let order = Order {
        kind: match (args.merge, args.keep) {
            (true, _) => FinishKind::Merge,
            (_, true) => FinishKind::Keep,
            _ => FinishKind::Squash,
        },
        into: args.into.clone(),
        message: args.message.clone(),
        include_snapshot: args.include_snapshot,
        dry_run: args.dry_run,
    };
    if args.dry_run {
        return show(&id, &driver.preview(&order)?, args.json);
    }
    if args.abort {
        let branch = driver.finish_abort()?;
        if args.json {
            out::json("finish", &json!({"sessionId": id, "branch": branch, "undone": true}))?;
        }
        out::say(format!(
            "relay: {branch} is as it was; the session goes on: git relay status {id}"
        ));
        return Ok(0);
    }
    out::say(format!("relay: finishing session {id}"));
    let finished = match args.go_on {
        true => driver.finish_continue(&order)?,
        false => driver.finish(&order)?,
    };
    tell(&id, &finished, args.json)?;
    Ok(0)
}

fn tell(id: &SessionId, finished: &Finished, is_json: bool) -> Result<()> {
    if is_json {
        let value = json!({
            "sessionId": id, "kind": finished.kind, "branch": finished.branch,
            "commit": finished.commit, "kept": finished.kept, "leftOut": finished.left_out,
        });
        out::json("finish", &value)?;
    }
    for path in &finished.left_out {
        out::say(format!("relay: left out, since no agent committed it: {path}"));
    }
    if !finished.left_out.is_empty() {
        out::say(format!("relay: to have it: git checkout {} -- PATH", finished.kept));
    }
    let branch = &finished.branch;
    match (&finished.commit, finished.kind) {
        (Some(commit), FinishKind::Keep) => {
            out::say(format!("relay: the result stays on {branch}: {}", &commit.as_str()[..10]));
        }
        (Some(commit), _) => out::say(format!("relay: {branch} is now {}", &commit.as_str()[..10])),
        (None, _) => out::say(format!("relay: {branch} has all of it already")),
    }
    out::say(format!("relay: every commit of the session stays reachable as {}", finished.kept));
    Ok(())
}

/// Exits 0 if it would go through.
fn show(id: &SessionId, preview: &Preview, is_json: bool) -> Result<u8> {
    let goes = preview.refusal.is_none() && preview.conflicts.is_empty();
    if is_json {
        let commits: Vec<_> = preview
            .commits
            .iter()
            .map(|(oid, subject)| json!({"commit": oid, "subject": subject}))
            .collect();
        let value = json!({
            "sessionId": id, "dryRun": true, "kind": preview.kind, "branch": preview.branch,
            "checkedOutAt": preview.place, "alreadyThere": preview.is_there_already,
            "commits": commits, "writtenAnew": preview.is_anew, "files": preview.files, "leftOut": preview.left_out,
            "onlySaved": preview.only_saved, "conflicts": preview.conflicts, "message": preview.message,
            "refusal": preview.refusal,
        });
        out::json("finish", &value)?;
        return Ok(u8::from(!goes));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut list = |name: &str, values: &mut dyn Iterator<Item = String>| {
        let mut more = 0;
        for (number, value) in values.enumerate() {
            match number < NAMES_SHOWN_MOST {
                true => rows.push(vec![name.to_owned(), value]),
                false => more += 1,
            }
        }
        if more > 0 {
            rows.push(vec![name.to_owned(), format!("and {more} more")]);
        }
    };
    let what = match preview.kind {
        FinishKind::Squash => "one commit on",
        FinishKind::Merge => "a merge commit on",
        FinishKind::Keep => "nothing is brought anywhere; the result stays on",
    };
    let place = match &preview.place {
        Some(place) => format!(", checked out at {}", place.display()),
        None => String::new(),
    };
    list("would make", &mut [format!("{what} {}{place}", preview.branch)].into_iter());
    if preview.is_there_already {
        list("result", &mut ["the branch has all of it already".to_owned()].into_iter());
    }
    let commits = preview.commits.iter();
    list("commit", &mut commits.map(|(oid, text)| format!("{} {text}", &oid.as_str()[..10])));
    let anew = "the commits are written anew, without the snapshots between them";
    list("history", &mut preview.is_anew.then(|| anew.to_owned()).into_iter());
    list("file", &mut preview.files.iter().cloned());
    list("left out", &mut preview.left_out.iter().cloned());
    let only_saved = preview.only_saved.iter();
    list("snapshot's", &mut only_saved.map(|path| format!("{path}, which no agent committed")));
    list("conflict", &mut preview.conflicts.iter().cloned());
    list("message", &mut preview.message.lines().map(str::to_owned));
    list("refused", &mut preview.refusal.iter().cloned());
    out::data(out::table(&rows).as_bytes())?;
    Ok(u8::from(!goes))
}
