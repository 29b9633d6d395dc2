//! `git relay detect` on stores as the real agents leave them, made of their recordings.

mod hostile;
mod running;

use super::support::World;
use regex::Regex;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Far ahead: 2100-01-01.
const FAR: &str = "4102444800";
const CLAUDE: &str = "7943843d-5bc6-4c0b-8038-52a3335dbcc0";
const CODEX: &str = "01a22a27-29a5-7a52-ad07-51c37b2a24b8";

/// A recording as if it had been made in `cwd`, its windows still shut.
pub(super) fn recorded(agent: &str, name: &str, cwd: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(format!("tests/agents/{agent}/{name}.transcript.jsonl"));
    let text = fs::read_to_string(path).unwrap();
    let text = Regex::new("/home/dev/demo(/\\.relay/sessions/x)?")
        .unwrap()
        .replace_all(&text, cwd.to_str().unwrap());
    let resets = Regex::new(r#"("resets_?[aA]t": ?)[0-9]+"#).unwrap();
    resets.replace_all(&text, format!("${{1}}{FAR}")).into_owned()
}

pub(super) fn put(path: &Path, text: &str, hours_ago: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let moment = SystemTime::now() - Duration::from_secs(hours_ago * 3600);
    fs::File::options().write(true).open(path).unwrap().set_modified(moment).unwrap();
}

/// The file of a session in a Claude store.
pub(super) fn claude(store: &Path, project: &str, id: &str) -> PathBuf {
    store.join("projects").join(project).join(format!("{id}.jsonl"))
}

/// The file of a session in a Codex store.
pub(super) fn codex(store: &Path, id: &str) -> PathBuf {
    store.join(format!("sessions/2026/11/30/rollout-2026-11-30T01-52-19-{id}.jsonl"))
}

/// A session of each agent in the repository, both at their limit.
pub(super) fn world() -> World {
    let world = World::new();
    let text = recorded("claude", "tasks-limit", &world.repo);
    put(&claude(&world.home.join(".claude"), "-repo", CLAUDE), &text, 1);
    let text = recorded("codex", "limit", &world.repo);
    put(&codex(&world.home.join(".codex"), CODEX), &text, 2);
    world
}

pub(super) fn sessions(world: &World, words: &[&str]) -> Vec<Value> {
    let did = world.relay(&[&["detect", "--json"], words].concat()).exits(0);
    did.json()["detected"]["sessions"].as_array().unwrap().clone()
}

/// The ids, shortened to what comes before the first `-`.
pub(super) fn ids(sessions: &[Value]) -> Vec<String> {
    let id =
        |session: &Value| session["id"].as_str().unwrap().split('-').next().unwrap().to_owned();
    sessions.iter().map(id).collect()
}

#[test]
fn a_session_that_hit_its_limit_is_told_by_what_it_left() {
    let world = world();
    let found = sessions(&world, &[]);
    assert_eq!(ids(&found), ["7943843d", "01a22a27"]);
    for (session, agent, files) in [(&found[0], "claude", 0), (&found[1], "codex", 1)] {
        assert_eq!(session["agent"], agent);
        assert_eq!(session["state"], "limited", "{session}");
        assert_eq!(session["limitedUntil"], "2100-01-01T00:00:00Z");
        assert_eq!(session["lastTurn"], "limit");
        assert_eq!(session["firstPrompt"], "Write greeting.txt and commit it");
        assert_eq!(session["cwd"], world.repo.to_str().unwrap());
        assert_eq!(session["worktree"], world.repo.to_str().unwrap());
        assert_eq!(session["plan"]["done"], 0, "{session}");
        assert_eq!(session["filesTouched"], files, "{session}");
        assert_eq!(session["context"]["tokens"].as_u64().unwrap() / 1000, 5, "{session}");
        assert_eq!((&session["account"], &session["pid"]), (&Value::Null, &Value::Null));
    }
    assert_eq!(found[1]["readings"][0]["usedPermille"], 1000);
    assert_eq!(found[1]["context"]["window"], 258_400);
    let did = world.relay(&["detect"]).exits(0);
    assert!(did.stdout.starts_with("7943843d  claude  limited until 2100-"), "{}", did.stdout);
    assert!(did.stdout.contains("01a22a27  codex   limited until 2100-"), "{}", did.stdout);
    did.says("    Write greeting.txt and commit it").says("100.0 % of the 5-hour window");
    // A limit whose window has opened again is one no longer.
    let path = codex(&world.home.join(".codex"), CODEX);
    let text = fs::read_to_string(&path).unwrap().replace(FAR, "1796010741");
    put(&path, &text, 2);
    world.relay(&["detect"]).exits(0).says("01a22a27  codex   ended: limit");
}

#[test]
fn the_folder_inside_the_file_decides_and_no_name_of_a_folder() {
    let world = World::new();
    world.git(&["worktree", "add", "-q", "../linked"]);
    world.git(&["worktree", "add", "-q", "../lost"]);
    fs::remove_dir_all(world.root.join("lost")).unwrap();
    fs::create_dir_all(world.repo.join("deep/folder")).unwrap();
    world.git(&["init", "-q", "other"]);
    symlink(&world.repo, world.root.join("link")).unwrap();
    // By Claude's own encoding this is the same folder.
    let twin = world.root.join("repo.twin").join("x");
    let twin_name = world.root.join("repo-twin/x").to_str().unwrap().replace('/', "-");
    let store = world.home.join(".claude");
    let places = [
        ("aaaaaaa1", world.repo.clone(), true),
        ("aaaaaaa2", world.repo.join("deep/folder"), true),
        ("aaaaaaa3", world.root.join("linked"), true),
        ("aaaaaaa4", world.root.join("lost"), true),
        ("aaaaaaa5", world.repo.join(".relay/sessions/gone-1234/src"), true),
        ("aaaaaaa6", world.root.join("link/deep"), true),
        ("bbbbbbb1", world.root.clone(), false),
        ("bbbbbbb2", twin, false),
        ("bbbbbbb3", world.repo.join("other"), false),
        ("bbbbbbb4", PathBuf::from(format!("{}-other", world.repo.display())), false),
        ("bbbbbbb5", PathBuf::from("repo"), false),
    ];
    for (number, (id, cwd, _)) in places.iter().enumerate() {
        let text = recorded("claude", "limit", cwd);
        put(&claude(&store, &twin_name, id), &text, number as u64);
    }
    let wanted: Vec<_> = places.iter().filter(|(.., here)| *here).map(|(id, ..)| *id).collect();
    assert_eq!(ids(&sessions(&world, &[])), wanted);
    let all = ids(&sessions(&world, &["--all", "--limit", "1000"]));
    assert!(places.iter().all(|(id, ..)| all.contains(&(*id).to_owned())), "{all:?}");
    // The same from every worktree of the repository, and from a folder in one.
    for folder in [world.root.join("linked"), world.repo.join("deep")] {
        let mut command = world.command(super::support::binary());
        let output = command.args(["detect"]).current_dir(folder).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(wanted.iter().all(|id| said.contains(id)) && !said.contains("bbbbbbb"), "{said}");
    }
}

#[test]
fn outside_a_repository_all_sessions_can_be_listed() {
    let world = world();
    let run = |words: &[&str]| {
        let mut command = world.command(super::support::binary());
        super::support::Did::of(&command.args(words).current_dir(&world.root).output().unwrap())
    };
    run(&["detect"]).exits(1).says("hint: git relay detect --all");
    run(&["detect", "--all", "--limit", "1000"]).exits(0).says("7943843d").says("01a22a27");
    run(&["detect", "7943", "--show"]).exits(0).says("Write greeting.txt");
}

#[test]
fn a_machine_with_nothing_says_so_and_what_it_looked_at() {
    let world = World::new();
    let did = world.relay(&["detect"]).exits(0).says("no agent's session");
    assert_eq!(did.stdout, "");
    let did = did.says("looked at claude: ~/.claude: not there");
    did.says("looked at codex: ~/.codex: not there");
    let json = world.relay(&["detect", "--json"]).exits(0).json();
    assert_eq!(json["detected"]["total"], 0);
    let looked = json["detected"]["lookedAt"].as_array().unwrap();
    assert!(looked.iter().any(|at| at["folder"].as_str().unwrap().ends_with("home/.claude")));
}

#[test]
fn every_config_folder_is_an_account_and_looked_into_once() {
    let mut world = world();
    let work = world.home.join("work-claude");
    let text = recorded("claude", "interactive", &world.repo);
    put(&claude(&work, "-x", "5555aaaa-0000"), &text, 0);
    // A config folder may be a link, and so may its folder of sessions.
    symlink(&work, world.home.join("link")).unwrap();
    world.set("CLAUDE_CONFIG_DIR", world.home.join("link"));
    let other = world.root.join("elsewhere");
    fs::rename(world.home.join(".codex/sessions"), &other).unwrap();
    symlink(&other, world.home.join(".codex/sessions")).unwrap();
    world.set("CODEX_HOME", world.home.join(".codex"));
    let found = sessions(&world, &[]);
    assert_eq!(ids(&found), ["5555aaaa", "7943843d", "01a22a27"]);
    assert_eq!(found[0]["account"], world.home.join("link").to_str().unwrap());
    assert_eq!(found[1]["account"], Value::Null);
    world.relay(&["detect"]).exits(0).says("account ~/link");
}

#[test]
fn only_so_many_and_only_so_old() {
    let world = world();
    let store = world.home.join(".claude");
    for number in 0..25 {
        let text = recorded("claude", "limit", &world.repo);
        put(&claude(&store, "-x", &format!("cccc{number:04}")), &text, 100 + number);
    }
    let did = world.relay(&["detect"]).exits(0).says("7 more: say --limit 27 to see all");
    assert_eq!(did.stdout.matches("Write greeting.txt").count(), 20);
    assert_eq!(sessions(&world, &["--limit", "27"]).len(), 27);
    assert_eq!(ids(&sessions(&world, &["--since", "90m"])), ["7943843d"]);
    assert_eq!(sessions(&world, &["--since", "1d"]).len(), 2);
    assert_eq!(sessions(&world, &["--since", "1w", "--limit", "99"]).len(), 27);
    for wrong in ["7", "d", "7x", "-1d", "ä", "9999999999d", ""] {
        world.relay(&["detect", "--since", wrong]).exits(2);
    }
    let packed = codex(&world.home.join(".codex"), "dddd").with_extension("jsonl.zst");
    put(&packed, "not read", 0);
    world.relay(&["detect", "--all"]).exits(0).says("~/.codex: 2 sessions, 1 of them compressed");
    world.relay(&["detect", "--since", "30m"]).exits(0).says("of the last 30m was found");
}

#[test]
fn an_id_is_shown_as_short_as_it_is_still_one() {
    let world = world();
    let text = recorded("codex", "rich", &world.repo);
    let other = "01a22a27-29a5-7a52-ad07-51c37b2affff";
    put(&codex(&world.home.join(".codex"), other), &text, 0);
    let did = world.relay(&["detect"]).exits(0);
    let short: Vec<&str> =
        did.stdout.lines().filter(|line| !line.starts_with(' ')).map(first_word).collect();
    assert_eq!(short, [&other[..33], "7943843d", &CODEX[..33]], "{}", did.stdout);
    for (id, session) in [(other, other), (&other[..33], other), (CODEX, CODEX), ("7", CLAUDE)] {
        assert_eq!(sessions(&world, &[id])[0]["id"], session);
    }
    world.relay(&["detect", "01a2"]).exits(1).says(&other[..33]).says(&CODEX[..33]);
    world.relay(&["detect", "no-such"]).exits(1).says("no session is called 'no-such'");
    world.relay(&["detect", "../../etc/passwd", "--show"]).exits(1).says("no session is called");
}

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

#[test]
fn one_session_is_shown_with_all_that_is_known() {
    let world = world();
    let text = recorded("codex", "rich", &world.repo);
    put(&codex(&world.home.join(".codex"), "dddd"), &text, 0);
    world.write("greeting.txt", "hello\n");
    world.write("docs/a.md", "a\n");
    world.git(&["add", "greeting.txt"]);
    world.git(&["commit", "-q", "-m", "Add greeting"]);
    let shown = world.relay(&["detect", "dddd", "--show"]).exits(0).stdout;
    for words in [
        "\nasked\n    Write greeting.txt and commit it\n",
        "1 of 3 left\n    [x] Write greeting.txt\n    [x] Commit it\n    [>] Write the docs\n",
        "    exit 3   cat no-such-file; exit 3\n",
        "cat: no-such-file: No such file or directory\n",
        "committed    greeting.txt\n",
        "not tracked  docs/a.md\n",
        "not there    docs/b.md\n",
        "\nsaid last\n",
        "ended: the agent said that it is done\n",
    ] {
        assert!(shown.contains(words), "'{words}' is not in:\n{shown}");
    }
    let json = world.relay(&["detect", "dddd", "--show", "--json"]).exits(0).json();
    let session = &json["detected"]["session"];
    assert_eq!(session["plan"][2]["status"], "inProgress");
    assert_eq!(session["commands"][1]["exitCode"], 3);
    assert!(session["files"].to_string().contains("committed"), "{session}");
    let shown = world.relay(&["detect", CLAUDE, "--show"]).exits(0);
    shown.says("hit the usage limit: You've hit your 5-hour limit");
    // A call without a result, in a folder that is gone.
    let text = recorded("codex", "open-call", &world.root.join("gone"));
    put(&codex(&world.home.join(".codex"), "eeee"), &text, 0);
    let shown = world.relay(&["detect", "eeee", "--show"]).exits(0);
    shown.says("how these went is not known").says("is under way, or was broken off");
}
