//! `git relay doctor`

mod hooks;
mod machine;
mod repository;

use super::open_repository;
use crate::cli::Doctor;
use crate::git::Repository;
use crate::host::config::{self, Settings};
use crate::relay::Hub;
use crate::store::keys;
use crate::ui::out;
use anyhow::Result;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Nothing is wrong, but people may want to know.
    Note,
    Problem,
    /// It was wrong, and `--fix` mended it.
    Fixed,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Finding {
    subject: String,
    level: Level,
    what: String,
    /// A command to run, or what to do.
    next: Option<String>,
}

impl Finding {
    fn new(level: Level, subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { subject: subject.into(), level, what: what.into(), next: None }
    }

    fn ok(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Level::Ok, subject, what)
    }

    fn note(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Level::Note, subject, what)
    }

    fn problem(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Level::Problem, subject, what)
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// An error as a finding, its hint as the next step.
    fn of(subject: &str, error: &anyhow::Error) -> Self {
        let words: Vec<String> = format!("{error:#}").lines().map(str::to_owned).collect();
        let found = Self::problem(subject, words.join(" "));
        match crate::error::hint_of(error) {
            Some(hint) => found.next(hint),
            None => found,
        }
    }
}

pub(super) fn run(args: &Doctor) -> Result<u8> {
    crate::relay::not_in_a_leg()?;
    let found = open_repository()?;
    // A session worktree's view of things is looked at from outside.
    let repo = match found.main_work_tree() {
        Some(main) if main != found.work_tree() => Repository::open(main)?,
        _ => found,
    };
    let findings = examine(repo, args.fix)?;
    if args.json {
        out::json("doctor", &findings)?;
    } else {
        tell(&findings)?;
    }
    Ok(u8::from(findings.iter().any(|finding| finding.level == Level::Problem)))
}

fn examine(repo: Repository, fix: bool) -> Result<Vec<Finding>> {
    let mut found = vec![machine::git(&repo), machine::identity(&repo), machine::disk(&repo)];
    let settings = match config::load(repo.common_dir(), repo.main_work_tree()) {
        Ok(settings) => settings,
        Err(error) => {
            found.push(Finding::of("configuration", &error));
            return Ok(found);
        }
    };
    if !settings.inert.is_empty() {
        let what = "the commands of '.relay.toml' are not allowed, so they are not run";
        found.push(Finding::note("configuration", what).next("git relay allow"));
    }
    found.extend(machine::agents(&repo, &settings));
    if keys::project(&repo).ok().flatten().is_none() {
        let what = "this repository is not ready for relays";
        found.push(Finding::problem("repository", what).next("git relay init"));
        return Ok(found);
    }
    let hub = hub(repo, settings)?;
    found.extend(repository::keys(&hub, fix));
    found.extend(repository::refs(&hub, fix)?);
    found.extend(repository::sessions(&hub)?);
    found.extend(repository::stored(&hub, fix)?);
    found.extend(repository::locks(&hub, fix)?);
    found.extend(hooks::agents(&hub, fix)?);
    found.extend(hooks::peoples(&hub, fix)?);
    Ok(found)
}

fn hub(repo: Repository, settings: Settings) -> Result<Hub> {
    let trust = keys::load_trust(&repo)?;
    Ok(Hub { repo, here: None, settings, trust })
}

fn tell(findings: &[Finding]) -> Result<()> {
    for finding in findings {
        let word = match finding.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Problem => "PROBLEM",
            Level::Fixed => "fixed",
        };
        out::line(format!("{word:<8} {}: {}", finding.subject, finding.what))?;
        if let Some(next) = &finding.next {
            out::line(format!("         next: {next}"))?;
        }
    }
    let problems = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    match problems {
        0 => out::say("nothing is wrong"),
        1 => out::say("1 problem"),
        many => out::say(format!("{many} problems")),
    }
    Ok(())
}
