//! Where Codex keeps its sessions: `sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl` below
//! its config folder, and `archived_sessions/` for what was put away. A running one holds its file
//! open. A subagent's thread has a file of its own among them. Old ones may be compressed
//! (`.jsonl.zst`): these are counted, not read.

use crate::agents::loose::skim;
use crate::agents::store::{Context, Head, Held, Kept, Store, id_of};
use crate::host::{records, running};
use crate::model::session::Process;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(super) const STORE: Store =
    Store { variable: "CODEX_HOME", below_home: ".codex", files: sessions, head, context, held };

/// `rollout-2026-11-30T00-09-00-`, as long as it always is.
const BEFORE_ID: usize = "rollout-2026-11-30T00-09-00-".len();

fn sessions(home: &Path, each: &mut dyn FnMut(Kept)) {
    let mut folders = vec![home.join("sessions")];
    for _ in ["year", "month", "day"] {
        folders = folders.iter().flat_map(|folder| records::folders(folder)).collect();
    }
    folders.push(home.join("archived_sessions"));
    for folder in folders {
        for entry in records::entries(&folder) {
            let name = entry.file_name();
            match thread(&name) {
                Some(id) => each(Kept::File(entry.path(), id)),
                None if name.as_encoded_bytes().ends_with(b".jsonl.zst") => each(Kept::Packed),
                None => {}
            }
        }
    }
}

fn thread(name: &OsStr) -> Option<String> {
    let id = id_of(name, ".jsonl")?;
    (id.starts_with("rollout-") && id.is_char_boundary(BEFORE_ID))
        .then(|| id[BEFORE_ID..].to_owned())
        .filter(|id| !id.is_empty() && !id.starts_with('-'))
}

fn head(head: &mut Head, line: &[u8]) {
    head.cwd = skim::text_at(line, &["payload", "cwd"]).map(|cwd| PathBuf::from(&*cwd));
    let is_from = |kind| skim::json_at(line, &["payload", "source", kind]).is_some();
    head.is_part = is_from("subagent") || is_from("internal");
}

fn context(line: &[u8]) -> Option<Context> {
    if skim::json_at(line, &["type"]) == Some(b"\"compacted\"") {
        return Some(Context::default());
    }
    let info = skim::json_at(line, &["payload", "info"])?;
    let used = skim::number_at(info, &["last_token_usage", "total_tokens"]);
    let most = skim::number_at(info, &["model_context_window"]);
    used.map(|used| Context { used: Some(used), most })
}

/// One process may serve several sessions: an app server that terminals connect to.
fn held(process: Process, home: &Path) -> Vec<Held> {
    let Ok(home) = home.canonicalize() else { return Vec::new() };
    let open = running::open_files_of(process.pid).into_iter();
    let mut ids: Vec<String> = open
        .filter(|path| path.starts_with(&home))
        .filter_map(|path| thread(path.file_name()?))
        .collect();
    ids.sort();
    ids.dedup();
    ids.into_iter().map(|id| Held { id, is_busy: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::recorded::{names, read};

    #[test]
    fn every_recording_says_where_it_was_started_in_its_first_bytes() {
        for name in names("codex") {
            let text = read("codex", &format!("{name}.transcript.jsonl"));
            // The vendor's text that follows in life is tens of kilobytes.
            let mut found = Head::default();
            head(&mut found, &text.as_bytes()[..600]);
            assert!(found.cwd.is_some_and(|cwd| cwd.starts_with("/home/dev/demo")), "{name}");
            assert!(!found.is_part, "{name}");
            let used = text.lines().rev().find_map(|line| context(line.as_bytes()));
            if let Some(used) = used {
                assert_eq!(used.most, Some(258_400), "{name}");
                assert!(used.used.is_some_and(|tokens| tokens > 0), "{name}");
            }
        }
    }

    #[test]
    fn a_thread_of_another_is_a_part_of_it() {
        for (source, is_part) in [
            (r#""exec""#, false),
            (r#"{"subagent":{"thread_spawn":{"depth":1}}}"#, true),
            (r#"{"internal":"guardian"}"#, true),
            (r#"{"custom":"x"}"#, false),
        ] {
            let line =
                format!(r#"{{"type":"session_meta","payload":{{"source":{source},"cwd":"/x"}}}}"#);
            let mut found = Head::default();
            head(&mut found, line.as_bytes());
            assert_eq!(found, Head { cwd: Some("/x".into()), is_part }, "{source}");
        }
    }

    #[test]
    fn a_file_is_a_session_by_its_name() {
        let id = |name: &str| thread(OsStr::new(name));
        let whole = "rollout-2026-11-30T00-09-01-01a229c8-95fc-72f0-b5e0-53b6db2802d7";
        let expected = Some(whole[BEFORE_ID..].to_owned());
        assert_eq!(id(&format!("{whole}.jsonl")), expected);
        for other in [
            "rollout-2026-11-30T00-09-01-.jsonl",
            "rollout-2026-11-30T00-09-01.jsonl",
            "history.jsonl",
            "rollout-2026-11-30T00-09-01-a/b.jsonl",
            "rollout-2026-11-30T00-09-01-\u{e9}.jsonl",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
        assert_eq!(id(&format!("{whole}.jsonl.zst")), None);
    }
}
