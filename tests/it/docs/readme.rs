//! The README: its generated parts, its examples of configuration, and its transcripts, which are
//! played again with the two scripted agents of `git relay demo`.

use super::super::support::World;
use super::generated::{agent_table, command_table, config_keys, exit_table};
use super::{in_step, read, root};
use git_relay::model::fsm;
use regex::{Captures, Regex};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The name the session of the transcripts has in the README, and how every such name looks.
const SESSION: &str = "write-greet-py-and-a-test-7c1e";
const SESSION_FORM: &str = "write-greet-py-and-a-test-[0-9a-f]{4}";

/// Two tests rewrite the file: one at a time.
static README: Mutex<()> = Mutex::new(());

/// A README with the part between `<!-- NAME -->` and `<!-- end -->` replaced.
fn with_part(readme: &str, name: &str, text: &str) -> String {
    let mark = format!("<!-- {name} -->\n");
    let (before, rest) = readme.split_once(&mark).unwrap_or_else(|| panic!("no part '{name}'"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{mark}{text}<!-- end -->{after}")
}

fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

#[test]
fn tables_and_diagram_are_those_of_the_code() {
    let _one = README.lock().unwrap_or_else(PoisonError::into_inner);
    let mut readme = read("README.md");
    for (name, text) in [
        ("commands", command_table()),
        ("exit codes", exit_table()),
        ("agents", agent_table()),
        ("states", fenced("text", &fsm::diagram())),
    ] {
        readme = with_part(&readme, name, &text);
    }
    in_step(&root().join("README.md"), &readme);
}

/// The fenced blocks of a language.
fn blocks(readme: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    readme.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().into()).collect()
}

#[test]
fn the_examples_of_configuration_hold_every_key_and_are_taken() {
    let blocks = blocks(&read("README.md"), "toml");
    let [user, shared, custom] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    let world = World::new();
    let home = world.home.to_str().unwrap();
    world.configure(&format!("{user}\n{custom}\n").replace("/home/dev", home));
    world.write(".relay.toml", shared);
    world.relay(&["init"]).exits(0).says("in this order: claude, codex");
    let agents = world.relay(&["agents", "--json"]).exits(0).json();
    assert!(agents.to_string().contains("my-agent"), "{agents}");
    for key in config_keys() {
        let set = Regex::new(&format!(r"(?m)^(# )?{key} = ")).unwrap();
        assert!(set.is_match(&blocks.join("\n")), "no example sets '{key}'");
    }
    // The custom agent of the README can be started as it is described there.
    let script = "test -s \"$1\" || exit 1; echo ready; echo '> did it'; echo DONE\n";
    world.write_at(&world.home.join("my-agent.sh"), script);
    world.relay(&["run", "A task", "--agents", "my-agent"]).exits(0).says("leg 1 ended: done");
}

/// The demo's world: two scripted agents, on a machine where nothing has been done yet.
fn demo_world() -> World {
    let world = World::new();
    let script = world.home.join("agent.sh");
    world.write_at(&script, &read("templates/demo-agent.sh"));
    let relay = world.home.join("bin/git-relay");
    let config = read("templates/demo-config.toml")
        .replace("@SCRIPT@", script.to_str().unwrap())
        .replace("@PROGRAM@", relay.to_str().unwrap());
    world.configure(&config);
    world
}

/// What differs from run to run is made the same: names, ids, paths, ages.
fn settled(world: &World, text: &str) -> String {
    let replace = |text: &str, form: &str, by: &dyn Fn(&Captures<'_>) -> String| {
        Regex::new(form).unwrap().replace_all(text, |found: &Captures<'_>| by(found)).into_owned()
    };
    let text = text
        .replace(world.repo.to_str().unwrap(), "/home/dev/greet")
        .replace(world.home.to_str().unwrap(), "/home/dev");
    let text = replace(&text, SESSION_FORM, &|_| SESSION.to_owned());
    let text = replace(&text, "c-[0-9a-f]{8}", &|_| "c-3f2a9b1c".to_owned());
    // How often a driver looked is chance.
    let text = replace(&text, "all [0-9]+ hold", &|_| "all 21 hold".to_owned());
    let text = replace(&text, "[0-9]+ s ago", &|_| "2 s ago".to_owned());
    let text = replace(&text, "SHA256:[A-Za-z0-9+/]{43}", &|_| "SHA256:…".to_owned());
    let text = replace(&text, "20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", &|_| {
        "2026-11-30T09:26:53Z".into()
    });
    let text = replace(&text, r"(Date: +).*", &|found| format!("{}…", &found[1]));
    // Object and project ids by the order they are first seen in; an abbreviation is its id's.
    let mut seen: Vec<String> = Vec::new();
    let ids = Regex::new(r"(?-u:\b)[0-9a-f]{7,64}(?-u:\b)").unwrap();
    let settled = ids.replace_all(&text, |found: &Captures<'_>| {
        let (head, length) = (found[0][..7].to_owned(), found[0].len());
        if ["3f2a9b1", "ed25519"].contains(&head.as_str()) {
            return found[0].to_owned();
        }
        let known = seen.iter().position(|known| *known == head);
        let number = known.unwrap_or_else(|| {
            seen.push(head);
            seen.len() - 1
        });
        super::super::support::digest(format!("id {number}").as_bytes())[..length].to_owned()
    });
    settled.into_owned()
}

/// Plays the commands of a block, with what they print.
fn played(world: &World, block: &str) -> String {
    let mut text = String::new();
    for line in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let real = if line.contains(SESSION) {
            line.replace(SESSION, &world.session())
        } else {
            line.to_owned()
        };
        let did = world.run("sh", &["-c", &format!("exec 2>&1; {real}")]).exits(0);
        text.push_str(&format!("$ {line}\n{}\n", did.stdout.trim_end()));
    }
    text
}

/// Command, member and fields of every `--json`, as the program writes them in this world.
fn json_table(world: &World) -> String {
    let mut text = "| command | member | fields |\n|---|---|---|\n".to_owned();
    let session = read("tests/agents/claude/limit.transcript.jsonl")
        .replace("/home/dev/demo/.relay/sessions/x", world.repo.to_str().unwrap());
    world.write_at(&world.home.join(".claude/projects/-x/7943843d.jsonl"), &session);
    for words in
        ["agents", "detect", "doctor", "init", "key", "list", "log", "status", "trust", "verify"]
    {
        let value = world.relay(&[words, "--json"]).exits(0).json();
        let object = value.as_object().unwrap();
        assert_eq!(object["version"], 1);
        let (name, shape) = object.iter().find(|(name, _)| *name != "version").unwrap();
        let (form, one) = match shape.as_array() {
            Some(list) => ("list of ", &list[0]),
            None => ("", shape),
        };
        let mut fields = fields(one);
        if words == "detect" {
            fields.push_str(&format!("; of `sessions`: {}", self::fields(&one["sessions"][0])));
        }
        text.push_str(&format!("| `git relay {words} --json` | {form}`{name}` | {fields} |\n"));
    }
    text
}

fn fields(object: &serde_json::Value) -> String {
    let fields: BTreeSet<String> =
        object.as_object().unwrap().keys().map(|key| format!("`{key}`")).collect();
    fields.into_iter().collect::<Vec<_>>().join(", ")
}

/// Every `console` block between marks, in the order they stand in, in one world.
#[test]
fn the_transcripts_are_what_happens() {
    let _one = README.lock().unwrap_or_else(PoisonError::into_inner);
    let world = demo_world();
    let before = read("README.md");
    let mut readme = before.clone();
    for name in ["transcript", "audit", "finish"] {
        let mark = format!("<!-- {name} -->\n```console\n");
        let block = before.split_once(&mark).unwrap().1.split("\n```").next().unwrap();
        let text = settled(&world, &played(&world, block));
        readme = with_part(&readme, name, &fenced("console", &text));
        if name == "audit" {
            readme = with_part(&readme, "json", &json_table(&world));
        }
    }
    in_step(&root().join("README.md"), &readme);
}
