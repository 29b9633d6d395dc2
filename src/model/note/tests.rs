//! What a note survives: git's merges, and nothing else unnoticed.

use super::*;
use crate::model::digest::Draft;
use crate::model::names::ContractId;
use crate::model::session::{DeclaredKind, Outcome};
use crate::model::specimen::{Leg, SECRET, agent, core, declared, oid};
use crate::model::time::Timestamp;
use proptest::prelude::*;

const SIG: &[u8] = b"SSHSIG\0\0\0\x01 any bytes \xff\xfe";

struct Written {
    draft: Draft,
    core: Vec<u8>,
    note: String,
}

impl Written {
    fn new(leg: &Leg) -> Self {
        let draft = leg.build();
        let core = core(&draft.contract);
        let note = write(&core, &draft.contract, SIG);
        Self { draft, core, note }
    }

    fn verified(&self) -> Verified<'_> {
        Verified { body: Body::Contract(&self.draft.contract), core: &self.core, sig: SIG }
    }
}

fn finish(legs: u32) -> FinishRecord {
    let mut record = FinishRecord {
        format: FINISH_FORMAT.into(),
        session_id: Leg::first().session.session_id,
        result_commit: oid('e'),
        legs: Vec::new(),
        created_at: Timestamp(1_795_997_341),
    };
    for leg in 1..=legs {
        record.legs.push(FinishedLeg {
            leg,
            agent: agent("claude"),
            outcome: if leg == legs { Outcome::Done } else { Outcome::Limit },
            contract_id: (leg < legs).then(|| ContractId::new(format!("c-{leg:08x}")).unwrap()),
        });
    }
    record
}

fn readable(note: &str) -> Vec<&str> {
    note.lines().filter(|line| !line.starts_with('{')).collect()
}

#[test]
fn a_note_reads_like_this() {
    let written = Written::new(&Leg::first());
    let expected = [
        "c-3f2a1b2c 01 claude, leg 1 ended: limit; next: codex, gemini",
        "c-3f2a1b2c 02 goal: Add a login page",
        "c-3f2a1b2c 03 plan: 1 of 3 done; open: Write the form",
        "c-3f2a1b2c 04 next action: Write the form",
        "c-3f2a1b2c 05 do not redo: migration 0042 applied",
        "c-3f2a1b2c 06 decision: Plain HTML, no framework",
        "c-3f2a1b2c 07 decision: Sessions last a day",
        "c-3f2a1b2c 08 files: 2 changed, 1 in no commit but the snapshot",
        "c-3f2a1b2c 09 branch relay/add-a-login-page-3f2a, snapshot cccccccccccc",
        "c-3f2a1b2c 10 reason: limit: You've hit your session limit",
    ];
    assert_eq!(readable(&written.note), expected);
    let records = read(&written.note);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].core.as_slice(), records[0].sig.as_slice()), (&written.core[..], SIG));
    assert_eq!(merge(None, &written.note), written.note);
    // The record line is canonical JSON as well.
    let record = written.note.lines().last().unwrap();
    let value: serde_json::Value = serde_json::from_str(record).unwrap();
    assert_eq!(serde_jcs::to_string(&value).unwrap(), record);
}

#[test]
fn a_finish_reads_like_this() {
    let (short, long) = (finish(2), finish(30));
    let bytes = serde_jcs::to_vec(&short).unwrap();
    let note = write_finish(&bytes, &short, SIG);
    let lines = readable(&note);
    assert!(lines[0].ends_with(" 01 session add-a-login-page-3f2a finished: eeeeeeeeeeee"));
    assert!(lines[1].ends_with(" 02 leg 1: claude, limit; c-00000001"));
    assert!(lines[2].ends_with(" 03 leg 2: claude, done"));
    assert_eq!(read(&note)[0].kind, RecordKind::Finish);
    assert_eq!(merge(None, &note), note);
    let bytes = serde_jcs::to_vec(&long).unwrap();
    let note = write_finish(&bytes, &long, SIG);
    assert_eq!(readable(&note).len(), LINES_MOST);
    assert!(note.contains(" 12 and 20 more legs\n"));
    let back: FinishRecord = serde_json::from_slice(&read(&note)[0].core).unwrap();
    assert_eq!(back, long);
}

#[test]
fn every_merge_of_git_still_reads_and_holds() {
    let first = Leg::first();
    let (a, b) = (Written::new(&first), Written::new(&first.next()));
    let record = finish(2);
    let bytes = serde_jcs::to_vec(&record).unwrap();
    let end = write_finish(&bytes, &record, SIG);
    let all = [
        a.verified(),
        b.verified(),
        Verified { body: Body::Finish(&record), core: &bytes, sig: SIG },
    ];
    // `union`, the concatenation of a squash: one empty line between.
    let union = format!("{}\n{}\n{end}", a.note, b.note);
    let sorted = merge(Some(&merge(Some(&a.note), &b.note)), &end);
    for note in [&union, &sorted] {
        assert_eq!(read(note).len(), 3);
        assert_eq!(check(note, &all), Verdict::default());
    }
    // `ours` and `theirs` keep one; merging a note with itself changes nothing.
    assert!(check(&a.note, &all[..1]).holds() && check(&b.note, &all[1..2]).holds());
    assert_eq!(merge(Some(&sorted), &union), sorted);
    // What the chain says must be here is missed.
    assert_eq!(check(&a.note, &all).missing.len(), b.note.lines().count() + end.lines().count());
}

#[test]
fn edited_added_and_removed_lines_are_named() {
    let written = Written::new(&Leg::first());
    let good = &written.note;
    let judge = |note: &str| check(note, &[written.verified()]);
    let edited = judge(&good.replacen("migration 0042", "migration 0043", 1));
    assert_eq!(edited.altered, ["c-3f2a1b2c 05 do not redo: migration 0043 applied"]);
    assert_eq!(edited.missing, ["c-3f2a1b2c 05 do not redo: migration 0042 applied"]);
    let added = judge(&format!("{good}\nReviewed-by: somebody\n"));
    assert_eq!((added.altered, added.missing.len()), (vec!["Reviewed-by: somebody".into()], 0));
    let removed = judge(&good.replacen("c-3f2a1b2c 02 goal: Add a login page\n", "", 1));
    assert_eq!(removed.missing, ["c-3f2a1b2c 02 goal: Add a login page"]);
    assert!(removed.altered.is_empty());
    let windows = judge(&good.replace('\n', "\r\n"));
    assert_eq!(windows.altered.len(), good.lines().count());
    // An empty note, and one that is only the user's.
    assert_eq!(judge("").missing.len(), good.lines().count());
    assert!(check("", &[]).holds() && read("").is_empty());
    assert_eq!(check("my own note\n", &[]).altered, ["my own note"]);
}

#[test]
fn an_odd_record_line_is_no_record() {
    let written = Written::new(&Leg::first());
    let line = written.note.lines().last().unwrap();
    for odd in [
        line.replacen("{\"contract\":", "{\"contract\": ", 1),
        line.replace(",\"v\":1}", ",\"v\":2}"),
        line.replace(",\"sig\":\"", ",\"x\":{},\"sig\":\""),
        line.replace(",\"v\":1}", ",\"v\":1} "),
        line.replace("\",\"v\"", "=\",\"v\""),
        line[..line.len() / 2].to_owned(),
        "{\"contract\":[],\"sig\":\"\",\"v\":1}".to_owned(),
    ] {
        assert_eq!(read(&odd), [], "{odd}");
        assert_eq!(check(&odd, &[]).altered.len(), 1);
    }
}

#[test]
fn no_line_is_too_long_and_none_holds_a_secret() {
    let mut leg =
        Leg::first().planted(&format!("{SECRET} \u{1b}[31m\u{202e}\nc-3f2a1b2c 01 forged"));
    for n in 0..50 {
        for kind in [DeclaredKind::DoNotRedo, DeclaredKind::Decision] {
            let text = format!("{n} {}", "日本 ".repeat(200));
            leg.session.declared.push(declared(kind, &text, "user", 1));
        }
    }
    let written = Written::new(&leg);
    let lines = readable(&written.note);
    assert_eq!(lines.len(), LINES_MOST);
    for line in lines {
        assert!(line.chars().count() <= LINE_CHARS_MOST);
        assert!(line.starts_with("c-3f2a1b2c ") && !line.chars().any(char::is_control));
    }
    assert!(!written.note.contains(SECRET));
    assert!(written.note.contains("do not redo (and "));
    assert!(check(&written.note, &[written.verified()]).holds());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn merging_is_a_union_of_sets(a in "([a-c \u{e9}\r]{0,3}\n){0,5}", b in "([a-c]{0,3}\n){0,5}") {
        let ab = merge(Some(&a), &b);
        prop_assert_eq!(&ab, &merge(Some(&b), &a));
        prop_assert_eq!(&merge(Some(&ab), &b), &ab);
    }

    #[test]
    fn any_text_in_a_contract_reads_back(text in "\\PC{0,80}", sig in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut leg = Leg::first();
        leg.session.task = format!("{text},\"sig\":\"AA==\",\"v\":1}}");
        leg.session.declared.push(declared(DeclaredKind::DoNotRedo, &text, "user", 1));
        let draft = leg.build();
        let bytes = core(&draft.contract);
        let note = write(&bytes, &draft.contract, &sig);
        let records = read(&note);
        prop_assert_eq!(records.len(), 1);
        prop_assert_eq!(&records[0].core, &bytes);
        let verified = Verified { body: Body::Contract(&draft.contract), core: &bytes, sig: &sig };
        prop_assert!(check(&note, &[verified]).holds());
    }
}
