//! What is proved here: the recordings fold as expected and however bent never panic; an error is
//! what its structured fields say; what is only *said* changes nothing; what two records describe
//! counts once.

use super::*;
use crate::agents::recorded::{self, NOW, folded, rendered};
use crate::model::transcript::{Sign, TouchKind};
use proptest::prelude::*;
use serde_json::{Value, json};

const AGENT: &str = "codex";

#[test]
fn recordings_read_as_expected() {
    recorded::compare_with_expected(AGENT, fold, signs);
}

#[test]
fn recordings_withstand_bending() {
    recorded::withstand(AGENT, fold, signs);
}

#[test]
fn the_rollout_tells_readings_live() {
    let text = recorded::read(AGENT, "limit.transcript.jsonl");
    let live: Vec<_> = text.lines().flat_map(|line| rollout_signs(line.as_bytes(), NOW)).collect();
    assert!(live.iter().all(|sign| matches!(sign, Sign::Reading(_))));
    let Some(Sign::Reading(five_hour)) = live.iter().rev().nth(1) else { panic!("{live:?}") };
    assert_eq!((five_hour.window_minutes, five_hour.used_permille), (300, 1000));
    assert!(five_hour.resets_at.is_some());
}

fn fold_all(records: &[Value]) -> Transcript {
    let lines: Vec<_> = records.iter().map(Value::to_string).collect();
    folded(fold, &lines.join("\n"))
}

fn signs_of(record: &Value) -> Vec<Sign> {
    signs(record.to_string().as_bytes(), NOW)
}

fn event(payload: Value) -> Value {
    json!({"timestamp": "2026-11-30T00:09:01.1Z", "type": "event_msg", "payload": payload})
}

fn raw(payload: Value) -> Value {
    json!({"timestamp": "2026-11-30T00:09:01.1Z", "type": "response_item", "payload": payload})
}

fn calls(id: &str, tool: &str, arguments: Value) -> Value {
    raw(
        json!({"type": "function_call", "call_id": id, "name": tool, "arguments": arguments.to_string()}),
    )
}

fn returns(id: &str, output: Value) -> Value {
    raw(json!({"type": "function_call_output", "call_id": id, "output": output}))
}

fn item(item: Value) -> Value {
    event(json!({"type": "item_completed", "item": item}))
}

fn cwd(path: &str) -> Value {
    json!({"type": "session_meta", "payload": {"id": "t", "cwd": path}})
}

#[test]
fn an_error_is_what_its_fields_say() {
    let status =
        |code: i64| json!({"response_too_many_failed_attempts": {"http_status_code": code}});
    let cases = [
        (json!("usage_limit_exceeded"), "x", "limit"),
        (json!("other"), "You’ve hit your usage limit. Try again at 2:09 AM.", "limit"),
        (Value::Null, "You've hit your usage limit for gpt-x.", "limit"),
        (Value::Null, "Quota exceeded. Check your plan and billing details.", "limit"),
        (Value::Null, "the log says You've hit your usage limit", "other"),
        (status(429), "exceeded retry limit, last status: 429 Too Many Requests", "transient"),
        (json!("rate_limit_exceeded"), "x", "transient"),
        (
            Value::Null,
            "exceeded retry limit, last status: 429 Too Many Requests, request id: r",
            "transient",
        ),
        (json!("server_overloaded"), "x", "overload"),
        (Value::Null, "Selected model is at capacity. Please try a different model.", "overload"),
        (json!({"http_connection_failed": {"http_status_code": 401}}), "x", "auth"),
        (json!("unauthorized"), "x", "auth"),
        (Value::Null, "unexpected status 401 Unauthorized: x", "auth"),
        (json!("other"), "Missing environment variable: `MOCK_API_KEY`.", "auth"),
        (json!("context_window_exceeded"), "x", "context"),
        (Value::Null, "Codex ran out of room in the model's context window. Start", "context"),
        (Value::Null, "Codex ran out of room in the model’s context window. Start", "context"),
        (json!("other"), "stream disconnected before completion", "other"),
        (json!({"http_connection_failed": {"http_status_code": null}}), "x", "other"),
    ];
    for (info, message, expected) in cases {
        let kind = |ending: Option<Ending>| match ending {
            Some(Ending::Trouble(trouble)) => match trouble {
                Trouble::Limit { resets_at, .. } => {
                    assert_eq!(resets_at, None);
                    "limit"
                }
                Trouble::Transient(_) => "transient",
                Trouble::Overload(_) => "overload",
                Trouble::Auth(_) => "auth",
                Trouble::Context(_) => "context",
                Trouble::Other(_) => "other",
            },
            other => panic!("{other:?}"),
        };
        let error = json!({"message": message, "codex_error_info": info});
        let complete =
            event(json!({"type": "task_complete", "last_agent_message": null, "error": error}));
        assert_eq!(kind(fold_all(&[complete]).ending), expected, "{info} {message}");
        if info.is_null() {
            let failed = json!({"type": "turn.failed", "error": {"message": message}});
            let Sign::Ended(ending) = signs_of(&failed).remove(0) else { panic!() };
            assert_eq!(kind(Some(ending)), expected, "{message}");
            let error = json!({"type": "error", "message": message});
            assert_eq!(signs_of(&error).len(), usize::from(expected != "other"), "{message}");
            let retry =
                json!({"type": "error", "message": format!("Reconnecting... 1/5 ({message})")});
            assert!(matches!(&signs_of(&retry)[..], [Sign::Retrying(_)]));
        }
    }
}

#[test]
fn what_is_only_said_is_no_error() {
    let limit = "You’ve hit your usage limit. Try again at 2:09 AM.";
    let done = event(json!({"type": "task_complete", "last_agent_message": limit}));
    let transcript = fold_all(&[
        event(json!({"type": "user_message", "message": limit})),
        raw(
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": limit}]}),
        ),
        calls("1", "exec_command", json!({"cmd": "cat log"})),
        returns(
            "1",
            json!(format!(
                "Chunk ID: 1\nProcess exited with code 0\nOutput:\n{limit}\nExit code: 7"
            )),
        ),
        done,
    ]);
    assert_eq!(transcript.ending, Some(Ending::TurnEnded));
    assert_eq!(transcript.commands[0].exit_code, Some(0));
    for kind in ["agent_message", "reasoning"] {
        let said =
            json!({"type": "item.completed", "item": {"id": "1", "type": kind, "text": limit}});
        assert_eq!(signs_of(&said), [Sign::ModelMade]);
    }
    let note =
        json!({"type": "item.completed", "item": {"id": "1", "type": "error", "message": limit}});
    assert_eq!(signs_of(&note), []);
}

#[test]
fn a_turn_ends_as_its_record_says() {
    let started = event(json!({"type": "task_started"}));
    let error =
        event(json!({"type": "error", "message": "x", "codex_error_info": "usage_limit_exceeded"}));
    let complete =
        |last: Value| event(json!({"type": "task_complete", "last_agent_message": last}));
    let aborted = |reason: &str| event(json!({"type": "turn_aborted", "reason": reason}));
    let end = |records: &[Value]| fold_all(records).ending;
    assert_eq!(end(std::slice::from_ref(&started)), None);
    assert_eq!(end(&[started.clone(), complete(json!("done"))]), Some(Ending::TurnEnded));
    assert_eq!(end(&[complete(Value::Null)]), Some(Ending::TurnEnded));
    // Older versions: the error is an event of its own.
    let limit = Ending::Trouble(Trouble::Limit { resets_at: None, text: "x".into() });
    assert_eq!(end(&[error.clone(), complete(Value::Null)]), Some(limit));
    assert_eq!(end(&[error.clone(), started, complete(Value::Null)]), Some(Ending::TurnEnded));
    assert_eq!(end(&[error, complete(json!("done"))]), Some(Ending::TurnEnded));
    assert_eq!(end(&[aborted("interrupted")]), Some(Ending::Interrupted));
    assert_eq!(end(&[aborted("replaced")]), None);
    let asks = calls("1", "request_user_input", json!({"questions": [{"question": "Which?"}]}));
    assert_eq!(end(std::slice::from_ref(&asks)), Some(Ending::Asks("Which?".into())));
    assert_eq!(end(&[asks, returns("1", json!("this"))]), None);
}

#[test]
fn answers_are_decisions_but_for_secret_ones() {
    let question = |id: &str, text: &str, secret: bool| json!({"id": id, "header": "h", "question": text, "isSecret": secret});
    let questions = [question("a", "Which store?", false), question("b", "The password?", true)];
    let answer = json!({"answers": {"a": {"answers": ["SQLite", "one file"]},
        "b": {"answers": ["hunter2"]}, "c": {"answers": ["to nothing"]}}});
    let folded = fold_all(&[
        calls("1", "request_user_input", json!({"questions": questions})),
        returns("1", json!(answer.to_string())),
    ]);
    assert_eq!(folded.decisions, ["the user answered \"Which store?\" with: SQLite, one file"]);
}

#[test]
fn a_call_that_a_person_refused_is_kept_and_one_that_a_hook_blocked_is_not() {
    let call = calls("1", "exec_command", json!({"cmd": "rm -rf /srv"}));
    let refused = |words: &str| fold_all(&[call.clone(), returns("1", json!(words))]).refusals;
    assert_eq!(
        refused("exec command rejected by user"),
        ["the user refused this call: exec_command: rm -rf /srv"]
    );
    assert_eq!(refused("Command blocked by PreToolUse hook: no"), [""; 0]);
}

#[test]
fn a_command_that_two_records_describe_ran_once() {
    let call = calls("1", "exec_command", json!({"cmd": "make"}));
    let ran = |exit_code: i64| {
        item(json!({"type": "CommandExecution", "id": "1", "command": ["/bin/bash", "-lc", "make"],
        "exit_code": exit_code, "aggregated_output": "out\n", "status": "completed"}))
    };
    let output = returns("1", json!("Chunk ID: 1\nProcess exited with code 2\nOutput:\nout\n"));
    let running = returns("1", json!("Chunk ID: 1\nProcess running with session ID 7\nOutput:\n"));
    let aborted = returns("1", json!("Wall time: 1.1 seconds\naborted by user"));
    for (records, exit_code) in [
        (vec![call.clone(), ran(2), output.clone()], Some(2)),
        (vec![call.clone(), output.clone(), ran(2)], Some(2)),
        (vec![call.clone(), output], Some(2)),
        (vec![ran(2)], Some(2)),
        (vec![call.clone(), running.clone()], None),
        (vec![call.clone(), running, ran(0)], Some(0)),
        (vec![call.clone(), aborted, ran(-1)], None),
    ] {
        let transcript = fold_all(&records);
        assert_eq!(transcript.commands.len(), 1, "{records:?}");
        assert_eq!(transcript.commands[0].command, "make");
        assert_eq!(transcript.commands[0].exit_code, exit_code, "{records:?}");
        assert!(transcript.open_calls.is_empty() || records.len() == 1);
    }
    let blocked = returns("1", json!("Command blocked by PreToolUse hook: no. Command: make"));
    let transcript = fold_all(&[call.clone(), blocked]);
    assert_eq!((transcript.commands.len(), transcript.open_calls.len()), (0, 0));
    assert_eq!(fold_all(&[call]).open_calls["1"].summary, "make");
}

#[test]
fn outputs_come_in_older_forms_too() {
    let ran = |tool: &str, arguments: Value, output: Value| {
        let mut transcript = fold_all(&[calls("1", tool, arguments), returns("1", output)]);
        let run = transcript.commands.pop().unwrap();
        (run.command, run.exit_code, run.tail)
    };
    let expected = |code| ("ls 'a b'".to_owned(), code, "out".to_owned());
    let metadata =
        json!({"output": "out\n", "metadata": {"exit_code": 3, "duration_seconds": 0.1}});
    let argv = json!({"command": ["bash", "-lc", "ls 'a b'"]});
    assert_eq!(ran("shell", argv.clone(), json!(metadata.to_string())), expected(Some(3)));
    let plain = json!({"command": ["ls", "a b"]});
    assert_eq!(
        ran("shell", plain, json!("Exit code: 0\nWall time: 0 seconds\nOutput:\nout")),
        expected(Some(0))
    );
    let wrapped = json!({"content": "Exit code: 1\nOutput:\nout", "success": false});
    assert_eq!(ran("shell_command", json!({"command": "ls 'a b'"}), wrapped), expected(Some(1)));
    let blocks = json!([{"type": "input_text", "text": "Exit code: 1\nOutput:\nout"}]);
    assert_eq!(ran("container.exec", argv, blocks), expected(Some(1)));
    let quoted = json!({"cmd": "bash -lc \"ls 'a b'\""});
    assert_eq!(ran("exec_command", quoted, json!("out")), expected(None));
    let local = raw(
        json!({"type": "local_shell_call", "call_id": "1", "action": {"type": "exec", "command": ["pwd"]}}),
    );
    let transcript = fold_all(&[local, returns("1", json!("Exit code: 0\nOutput:\n/d"))]);
    assert_eq!(transcript.commands[0].command, "pwd");
}

#[test]
fn a_shell_is_unwrapped_and_nothing_else() {
    let unwrapped = |text: &str| {
        let json = json!(text).to_string();
        command(Some(loose::Json(&json)))
    };
    assert_eq!(unwrapped("/bin/bash -lc \"a \\\"b\\\" 'c' \\$d\""), "a \"b\" 'c' $d");
    assert_eq!(unwrapped("sh -c 'it'\\''s'"), "it's");
    assert_eq!(unwrapped("zsh -lc ls"), "ls");
    for plain in
        ["bash -lc", "bash script.sh x", "bash -lc a b", "a && bash -lc b", "echo 'open", ""]
    {
        assert_eq!(unwrapped(plain), plain);
    }
}

#[test]
fn only_changes_that_worked_are_counted_and_each_once() {
    use TouchKind::{Added, Changed, Deleted};
    let patch = "*** Begin Patch\n*** Add File: new\n+*** Delete File: not\n*** Update File: old\n*** Move to: moved\n@@\n-a\n+b\n*** Update File: ./c\n*** Delete File: gone\n*** End Patch\n";
    let call = raw(
        json!({"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": patch}),
    );
    let done = raw(
        json!({"type": "custom_tool_call_output", "call_id": "1", "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."}),
    );
    let failed = raw(
        json!({"type": "custom_tool_call_output", "call_id": "1", "output": "apply_patch verification failed: x"}),
    );
    let change = |status: &str| {
        item(json!({"type": "FileChange", "id": "1", "status": status, "changes": {
        "/d/new": {"type": "add", "content": "x"},
        "/d/old": {"type": "update", "unified_diff": "x", "move_path": "/d/moved"},
        "/d/c": {"type": "update", "unified_diff": "x", "move_path": null},
        "/d/gone": {"type": "delete", "content": "x"}}}))
    };
    let expected = [
        ("/d/new", Added),
        ("/d/old", Deleted),
        ("/d/moved", Added),
        ("/d/c", Changed),
        ("/d/gone", Deleted),
    ];
    for records in [
        vec![cwd("/d"), call.clone(), done.clone()],
        vec![cwd("/d"), call.clone(), change("completed"), done.clone()],
        vec![cwd("/d"), call.clone(), done.clone(), change("completed")],
        vec![cwd("/d"), change("completed")],
        vec![
            cwd("/d"),
            calls("1", "exec_command", json!({"cmd": format!("apply_patch <<'EOF'\n{patch}EOF")})),
            returns("1", json!("Success. Updated the following files:\nA new")),
        ],
        vec![
            cwd("/d"),
            calls("1", "shell", json!({"command": ["apply_patch", patch]})),
            returns(
                "1",
                json!(json!({"output": "Success.", "metadata": {"exit_code": 0}}).to_string()),
            ),
        ],
        vec![
            cwd("/d"),
            event(json!({"type": "patch_apply_end", "call_id": "1", "success": true,
            "changes": {"/d/new": {"type": "add"}, "/d/old": {"type": "update", "move_path": "/d/moved"},
            "/d/c": {"type": "update"}, "/d/gone": {"type": "delete"}}})),
        ],
    ] {
        let transcript = fold_all(&records);
        let mut files: Vec<_> =
            transcript.files.iter().map(|file| (&*file.path, file.kind)).collect();
        let mut expected = expected.to_vec();
        files.sort_by_key(|file| file.0);
        expected.sort_by_key(|file| file.0);
        assert_eq!(files, expected, "{records:?}");
        assert_eq!(transcript.commands.len(), 0);
    }
    for records in [
        [call.clone(), failed.clone()],
        [call.clone(), change("failed")],
        [call, change("declined")],
    ] {
        assert_eq!(fold_all(&records).files, []);
    }
}

#[test]
fn a_prompt_counts_once_and_injected_text_never() {
    let injected = |text: &str| {
        raw(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        )
    };
    let user = |text: &str| {
        item(json!({"type": "UserMessage", "content": [{"type": "text", "text": text}]}))
    };
    let later = json!({"timestamp": "2026-11-30T00:19:01Z", "type": "event_msg", "payload": {"type": "user_message", "message": "go"}});
    let transcript = fold_all(&[
        injected("<environment_context>\n</environment_context>"),
        injected("go"),
        user("go\n"),
        event(json!({"type": "user_message", "message": "go"})),
        event(json!({"type": "user_message", "message": "<environment_context>x"})),
        event(json!({"type": "user_message", "message": "# AGENTS.md instructions for /d"})),
        item(json!({"type": "HookPrompt", "fragments": [{"text": "x"}]})),
        later,
    ]);
    let prompts: Vec<_> = transcript.prompts.iter().map(|prompt| &*prompt.text).collect();
    assert_eq!(prompts, ["go", "go"]);
}

#[test]
fn the_last_plan_that_was_not_refused_wins() {
    let plan = |id: &str, step: &str| {
        calls(id, "update_plan", json!({"plan": [{"step": step, "status": "pending"}]}))
    };
    let updated = |id: &str| returns(id, json!("Plan updated"));
    let refused =
        returns("3", json!("Tool call blocked by PreToolUse hook: no. Tool: update_plan"));
    let text = |records: &[Value]| fold_all(records).plan[0].text.clone();
    assert_eq!(text(&[plan("1", "a"), updated("1"), plan("2", "b")]), "b");
    assert_eq!(text(&[plan("1", "a"), updated("1"), plan("3", "c"), refused]), "a");
    let list = |kind: &str| {
        json!({"type": kind, "item": {"id": "1", "type": "todo_list", "items": [
        {"text": "a", "completed": true}, {"text": "b", "completed": false}]}})
    };
    assert_eq!(signs_of(&list("item.updated")), [Sign::ModelMade, Sign::Plan { open: 1 }]);
    // Written by Codex itself at the end of any turn: no receipt.
    assert_eq!(signs_of(&list("item.completed")), [Sign::Plan { open: 1 }]);
}

#[test]
fn a_compaction_leaves_its_summary_and_keeps_what_was_done() {
    let ran =
        item(json!({"type": "CommandExecution", "id": "1", "command": "make", "exit_code": 0}));
    let message = json!({"type": "compacted", "payload": {"message": "So far: made."}});
    let history = json!({"type": "compacted", "payload": {"message": "", "replacement_history": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the summary"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
        {"type": "compaction", "encrypted_content": "x"}]}});
    for (record, summary) in [(message, "So far: made."), (history, "the summary")] {
        let transcript = fold_all(&[ran.clone(), record]);
        assert_eq!(transcript.summary.as_deref(), Some(summary));
        assert_eq!(transcript.commands.len(), 1);
    }
}

#[test]
fn a_window_is_told_by_its_length() {
    let read = |limits: Value| -> Vec<_> {
        let line = event(json!({"type": "token_count", "info": null, "rate_limits": limits}));
        rollout_signs(line.to_string().as_bytes(), NOW)
            .into_iter()
            .map(|sign| match sign {
                Sign::Reading(reading) => (
                    reading.window_minutes,
                    reading.used_permille,
                    reading.resets_at.map(|at| at.0),
                ),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let weekly =
        json!({"used_percent": 31.5, "window_minutes": 10_080, "resets_at": 1_796_342_940});
    let hours = json!({"used_percent": 76, "window_minutes": 299, "resets_in_seconds": 10});
    assert_eq!(
        read(json!({"primary": weekly, "secondary": hours})),
        [(10_080, 315, Some(1_796_342_940)), (300, 760, Some(NOW.0 + 10))]
    );
    assert_eq!(read(Value::Null), []);
    assert_eq!(
        read(json!({"primary": null, "secondary": {"used_percent": null, "window_minutes": 300}})),
        []
    );
    assert_eq!(read(json!({"primary": {"used_percent": 5}})), []);
    assert_eq!(read(json!({"limit_id": "codex_other", "primary": weekly})), []);
}

#[test]
fn kept_texts_are_bounded() {
    let long = "x y".repeat(1_000_000);
    let records = [
        event(json!({"type": "user_message", "message": long})),
        calls("1", "exec_command", json!({"cmd": long})),
        returns("1", json!(long)),
        event(json!({"type": "agent_message", "message": long})),
        json!({"type": "compacted", "payload": {"message": long}}),
        event(json!({"type": "error", "message": long})),
    ];
    assert!(rendered(&fold_all(&records)).len() < 200_000);
}

proptest! {
    #[test]
    fn any_bytes_fold(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut transcript = Transcript::default();
        fold(&mut transcript, &bytes);
        signs(&bytes, NOW);
        rollout_signs(&bytes, NOW);
    }

    /// A recorded line with one byte changed, or one value of another type in place.
    #[test]
    fn any_damage_folds(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        byte in any::<u8>(), value in prop::sample::select(vec!["7", "null", "[]", "{}", "\"\\ud800\"", "[{}]", "-1e99"]))
    {
        let lines: Vec<_> = ["sigint", "limit"].into_iter()
            .flat_map(|name| ["transcript", "stream"].map(|kind| recorded::read(AGENT, &format!("{name}.{kind}.jsonl"))))
            .collect::<String>().lines().map(str::to_owned).collect();
        let line = pick.get(&lines);
        let mut bytes = line.clone().into_bytes();
        *at.get_mut(&mut bytes) = byte;
        let mut transcript = Transcript::default();
        fold(&mut transcript, &bytes);
        signs(&bytes, NOW);
        rollout_signs(&bytes, NOW);
        let colons: Vec<_> = line.match_indices(": ").map(|(at, _)| at).collect();
        if !colons.is_empty() {
            let from = at.get(&colons) + 2;
            let end = line[from..].find([',', '}', ']']).map_or(line.len(), |end| from + end);
            let line = format!("{}{value}{}", &line[..from], &line[end..]);
            fold(&mut transcript, line.as_bytes());
            signs(line.as_bytes(), NOW);
            rollout_signs(line.as_bytes(), NOW);
        }
    }

    #[test]
    fn any_words_are_unwrapped(text in "[a-z '\"\\\\$|-]{0,40}") {
        super::shell::words(&text);
    }
}
