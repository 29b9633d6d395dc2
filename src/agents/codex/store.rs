//! Where Codex keeps its sessions: `sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl` below
//! its config folder, and `archived_sessions/` for what was put away. A running one holds its file
//! open. A subagent's thread has a file of its own among them.

use crate::agents::loose;
use crate::agents::store::{Context, Head, Held, Store, id_of};
use crate::host::{records, running};
use crate::model::session::Process;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(super) const STORE: Store =
    Store { variable: "CODEX_HOME", below_home: ".codex", files: sessions, head, context, held };

/// `rollout-2026-11-30T00-09-00-`, as long as it always is.
const BEFORE_ID: usize = "rollout-2026-11-30T00-09-00-".len();

fn sessions(home: &Path, each: &mut dyn FnMut(PathBuf, String)) {
    let mut folders = vec![home.join("sessions")];
    for _ in ["year", "month", "day"] {
        folders = folders.iter().flat_map(|folder| records::folders(folder)).collect();
    }
    folders.push(home.join("archived_sessions"));
    for folder in folders {
        for entry in records::entries(&folder) {
            if let Some(id) = thread(&entry.file_name()) {
                each(entry.path(), id);
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
    head.cwd = loose::text_at(line, &["payload", "cwd"]).map(|cwd| PathBuf::from(&*cwd));
    head.is_part = loose::json_at(line, &["payload", "source", "subagent"]).is_some();
}

fn context(line: &[u8]) -> Option<Context> {
    if loose::json_at(line, &["type"]) == Some(b"\"compacted\"") {
        return Some(Context::default());
    }
    let info = loose::json_at(line, &["payload", "info"])?;
    let used = loose::number_at(info, &["last_token_usage", "total_tokens"]);
    let most = loose::number_at(info, &["model_context_window"]);
    used.map(|used| Context { used: Some(used), most })
}

fn held(process: Process, home: &Path) -> Option<Held> {
    let home = std::fs::canonicalize(home).ok()?;
    let open = running::open_files_of(process.pid).into_iter();
    let id = open.filter(|path| path.starts_with(&home)).find_map(|path| thread(path.file_name()?));
    id.map(|id| Held { id, is_busy: None })
}
