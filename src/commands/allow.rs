//! `git relay allow`

use super::open_repository;
use crate::cli::Allow;
use crate::error::Fault;
use crate::host::{allow, config};
use crate::ui::out;
use anyhow::Result;

pub(super) fn run(args: &Allow) -> Result<u8> {
    crate::relay::not_in_a_leg()?;
    let repo = open_repository()?;
    let shared = repo.main_work_tree().map(|root| root.join(".relay.toml"));
    let shared = shared.filter(|path| path.exists()).ok_or_else(|| {
        Fault::refused("this repository has no shared '.relay.toml', so nothing has to be allowed")
            .hint("git relay run 'the task'")
    })?;
    if args.remove {
        allow::set(repo.common_dir(), &shared, false)?;
        out::say("nothing of '.relay.toml' will be run from now on");
        return Ok(0);
    }
    let settings = config::load(repo.common_dir(), repo.main_work_tree())?;
    if settings.inert.is_empty() {
        let allowed = allow::is_allowed(repo.common_dir(), &shared)?;
        let word = if allowed { "is allowed already" } else { "has no command that would be run" };
        out::say(format!("'{}' {word}", shared.display()));
        return Ok(0);
    }
    out::say("from now on these are run in each new session worktree:");
    for command in &settings.inert {
        out::say(format!("  {command}"));
    }
    allow::set(repo.common_dir(), &shared, true)?;
    out::say("a change of '.relay.toml' will have to be allowed again");
    out::say("to take it back: git relay allow --remove");
    Ok(0)
}
