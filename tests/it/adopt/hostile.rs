//! Whatever lies in a store: an adoption is bounded, takes what can be read, says what cannot, and
//! fails by a sentence.

use super::super::detect::{claude, codex, put, recorded};
use super::{contract, left, world};
use crate::it::support::{Did, World};
use std::ffi::OsString;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory that is enough for everything here, and not for a file of a gigabyte.
fn bounded(world: &World, words: &str) -> Did {
    world.run("sh", &["-c", &format!("ulimit -v 400000; exec git-relay {words}")])
}

#[test]
fn a_gigabyte_in_one_line_and_endless_nesting_are_bounded() {
    for nested in [false, true] {
        let world = world();
        let id = "aaaa0001-5bc6-4c0b-8038-52a3335dbcc0";
        let path = claude(&world.home.join(".claude"), "-x", id);
        let text = recorded("claude", "limit", &world.repo);
        // Up to the record that says where it worked.
        let said = text.find("\"cwd\"").unwrap();
        let (first, rest) = text.split_at(said + text[said..].find('\n').unwrap());
        let cwd = world.repo.to_str().unwrap();
        let deep = format!("{{\"type\":\"user\",\"cwd\":\"{cwd}\",\"message\":");
        let line = if nested { deep + &"[{\"a\":".repeat(2 << 20) } else { String::new() };
        put(&path, &format!("{first}\n{line}"), 0);
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        if !nested {
            let at = file.seek(SeekFrom::End(0)).unwrap() + (1 << 30);
            file.set_len(at).unwrap();
        }
        file.write_all(format!("\n{rest}").as_bytes()).unwrap();
        bounded(&world, &format!("detect {id} --show")).exits(0);
        bounded(&world, &format!("adopt {id} --headless --no-launch")).exits(0);
        let contract = contract(&world);
        assert_eq!(contract["from"]["outcome"], "limit");
        let missed = contract["notCaptured"].to_string();
        assert!(nested || missed.contains("a record was too long"), "{missed}");
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn what_is_shut_or_leads_elsewhere_is_not_taken() {
    let world = world();
    let store = world.home.join(".claude");
    let shut = claude(&store, "-x", "ffff0001");
    put(&shut, &recorded("claude", "limit", &world.repo), 0);
    let chown = Command::new("chown").arg("12345").arg(&shut).output().unwrap();
    if !chown.status.success() {
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    }
    symlink("ffff0002.jsonl", claude(&store, "-x", "ffff0002")).unwrap();
    symlink("..", store.join("projects/loop")).unwrap();
    symlink(&shut, claude(&store, "-x", "ffff0003")).unwrap();
    for words in
        [&["adopt"][..], &["adopt", "ffff0001"], &["adopt", "ffff0002"], &["adopt", "ffff0003"]]
    {
        let did = world.relay(&[words, &["--headless"]].concat()).exits(1);
        assert!(did.stderr.contains("hint: "), "{}", did.stderr);
    }
    assert_eq!(world.git(&["for-each-ref", "refs/relay/"]), "");
}

#[test]
fn a_transcript_that_changes_while_it_is_read_is_taken_or_refused() {
    let world = world();
    let id = left(&world, "codex", "limit", &world.repo);
    let path = world
        .home
        .join(format!(".codex/sessions/2026/11/30/rollout-2026-11-30T01-52-19-{id}.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut cut = 0;
            while !stop.load(Ordering::Relaxed) {
                cut = (cut + 977) % text.len();
                fs::write(&path, &text.as_bytes()[..cut]).unwrap();
                fs::remove_file(&path).unwrap();
                fs::write(&path, &text).unwrap();
            }
        });
        let looks = || (0..6).map(|_| world.relay(&["adopt", &id, "--headless", "--no-launch"]));
        let did: Vec<Did> = looks().collect();
        stop.store(true, Ordering::Relaxed);
        for did in did {
            assert!(matches!(did.code, Some(0 | 1 | 3)), "{:?}: {}", did.code, did.stderr);
            assert!(did.code == Some(0) || did.stderr.contains("hint: "), "{}", did.stderr);
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    if world.git(&["for-each-ref", "refs/relay/sessions/"]).is_empty() {
        world.relay(&["adopt", &id, "--headless"]).exits(0);
    } else {
        world.relay(&["resume"]).exits(0);
    }
    world.relay(&["verify"]).exits(0);
}

#[test]
fn a_store_whose_path_is_not_utf_8_is_shown_and_not_taken_along() {
    for agent in ["claude", "codex"] {
        let mut world = world();
        let mut bytes = world.home.clone().into_os_string().into_vec();
        bytes.extend_from_slice(b"/st\xff\xfere");
        let store = OsString::from_vec(bytes);
        let id = "dddd0001-5bc6-4c0b-8038-52a3335dbcc0";
        let text = recorded(agent, "limit", &world.repo);
        let path = if agent == "claude" {
            claude(store.as_ref(), "-x", id)
        } else {
            codex(store.as_ref(), id)
        };
        put(&path, &text, 0);
        let name = if agent == "claude" { "CLAUDE_CONFIG_DIR" } else { "CODEX_HOME" };
        world.set(name, store);
        world.relay(&["detect"]).exits(0).says("dddd0001");
        let found = world.relay(&["detect", "--json"]).exits(0).json();
        assert_eq!(found["detected"]["sessions"][0]["id"], id);
        world.relay(&["detect", id, "--show"]).exits(0).says("greeting.txt");
        // A state is text, and must name the folder: nothing is made of half a name.
        world.relay(&["adopt", "--headless"]).exits(1).says("is not UTF-8");
        assert_eq!(world.git(&["for-each-ref", "refs/relay/"]), "");
    }
}
