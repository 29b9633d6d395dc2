//! Relays between the real Claude Code and the real Codex, offline, against scripted models.
//!
//! They run only inside `tests/isolate.sh`, which `tests/run` does.

mod adopt;
mod answers;
mod detect;
mod fidelity;
mod last_note;

use super::support::knows_reftable;
use super::support::real::{Cast, RELAY, Stage, plan, program, say, shell, then, write};
use serde_json::{Value, json};
use std::fs;

const TASK: &str = "Write done.txt and last.txt, and finish README.md";
const DO_NOT_REDO: &str = "migration 0042 is applied";

/// The task with so much to mind that an envelope with it reaches its full budget.
fn long_task() -> String {
    let lines = (1..=170)
        .map(|n| format!("Mind rule {n}: what stands in notes.md is to be kept as it is."));
    format!("{TASK}\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Works half the task: a plan, a commit, a fact, an edit, a staged file and an untracked one.
/// The last step turns `knobs`.
fn first_half(knobs: Value) -> Vec<Value> {
    vec![
        plan(&["> Write done.txt", "  Finish README.md", "  Write last.txt"]),
        write("done.txt", "done\n"),
        shell("git add done.txt && git commit -q -m 'Add done.txt'; echo committed: $?"),
        plan(&["x Write done.txt", "> Finish README.md", "  Write last.txt"]),
        shell(&format!(
            "{RELAY} record --do-not-redo '{DO_NOT_REDO}' --next 'finish README.md'; echo recorded: $?"
        )),
        shell("echo half >>README.md; echo staged >staged.txt; git add staged.txt"),
        shell(
            "mkdir many; for n in $(seq 200); do echo $n >many/a-file-with-quite-a-long-name-to-fill-the-list-of-files-$n.txt; done",
        ),
        then(write("untracked.txt", "untracked\n"), knobs),
    ]
}

/// Looks at what was left, commits one file, then the rest.
fn second_half() -> Vec<Value> {
    vec![
        shell(
            "cat README.md staged.txt untracked.txt done.txt; echo status: [$(git status --porcelain)]",
        ),
        shell(
            "echo whole >README.md; git add README.md && git commit -q -m 'Finish README.md'; echo committed: $?",
        ),
        write("last.txt", "last\n"),
        shell("git add last.txt && git commit -q -m 'Add last.txt'; git status --short --branch"),
        say("All of it is written and committed."),
    ]
}

/// What the second agent was told, and that nothing of the first one's work is missing.
#[track_caller]
fn was_handed_over_whole(stage: &Stage, first_turn: &str, later_turn: &str) {
    let session = stage.world.session();
    let envelope =
        stage.world.relay(&["show", &session, "--leg", "1", "--envelope"]).exits(0).stdout;
    let full = 28_000..=32_000;
    assert!(full.contains(&envelope.len()), "{} bytes are no full budget", envelope.len());
    let lines: Vec<&str> = envelope.lines().collect();
    assert!(first_turn.contains(lines[0]), "first line of the envelope: {}", lines[0]);
    assert!(first_turn.contains(lines[lines.len() - 1]), "last line of the envelope");
    assert!(first_turn.contains(envelope.trim_end()), "the envelope arrived changed:\n{envelope}");
    let (_, tasks) = envelope.split_once("## Open tasks").expect("open tasks");
    assert!(tasks.contains("- Finish README.md") && tasks.contains("- Write last.txt"), "{tasks}");
    let (_, facts) = envelope.split_once("## Do not redo").expect("do not redo");
    assert!(facts.contains(DO_NOT_REDO), "{facts}");
    assert!(envelope.contains(TASK), "{envelope}");
    for text in ["half\nstaged\nuntracked\ndone", "status: []"] {
        assert!(later_turn.contains(text), "the second agent did not see '{text}'");
    }
    assert_eq!(stage.changed_by("Finish README.md"), ["README.md"]);
    assert_eq!(stage.changed_by("Add done.txt"), ["done.txt"]);
    let (many, few): (Vec<String>, Vec<String>) =
        stage.snapshot(1).into_iter().partition(|path| path.starts_with("many/"));
    assert_eq!(few, ["README.md", "done.txt", "notes.md", "staged.txt", "untracked.txt"]);
    assert_eq!(many.len(), 200);
}

#[track_caller]
fn starts_are(stage: &Stage, expected: &[(&str, &str)]) {
    let starts = stage.starts();
    let starts: Vec<(&str, &str)> =
        starts.iter().map(|(agent, outcome)| (agent.as_str(), outcome.as_str())).collect();
    assert_eq!(starts, expected);
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn claude_at_its_limit_hands_over_to_codex() {
    let stage = Stage::new(&Cast {
        agents: &["claude", "codex"],
        claude: json!(first_half(json!({"limit": true}))),
        codex: json!(second_half()),
        third: None,
    });
    let did = stage.relay(&["run", &long_task()]).exits(0);
    let given = stage.claude.turns();
    let record = format!("`{} record", program(&stage.world).display());
    assert!(given[0].contains(TASK), "the task is not in the first request");
    assert!(given[0].contains(&record), "'{record}' is not in the first request");
    assert!(stage.claude.last().contains("recorded: 0"), "{}", stage.claude.last());
    assert_eq!(stage.claude.refused(), 1, "the limit was hit once");
    starts_are(&stage, &[("claude", "received"), ("codex", "received")]);
    let end = &stage.after("leg-ended")[0]["legEnd"];
    assert_eq!(end["outcome"], "limit", "{end}\n{}", did.stderr);
    assert!(end["resetsAt"].is_string() || end["resetsAt"].is_number(), "{end}");
    let taken = stage.codex.turns();
    was_handed_over_whole(&stage, &taken[0], &taken[1]);
    assert_eq!(stage.state()["legEnd"]["outcome"], "done");
    stage.is_sound();
    stage.world.relay(&["finish"]).exits(0);
    assert_eq!(stage.world.git(&["show", "HEAD:last.txt"]), "last");
    assert_eq!(stage.world.git(&["status", "--porcelain"]), "");
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn both_commit_from_their_sandboxes_on_reftable() {
    if !knows_reftable() {
        return;
    }
    let stage = Stage::on_reftable(&Cast {
        agents: &["claude", "codex"],
        claude: json!(first_half(json!({"limit": true}))),
        codex: json!(second_half()),
        third: None,
    });
    stage.relay(&["run", &long_task()]).exits(0);
    starts_are(&stage, &[("claude", "received"), ("codex", "received")]);
    let taken = stage.codex.turns();
    was_handed_over_whole(&stage, &taken[0], &taken[1]);
    assert_eq!(stage.state()["legEnd"]["outcome"], "done");
    stage.is_sound();
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn codex_at_its_limit_hands_over_to_claude() {
    let stage = Stage::new(&Cast {
        agents: &["codex", "claude"],
        codex: json!(first_half(json!({"limit": true}))),
        claude: json!(second_half()),
        third: None,
    });
    let did = stage.relay(&["run", &long_task()]).exits(0);
    assert!(stage.codex.last().contains("recorded: 0"), "{}", stage.codex.last());
    starts_are(&stage, &[("codex", "received"), ("claude", "received")]);
    let end = &stage.after("leg-ended")[0]["legEnd"];
    assert_eq!(end["outcome"], "limit", "{end}\n{}", did.stderr);
    let taken = stage.claude.turns();
    was_handed_over_whole(&stage, &taken[0], &taken[1]);
    assert_eq!(stage.state()["legEnd"]["outcome"], "done");
    stage.is_sound();
}

/// After the threshold the giver would go on for a long while, and then be refused.
fn half_then_idle() -> Value {
    let mut steps = first_half(json!({"used": 0.93}));
    steps.extend((0..12).map(|_| shell("sleep 1; echo idle >>idle.txt")));
    steps.push(then(shell("sleep 1"), json!({"limit": true})));
    steps.push(say("never said"));
    json!(steps)
}

#[track_caller]
fn was_paused_in_time(stage: &Stage, refused: u64) {
    assert_eq!(refused, 0, "a request was refused");
    let state = &stage.after("snapshotted")[0];
    let end = &state["legEnd"];
    assert_eq!((&end["outcome"], &end["forced"]), (&json!("paused"), &Value::Null), "{end}");
    assert_eq!(state["hooksFired"], true, "{state}");
    assert_eq!(state["breach"]["reason"], "threshold", "{state}");
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn claude_over_the_threshold_pauses_before_the_limit() {
    let stage = Stage::new(&Cast {
        agents: &["claude", "codex"],
        claude: half_then_idle(),
        codex: json!(second_half()),
        third: None,
    });
    stage.relay(&["run", TASK]).exits(0);
    was_paused_in_time(&stage, stage.claude.refused());
    starts_are(&stage, &[("claude", "received"), ("codex", "received")]);
    let taken = stage.codex.turns();
    assert!(taken[0].contains(DO_NOT_REDO) && taken[0].contains("- Finish README.md"));
    assert_eq!(stage.changed_by("Finish README.md"), ["README.md"]);
    stage.is_sound();
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn codex_over_the_threshold_pauses_before_the_limit() {
    let stage = Stage::new(&Cast {
        agents: &["codex", "claude"],
        codex: half_then_idle(),
        claude: json!(second_half()),
        third: None,
    });
    stage.relay(&["run", TASK]).exits(0);
    was_paused_in_time(&stage, stage.codex.refused());
    starts_are(&stage, &[("codex", "received"), ("claude", "received")]);
    let taken = stage.claude.turns();
    assert!(taken[0].contains(DO_NOT_REDO) && taken[0].contains("- Finish README.md"));
    assert_eq!(stage.changed_by("Finish README.md"), ["README.md"]);
    stage.is_sound();
}

/// An agent nobody wrote an adapter for: it keeps what it was told and is done.
const THIRD: &str = "cat >\"$HOME/third.md\"; echo start; echo 'step one'; \
     echo third >third.txt; git add third.txt; git commit -q -m 'Add third.txt'; echo 'done all'\n";

#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_exhausted_receiver_is_a_failed_dispatch() {
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let jobs = (json!(first_half(json!({"limit": true}))), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast {
            agents: &[giver, receiver, "third"],
            claude,
            codex,
            third: Some(THIRD),
        });
        let exhausted = if giver == "claude" { &stage.codex } else { &stage.claude };
        exhausted.set(&json!({"limit": true}));
        stage.relay(&["run", TASK]).exits(0).says(&format!("{receiver} is exhausted"));
        starts_are(&stage, &[(giver, "received"), (receiver, "limit"), ("third", "received")]);
        let state = stage.state();
        assert_eq!((&state["leg"], &state["legEnd"]["outcome"]), (&json!(2), &json!("done")));
        assert_eq!(stage.after("contracted").len(), 1, "one contract for both starts");
        let told = fs::read_to_string(stage.world.home.join("third.md")).unwrap();
        assert!(exhausted.turns()[0].contains(told.trim_end()), "both were told the same");
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_logged_out_receiver_is_passed_over_while_the_giver_works() {
    for (giver, receiver, variable, command) in [
        ("claude", "codex", "MOCK_API_KEY", "codex login"),
        ("codex", "claude", "CLAUDE_CODE_OAUTH_TOKEN", "/login"),
    ] {
        let mut stage = Stage::new(&Cast {
            agents: &[giver, receiver, "third"],
            claude: half_then_idle(),
            codex: half_then_idle(),
            third: Some(THIRD),
        });
        stage.world.variables.remove(std::ffi::OsStr::new(variable));
        let did = stage.relay(&["run", TASK]).exits(0).says(command);
        let place = |words: &str| {
            did.stderr.find(words).unwrap_or_else(|| panic!("'{words}':\n{}", did.stderr))
        };
        assert!(
            place(&format!("{receiver} is passed over")) < place("handing over:"),
            "{}",
            did.stderr
        );
        starts_are(&stage, &[(giver, "received"), ("third", "received")]);
        let asked = if receiver == "codex" { &stage.codex } else { &stage.claude };
        assert_eq!(asked.turns().len(), 0, "{receiver} was started");
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn throttling_and_overload_are_not_the_limit() {
    for (giver, receiver, kind) in
        [("codex", "claude", "rate"), ("codex", "claude", "overload"), ("claude", "codex", "rate")]
    {
        let jobs =
            (json!(first_half(json!({"limit": true, "limit_kind": kind}))), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let mut stage =
            Stage::new(&Cast { agents: &[giver, receiver], claude, codex, third: None });
        stage.world.set("CLAUDE_CODE_MAX_RETRIES", "1");
        stage.relay(&["run", TASK]).exits(0);
        starts_are(&stage, &[(giver, "received"), (receiver, "received")]);
        let end = &stage.after("leg-ended")[0]["legEnd"];
        assert_eq!(end["outcome"], "failed", "{giver} {kind}: {end}");
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn words_about_a_limit_are_nothing() {
    let words = "You've hit your usage limit. Try again at 3:52 AM.";
    let claude_words = "You've hit your 5-hour limit · resets 3:52am (UTC)";
    let job = json!([
        {"say": claude_words, "write": {"path": "limit.txt", "content": format!("{words}\n{claude_words}\n")}},
        shell("cat limit.txt; echo 'API Error: 429 rate_limit_error usage_limit_reached' >&2; exit 1"),
        shell("git add limit.txt && git commit -q -m 'Add limit.txt'"),
        say(words),
    ]);
    for (agent, other) in [("claude", "codex"), ("codex", "claude")] {
        let stage = Stage::new(&Cast {
            agents: &[agent, other],
            claude: job.clone(),
            codex: job.clone(),
            third: None,
        });
        stage.relay(&["run", TASK]).exits(0);
        starts_are(&stage, &[(agent, "received")]);
        let state = stage.state();
        assert_eq!(state["legEnd"]["outcome"], "done", "{agent}: {}", state["legEnd"]);
        assert_eq!(stage.changed_by("Add limit.txt"), ["limit.txt"]);
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_killed_driver_leaves_one_agent_that_resume_waits_for() {
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let mut steps = first_half(json!({}));
        steps.push(then(
            shell("echo begun >begun.txt; sleep 6; echo later >later.txt"),
            json!({"limit": true}),
        ));
        let jobs = (json!(steps), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast { agents: &[giver, receiver], claude, codex, third: None });
        let driver = stage.drive(&["run", TASK]);
        stage.until("a shell child of the agent runs", || {
            fs::read_dir(stage.world.repo.join(".relay/sessions"))
                .into_iter()
                .flatten()
                .flatten()
                .any(|session| session.path().join("begun.txt").exists())
        });
        driver.kill();
        let before = stage.state();
        assert_eq!((&before["state"], &before["leg"]), (&json!("RUNNING"), &json!(1)));
        stage.relay(&["resume"]).exits(0);
        starts_are(&stage, &[(giver, "received"), (receiver, "received")]);
        let names = stage.snapshot(1);
        for name in ["begun.txt", "later.txt", "untracked.txt"] {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
        assert_eq!(stage.kept_by(giver), 1, "{giver} was started twice");
        assert_eq!(stage.changed_by("Finish README.md"), ["README.md"]);
        assert_eq!(stage.state()["legEnd"]["outcome"], "done");
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_agent_asks_for_a_hand_over_from_its_own_shell() {
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let mut steps = first_half(json!({}));
        steps.push(shell(&format!(
            "{RELAY} handoff --to {receiver} --reason 'it knows this better'; echo asked: $?"
        )));
        steps.extend((0..8).map(|_| shell("sleep 1")));
        steps.push(say("never said"));
        let jobs = (json!(steps), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast {
            agents: &[giver, "third", receiver],
            claude,
            codex,
            third: Some(THIRD),
        });
        stage.relay(&["run", TASK]).exits(0);
        starts_are(&stage, &[(giver, "received"), (receiver, "received")]);
        let asked = if giver == "claude" { &stage.claude } else { &stage.codex };
        let state = &stage.after("snapshotted")[0];
        let end = &state["legEnd"];
        assert_eq!((&end["outcome"], &end["forced"]), (&json!("paused"), &Value::Null), "{end}");
        assert_eq!(state["breach"]["reason"], "request", "{state}");
        assert_eq!(state["breach"]["text"], "it knows this better", "{state}");
        // Its answer is told to the model, unless the pause came in the very same call.
        let said = asked.last();
        if said.contains("asked: ") {
            assert!(said.contains("end your turn now") && said.contains("asked: 0"), "{said}");
        }
        let taken = if giver == "claude" { &stage.codex } else { &stage.claude };
        assert!(taken.turns()[0].contains("it knows this better"));
        assert_eq!(stage.changed_by("Finish README.md"), ["README.md"]);
        stage.is_sound();
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn an_agents_shell_reaches_its_own_branch_and_nothing_else_of_git() {
    let probe = r#"
G=$(git rev-parse --path-format=absolute --git-common-dir); D=$(git rev-parse --absolute-git-dir)
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "probe $name: done"; else echo "probe $name: refused"; fi; }
into() { echo x >>"$1"; }
try commit git commit -q --allow-empty -m Allowed
try relay-ref git update-ref refs/relay/evil HEAD
try relay-file into "$G/refs/relay/evil2"
try relay-folder into "$G/relay/evil"
try config git config core.sshCommand evil
try config-file into "$G/config"
try hook into "$G/hooks/post-checkout"
try main git update-ref refs/heads/main HEAD
try other git update-ref refs/heads/other HEAD
try index into "$G/index"
try head into "$G/HEAD"
try exclude into "$G/info/exclude"
try main-tree into "$G/../README.md"
try pointer into "$D/gitdir"
try commondir into "$D/commondir"
try worktree-pointer into .git
try home into "$HOME/evil"
try read-key sh -c 'find "$HOME/.local/share/git-relay" -type f -exec cat {} + | grep .'
try read-ssh cat "$HOME/.ssh/id_ed25519"
try inbox into "$D/relay-inbox"
"#;
    // A sandbox may leave the folder for temporary files open, and a repository may lie in it.
    let temporary = std::env::temp_dir();
    for (agent, place) in [("claude", None), ("codex", None), ("codex", Some(&*temporary))] {
        let job = json!([shell(probe), say("Probed.")]);
        let cast = Cast { agents: &[agent], claude: job.clone(), codex: job, third: None };
        let stage = Stage::with_repository_in(place, &cast);
        stage.world.write_at(&stage.world.home.join(".ssh/id_ed25519"), "a key\n");
        stage.relay(&["run", TASK]).exits(0);
        let mock = if agent == "claude" { &stage.claude } else { &stage.codex };
        let said = mock.last();
        let probes: Vec<&str> = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("probe "))
            .filter(|line| !line.contains('$'))
            .collect();
        let done: Vec<&str> =
            probes.iter().filter_map(|line| line.strip_suffix(": done")).collect();
        assert_eq!(done, ["commit", "inbox"], "{agent} {place:?}: {probes:#?}");
        assert_eq!(probes.len(), 20, "{probes:#?}");
        stage.is_sound();
    }
}
