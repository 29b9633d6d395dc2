//! Documents in step with the program: man pages, README and hints are generated from the code,
//! or are checked against it. `UPDATE=1` rewrites what is generated.

mod generated;
mod lines;
mod readme;

use super::support::World;
use generated::{pages, shown_exit_codes};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Holds a file against its generated text, or rewrites it.
#[track_caller]
fn in_step(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, text).unwrap();
    }
    let stands = fs::read_to_string(path).unwrap_or_default();
    assert!(stands == text, "{} is not in step: run the tests with UPDATE=1", path.display());
}

fn has(program: &str) -> bool {
    which::which(program).is_ok()
}

#[test]
fn man_pages_are_those_of_the_argument_definitions() {
    let pages = pages();
    for (name, text) in &pages {
        in_step(&root().join("man").join(name), text);
    }
    let mut stand: Vec<String> = fs::read_dir(root().join("man"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    stand.sort();
    let mut made: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    made.sort();
    assert_eq!(stand, made);
}

#[test]
fn groff_has_nothing_to_say_on_any_page() {
    assert!(has("groff"), "groff is missing: tests/run installs it");
    for (name, _) in pages() {
        let page = root().join("man").join(name);
        let output = Command::new("groff").args(["-man", "-ww", "-z"]).arg(&page).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    let mut world = World::new();
    world.set("COLUMNS", "80");
    let help = world.relay(&["-h"]).exits(0).stdout;
    let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(help.lines().count() <= 37 && widest <= 80, "{widest} columns:\n{help}");
}

#[test]
fn version_and_help_are_verbs_too() {
    let world = World::new();
    let as_option = world.relay(&["--version"]).exits(0).stdout;
    assert_eq!(world.relay(&["version"]).exits(0).stdout, as_option);
    for words in [["help", "run"], ["help", "init"]] {
        let help = world.relay(&words).exits(0).stdout;
        assert_eq!(help, world.relay(&[words[1], "--help"]).exits(0).stdout);
    }
    assert_eq!(world.relay(&["help"]).exits(0).stdout, world.relay(&["--help"]).exits(0).stdout);
    world.relay(&["init", "-h"]).exits(0).says("--json");
}

/// Through real git and man, as after `cargo install`: `git relay --help` is `man git-relay`.
#[test]
fn the_manual_is_found_after_setup() {
    assert!(has("man"), "man is missing: tests/run installs it");
    let mut world = World::new();
    let pages = std::fs::read_dir(root().join("man")).unwrap().count();
    world.relay(&["setup"]).exits(0).says(&format!("wrote {pages} man pages"));
    world.set("MANPAGER", "cat").set("MANWIDTH", "80");
    let page = world.run("man", &["-w", "git-relay-run"]).exits(0).stdout;
    assert!(page.starts_with(world.root.to_str().unwrap()), "{page}");
    let shown = world.run("git", &["relay", "--help"]).exits(0).stdout;
    assert!(shown.contains("HOW IT WORKS"), "{shown}");
    world.relay(&["setup", "--remove"]).exits(0);
    assert!(!world.run("man", &["-w", "git-relay-run"]).stdout.contains("git-relay"));
}

#[test]
fn exit_codes_are_told_as_they_are() {
    let codes = shown_exit_codes();
    assert_eq!(codes.len(), 8, "{codes:?}");
    for (code, kind) in codes.iter().skip(1).zip(generated::KINDS) {
        assert_eq!(code.0, kind.exit_code(), "{kind:?}: {}", code.1);
    }
}

#[test]
fn every_event_in_a_log_is_explained() {
    let page = World::new().relay(&["log", "--help"]).exits(0).stdout;
    for (_, event, _) in git_relay::model::fsm::moves() {
        assert!(page.contains(event), "'{event}' is not in:\n{page}");
    }
}

#[test]
fn every_key_and_variable_is_in_the_manual() {
    let manual = read("templates/git-relay.1.in");
    for key in generated::config_keys() {
        let bold = [format!(".BR {key} "), format!(".B {key}\n"), format!(" {key} \", \"")];
        let listed =
            manual.contains(&format!("\" {key}\n")) || manual.contains(&format!("\" {key} \""));
        assert!(listed || bold.iter().any(|form| manual.contains(form)), "key {key} is not told");
    }
    for variable in generated::variables() {
        assert!(manual.contains(&variable), "{variable} is not told");
        assert!(git_relay::host::env::is_known(&variable), "{variable} would be refused");
    }
}
