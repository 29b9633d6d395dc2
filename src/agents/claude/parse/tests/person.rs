//! What a person asks, answers, allows and refuses.

use super::*;

#[test]
fn a_question_stands_until_it_is_answered() {
    let question = json!({"questions": [{"question": "Tabs or\nspaces?"}]});
    let asks = [typed("go"), calls("1", "AskUserQuestion", question)];
    let asked = Some(Ending::Asks("Tabs or spaces?".into()));
    assert_eq!(fold_all(&asks).ending, asked);
    let [go, call] = asks;
    let answered = fold_all(&[go.clone(), call.clone(), returns("1", "tabs", None, json!({}))]);
    assert_eq!(answered.ending, None);
    // Headless, nobody answers and the model ends its turn.
    let refused = returns("1", "denied", Some(true), json!("Error"));
    let ended = fold_all(&[go.clone(), call.clone(), refused.clone(), says("I wait.", "end_turn")]);
    assert_eq!(ended.ending, asked);
    let went_on = fold_all(&[
        go,
        call,
        refused,
        says("I wait.", "end_turn"),
        typed("tabs"),
        says("ok", "end_turn"),
    ]);
    assert_eq!(went_on.ending, Some(Ending::TurnEnded));
    let call = calls("2", "ExitPlanMode", json!({"plan": "# The plan"}));
    let plan = fold_all(std::slice::from_ref(&call));
    assert_eq!(plan.messages, ["# The plan"]);
    assert_eq!(plan.ending, Some(Ending::Asks("approve the plan?".into())));
    assert_eq!(plan.decisions, [""; 0]);
    let approved = returns("2", "User has approved", None, json!({"plan": "# Another plan"}));
    let plan = fold_all(&[call, approved]);
    assert_eq!(plan.decisions, ["the user approved this plan: # Another plan"]);
}

/// What a hook or Claude itself hangs on a result is nobody's word.
#[test]
fn words_beside_a_result_are_a_persons_only_where_one_was_asked() {
    let record = |source: &str| {
        let mut record = returns("1", "ok", Some(false), json!({}));
        record["permissionDecision"] = json!({"decision": "accept", "source": source});
        let blocks = record["message"]["content"].as_array_mut().unwrap();
        blocks.push(json!({"type": "text", "text": "and mind the log"}));
        record
    };
    let call = calls("1", "Bash", json!({"command": "make"}));
    let said = |source: &str| fold_all(&[call.clone(), record(source)]).prompts.len();
    assert_eq!([said("user_temporary"), said("config"), said("hook")], [1, 0, 0]);
}

#[test]
fn a_refused_command_did_not_run_and_a_broken_off_one_may_have() {
    let mut refused = returns(
        "1",
        "The user doesn't want to proceed",
        Some(true),
        json!("User rejected tool use"),
    );
    refused["toolDenialKind"] = json!("user-rejected");
    let mark = json!({"type": "user", "rowSource": "harness", "message": {"role": "user",
        "content": [{"type": "text", "text": "[Request interrupted by user for tool use]"}]}});
    let call = calls("1", "Bash", json!({"command": "make"}));
    let broken_off = fold_all(&[call.clone(), refused.clone(), mark]);
    assert_eq!(broken_off.ending, Some(Ending::Interrupted));
    assert_eq!(broken_off.commands[0].command, "make");
    assert_eq!(broken_off.commands[0].exit_code, None);
    let went_on = fold_all(&[call, refused, says("Then not.", "end_turn")]);
    assert_eq!(went_on.commands, []);
    assert_eq!(went_on.ending, Some(Ending::Asks("Bash: make".into())));
}

#[test]
fn only_what_a_person_typed_is_a_prompt() {
    let mut meta = typed("meta");
    meta["isMeta"] = json!(true);
    let mut side = typed("side");
    side["isSidechain"] = json!(true);
    let mut hook = typed("Stop hook feedback:\nx");
    hook["rowSource"] = json!("hook");
    let queued = |fields: Value| json!({"type": "attachment", "attachment": fields});
    let transcript = fold_all(&[
        typed("first"),
        meta,
        side,
        hook,
        typed("<system-reminder>x</system-reminder>"),
        typed("<local-command-stdout>x</local-command-stdout>"),
        typed("<command-name>/clear</command-name><command-args></command-args>"),
        typed("<command-name>/fix</command-name>\n<command-args>issue 7</command-args>"),
        json!({"type": "user", "message": {"content": [{"type": "text", "text": "with"}, {"type": "image"},
            {"type": "text", "text": "image"}]}}),
        queued(json!({"type": "queued_command", "prompt": "also", "commandMode": "prompt"})),
        queued(
            json!({"type": "queued_command", "prompt": "done", "commandMode": "task-notification"}),
        ),
        queued(json!({"type": "queued_command", "prompt": "meta", "isMeta": true})),
        typed("[Request interrupted by user] is what it printed"),
    ]);
    let prompts: Vec<_> = transcript.prompts.iter().map(|prompt| &*prompt.text).collect();
    assert_eq!(
        prompts,
        [
            "first",
            "/fix issue 7",
            "with\n\nimage",
            "also",
            "[Request interrupted by user] is what it printed"
        ]
    );
    assert_eq!(transcript.prompts[0].at, Some(Timestamp(1_795_997_341)));
}
