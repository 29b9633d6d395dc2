//! What a person answered at an agent's own terminal, and why an agent changed its plan: decisions
//! that stand in records of their own.

use super::super::real_terminal::real::settle;
use super::super::support::terminal::Terminal;
use super::fidelity::{Alone, Truth};
use super::{plan, say, shell};
use serde_json::{Value, json};

fn two_questions() -> Value {
    let option =
        |label: &str, description: &str| json!({"label": label, "description": description});
    json!({"questions": [
        {"question": "Which store is it to be?", "header": "Store", "multiSelect": false,
         "options": [option("SQLite", "one file"), option("Postgres", "a server")]},
        {"question": "Which formats?", "header": "Formats", "multiSelect": true,
         "options": [option("CSV", "rows"), option("JSON", "a tree")]},
    ]})
}

/// Chooses an answer to a question on the screen, and types words to it.
#[track_caller]
fn chooses(terminal: &Terminal<'_>, question: &str, number: usize, words: &str) {
    terminal.until(question);
    let chosen = format!("❯ {number}. ");
    terminal.wait(&format!("'{chosen}' is chosen"), || {
        if terminal.screen().contains(&chosen) {
            return true;
        }
        terminal.press(&["Down"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        false
    });
    if !words.is_empty() {
        terminal.press(&["Tab"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        terminal.types(words);
        terminal.until(words);
    }
    terminal.press(&["Enter"]);
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn answers_and_words_beside_a_permission_come_through() {
    let alone = Alone::new(
        "claude",
        &json!([
            {"call": {"tool": "AskUserQuestion", "input": two_questions()}},
            shell("rm -rf build"),
            shell("touch made"),
            shell("rm -rf made"),
            say("That is all."),
        ]),
    );
    settle(&alone.stage);
    let terminal = Terminal::open(&alone.stage.world);
    let chooses = |question: &str, number: usize, words: &str| {
        chooses(&terminal, question, number, words);
    };
    terminal.enters("claude 'Keep the entries somewhere'");
    chooses("Which store is it to be?", 2, "");
    chooses("Which formats?", 1, "");
    terminal.until("1. [✔] CSV");
    chooses("Which formats?", 2, "");
    terminal.until("2. [✔] JSON");
    terminal.press(&["Tab"]);
    chooses("Review your answers", 1, "");
    chooses(" rm -rf build", 3, "use git clean, the folder is shared");
    chooses(" touch made", 1, "and mind the log");
    chooses(" rm -rf made", 3, "");
    terminal.until("Interrupted");
    terminal.enters("leave it");
    terminal.until("That is all.");
    alone.stage.until("its last words are on record", || {
        let path = alone.transcripts().pop().unwrap();
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("That is all."))
    });
    let said = [
        "Keep the entries somewhere",
        "use git clean, the folder is shared",
        "and mind the log",
        "leave it",
    ];
    let decided = [("Which store is it to be?", "Postgres"), ("Which formats?", "CSV, JSON")];
    let refused = ["rm -rf build (and said: use git clean, the folder is shared)", "rm -rf made"];
    let truth = Truth {
        prompts: said.map(str::to_owned).to_vec(),
        commands: vec![(Some(0), "touch made".into())],
        decisions: decided
            .map(|(question, answer)| format!("the user answered \"{question}\" with: {answer}"))
            .to_vec(),
        refused: refused.map(|call| format!("the user refused this call: Bash: {call}")).to_vec(),
        last_message: "That is all.".into(),
        ending: "ended".into(),
        ..Truth::default()
    };
    alone.is_read_as("answers", &truth);
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn the_reason_for_a_new_plan_comes_through() {
    let with_reason = |items: &[&str], why: &str| {
        let mut step = plan(items);
        step["why"] = json!(why);
        step
    };
    let reason = "A lock file does not work on NFS, so the counter moves into the table.";
    let alone = Alone::new(
        "codex",
        &json!([
            plan(&["> Lock by a file"]),
            with_reason(&["> Count in the table", "  Test it"], reason),
            say("Planned."),
        ]),
    );
    alone.works(&[], "Make it safe.");
    let truth = Truth {
        prompts: vec!["Make it safe.".into()],
        plan: vec!["> Count in the table".into(), "  Test it".into()],
        decisions: vec![reason.into()],
        last_message: "Planned.".into(),
        ending: "ended".into(),
        ..Truth::default()
    };
    alone.is_read_as("reason", &truth);
}
