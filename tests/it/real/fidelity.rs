//! How much of a real session comes through, measured: the truth is what the model server's
//! script makes the agent do, written down before any record of the agent's is read.
//!
//! Sessions that were recorded so lie in `tests/agents/*/fidelity/`, each with its truth beside it,
//! and are read by every `cargo test`; the live ones here make sure that the agents still write
//! what was recorded; with `RECORD=1` they leave new recordings in `recorded` in their scratch folder.

use crate::it::support::real::{Cast, Stage, plan, say, scratch, shell, write};
use git_relay::agents::{ALL, history};
use git_relay::model::transcript::{Ending, PlanStatus, TouchKind, Transcript, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents");

/// What an agent was made to do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Truth {
    pub(super) prompts: Vec<String>,
    /// `x`, `>` or a space, and the item.
    pub(super) plan: Vec<String>,
    /// `+`, `~` or `-`, and the path, by the agent's own tools.
    pub(super) files: Vec<String>,
    /// Exit code, where there is one, and command.
    pub(super) commands: Vec<(Option<i64>, String)>,
    pub(super) open: Vec<String>,
    pub(super) last_message: String,
    pub(super) ending: String,
    pub(super) summary: bool,
    pub(super) decisions: Vec<String>,
    /// Calls that a person refused.
    pub(super) refused: Vec<String>,
}

/// What came through of one kind of fact.
struct Recall {
    kind: &'static str,
    expected: usize,
    found: usize,
    invented: Vec<String>,
}

fn compare(kind: &'static str, truth: &[String], read: &[String]) -> Recall {
    let mut left: Vec<&String> = truth.iter().collect();
    let mut invented = Vec::new();
    for fact in read {
        match left.iter().position(|known| *known == fact) {
            Some(at) => _ = left.remove(at),
            None => invented.push(fact.clone()),
        }
    }
    Recall { kind, expected: truth.len(), found: truth.len() - left.len(), invented }
}

fn recalls(truth: &Truth, read: &Transcript) -> Vec<Recall> {
    let cwd = read.cwd.clone().unwrap_or_default();
    let relative = |path: &str| path.strip_prefix(&format!("{cwd}/")).unwrap_or(path).to_owned();
    let prompts: Vec<_> = read.prompts.iter().map(|prompt| prompt.text.clone()).collect();
    let plan: Vec<_> = read
        .plan
        .iter()
        .map(|item| {
            let mark = match item.status {
                PlanStatus::Completed => "x",
                PlanStatus::InProgress => ">",
                PlanStatus::Pending => " ",
            };
            format!("{mark} {}", item.text)
        })
        .collect();
    let files: Vec<_> = read
        .files
        .iter()
        .map(|file| {
            let mark = match file.kind {
                TouchKind::Added => "+",
                TouchKind::Changed => "~",
                TouchKind::Deleted => "-",
            };
            format!("{mark} {}", relative(&file.path))
        })
        .collect();
    let coded = |code: Option<i64>, command: &str| {
        format!("{} {command}", code.map_or("?".into(), |code| code.to_string()))
    };
    let done: Vec<_> = truth.commands.iter().map(|(code, command)| coded(*code, command)).collect();
    let ran: Vec<_> = read.commands.iter().map(|run| coded(run.exit_code, &run.command)).collect();
    let open: Vec<_> = read.open_calls.values().map(|call| call.summary.clone()).collect();
    let ending = match &read.ending {
        Some(Ending::TurnEnded) => "ended",
        Some(Ending::Trouble(Trouble::Limit { .. })) => "limit",
        Some(Ending::Interrupted) => "interrupted",
        Some(_) => "other",
        None => "none",
    };
    let last: Vec<String> = read.messages.last().cloned().into_iter().collect();
    let said: Vec<String> =
        Some(truth.last_message.clone()).into_iter().filter(|text| !text.is_empty()).collect();
    let summary = |there: bool| if there { vec!["a summary".to_owned()] } else { Vec::new() };
    vec![
        compare("prompts", &truth.prompts, &prompts),
        compare("plan", &truth.plan, &plan),
        compare("files", &truth.files, &files),
        compare("commands", &done, &ran),
        compare("open calls", &truth.open, &open),
        compare("last words", &said, &last),
        compare("ending", std::slice::from_ref(&truth.ending), &[ending.to_owned()]),
        compare("summary", &summary(truth.summary), &summary(read.summary.is_some())),
        compare("decisions", &truth.decisions, &read.decisions),
        compare("refusals", &truth.refused, &read.refusals),
    ]
}

/// Prints what came through; everything must, and nothing else.
#[track_caller]
fn all_came_through(agent: &str, name: &str, truth: &Truth, read: &Transcript) {
    let mut wrong = Vec::new();
    for recall in recalls(truth, read) {
        println!(
            "{agent:<7} {name:<12} {:<11} {:>3} of {:>3}, invented {}",
            recall.kind,
            recall.found,
            recall.expected,
            recall.invented.len()
        );
        if recall.found < recall.expected || !recall.invented.is_empty() {
            wrong.push(format!("{}: invented {:?}", recall.kind, recall.invented));
        }
    }
    assert!(wrong.is_empty(), "{agent} {name}: {}\n{truth:#?}\n{read:#?}", wrong.join("\n"));
}

fn fold_of(agent: &str) -> fn(&mut Transcript, &[u8]) {
    ALL.iter().find(|known| known.name == agent).and_then(|known| known.fold).unwrap()
}

#[test]
fn recorded_sessions_come_through_whole() {
    let mut seen = BTreeSet::new();
    for agent in ALL {
        let folder = Path::new(RECORDED).join(agent.name).join("fidelity");
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let Some(name) = path.to_str().unwrap().strip_suffix(".truth.json") else { continue };
            let truth: Truth = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let transcript = PathBuf::from(format!("{name}.jsonl"));
            let read = history::read(&transcript, fold_of(agent.name)).unwrap();
            let name = name.rsplit('/').next().unwrap();
            all_came_through(agent.name, name, &truth, &read);
            seen.insert(format!("{} {name}", agent.name));
        }
    }
    assert!(seen.len() >= 11, "recordings are missing: {seen:?}");
}

/// What the model does in the first turn, in the second, and in the third until the limit.
fn long_script() -> Value {
    json!([
        plan(&["> Write docs/a b.txt", "  Fix docs/ünï «x».txt", "  Test both"]),
        write("docs/a b.txt", "one\n"),
        {"calls": [write("docs/ünï «x».txt", "two\n"), write("docs/gone.txt", "gone\n"),
                   shell("echo three; echo \"it's done\"")]},
        shell("echo broken >&2; exit 3"),
        shell("printf 'x%.0s' $(seq 5000); echo; echo end; exit 7"),
        {"edit": {"path": "docs/a b.txt", "old": "one", "new": "uno"}},
        shell("mv README.md 'READ ME.md' && rm notes.md docs/gone.txt"),
        plan(&["x Write docs/a b.txt", "> Fix docs/ünï «x».txt", "  Test both"]),
        say("The first part is done."),
        shell("false"),
        write("docs/neu.txt", "drei\n"),
        {"calls": [shell("echo p1"), shell("echo p2; exit 1")]},
        plan(&["x Write docs/a b.txt", "x Fix docs/ünï «x».txt", "> Test both"]),
        say("The second part is done."),
        {"shell": "echo last", "say": "Now the test.", "set": {"limit": true}},
        say("never said"),
    ])
}

const PROMPTS: [&str; 3] = [
    "Write the files.\nDo not touch vendor/.",
    "Go on with \"docs/ünï «x».txt\", and never add a dependency.",
    "Test both.",
];

fn long_truth() -> Truth {
    let plan = ["x Write docs/a b.txt", "x Fix docs/ünï «x».txt", "> Test both"];
    let files = ["+ docs/a b.txt", "+ docs/ünï «x».txt", "+ docs/gone.txt", "+ docs/neu.txt"];
    let commands = [
        (0, "echo three; echo \"it's done\""),
        (3, "echo broken >&2; exit 3"),
        (7, "printf 'x%.0s' $(seq 5000); echo; echo end; exit 7"),
        (0, "mv README.md 'READ ME.md' && rm notes.md docs/gone.txt"),
        (1, "false"),
        (0, "echo p1"),
        (1, "echo p2; exit 1"),
        (0, "echo last"),
    ];
    Truth {
        prompts: PROMPTS.map(str::to_owned).to_vec(),
        plan: plan.map(str::to_owned).to_vec(),
        files: files.map(str::to_owned).to_vec(),
        commands: commands.map(|(code, command)| (Some(code), command.to_owned())).to_vec(),
        open: Vec::new(),
        last_message: "Now the test.".into(),
        ending: "limit".into(),
        ..Truth::default()
    }
}

/// One agent at work in the repository itself, started by nobody but its user.
pub(super) struct Alone {
    pub(super) stage: Stage,
    agent: &'static str,
}

impl Alone {
    pub(super) fn new(agent: &'static str, script: &Value) -> Self {
        let cast =
            Cast { agents: &[agent], claude: script.clone(), codex: script.clone(), third: None };
        Self { stage: Stage::new(&cast), agent }
    }

    fn words(&self, before: &[&str], prompt: &str) -> Vec<String> {
        let git_dir = self.stage.world.repo.join(".git");
        let mut words: Vec<&str> = match self.agent {
            "claude" => vec!["-p", "--permission-mode", "acceptEdits", "--allowedTools=Bash"],
            _ => vec![
                "exec",
                "-c",
                "tools.update_plan.enabled=true",
                "-s",
                "workspace-write",
                "--add-dir",
                git_dir.to_str().unwrap(),
            ],
        };
        words.extend(before);
        words.push(prompt);
        words.into_iter().map(str::to_owned).collect()
    }

    /// Runs it to its end; `before` stands before the prompt.
    pub(super) fn works(&self, before: &[&str], prompt: &str) {
        let words = self.words(before, prompt);
        let mut all = vec!["120", self.agent];
        all.extend(words.iter().map(String::as_str));
        let did = self.stage.world.run("timeout", &all);
        let said = format!("{}{}", did.stdout, did.stderr);
        assert_ne!(did.code, Some(124), "{} hangs: {said}", self.agent);
        assert!(!self.transcripts().is_empty(), "{} left nothing: {said}", self.agent);
    }

    /// What continues the session `id`.
    fn on(&self, id: &str) -> Vec<String> {
        let words: &[&str] =
            if self.agent == "claude" { &["--resume", id] } else { &["resume", id] };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Its transcripts, oldest first.
    pub(super) fn transcripts(&self) -> Vec<PathBuf> {
        let folder = if self.agent == "claude" { ".claude/projects" } else { ".codex/sessions" };
        let mut found = Vec::new();
        let mut open = vec![self.stage.world.home.join(folder)];
        while let Some(at) = open.pop() {
            for entry in fs::read_dir(at).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort_by_key(|path| fs::metadata(path).unwrap().created().ok());
        found
    }

    fn id(&self) -> String {
        let path = self.transcripts().pop().expect("it left a transcript");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if self.agent == "claude" { name } else { name[name.len() - 36..].to_owned() }
    }

    /// Reads its latest transcript and holds it against the truth.
    #[track_caller]
    pub(super) fn is_read_as(&self, name: &str, truth: &Truth) {
        let path = self.transcripts().pop().expect("it left a transcript");
        if std::env::var_os("RECORD").is_some() {
            self.record(&path, name, truth);
        }
        let read = history::read(&path, fold_of(self.agent)).unwrap();
        all_came_through(self.agent, name, truth, &read);
    }

    /// Keeps the transcript, without the vendors' own words and with no path of this machine.
    fn record(&self, path: &Path, name: &str, truth: &Truth) {
        let folder = scratch().join("recorded").join(self.agent);
        fs::create_dir_all(&folder).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let root = self.stage.world.root.to_str().unwrap();
        let home = scratch().parent().unwrap().to_str().unwrap().to_owned();
        let kept: String = text
            .lines()
            .filter_map(without_vendors_words)
            .map(|line| line.replace(root, "/home/dev/world").replace(&home, "/home/dev") + "\n")
            .collect();
        fs::write(folder.join(format!("{name}.jsonl")), kept).unwrap();
        let truth = serde_json::to_string_pretty(truth).unwrap() + "\n";
        fs::write(folder.join(format!("{name}.truth.json")), truth).unwrap();
    }
}

/// A record as it is, or with long texts cut where it holds a vendor's prompts; `None` for one
/// that holds nothing else.
fn without_vendors_words(line: &str) -> Option<String> {
    fn cut(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > 300 => {
                *text = text.chars().take(100).chain(['…']).collect();
            }
            Value::Array(items) => items.iter_mut().for_each(cut),
            Value::Object(fields) => fields.values_mut().for_each(cut),
            _ => {}
        }
    }
    let mut record: Value = serde_json::from_str(line).unwrap();
    let kind = record["type"].as_str().unwrap_or_default();
    if kind.starts_with("api-request") || kind == "tools-used" {
        return None;
    }
    let theirs = ["attachment", "session_meta", "turn_context", "world_state"].contains(&kind)
        || record["payload"]["role"] == "developer"
        || record["payload"]["type"] == "thread_settings_applied";
    if theirs {
        cut(&mut record);
        return Some(record.to_string());
    }
    Some(line.to_owned())
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_session_of_three_prompts_that_hits_its_limit_comes_through_whole() {
    for (agent, name) in [("claude", "limit"), ("claude", "limit-todos"), ("codex", "limit")] {
        let mut alone = Alone::new(agent, &long_script());
        if name == "limit-todos" {
            alone.stage.world.set("CLAUDE_CODE_ENABLE_TASKS", "0");
        }
        alone.works(&[], PROMPTS[0]);
        let on = alone.on(&alone.id());
        alone.works(&strs(&on), PROMPTS[1]);
        alone.works(&strs(&on), PROMPTS[2]);
        alone.is_read_as(name, &long_truth());
    }
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_fork_repeats_what_was_before_it_and_counts_it_once() {
    let alone = Alone::new("claude", &long_script());
    alone.works(&[], PROMPTS[0]);
    let id = alone.id();
    alone.works(&["--resume", &id, "--fork-session"], PROMPTS[1]);
    assert_eq!(alone.transcripts().len(), 2);
    let whole = long_truth();
    let truth = Truth {
        prompts: whole.prompts[..2].to_vec(),
        commands: whole.commands[..7].to_vec(),
        last_message: "The second part is done.".into(),
        ending: "ended".into(),
        ..whole
    };
    alone.is_read_as("fork", &truth);
    // Then it is compacted: the words go, and everything that was done stays.
    let id = alone.id();
    alone.works(&["--resume", &id], "/compact");
    let last_message = String::new();
    alone.is_read_as("compacted", &Truth { summary: true, last_message, ..truth });
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn a_call_that_was_cut_off_stays_open() {
    for agent in ["claude", "codex"] {
        let script = json!([
            plan(&["> Wait", "  Go on"]),
            write("a.txt", "a\n"),
            shell("echo begun"),
            {"shell": "echo on >>a.txt; sleep 987", "say": "Now I wait."},
        ]);
        for signal in ["KILL", "INT"] {
            let alone = Alone::new(agent, &script);
            let mut command = alone.stage.world.command(agent);
            command.args(alone.words(&[], "Wait for it.")).env("FIDELITY", signal);
            let mut child = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let file = alone.stage.world.repo.join("a.txt");
            alone.stage.until("the command runs", || {
                fs::read_to_string(&file).is_ok_and(|text| text.contains("on\n"))
            });
            // An agent writes its records a moment after it acts.
            alone.stage.until("the call is on record", || {
                let path = alone.transcripts().pop();
                let text = path.and_then(|path| fs::read_to_string(path).ok());
                text.is_some_and(|text| text.contains("sleep 987"))
            });
            let pid = child.id().to_string();
            assert!(alone.stage.world.run("kill", &[&format!("-{signal}"), &pid]).code == Some(0));
            child.wait().unwrap();
            let left = git_relay::host::process::find_by_variable("FIDELITY", signal);
            for process in &left {
                alone.stage.world.run("kill", &["-KILL", &process.pid.to_string()]);
            }
            let waited = "echo on >>a.txt; sleep 987".to_owned();
            let mut truth = Truth {
                prompts: vec!["Wait for it.".into()],
                plan: vec!["> Wait".into(), "  Go on".into()],
                files: vec!["+ a.txt".into()],
                commands: vec![(Some(0), "echo begun".into())],
                open: vec![waited],
                last_message: "Now I wait.".into(),
                ending: "none".into(),
                ..Truth::default()
            };
            let name = if signal == "KILL" { "killed" } else { "interrupted" };
            if signal == "INT" {
                // Codex kills the command, and writes that down if it still comes to it.
                let path = alone.transcripts().pop().unwrap();
                let is_told = fs::read_to_string(path).unwrap().contains("\"exit_code\":137");
                truth.commands.push((is_told.then_some(137), truth.open.remove(0)));
                truth.ending = "interrupted".into();
            }
            alone.is_read_as(name, &truth);
        }
    }
}
