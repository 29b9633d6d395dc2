//! A session worktree that can be worked in: submodules, ignored files that are needed, the
//! person's own setup commands, and a word on what would test the wrong code.

use super::Driver;
use crate::error::Fault;
use crate::git::include::INCLUDE_FILE;
use crate::git::worktree::MAKES_VARIABLE;
use crate::host::{env, files, process};
use crate::model::session::{PORTS_EACH, Session};
use crate::model::shell::shell_word;
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In the session's private folder: its worktree is ready, and what follows is not done again.
const DONE_FILE: &str = "furnished";
/// Named of what could not be copied; the rest is counted.
const NAMED_MOST: usize = 5;
const PROJECT_BYTES_MOST: u64 = 1 << 20;

impl Driver<'_> {
    fn furnished_path(&self) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(DONE_FILE)
    }

    pub(super) fn is_furnished(&self) -> bool {
        self.furnished_path().exists()
    }

    /// What was made fit is gone: it has to be done again.
    pub(super) fn furnish_again(&self) -> Result<()> {
        files::remove(&self.furnished_path())
    }

    /// Makes a fresh worktree fit to work in, once. A command of the person's that fails stops
    /// here, before an agent is started; the next `git relay resume` tries again.
    pub(super) fn furnish(&mut self) -> Result<()> {
        if self.is_furnished() {
            return Ok(());
        }
        let own = self.worktree_repo()?;
        for (path, why) in own.fill_submodules(&self.hub.repo)? {
            let word = shell_word(&path);
            self.notice(format!(
                "the submodule '{path}' is empty here: {why} (to fill it: git submodule update --init {word})"
            ));
        }
        let included = self.hub.repo.copy_included(&own)?;
        if included.copied > 0 {
            self.notice(format!("copied {} ignored files of {INCLUDE_FILE}", included.copied));
        }
        for (path, why) in included.left.iter().take(NAMED_MOST) {
            self.notice(format!("not copied for {INCLUDE_FILE}: '{}': {why}", path.display()));
        }
        if included.left.len() > NAMED_MOST {
            let more = included.left.len() - NAMED_MOST;
            self.notice(format!("and {more} files more of {INCLUDE_FILE} were not copied"));
        }
        self.set_up()?;
        for warning in warnings(&self.worktree()) {
            self.notice(warning);
        }
        files::replace(&self.furnished_path(), b"", 0o600)
    }

    /// Runs the setup commands, their output shown.
    fn set_up(&mut self) -> Result<()> {
        let settings = &self.hub.settings;
        let (commands, inert) = (settings.setup.clone(), settings.inert.len());
        if inert > 0 {
            self.notice(format!(
                "{inert} setup commands of '.relay.toml' were not run: look at them with git relay allow"
            ));
        }
        let worktree = self.worktree();
        let makes = worktree.to_string_lossy().into_owned();
        for command in commands {
            // One of an attempt that was killed may still be at it.
            process::sweep(MAKES_VARIABLE, &makes, Duration::from_secs(2))?;
            self.notice(format!("setting up: {command}"));
            let mut variables: Vec<(OsString, Option<OsString>)> = self.scrubbed().collect();
            variables.push((MAKES_VARIABLE.into(), Some(makes.clone().into())));
            for (name, value) in place_variables(self.session()) {
                variables.push((name.into(), Some(value.into())));
            }
            let stop = || self.is_interrupted();
            let code = process::run_shown(&command, &worktree, &variables, &stop)?;
            if code == Some(0) {
                continue;
            }
            process::sweep(MAKES_VARIABLE, &makes, Duration::from_secs(2))?;
            let how = code.map_or("ended by a signal".to_owned(), |code| format!("exit {code}"));
            let id = &self.session().session_id;
            return Err(Fault::refused(format!("the setup command '{command}' failed ({how})"))
                .hint(format!("mend it, then: git relay resume {id}; or: git relay abort {id}"))
                .into());
        }
        Ok(())
    }
}

/// What tells a program in a session's worktree whose it is, and which ports it may use.
pub(super) fn place_variables(session: &Session) -> Vec<(&'static str, String)> {
    let mut variables = vec![("GIT_RELAY_SESSION", session.session_id.to_string())];
    variables
        .extend(session.workplace.port_base.map(|base| ("GIT_RELAY_PORT_BASE", base.to_string())));
    variables
}

/// The ranges of ports that open sessions have.
pub(super) fn taken_ports(hub: &super::Hub) -> Result<Vec<u16>> {
    let sessions = crate::store::list(&hub.repo)?;
    let open = sessions.iter().filter_map(|id| hub.load(id).ok()).map(|stored| stored.session);
    Ok(open
        .filter(|session| !session.state.is_end())
        .filter_map(|session| session.workplace.port_base)
        .filter(|base| base.checked_add(PORTS_EACH).is_some())
        .collect())
}

/// What would test the wrong code in this worktree, or is not allowed there yet; a line each.
fn warnings(worktree: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let has = |name: &str| worktree.join(name).exists();
    let above = |name: &str| {
        worktree.ancestors().skip(1).map(|folder| folder.join(name)).find(|path| path.exists())
    };
    // Node looks for packages in every folder above (tried with a nested npm workspace).
    if has("package.json")
        && !has("node_modules")
        && let Some(path) = above("node_modules")
    {
        found.push(format!(
            "no node_modules here, so node takes packages, your workspace's own too, from '{}'; \
             say how to install them: [worktree] setup = [\"npm ci\"]",
            path.display()
        ));
    }
    if has("Cargo.toml")
        && !is_workspace(&worktree.join("Cargo.toml"))
        && let Some(root) = workspace_above(worktree)
    {
        found.push(format!(
            "cargo takes this for a part of the workspace '{}'; put an empty [workspace] into \
             Cargo.toml, or sessions elsewhere: [worktree] dir",
            root.display()
        ));
    }
    let shown = shell_word(worktree);
    if has(".envrc") && env::find_program("direnv").is_some() {
        found.push(format!(".envrc is not allowed here yet: direnv allow {shown}"));
    }
    let mise = ["mise.toml", ".mise.toml"].into_iter().find(|name| has(name));
    if let (Some(name), Some(_)) = (mise, env::find_program("mise")) {
        let path = shell_word(worktree.join(name));
        found.push(format!("{name} may not be trusted here yet: mise trust {path}"));
    }
    found
}

fn is_workspace(manifest: &Path) -> bool {
    let text = files::read_text(manifest, PROJECT_BYTES_MOST).ok().flatten().unwrap_or_default();
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("workspace"))
}

/// The Cargo workspace that a package in `worktree` would be taken for a part of.
fn workspace_above(worktree: &Path) -> Option<PathBuf> {
    let manifests = worktree.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    manifests.into_iter().find(|manifest| is_workspace(manifest))
}
