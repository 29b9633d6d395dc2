//! What an agent changes outside its worktree, and would run later, is named after its leg: git
//! relay's own files, the user's, and git's configuration for the user and the machine.

use super::support::{Did, World, scripted};
use std::fs;

const DONE: &str = "cat >/dev/null; echo start; echo 'step two'; touch \"$HOME/second\"; \
     echo 'done all'\n";

/// A world whose first agent does `harm` and stops at its limit.
fn world(harm: &str) -> World {
    let world = World::new();
    let evil = world.program("evil", "#!/bin/sh\ntouch \"$HOME/ran\"\ncat\n");
    let first = world.program(
        "first-agent",
        &format!(
            "cat >/dev/null; echo start; echo 'step one'; EVIL={}; echo a >a.txt; \
             RELAY=$(cd \"$(git rev-parse --git-common-dir)\" && pwd)/relay; {harm}\n\
             echo 'limit enough'; exit 1\n",
            evil.display()
        ),
    );
    let second = world.program("second-agent", DONE);
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init", "--agents", "first,second"]).exits(0);
    world
}

#[track_caller]
fn stopped(world: &World, did: Did, words: &str) {
    assert!(!world.home.join("ran").exists(), "the agent's program ran:\n{}", did.stderr);
    assert!(!world.home.join("second").exists(), "an agent was started:\n{}", did.stderr);
    did.exits(4).says("configuration was changed").says(words).says("--accept-config");
}

#[test]
fn git_relays_own_files_are_as_they_were_or_somebody_accepts_them() {
    let setup = "printf '[worktree]\\nsetup = [\"%s\"]\\n' \"$EVIL\"";
    let cases = [
        (format!("{setup} >>\"$RELAY/config.toml\""), "relay/config.toml changed"),
        ("echo 0123 >\"$RELAY/allowed\"".to_owned(), "relay/allowed added"),
        (
            "sed -n p \"$RELAY/allowed_signers\" >k; sed s/^relay/other/ k \
             >>\"$RELAY/allowed_signers\"; rm k"
                .to_owned(),
            "relay/allowed_signers changed",
        ),
        (
            format!("{setup} >>\"$HOME/.config/git-relay/config.toml\""),
            "your own config.toml changed",
        ),
        (
            "rm \"$RELAY/bin/git-relay\"; cp \"$EVIL\" \"$RELAY/bin/git-relay\"".to_owned(),
            "relay/bin/git-relay changed",
        ),
        ("ln -sf \"$EVIL\" \"$RELAY/bin/git-relay\"".to_owned(), "relay/bin/git-relay changed"),
        // What a person does in another terminal meanwhile is no different, and is named as well.
        (
            "(unset GIT_RELAY_LEG; ssh-keygen -q -t ed25519 -N '' -f \"$HOME/k\"; \
             setsid -w git-relay trust --add \"$HOME/k.pub\" >/dev/null 2>&1)"
                .to_owned(),
            "relay/allowed_signers changed",
        ),
    ];
    for (harm, words) in cases {
        let world = world(&harm);
        stopped(&world, world.relay(&["run", "A task"]), words);
        let session = world.session();
        stopped(&world, world.relay(&["resume", &session]), words);
        world.relay(&["resume", &session, "--accept-config"]).exits(0).says("second took over");
    }
}

#[test]
fn what_the_person_changes_between_two_drives_is_theirs() {
    let world = world("true");
    world.relay(&["run", "A task", "--agents", "first"]).exits(6);
    world.relay(&["init", "--agents", "second,first"]).exits(0);
    let config = fs::read_to_string(world.home.join(".config/git-relay/config.toml")).unwrap();
    world.configure(&format!("{config}all = true\n"));
    world.git(&["config", "--global", "alias.hello", "!echo hello"]);
    world.relay(&["resume", "--agents", "second"]).exits(0).says("second took over");
    world.git(&["config", "--global", "alias.hello", "!echo hello again"]);
    world.relay(&["finish"]).exits(0);
}

const PLANT: &str = "plant() { h=$(git rev-parse --git-common-dir)/hooks/$1; mkdir -p \"${h%/*}\"; \
     printf '#!/bin/sh\\necho %s >>\"$HOME/hooks\"\\n' $1 >\"$h\"; chmod +x \"$h\"; }; ";

/// The hooks that ran as the user, in `finish` or in a trial of `doctor`'s.
fn hooks_run(world: &World) -> String {
    fs::read_to_string(world.home.join("hooks")).unwrap_or_default()
}

#[test]
fn a_hook_that_an_earlier_legs_agent_left_is_refused_until_somebody_accepts_it() {
    // The main tree's own commit would run it; no agent commits here.
    let harm = format!("{PLANT} plant pre-commit");
    for put_back in [true, false] {
        let world = world(&harm);
        world.relay(&["run", "A task"]).exits(0).says("second took over");
        let session = world.session();
        for _ in 0..2 {
            world.relay(&["finish"]).exits(4).says("hooks/pre-commit added");
            world.relay(&["doctor"]).exits(1).says("hooks/pre-commit added; no hook was tried");
            world.relay(&["resume", &session]).exits(0).says("hooks/pre-commit added");
        }
        if put_back {
            fs::remove_file(world.repo.join(".git/hooks/pre-commit")).unwrap();
        } else {
            world.relay(&["resume", &session, "--accept-config"]).exits(0);
        }
        world.relay(&["doctor"]).exits(0);
        assert_eq!(hooks_run(&world), "", "the agent's hook was run");
        world.relay(&["finish", "--include-snapshot"]).exits(0);
        assert_eq!(hooks_run(&world), if put_back { "" } else { "pre-commit\n" });
    }
}

#[test]
fn what_is_accepted_is_what_was_left_and_not_what_the_next_agent_leaves() {
    let world = world(&format!("{PLANT} plant pre-commit; git config core.sshCommand \"$EVIL\""));
    world.program(
        "second-agent",
        &DONE.replace("echo 'done", &format!("{PLANT} plant post-merge; echo 'done")),
    );
    stopped(&world, world.relay(&["run", "A task"]), "config core.sshcommand added");
    world.relay(&["resume", "--accept-config"]).exits(0).says("second took over");
    let did = world.relay(&["finish"]).exits(4).says("hooks/post-merge added");
    assert!(!did.stderr.contains("pre-commit"), "{}", did.stderr);
    assert_eq!(hooks_run(&world), "");
}

#[test]
fn git_configuration_outside_the_repository_is_compared_too() {
    let filter = "echo '* filter=evil' >.gitattributes; ";
    let global = "config filter.evil.clean added";
    let named = "git config --file \"$HOME/named\" filter.evil.clean \"$EVIL\"";
    let cases = [
        ("git config --global filter.evil.clean \"$EVIL\"", global),
        (
            "mkdir -p \"$HOME/.config/git\"; git config --file \"$HOME/.config/git/config\" \
             filter.evil.clean \"$EVIL\"",
            global,
        ),
        (named, "/named' config filter.evil.clean added"),
        ("git config --global core.hooksPath /nowhere", ""),
        ("git config --global core.sshCommand \"$EVIL\"", "global config core.sshcommand added"),
        (
            "git config --file \"$HOME/system\" diff.external \"$EVIL\"",
            "system config diff.external",
        ),
    ];
    for (harm, words) in cases {
        let mut world = world(&format!("{filter}{harm}"));
        world.set("GIT_CONFIG_SYSTEM", world.home.join("system"));
        world.set("GIT_CONFIG_NOSYSTEM", "0");
        // A file that is there, or comes to be there, by an include that was there before.
        world.git(&["config", "--global", "include.path", "~/named"]);
        let did = world.relay(&["run", "A task"]);
        if words.is_empty() {
            // Our own calls are deaf to it: it is shown, and is no reason to stop.
            did.exits(0).says("global config core.hookspath added");
            continue;
        }
        stopped(&world, did, words);
        world.relay(&["resume", "--accept-config"]).exits(0).says("second took over");
    }
}

#[test]
fn a_worktree_that_only_looks_gone_is_not_laid_out_elsewhere() {
    let world = world("true");
    world.relay(&["run", "A task"]).exits(0);
    let elsewhere = world.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    world.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    for words in
        [&["finish"][..], &["finish", "--dry-run"], &["resume"], &["handoff", "--to", "first"]]
    {
        let did = world.relay(words).exits(4);
        did.says("configuration was changed").says("config core.worktree added");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "something was made there");
    world.git(&["config", "core.worktree", "/nowhere/at/all"]);
    for words in [&["finish"][..], &["status"], &["run", "Another"]] {
        world.relay(words).exits(1).says("git config --show-origin core.worktree");
    }
    let config = world.repo.join(".git/config");
    let words = ["-C", "/", "git", "config", "--file", config.to_str().unwrap(), "--unset"];
    world.run("env", &[&words[..], &["core.worktree"]].concat()).exits(0);
    world.relay(&["finish"]).exits(0);
}

#[test]
fn a_program_of_ones_own_has_no_wider_level_than_its_owner_says() {
    let world = world("true");
    let run = ["run", "A task", "--agents", "second", "--level", "all"];
    world.relay(&run).exits(5).says("may not have the level 'all'").says("all = true");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/sessions"]), "");
    let config = fs::read_to_string(world.home.join(".config/git-relay/config.toml")).unwrap();
    world.configure(&format!("{config}all = true\n"));
    world.relay(&run).exits(0);
    // One that may not is passed over, not held to less.
    let run = ["run", "Another", "--agents", "first,second", "--level", "all"];
    world.relay(&run).exits(0).says("first is passed over: 'first' may not have the level 'all'");
}
