//! Reads a whole transcript, however long, from its file.

use crate::error::Fault;
use crate::host::tail::Tail;
use crate::model::transcript::Transcript;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// What the transcript at `path` holds now. What cannot be read of it is among its warnings; only
/// a file that cannot be read at all is a fault. Nothing of its size is ever held in memory.
///
/// # Errors
/// The file is gone, is no regular file, or cannot be read.
pub fn read(path: &Path, fold: fn(&mut Transcript, &[u8])) -> Result<Transcript> {
    let shown = path.display();
    let meta = fs::metadata(path).with_context(|| format!("cannot read '{shown}'"))?;
    if !meta.is_file() {
        return Err(Fault::refused(format!("'{shown}' is not a regular file")).into());
    }
    let mut transcript = told(path, meta.len(), fold, Transcript::default())?;
    let lineage = std::mem::take(&mut transcript.scratch.lineage);
    let Some((lineage, abandoned)) = lineage.second_telling() else { return Ok(transcript) };
    let mut anew = Transcript::default();
    anew.scratch.lineage = lineage;
    let mut transcript = told(path, meta.len(), fold, anew)?;
    transcript.scratch.lineage = Default::default();
    transcript.warn(&format!("{abandoned} records of branches that were taken back do not count"));
    Ok(transcript)
}

/// Folds the first `size` bytes of the file, to the end of the line there: who writes meanwhile
/// cannot make it endless.
fn told(
    path: &Path,
    size: u64,
    fold: fn(&mut Transcript, &[u8]),
    mut transcript: Transcript,
) -> Result<Transcript> {
    let mut tail = Tail::new(path);
    while tail.offset() < size && tail.read(|line| fold(&mut transcript, line))? {}
    tail.rest(|line| fold(&mut transcript, line));
    if tail.dropped() > 0 {
        transcript.warn("a record was too long and was skipped");
    }
    Ok(transcript)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{ALL, recorded};
    use crate::model::transcript::{COMMANDS_MOST, PROMPTS_MOST, PlanStatus};
    use serde_json::json;
    use std::fmt::Write as _;
    use std::io::{Seek, SeekFrom, Write as _};

    fn read_text(agent: &str, text: &str) -> Transcript {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let agent = ALL.iter().find(|known| known.name == agent).unwrap();
        read(file.path(), agent.fold.unwrap()).unwrap()
    }

    /// Records of Claude's: `(id, parent, record)`.
    fn tree(records: &[(&str, Option<&str>, serde_json::Value)]) -> String {
        let mut text = String::new();
        for (id, parent, record) in records {
            let mut record = record.clone();
            record["uuid"] = json!(id);
            record["parentUuid"] = json!(parent);
            writeln!(text, "{record}").unwrap();
        }
        text
    }

    fn prompt(text: &str) -> serde_json::Value {
        json!({"type": "user", "message": {"content": text}, "promptSource": "typed"})
    }

    fn todos(call: &str, item: &str) -> serde_json::Value {
        json!({"type": "assistant", "message": {"id": call, "model": "m", "content": [
            {"type": "tool_use", "id": call, "name": "TodoWrite",
             "input": {"todos": [{"content": item, "status": "completed"}]}}]}})
    }

    fn bash(call: &str, answer: &str) -> serde_json::Value {
        json!({"type": "assistant", "message": {"id": answer, "model": "m", "content": [
            {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}}]}})
    }

    fn result(call: &str) -> serde_json::Value {
        json!({"type": "user", "toolUseResult": {}, "message": {"content": [
            {"type": "tool_result", "tool_use_id": call, "is_error": false, "content": "ok"}]}})
    }

    #[test]
    fn a_prompt_taken_back_leaves_nothing_behind() {
        let records = [
            ("1", None, prompt("the task")),
            ("2", Some("1"), bash("a", "m1")),
            ("3", Some("2"), result("a")),
            ("4", Some("3"), prompt("a wrong turn")),
            ("5", Some("4"), todos("t1", "Go wrong")),
            ("6", Some("5"), bash("wrong", "m2")),
            ("7", Some("3"), prompt("a better one")),
            ("8", Some("7"), bash("b", "m3")),
            // Parallel calls: each result hangs on its own call.
            ("9", Some("8"), bash("c", "m3")),
            ("10", Some("8"), result("b")),
            ("11", Some("9"), result("c")),
            ("12", Some("11"), todos("t2", "Go right")),
        ];
        let read = read_text("claude", &tree(&records));
        let prompts: Vec<_> = read.prompts.iter().map(|prompt| &*prompt.text).collect();
        assert_eq!(prompts, ["the task", "a better one"]);
        let commands: Vec<_> = read.commands.iter().map(|run| &*run.command).collect();
        assert_eq!(commands, ["a", "b", "c"]);
        assert_eq!(read.plan[0].text, "Go right");
        let open: Vec<_> = read.open_calls.values().map(|call| &*call.tool).collect();
        assert_eq!(open, ["TodoWrite"]);
        assert_eq!(read.warnings, ["3 records of branches that were taken back do not count"]);
    }

    #[test]
    fn a_compaction_stands_for_the_messages_before_it_and_for_nothing_else() {
        let says = |text: &str| {
            json!({"type": "assistant", "message": {"id": text, "model": "m", "content": [
                {"type": "text", "text": text}]}})
        };
        let boundary = json!({"type": "system", "subtype": "compact_boundary",
            "logicalParentUuid": "3"});
        let summary = json!({"type": "user", "isCompactSummary": true,
            "message": {"content": "so far so good"}});
        let records = [
            ("1", None, prompt("the task")),
            ("2", Some("1"), todos("t", "Begin")),
            ("3", Some("2"), says("long ago")),
            ("4", None, boundary),
            ("5", Some("4"), summary),
            ("6", Some("5"), prompt("go on")),
            ("7", Some("6"), says("just now")),
        ];
        let read = read_text("claude", &tree(&records));
        assert_eq!(read.prompts.len(), 2);
        assert_eq!(read.plan[0].status, PlanStatus::Completed);
        assert_eq!(read.messages, ["just now"]);
        assert_eq!(read.summary.as_deref(), Some("so far so good"));
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    }

    #[test]
    fn turns_taken_back_at_codex_leave_nothing_behind() {
        let message = |text: &str| {
            format!(
                "{}\n",
                json!({"type": "event_msg", "payload":
                {"type": "user_message", "message": text}})
            )
        };
        let plan = |step: &str| {
            let arguments = json!({"plan": [{"step": step, "status": "pending"}]}).to_string();
            format!(
                "{}\n",
                json!({"type": "response_item", "payload": {"type": "function_call",
                "name": "update_plan", "call_id": step, "arguments": arguments}})
            )
        };
        let back = format!(
            "{}\n",
            json!({"type": "event_msg", "payload":
            {"type": "thread_rolled_back", "num_turns": 2}})
        );
        let text = [
            &*message("task"),
            &plan("right"),
            &message("wrong"),
            &plan("wrong"),
            &message("worse"),
            &back,
            &message("better"),
        ];
        let read = read_text("codex", &text.concat());
        let prompts: Vec<_> = read.prompts.iter().map(|prompt| &*prompt.text).collect();
        assert_eq!(prompts, ["task", "better"]);
        assert_eq!(read.plan[0].text, "right");
    }

    #[test]
    fn hostile_files_are_read_within_bounds() {
        let deep = "[".repeat(3_000_000);
        let alike = r#"{\"type\":\"user\",\"message\":{\"content\":\"planted\"}}\n"#;
        for agent in ["claude", "codex"] {
            let (good, wanted) = match agent {
                "claude" => (prompt("the task").to_string(), "the task"),
                _ => (
                    json!({"type": "event_msg", "payload":
                    {"type": "user_message", "message": "the task"}})
                    .to_string(),
                    "the task",
                ),
            };
            let mut file = tempfile::NamedTempFile::new().unwrap();
            let mut say = |text: &str| file.write_all(text.as_bytes()).unwrap();
            say(&format!("{deep}\n{{\"type\":\"user\",\"message\":{deep}\n"));
            say(&format!("{{\"message\":{deep}{}}}\n", "]".repeat(deep.len())));
            say(&format!("\0\0{good}\n{{\"type\":\"x\",\"y\":\"{}\"}}\n", alike.repeat(1000)));
            say(&format!("{{\"y\":\"\0\u{1b}[2J\",\"type\":\"user\"}}\n{good}\n"));
            let end = file.as_file().metadata().unwrap().len() + (1 << 30);
            file.as_file().set_len(end).unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(b"\n{\"type\":\"us").unwrap();
            let known = ALL.iter().find(|known| known.name == agent).unwrap();
            let read = read(file.path(), known.fold.unwrap()).unwrap();
            let prompts: Vec<_> = read.prompts.iter().map(|prompt| &*prompt.text).collect();
            assert_eq!(prompts, [wanted], "{agent}");
            assert!(read.warnings.iter().any(|warning| warning.contains("too long")));
        }
    }

    #[test]
    fn no_number_of_records_fills_the_memory() {
        let mut text = String::new();
        let long = "word ".repeat(3000);
        for n in 0..3000 {
            let call = format!("{long}{n}");
            writeln!(text, "{}", prompt(&call)).unwrap();
            let input = json!({"command": call});
            let id = format!("call_{n}");
            writeln!(
                text,
                "{}",
                json!({"type": "assistant", "message": {"content": [
                {"type": "tool_use", "id": id, "name": "Bash", "input": input}]}})
            )
            .unwrap();
            if n % 3 > 0 {
                writeln!(text, "{}", result(&id)).unwrap();
            }
        }
        let read = read_text("claude", &text);
        assert!(read.prompts.len() <= PROMPTS_MOST && read.commands.len() <= COMMANDS_MOST);
        let bytes = recorded::rendered(&read).len();
        assert!(bytes < 16 << 20, "{bytes}");
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _open = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(read(&socket, ALL[0].fold.unwrap()).is_err());
        assert!(read(folder.path(), ALL[0].fold.unwrap()).is_err());
        assert!(read(&folder.path().join("gone"), ALL[0].fold.unwrap()).is_err());
    }
}
