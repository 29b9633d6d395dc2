//! What a contract keeps: the cap holds for any input, no secret gets in, nothing earlier is
//! lost, and the same facts give the same bytes.

use super::attach::digest;
use super::*;
use crate::model::contract::{CORE_BYTES_MOST, Standing};
use crate::model::session::DeclaredKind;
use crate::model::specimen::{Leg, SECRET, core, declared, file, item, run};
use crate::model::transcript::{OpenCall, PlanStatus, Prompt};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;

fn texts(said: &[crate::model::contract::Statement]) -> Vec<&str> {
    said.iter().map(|said| said.text.as_str()).collect()
}

/// What holds for every draft.
fn check(draft: &Draft) {
    assert!(core(&draft.contract).len() <= CORE_BYTES_MOST);
    let names: Vec<_> = draft.attachments.iter().map(|(name, _)| name.as_str()).collect();
    let bound: Vec<_> =
        draft.contract.attachments.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, bound);
    assert_eq!(names[0], MANIFEST);
    for ((_, bytes), entry) in draft.attachments.iter().zip(&draft.contract.attachments) {
        assert_eq!((entry.size_bytes, &entry.sha256), (bytes.len() as u64, &digest(bytes)));
    }
}

#[test]
fn a_plain_leg_is_kept_whole() {
    let draft = Leg::first().build();
    check(&draft);
    let c = &draft.contract;
    assert_eq!(c.task_goal.text, "Add a login page");
    assert_eq!(c.initial_prompt.text, "Add a login page\n\nUse the existing session table.");
    assert_eq!(texts(&c.later_prompts), ["Keep the old route working."]);
    assert_eq!(c.tasks_remaining, ["Write the form", "Test the form"]);
    assert_eq!(c.next_action.as_ref().unwrap().text, "Write the form");
    assert_eq!(texts(&c.decisions), ["Plain HTML, no framework", "Sessions last a day"]);
    assert_eq!(c.decisions[1].by, "commit 1a2b3c4");
    assert_eq!(c.plan[0].standing, Standing::Quoted);
    assert_eq!(c.do_not_redo[0].standing, Standing::Declared);
    assert_eq!(c.file_manifest.total, 2);
    assert_eq!(c.from.agent_session.as_deref(), Some("8f14e45f"));
    let names: Vec<_> = draft.attachments.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [MANIFEST, COMMANDS, DIFF]);
    assert_eq!(c.attachments[1].count, 3);
    assert_eq!(core(c), core(&Leg::first().build().contract));
}

#[test]
fn what_the_records_say_was_decided_and_refused_is_quoted() {
    let mut leg = Leg::first();
    leg.transcript.answered("Which key?", SECRET);
    leg.transcript.decided("A table: a lock file fails on NFS");
    leg.transcript.refused("Bash: rm -rf build", "it is shared");
    let c = leg.build().contract;
    let of = |said: &crate::model::contract::Statement| (said.by.clone(), said.standing);
    assert!(
        c.decisions[2].text.starts_with("the user answered \"Which key?\" with: ["),
        "{:?}",
        c.decisions
    );
    assert_eq!(of(&c.decisions[2]), ("claude leg 1".into(), Standing::Quoted));
    assert_eq!(c.decisions[3].text, "A table: a lock file fails on NFS");
    assert_eq!(of(&c.decisions[3]), ("claude leg 1".into(), Standing::Quoted));
    let refused = c.do_not_redo.last().unwrap();
    assert_eq!(
        refused.text,
        "the user refused this call: Bash: rm -rf build (and said: it is shared)"
    );
    assert_eq!(of(refused), ("claude leg 1".into(), Standing::Quoted));
}

#[test]
fn what_earlier_legs_knew_lives_on() {
    let mut first = Leg::first();
    first.session.declared.push(declared(DeclaredKind::DoNotRedo, &"long ".repeat(300), "user", 1));
    let next = first.next();
    let c = next.build().contract;
    let before = first.build().contract;
    assert_eq!(c.parent_contract, next.previous.as_ref().map(|(_, digest)| digest.clone()));
    assert_eq!(c.plan, before.plan);
    assert_eq!(c.tasks_remaining, before.tasks_remaining);
    assert_eq!(c.next_action, before.next_action);
    assert_eq!(c.later_prompts, before.later_prompts);
    assert_eq!(c.decisions[0].text, "Sessions last a day");
    // Shortened in the contract before, whole in the session: it is one fact.
    assert_eq!(c.do_not_redo.len(), 2);
    assert_eq!(c.do_not_redo, before.do_not_redo);
}

#[test]
fn what_was_next_before_does_not_outlive_its_being_done() {
    let mut next = Leg::first().next();
    let before = next.previous.as_mut().unwrap();
    before.0.plan.clear();
    before.0.next_action.as_mut().unwrap().text = "Write the form".to_owned();
    assert_eq!(next.build().contract.next_action.unwrap().text, "Write the form");
    next.leg_end.outcome = crate::model::session::Outcome::Done;
    assert_eq!(next.build().contract.next_action, None);
    next.leg_end.outcome = crate::model::session::Outcome::Limit;
    let done = declared(DeclaredKind::Done, "Write the form, and its test", "codex leg 2", 2);
    next.session.declared.push(done);
    assert_eq!(next.build().contract.next_action, None);
}

#[test]
fn a_new_plan_and_the_last_word_win() {
    let mut next = Leg::first().next();
    next.transcript.plan = vec![item("Style the form", PlanStatus::Pending)];
    assert_eq!(next.build().contract.next_action.unwrap().text, "Style the form");
    for text in ["first", "then", "Style the form"] {
        next.session.declared.push(declared(DeclaredKind::Next, text, "codex leg 2", 2));
    }
    next.session.declared.push(declared(DeclaredKind::Plan, "Ask for review", "user", 1));
    let c = next.build().contract;
    assert_eq!(c.tasks_remaining, ["Style the form", "Ask for review"]);
    assert_eq!(c.next_action.unwrap().by, "codex leg 2");
    next.session.declared.push(declared(DeclaredKind::Done, "Style the form", "codex leg 2", 2));
    let c = next.build().contract;
    assert_eq!(c.tasks_remaining, ["Ask for review"]);
    assert_eq!(c.next_action.unwrap().text, "Ask for review");
}

#[test]
fn our_own_words_are_not_the_users() {
    let mut leg = Leg::first();
    let first = crate::model::envelope::first_prompt(
        &leg.session.task,
        leg.session.session_id.as_str(),
        "git-relay",
    );
    for text in
        [&first, "<!-- git relay contract c-3f2a1b2c -->\nx", crate::model::envelope::OPENING]
    {
        leg.transcript.prompts.push(Prompt { text: text.into(), at: None });
    }
    assert_eq!(texts(&leg.build().contract.later_prompts), ["Keep the old route working."]);
}

#[test]
fn limits_that_the_user_set_are_quoted_from_task_and_prompts() {
    let mut leg = Leg::first();
    leg.session.task += "\nDo not touch vendor/.";
    let later = "Never add a crate. Thanks.";
    leg.transcript.prompts.push(Prompt { text: later.into(), at: None });
    leg.transcript.messages.push("You must not believe me. Never.".into());
    leg.session.declared.push(declared(DeclaredKind::Constraint, "Never add a crate.", "user", 1));
    let c = leg.build().contract;
    let wanted = ["No new dependency", "Never add a crate.", "Do not touch vendor/."];
    assert_eq!(texts(&c.constraints), wanted);
    assert_eq!((&*c.constraints[2].by, c.constraints[2].standing), ("user", Standing::Quoted));
    // They live on when the prompt is long gone.
    leg.previous = None;
    let next = leg.next().build().contract;
    assert!(wanted.iter().all(|text| texts(&next.constraints).contains(text)), "{next:?}");
    assert_eq!(next.constraints.len(), wanted.len());
}

#[test]
fn what_is_claimed_and_not_seen_is_told_apart() {
    let mut leg = Leg::first();
    leg.in_base.insert("notes.md".into());
    let items = ["Write gone.txt", "Update notes.md", "Read notes.md", "Fix src/login.rs"];
    leg.transcript.plan = items.map(|text| item(text, PlanStatus::Completed)).into();
    leg.files.push(file("src/login.rs", true));
    let c = leg.build().contract;
    let unseen = c.plan.iter().filter(|item| item.not_seen_in_git).map(|item| &*item.text);
    assert_eq!(unseen.collect::<Vec<_>>(), ["Write gone.txt", "Update notes.md"]);
}

#[test]
fn a_subagent_is_quoted_as_what_it_is() {
    let mut leg = Leg::first();
    leg.transcript.reports.push("I found three callers.".into());
    let c = leg.build().contract;
    assert_eq!(c.last_messages[0].by, "claude leg 1, its subagent");
}

#[test]
fn failing_commands_come_first_and_each_counts_once() {
    let mut leg = Leg::first();
    leg.transcript.commands = vec![run("make", 2, "broken")];
    for n in 0..40 {
        leg.transcript.commands.push(run(&format!("true {}", n % 20), 0, ""));
    }
    let draft = leg.build();
    let kept = &draft.contract.commands_run;
    assert_eq!(kept[0].command, "make");
    assert_eq!(kept.len(), 12);
    assert_eq!(kept[11].command, "true 19");
    assert_eq!(draft.contract.attachments[1].count, 41);
}

#[test]
fn no_secret_gets_in_anywhere() {
    let (head, rest) = SECRET.split_at(9);
    let odd_path = BASE64_STANDARD.encode([SECRET.as_bytes(), b" \xff"].concat());
    for mark in [SECRET.to_owned(), format!("{head}\u{1b}[0m{rest}")] {
        let mut leg = Leg::first().planted(&mark);
        leg.session.task += &format!(" {SECRET}").repeat(3000);
        leg.files.push(FileEntry {
            path: None,
            path_base64: Some(odd_path.clone()),
            ..file("", true)
        });
        let draft = leg.build();
        check(&draft);
        let mut all = String::from_utf8(core(&draft.contract)).unwrap();
        for (_, bytes) in &draft.attachments {
            all.push_str(std::str::from_utf8(bytes).unwrap());
        }
        assert!(!all.contains(rest) && !all.contains(&odd_path));
        assert!(draft.contract.redactions.values().sum::<u32>() > 3000);
    }
}

/// A leg in which everything is far too much of it.
fn absurd(count: usize, text: &str, task_bytes: usize) -> Leg {
    let mut leg = Leg::first();
    leg.session.task = text.repeat(task_bytes / text.len());
    leg.session.workplace.branch = text.repeat(20);
    leg.breach.text = Some(text.repeat(100));
    for n in 0..count {
        let long = format!("{n} {}", text.repeat(1 + n % 60));
        leg.session.declared.extend(
            DeclaredKind::ALL
                .map(|kind| declared(kind, &format!("{long}{kind:?}"), &text.repeat(9), 1)),
        );
        leg.transcript.prompts.push(Prompt { text: long.clone(), at: None });
        leg.transcript.plan.push(item(&long, PlanStatus::Pending));
        leg.transcript.commands.push(run(&long, 1, &long));
        let call = OpenCall { tool: text.into(), summary: long.clone() };
        leg.transcript.open_calls.insert(n.to_string(), call);
        leg.transcript.skills.push(long.clone());
        leg.transcript.messages.push(long.clone());
        leg.transcript.warnings.push(long.clone());
        leg.snapshot.staged.push(long.clone());
        leg.in_flight.push(InFlight { path: long.clone(), line: 1, snippet: long });
    }
    leg.candidates = vec![crate::model::specimen::agent(&"a".repeat(32)); 100];
    leg.transcript.summary = Some(text.repeat(1000));
    leg
}

#[test]
fn the_cap_holds_whatever_comes() {
    for text in ["\"\\\n", "word ", "日本語", "\u{202e}", "x"] {
        let mut leg = absurd(120, text, if text == "x" { 1_000_000 } else { 50_000 });
        let files: u64 = if text == "word " { 10_000 } else { 100 };
        for n in 0..files {
            leg.files
                .push(file(&format!("src/{n:05}/{}", &text.repeat(n as usize % 50)), n % 2 == 0));
        }
        let draft = leg.build();
        check(&draft);
        let c = &draft.contract;
        assert_eq!(c.attachments[0].count, files + 2);
        let kept = [&c.do_not_redo, &c.decisions, &c.constraints].map(Vec::len);
        let size = core(c).len();
        assert!(c.tasks_remaining.len() >= 8 && kept >= [8, 3, 3], "{text:?} {kept:?} {size}");
        assert!(c.constraints.len() >= 3 && c.next_action.is_some());
        assert!(c.initial_prompt.text.contains(" bytes cut ...]"));
        let names: Vec<_> = draft.attachments.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [MANIFEST, COMMANDS, DIFF, PROMPT, FACTS]);
        assert!(c.not_captured.iter().any(|missing| missing.what == "doNotRedo"));
    }
}

#[test]
fn many_files_alone_fill_the_core_and_no_more() {
    let mut leg = Leg::first();
    for n in 0..10_000 {
        leg.files.push(file(&format!("src/{n:05}.rs"), true));
    }
    let draft = leg.build();
    check(&draft);
    let files = &draft.contract.file_manifest.files;
    assert!(files.len() >= 25, "{}", files.len());
    assert!(files.iter().any(|file| !file.committed));
    assert!(!draft.contract.last_messages.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn the_cap_holds_at_random(count in 0usize..60, text in "(\\PC|[\n\"\\\\\u{0}]){1,40}") {
        let leg = absurd(count, &text, 20_000);
        let draft = leg.build();
        check(&draft);
        prop_assert_eq!(&draft, &leg.build());
        // What was built can be the ground of the next one.
        check(&leg.next().build());
    }
}
