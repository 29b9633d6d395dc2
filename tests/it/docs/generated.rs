//! The texts that are made out of the code.

use super::read;
use clap::CommandFactory;
use git_relay::agents::{self, Pause};
use git_relay::cli::Cli;
use git_relay::error::Kind;
use git_relay::model::fsm;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Every kind of failure, in the order of the exit codes.
pub(super) const KINDS: [Kind; 7] = [
    Kind::Refused,
    Kind::Usage,
    Kind::Raced,
    Kind::Integrity,
    Kind::Environment,
    Kind::Exhausted,
    Kind::Internal,
];

/// The command with its subcommands' full names filled in.
pub(super) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Name and text of every man page.
pub(super) fn pages() -> Vec<(String, String)> {
    let command = command();
    let mut pages = vec![("git-relay.1".to_owned(), main_page(&command))];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("git-relay-{}", sub.get_name());
        let man = man(sub.clone(), &name);
        let mut text = Vec::new();
        man.render_title(&mut text).unwrap();
        man.render_name_section(&mut text).unwrap();
        text.extend(synopsis(sub).bytes());
        man.render_description_section(&mut text).unwrap();
        man.render_options_section(&mut text).unwrap();
        text.extend(b".SH \"SEE ALSO\"\n.BR git-relay (1)\n");
        pages.push((format!("{name}.1"), plain(text)));
    }
    pages
}

fn main_page(command: &clap::Command) -> String {
    let man = man(command.clone(), "git-relay");
    let mut text = Vec::new();
    man.render_title(&mut text).unwrap();
    man.render_name_section(&mut text).unwrap();
    text.extend(b".SH SYNOPSIS\n.B git relay\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n");
    man.render_description_section(&mut text).unwrap();
    man.render_options_section(&mut text).unwrap();
    text.extend(b".SH COMMANDS\n");
    for (name, about) in commands() {
        text.extend(format!(".TP\n.BR git-relay-{name} (1)\n{about}\n").bytes());
    }
    let codes: String = shown_exit_codes()
        .into_iter()
        .map(|(code, meaning)| format!(".TP\n.B {code}\n{meaning}\n"))
        .collect();
    let rest = read("templates/git-relay.1.in")
        .replace("{{diagram}}", fsm::diagram().replace('-', "\\-").trim_end())
        .replace("{{exit-codes}}", codes.trim_end());
    text.extend(rest.bytes());
    plain(text)
}

/// What can be typed after a command, with the names of the values.
fn synopsis(command: &clap::Command) -> String {
    let mut text = format!(".SH SYNOPSIS\n.B git relay {}\n", command.get_name());
    for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
        let value = argument.get_value_names().and_then(|names| names.first());
        let value = value.map_or(String::new(), |name| format!("\\fI{name}\\fR"));
        let one = match (argument.get_long(), argument.get_action().takes_values()) {
            (Some(long), true) => format!("\\fB\\-\\-{}\\fR {value}", long.replace('-', "\\-")),
            (Some(long), false) => format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-")),
            (None, _) => value,
        };
        let line = if argument.is_required_set() { one } else { format!("[{one}]") };
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn man(command: clap::Command, name: &str) -> clap_mangen::Man {
    let source = format!("git-relay {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.display_name(name.to_owned())).source(source).manual("Git Relay")
}

/// Roff in ASCII: other characters by their number.
fn plain(text: Vec<u8>) -> String {
    let text = String::from_utf8(text).unwrap();
    text.chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) })
        .collect()
}

/// Name and one line of every command people see.
pub(super) fn commands() -> Vec<(String, String)> {
    command()
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| (sub.get_name().to_owned(), sub.get_about().unwrap().to_string()))
        .collect()
}

/// Exit code and meaning, 0 first, as `src/error.rs` writes them beside its kinds.
pub(super) fn shown_exit_codes() -> Vec<(u8, String)> {
    let source = read("src/error.rs");
    let kinds = source.split("pub enum Kind {").nth(1).unwrap().split("\n}").next().unwrap();
    let mut codes = vec![(0, "Done.".to_owned())];
    let mut said = String::new();
    for line in kinds.lines().map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(words) => said.push_str(&format!("{words} ")),
            None if said.is_empty() => {}
            None => {
                let (meaning, code) = said.split_once(": exit ").expect("a kind names its code");
                let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
                codes.push((digits.parse().unwrap(), format!("{meaning}.")));
                said.clear();
            }
        }
    }
    codes
}

/// The table of commands, in Markdown.
pub(super) fn command_table() -> String {
    let mut text = "| command | does |\n|---|---|\n".to_owned();
    for (name, about) in commands() {
        text.push_str(&format!("| `git relay {name}` | {about} |\n"));
    }
    text
}

/// The table of exit codes, in Markdown.
pub(super) fn exit_table() -> String {
    let mut text = "| code | means |\n|---|---|\n".to_owned();
    for (code, meaning) in shown_exit_codes() {
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    text
}

/// The table of agents, in Markdown.
pub(super) fn agent_table() -> String {
    let mut text =
        "| name | agent | asked to pause by | transcript read |\n|---|---|---|---|\n".to_owned();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    for agent in agents::ALL.into_iter().chain([&agents::custom::AGENT]) {
        let name = if agent.name == "custom" { "any other" } else { agent.name };
        let pause = match agent.pause {
            Pause::Answer { event, .. } => format!("its `{event}` hook"),
            Pause::AnswerThenInterrupt { event, .. } => format!("its `{event}` hook, then SIGINT"),
            Pause::Interrupt => "SIGINT".into(),
        };
        let reads = yes_no(agent.transcript.is_some());
        text.push_str(&format!("| {name} | {} | {pause} | {reads} |\n", agent.title));
    }
    text
}

/// Every key of the configuration files, as the structs of `host::config` have them.
pub(super) fn config_keys() -> BTreeSet<String> {
    let source = read("src/host/config.rs");
    let mut keys = BTreeSet::new();
    for name in [
        "struct OwnFile {",
        "struct SharedFile {",
        "pub struct AgentTable {",
        "struct WorktreeTable {",
    ] {
        let body = source.split(name).nth(1).unwrap().split("\n}").next().unwrap();
        for line in body.lines().map(str::trim).filter(|line| !line.starts_with(['/', '#'])) {
            if let Some((key, _)) = line.trim_start_matches("pub ").split_once(':')
                && key != "agent"
                && key != "worktree"
            {
                keys.insert(key.to_owned());
            }
        }
    }
    assert!(keys.len() > 15, "{keys:?}");
    keys
}

/// Marks children of ours for ourselves; nobody else meets it.
const INTERNAL: [&str; 3] = ["GIT_RELAY_MAKES", "GIT_RELAY_TURN", "GIT_RELAY_FINISHES"];

/// Every variable of ours that people or agents may meet.
pub(super) fn variables() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_source(&super::root().join("src"), &mut |_, text| {
        for rest in text.split('"').filter(|word| word.starts_with("GIT_RELAY_")) {
            if rest.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
                found.insert(rest.to_owned());
            }
        }
    });
    found.retain(|name| name != "GIT_RELAY_" && !INTERNAL.contains(&name.as_str()));
    assert!(found.len() > 5, "{found:?}");
    found
}

/// Path below the root and text of every Rust file in a folder.
pub(super) fn each_source(folder: &Path, see: &mut dyn FnMut(&str, &str)) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            each_source(&path, see);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(super::root()).unwrap().to_string_lossy().into_owned();
            see(&name, &fs::read_to_string(&path).unwrap());
        }
    }
}
