//! `git relay verify`

use super::open_hub;
use crate::cli::Verify;
use crate::model::names::SessionId;
use crate::relay::{Hub, ask};
use crate::store;
use crate::store::audit::{self, Finding};
use crate::ui::out;
use anyhow::Result;
use serde_json::json;

pub(super) fn run(args: &Verify) -> Result<u8> {
    let hub = open_hub()?;
    let sessions = match &args.session {
        Some(name) => vec![ask::session_meant(&hub, Some(name), "git relay verify NAME")?],
        None => {
            let lost = store::list_lost(&hub.repo, &hub.trust)?.into_iter().map(|lost| lost.id);
            store::list(&hub.repo)?.into_iter().chain(lost).collect()
        }
    };
    let mut rows = Vec::new();
    for id in sessions {
        let name = id.as_str().to_owned();
        rows.extend(check(&hub, &id).into_iter().map(|finding| (name.clone(), finding)));
    }
    if args.session.is_none() {
        let known = rows.iter().filter_map(|(_, finding)| finding.commit.clone()).collect();
        let others = audit::other_notes(&hub.repo, &hub.trust, &known)?;
        rows.extend(others.into_iter().map(|finding| ("-".to_owned(), finding)));
    }
    let broken = rows.iter().filter(|(_, finding)| finding.fault.is_some()).count();
    if args.json {
        let findings: Vec<_> = rows
            .iter()
            .map(|(id, finding)| {
                json!({
                    "sessionId": id, "subject": finding.subject,
                    "holds": finding.fault.is_none(), "fault": finding.fault, "next": finding.next,
                })
            })
            .collect();
        out::json("findings", &findings)?;
    } else {
        for (id, finding) in &rows {
            match &finding.fault {
                None => out::line(format!("ok      {id}  {}", finding.subject))?,
                Some(fault) => out::line(format!("BROKEN  {id}  {}: {fault}", finding.subject))?,
            }
            if let Some(next) = &finding.next {
                out::line(format!("        next: {next}"))?;
            }
        }
        match (rows.len(), broken) {
            (0, _) => out::say("there is nothing to verify yet"),
            (all, 0) => out::say(format!("all {all} hold")),
            (all, broken) => out::say(format!("{broken} of {all} do not hold")),
        }
    }
    Ok(if broken == 0 { 0 } else { 4 })
}

fn check(hub: &Hub, id: &SessionId) -> Vec<Finding> {
    let found = hub.load(id).and_then(|stored| audit::session(&hub.repo, &hub.trust, &stored));
    found.unwrap_or_else(|error| vec![Finding::new("session", Some(format!("{error:#}")))])
}
