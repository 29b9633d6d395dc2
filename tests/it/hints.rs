//! A command that is printed can be copied into a shell as it stands, whatever the paths and names
//! in it: here everything lies below a folder with a blank, a quote and a letter beyond ASCII.

use super::adopt::left;
use super::support::{Did, World, scripted};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const WORK: &str = "echo a >done.txt; git add done.txt; git commit -q -m 'Add done.txt'";

/// A world at an awkward place, ready for relays, with one agent that does `work`.
fn awkward(work: &str) -> (tempfile::TempDir, World) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("it's größer; $HOME");
    fs::create_dir(&at).unwrap();
    let world = World::below(&at);
    let script = format!("cat >/dev/null; echo start; echo 'step one'\n{work}\necho 'done all'\n");
    let agent = world.program("an-agent", &script);
    world.configure(&scripted(&[("one", &agent)]));
    world.relay(&["init"]).exits(0);
    (folder, world)
}

fn worked(work: &str) -> (tempfile::TempDir, World) {
    let (folder, world) = awkward(work);
    world.relay(&["run", "Write a file"]).exits(0);
    (folder, world)
}

/// The printed text from `begin` to `end`, or to the end of its line.
#[track_caller]
fn printed(did: &Did, begin: &str, end: &str) -> String {
    let all = format!("{}\n{}", did.stdout, did.stderr);
    let hint = all.lines().find(|line| {
        (line.contains("hint: ") || line.contains("next: ") || line.contains("relay:"))
            && line.contains(begin)
    });
    let hint = hint.unwrap_or_else(|| panic!("no hint says '{begin}':\n{all}"));
    let command = &hint[hint.find(begin).unwrap()..];
    let end = if end.is_empty() { command.len() } else { command.find(end).unwrap() };
    command[..end].to_owned()
}

#[track_caller]
fn copied(world: &World, command: &str) -> Did {
    world.run("sh", &["-c", command]).exits(0)
}

#[test]
fn a_finish_that_is_refused_names_one_command_that_brings_the_result() {
    for how in [&["finish"][..], &["finish", "--merge", "-m", "It's done"]] {
        for (dirty, is_staged) in [("untracked", false), ("ignored", false), ("other", true)] {
            let (_folder, world) = worked(WORK);
            let file = if dirty == "other" { "README.md" } else { "done.txt" };
            if dirty == "ignored" {
                world.write_at(&world.repo.join(".git/info/exclude"), "/.relay/\ndone.txt\nbig\n");
                world.write("big", "ignored, and not in the way\n");
            }
            world.write(file, "mine\n");
            if is_staged {
                world.git(&["add", file]);
            }
            let did = world.relay(how).exits(1);
            let command = printed(&did, "git -C ", "; to have them back");
            let back = printed(&did, "git -C ", "").split(" then: ").nth(1).unwrap().to_owned();
            copied(&world, &command).says("main is now");
            let message = world.git(&["log", "-1", "--format=%s"]);
            assert_eq!(message == "It's done", how.len() > 1, "{message}");
            assert_eq!(world.git(&["show", "HEAD:done.txt"]), "a");
            if dirty == "other" {
                copied(&world, &back);
                assert_eq!(fs::read_to_string(world.repo.join(file)).unwrap(), "mine\n");
            } else {
                assert_eq!(world.git(&["show", "stash^3:done.txt"]), "mine");
            }
            assert_eq!(world.repo.join("big").exists(), dirty == "ignored");
        }
    }
}

#[test]
fn locks_merges_and_what_a_worktree_still_holds_are_named_by_commands_that_run() {
    let (_folder, world) = worked(&format!(
        "{WORK}; echo '*.o' >.gitignore; git add .gitignore; git commit -qm Ignore; echo o >a.o"
    ));
    let lock = world.repo.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    copied(&world, &printed(&world.relay(&["finish"]).exits(1), "rm ", ""));
    assert!(!lock.exists());
    world.git(&["switch", "-qc", "side"]);
    world.write("README.md", "# side\n");
    world.git(&["commit", "-qam", "Side"]);
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "# main\n");
    world.git(&["commit", "-qam", "Main"]);
    world.run("git", &["merge", "side"]).exits(1);
    let did = world.relay(&["finish"]).exits(1);
    copied(&world, &printed(&did, "git -C ", " says how")).says("unmerged");
    world.git(&["merge", "--abort"]);
    let there = world.worktree();
    let did = world.relay(&["finish"]).exits(0);
    copied(&world, &printed(&did, "git worktree remove ", ""));
    assert!(!there.exists());
}

#[test]
fn branches_with_awkward_names_are_words_of_the_commands_that_name_them() {
    let (_folder, world) = awkward("echo theirs >README.md; git commit -qam Theirs");
    world.git(&["branch", "relay"]);
    let did = world.relay(&["run", "Write a file"]).exits(1);
    copied(&world, &printed(&did, "git branch -m ", "; or set"));
    let did = world.relay(&["run", "Write a file"]).exits(0);
    copied(&world, &printed(&did, "git diff ", "")).says("+theirs");
    world.git(&["branch", "b;'$(x)"]);
    world.write("README.md", "mine\n");
    world.git(&["commit", "-qam", "Mine"]);
    world.git(&["branch", "-f", "b;'$(x)"]);
    let did = world.relay(&["finish", "--into", "b;'$(x)"]).exits(1);
    let command = printed(&did, "git switch ", "; the conflicts");
    world.run("sh", &["-c", &command]).exits(1).says("the conflicts are in");
    assert_eq!(world.git(&["branch", "--show-current"]), "b;'$(x)");
}

#[test]
fn keys_that_do_not_serve_are_named_by_commands_that_run() {
    let (_folder, world) = worked(WORK);
    let key = world.relay(&["key", "--json"]).exits(0).json();
    let key = PathBuf::from(key["key"]["path"].as_str().unwrap());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    copied(&world, &printed(&world.relay(&["doctor"]).exits(1), "chmod 600 ", ""));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(world.repo.join(".git/relay/allowed_signers"), "").unwrap();
    for verb in [&["doctor"][..], &["run", "A task"], &["init"]] {
        let did = world.relay(verb);
        assert_ne!(did.code, Some(0));
        copied(&world, &printed(&did, "git relay trust --add ", ""));
        fs::write(world.repo.join(".git/relay/allowed_signers"), "").unwrap();
    }
    fs::write(&key, "").unwrap();
    let did = world.relay(&["key"]).exits(5);
    copied(&world, &printed(&did, "mv ", ", then"));
    assert!(key.with_extension("old").exists());
}

#[test]
fn doctors_next_steps_run() {
    let (_folder, world) = worked(WORK);
    let hooks = world.root.join("no such hooks");
    world.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    copied(&world, &printed(&world.relay(&["doctor"]).exits(1), "mkdir ", ", or"));
    assert!(hooks.is_dir());
    world.git(&["config", "--unset", "core.hooksPath"]);
    world.git(&["remote", "add", "it's", "nowhere"]);
    world.git(&["config", "remote.it's.fetch", "+refs/*:refs/*"]);
    let did = world.relay(&["doctor"]).exits(1).says("overwrites contracts");
    copied(&world, &printed(&did, "git config --replace-all ", ""));
    assert!(!world.relay(&["doctor"]).stdout.contains("overwrites contracts"));
    let lock = world.repo.join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::open(&lock).unwrap().set_modified(old).unwrap();
    copied(&world, &printed(&world.relay(&["doctor"]).exits(1), "rm ", ""));
    assert!(!lock.exists());
}

#[test]
fn what_stands_where_ours_belongs_is_moved_away_by_the_command_that_is_named() {
    let (_folder, world) = awkward("echo 'asks which?'; exit");
    world.relay(&["run", "Write a file"]).exits(1);
    let there = world.worktree();
    let elsewhere = world.root.join("elsewhere");
    fs::rename(&there, &elsewhere).unwrap();
    symlink(&elsewhere, &there).unwrap();
    copied(&world, &printed(&world.relay(&["resume"]).exits(4), "mv ", "; then"));
    assert!(!there.is_symlink());
    fs::rename(&elsewhere, &there).unwrap();
    let reference = world.repo.join(".git/refs/relay/sessions").join(world.session());
    fs::write(&reference, "").unwrap();
    let did = world.relay(&["resume"]).exits(4).says("is an empty file");
    copied(&world, &printed(&did, "rm ", ", then"));
    assert!(fs::read_to_string(&reference).unwrap().len() >= 40);
    let inbox = world.repo.join(".git/worktrees").join(world.session()).join("relay-inbox");
    fs::remove_file(&inbox).unwrap();
    fs::create_dir(&inbox).unwrap();
    copied(&world, &printed(&world.relay(&["resume"]).exits(1), "rm -r ", ""));
    assert!(!inbox.exists());
    fs::rename(world.repo.join(".relay"), world.root.join("away")).unwrap();
    world.write(".relay", "a file\n");
    copied(&world, &printed(&world.relay(&["run", "More"]).exits(1), "mv ", ""));
    assert!(world.repo.join(".relay.aside").exists());
}

#[test]
fn adopting_from_the_wrong_place_names_the_way_there() {
    let (_folder, world) = awkward(WORK);
    let other = world.root.join("another \u{1b}[2J repo");
    world.git(&["init", "-q", other.to_str().unwrap()]);
    let id = left(&world, "codex", "limit", &other);
    let did = world.relay(&["adopt", &id, "--headless"]).exits(1);
    let cd = printed(&did, "cd ", " && git relay adopt");
    copied(&world, &format!("{cd} && pwd -P")).says(other.to_str().unwrap());
}

#[test]
fn what_setup_says_for_a_profile_is_read_by_a_shell() {
    let (_folder, mut world) = awkward(WORK);
    world.program("man", "#!/bin/sh\nexit 1\n");
    world.set("XDG_DATA_HOME", world.root.join("data \"x\""));
    let did = world.relay(&["setup"]).exits(0);
    let line = did.stderr.lines().find(|line| line.contains("export MANPATH="));
    let line = line.unwrap_or_else(|| panic!("{}", did.stderr)).to_owned();
    let read = copied(&world, &format!("{line}\nls \"${{MANPATH%:}}/man1\""));
    assert!(read.stdout.contains("git-relay.1"), "{}", read.stdout);
}
