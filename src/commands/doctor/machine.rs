//! The machine: git, disk, agents.

use super::Finding;
use crate::agents::{Ground, Seat};
use crate::commands::found_here;
use crate::git::Repository;
use crate::host::config::Settings;
use crate::host::files;
use crate::model::session::PermissionLevel;
use crate::relay::start::{TO_BE_KNOWN, nobody_commits};

/// The oldest git that was tried on.
const GIT_LEAST: (u32, u32) = (2, 38);
/// A session that rests longer than its agent keeps transcripts goes on without them.
const KEEPS_DAYS_LEAST: u64 = 30;
/// Less than this, and the next snapshot may not fit.
const FREE_BYTES_LEAST: u64 = 1 << 30;

pub(super) fn git(repo: &Repository) -> Finding {
    let version = match repo.git_version() {
        Ok(version) => version,
        Err(error) => return Finding::of("git", &error),
    };
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < GIT_LEAST {
        let what = format!("git {version} is too old");
        return Finding::problem("git", what).next("install git 2.38 or newer");
    }
    Finding::ok("git", version)
}

/// Whether a commit can be made here at all.
pub(super) fn identity(repo: &Repository) -> Finding {
    match nobody_commits(repo) {
        Ok(None) => Finding::ok("identity", "git knows who commits"),
        Ok(Some(what)) => Finding::problem("identity", what).next(TO_BE_KNOWN),
        Err(error) => Finding::of("identity", &error),
    }
}

pub(super) fn disk(repo: &Repository) -> Finding {
    match files::free_bytes(repo.common_dir()) {
        Ok(free) if free < FREE_BYTES_LEAST => {
            let what = format!("only {} MiB are free where the repository is", free >> 20);
            Finding::problem("disk", what).next("make room before the next hand-over")
        }
        Ok(free) => Finding::ok("disk", format!("{} GiB are free", free >> 30)),
        Err(error) => Finding::of("disk", &error),
    }
}

/// Who could start, and how long each keeps the transcripts that contracts are made from.
pub(super) fn agents(repo: &Repository, settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut able = 0;
    let main_work_tree = repo.main_work_tree().unwrap_or_else(|| repo.common_dir());
    let level = PermissionLevel::Edit;
    let ground = Ground { main_work_tree, level, unsandboxed_shell: false };
    let seats = settings.agents.iter().filter_map(|name| Seat::find(settings, name));
    for seat in seats {
        let subject = format!("agent {}", seat.name);
        let obstacles = (seat.agent.obstacles)(&seat, &ground);
        able += usize::from(obstacles.is_empty());
        if obstacles.is_empty() {
            found.push(Finding::ok(&subject, "it could start now"));
        }
        for obstacle in obstacles {
            found.push(Finding::note(&subject, obstacle.what).next(obstacle.hint));
        }
        if let Some(keeps) = seat.agent.keeps {
            let days = (keeps.days)();
            let what =
                format!("it keeps transcripts {days} days; what no contract holds by then is gone");
            let told = Finding::note(&subject, what);
            let short = days < KEEPS_DAYS_LEAST;
            found.push(if short { told.next(format!("raise {}", keeps.setting)) } else { told });
        }
    }
    if settings.agents.is_empty() {
        let what = "nobody has said which may receive work";
        let next = format!("git relay init --agents {}", found_here(settings));
        found.push(Finding::problem("agents", what).next(next));
    } else if able == 0 {
        found.push(Finding::problem("agents", "none could start now").next("git relay agents"));
    }
    found
}
