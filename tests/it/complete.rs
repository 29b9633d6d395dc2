//! Completions: written by `setup`, gone after `--remove`, and what a person sees who presses TAB.

use super::support::{World, scripted};
use std::fs;
use std::path::Path;

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
