//! The normal form of what an agent left: every agent's parser yields this, and nothing else
//! reads an agent's records.
//!
//! Parsers never fail on content: what they do not know they skip, what is torn or odd becomes a
//! warning. All text here is *quoted*: untrusted, not yet redacted.

use super::cut::{one_line, shorten, tail};
use super::lineage::Lineage;
use super::quota::Reading;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What one agent session left behind, folded line by line from its transcript.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The agent's own id of the session.
    pub agent_session: Option<String>,
    pub cwd: Option<String>,
    pub model: Option<String>,
    /// What the user typed, in order; injected context is left out.
    pub prompts: Vec<Prompt>,
    /// The last plan the agent stated, whole.
    pub plan: Vec<PlanItem>,
    /// Files the agent wrote, in order of first touch, each once.
    pub files: Vec<FileTouch>,
    /// Commands in order; an unfinished one is in `open_calls` instead.
    pub commands: Vec<CommandRun>,
    /// Calls without a result, by the agent's call id.
    pub open_calls: HashMap<String, OpenCall>,
    /// The last assistant texts, oldest first, at most [`MESSAGES_MOST`].
    pub messages: Vec<String>,
    /// The summary a compaction left, if any: it stands for the messages before it.
    pub summary: Option<String>,
    /// What subagents reported back, newest last, at most [`REPORTS_MOST`].
    pub reports: Vec<String>,
    /// What was decided and, where the record has it, why: answers to questions, approved plans,
    /// reasons given for new ones; newest last, at most [`DECISIONS_MOST`]. Nothing is concluded
    /// from what was only said.
    pub decisions: Vec<String>,
    /// Calls that a person refused, in one line each, newest last, at most [`REFUSALS_MOST`].
    pub refusals: Vec<String>,
    pub skills: Vec<String>,
    /// The latest reading of each window.
    pub readings: Vec<Reading>,
    pub ending: Option<Ending>,
    /// What could not be read, for `notCaptured`.
    pub warnings: Vec<String>,
    /// Parser scratch: plan items by the agent's own task id (Claude's TaskCreate/TaskUpdate).
    pub tasks: Vec<(String, PlanItem)>,
    /// Parser scratch: what is known of calls until their results are in.
    pub scratch: Scratch,
}

/// What a parser must remember from one line to the next, and nobody else reads.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// What an open call will have done if its result is no error, by call id.
    pub effects: HashMap<String, Effect>,
    /// Where in `commands` a call stands that two records describe.
    pub command_of_call: HashMap<String, usize>,
    /// A question that was put and not answered.
    pub asked: Option<String>,
    /// Commands that a person refused or broke off; only the next record tells which.
    pub refused: Vec<(String, String)>,
    /// Where in `files` a path stands.
    pub place_of_file: HashMap<String, usize>,
    pub file_bytes: usize,
    pub command_bytes: usize,
    /// Which records lead to the end, where they form a tree.
    pub lineage: Lineage,
    /// How it stood before each of the latest prompts, should they be taken back.
    pub turns: Vec<Turn>,
}

/// How a transcript stood before a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub plan: Vec<PlanItem>,
    pub messages: Vec<String>,
    pub decisions: Vec<String>,
}

/// What a call will have done if its result is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Command(String),
    Files(Vec<FileTouch>),
    /// The plan is already in place; this is the one before it, should the call be refused.
    PlanBefore(Vec<PlanItem>),
    TaskMade(PlanItem),
    TaskChanged {
        id: String,
        text: Option<String>,
        /// `None` where it stays, `Some(None)` where the task is deleted.
        status: Option<Option<PlanStatus>>,
    },
    Question {
        /// All that is asked, in one line.
        text: String,
        /// Each question by the agent's id of it, where its answer names no more than that.
        by_id: Vec<(String, String)>,
    },
    /// A subagent is at work.
    Report,
    /// A result of this call brings nothing more.
    Known,
}

/// How many assistant texts are kept.
pub const MESSAGES_MOST: usize = 8;
/// How many bytes of one text are kept (head and tail, the middle cut).
pub const TEXT_BYTES_MOST: usize = 16 * 1024;
/// How many bytes of a command's output are kept, from its end.
pub const TAIL_BYTES_MOST: usize = 2 * 1024;
/// How many bytes of a command are kept.
pub const COMMAND_BYTES_MOST: usize = 4 * 1024;
/// How many bytes of a short text are kept: a plan item, a path, a name.
pub const LABEL_BYTES_MOST: usize = 1024;
/// How many bytes a record may have; a longer one is skipped with a warning. A prompt with a few
/// screenshots in it is one record.
pub const LINE_BYTES_MOST: usize = 24 * 1024 * 1024;
/// How many prompts are kept: the first and the latest.
pub const PROMPTS_MOST: usize = 256;
/// How many commands are kept: the latest.
pub const COMMANDS_MOST: usize = 4096;
pub const FILES_MOST: usize = 10_000;
/// How many bytes all commands and what they printed may have together, and all paths.
pub const LIST_BYTES_MOST: usize = 4 * 1024 * 1024;
/// How many reports of subagents are kept: the latest.
pub const REPORTS_MOST: usize = 4;
pub const DECISIONS_MOST: usize = 64;
pub const REFUSALS_MOST: usize = 32;
/// How many of the latest prompts can be taken back.
pub const TURNS_MOST: usize = 32;
pub const PLAN_ITEMS_MOST: usize = 256;
pub const OPEN_CALLS_MOST: usize = 1024;
pub const SKILLS_MOST: usize = 64;
pub const WARNINGS_MOST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    pub at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanItem {
    pub text: String,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    Added,
    Changed,
    Deleted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTouch {
    /// As the agent wrote it: absolute or relative to `cwd`.
    pub path: String,
    pub kind: TouchKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    pub command: String,
    /// `None` where the agent does not say.
    pub exit_code: Option<i64>,
    /// The last bytes of its output.
    pub tail: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    pub tool: String,
    /// One line: the command, the path.
    pub summary: String,
}

/// How the agent's last turn ended, from its structured record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent said it is done with its turn.
    TurnEnded,
    /// It stopped because our hook told it to.
    StoppedByHook,
    /// A person interrupted it.
    Interrupted,
    /// It is waiting for a decision that only a person can take.
    Asks(String),
    Trouble(Trouble),
}

/// Why an agent cannot go on, told apart as far as its records allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The account's usage limit.
    Limit {
        resets_at: Option<Timestamp>,
        text: String,
    },
    /// Too many requests for the moment; not the usage limit.
    Transient(String),
    /// The provider is overloaded.
    Overload(String),
    /// Not logged in, or the log-in is refused.
    Auth(String),
    /// The context window is full.
    Context(String),
    Other(String),
}

/// One thing a line of an agent's live stream tells the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The agent is up; its own session id where it says so. This is the *start*.
    Started {
        agent_session: Option<String>,
    },
    /// The model itself produced something (a text, a tool call). The first is the *receipt*.
    ModelMade,
    /// A tool call began.
    ToolStarted {
        call: String,
    },
    /// A tool call ended: a moment between calls.
    ToolEnded {
        call: String,
    },
    /// The agent stated its plan, whole; how many items are still open.
    Plan {
        open: usize,
    },
    /// The agent made or changed one item of a plan that it keeps item by item (Claude's Task
    /// tools); `task` is its own id of the item. Whoever counts keeps the set of open ids.
    Task {
        task: String,
        open: bool,
    },
    Reading(Reading),
    /// The agent is retrying by itself; nothing to do but show it.
    Retrying(String),
    Ended(Ending),
}

impl Transcript {
    /// Keeps the latest reading of each window length.
    pub fn observe(&mut self, reading: Reading) {
        self.readings.retain(|known| known.window_minutes != reading.window_minutes);
        self.readings.push(reading);
    }

    /// Notes an assistant text, dropping the oldest beyond [`MESSAGES_MOST`].
    pub fn say(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.messages.len() == MESSAGES_MOST {
            self.messages.remove(0);
        }
        self.messages.push(shorten(text, TEXT_BYTES_MOST));
    }

    /// Notes an assistant text that may come in two records, one right after the other.
    pub fn say_once(&mut self, text: &str) {
        if self.messages.last().is_none_or(|last| *last != shorten(text, TEXT_BYTES_MOST)) {
            self.say(text);
        }
    }

    /// Notes what the user typed. It opens a turn: what ended before it, ended.
    pub fn ask(&mut self, text: &str, at: Option<Timestamp>) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.ending = None;
        self.scratch.asked = None;
        if self.scratch.turns.len() == TURNS_MOST {
            self.scratch.turns.remove(0);
        }
        self.scratch.turns.push(Turn {
            plan: self.plan.clone(),
            messages: self.messages.clone(),
            decisions: self.decisions.clone(),
        });
        if self.prompts.len() >= PROMPTS_MOST {
            self.prompts.remove(1);
            self.warn("not all prompts were kept");
        }
        self.prompts.push(Prompt { text: shorten(text, TEXT_BYTES_MOST), at });
    }

    /// The last `count` prompts and what came of them were taken back. Commands that ran did run.
    pub fn take_back(&mut self, count: usize) {
        let turns = &mut self.scratch.turns;
        let left = turns.len().saturating_sub(count);
        let taken_back = turns.len() - left;
        let Some(turn) = turns.drain(left..).next() else { return };
        self.prompts.truncate(self.prompts.len().saturating_sub(taken_back));
        self.plan = turn.plan;
        self.messages = turn.messages;
        self.decisions = turn.decisions;
        self.ending = None;
        self.scratch.asked = None;
    }

    /// A compaction: what it says stands for the messages before it. Prompts, plan, files and
    /// commands are facts of the session and stay.
    pub fn compacted(&mut self, summary: Option<&str>) {
        self.messages.clear();
        if let Some(summary) = summary.filter(|summary| !summary.trim().is_empty()) {
            self.summary = Some(shorten(summary, TEXT_BYTES_MOST));
        }
    }

    /// Notes what a subagent reported back.
    pub fn reported(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.reports.len() == REPORTS_MOST {
            self.reports.remove(0);
        }
        self.reports.push(shorten(text.trim(), TEXT_BYTES_MOST));
    }

    /// Notes what was decided. The same said again is the later word.
    pub fn decided(&mut self, text: &str) {
        let text = shorten(text.trim(), TEXT_BYTES_MOST);
        if text.is_empty() {
            return;
        }
        self.decisions.retain(|known| *known != text);
        if self.decisions.len() == DECISIONS_MOST {
            self.decisions.remove(0);
            self.warn("not all decisions were kept");
        }
        self.decisions.push(text);
    }

    /// Notes what the user answered to a question of the agent's.
    pub fn answered(&mut self, question: &str, answer: &str) {
        self.decided(&format!("the user answered \"{question}\" with: {answer}"));
    }

    /// Notes a call that a person refused, and what they said to it.
    pub fn refused(&mut self, call: &str, words: &str) {
        let words = words.trim();
        let why = if words.is_empty() { String::new() } else { format!(" (and said: {words})") };
        let refusal = format!("the user refused this call: {call}{why}");
        let refusal = one_line(&refusal, LABEL_BYTES_MOST);
        self.refusals.retain(|known| *known != refusal);
        if self.refusals.len() == REFUSALS_MOST {
            self.refusals.remove(0);
        }
        self.refusals.push(refusal);
    }

    /// Notes a written file; a file is listed once, with what happened to it last.
    pub fn touch(&mut self, path: &str, kind: TouchKind) {
        if path.is_empty() || path.len() > LABEL_BYTES_MOST * 4 {
            return;
        }
        let known = self.scratch.place_of_file.get(path).copied();
        if let Some(known) = known.and_then(|at| self.files.get_mut(at)) {
            if known.kind != TouchKind::Added || kind != TouchKind::Changed {
                known.kind = kind;
            }
        } else if self.files.len() < FILES_MOST
            && self.scratch.file_bytes + path.len() <= LIST_BYTES_MOST
        {
            self.scratch.place_of_file.insert(path.to_owned(), self.files.len());
            self.scratch.file_bytes += path.len();
            self.files.push(FileTouch { path: path.to_owned(), kind });
        } else {
            self.warn("not all written files were kept");
        }
    }

    /// Notes a command that ran. A call that two records describe is one command: the later record
    /// fills in what the earlier one did not say.
    pub fn ran(&mut self, call: &str, command: &str, exit_code: Option<i64>, output: &str) {
        let output = tail(output.trim_end(), TAIL_BYTES_MOST);
        if let Some(known) =
            self.scratch.command_of_call.get(call).and_then(|&at| self.commands.get_mut(at))
        {
            known.exit_code = exit_code.or(known.exit_code);
            if !output.is_empty() {
                known.tail = output;
            }
            return;
        }
        let command = shorten(command.trim(), COMMAND_BYTES_MOST);
        self.scratch.command_bytes += command.len() + output.len();
        if self.commands.len() >= COMMANDS_MOST || self.scratch.command_bytes > LIST_BYTES_MOST {
            self.forget_commands();
        }
        self.scratch.command_of_call.insert(call.to_owned(), self.commands.len());
        self.commands.push(CommandRun { command, exit_code, tail: output });
    }

    /// Forgets the oldest eighth of the commands.
    fn forget_commands(&mut self) {
        let gone = self.commands.len().div_ceil(8);
        let size = |run: &CommandRun| run.command.len() + run.tail.len();
        self.scratch.command_bytes -=
            self.commands.drain(..gone).map(|run| size(&run)).sum::<usize>();
        self.scratch.command_of_call.retain(|_, at| {
            *at = at.wrapping_sub(gone);
            *at < COMMANDS_MOST
        });
        self.warn("not all commands were kept");
    }

    /// Puts `items` in place of the plan.
    pub fn plan_is(&mut self, items: impl IntoIterator<Item = PlanItem>) {
        self.plan = items
            .into_iter()
            .filter(|item| !item.text.trim().is_empty())
            .take(PLAN_ITEMS_MOST)
            .map(|item| PlanItem { text: one_line(&item.text, LABEL_BYTES_MOST), ..item })
            .collect();
    }

    /// Notes a call that began, and what it will have done.
    pub fn opened(&mut self, call: &str, tool: &str, summary: &str, effect: Effect) {
        if call.is_empty() || call.len() > LABEL_BYTES_MOST {
            return;
        }
        if self.open_calls.len() >= OPEN_CALLS_MOST {
            self.warn("not all open calls were kept");
            return;
        }
        let open = OpenCall {
            tool: one_line(tool, LABEL_BYTES_MOST),
            summary: one_line(summary, LABEL_BYTES_MOST),
        };
        self.open_calls.insert(call.to_owned(), open);
        self.scratch.effects.insert(call.to_owned(), effect);
    }

    /// Notes that a call's result is in, and hands back what it will have done.
    pub fn closed(&mut self, call: &str) -> Effect {
        self.open_calls.remove(call);
        self.scratch.effects.remove(call).unwrap_or(Effect::Known)
    }

    /// Notes the name of a skill that was used.
    pub fn skill(&mut self, name: &str) {
        let name = one_line(name, LABEL_BYTES_MOST);
        if !name.is_empty() && self.skills.len() < SKILLS_MOST && !self.skills.contains(&name) {
            self.skills.push(name);
        }
    }

    /// Notes, once, what could not be read.
    pub fn warn(&mut self, what: &str) {
        if self.warnings.len() < WARNINGS_MOST && self.warnings.iter().all(|known| known != what) {
            self.warnings.push(what.to_owned());
        }
    }
}

impl PlanItem {
    pub fn is_open(&self) -> bool {
        self.status != PlanStatus::Completed
    }
}
