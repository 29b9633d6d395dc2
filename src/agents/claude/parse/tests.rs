//! What is proved here: the recordings fold as expected and however bent never panic; an error is
//! what its structured fields say; what is only *said* changes nothing.

mod person;

use super::*;
use crate::agents::recorded::{self, NOW, folded, rendered};
use crate::model::time::Timestamp;
use crate::model::transcript::{PlanStatus, Sign, TouchKind};
use proptest::prelude::*;
use serde_json::{Value, json};

const AGENT: &str = "claude";

#[test]
fn recordings_read_as_expected() {
    recorded::compare_with_expected(AGENT, fold, signs);
}

#[test]
fn recordings_withstand_bending() {
    recorded::withstand(AGENT, fold, signs);
}

fn fold_all(records: &[Value]) -> Transcript {
    let lines: Vec<_> = records.iter().map(Value::to_string).collect();
    folded(fold, &lines.join("\n"))
}

fn signs_of(record: &Value) -> Vec<Sign> {
    signs(record.to_string().as_bytes(), NOW)
}

fn typed(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "promptSource": "typed",
        "timestamp": "2026-11-30T00:09:01Z"})
}

fn calls(id: &str, tool: &str, input: Value) -> Value {
    json!({"type": "assistant", "message": {"model": "claude-x", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}})
}

fn returns(id: &str, content: &str, is_error: Option<bool>, detail: Value) -> Value {
    json!({"type": "user", "toolUseResult": detail, "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}]}})
}

fn says(text: &str, stop_reason: &str) -> Value {
    json!({"type": "assistant", "message": {"model": "claude-x", "stop_reason": stop_reason,
        "content": [{"type": "text", "text": text}]}})
}

#[test]
fn an_error_is_what_its_fields_say() {
    let limit = "limit";
    let cases = [
        (json!({"error": "rate_limit", "apiError": "usage_limit_reached"}), "x", limit),
        (json!({"error": "rate_limit", "apiErrorStatus": 429}), "x", "transient"),
        (
            json!({"error": "rate_limit", "apiErrorStatus": 429}),
            "API Error: Request rejected (429)",
            "transient",
        ),
        (
            json!({"error": "rate_limit", "apiErrorStatus": 429}),
            "API Error: Server is temporarily limiting requests (not your usage limit)",
            "transient",
        ),
        (json!({"error": "rate_limit"}), "You've hit your 5-hour limit", limit),
        (json!({"error": "rate_limit"}), "You’ve hit your weekly limit", limit),
        (
            json!({"error": "rate_limit", "quotaLimits": {"status": "rejected", "resetsAt": 1_796_004_532}}),
            "x",
            limit,
        ),
        (json!({"error": "rate_limit", "quotaLimits": {"status": "rejected"}}), "x", "transient"),
        (json!({"error": "billing_error"}), "Credit balance is too low", limit),
        (
            json!({"error": "server_error", "apiErrorStatus": 529, "apiErrorType": "overloaded_error"}),
            "x",
            "overload",
        ),
        (json!({"error": "overloaded"}), "x", "overload"),
        (json!({"error": "server_error", "apiErrorStatus": 500}), "x", "other"),
        (json!({"error": "authentication_failed"}), "Not logged in · Please run /login", "auth"),
        (json!({"error": "unknown", "apiErrorStatus": 401}), "x", "auth"),
        (
            json!({"error": "invalid_request", "apiErrorStatus": 400}),
            "Prompt is too long",
            "context",
        ),
        (json!({"error": "invalid_request", "apiErrorStatus": 400}), "x", "other"),
        (json!({"error": "unknown"}), "the text says You've hit your 5-hour limit", "other"),
    ];
    for (fields, text, expected) in cases {
        let mut record = json!({"type": "assistant", "isApiErrorMessage": true,
            "message": {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let Some(Ending::Trouble(trouble)) = fold_all(&[record.clone()]).ending else {
            panic!("{record}")
        };
        let kind = match trouble {
            Trouble::Limit { .. } => "limit",
            Trouble::Transient(_) => "transient",
            Trouble::Overload(_) => "overload",
            Trouble::Auth(_) => "auth",
            Trouble::Context(_) => "context",
            Trouble::Other(_) => "other",
        };
        assert_eq!(kind, expected, "{record}");
        // The live stream ends early only for the usage limit, and never shows it as the model's.
        let live = signs_of(&record);
        assert_eq!(live.len(), usize::from(expected == "limit"), "{record}");
        assert!(!live.contains(&Sign::ModelMade));
    }
}

#[test]
fn what_is_only_said_is_no_error() {
    let limit = "You've hit your 5-hour limit · resets 2:08am (UTC)";
    let fields = "{\"error\":\"rate_limit\",\"api_error\":\"usage_limit_reached\"}";
    let transcript = fold_all(&[
        typed(limit),
        says(limit, "tool_use"),
        calls("1", "Bash", json!({"command": "cat log"})),
        returns("1", &format!("{limit}\n{fields}"), Some(false), json!({"stdout": fields})),
        says(fields, "end_turn"),
    ]);
    assert_eq!(transcript.ending, Some(Ending::TurnEnded));
    let said = json!({"type": "assistant", "parent_tool_use_id": null, "message": {
        "model": "claude-x", "content": [{"type": "text", "text": limit}]}});
    assert_eq!(signs_of(&said), [Sign::ModelMade]);
    let result = json!({"type": "result", "subtype": "success", "is_error": false,
        "terminal_reason": "completed", "result": limit, "permission_denials": []});
    assert_eq!(signs_of(&result), [Sign::Ended(Ending::TurnEnded)]);
}

#[test]
fn results_end_as_their_reason_says() {
    let end = |fields: Value| {
        let mut record = json!({"type": "result", "subtype": "success", "is_error": false});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        match signs_of(&record).remove(0) {
            Sign::Ended(ending) => ending,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(end(json!({})), Ending::TurnEnded);
    assert_eq!(end(json!({"terminal_reason": "hook_stopped"})), Ending::StoppedByHook);
    let aborted = json!({"subtype": "error_during_execution", "is_error": true,
        "terminal_reason": "aborted_tools"});
    assert_eq!(end(aborted), Ending::Interrupted);
    assert_eq!(end(json!({"interrupted_by_shutdown": true})), Ending::Interrupted);
    let too_many = Ending::Trouble(Trouble::Other("error_max_turns".into()));
    assert_eq!(end(json!({"subtype": "error_max_turns", "is_error": false})), too_many);
    let context = json!({"is_error": true, "terminal_reason": "prompt_too_long", "result": "x"});
    assert_eq!(end(context), Ending::Trouble(Trouble::Context("x".into())));
    let denied = json!({"permission_denials": [{"tool_name": "AskUserQuestion", "tool_use_id": "1",
        "tool_input": {"questions": [{"question": "Which one?"}]}}]});
    assert_eq!(end(denied), Ending::Asks("Which one?".into()));
    let denied =
        json!({"permission_denials": [{"tool_name": "Bash", "tool_input": {"command": "rm x"}}]});
    assert_eq!(end(denied), Ending::Asks("Bash: rm x".into()));
}

#[test]
fn only_edits_that_worked_are_counted() {
    let transcript = fold_all(&[
        calls("1", "Write", json!({"file_path": "/d/new", "content": "x"})),
        returns(
            "1",
            "File created successfully at: /d/new",
            None,
            json!({"type": "create", "filePath": "/d/new"}),
        ),
        calls("2", "Write", json!({"file_path": "/d/old", "content": "x"})),
        returns(
            "2",
            "The file /d/old has been updated",
            None,
            json!({"type": "update", "filePath": "/d/old"}),
        ),
        calls("3", "Edit", json!({"file_path": "/d/no", "old_string": "a"})),
        returns("3", "String to replace not found", Some(true), json!("Error: …")),
        calls("4", "MultiEdit", json!({"file_path": "/d/multi", "edits": []})),
        returns("4", "ok", None, json!({"filePath": "/d/multi"})),
        calls("5", "NotebookEdit", json!({"notebook_path": "/d/n.ipynb"})),
        returns("5", "ok", None, json!({"error": ""})),
        calls("6", "NotebookEdit", json!({"notebook_path": "/d/bad.ipynb"})),
        returns("6", "no such cell", None, json!({"error": "no such cell"})),
        calls("7", "Write", json!({"file_path": "/d/bare", "content": "x"})),
        returns("7", "File created successfully at: /d/bare", None, Value::Null),
        calls("8", "Edit", json!({"file_path": "/d/held", "old_string": "a"})),
        returns("8", "held", None, json!({"staged": true})),
        calls("9", "Edit", json!({"file_path": "/d/new", "old_string": "a"})),
        returns("9", "ok", None, json!({"filePath": "/d/new"})),
        calls("10", "Edit", json!({"file_path": "/d/open", "old_string": "a"})),
    ]);
    let files: Vec<_> = transcript.files.iter().map(|file| (&*file.path, file.kind)).collect();
    use TouchKind::{Added, Changed};
    let expected = [
        ("/d/new", Added),
        ("/d/old", Changed),
        ("/d/multi", Changed),
        ("/d/n.ipynb", Changed),
        ("/d/bare", Added),
    ];
    assert_eq!(files, expected);
    assert_eq!(transcript.open_calls["10"].summary, "/d/open");
}

#[test]
fn an_exit_code_is_known_or_absent() {
    let ran = |content: &str, is_error, detail| {
        let mut transcript = fold_all(&[
            calls("1", "Bash", json!({"command": "make"})),
            returns("1", content, is_error, detail),
        ]);
        transcript.commands.pop().map(|run| (run.exit_code, run.tail))
    };
    let some = |code, tail: &str| Some((code, tail.to_owned()));
    assert_eq!(ran("ok", Some(false), json!({"interrupted": false})), some(Some(0), "ok"));
    assert_eq!(ran("ok", None, json!({})), some(None, "ok"));
    assert_eq!(
        ran("Exit code 2\nbad", Some(true), json!("Error: Exit code 2\nbad")),
        some(Some(2), "bad")
    );
    assert_eq!(ran("Exit code 1", Some(true), Value::Null), some(Some(1), ""));
    assert_eq!(ran("Exit code 2\nbad", Some(false), json!({})), some(Some(0), "Exit code 2\nbad"));
    assert_eq!(ran("half", Some(false), json!({"interrupted": true})), some(None, "half"));
    assert_eq!(ran("bg", Some(false), json!({"backgroundTaskId": "b1"})), some(None, "bg"));
    assert_eq!(
        ran("", Some(false), json!({"returnCodeInterpretation": "No matches found"})),
        some(None, "")
    );
    assert_eq!(ran("<tool_use_error>Blocked</tool_use_error>", Some(true), json!("Error")), None);
    let hung_on = "ok\n\n<system-reminder>\n<total_tokens>1</total_tokens>\n</system-reminder>";
    assert_eq!(ran(hung_on, Some(false), json!({})), some(Some(0), "ok"));
}

#[test]
fn a_subagent_states_neither_plan_nor_end() {
    let side = |mut record: Value| {
        record["isSidechain"] = json!(true);
        record["parent_tool_use_id"] = json!("toolu_1");
        record
    };
    let todos = json!({"todos": [{"content": "sub", "status": "pending"}]});
    let write = json!({"file_path": "/d/sub"});
    let records = [
        calls("0", "Task", json!({"description": "explore", "prompt": "p"})),
        side(typed("sub prompt")),
        side(calls("1", "TodoWrite", todos)),
        side(calls("2", "Write", write)),
        side(returns("2", "File created", None, json!({"type": "create", "filePath": "/d/sub"}))),
        side(says("sub text", "end_turn")),
    ];
    let transcript = fold_all(&records);
    assert_eq!((&*transcript.plan, &*transcript.prompts), (&[][..], &[][..]));
    assert_eq!((transcript.messages.len(), transcript.ending), (0, None));
    // What it wrote is written.
    assert_eq!(transcript.files[0].path, "/d/sub");
    assert_eq!(transcript.open_calls["0"].summary, "explore");
    assert_eq!(signs_of(&records[2]), [Sign::ModelMade]);
    assert_eq!(signs_of(&records[4]), []);
}

#[test]
fn the_last_plan_wins_in_every_form() {
    let task =
        |id: &str, call: &str| returns(call, "", None, json!({"task": {"id": id, "subject": "s"}}));
    let updated = |call: &str| returns(call, "Updated", None, json!({"success": true}));
    let mut records = vec![
        calls("1", "TodoWrite", json!({"todos": [{"content": "old", "status": "completed"}]})),
        returns("1", "ok", None, json!({})),
        calls("2", "TaskCreate", json!({"subject": "one"})),
        task("1", "2"),
        calls("3", "TaskCreate", json!({"subject": "two"})),
        returns("3", "Task #2 created successfully: two", None, Value::Null),
        calls("4", "TaskCreate", json!({"subject": "three"})),
        task("3", "4"),
        calls("5", "TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        updated("5"),
        calls("6", "TaskUpdate", json!({"taskId": "2", "status": "deleted"})),
        updated("6"),
        calls(
            "7",
            "TaskUpdate",
            json!({"taskId": "3", "subject": "drei", "status": "in_progress"}),
        ),
        updated("7"),
        calls("8", "TaskUpdate", json!({"taskId": "3", "status": "completed"})),
        returns("8", "no", Some(true), json!("Error")),
    ];
    let plan = |records: &[Value]| -> Vec<_> {
        fold_all(records).plan.into_iter().map(|item| (item.text, item.status)).collect()
    };
    use PlanStatus::{Completed, InProgress};
    assert_eq!(plan(&records), [("one".into(), Completed), ("drei".into(), InProgress)]);
    records.push(calls(
        "9",
        "TodoWrite",
        json!({"todos": [{"content": "new", "status": "in_progress"}]}),
    ));
    assert_eq!(plan(&records), [("new".into(), InProgress)]);
    records.push(returns("9", "denied", Some(true), json!("Error")));
    assert_eq!(plan(&records).len(), 2);
    let listed =
        json!({"tasks": [{"id": "4", "subject": "four", "status": "completed", "blockedBy": []}]});
    records.push(calls("10", "TaskList", json!({})));
    records.push(returns("10", "", None, listed));
    assert_eq!(plan(&records), [("four".into(), Completed)]);

    let made = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "2",
        "content": "Task #1 created successfully: one"}]}, "tool_use_result": {"task": {"id": "1"}}});
    let task = Sign::Task { task: "1".into(), open: true };
    assert_eq!(signs_of(&made), [Sign::ToolEnded { call: "2".into() }, task]);
    let changed = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "5",
        "content": "Updated task #1 status"}]}, "tool_use_result": {"success": true, "taskId": "1",
        "statusChange": {"from": "pending", "to": "deleted"}}});
    let task = Sign::Task { task: "1".into(), open: false };
    assert_eq!(signs_of(&changed), [Sign::ToolEnded { call: "5".into() }, task]);
}

#[test]
fn a_compaction_leaves_its_summary_and_keeps_what_was_done() {
    let transcript = fold_all(&[
        typed("go"),
        calls("1", "Bash", json!({"command": "make"})),
        returns("1", "ok", Some(false), json!({})),
        calls("2", "Skill", json!({"skill": "pdf", "args": "x"})),
        json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 1}}),
        json!({"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
            "message": {"role": "user", "content": "This session is being continued …"}}),
        says("on we go", "tool_use"),
    ]);
    assert_eq!(transcript.summary.as_deref(), Some("This session is being continued …"));
    assert_eq!((transcript.prompts.len(), transcript.commands.len()), (1, 1));
    assert_eq!(transcript.skills, ["pdf"]);
}

#[test]
fn a_reading_needs_a_share() {
    let read = |info: Value| -> Vec<_> {
        signs_of(&json!({"type": "rate_limit_event", "rate_limit_info": info}))
            .into_iter()
            .map(|sign| match sign {
                Sign::Reading(reading) => {
                    (reading.window_minutes, reading.used_permille, reading.resets_at)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let at = Some(Timestamp(1_796_004_532));
    let windows = json!({"unifiedWindows": {"five_hour": {"utilization": 0.76, "resetsAt": 1_796_004_532},
        "seven_day": {"utilization": 1, "resetsAt": null}}, "rateLimitType": "five_hour", "utilization": 0.5});
    assert_eq!(read(windows), [(300, 760, at), (10_080, 1000, None)]);
    let alone =
        json!({"rateLimitType": "seven_day", "utilization": 0.31, "resetsAt": 1_796_004_532});
    assert_eq!(read(alone), [(10_080, 310, at)]);
    assert_eq!(read(json!({"status": "rejected", "rateLimitType": "five_hour"})), []);
    assert_eq!(read(json!({"rateLimitType": "overage", "utilization": 0.5})), []);
    assert_eq!(read(json!({"rateLimitType": "five_hour", "utilization": "0.5"})), []);
}

#[test]
fn kept_texts_are_bounded() {
    let long = "x y".repeat(1_000_000);
    let mut records = vec![typed(&long), says(&long, "end_turn")];
    records.push(calls("1", "Bash", json!({"command": long})));
    records.push(returns("1", &long, Some(false), json!({})));
    records.push(calls("2", "Skill", json!({"skill": long})));
    let todos: Vec<_> = (0..1000).map(|_| json!({"content": "x".repeat(5000)})).collect();
    records.push(calls("3", "TodoWrite", json!({"todos": todos})));
    assert!(rendered(&fold_all(&records)).len() < 1_000_000);
}

proptest! {
    #[test]
    fn any_bytes_fold(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut transcript = Transcript::default();
        fold(&mut transcript, &bytes);
        signs(&bytes, NOW);
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
        let colons: Vec<_> = line.match_indices(": ").map(|(at, _)| at).collect();
        if !colons.is_empty() {
            let from = at.get(&colons) + 2;
            let end = line[from..].find([',', '}', ']']).map_or(line.len(), |end| from + end);
            let line = format!("{}{value}{}", &line[..from], &line[end..]);
            fold(&mut transcript, line.as_bytes());
            signs(line.as_bytes(), NOW);
        }
    }
}
