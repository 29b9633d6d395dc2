//! The hooks folder for the agents we launch: under every hook name a dispatcher that runs the
//! hook git would have run.

use crate::git::guard::PROGRAM;
use crate::host::{env, files};
use anyhow::Result;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const DISPATCHER: &str = include_str!("../../hooks/dispatch.sh");

/// Client-side hooks of githooks(5), git 2.47. `reference-transaction` and `post-index-change` run
/// several times a command: they are there only while the user has one.
const NAMES: [&str; 14] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-auto-gc",
    "post-rewrite",
];
const BUSY_NAMES: [&str; 2] = ["reference-transaction", "post-index-change"];

/// How agents call this program: a link in the common git dir, so that what they are told stays
/// the same when the program moves, and an envelope can be rendered again byte for byte.
pub fn program_link(common_dir: &Path) -> PathBuf {
    common_dir.join(PROGRAM)
}

fn dispatcher() -> Result<String> {
    let quoted = env::program()?.to_string_lossy().replace('\'', "'\\''");
    Ok(DISPATCHER.replace("@PROGRAM@", &quoted))
}

/// Whether folder or link are not as [`write`] makes them.
pub fn are_stale(common_dir: &Path) -> Result<bool> {
    let text = dispatcher()?;
    let leads = fs::read_link(program_link(common_dir)).ok();
    let folder = common_dir.join("relay/hooks");
    let as_made = |name: &&str| {
        let path = folder.join(name);
        let runs = fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o100 != 0);
        runs && files::read(&path, 64 * 1024)
            .is_ok_and(|found| found.as_deref() == Some(text.as_bytes()))
    };
    let others = BUSY_NAMES.iter().filter(|name| folder.join(name).exists());
    let are_made = NAMES.iter().all(as_made) && others.into_iter().all(as_made);
    Ok(leads != Some(env::program()?) || !are_made)
}

/// What stands in the place of the link if that is another program, in words: hooks would run it.
/// A copy of this very program is none, and where nothing stands, nothing is run.
pub fn other_program(common_dir: &Path) -> Result<Option<String>> {
    let (link, own) = (program_link(common_dir), env::program()?);
    let Ok(found) = fs::symlink_metadata(&link) else { return Ok(None) };
    if is_the_same(&link, &own) {
        return Ok(None);
    }
    let shown = link.display();
    Ok(match fs::read_link(&link) {
        Ok(_) if !link.exists() => None,
        Ok(target) => Some(format!(
            "'{shown}' leads to '{}', another version of this program or another program",
            target.display()
        )),
        Err(_) if found.is_dir() => Some(format!("'{shown}' is a folder")),
        Err(_) => {
            Some(format!("'{shown}' is not the link that was made there, but something else"))
        }
    })
}

fn is_the_same(one: &Path, other: &Path) -> bool {
    let length =
        |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len());
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) if one == other => true,
        _ if length(one).is_none() || length(one) != length(other) => false,
        _ => fs::read(one).is_ok_and(|bytes| fs::read(other).is_ok_and(|own| own == bytes)),
    }
}

/// Writes the folder and the link; returns the folder if anything in it was new.
pub fn write(common_dir: &Path) -> Result<Option<PathBuf>> {
    files::link(&program_link(common_dir), &env::program()?)?;
    let text = dispatcher()?;
    let folder = common_dir.join("relay/hooks");
    let mut made = None;
    for name in NAMES {
        let path = folder.join(name);
        if files::read(&path, 64 * 1024)?.as_deref() != Some(text.as_bytes()) {
            files::replace(&path, text.as_bytes(), 0o755)?;
            made = Some(folder.clone());
        }
    }
    Ok(made)
}

/// Adds or takes away the dispatchers of hooks that would cost too much for nothing.
/// `users_folder` is where git looks for the user's own hooks.
pub fn write_busy(common_dir: &Path, users_folder: &Path) -> Result<()> {
    let dispatcher = common_dir.join("relay/hooks/post-commit");
    for name in BUSY_NAMES {
        let path = common_dir.join("relay/hooks").join(name);
        if users_folder.join(name).exists() {
            let text = files::read(&dispatcher, 64 * 1024)?.unwrap_or_default();
            files::replace(&path, &text, 0o755)?;
        } else {
            files::remove(&path)?;
        }
    }
    Ok(())
}
