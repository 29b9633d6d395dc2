//! `git relay record`

use super::open_hub;
use crate::cli::Record;
use crate::error::{Fault, Kind, kind_of};
use crate::host::lock;
use crate::model::inbox::Says;
use crate::model::names::SessionId;
use crate::model::session::DeclaredKind;
use crate::relay::{Driver, Options, ask};
use crate::ui::out;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

pub(super) fn run(args: &Record) -> Result<u8> {
    let facts = facts(args);
    if facts.is_empty() || facts.iter().any(|(_, text)| text.trim().is_empty()) {
        return Err(Fault::usage("a fact has no words")
            .hint("git relay record --decision 'use bcrypt: it is in the standard image'")
            .into());
    }
    // Inside an agent's sandbox only the inbox can be written; nothing else is needed.
    if args.session.is_none()
        && let Some(inbox) = ask::own_inbox()
    {
        append(&inbox, &facts, ask::own_leg())?;
        out::say(format!("recorded {} for the next agent", plural(facts.len())));
        return tell(args, facts.len(), None);
    }
    let hub = open_hub()?;
    let session = ask::open_session(&hub, args.session.as_deref())?;
    let id = session.session_id.clone();
    let by = ask::leg_of(&session);
    let inbox = ask::inbox_path(&hub, &session);
    if !inbox.parent().is_some_and(Path::is_dir) {
        // Begun, and its worktree not made yet; or that is gone.
        return Err(Fault::refused(format!("session '{id}' has no worktree now to keep facts in"))
            .hint(format!("git relay resume {id}, which makes it; then say it again"))
            .into());
    }
    append(&inbox, &facts, by.clone())?;
    if by.is_none() && !lock::is_held(&hub.lock_path(&id)) {
        let mut silent = |_| {};
        let fold = Driver::take(&hub, &id, "record", Options::default(), &mut silent);
        match fold.and_then(|mut driver| driver.fold()) {
            // Somebody was faster; the line is in the inbox, and the next driver folds it.
            Err(error) if kind_of(&error) == Kind::Raced => {}
            // It is stated all the same: said again it would be stated twice.
            Err(error) if kind_of(&error) == Kind::Environment => {
                out::say(format!("it is not signed yet: {error:#}"));
            }
            done => done?,
        }
    }
    out::say(format!("recorded {} in session {id}", plural(facts.len())));
    tell(args, facts.len(), Some(&id))
}

/// Within an agent's own leg the session is not looked up, so it is not named.
fn tell(args: &Record, recorded: usize, session: Option<&SessionId>) -> Result<u8> {
    if args.json {
        out::json("record", &json!({"recorded": recorded, "sessionId": session}))?;
    }
    Ok(0)
}

fn plural(count: usize) -> String {
    if count == 1 { "1 fact".to_owned() } else { format!("{count} facts") }
}

fn facts(args: &Record) -> Vec<(DeclaredKind, &String)> {
    [
        (DeclaredKind::Decision, &args.decision),
        (DeclaredKind::Constraint, &args.constraint),
        (DeclaredKind::DoNotRedo, &args.do_not_redo),
        (DeclaredKind::Done, &args.done),
        (DeclaredKind::Next, &args.next),
        (DeclaredKind::Plan, &args.plan),
        (DeclaredKind::Assert, &args.assertion),
    ]
    .into_iter()
    .flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, text)))
    .collect()
}

fn append(inbox: &Path, facts: &[(DeclaredKind, &String)], by: Option<String>) -> Result<()> {
    for (fact, text) in facts {
        let says = Says::Record { fact: *fact, text: (*text).clone(), nonce: None };
        ask::append_as(inbox, says, by.clone())?;
    }
    Ok(())
}
