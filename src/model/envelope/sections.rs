//! The envelope's sections in their order, each within its limit.

use super::Frame;
use super::limits::{Limit, Limits};
use super::template::{block, fill};
use super::text::{fenced, line};
use super::whole::Whole;
use crate::model::contract::{
    CommandEntry, Contract, FileEntry, FileStatus, PlanEntry, Standing, Statement,
};
use crate::model::cut::{shorten, tail};
use crate::model::transcript::PlanStatus;

/// The text so far.
struct Page<'a> {
    contract: &'a Contract,
    parts: Vec<String>,
    /// Sections that have something to say and no room.
    omitted: Vec<&'static str>,
}

/// A list entry with its author is at most this much longer than its text.
const BY_BYTES_MOST: usize = 48;

pub(super) fn all(whole: &Whole, l: &Limits, frame: Frame<'_>) -> String {
    let contract = &whole.contract;
    let mut page = Page { contract, parts: Vec::new(), omitted: Vec::new() };
    page.head(frame);
    page.goal(l);
    page.later(l.later);
    page.statements("constraints", &contract.constraints, l.constraints);
    page.statements("do-not-redo", &contract.do_not_redo, l.do_not_redo);
    page.statements("decisions", &contract.decisions, l.decisions);
    page.statements("done", &contract.done, l.done);
    page.plan(l.plan);
    page.tasks(l.tasks);
    let next: Vec<Statement> = contract.next_action.iter().cloned().collect();
    page.statements("next", &next, Limit { items: 1, bytes: l.next_bytes });
    page.statements("acceptance", &contract.acceptance_assertions, l.acceptance);
    page.files(l.files);
    page.in_flight(&whole.diff, l);
    page.commands(l);
    page.open_calls(l.open_calls);
    page.last_words(l.messages);
    page.not_captured(l.not_captured);
    page.why(l);
    page.end()
}

impl Page<'_> {
    fn push(&mut self, part: impl Into<String>) {
        self.parts.push(part.into());
    }

    /// Begins the section `name`; false if there is nothing to show in it.
    fn begin(&mut self, name: &'static str, entries: usize, items_most: usize) -> bool {
        if entries > 0 && items_most == 0 {
            self.omitted.push(name);
        }
        let shown = entries > 0 && items_most > 0;
        if shown {
            let agent = self.contract.from.agent.as_str();
            self.push(fill(name, &[("agent", agent)]));
        }
        shown
    }

    fn left_out(&mut self, count: usize) {
        if count > 0 {
            let session = self.contract.session_id.as_str();
            self.push(fill("left-out", &[("count", &count.to_string()), ("session", session)]));
        }
    }

    fn head(&mut self, frame: Frame<'_>) {
        let contract = self.contract;
        let mut outcome = block(&format!("outcome-{}", contract.from.outcome)).to_owned();
        if contract.from.forced {
            outcome.push_str(block("forced"));
        }
        let mut head = fill(
            "head",
            &[
                ("contract", contract.contract_id.as_str()),
                ("session", contract.session_id.as_str()),
                ("leg", &contract.leg.to_string()),
                ("agent", contract.from.agent.as_str()),
                ("outcome", &outcome),
                ("signer", frame.signer_fingerprint),
                ("snapshot", contract.snapshot_commit.as_str()),
                ("branch", &line(&contract.branch, 260).replace('`', "'")),
                ("record", frame.record_command),
            ],
        );
        if let Some(operation) = &contract.in_progress {
            let operation = line(operation, 40).replace('`', "'");
            head.push('\n');
            head.push_str(&fill("in-progress", &[("operation", &operation)]));
        }
        self.push(head);
    }

    fn goal(&mut self, l: &Limits) {
        self.push(block("goal"));
        let prompt = &self.contract.initial_prompt.text;
        self.push(fenced(prompt, l.task_bytes));
        if prompt.len() > l.task_bytes {
            let goal = line(&self.contract.task_goal.text, 300);
            self.push(fill("goal-line", &[("goal", &goal)]));
            self.left_out(1);
        }
    }

    fn later(&mut self, limit: Limit) {
        let said = &self.contract.later_prompts;
        if self.begin("later", said.len(), limit.items) {
            let left_out = said.len().saturating_sub(limit.items);
            for prompt in &said[left_out..] {
                self.push(fenced(&prompt.text, limit.bytes));
            }
            self.left_out(left_out);
        }
    }

    /// Declared facts as a list; quoted ones fenced below it. The user's and the newest stay.
    fn statements(&mut self, name: &'static str, said: &[Statement], limit: Limit) {
        if !self.begin(name, said.len(), limit.items) {
            return;
        }
        let shown = chosen(said, limit.items, |said| said.by == "user");
        let (declared, quoted): (Vec<&Statement>, Vec<&Statement>) =
            shown.into_iter().partition(|said| said.standing != Standing::Quoted);
        let items: Vec<String> = declared
            .into_iter()
            .map(|said| format!("- ({}) {}", by(said), line(&said.text, limit.bytes)))
            .collect();
        if !items.is_empty() {
            self.push(items.join("\n"));
        }
        let (users, others): (Vec<&Statement>, Vec<&Statement>) =
            quoted.into_iter().partition(|said| said.by == "user");
        let lines: Vec<String> =
            users.into_iter().map(|said| line(&said.text, limit.bytes)).collect();
        if !lines.is_empty() {
            let list = fenced(&lines.join("\n"), usize::MAX);
            self.push(format!("{}\n{list}", block("quoted-user")));
        }
        for said in others {
            let label = if name == "next" { "quoted-next" } else { "quoted" };
            self.quoted(label, said, limit.bytes);
        }
        self.left_out(said.len().saturating_sub(limit.items));
    }

    fn quoted(&mut self, label: &str, said: &Statement, bytes_most: usize) {
        let label = fill(label, &[("by", &by(said))]);
        self.push(format!("{label}\n{}", fenced(&said.text, bytes_most)));
    }

    /// Open items before finished ones, in the plan's order.
    fn plan(&mut self, limit: Limit) {
        let plan = &self.contract.plan;
        if !self.begin("plan", plan.len(), limit.items) {
            return;
        }
        let is_done =
            |item: &PlanEntry| item.status == PlanStatus::Completed && !item.not_seen_in_git;
        let open = plan.iter().filter(|item| !is_done(item)).count();
        let (mut open, mut finished) = (open.min(limit.items), limit.items.saturating_sub(open));
        let mut items = Vec::new();
        for item in plan {
            let (room, mark) = match item.status {
                PlanStatus::Completed if item.not_seen_in_git => {
                    (&mut open, "[x] (claimed, not seen in git)")
                }
                PlanStatus::Completed => (&mut finished, "[x]"),
                PlanStatus::InProgress => (&mut open, "[ ] (in progress)"),
                PlanStatus::Pending => (&mut open, "[ ]"),
            };
            if *room > 0 {
                *room -= 1;
                items.push(format!("- {mark} {}", line(&item.text, limit.bytes)));
            }
        }
        self.push(fenced(&items.join("\n"), usize::MAX));
        self.left_out(plan.len() - items.len());
    }

    fn tasks(&mut self, limit: Limit) {
        let tasks = &self.contract.tasks_remaining;
        self.lines("tasks", tasks.len(), limit, |at| {
            format!("- {}", line(&tasks[at], limit.bytes))
        });
    }

    fn open_calls(&mut self, limit: Limit) {
        let calls = &self.contract.open_calls;
        self.lines("open-calls", calls.len(), limit, |at| {
            format!("{}: {}", line(&calls[at].tool, 40), line(&calls[at].summary, limit.bytes))
        });
    }

    fn not_captured(&mut self, limit: Limit) {
        let missing = &self.contract.not_captured;
        self.lines("not-captured", missing.len(), limit, |at| {
            let (what, why) = (&missing[at].what, &missing[at].why);
            format!("{}: {}", line(what, limit.bytes), line(why, limit.bytes))
        });
    }

    /// A section that is one fence with one line an entry.
    fn lines(
        &mut self,
        name: &'static str,
        entries: usize,
        limit: Limit,
        entry: impl Fn(usize) -> String,
    ) {
        if self.begin(name, entries, limit.items) {
            let lines: Vec<String> = (0..entries.min(limit.items)).map(entry).collect();
            self.push(fenced(&lines.join("\n"), usize::MAX));
            self.left_out(entries - lines.len());
        }
    }

    fn files(&mut self, limit: Limit) {
        let manifest = &self.contract.file_manifest;
        let total = usize::try_from(manifest.total).unwrap_or(usize::MAX).max(manifest.files.len());
        if !self.begin("files", total, limit.items) {
            return;
        }
        let mut room = limit.items;
        for (name, committed) in [("files-uncommitted", false), ("files-committed", true)] {
            let files = manifest.files.iter().filter(|file| file.committed == committed).take(room);
            let lines: Vec<String> = files.map(|file| file_line(file, limit.bytes)).collect();
            room -= lines.len();
            if !lines.is_empty() {
                let list = fenced(&lines.join("\n"), usize::MAX);
                self.push(format!("{}\n{list}", block(name)));
            }
        }
        self.left_out(total - (limit.items - room));
    }

    /// The diff where it is short enough, else the pieces of it that the core holds.
    fn in_flight(&mut self, diff: &str, l: &Limits) {
        let pieces = &self.contract.in_flight_code;
        if !diff.is_empty() && diff.len() <= l.diff_bytes {
            self.begin("in-flight", 1, 1);
            self.push(fenced(diff, usize::MAX));
        } else if pieces.is_empty() && !diff.is_empty() {
            if self.begin("in-flight", 1, l.pieces.items) {
                self.push(fenced(diff, l.pieces.bytes * 3));
                self.left_out(1);
            }
        } else if self.begin("in-flight", pieces.len(), l.pieces.items) {
            let shown: Vec<String> = pieces
                .iter()
                .take(l.pieces.items)
                .map(|piece| {
                    let place = line(&piece.path, 200);
                    let snippet = shorten(&piece.snippet, l.pieces.bytes);
                    format!("@@ {place}:{}\n{snippet}", piece.line)
                })
                .collect();
            self.push(fenced(&shown.join("\n"), usize::MAX));
            self.left_out(pieces.len() - shown.len());
        }
    }

    /// Each command as it went last: those that fail now, then the others.
    fn commands(&mut self, l: &Limits) {
        let runs = &self.contract.commands_run;
        if l.commands.items == 0 {
            self.begin("commands", runs.len(), 0);
            return;
        }
        let failed = |run: &CommandEntry| run.exit_code.is_some_and(|code| code != 0);
        let shown = chosen(runs, l.commands.items, failed);
        let (failing, others): (Vec<_>, Vec<_>) = shown.into_iter().partition(|run| failed(run));
        let left_out = runs.len() - failing.len() - others.len();
        for (name, runs) in [("failing", failing), ("commands", others)] {
            self.lines(name, runs.len(), Limit { items: usize::MAX, ..l.commands }, |at| {
                let run = runs[at];
                let code = run.exit_code.map_or("unknown".to_owned(), |code| code.to_string());
                let end = tail(run.tail.trim_end(), l.tail_bytes);
                let gap = if end.is_empty() { "" } else { "\n" };
                format!("$ {}{gap}{end}\n[exit {code}]", line(&run.command, l.commands.bytes))
            });
        }
        self.left_out(left_out);
    }

    fn last_words(&mut self, limit: Limit) {
        let said = &self.contract.last_messages;
        if self.begin("last-words", said.len(), limit.items) {
            let left_out = said.len().saturating_sub(limit.items);
            for message in &said[left_out..] {
                self.quoted("quoted", message, limit.bytes);
            }
            self.left_out(left_out);
        }
    }

    fn why(&mut self, l: &Limits) {
        let contract = self.contract;
        let reason = &contract.reason;
        self.push(fill("why", &[("reason", reason.reason.word())]));
        if let Some(text) = &reason.text {
            self.push(format!("{}\n{}", block("why-text"), fenced(text, l.reason_bytes)));
        }
        let usage: Vec<String> = contract
            .usage
            .iter()
            .take(l.usage)
            .map(|reading| {
                let share = reading.used_permille;
                fill(
                    "usage",
                    &[
                        ("used", &format!("{}.{} %", share / 10, share % 10)),
                        ("minutes", &reading.window_minutes.to_string()),
                        ("seen", &reading.observed_at.to_string()),
                    ],
                )
            })
            .collect();
        if !usage.is_empty() {
            self.push(usage.join("\n"));
        }
    }

    fn end(mut self) -> String {
        let session = self.contract.session_id.as_str();
        if !self.omitted.is_empty() {
            let sections = self.omitted.join(", ");
            self.push(fill("omitted", &[("sections", &sections), ("session", session)]));
        }
        self.push(fill("end", &[("contract", self.contract.contract_id.as_str())]));
        let mut text = self.parts.join("\n\n");
        text.push('\n');
        text
    }
}

fn by(said: &Statement) -> String {
    line(&said.by, BY_BYTES_MOST)
}

/// The preferred entries first, then the newest, in their order.
fn chosen<T>(list: &[T], items_most: usize, prefer: impl Fn(&T) -> bool) -> Vec<&T> {
    let mut ranked: Vec<usize> = (0..list.len()).collect();
    ranked.sort_by_key(|at| (!prefer(&list[*at]), std::cmp::Reverse(*at)));
    ranked.truncate(items_most);
    ranked.sort_unstable();
    ranked.into_iter().map(|at| &list[at]).collect()
}

fn file_line(file: &FileEntry, bytes_most: usize) -> String {
    let status = match file.status {
        FileStatus::Added => "added",
        FileStatus::Changed => "changed",
        FileStatus::Deleted => "deleted",
        FileStatus::TypeChanged => "type changed",
    };
    match (&file.path, &file.path_base64) {
        (Some(path), _) => format!("{status} {}", line(path, bytes_most)),
        (None, Some(bytes)) => format!("{status} (base64) {}", line(bytes, bytes_most)),
        (None, None) => status.to_owned(),
    }
}
