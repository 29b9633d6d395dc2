//! Where Claude Code keeps its sessions: `projects/<encoded cwd>/<session>.jsonl` below its config
//! folder, and `sessions/<pid>.json` for each running one. What subagents did lies in folders
//! beside a session's file (older versions: in `agent-*.jsonl`).
//!
//! The encoding of the folder is lossy, so that its name says nothing: every file is asked.

use crate::agents::loose::skim;
use crate::agents::store::{Context, Head, Held, Kept, Store, id_of, plain_id};
use crate::host::{files, records};
use crate::model::session::Process;
use std::path::{Path, PathBuf};

pub(super) const STORE: Store = Store {
    variable: "CLAUDE_CONFIG_DIR",
    below_home: ".claude",
    files: sessions,
    head,
    context,
    held,
};

const PID_FILE_BYTES_MOST: u64 = 64 * 1024;

fn sessions(home: &Path, each: &mut dyn FnMut(Kept)) {
    for project in records::folders(&home.join("projects")) {
        for entry in records::entries(&project) {
            let id = id_of(&entry.file_name(), ".jsonl").filter(|id| !id.starts_with("agent-"));
            if let Some(id) = id {
                each(Kept::File(entry.path(), id));
            }
        }
    }
}

fn head(head: &mut Head, line: &[u8]) {
    head.cwd = skim::text_at(line, &["cwd"]).map(|cwd| PathBuf::from(&*cwd));
    head.is_part = head.cwd.is_some() && skim::json_at(line, &["isSidechain"]) == Some(b"true");
}

/// The usage that came with the model's last answer. How much fits is not told.
fn context(line: &[u8]) -> Option<Context> {
    if skim::json_at(line, &["subtype"]) == Some(b"\"compact_boundary\"") {
        return Some(Context::default());
    }
    if skim::json_at(line, &["type"]) != Some(b"\"assistant\"")
        || skim::json_at(line, &["isSidechain"]) == Some(b"true")
    {
        return None;
    }
    let usage = skim::json_at(line, &["message", "usage"])?;
    let tokens = |key| skim::number_at(usage, &[key]).unwrap_or(0);
    let used = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let used = used.into_iter().map(tokens).fold(0, u64::saturating_add);
    // What Claude says in the model's place took nothing.
    (used > 0).then_some(Context { used: Some(used), most: None })
}

/// `sessions/<pid>.json`: it outlives a killed process, so that it counts only for a process that
/// lives and bears Claude's name.
fn held(process: Process, home: &Path) -> Vec<Held> {
    let path = home.join("sessions").join(format!("{}.json", process.pid));
    let read = files::read_plain(&path, 0, PID_FILE_BYTES_MOST).ok().flatten();
    read.and_then(|(bytes, _)| said(&bytes, process)).into_iter().collect()
}

/// What a process's own file says of it.
fn said(bytes: &[u8], process: Process) -> Option<Held> {
    let began = skim::text_at(bytes, &["procStart"]);
    if began.is_some_and(|ticks| ticks != process.start_ticks.to_string()) {
        return None;
    }
    let is_busy = skim::text_at(bytes, &["status"]).map(|status| status != "idle");
    Some(Held { id: plain_id(&skim::text_at(bytes, &["sessionId"])?)?, is_busy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::recorded::{names, read};

    fn first(line: &[u8]) -> Head {
        let mut found = Head::default();
        head(&mut found, line);
        found
    }

    #[test]
    fn every_recording_says_where_it_was_started_and_how_full_it_is() {
        for name in names("claude") {
            let text = read("claude", &format!("{name}.transcript.jsonl"));
            let found = text.lines().map(|line| first(line.as_bytes())).find(|it| it.cwd.is_some());
            let found = found.unwrap_or_default();
            assert!(found.cwd.is_some_and(|cwd| cwd.starts_with("/home/dev/demo")), "{name}");
            assert!(!found.is_part, "{name}");
            let used = text.lines().rev().find_map(|line| context(line.as_bytes()));
            if let Some(used) = used {
                assert_eq!(used, Context { used: Some(5500), most: None }, "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_of_the_models_fills_nothing() {
        let usage = r#""usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":9}"#;
        let line = |kind: &str, part: bool| {
            format!(r#"{{"type":"{kind}","isSidechain":{part},"message":{{{usage}}}}}"#)
        };
        let used = Some(Context { used: Some(3), most: None });
        assert_eq!(context(line("assistant", false).as_bytes()), used);
        assert_eq!(context(line("assistant", true).as_bytes()), None);
        assert_eq!(context(line("user", false).as_bytes()), None);
        // After a compaction nobody knows until the next answer.
        let compacted = br#"{"type":"system","subtype":"compact_boundary"}"#;
        assert_eq!(context(compacted), Some(Context::default()));
    }

    #[test]
    fn a_process_is_the_one_that_its_file_tells_of() {
        let process = Process { pid: 4242, start_ticks: 77 };
        let text = |ticks: &str, id: &str| {
            format!(r#"{{"pid":4242,"sessionId":"{id}","procStart":"{ticks}","status":"idle"}}"#)
        };
        let held = said(text("77", "488b881a").as_bytes(), process);
        assert_eq!(held, Some(Held { id: "488b881a".into(), is_busy: Some(false) }));
        assert_eq!(said(text("78", "488b881a").as_bytes(), process), None);
        assert_eq!(said(text("77", "../488b881a").as_bytes(), process), None);
        assert_eq!(said(b"{\"sessionId\":\"a\"", process).map(|held| held.is_busy), Some(None));
    }
}
