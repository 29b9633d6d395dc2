//! Adopting what an agent has begun without us, from outside: its transcript is a recording of the
//! real agent, its work lies uncommitted in the user's own worktree.

mod fidelity;
mod finish;
mod hostile;
mod kill;
mod place;
mod which;

use super::support::{World, digest, scripted};
use serde_json::Value;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Puts a recording of `agent` where it keeps its sessions, as if it had worked in `root`; gives
/// the agent's own id of it.
pub(crate) fn left(world: &World, agent: &str, recording: &str, root: &Path) -> String {
    let file = format!("{agent}/{recording}.transcript.jsonl");
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(file));
    let root = root.to_str().unwrap();
    let text = text.unwrap().replace("/home/dev/demo/.relay/sessions/x", root);
    let text = text.replace("/home/dev/demo", root);
    let key = if agent == "claude" { "\"sessionId\": \"" } else { "\"session_id\": \"" };
    let id = text.split(key).nth(1).unwrap().split('"').next().unwrap().to_owned();
    let path = match agent {
        "claude" => format!(".claude/projects/-somewhere/{id}.jsonl"),
        _ => format!(".codex/sessions/2026/11/30/rollout-2026-11-30T01-52-19-{id}.jsonl"),
    };
    world.write_at(&world.home.join(path), &text);
    id
}

/// A world whose only consented agent finishes what it gets; it keeps its envelope in `got.md`.
pub(crate) fn world() -> World {
    world_with("git add -A; git commit -q -m 'Finish it'")
}

pub(crate) fn world_with(work: &str) -> World {
    let world = World::new();
    let second = world.program(
        "second-agent",
        &format!(
            "cat >\"$HOME/got.md\"; echo start; echo 'step one'; git status --porcelain >\"$HOME/status\"\n\
             {work}\necho 'done all'\n"
        ),
    );
    world.configure(&scripted(&[("second", &second)]));
    world.relay(&["init"]).exits(0);
    world
}

/// Everything of the place that an adoption may only read, its index and its times too.
fn seen(world: &World, root: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        world.users_things().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let git_dir = world.git(&["-C", root.to_str().unwrap(), "rev-parse", "--absolute-git-dir"]);
    let mut open = vec![root.to_owned(), PathBuf::from(git_dir)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.to_string_lossy().into_owned();
            let ours = ["/.relay", "/relay", "/objects", "/refs", "/logs", "/worktrees"];
            if ours.iter().any(|end| name.ends_with(end)) || name.ends_with("/.git") {
                continue;
            }
            if kind.is_dir() {
                open.push(path);
                continue;
            }
            let found = path.symlink_metadata().unwrap();
            let bytes = match kind.is_symlink() {
                true => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                false => fs::read(&path).unwrap(),
            };
            let times = (found.mtime(), found.mtime_nsec(), found.ino(), found.mode());
            all.push(format!("{name} {times:?} {}", digest(&bytes)));
        }
    }
    all.push(world.git(&["stash", "list"]));
    all.sort();
    all
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn envelope(world: &World) -> String {
    text(&world.home.join("got.md"))
}

fn contract(world: &World) -> Value {
    world.relay(&["show", "--json", &world.session(), "--leg", "1"]).exits(0).json()
}

/// Files of every kind that can be uncommitted.
pub(crate) fn make_dirty(world: &World, root: &Path) {
    let put = |name: &str, bytes: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let git = |words: &[&str]| world.git(&[&["-C", root.to_str().unwrap()], words].concat());
    put("gone.txt", b"gone\n");
    put("old name.txt", b"one\ntwo\nthree\nfour\n");
    put("tool.sh", b"#!/bin/sh\n");
    put("kept.txt", b"kept\n");
    put(".gitignore", b"*.log\n");
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Before"]);
    fs::remove_file(root.join("gone.txt")).unwrap();
    git(&["mv", "old name.txt", "new name.txt"]);
    fs::set_permissions(root.join("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    put("greeting.txt", b"hello\nhalf\n");
    put("deep/er/bé.bin", b"");
    put("data.bin", &[0, 159, 146, 150, 0, 255]);
    put("staged.txt", b"staged\n");
    git(&["add", "staged.txt"]);
    put("noise.log", b"ignored\n");
    symlink("kept.txt", root.join("link")).unwrap();
}

#[test]
fn what_an_agent_left_at_its_limit_comes_to_the_next_one_and_home() {
    for (agent, recording) in [("claude", "todos-limit"), ("codex", "limit")] {
        let world = world();
        make_dirty(&world, &world.repo);
        left(&world, agent, recording, &world.repo);
        let before = seen(&world, &world.repo);
        let did = world.relay(&["adopt", "--headless"]).exits(0);
        assert_eq!(seen(&world, &world.repo), before, "the place was not only read");
        assert!(did.stderr.contains("its leg ended: limit"), "{}", did.stderr);
        let contract = contract(&world);
        assert_eq!(contract["from"]["agent"], agent);
        assert_eq!(contract["from"]["outcome"], "limit");
        assert_eq!(contract["reason"]["reason"], "limit");
        let files = contract["fileManifest"]["files"].as_array().unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "data.bin",
                "deep/er/bé.bin",
                "gone.txt",
                "greeting.txt",
                "link",
                "new name.txt",
                "old name.txt",
                "staged.txt",
                "tool.sh"
            ]
        );
        assert!(files.iter().all(|file| file["committed"] != true), "{files:?}");
        assert_eq!(
            contract["staged"],
            serde_json::json!(["new name.txt", "old name.txt", "staged.txt"])
        );
        let envelope = envelope(&world);
        for words in ["Write greeting.txt and commit it", "greeting.txt", "+half"] {
            assert!(envelope.contains(words), "'{words}' is not in:\n{envelope}");
        }
        let paths = contract.to_string().matches(world.repo.to_str().unwrap()).count();
        assert_eq!(paths, 0, "an absolute path in {contract}");
        assert_eq!(text(&world.home.join("status")), "", "the next agent begins in a clean tree");
        let worktree = world.worktree();
        assert_eq!(fs::read(worktree.join("data.bin")).unwrap(), [0, 159, 146, 150, 0, 255]);
        assert_eq!(fs::read_link(worktree.join("link")).unwrap(), Path::new("kept.txt"));
        assert_eq!(fs::metadata(worktree.join("tool.sh")).unwrap().mode() & 0o111, 0o111);
        assert!(!worktree.join("gone.txt").exists() && !worktree.join("old name.txt").exists());
        assert!(!worktree.join("noise.log").exists());
        world.relay(&["verify"]).exits(0);
        world.git(&["fsck", "--strict"]);
    }
}
