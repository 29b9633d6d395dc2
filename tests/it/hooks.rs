//! The hook for people's shells: a commit made by hand in a session's worktree is noted, once; the
//! hooks people have, and the tools that keep them, work on as before.

use super::relay::two_agents;
use super::support::{World, scripted};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const HOOK: &str = ".git/hooks/post-commit";

fn hook(world: &World, text: &str) -> PathBuf {
    hook_at(world, HOOK, text)
}

fn hook_at(world: &World, place: &str, text: &str) -> PathBuf {
    let path = world.repo.join(place);
    world.write_at(&path, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A session that rests, with a worktree to commit in.
fn rested(world: &World) -> PathBuf {
    let agent =
        world.program("agent", "cat >/dev/null; echo start; echo 'step one'; echo 'done it'\n");
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Do little"]).exits(0);
    world.worktree()
}

/// Commits by hand in `at`.
fn commit(world: &World, at: &Path, name: &str) {
    world.write_at(&at.join(name), name);
    let at = at.to_str().unwrap();
    world.git(&["-C", at, "add", name]);
    world.git(&["-C", at, "commit", "-q", "-m", name]);
}

/// The commits that the inbox of the only session's worktree tells of.
fn noted(world: &World) -> Vec<String> {
    let git_dir = world.repo.join(".git/worktrees").join(world.session());
    let inbox = fs::read_to_string(git_dir.join("relay-inbox")).unwrap();
    inbox
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["kind"] == "safePoint")
        .map(|line| line["commit"].as_str().unwrap().to_owned())
        .collect()
}

/// What the user's hook of these tests has written: a line for each time it ran.
fn mine(world: &World) -> String {
    fs::read_to_string(world.home.join("mine")).unwrap_or_default()
}

/// The user's things, but for what `init` always makes.
fn theirs(world: &World) -> std::collections::BTreeMap<String, String> {
    let mut things = world.users_things();
    things.retain(|name, _| ![".git/info/exclude", ".git/packed-refs"].contains(&name.as_str()));
    things
}

const MINE: &str = "echo mine >>\"$HOME/mine\"\n";

#[test]
fn a_commit_by_hand_in_a_session_is_noted_and_others_start_nothing() {
    let mut world = World::new();
    let worktree = rested(&world);
    assert_eq!(noted(&world), [""; 0]);
    commit(&world, &worktree, "by-hand");
    assert_eq!(
        noted(&world),
        [world.git(&["-C", worktree.to_str().unwrap(), "rev-parse", "HEAD"])]
    );
    // Elsewhere it is not even called: by name it would be this one.
    fs::remove_file(world.home.join("bin/git-relay")).unwrap();
    world.program("git-relay", "#!/bin/sh\necho called >>\"$HOME/called\"\n");
    let other = world.root.join("other");
    world.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    let repo = world.repo.clone();
    commit(&world, &repo, "in-main");
    commit(&world, &other, "in-other");
    assert!(!world.home.join("called").exists());
    commit(&world, &worktree, "again");
    assert_eq!(fs::read_to_string(world.home.join("called")).unwrap(), "called\n");
    // Not on PATH, as under a desktop: by its path. Gone altogether: nothing is said.
    fs::remove_file(world.home.join("bin/git-relay")).unwrap();
    world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    commit(&world, &worktree, "by-path");
    assert_eq!(noted(&world).len(), 2);
    fs::remove_file(world.repo.join(".git/relay/bin/git-relay")).unwrap();
    world.write_at(&worktree.join("gone"), "gone");
    world.git(&["-C", worktree.to_str().unwrap(), "add", "gone"]);
    let did = world.run("git", &["-C", worktree.to_str().unwrap(), "commit", "-q", "-m", "gone"]);
    assert_eq!(did.exits(0).stderr, "");
    assert_eq!(noted(&world).len(), 2);
}

#[test]
fn an_agents_commit_is_noted_once_though_dispatcher_and_block_both_run() {
    let world = two_agents();
    hook(&world, &format!("#!/bin/sh\n{MINE}exit 0 # on purpose: it leaves early\n"));
    world.relay(&["init"]).exits(0);
    assert!(fs::read_to_string(world.repo.join(HOOK)).unwrap().contains("# >>> git-relay"));
    world.relay(&["run", "Write two files"]).exits(0);
    let noted = noted(&world);
    assert_eq!((noted.len(), mine(&world).lines().count()), (2, 2), "{noted:?}");
    assert_ne!(noted[0], noted[1]);
}

/// Where git finds hooks is remembered in a leg, and looked for again when that may have changed.
#[test]
fn hooks_that_an_agent_sets_up_in_the_middle_of_its_leg_run() {
    let world = World::new();
    let agent = world.program(
        "agent",
        "cat >/dev/null; echo start; echo 'step one'\n\
         say() { echo \"$1\" >>\"$HOME/said\"; }; commit() { git commit -q --allow-empty -m x; }\n\
         mkdir one two three; for at in one two three; do\n\
         printf '#!/bin/sh\\necho %s >>\"$HOME/said\"\\n' $at >$at/pre-commit; chmod +x $at/pre-commit; done\n\
         commit; commit; say changed\n\
         git config core.hooksPath one; commit; commit; say changed\n\
         git config core.hooksPath two; commit; say changed\n\
         git config --unset core.hooksPath; commit; say changed\n\
         git config --global core.hooksPath three; commit; git config --global --unset core.hooksPath\n\
         rm -r one two three; echo 'done it'\n",
    );
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Set up hooks"]);
    let said = fs::read_to_string(world.home.join("said")).unwrap();
    let said: Vec<&str> = said.lines().collect();
    let expected = ["changed", "one", "one", "changed", "two", "changed", "changed", "three"];
    assert_eq!(said, expected);
    let known = world.repo.join(".git/worktrees").join(world.session()).join("relay-hooks-folder");
    assert!(known.exists(), "nothing was remembered");
}

/// What is remembered is of the session's worktree: a repository that is made in the leg, as test
/// suites do, has its own hooks, and the session those of the user, whichever commits first.
#[test]
fn hooks_of_a_repository_made_in_a_leg_are_its_own() {
    for order in ["scratch session scratch session", "session scratch session scratch"] {
        let world = World::new();
        known_everywhere(&world);
        hook_at(&world, ".git/hooks/pre-commit", "#!/bin/sh\necho session >>\"$HOME/said\"\n");
        let agent = world.program(
            "agent",
            &format!(
                "cat >/dev/null; echo start; echo 'step one'\n\
                 session() {{ git commit -q --allow-empty -m x; }}\n\
                 scratch() {{ git -C \"$HOME/scratch\" commit -q --allow-empty -m x; }}\n\
                 at=$HOME/scratch/.git/hooks; git init -q \"$HOME/scratch\"; mkdir -p $at\n\
                 printf '#!/bin/sh\\necho scratch >>\"$HOME/said\"\\n' >$at/pre-commit\n\
                 chmod +x $at/pre-commit\n\
                 for at in {order}; do $at; done; echo 'done it'\n"
            ),
        );
        world.configure(&scripted(&[("only", &agent)]));
        world.relay(&["init"]).exits(0);
        world.relay(&["run", "Test it"]).exits(0);
        let said = fs::read_to_string(world.home.join("said")).unwrap();
        assert_eq!(said.split_whitespace().collect::<Vec<_>>().join(" "), order);
    }
}

/// Outside a leg, as in a trial commit, and in other repositories, it leaves no file behind; a
/// folder whose name is two lines is not remembered as one.
#[test]
fn where_hooks_are_is_written_down_beside_the_inbox_of_the_leg_alone() {
    let world = World::new();
    known_everywhere(&world);
    let agent = world.program(
        "agent",
        "cat >/dev/null; echo start; echo 'step one'\n\
         set -e; two=$HOME/$(printf 'two\\nlines'); mkdir -p \"$two\"; git config core.hooksPath \"$two\"\n\
         printf '#!/bin/sh\\necho two >>\"$HOME/said\"\\n' >\"$two/pre-commit\"\n\
         chmod +x \"$two/pre-commit\"; commit() { git commit -q --allow-empty -m x; }\n\
         commit; commit; git config --unset core.hooksPath; git init -q \"$HOME/scratch\"\n\
         cd \"$HOME/scratch\"; commit; mkdir inbox; GIT_RELAY_INBOX=$PWD/inbox/x commit\n\
         (unset GIT_RELAY_LEG; GIT_RELAY_INBOX=$PWD/.git/x GIT_DIR=$PWD/.git commit)\n\
         echo 'done it'\n",
    );
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Test it"]).exits(0);
    assert_eq!(fs::read_to_string(world.home.join("said")).unwrap(), "two\ntwo\n");
    let found = world.run("find", &[world.root.to_str().unwrap(), "-name", "relay-hooks-folder"]);
    assert_eq!(found.exits(0).stdout, "");
}

/// So that commits can be made outside the world's repository too.
fn known_everywhere(world: &World) {
    world.git(&["config", "--global", "user.name", "N"]);
    world.git(&["config", "--global", "user.email", "n@localhost"]);
}

#[test]
fn the_users_hook_runs_first_and_comes_back_byte_for_byte() {
    let odd = [
        format!("#!/bin/sh\n{MINE}"),
        format!("#!/usr/bin/env bash\nset -e\n{MINE}"),
        format!("#!/bin/sh\nif true; then\n{MINE}\texit 0\nfi\n"),
        format!("#!/bin/sh\n{MINE}exec true\n"),
        "#!/usr/bin/env python3\nimport os\nopen(os.environ['HOME'] + '/mine', 'a').write('mine\\n')\n"
            .to_owned(),
        "#!/usr/bin/env python3\nimport os, sys\nopen(os.environ['HOME'] + '/mine', 'a').write('mine\\n')\nsys.exit(3)\n"
            .to_owned(),
    ];
    for (number, text) in odd.into_iter().enumerate() {
        let world = World::new();
        let path = hook(&world, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let worktree = rested(&world);
        let written = fs::read(&path).unwrap();
        world.relay(&["init"]).exits(0);
        assert_eq!(fs::read(&path).unwrap(), written, "init is not safe to repeat");
        commit(&world, &worktree, "by-hand");
        // One that leaves in its middle cannot be followed; `doctor` finds that.
        let expected = usize::from(number != 2);
        assert_eq!((noted(&world).len(), mine(&world)), (expected, "mine\n".into()), "{text}");
        world.relay(&["init", "--remove-hooks"]).exits(0).says("took git relay's block out");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o750, "{text}");
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
        assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().contains("relay")));
    }
    let world = World::new();
    world.relay(&["init"]).exits(0);
    world.relay(&["init", "--remove-hooks"]).exits(0);
    assert!(!world.repo.join(HOOK).exists());
    world.relay(&["init", "--remove-hooks"]).exits(0).says("no hook file");
}

#[test]
fn a_block_that_something_was_appended_to_goes_to_the_end_again() {
    let world = World::new();
    world.relay(&["init"]).exits(0);
    let path = world.repo.join(HOOK);
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{before}echo later\n")).unwrap();
    world.relay(&["init"]).exits(0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("#!/bin/sh\necho later\n# >>> git-relay"), "{text}");
    // Broken marks are nobody's to guess at.
    let broken = text.replace("# <<< git-relay", "");
    fs::write(&path, &broken).unwrap();
    world.relay(&["init"]).exits(0).says("are broken");
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
}

/// Husky 9: `core.hooksPath=.husky/_`, generated and ignored; the user's hooks in `.husky`.
#[test]
fn beside_husky_the_line_to_add_is_told_and_works() {
    let world = World::new();
    let runner = "#!/usr/bin/env sh\n[ \"$HUSKY\" = \"2\" ] && set -x\nn=$(basename \"$0\")\n\
        s=$(dirname \"$(dirname \"$0\")\")/$n\n[ ! -f \"$s\" ] && exit 0\n\
        export PATH=\"node_modules/.bin:$PATH\"\nsh -e \"$s\" \"$@\"\nc=$?\nexit $c\n";
    hook_at(&world, ".husky/_/h", runner);
    hook_at(&world, ".husky/_/post-commit", "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"\n");
    world.write(".husky/_/.gitignore", "*");
    world.write(".husky/post-commit", MINE);
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "husky"]);
    world.git(&["config", "core.hooksPath", ".husky/_"]);
    let before = theirs(&world);
    let did = world.relay(&["init"]).exits(0).says("husky").says(".husky/post-commit");
    assert_eq!(theirs(&world), before, "files of husky's were touched");
    let line = did.stderr.lines().find(|line| line.contains("hook git post-commit")).unwrap();
    let path = world.repo.join(".husky/post-commit");
    fs::write(&path, format!("{MINE}{}\n", line.trim())).unwrap();
    world.git(&["commit", "-q", "-am", "add the line"]);
    let worktree = rested(&world);
    // What `npm ci` does in a fresh worktree.
    let copied = world.run("cp", &["-r", ".husky/_", worktree.join(".husky").to_str().unwrap()]);
    copied.exits(0);
    let before = mine(&world).lines().count();
    commit(&world, &worktree, "by-hand");
    assert_eq!(noted(&world).len(), 1);
    assert_eq!(mine(&world).lines().count(), before + 1);
}

/// The tools whose files are written anew by themselves: theirs are left alone, and it is told
/// which line belongs into their configuration.
#[test]
fn files_of_lefthook_and_pre_commit_and_links_are_left_alone() {
    let lefthook = "#!/bin/sh\n\nif [ \"$LEFTHOOK\" = \"0\" ]; then\n  exit 0\nfi\n\n\
        call_lefthook()\n{\n  lefthook \"$@\"\n}\n\ncall_lefthook run \"post-commit\" \"$@\"\n";
    let pre_commit = "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n\
        # ID: 138fd403232d2ddd5efb44317e38bf03\nARGS=(hook-impl --hook-type=post-commit)\n\
        exec pre-commit \"${ARGS[@]}\"\n";
    for (text, tool, told) in [
        (lefthook, "lefthook", "lefthook-local.yml"),
        (pre_commit, "pre-commit", ".pre-commit-config.yaml"),
    ] {
        let world = World::new();
        hook(&world, text);
        let before = theirs(&world);
        let did = world.relay(&["init"]).exits(0).says(tool).says(told);
        assert!(
            did.stderr.contains("run: git-relay hook git post-commit")
                || did.stderr.contains("entry: git-relay hook git post-commit"),
            "{}",
            did.stderr
        );
        assert_eq!(theirs(&world), before);
        world.relay(&["init", "--remove-hooks"]).exits(0);
        assert_eq!(theirs(&world), before);
        // What the line makes the tool do: run the entry, in the environment of the hook.
        hook(&world, "#!/bin/sh\ngit-relay hook git post-commit\nexit\n");
        let worktree = rested(&world);
        commit(&world, &worktree, "by-hand");
        assert_eq!(noted(&world).len(), 1);
        commit(&world, &world.repo.clone(), "in-main");
        assert_eq!(noted(&world).len(), 1);
    }
    let world = World::new();
    hook_at(&world, "scripts/post-commit", "#!/bin/sh\ntrue\n");
    fs::create_dir_all(world.repo.join(".git/hooks")).unwrap();
    symlink("../../scripts/post-commit", world.repo.join(HOOK)).unwrap();
    let before = theirs(&world);
    world.relay(&["init"]).exits(0).says("is a link").says("relay-inbox");
    assert_eq!(theirs(&world), before);
}

/// pre-commit's own hooks beside our post-commit, and a hook that the user switched off.
#[test]
fn nothing_that_was_off_is_switched_on() {
    let world = World::new();
    let path = hook(&world, "#!/bin/sh\ntrue\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let before = theirs(&world);
    world.relay(&["init"]).exits(0).says("is not executable");
    assert_eq!(theirs(&world), before);
    let world = World::new();
    world.git(&["config", "--global", "core.hooksPath", "~/hooks"]);
    let did = world.relay(&["init", "--json"]).exits(0).json();
    let expected = world.home.join("hooks/post-commit");
    assert_eq!(did["init"]["hook"]["file"], expected.to_str().unwrap(), "{did}");
    assert!(!world.home.join("hooks").exists() && !world.repo.join(HOOK).exists());
    let keys = world.git(&["config", "--local", "--list", "--name-only"]);
    assert!(!keys.contains("hook") && !keys.contains("relay"), "{keys}");
}
