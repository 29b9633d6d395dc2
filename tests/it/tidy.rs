//! What keeps the tree easy to find one's way in, held by reading it:
//!
//! - rooms have a direction, and what `src/lib.rs` says is absent from a room is absent;
//! - no file outside an agent's own folder knows the agent by name, and every agent is recorded;
//! - files and functions are short, with the exceptions named here;
//! - nothing unfinished, no secret, no path of a developer's machine, nothing huge is checked in.

use git_relay::agents;
use git_relay::model::redact;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A room may name rooms before it. `error` and `cli` stand before all and name none.
const ROOMS: [&str; 10] =
    ["error", "cli", "model", "host", "git", "store", "agents", "relay", "ui", "commands"];

/// What must not stand in a file below a place. The program's own tests are not held to it.
const ABSENT: [(&str, &[&str]); 5] = [
    (
        "src/model/",
        &["std::fs", "std::env", "std::process", "std::net", "SystemTime", "Instant", "getrandom"],
    ),
    ("src/cli.rs", &["crate::", "std::fs", "std::env"]),
    ("src/error.rs", &["crate::", "println!"]),
    ("src/ui/", &["crate::git", "crate::store"]),
    ("src/agents/", &["crate::git", "crate::store"]),
];

/// The only files that start a program.
const STARTERS: [&str; 3] = ["src/git/run.rs", "src/host/process.rs", "src/commands/demo.rs"];

/// The only files that read the environment (`std::env::var…`).
const ENVIRONMENT: [&str; 2] = ["src/host/env.rs", "src/git/mod.rs"];

/// Examples people may copy, in help and hints: file and the words around the names.
const NAMED: [(&str, &str); 3] = [
    ("src/cli.rs", "git relay init --agents claude,codex"),
    ("src/commands/init.rs", "git relay init --agents claude,codex"),
    ("src/commands/run.rs", "git relay init --agents claude,codex"),
];

const FILE_LINES_MOST: usize = 500;
/// Longer files, each with its reason.
const LONG_FILES: [(&str, &str); 1] = [("tests/it/tamper.rs", "one test for each way to tamper")];

const FUNCTION_LINES_MOST: usize = 70;
/// Longer functions, each with its reason.
const LONG_FUNCTIONS: [(&str, &str, &str); 5] = [
    ("src/model/fsm.rs", "take", "one arm for each event"),
    ("src/model/redact/mod.rs", "row", "one arm for each form of rule"),
    ("src/model/redact/tests/samples.rs", "samples", "a table"),
    ("src/model/specimen.rs", "first", "one record, written out"),
    ("tests/it/tamper.rs", "a_contract_is_bound_to_what_it_is_about", "a table"),
];

const FILE_BYTES_MOST: usize = 256 * 1024;
const PACKAGES_MOST: usize = 215;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every checked-in file with its bytes, by its path from the root.
fn tracked() -> Vec<(String, Vec<u8>)> {
    let output = Command::new("git")
        .args(["-C", root().to_str().unwrap(), "ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .output()
        .unwrap();
    assert!(output.status.success(), "this is no checkout");
    let names = String::from_utf8(output.stdout).unwrap();
    names
        .split_terminator('\0')
        .filter_map(|name| Some((name.to_owned(), fs::read(root().join(name)).ok()?)))
        .collect()
}

/// The Rust files below a folder, as text.
fn sources(below: &str) -> Vec<(String, String)> {
    let all = tracked().into_iter();
    all.filter(|(name, _)| name.starts_with(below) && name.ends_with(".rs"))
        .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()))
        .collect()
}

/// The lines that make the product, with their numbers: no comments, no unit tests.
fn product(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line))
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/")
        || ["tests.rs", "specimen.rs", "recorded.rs"].iter().any(|end| name.ends_with(end))
}

/// Panics with all faults at once.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The room a file below `src/` lies in.
fn room(name: &str) -> &str {
    name.trim_start_matches("src/").split(['/', '.']).next().unwrap()
}

#[test]
fn a_room_names_only_rooms_before_it() {
    let mut faults = Vec::new();
    for (name, text) in sources("src/") {
        let Some(own) = ROOMS.iter().position(|known| *known == room(&name)) else {
            let roots = ["src/main.rs", "src/lib.rs", "src/build.rs"];
            assert!(roots.contains(&name.as_str()), "{name} is in no room");
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for path in line.split("crate::").skip(1) {
                let named: String =
                    path.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                let before = ROOMS.iter().position(|known| *known == named);
                if before.is_some_and(|named| named > own) {
                    faults.push(format!("{name}:{}: {} names {named}", number + 1, room(&name)));
                }
            }
        }
    }
    none(&faults);
}

#[test]
fn what_a_room_is_free_of_is_absent() {
    let mut faults = Vec::new();
    for (name, text) in sources("src/").into_iter().filter(|(name, _)| !is_test(name)) {
        for (number, line) in product(&text) {
            let mut at = |what: &str| faults.push(format!("{name}:{number}: {what}"));
            for (place, words) in ABSENT.iter().filter(|(place, _)| name.starts_with(place)) {
                for word in words.iter().filter(|word| line.contains(**word)) {
                    at(&format!("'{word}' has no place in {place}"));
                }
            }
            let starts = line.contains("Command::new(") || line.contains("duct::cmd");
            if starts && !STARTERS.contains(&name.as_str()) {
                at("only host::process and git::run start programs");
            }
            if line.contains("std::env::var") && !ENVIRONMENT.contains(&name.as_str()) {
                at("the environment is read in host::env");
            }
        }
    }
    none(&faults);
}

/// A path in a command to be copied is a word of the shell (`model::shell`), not a hole in quotes.
#[test]
fn no_command_is_quoted_by_hand() {
    let commands = ["git", "rm", "mv", "cd", "mkdir", "chmod", "rmdir", "ls", "cat"];
    let by_hand = |line: &str| {
        line.match_indices("'{").any(|(at, _)| {
            let before = line[..at].rsplit(['"', '\'', ',', ';', ':']).next().unwrap();
            before.split(' ').any(|word| commands.contains(&word))
        })
    };
    assert!(by_hand("git -C '{place}' status") && by_hand("\"if so: rm -r '{}'\""));
    let mut faults = Vec::new();
    for (name, text) in sources("src/").into_iter().filter(|(name, _)| !is_test(name)) {
        let found = product(&text).filter(|(_, line)| by_hand(line));
        faults.extend(found.map(|(number, line)| format!("{name}:{number}: {}", line.trim())));
    }
    none(&faults);
}

#[test]
fn no_file_but_its_own_knows_an_agent_by_name() {
    let mut faults = Vec::new();
    for (name, text) in sources("src/").into_iter().filter(|(name, _)| !is_test(name)) {
        if name == "src/agents/mod.rs" {
            continue;
        }
        for agent in agents::ALL {
            if name.starts_with(&format!("src/agents/{}", agent.name)) {
                continue;
            }
            for (number, line) in product(&text) {
                let allowed =
                    NAMED.iter().any(|(file, words)| *file == name && line.contains(words));
                if line.to_ascii_lowercase().contains(agent.name) && !allowed {
                    faults.push(format!("{name}:{number}: {}", line.trim()));
                }
            }
        }
    }
    none(&faults);
}

#[test]
fn every_agent_is_recorded_and_every_recording_is_an_agents() {
    let folders = fs::read_dir(root().join("tests/agents")).unwrap();
    let mut recorded: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    recorded.sort();
    let mut named: Vec<&str> = agents::ALL.iter().map(|agent| agent.name).collect();
    named.sort_unstable();
    assert_eq!(recorded, named);
    for name in named {
        let count = fs::read_dir(root().join("tests/agents").join(name)).unwrap().count();
        assert!(count >= 3, "{name} has {count} recordings");
    }
}

#[test]
fn files_are_short() {
    let mut faults = Vec::new();
    for (name, text) in sources("") {
        let lines = text.lines().count();
        let named = LONG_FILES.iter().any(|(file, _)| *file == name);
        match (lines > FILE_LINES_MOST, named) {
            (true, false) => faults.push(format!("{name}: {lines} lines")),
            (false, true) => faults.push(format!("{name} needs no exception any more")),
            _ => {}
        }
    }
    none(&faults);
}

/// Name, first line and length of every function, as rustfmt lays them out.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (start, line) in lines.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let words = ["", "pub", "pub(crate)", "pub(super)", "const", "unsafe", "async"];
        if !before.split(' ').all(|word| words.contains(&word)) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let close = format!("{indent}}}");
        let length = lines[start..].iter().position(|line| **line == close).unwrap_or(0);
        let name = after.split(['(', '<']).next().unwrap().to_owned();
        found.push((name, start + 1, length + 1));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for (file, text) in sources("") {
        for (name, line, length) in functions(&text) {
            seen += 1;
            let named = LONG_FUNCTIONS.iter().any(|(f, n, _)| *f == file && *n == name);
            match (length > FUNCTION_LINES_MOST, named) {
                (true, false) => faults.push(format!("{file}:{line}: {name} has {length} lines")),
                (false, true) => faults.push(format!("{file}: {name} needs no exception any more")),
                _ => {}
            }
        }
    }
    assert!(seen > 500, "only {seen} functions were seen");
    none(&faults);
}

/// Whether the checked-in file holds recordings of other programs: their words are not ours.
fn is_recording(name: &str) -> bool {
    name.starts_with("tests/agents/") || name.starts_with("tests/vectors/")
}

#[test]
fn nothing_unfinished_and_nobodys_machine_is_in_the_tree() {
    // Put together here so that this file does not hold them.
    let unfinished = [
        "to".to_owned() + "do!(",
        "unimple".to_owned() + "mented!(",
        "fix".to_owned() + "me",
        "dbg".to_owned() + "!(",
    ];
    let places = ["/wo".to_owned() + "rk/", "/ro".to_owned() + "ot/"];
    let mut faults = Vec::new();
    for (name, bytes) in tracked() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for (number, line) in text.lines().enumerate() {
            let mut at = |what: &str| faults.push(format!("{name}:{}: {what}", number + 1));
            for word in unfinished.iter().filter(|_| !is_recording(&name)) {
                if line.to_ascii_lowercase().contains(word) {
                    at(word);
                }
            }
            for place in places.iter().filter(|place| line.contains(*place)) {
                at(place);
            }
            for rest in line.split("/home/").skip(1) {
                let user = rest.chars().take_while(|c| c.is_ascii_alphanumeric());
                let user: String = user.collect();
                if !["dev", ""].contains(&user.as_str()) {
                    at(&format!("the home of '{user}'"));
                }
            }
        }
    }
    none(&faults);
}

#[test]
fn no_recording_holds_a_secret() {
    let mut faults = Vec::new();
    for (name, bytes) in tracked().into_iter().filter(|(name, _)| is_recording(name)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for hit in redact::find(&text) {
            faults.push(format!("{name}: {hit:?}"));
        }
    }
    none(&faults);
}

#[test]
fn nothing_is_huge_and_few_packages_are_used() {
    let mut faults = Vec::new();
    for (name, bytes) in tracked() {
        if bytes.len() > FILE_BYTES_MOST {
            faults.push(format!("{name}: {} bytes", bytes.len()));
        }
    }
    none(&faults);
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages <= PACKAGES_MOST, "{packages} packages in Cargo.lock");
}

#[test]
fn the_top_level_is_what_was_agreed() {
    let mut top: Vec<String> = tracked()
        .into_iter()
        .filter_map(|(name, _)| Path::new(&name).iter().next()?.to_str().map(str::to_owned))
        .filter(|name| !name.starts_with('.'))
        .collect();
    top.sort();
    top.dedup();
    let agreed = [
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "hooks",
        "man",
        "src",
        "templates",
        "tests",
    ];
    assert_eq!(top, agreed);
}
