//! Keys and trust that are gone, damaged or overwritten: what is said, that the way named leads
//! out, and that nothing is left behind or believed by itself.

use super::support::{World, scripted};
use std::fs;
use std::path::PathBuf;

const ASKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo 'asks which one?'\n";

fn world() -> World {
    let world = World::new();
    let only = world.program("agent", ASKS);
    world.configure(&scripted(&[("only", &only)]));
    world.relay(&["init"]).exits(0);
    world
}

fn key(world: &World) -> PathBuf {
    let key = world.relay(&["key", "--json"]).exits(0).json();
    PathBuf::from(key["key"]["path"].as_str().unwrap())
}

fn sessions(world: &World) -> String {
    world.git(&["for-each-ref", "refs/relay/sessions"])
}

#[test]
fn a_key_that_is_gone_or_damaged_is_named_and_made_anew_by_what_is_said() {
    for (text, said) in [
        (None, "there is no key at"),
        (Some(""), "cannot be used: it is empty"),
        (Some("not a key\n"), "cannot be used: "),
        (Some("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"), "cannot be used: "),
    ] {
        let world = world();
        world.relay(&["run", "Before"]).exits(1);
        let (path, before) = (key(&world), sessions(&world));
        match text {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        for words in [&["run", "A task"][..], &["resume"], &["key"]] {
            world.relay(words).exits(5).says(said).says("git relay init");
        }
        assert_eq!(sessions(&world), before, "a failed run left a session behind");
        if text.is_some() {
            world.relay(&["init"]).exits(5).says(said);
            fs::rename(&path, path.with_extension("old")).unwrap();
        }
        // What the hint says is enough, and sessions of the key before are still believed.
        world.relay(&["init"]).exits(0).says("allowed_signers");
        world.relay(&["resume"]).exits(1).says("waits for you");
        world.relay(&["run", "After"]).exits(1);
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn a_home_that_cannot_hold_a_key_is_named() {
    let world = world();
    fs::remove_file(key(&world)).unwrap();
    let at_home = |home: &str| {
        world.run("env", &[&format!("HOME={home}"), "git-relay", "init", "--agents", "claude"])
    };
    world.write("file", "");
    let file = world.repo.join("file");
    for home in ["/proc", "/dev/null", "/nowhere/at/all/\u{7f}", file.to_str().unwrap()] {
        let did = at_home(home);
        // A root user may be able to make the third.
        if home.starts_with("/nowhere") && did.code == Some(0) {
            fs::remove_dir_all("/nowhere").unwrap();
            continue;
        }
        did.exits(5).says("hint: ");
    }
}

#[test]
fn a_key_that_is_not_believed_begins_no_session() {
    let world = world();
    let trust = world.repo.join(".git/relay/allowed_signers");
    let believed = fs::read_to_string(&trust).unwrap();
    world.relay(&["run", "Before"]).exits(1);
    let before = sessions(&world);
    world.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "other"]).exits(0);
    let other = fs::read_to_string(world.repo.join("other.pub")).unwrap();
    fs::write(&trust, format!("relay {other}")).unwrap();
    world.relay(&["run", "A task"]).exits(4).says("is not believed").says("git relay trust --add");
    assert_eq!(sessions(&world), before, "a failed run left a session behind");
    for words in
        [&["resume"][..], &["status"], &["finish"], &["handoff"], &["record", "--done", "x"]]
    {
        world.relay(words).exits(4).says("the key is not among the trusted ones");
    }
    fs::write(&trust, believed).unwrap();
    world.relay(&["resume"]).exits(1).says("waits for you");
}

#[test]
fn a_new_project_says_which_sessions_its_key_is_not_believed_for() {
    let world = world();
    world.relay(&["run", "Before"]).exits(1);
    let session = world.session();
    fs::remove_dir_all(world.repo.join(".git/relay")).unwrap();
    let did = world.relay(&["init"]).exits(0);
    let did = did.says("signed by a key of yours that this repository does not believe");
    let did = did.says(&session);
    let hint = did.stderr.lines().find_map(|line| line.split_once("go on with them: "));
    world.relay(&["resume"]).exits(4).says("the key is not among the trusted ones");
    world.run("sh", &["-c", hint.unwrap().1]).exits(0).says("is believed from now on");
    // What the guard compares with went with the folder.
    world.relay(&["resume"]).exits(4).says("the record of it is gone");
    world.relay(&["resume", "--accept-config"]).exits(1).says("waits for you");
    world.relay(&["verify"]).exits(0);
    let again = world.relay(&["init"]).exits(0);
    assert!(!again.stderr.contains("does not believe"), "{}", again.stderr);
}
