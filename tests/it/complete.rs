//! Completions: written by `setup`, gone after `--remove`, and what a person sees who presses TAB.

use super::support::{World, scripted};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where Debian and most others have git's own.
const GIT_COMPLETION: &str = "/usr/share/bash-completion/completions/git";
const PLACES: [&str; 3] = [
    "bash-completion/completions/git-relay",
    "zsh/site-functions/_git-relay",
    "fish/vendor_completions.d/git-relay.fish",
];

/// What bash offers after the words, the last one unfinished, under git's own completion.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    assert!(Path::new(GIT_COMPLETION).exists(), "git's own completion is missing");
    let script = format!(
        ". {GIT_COMPLETION}; . \"$HOME/.local/share/bash-completion/completions/git-relay\"; \
         COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_LINE=\"$*\"; COMP_POINT=${{#COMP_LINE}}; \
         case $1 in git) __git_wrap__git_main ;; *) _git__relay git-relay \"${{COMP_WORDS[COMP_CWORD]}}\" \
         \"${{COMP_WORDS[COMP_CWORD-1]}}\" ;; esac; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let did = world.run("bash", &[&["-c", &script, "bash"], words].concat()).exits(0);
    did.stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn git_relay_is_completed_in_bash_under_gits_own_completion() {
    let world = World::new();
    let share = world.home.join(".local/share");
    world.relay(&["setup"]).exits(0).says("bash-completion/completions/git-relay").says("fpath+=");
    assert_eq!(offered(&world, &["git", "relay", "han"]), ["handoff"]);
    assert_eq!(offered(&world, &["git-relay", "han"]), ["handoff"]);
    let all = offered(&world, &["git", "relay", ""]);
    assert!(["run", "status", "finish", "setup"].iter().all(|verb| all.contains(&(*verb).into())));
    assert_eq!(offered(&world, &["git", "relay", "handoff", "--rea"]), ["--reason"]);
    assert_eq!(
        offered(&world, &["git", "-C", "relay", "relay", "init", "--remove"]),
        ["--remove-hooks"]
    );
    assert_eq!(offered(&world, &["git", "relay", "run", "--level", "ed"]), ["edit"]);
    // What people type, and no other verb; agents and sessions where they can stand.
    assert!(!all.contains(&"hook".to_owned()), "{all:?}");
    for words in [["handoff", "--to", "c"], ["run", "--agents", "c"], ["start", "--agent", "c"]] {
        let found = offered(&world, &[&["git", "relay"], &words[..]].concat());
        assert_eq!(found, ["claude", "codex"], "{words:?}");
    }
    let agent = world.program("agent", "cat >/dev/null; echo start; echo 'step one'; echo done\n");
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Sing", "--no-launch"]).exits(0);
    for words in [&["resume", ""][..], &["finish", "si"], &["handoff", "--session", ""]] {
        let found = offered(&world, &[&["git", "relay"], words].concat());
        assert!(found.contains(&world.session()), "{words:?}: {found:?}");
    }
    // Git's own words are as before.
    assert!(offered(&world, &["git", "checkou"]).contains(&"checkout".to_owned()));
    let zsh = fs::read_to_string(share.join(PLACES[1])).unwrap();
    assert!(zsh.starts_with("#compdef git-relay\n#description "), "{zsh}");
    let fish = fs::read_to_string(share.join(PLACES[2])).unwrap();
    assert!(fish.contains("complete -c git-relay"), "{fish}");
    world.relay(&["setup", "--remove"]).exits(0);
    for place in PLACES {
        assert!(!share.join(place).exists(), "{place}");
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => _ = found.insert(entry.path()),
        }
    }
    found
}

#[test]
fn setup_writes_where_it_says_and_nowhere_else() {
    let world = World::new();
    let before = files(&world.root);
    let did = world.relay(&["setup"]).exits(0);
    let made: Vec<PathBuf> = files(&world.root).difference(&before).cloned().collect();
    assert!(made.len() > PLACES.len(), "{made:?}");
    for path in &made {
        let is_page = path.extension().is_some_and(|it| it == "1");
        let named = if is_page { path.parent().unwrap() } else { path };
        assert!(did.stderr.contains(named.to_str().unwrap()), "{}", path.display());
    }
    world.relay(&["setup", "--remove"]).exits(0);
    assert_eq!(files(&world.root), before);
    let help = world.relay(&["setup", "--help"]).exits(0).stdout;
    for place in ["share/man/man1", "bash-completion", "site-functions", "vendor_completions.d"] {
        assert!(help.contains(place), "'{place}' is not in:\n{help}");
    }
}
