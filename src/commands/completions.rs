//! Shell completions, made from `cli`; written by `git relay setup`.

use crate::cli::Cli;
use crate::host::env;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Git's own bash completion asks this function for the words after `git relay`: what we have for
/// `git-relay` then sees the line as if that had been typed.
const BASH_AFTER: &str = r#"
_git_relay() {
    local -a COMP_WORDS=(git-relay "${words[@]:__git_cmd_idx+1}")
    local COMP_CWORD=$((cword - __git_cmd_idx)) at
    _git__relay git-relay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    # Git's completion has bash add no blank after a word.
    for at in "${!COMPREPLY[@]}"; do
        [ -d "${COMPREPLY[at]}" ] || COMPREPLY[at]+=' '
    done
}
"#;

/// Below `…/share`: where each shell looks, and what for. Zsh's and fish's own completions of git
/// take what they have for `git-relay` for `git relay` too.
const PLACES: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/git-relay"),
    (Shell::Zsh, "zsh/site-functions/_git-relay"),
    (Shell::Fish, "fish/vendor_completions.d/git-relay.fish"),
];

/// The files below a `share` folder, with their text.
pub(super) fn files(share: &Path) -> Vec<(PathBuf, String)> {
    PLACES.map(|(shell, place)| (share.join(place), text(shell))).into()
}

/// The folder where the shells look for what a user installed.
pub(super) fn users_share() -> Result<PathBuf> {
    Ok(env::data_folder()?.parent().map(Path::to_owned).unwrap_or_default())
}

/// What zsh must have in its `fpath`.
pub(super) fn zsh_folder(share: &Path) -> PathBuf {
    share.join("zsh/site-functions")
}

fn text(shell: Shell) -> String {
    let mut command = Cli::command().name("git-relay").bin_name("git-relay");
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command, "git-relay", &mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => {
            // The subcommands keep the name they have below `git relay` (clap_complete 4.6.12).
            text = text.replace("git__subcmd__relay__", "git__relay__");
            text.push_str(BASH_AFTER);
        }
        // What `git <TAB>` says of it.
        Shell::Zsh => {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text = text.replacen('\n', &format!("\n#description {about}\n"), 1);
        }
        _ => {}
    }
    text
}
