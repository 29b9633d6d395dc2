//! `git relay setup`

use super::completions;
use crate::cli::Setup;
use crate::host::{env, files, process};
use crate::model::shell::shell_word;
use crate::ui::out;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Generated from `cli`, checked in, compared by a test. `git relay --help` opens git-relay(1);
/// without it git finds nothing.
const PAGES: [(&str, &str); 23] = [
    ("git-relay.1", include_str!("../../man/git-relay.1")),
    ("git-relay-setup.1", include_str!("../../man/git-relay-setup.1")),
    ("git-relay-init.1", include_str!("../../man/git-relay-init.1")),
    ("git-relay-start.1", include_str!("../../man/git-relay-start.1")),
    ("git-relay-run.1", include_str!("../../man/git-relay-run.1")),
    ("git-relay-handoff.1", include_str!("../../man/git-relay-handoff.1")),
    ("git-relay-adopt.1", include_str!("../../man/git-relay-adopt.1")),
    ("git-relay-resume.1", include_str!("../../man/git-relay-resume.1")),
    ("git-relay-record.1", include_str!("../../man/git-relay-record.1")),
    ("git-relay-status.1", include_str!("../../man/git-relay-status.1")),
    ("git-relay-detect.1", include_str!("../../man/git-relay-detect.1")),
    ("git-relay-list.1", include_str!("../../man/git-relay-list.1")),
    ("git-relay-log.1", include_str!("../../man/git-relay-log.1")),
    ("git-relay-show.1", include_str!("../../man/git-relay-show.1")),
    ("git-relay-verify.1", include_str!("../../man/git-relay-verify.1")),
    ("git-relay-finish.1", include_str!("../../man/git-relay-finish.1")),
    ("git-relay-abort.1", include_str!("../../man/git-relay-abort.1")),
    ("git-relay-agents.1", include_str!("../../man/git-relay-agents.1")),
    ("git-relay-key.1", include_str!("../../man/git-relay-key.1")),
    ("git-relay-trust.1", include_str!("../../man/git-relay-trust.1")),
    ("git-relay-allow.1", include_str!("../../man/git-relay-allow.1")),
    ("git-relay-doctor.1", include_str!("../../man/git-relay-doctor.1")),
    ("git-relay-demo.1", include_str!("../../man/git-relay-demo.1")),
];

pub(super) fn run(args: &Setup) -> Result<u8> {
    if args.remove {
        return remove();
    }
    let folder = match beside_program()? {
        Some(share) if write(&man_below(&share)).is_ok() => man_below(&share),
        _ => {
            let folder = env::man_folder()?;
            write(&folder)?;
            folder
        }
    };
    out::say(format!("wrote {} man pages in {}", PAGES.len(), folder.display()));
    // What git will ask, when somebody types `git relay --help`.
    let found = process::run(&["man", "-w", "git-relay"], &[], b"", Duration::from_secs(10));
    if found.is_ok_and(|output| output.code == Some(0)) {
        out::say("try: git relay --help");
    } else if let Some(above) = folder.parent() {
        out::say("man does not look there. Put this into your shell's profile:");
        out::say(format!("  export MANPATH={}:", shell_word(above)));
    }
    let share = match beside_program()? {
        // Shells look beside a system's programs, but not beside those in a home.
        Some(share) if !share.starts_with(env::home()?) && complete(&share).is_ok() => share,
        _ => {
            let share = completions::users_share()?;
            complete(&share)?;
            share
        }
    };
    for (path, _) in completions::files(&share) {
        out::say(format!("wrote {}", path.display()));
    }
    if share == completions::users_share()? {
        out::say("zsh looks there only if its .zshrc says, above compinit:");
        out::say(format!("  fpath+=({})", shell_word(completions::zsh_folder(&share))));
    }
    Ok(0)
}

/// Takes away what any `setup` may have written.
fn remove() -> Result<u8> {
    let mut removed = 0;
    let man = beside_program()?.map(|share| man_below(&share));
    let pages = [man, Some(env::man_folder()?)];
    let pages = pages.iter().flatten().flat_map(|f| PAGES.map(|(name, _)| f.join(name)));
    let shares = [beside_program()?, Some(completions::users_share()?)];
    let completions = shares.iter().flatten().flat_map(|share| completions::files(share));
    for path in pages.chain(completions.map(|(path, _)| path)) {
        removed += usize::from(path.exists());
        files::remove(&path)?;
    }
    out::say(format!("removed {removed} man pages and completions"));
    Ok(0)
}

fn write(folder: &Path) -> Result<()> {
    for (name, text) in PAGES {
        files::replace(&folder.join(name), text.as_bytes(), 0o644)?;
    }
    Ok(())
}

fn complete(share: &Path) -> Result<()> {
    for (path, text) in completions::files(share) {
        files::replace(&path, text.as_bytes(), 0o644)?;
    }
    Ok(())
}

/// `…/share` for a program in `…/bin`.
fn beside_program() -> Result<Option<PathBuf>> {
    let program = env::program()?;
    let bin = program.parent().filter(|folder| folder.ends_with("bin"));
    Ok(bin.and_then(Path::parent).map(|above| above.join("share")))
}

/// Where man looks for every `bin` on PATH.
fn man_below(share: &Path) -> PathBuf {
    share.join("man/man1")
}
