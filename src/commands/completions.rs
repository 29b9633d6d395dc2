//! Shell completions, made from `cli`; written by `git relay setup`.

use crate::agents;
use crate::cli::Cli;
use crate::host::env;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command as Verb, CommandFactory};
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

/// Prints the sessions there are, for bash to offer.
const SESSIONS: &str = "$(git-relay list 2>/dev/null | cut -d ' ' -f 1)";

/// What people type: no hidden verb, and with the agents' names where one is wanted. Agents that
/// somebody has described in their configuration are not known here; any name is taken all the same.
fn command() -> Verb {
    let names: Vec<&str> = agents::ALL.iter().map(|agent| agent.name).collect();
    let with_agents = |mut verb: Verb| {
        for id in ["to", "agent", "agents"] {
            if verb.get_arguments().any(|arg| arg.get_id() == id) {
                let names = PossibleValuesParser::new(names.clone());
                verb = verb.mut_arg(id, |arg| arg.value_parser(names));
            }
        }
        verb
    };
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Verb::new("git-relay")
        .bin_name("git-relay")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .subcommands(verbs.map(with_agents))
}

/// In bash, offers sessions where one can stand.
fn with_sessions(mut text: String) -> String {
    text = text.replace(
        "--session)\n                    COMPREPLY=($(compgen -f \"${cur}\"))",
        &format!(
            "--session)\n                    COMPREPLY=($(compgen -W \"{SESSIONS}\" -- \"${{cur}}\"))"
        ),
    );
    for verb in command().get_subcommands() {
        let takes = |arg: &Arg| arg.get_id() == "session" && arg.is_positional();
        if verb.get_arguments().any(takes) {
            let from = format!("git__relay__subcmd__{})\n            opts=\"", verb.get_name());
            text = text.replacen(&from, &format!("{from}{SESSIONS} "), 1);
        }
    }
    text
}

fn text(shell: Shell) -> String {
    let mut command = command();
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command, "git-relay", &mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => {
            // The subcommands keep the name they have below `git relay` (clap_complete 4.6.12).
            text = text.replace("git__subcmd__relay__", "git__relay__");
            text = with_sessions(text);
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
