//! Every command we tell people to type is one that the program takes.

use super::generated::{commands, each_source};
use super::{read, root};
use clap::Parser;
use clap::error::ErrorKind;
use git_relay::cli::Cli;

/// Words that follow "git relay" in prose and are no command.
const PROSE: [&str; 3] = ["COMMAND", "contract", "is"];

/// The words of a shell line up to what ends the command in it.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ')' | ';' | '|' | '<' | '>' | '&' | '`' | '#' | '\\') => break,
            (None, ',' | '.' | ':') if chars.peek().is_none_or(|next| *next == ' ') => break,
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            (_, c) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Holes of `format!` and of templates become a plain word.
fn filled(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => {
                if depth == 0 {
                    out.push('x');
                }
                depth += 1;
            }
            '}' if depth > 0 => depth -= 1,
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// What is wrong with the command that follows "git relay " in `rest`, if anything.
fn fault(rest: &str) -> Option<String> {
    let words = words(&filled(rest));
    let first = words.first()?;
    if first.starts_with('…') || PROSE.contains(&first.as_str()) {
        return None;
    }
    let known = commands().iter().any(|(name, _)| name == first) || first.starts_with('-');
    if !known {
        return Some(format!("there is no command '{first}'"));
    }
    // Named, not shown.
    if words.len() == 1 {
        return None;
    }
    match Cli::try_parse_from([&["git-relay".to_owned()], words.as_slice()].concat()) {
        Ok(_) => None,
        Err(error)
            if [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion].contains(&error.kind()) =>
        {
            None
        }
        Err(error) => Some(format!("{words:?}: {error}")),
    }
}

/// The faults of every `git relay …` in a text.
fn faults(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for rest in line.split("git relay ").skip(1) {
            let rest = rest.split('`').next().unwrap();
            if let Some(fault) = fault(rest) {
                found.push(format!("{name}:{}: git relay {rest}: {fault}", number + 1));
            }
        }
    }
    found
}

/// The string literals of a Rust source that may be shown to people, one a line; of `cli.rs` its
/// comments too, since they are the help.
fn shown(name: &str, source: &str) -> String {
    let comments = name.ends_with("src/cli.rs");
    source
        .lines()
        .map(|line| {
            let is_comment = line.trim_start().starts_with("//");
            match line.split_once("git relay ") {
                Some(_) if is_comment && !comments => String::new(),
                Some(_) if is_comment || name.ends_with("cli.rs") => line.to_owned(),
                // A literal ends at the next quote that is not escaped.
                Some((_, rest)) => {
                    let literal = rest.replace("\\\"", "'");
                    format!("git relay {}", literal.split('"').next().unwrap())
                }
                None => String::new(),
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_command_in_a_hint_or_in_help_parses() {
    let mut found = Vec::new();
    each_source(&root().join("src"), &mut |name, source| {
        if !name.ends_with("tests.rs") {
            found.extend(faults(name, &shown(name, source)));
        }
    });
    for name in ["templates/envelope.md", "templates/git-relay.1.in"] {
        found.extend(faults(name, &read(name).replace('"', "`")));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// In the README a command is a line of a fenced block or stands in backticks.
#[test]
fn every_command_in_the_readme_parses() {
    let readme = read("README.md");
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in readme.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && line.trim_start_matches("$ ").starts_with("git relay ") {
            found.extend(faults(&format!("README.md:{}", number + 1), line));
        } else if !fenced {
            for code in line.split('`').skip(1).step_by(2) {
                found.extend(faults(&format!("README.md:{}", number + 1), code));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
