//! The last note of a real agent that is about to pause.

use super::{TASK, half_then_idle, second_half, starts_are, was_paused_in_time};
use crate::it::support::real::{Cast, RELAY, Stage, say, shell, then};
use serde_json::{Value, json};
use std::fs;

/// What stands in the question for the last note.
const ASKED: &str = "this is your last turn";

/// Over the threshold half-way; `answer` is all it does once it is asked for its last note.
fn half_then(answer: &Value) -> Value {
    let answers: Vec<Value> = (0..40).map(|_| answer.clone()).collect();
    json!({"steps": half_then_idle(), "when": [{"has": ASKED, "steps": answers}]})
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_agent_is_asked_once_for_its_last_note_before_it_is_paused() {
    let answer = shell(&format!(
        "{RELAY} record --done 'done.txt is committed' --next 'append to README.md first' \
         --do-not-redo 'the table is seeded' --decision 'plain files: no database here'; echo noted: $?"
    ));
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let jobs = (half_then(&answer), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast { agents: &[giver, receiver], claude, codex, third: None });
        // And its work in progress is saved at every safe point meanwhile.
        let config = stage.world.home.join(".config/git-relay/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("wip_interval_s = 0\n{text}")).unwrap();
        let did = stage.relay(&["run", TASK]).exits(0);
        assert!(!did.stderr.contains("no snapshot of the work in progress"), "{}", did.stderr);
        stage.world.git(&[
            "cat-file",
            "-e",
            &format!("refs/relay/snapshots/{}/wip", stage.world.session()),
        ]);
        let (gave, took) = match giver {
            "claude" => (&stage.claude, &stage.codex),
            _ => (&stage.codex, &stage.claude),
        };
        was_paused_in_time(&stage, gave.refused());
        starts_are(&stage, &[(giver, "received"), (receiver, "received")]);
        let asked = gave.turns().iter().filter(|turn| turn.contains(ASKED)).count();
        assert!((1..=2).contains(&asked), "{giver} had {asked} turns after it was asked");
        let state = stage.state();
        let notes: Vec<(&str, &str)> = state["declared"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|fact| fact["by"] == format!("{giver} leg 1"))
            .map(|fact| (fact["kind"].as_str().unwrap(), fact["text"].as_str().unwrap()))
            .collect();
        let last = [
            ("decision", "plain files: no database here"),
            ("doNotRedo", "the table is seeded"),
            ("done", "done.txt is committed"),
            ("next", "append to README.md first"),
        ];
        for fact in last {
            assert_eq!(notes.iter().filter(|known| **known == fact).count(), 1, "{notes:?}");
        }
        let told = &took.turns()[0];
        for (_, text) in last {
            assert!(told.contains(text), "{receiver} was not told '{text}':\n{told}");
        }
        let contract = stage.world.relay(&["show", "--json"]).exits(0).json();
        assert!(
            contract["decisions"].to_string().contains(&format!("{giver} leg 1")),
            "declared by whom: {}",
            contract["decisions"]
        );
        assert_eq!(contract["openCalls"].as_array().map_or(0, Vec::len), 0, "{contract}");
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_agent_that_answers_in_prose_has_paused_and_is_not_done() {
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let mut steps = vec![shell("echo a >done.txt; git add done.txt; git commit -q -m 'Add'")];
        steps.push(then(shell("sleep 1"), json!({"used": 0.93})));
        steps.extend((0..12).map(|_| shell("sleep 1; echo idle >>idle.txt")));
        let answers: Vec<Value> = (0..40).map(|_| say("I have nothing to add.")).collect();
        let giving = json!({"steps": steps, "when": [{"has": ASKED, "steps": answers}]});
        let jobs = (giving, json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast { agents: &[giver, receiver], claude, codex, third: None });
        stage.relay(&["run", TASK]).exits(0);
        let gave = if giver == "claude" { &stage.claude } else { &stage.codex };
        was_paused_in_time(&stage, gave.refused());
        starts_are(&stage, &[(giver, "received"), (receiver, "received")]);
        stage.is_sound();
    }
}
