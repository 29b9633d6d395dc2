//! Hooks: proved by a trial commit in a scratch repository, with the hooks of each worktree.

use super::{Finding, Level};
use crate::git::Repository;
use crate::git::health::{Trial, same_hooks, try_hooks};
use crate::git::hook_file::Way;
use crate::host::env;
use crate::model::shell::shell_word;
use crate::relay::{Hub, hooks};
use anyhow::Result;
use std::path::Path;

/// What a program started from a desktop has, where nobody told it more.
const DESKTOP_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The hooks of agents that we start.
pub(super) fn agents(hub: &Hub, fix: bool) -> Result<Vec<Finding>> {
    let subject = "hooks of agents";
    let common = hub.repo.common_dir();
    if let Some(finding) = planted(hub, subject)? {
        return Ok(vec![finding]);
    }
    let mut found = Vec::new();
    if hooks::are_stale(common)? {
        let what = hooks::other_program(common)?;
        let what = what.unwrap_or("the hooks folder is not as this program makes it".to_owned());
        if !fix {
            return Ok(vec![Finding::problem(subject, what).next("git relay doctor --fix")]);
        }
        hooks::write(common)?;
        hooks::write_busy(common, &hub.repo.hooks_folder()?)?;
        found.push(Finding::new(Level::Fixed, subject, what));
    }
    let trial = try_hooks(&common.join("relay/hooks"), hub.repo.work_tree(), true, None)?;
    found.push(if trial.reached {
        Finding::ok(subject, "a trial commit was noted")
    } else {
        let what = format!("a trial commit was not noted{}", after(&trial));
        Finding::problem(subject, what).next("git relay init")
    });
    Ok(found)
}

/// The hooks of commits that people make by hand, in the main tree and in each session's.
pub(super) fn peoples(hub: &Hub, fix: bool) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    // The trials are made without it.
    if env::var("GIT_RELAY_DISPATCHER").is_some() {
        let what = "GIT_RELAY_DISPATCHER is set, so commits made by hand are not noted";
        found.push(Finding::problem("environment", what).next("unset GIT_RELAY_DISPATCHER"));
    }
    if fix {
        let (way, is_new) = hub.repo.install_hook(&hooks::program_link(hub.repo.common_dir()))?;
        if let (Way::Block(path), true) = (way, is_new) {
            let what = format!("wrote git relay's block in '{}'", path.display());
            found.push(Finding::new(Level::Fixed, "hooks, main tree", what));
        }
    }
    if let Some(finding) = planted(hub, "hooks, main tree")? {
        found.push(finding);
        return Ok(found);
    }
    if let Some(what) = hooks::other_program(hub.repo.common_dir())? {
        let link = hooks::program_link(hub.repo.common_dir());
        let next = match link.is_dir() {
            true => format!("look at it, then: rm -r {} && git relay init", shell_word(link)),
            false => "look at it; this puts it back: git relay init".to_owned(),
        };
        let what = format!("{what}; no hook was tried");
        found.push(Finding::problem("hooks, main tree", what).next(next));
        return Ok(found);
    }
    let main = hub.repo.hooks_folder()?;
    found.extend(tried(&hub.repo, &hub.repo, "hooks, main tree")?);
    for id in crate::store::list(&hub.repo)? {
        let Ok(stored) = hub.load(&id) else { continue };
        let (at, git_dir) = (hub.worktree(&stored.session), hub.git_dir(&stored.session));
        if stored.session.state.is_end() || !at.join(".git").exists() {
            continue;
        }
        let subject = format!("hooks, session {id}");
        let own = match Repository::open_pinned(hub.repo.common_dir(), &git_dir, &at) {
            Ok(own) => own,
            Err(error) => {
                found.push(Finding::of(&subject, &error));
                continue;
            }
        };
        let folder = own.hooks_folder()?;
        if folder.starts_with(own.work_tree()) && folder.is_dir() {
            // What lies in there an agent can have written: it is compared, not run.
            found.push(match same_hooks(&main, &folder)? {
                true => Finding::ok(&subject, "the same as in the main tree"),
                false => Finding::problem(
                    &subject,
                    format!(
                        "'{}' is not what the main tree has; it was not tried",
                        folder.display()
                    ),
                )
                .next(format!("look at it, then make it anew: cd {} && npm ci", shell_word(&at))),
            });
            continue;
        }
        found.extend(tried(&hub.repo, &own, &subject)?);
    }
    Ok(found)
}

/// A trial runs the hooks that are there. What was changed since the agent of an open session was
/// started may be that agent's doing: it is named, and nothing is tried.
fn planted(hub: &Hub, subject: &str) -> Result<Option<Finding>> {
    for id in crate::store::list(&hub.repo)? {
        let Ok(stored) = hub.load(&id) else { continue };
        let session = &stored.session;
        let what = match session.state.is_end() {
            true => String::new(),
            false => hub.may_be_planted(session)?,
        };
        if !what.is_empty() {
            let what = format!(
                "changed since an agent of session {id} was started: {what}; no hook was tried"
            );
            let next =
                format!("look at it and put it back, or end the session: git relay finish {id}");
            return Ok(Some(Finding::problem(subject, what).next(next)));
        }
    }
    Ok(None)
}

/// Tries the hooks of one worktree, and says why they do not reach us if they do not.
fn tried(main: &Repository, repo: &Repository, subject: &str) -> Result<Vec<Finding>> {
    let folder = repo.hooks_folder()?;
    if !folder.is_dir() && repo.hooks_path_origin()?.is_some() {
        return Ok(vec![nowhere(repo, &folder, subject)?]);
    }
    let trial = try_hooks(&folder, main.work_tree(), false, None)?;
    if !trial.reached {
        return Ok(vec![unreached(repo, &trial, subject)?]);
    }
    let mut found = vec![Finding::ok(subject, "a trial commit was noted")];
    let of_desktop = try_hooks(&folder, main.work_tree(), false, Some(DESKTOP_PATH))?;
    if !of_desktop.reached {
        let what = "not noted where PATH is short, as in programs started from a desktop";
        let relay = hooks::program_link(main.common_dir());
        let next = format!("say {} for git-relay in the line you added", shell_word(relay));
        found.push(Finding::note(subject, what).next(next));
    }
    Ok(found)
}

/// The folder that `core.hooksPath` names is not there, so no hook runs, the user's neither.
fn nowhere(repo: &Repository, folder: &Path, subject: &str) -> Result<Finding> {
    let origin = repo.hooks_path_origin()?.unwrap_or_default();
    if folder == Path::new("/dev/null") {
        let what = format!("hooks are switched off: core.hooksPath is '/dev/null' ({origin})");
        return Ok(Finding::problem(subject, what)
            .next("take that line out, or leave it: agents' commits are noted all the same"));
    }
    let what = format!(
        "core.hooksPath is '{}', which is not there: no hook runs here, yours neither ({origin})",
        folder.display()
    );
    Ok(Finding::problem(subject, what).next(if folder.iter().any(|part| part == ".husky") {
        "husky makes it at install time: [worktree] setup = [\"npm ci\"], or npm ci there"
            .to_owned()
    } else {
        format!("mkdir -p {}, or mend core.hooksPath", shell_word(folder))
    }))
}

fn unreached(repo: &Repository, trial: &Trial, subject: &str) -> Result<Finding> {
    Ok(match repo.kept_by_others()? {
        Some(Way::ByHand { why, line, file }) => {
            let what = format!("a trial commit was not noted: {why}{}", after(trial));
            Finding::problem(subject, what).next(format!("add to {file}: {line}"))
        }
        _ if !repo.has_block()? => {
            let what = "the post-commit hook does not have git relay's block";
            Finding::problem(subject, what).next("git relay doctor --fix")
        }
        _ => {
            let what = format!(
                "a trial commit was not noted: the hook ends before git relay's block{}",
                after(trial)
            );
            let path = repo.hooks_folder()?.join("post-commit");
            let next = format!("have '{}' run to its end, without exit or exec", path.display());
            Finding::problem(subject, what).next(next)
        }
    })
}

fn after(trial: &Trial) -> String {
    if trial.said.is_empty() { String::new() } else { format!(" (it said: {})", trial.said) }
}
