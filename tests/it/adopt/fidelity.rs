//! How much of a session reaches the next agent, measured on contract and envelope: recorded real
//! sessions with the truth of what they were made to do beside them, and git's own word for files.

use super::{contract, envelope, world};
use crate::it::support::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Of an envelope: the budget is told in tokens, of about four bytes each.
const ENVELOPE_BYTES_MOST: usize = 8_000 * 4;

/// Every recorded session: agent, and the path of both files without their endings.
fn recordings() -> Vec<(&'static str, PathBuf)> {
    let mut all = Vec::new();
    for agent in ["claude", "codex"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(agent);
        for entry in fs::read_dir(folder.join("fidelity")).unwrap().map(Result::unwrap) {
            let name = entry.path();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".truth.json"));
            all.extend(stem.map(|stem| (agent, PathBuf::from(stem))));
        }
    }
    all
}

/// Puts the recording where the agent keeps its sessions, and its files where it worked.
fn lay(world: &World, agent: &str, recording: &Path, truth: &Value) {
    let text = fs::read_to_string(recording.with_extension("jsonl")).unwrap();
    let text = text.replace("/home/dev/world/repo", world.repo.to_str().unwrap());
    let of = |line: &str| -> Option<String> {
        let record: Value = serde_json::from_str(line).ok()?;
        let id = record.get("sessionId").or(record["payload"].get("id"))?;
        id.as_str().map(str::to_owned)
    };
    let id = text.lines().rev().find_map(of).expect("a session's id");
    let place = match agent {
        "claude" => format!(".claude/projects/-somewhere/{id}.jsonl"),
        _ => format!(".codex/sessions/2026/11/30/rollout-2026-11-30T01-52-19-{id}.jsonl"),
    };
    world.write_at(&world.home.join(place), &text);
    for file in strings(&truth["files"]) {
        let path = world.repo.join(file.split_once(' ').unwrap().1);
        world.write_at(&path, "written\n");
    }
    // What the script does with files in its shell.
    if truth["commands"].to_string().contains("mv README.md") {
        fs::rename(world.repo.join("README.md"), world.repo.join("READ ME.md")).unwrap();
        fs::remove_file(world.repo.join("docs/gone.txt")).unwrap();
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.map(|it| it[key].as_str().unwrap_or_else(|| panic!("{it}")).to_owned()).collect()
}

/// Parallel calls come back in any order.
fn sorted(commands: impl Iterator<Item = Value>) -> Vec<String> {
    let mut all: Vec<String> = commands.map(|command| command.to_string()).collect();
    all.sort();
    all
}

/// What git says has changed where the agent worked.
fn changed(world: &World) -> BTreeSet<String> {
    let status =
        world.git(&["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]);
    status.split('\0').filter(|field| !field.is_empty()).map(|it| it[3..].to_owned()).collect()
}

/// What was answered and refused stands in the contract, nothing else, and the envelope has it.
#[track_caller]
fn was_decided(what: &str, truth: &Value, contract: &Value, envelope: &str) {
    let (decided, refused) = (strings(&truth["decisions"]), strings(&truth["refused"]));
    assert_eq!(texts(&contract["decisions"], "text"), decided, "{what}: decisions");
    assert_eq!(texts(&contract["doNotRedo"], "text"), refused, "{what}: what was refused");
    for fact in decided.iter().chain(&refused) {
        assert!(envelope.contains(fact), "{what}: '{fact}' is not in\n{envelope}");
    }
}

#[test]
fn what_an_agent_was_made_to_do_stands_in_the_contract_and_nothing_else() {
    let recordings = recordings();
    assert!(recordings.len() >= 11, "{recordings:?}");
    for (agent, recording) in recordings {
        let name = recording.file_name().unwrap().to_str().unwrap().to_owned();
        let truth = fs::read_to_string(recording.with_extension("truth.json")).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let world = world();
        lay(&world, agent, &recording, &truth);
        let files = changed(&world);
        world.relay(&["adopt", "--headless"]).exits(0);
        let contract = contract(&world);
        let what = format!("{agent} {name}");

        let mut prompts = vec![contract["initialPrompt"]["text"].as_str().unwrap().to_owned()];
        prompts.extend(texts(&contract["laterPrompts"], "text"));
        assert_eq!(prompts, strings(&truth["prompts"]), "{what}: goal and later words");

        let mark = |status: &str| match status {
            "completed" => "x",
            "inProgress" => ">",
            _ => " ",
        };
        let plan = contract["plan"].as_array().into_iter().flatten();
        let plan: Vec<String> = plan
            .map(|it| {
                let text = it["text"].as_str().unwrap();
                format!("{} {text}", mark(it["status"].as_str().unwrap()))
            })
            .collect();
        assert_eq!(plan, strings(&truth["plan"]), "{what}: the plan");
        let doubted = contract["plan"].to_string().contains("notSeenInGit\":true");
        assert!(!doubted, "{what}: {}", contract["plan"]);

        let manifest = &contract["fileManifest"]["files"];
        let manifest: BTreeSet<String> = texts(manifest, "path").into_iter().collect();
        assert_eq!(manifest, files, "{what}: the files, as git has them");

        let commands = contract["commandsRun"].as_array().into_iter().flatten();
        let told = commands.map(|it| serde_json::json!([it.get("exitCode"), it["command"]]));
        let made = truth["commands"].as_array().unwrap().iter().cloned();
        assert_eq!(sorted(told), sorted(made), "{what}: commands and exit codes");

        let open = texts(&contract["openCalls"], "summary");
        assert_eq!(open, strings(&truth["open"]), "{what}: open calls");

        let envelope = envelope(&world);
        was_decided(&what, &truth, &contract, &envelope);
        for prompt in strings(&truth["prompts"]) {
            for line in prompt.lines() {
                assert!(envelope.contains(line), "{what}: '{line}' is not in\n{envelope}");
            }
        }
        // The limits that the person set, and what fails as things stand.
        let limits = texts(&contract["constraints"], "text").join("\n");
        for sentence in ["Do not touch vendor/.", "never add a dependency"] {
            let said = truth["prompts"].to_string().contains(sentence);
            assert_eq!(limits.contains(sentence), said, "{what}: {limits}");
        }
        let fails = envelope.contains("exit 7");
        assert_eq!(fails, truth["commands"].to_string().contains("exit 7"), "{what}: {envelope}");
        let size = envelope.len();
        println!(
            "{what}: everything came through; envelope {size} bytes, about {} tokens",
            size / 4
        );
        assert!(size <= ENVELOPE_BYTES_MOST, "{what}: {size} bytes");
        world.relay(&["verify"]).exits(0);
    }
}
