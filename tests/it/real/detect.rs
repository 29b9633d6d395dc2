//! Sessions of the real agents that nobody started through us.

use super::super::real_terminal::real::settle;
use super::super::support::terminal::Terminal;
use super::{Cast, Stage, plan, say, shell, then, write};
use serde_json::{Value, json};

const PROMPT: &str = "Write done.txt and last.txt";

/// Half the work; a command that takes its time; then the limit.
fn job() -> Value {
    json!([
        plan(&["> Write done.txt", "  Write last.txt"]),
        write("done.txt", "done\n"),
        shell("git add done.txt && git commit -q -m 'Add done.txt'"),
        plan(&["x Write done.txt", "> Write last.txt"]),
        write("half.txt", "half\n"),
        then(shell("echo waiting >waits; sleep 8; rm waits"), json!({"limit": true})),
        say("never said"),
    ])
}

#[track_caller]
fn detected(stage: &Stage) -> Value {
    let found = stage.relay(&["detect", "--json"]).exits(0).json();
    let sessions = found["detected"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{found}");
    sessions[0].clone()
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_session_that_nobody_started_through_us_is_found_at_work_and_at_its_limit() {
    for agent in ["claude", "codex"] {
        let stage = Stage::new(&Cast {
            agents: &["claude", "codex"],
            claude: job(),
            codex: job(),
            third: None,
        });
        let mut child = stage.without_us(agent, PROMPT);
        stage.until("it waits", || stage.world.repo.join("waits").exists());
        let at_work = detected(&stage);
        assert_eq!(at_work["agent"], agent);
        assert_eq!(at_work["state"], "working", "{at_work}");
        let process = at_work["pid"].as_u64().unwrap();
        assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
        child.wait().unwrap();
        let found = detected(&stage);
        assert_eq!((&found["id"], &found["pid"]), (&at_work["id"], &Value::Null));
        assert_eq!(found["state"], "limited", "{found}");
        assert!(found["limitedUntil"].is_string(), "{found}");
        assert_eq!(found["firstPrompt"], PROMPT);
        assert_eq!(found["plan"], json!({"done": 1, "total": 2}), "{found}");
        assert_eq!(found["filesTouched"], 2, "{found}");
        assert_eq!(found["cwd"], stage.world.repo.to_str().unwrap());
        assert!(found["context"]["tokens"].as_u64().unwrap() > 0, "{found}");
        assert!(!found["model"].as_str().unwrap().is_empty());
        assert_eq!(found["relaySession"], Value::Null);
        let shown = stage.relay(&["detect", found["id"].as_str().unwrap(), "--show"]).exits(0);
        let shown = shown.says("[x] Write done.txt").says("[>] Write last.txt");
        let shown = shown.says("committed    done.txt").says("not tracked  half.txt");
        shown.says("hit the usage limit");
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_leg_of_ours_is_found_as_such() {
    let stage = Stage::new(&Cast {
        agents: &["claude", "codex"],
        claude: json!([then(write("a.txt", "a\n"), json!({"limit": true})), say("never said")]),
        codex: json!([write("b.txt", "b\n"), say("Done.")]),
        third: None,
    });
    stage.relay(&["run", "Write a.txt and b.txt"]).exits(0);
    let found = stage.relay(&["detect", "--json"]).exits(0).json();
    let sessions = found["detected"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{found}");
    for session in sessions {
        assert_eq!(session["relaySession"], stage.world.session().as_str(), "{session}");
    }
}

/// At a terminal an agent stays: between its turns, and at its limit.
#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_agent_at_its_terminal_is_found_idle_and_then_limited() {
    let job = || {
        json!([
            write("done.txt", "done\n"),
            say("The first turn is over."),
            then(write("half.txt", "half\n"), json!({"limit": true})),
            say("never said"),
        ])
    };
    for (agent, line) in [("claude", "claude"), ("codex", "codex --no-daemon")] {
        let agents = &["claude", "codex"];
        let stage = Stage::new(&Cast { agents, claude: job(), codex: job(), third: None });
        settle(&stage);
        let terminal = Terminal::open(&stage.world);
        terminal.enters(&format!("{line} '{PROMPT}'"));
        terminal.agrees_until("The first turn is over.");
        terminal.wait("it is idle", || detected(&stage)["state"] == "idle");
        let idle = detected(&stage);
        assert_eq!((&idle["agent"], &idle["firstPrompt"]), (&json!(agent), &json!(PROMPT)));
        assert_eq!(idle["lastTurn"], "done", "{idle}");
        terminal.enters("go on");
        terminal.agrees_until("limit");
        terminal.wait("it is at its limit", || detected(&stage)["state"] == "limited");
        let limited = detected(&stage);
        assert_eq!((&limited["id"], &limited["pid"]), (&idle["id"], &idle["pid"]));
        stage.relay(&["detect"]).exits(0).says("still open as process");
    }
}
