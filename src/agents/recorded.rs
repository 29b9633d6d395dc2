//! Tests only: what the real agents left, in `tests/agents/<agent>/`, read by their parsers and
//! compared with `<name>.expected`, which `UPDATE=1` rewrites.
//!
//! Proved here for every recording: the JSON may be spaced or compact, unknown records and fields
//! change nothing, any prefix folds, and a torn last line adds a warning and nothing else.

use crate::model::time::Timestamp;
use crate::model::transcript::{Sign, Transcript};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

type Fold = fn(&mut Transcript, &[u8]);
type Signs = fn(&[u8], Timestamp) -> Vec<Sign>;

pub(super) const NOW: Timestamp = Timestamp(1_795_997_341);

fn folder(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(agent)
}

/// The recordings of an agent, by name.
pub(super) fn names(agent: &str) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder(agent))
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".transcript.jsonl").map(str::to_owned)
        })
        .collect();
    names.sort();
    assert!(names.len() > 5, "recordings of {agent} are missing");
    names
}

pub(super) fn read(agent: &str, file: &str) -> String {
    std::fs::read_to_string(folder(agent).join(file)).unwrap_or_default()
}

pub(super) fn folded(fold: Fold, text: &str) -> Transcript {
    let mut transcript = Transcript::default();
    for line in text.split('\n') {
        fold(&mut transcript, line.as_bytes());
    }
    transcript
}

/// What a recording says, in few lines.
pub(super) fn compare_with_expected(agent: &str, fold: Fold, signs: Signs) {
    let mut wrong = Vec::new();
    for name in names(agent) {
        let mut text = String::from("# signs\n");
        let stream = read(agent, &format!("{name}.stream.jsonl"));
        for sign in stream.lines().flat_map(|line| signs(line.as_bytes(), NOW)) {
            writeln!(text, "{sign:?}").unwrap();
        }
        let transcript = read(agent, &format!("{name}.transcript.jsonl"));
        text.push_str(&rendered(&folded(fold, &transcript)));
        let expected = format!("{name}.expected");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(folder(agent).join(&expected), &text).unwrap();
        } else if read(agent, &expected) != text {
            wrong.push(format!("{expected} should be:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A transcript in few lines.
pub(super) fn rendered(transcript: &Transcript) -> String {
    let mut text = String::new();
    let t = transcript;
    writeln!(text, "# transcript\nsession {:?} cwd {:?}", t.agent_session, t.cwd).unwrap();
    writeln!(text, "model {:?} skills {:?} summary {:?}", t.model, t.skills, t.summary).unwrap();
    for prompt in &t.prompts {
        writeln!(text, "prompt {:?} at {:?}", prompt.text, prompt.at.map(|at| at.0)).unwrap();
    }
    for item in &t.plan {
        writeln!(text, "plan {:?} {:?}", item.status, item.text).unwrap();
    }
    for file in &t.files {
        writeln!(text, "file {:?} {}", file.kind, file.path).unwrap();
    }
    for run in &t.commands {
        writeln!(text, "command {:?} exit {:?} tail {:?}", run.command, run.exit_code, run.tail)
            .unwrap();
    }
    let mut open: Vec<_> = t.open_calls.values().collect();
    open.sort_by(|a, b| (&a.tool, &a.summary).cmp(&(&b.tool, &b.summary)));
    for call in open {
        writeln!(text, "open {} {:?}", call.tool, call.summary).unwrap();
    }
    for message in &t.messages {
        writeln!(text, "message {message:?}").unwrap();
    }
    for reading in &t.readings {
        writeln!(
            text,
            "reading {} min {} permille resets {:?} at {} by {}",
            reading.window_minutes,
            reading.used_permille,
            reading.resets_at.map(|at| at.0),
            reading.observed_at.0,
            reading.source
        )
        .unwrap();
    }
    writeln!(text, "ending {:?}", t.ending).unwrap();
    for warning in &t.warnings {
        writeln!(text, "warning {warning}").unwrap();
    }
    text
}

/// Every recording of `agent`, bent in ways that must not matter.
pub(super) fn withstand(agent: &str, fold: Fold, signs: Signs) {
    for name in names(agent) {
        let transcript = read(agent, &format!("{name}.transcript.jsonl"));
        let whole = rendered(&folded(fold, &transcript));

        let compact = respelt(&transcript, |value| serde_json::to_string(value).unwrap());
        assert_eq!(rendered(&folded(fold, &compact)), whole, "{name}, compact");
        let spaced = respelt(&transcript, |value| {
            serde_json::to_string_pretty(value).unwrap().replace('\n', " ")
        });
        assert_eq!(rendered(&folded(fold, &spaced)), whole, "{name}, spaced");

        let grown = respelt(&transcript, |value| {
            let mut value = value.clone();
            let unknown = serde_json::json!({"type": "assistant", "error": ["rate_limit"]});
            value.as_object_mut().unwrap().insert("zz_new".to_owned(), unknown.clone());
            format!("{value}\n{{\"type\":\"zz-new\",\"message\":{unknown},\"payload\":7}}")
        });
        assert_eq!(rendered(&folded(fold, &grown)), whole, "{name}, grown");

        let stream = read(agent, &format!("{name}.stream.jsonl"));
        let compact = respelt(&stream, |value| serde_json::to_string(value).unwrap());
        for (one, other) in stream.lines().zip(compact.lines()) {
            assert_eq!(signs(one.as_bytes(), NOW), signs(other.as_bytes(), NOW), "{name}: {one}");
        }

        // Whole lines, then every one of them torn: nothing but a warning comes of it.
        let mut sofar = Transcript::default();
        for line in transcript.lines() {
            let before = rendered(&sofar);
            for cut in [1, line.len() / 3, line.len() / 2, line.len() - 1] {
                let mut torn = sofar.clone();
                let bytes = &line.as_bytes()[..cut];
                fold(&mut torn, bytes);
                assert_eq!(torn.warnings.len(), 1, "{name}: {}", String::from_utf8_lossy(bytes));
                torn.warnings.clear();
                assert_eq!(rendered(&torn), before);
                assert_eq!(signs(bytes, NOW), []);
            }
            fold(&mut sofar, line.as_bytes());
        }
        assert_eq!(rendered(&sofar), whole);
    }
}

/// Each line of `text`, written anew.
fn respelt(text: &str, spell: impl Fn(&serde_json::Value) -> String) -> String {
    text.lines().map(|line| spell(&serde_json::from_str(line).unwrap()) + "\n").collect()
}
