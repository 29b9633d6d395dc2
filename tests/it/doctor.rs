//! `doctor` proves that hooks fire by making a commit with them, names what is wrong with the next
//! step, mends what is ours and nothing else.

use super::support::{Did, World, scripted};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// A world in which nothing is wrong, with a session that rests.
fn sound() -> World {
    let world = World::new();
    let agent =
        world.program("agent", "cat >/dev/null; echo start; echo 'step one'; echo 'done it'\n");
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Do little"]).exits(0);
    world.relay(&["doctor"]).exits(0).says("nothing is wrong");
    world
}

fn doctor(world: &World, words: &[&str]) -> (Option<i32>, Vec<Value>) {
    let did: Did = world.relay(&[&["doctor", "--json"], words].concat());
    let found = did.json()["doctor"].as_array().unwrap().clone();
    (did.code, found)
}

/// The only problem there is: what and next.
#[track_caller]
fn problem(world: &World, subject: &str) -> (String, String) {
    let (code, found) = doctor(world, &[]);
    let problems: Vec<&Value> = found.iter().filter(|one| one["level"] == "problem").collect();
    assert_eq!((code, problems.len()), (Some(1), 1), "{problems:#?}");
    assert_eq!(problems[0]["subject"], subject, "{problems:#?}");
    let text = |name: &str| problems[0][name].as_str().unwrap_or_default().to_owned();
    (text("what"), text("next"))
}

fn hook(world: &World, place: &str, text: &str) -> PathBuf {
    let path = world.repo.join(place);
    world.write_at(&path, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

const POST_COMMIT: &str = ".git/hooks/post-commit";

#[test]
fn a_sound_repository_is_proved_sound_and_nothing_in_it_changes() {
    let world = sound();
    let before = (world.users_things(), world.git(&["for-each-ref"]));
    let inbox = world.repo.join(".git/worktrees").join(world.session()).join("relay-inbox");
    let noted = fs::read(&inbox).unwrap();
    let (code, found) = doctor(&world, &[]);
    assert_eq!(code, Some(0));
    let proved = |subject: &str| {
        found
            .iter()
            .any(|one| one["subject"] == subject && one["what"] == "a trial commit was noted")
    };
    let session = format!("hooks, session {}", world.session());
    for subject in ["hooks of agents", "hooks, main tree", &session] {
        assert!(proved(subject), "{subject}: {found:#?}");
    }
    assert_eq!((world.users_things(), world.git(&["for-each-ref"])), before);
    assert_eq!(fs::read(inbox).unwrap(), noted);
}

/// The user's hook runs in the trial, in a scratch repository: whatever it does is done there.
#[test]
fn a_hook_that_leaves_early_is_found_out_and_does_nothing_here() {
    let world = sound();
    let block = fs::read_to_string(world.repo.join(POST_COMMIT)).unwrap();
    let block = block.trim_start_matches("#!/bin/sh\n");
    let leaves = "#!/bin/sh\necho x >written; git rev-parse --show-toplevel >>\"$HOME/where\"\n\
        if true; then echo 'I leave' >&2; exit 0; fi\n";
    hook(&world, POST_COMMIT, &format!("{leaves}{block}"));
    let before = world.users_things();
    world.relay(&["doctor"]).exits(1).says("PROBLEM");
    assert_eq!(world.users_things(), before);
    let told = fs::read_to_string(world.home.join("where")).unwrap();
    assert!(!told.is_empty() && !told.contains(world.repo.to_str().unwrap()), "{told}");
    let (_, found) = doctor(&world, &[]);
    let main = found.iter().find(|one| one["subject"] == "hooks, main tree").unwrap();
    assert!(main["what"].as_str().unwrap().contains("(it said: I leave)"), "{main}");
    assert!(main["next"].as_str().unwrap().contains("without exit or exec"), "{main}");
}

#[test]
fn a_block_that_is_gone_comes_back_by_fix() {
    let world = sound();
    fs::remove_file(world.repo.join(POST_COMMIT)).unwrap();
    let (_, found) = doctor(&world, &[]);
    let problems = found.iter().filter(|one| one["level"] == "problem");
    assert_eq!(problems.filter(|one| one["next"] == "git relay doctor --fix").count(), 2);
    fs::write(world.repo.join(".git/relay/hooks/pre-commit"), "broken").unwrap();
    world.relay(&["doctor", "--fix"]).exits(0).says("fixed");
    world.relay(&["doctor"]).exits(0);
}

#[test]
fn hooks_kept_by_other_tools_are_told_by_name_with_the_line_to_add() {
    // husky, in a main tree where nobody ran the install.
    let world = sound();
    world.git(&["config", "core.hooksPath", ".husky/_"]);
    let (_, found) = doctor(&world, &[]);
    let main = found.iter().find(|one| one["subject"] == "hooks, main tree").unwrap();
    assert!(main["what"].as_str().unwrap().contains("is not there: no hook runs"), "{main}");
    assert!(main["next"].as_str().unwrap().contains("npm ci"), "{main}");
    // Installed, the line not added yet; then added; the session's own made by an install.
    hook(
        &world,
        ".husky/_/h",
        "#!/bin/sh\ns=$(dirname \"$(dirname \"$0\")\")/$(basename \"$0\")\n\
        [ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\n",
    );
    hook(&world, ".husky/_/post-commit", "#!/bin/sh\n. \"$(dirname \"$0\")/h\"\n");
    let (_, found) = doctor(&world, &[]);
    let main = found.iter().find(|one| one["subject"] == "hooks, main tree").unwrap();
    assert!(main["what"].as_str().unwrap().contains("husky keeps the hooks here"), "{main}");
    let next = main["next"].as_str().unwrap().to_owned();
    let line = next.strip_prefix("add to .husky/post-commit: ").unwrap();
    world.write(".husky/post-commit", &format!("{line}\n"));
    let session = format!("hooks, session {}", world.session());
    assert!(problem(&world, &session).0.contains("is not there"));
    world.run("cp", &["-r", ".husky", world.worktree().to_str().unwrap()]).exits(0);
    world.relay(&["doctor"]).exits(0);
    // An agent can write there: what differs is not run.
    let theirs = world.worktree().join(".husky/post-commit");
    fs::write(theirs, format!("touch \"$HOME/ran-it\"\n{line}\n")).unwrap();
    assert!(problem(&world, &session).0.contains("was not tried"));
    assert!(!world.home.join("ran-it").exists());
    // Switched off, and a folder that is nowhere.
    world.git(&["config", "core.hooksPath", "/dev/null"]);
    world.relay(&["doctor"]).exits(1).says("hooks are switched off").says(".git/config");
    world.git(&["config", "core.hooksPath", "gone"]);
    world.relay(&["doctor"]).exits(1).says("no hook runs here, yours neither");
}

#[test]
fn lefthook_is_run_with_its_configuration_and_by_hand_lines_need_a_path() {
    let mut world = sound();
    // As lefthook: what it runs stands in its file.
    world.program("lefthook", "#!/bin/sh\nsed -n 's/.*run: \\(git-relay.*post-commit\\).*/\\1/p' lefthook-local.yml | sh\n");
    let path = hook(&world, POST_COMMIT, "#!/bin/sh\nlefthook run \"post-commit\" \"$@\"\n");
    let (_, found) = doctor(&world, &[]);
    let main = found.iter().find(|one| one["subject"] == "hooks, main tree").unwrap();
    let next = main["next"].as_str().unwrap();
    let line = next.strip_prefix("add to lefthook-local.yml: ").unwrap();
    world.write("lefthook-local.yml", &format!("{line}\n"));
    world.relay(&["doctor"]).exits(0).says("programs started from a desktop");
    // The block finds the program by its path all the same.
    fs::remove_file(path).unwrap();
    world.relay(&["init"]).exits(0);
    world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let did = world.relay(&["doctor"]).exits(0);
    assert!(!did.stdout.contains("desktop"), "{}", did.stdout);
}

#[test]
fn locks_are_ours_and_cleared_or_maybe_the_users_and_named() {
    let world = sound();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    let lock = |name: &str| {
        let path = world.repo.join(".git").join(name);
        world.write_at(&path, "");
        fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        path
    };
    let ours = lock(&format!("refs/relay/sessions/{}.lock", world.session()));
    assert!(problem(&world, "lock").0.contains("left by a dead command"));
    assert!(ours.exists());
    world.relay(&["doctor", "--fix"]).exits(0);
    assert!(!ours.exists());
    for name in ["index.lock", "packed-refs.lock", "refs/notes/relay.lock"] {
        let theirs = lock(name);
        let (what, next) = problem(&world, "lock");
        assert!(what.contains(name) && next.contains("if none runs: rm "), "{what} {next}");
        world.relay(&["doctor", "--fix"]).exits(1);
        assert!(theirs.exists(), "{name} may be the user's");
        fs::remove_file(theirs).unwrap();
    }
}

#[test]
fn keys_trust_and_fetches_that_overwrite_are_named_and_the_commands_told_help() {
    let world = sound();
    let key = world.relay(&["key", "--json"]).exits(0).json();
    let path = PathBuf::from(key["key"]["path"].as_str().unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(problem(&world, "key").0.contains("can be read by others"));
    world.relay(&["doctor", "--fix"]).exits(0);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // The user's configuration is not ours to change.
    world.git(&["config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    world.git(&["config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*"]);
    let config = fs::read(world.repo.join(".git/config")).unwrap();
    world.relay(&["doctor", "--fix"]).exits(1);
    assert_eq!(fs::read(world.repo.join(".git/config")).unwrap(), config);
    let (_, next) = problem(&world, "notes");
    world.run("sh", &["-c", &next]).exits(0);
    world.relay(&["doctor"]).exits(0);
    let fetches = world.git(&["config", "--get-all", "remote.origin.fetch"]);
    assert_eq!(fetches.lines().count(), 2);
    let fingerprint = key["key"]["fingerprint"].as_str().unwrap();
    world.relay(&["trust", "--remove", fingerprint]).exits(0);
    let did = world.relay(&["doctor", "--fix"]).exits(1).says("trust: this repository's own key");
    let next =
        did.stdout.lines().find_map(|line| line.trim().strip_prefix("next: git relay trust "));
    world.run("sh", &["-c", &format!("git-relay trust {}", next.unwrap())]).exits(0);
    world.relay(&["doctor"]).exits(0);
}

#[test]
fn what_is_missing_is_named_with_the_command_that_helps() {
    let world = World::new();
    let (_, found) = doctor(&world, &[]);
    let next: Vec<&str> = found.iter().filter_map(|one| one["next"].as_str()).collect();
    assert!(
        next.contains(&"git relay init") && next.contains(&"git relay init --agents NAME,NAME")
    );
    world.relay(&["init", "--agents", "claude"]).exits(0);
    world.write_at(&world.home.join(".claude/settings.json"), "{\"cleanupPeriodDays\": 3}");
    let did = world.relay(&["doctor"]);
    did.says("keeps transcripts 3 days").says("next: raise cleanupPeriodDays");
    let real = which::which("git").unwrap();
    let shim = format!(
        "#!/bin/sh\ncase \"$*\" in *' version') echo git version 2.30.1 ;; *) exec '{}' \"$@\" ;; esac\n",
        real.display()
    );
    let shim = world.program("git", &shim);
    world.relay(&["doctor"]).exits(1).says("git 2.30.1 is too old");
    fs::remove_file(shim).unwrap();
    world.configure("treshold = 1\n");
    world.relay(&["doctor"]).exits(1).says("configuration: ").says("did you mean 'threshold'?");
    let world = sound();
    fs::remove_dir_all(world.worktree()).unwrap();
    let subject = format!("session {}", world.session());
    assert!(problem(&world, &subject).1.contains("git relay abort"));
}

/// An agent need not look whether its commits came to be.
#[test]
fn where_git_knows_nobody_it_is_said_before_an_agent_works() {
    let world = sound();
    for name in ["user.name", "user.email"] {
        world.git(&["config", "--unset", name]);
    }
    world.git(&["config", "--global", "user.useConfigOnly", "true"]);
    let (what, next) = problem(&world, "identity");
    assert!(what.contains("no commit of yours or of an agent can be made here"), "{what}");
    world.relay(&["init"]).exits(0).says("no commit of yours").says(&format!("hint: {next}"));
    let did = world.relay(&["run", "Do more"]).exits(0).says("no commit of yours");
    let said = did.stderr.find("no commit of yours").unwrap();
    assert!(said < did.stderr.find("starting only").unwrap(), "{}", did.stderr);
    world.run("sh", &["-c", &next]).exits(0);
    world.relay(&["doctor"]).exits(0);
    // Where there is no commit yet, the command that makes one needs to know it as well.
    fs::remove_dir_all(world.repo.join(".git")).unwrap();
    world.git(&["init", "-q"]);
    fs::remove_file(world.home.join(".gitconfig")).unwrap();
    world.git(&["config", "--global", "user.useConfigOnly", "true"]);
    let did = world.relay(&["init"]).exits(1).says("no commit yet");
    let hint = did.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap();
    world.run("sh", &["-c", hint]).exits(0);
    world.relay(&["init"]).exits(0);
}

/// Two legs that were handed over, so that one contract is an earlier one's; the third is done.
fn of_three_legs() -> World {
    let world = World::new();
    let at_limit = "cat >/dev/null; echo start; echo 'step one'; echo x >>x; git add x; \
         git commit -qm x; echo 'limit now'; exit 1\n";
    let does_it = "cat >/dev/null; echo start; echo 'step one'; echo 'done it'\n";
    let first = world.program("first-agent", at_limit);
    let second = world.program("second-agent", at_limit);
    let third = world.program("third-agent", does_it);
    world.configure(&scripted(&[("first", &first), ("second", &second), ("third", &third)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Do much"]).exits(0);
    world
}

/// The commit that holds the note of the first leg's contract, and the note.
fn first_note(world: &World) -> (String, String) {
    let name = format!("refs/relay/snapshots/{}/1", world.session());
    let on = world.git(&["rev-parse", &name]);
    let note = world.git(&["notes", "--ref=relay", "show", &on]);
    (on, note)
}

#[test]
fn a_lost_note_of_any_leg_comes_back_by_fix_and_an_altered_one_is_not_written_over() {
    let world = of_three_legs();
    let (on, note) = first_note(&world);
    let subject = format!("session {}", world.session());
    for is_over in [false, true] {
        if is_over {
            world.git(&["notes", "--ref=relay", "remove", &on]);
            let did = world.relay(&["finish"]).exits(0);
            did.says(&format!("the note on {} does not hold", &on[..10]));
        } else {
            world.git(&["notes", "--ref=relay", "remove", &on]);
        }
        world.relay(&["verify"]).exits(4).says("the note is gone").says("doctor --fix");
        let (what, next) = problem(&world, &subject);
        assert!(what.contains("the note is gone"), "{what}");
        assert_eq!(next, "git relay doctor --fix");
        world.relay(&["doctor", "--fix"]).exits(0).says("fixed");
        assert_eq!(first_note(&world).1, note, "the very bytes");
        world.relay(&["verify"]).exits(0);
        // Changed by somebody: theirs stays until they say that it may go.
        let change = format!(
            "git notes --ref=relay show {on} | sed 's/limit/LIMIT/' | git notes --ref=relay add -f -F - {on}"
        );
        world.run("sh", &["-c", &change]).exits(0);
        let changed = first_note(&world).1;
        assert_ne!(changed, note);
        let remove = format!("git notes --ref=relay remove {on}");
        world.relay(&["verify"]).exits(4).says("altered: ").says(&remove);
        assert!(problem(&world, &subject).1.contains(&remove));
        world.relay(&["doctor", "--fix"]).exits(1);
        assert_eq!(first_note(&world).1, changed);
        world.run("sh", &["-c", &remove]).exits(0);
        world.relay(&["doctor", "--fix"]).exits(0);
        assert_eq!(first_note(&world).1, note);
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn an_agent_that_nobody_watches_is_a_problem() {
    let world = World::new();
    let agent = world.program(
        "agent",
        "cat >/dev/null; echo start; echo 'step one'; touch \"$HOME/child\"; exec sleep 600\n",
    );
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    let mut driver = world.command(super::support::binary());
    driver.args(["run", "Do long"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut driver = driver.spawn().unwrap();
    let at_work = || world.relay(&["status"]).stdout.contains("RUNNING");
    while !(world.home.join("child").exists() && at_work()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    world.relay(&["doctor"]).exits(0);
    driver.kill().unwrap();
    driver.wait().unwrap();
    let (what, next) = problem(&world, &format!("session {}", world.session()));
    assert!(what.contains("only is at work, and no command watches"), "{what}");
    assert_eq!(next, format!("git relay resume {}", world.session()));
    world.relay(&["abort"]).exits(0);
    world.relay(&["doctor"]).exits(0);
}

/// Our own variable of the moment when a user's hook runs in an agent's commit, left in a shell.
#[test]
fn a_variable_that_keeps_commits_from_being_noted_is_named() {
    let mut world = sound();
    world.set("GIT_RELAY_DISPATCHER", "1");
    let (what, next) = problem(&world, "environment");
    assert!(what.contains("commits made by hand are not noted"), "{what}");
    assert_eq!(next, "unset GIT_RELAY_DISPATCHER");
}

#[test]
fn hooks_that_an_agent_planted_are_named_and_not_tried() {
    let world = World::new();
    let agent = world.program(
        "agent",
        "cat >/dev/null; echo start; echo 'step one'\n\
         printf '#!/bin/sh\\ntouch \"%s/ran\"\\n' \"$HOME\" >../../../.git/hooks/prepare-commit-msg\n\
         chmod +x ../../../.git/hooks/prepare-commit-msg; echo 'done it'\n",
    );
    world.configure(&scripted(&[("only", &agent)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "Do little"]).exits(0).says("changed during a leg");
    let (code, found) = doctor(&world, &[]);
    assert_eq!(code, Some(1));
    for subject in ["hooks of agents", "hooks, main tree"] {
        let one = found.iter().find(|one| one["subject"] == subject).unwrap();
        let what = one["what"].as_str().unwrap();
        assert!(what.contains("no hook was tried"), "{what}");
    }
    assert!(!world.home.join("ran").exists(), "the agent's hook was run");
}

#[test]
fn a_program_that_is_not_ours_is_named_and_no_hook_is_tried() {
    let world = sound();
    let link = world.repo.join(".git/relay/bin/git-relay");
    let evil = world.program("evil", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    // Where the block finds it: nothing on PATH goes before it.
    fs::remove_file(world.home.join("bin/git-relay")).unwrap();
    let tried = |words: &str| {
        let (code, found) = doctor(&world, &[]);
        assert_eq!(code, Some(1));
        let one = found.iter().find(|one| one["subject"] == "hooks, main tree").unwrap();
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        assert!(text("what").contains(words), "{one}");
        assert!(text("what").contains("no hook was tried"), "{one}");
        assert!(!world.home.join("ran").exists(), "it was run");
        text("next")
    };
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&evil, &link).unwrap();
    tried("another version of this program or another program");
    fs::remove_file(&link).unwrap();
    fs::copy(&evil, &link).unwrap();
    assert!(tried("is not the link that was made there").contains("git relay init"));
    world.relay(&["init"]).exits(0);
    world.relay(&["doctor"]).exits(0).says("nothing is wrong");
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    let next = tried("is a folder");
    let (rm, _) = next.split_once(": ").unwrap().1.split_once(" && ").unwrap();
    world.run("sh", &["-c", rm]).exits(0);
    world.relay(&["doctor", "--fix"]).exits(0);
    // A hook of the folder for agents that we did not make is not run either.
    let busy = world.repo.join(".git/relay/hooks/reference-transaction");
    fs::copy(&evil, &busy).unwrap();
    assert!(problem(&world, "hooks of agents").0.contains("not as this program makes it"));
    assert!(!world.home.join("ran").exists(), "it was run");
    world.relay(&["doctor", "--fix"]).exits(0);
    world.relay(&["doctor"]).exits(0);
    assert!(!busy.exists());
}
