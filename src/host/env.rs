//! The environment, read in one place.

use crate::error::Fault;
use anyhow::Result;
use std::ffi::OsString;
use std::path::PathBuf;

/// Variables that are settings.
pub const SETTINGS: [&str; 3] = ["GIT_RELAY_AGENTS", "GIT_RELAY_DURABILITY", "GIT_RELAY_THRESHOLD"];
/// Those that we set for agents, hooks and children of ours.
const OURS: [&str; 12] = [
    "GIT_RELAY_DISPATCHER",
    "GIT_RELAY_FINISHES",
    "GIT_RELAY_FOLDER",
    "GIT_RELAY_HOOKS_INDEX",
    "GIT_RELAY_INBOX",
    "GIT_RELAY_LEG",
    "GIT_RELAY_MAKES",
    "GIT_RELAY_PORT_BASE",
    "GIT_RELAY_SESSION",
    "GIT_RELAY_SIGNS",
    "GIT_RELAY_STANDS_BY",
    "GIT_RELAY_TURN",
];

/// A variable in our name that is none of ours.
pub fn unknown_variable() -> Option<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut ours = names.filter(|name| name.starts_with("GIT_RELAY_") && !is_known(name));
    ours.next()
}

pub fn is_known(name: &str) -> bool {
    let is_of_tests = name.strip_prefix("GIT_RELAY_").is_some_and(|rest| rest.starts_with("TEST_"));
    SETTINGS.contains(&name) || OURS.contains(&name) || is_of_tests
}

/// The words of this command line, without the program's.
pub fn words() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

/// A variable that is set and not empty.
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable as text; what is not UTF-8 counts as unset.
pub fn text(name: &str) -> Option<String> {
    var(name).and_then(|value| value.into_string().ok())
}

/// The user's home folder.
pub fn home() -> Result<PathBuf> {
    var("HOME").map(PathBuf::from).ok_or_else(|| {
        Fault::environment("'HOME' is not set").hint("HOME=/path/to/your/home git relay …").into()
    })
}

fn xdg(name: &str, below_home: &str) -> Result<PathBuf> {
    // The XDG rule: a relative value is to be ignored.
    match var(name).map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(path) => Ok(path),
        None => Ok(home()?.join(below_home)),
    }
}

/// `$XDG_CONFIG_HOME/git-relay`: the user's configuration.
pub fn config_folder() -> Result<PathBuf> {
    Ok(xdg("XDG_CONFIG_HOME", ".config")?.join("git-relay"))
}

/// `$XDG_CONFIG_HOME/git`: where git looks for the user's own files.
pub fn git_folder() -> Result<PathBuf> {
    Ok(xdg("XDG_CONFIG_HOME", ".config")?.join("git"))
}

/// `$XDG_DATA_HOME/git-relay`: the keys.
pub fn data_folder() -> Result<PathBuf> {
    Ok(xdg("XDG_DATA_HOME", ".local/share")?.join("git-relay"))
}

/// Where `man` finds the pages of this program. man-db (tried: 2.11) looks into `share/man` beside
/// each `bin` on PATH; a user's own data folder is searched only where `~/.local/bin` is on PATH.
pub fn man_folder() -> Result<PathBuf> {
    let home = home()?;
    let beside = find_program("git-relay")
        .and_then(|program| Some(program.parent()?.parent()?.to_owned()))
        // What is not the user's own is not ours to write into.
        .filter(|prefix| prefix.starts_with(&home));
    match beside {
        Some(prefix) => Ok(prefix.join("share/man/man1")),
        None => Ok(xdg("XDG_DATA_HOME", ".local/share")?.join("man/man1")),
    }
}

/// The folder the command was started in.
pub fn current_folder() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| {
        Fault::environment(format!("the current folder cannot be read: {error}"))
            .hint("cd to a folder that exists")
            .into()
    })
}

/// This program, as an absolute path, for hook lines and for agents.
pub fn program() -> Result<PathBuf> {
    let path = std::env::current_exe()?;
    // Linux shows a replaced binary as "… (deleted)"; its place is what we want.
    let shown = path.to_string_lossy();
    Ok(shown.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path))
}

/// Whether a program of this name can be run; its path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    which::which(name).ok()
}
