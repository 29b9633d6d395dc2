//! The whole contract fitted under [`CORE_BYTES_MOST`]: each list has a bound, and while the core
//! is still too large the next step in a fixed order gives up what is worth least.

use super::attach::{FACTS, Made, PROMPT};
use super::limits::{Bound, Bounds, ROOMY, STEPS, bound};
use super::lists::note_left_out;
use super::{Draft, sources::SUMMARY_BY};
use crate::model::contract::{
    CORE_BYTES_MOST, CommandEntry, Contract, FileEntry, FileManifest, PlanEntry, Statement,
};
use crate::model::cut::shorten;
use crate::model::foreign::head_before_cut;
use crate::model::session::NotCaptured;
use crate::model::transcript::PlanStatus;
use std::collections::HashMap;
use std::io;

/// The largest core under the cap, with the attachments that it needs.
pub(super) fn fit(whole: &Contract, made: Vec<Made>) -> Draft {
    let mut bounds = ROOMY;
    let mut steps = STEPS.iter();
    let contract = loop {
        let contract = core(whole, &bounds, &made);
        if json_bytes(&contract) <= CORE_BYTES_MOST {
            break contract;
        }
        steps.next().expect("the last step leaves a core that fits")(&mut bounds);
    };
    let attachments = made
        .into_iter()
        .filter(|made| contract.attachments.contains(&made.entry))
        .map(|made| (made.entry.name, made.bytes))
        .collect();
    Draft { contract, attachments }
}

/// The size of a record in JSON. Canonical JSON differs from ours in the order of keys only.
fn json_bytes<T: serde::Serialize + ?Sized>(record: &T) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, record).expect("our records are JSON");
    count.0
}

/// What was left out on the way, and whether a text was shortened.
#[derive(Default)]
struct Cuts {
    left_out: Vec<NotCaptured>,
    shortened: bool,
}

impl Cuts {
    fn text(&mut self, text: &str, bytes_most: usize) -> String {
        let cut = cut(text, bytes_most);
        self.shortened |= cut != text;
        cut
    }

    fn statement(&mut self, said: &Statement, bytes_most: usize) -> Statement {
        let text = self.text(&said.text, bytes_most);
        Statement { text, by: said.by.clone(), standing: said.standing }
    }

    /// The entries of `list` worth most, in their order; the rest is named.
    fn pick<'a, T>(
        &mut self,
        name: &str,
        list: &'a [T],
        items_most: usize,
        worth: impl Fn(usize, &T) -> usize,
    ) -> Vec<&'a T> {
        note_left_out(&mut self.left_out, name, list.len().saturating_sub(items_most), Some(FACTS));
        best(list, items_most, worth)
    }

    fn statements(&mut self, name: &str, list: &[Statement], bound: Bound) -> Vec<Statement> {
        // The user's own words first, then the newest.
        let worth = |at, said: &Statement| at + if said.by == "user" { list.len() } else { 0 };
        let kept = self.pick(name, list, bound.items, worth);
        kept.into_iter().map(|said| self.statement(said, bound.bytes)).collect()
    }

    fn texts(&mut self, name: &str, list: &[String], bound: Bound) -> Vec<String> {
        // The first ones first.
        let kept = self.pick(name, list, bound.items, |at, _| list.len() - at);
        kept.into_iter().map(|text| self.text(text, bound.bytes)).collect()
    }
}

/// The `items_most` entries of `list` of the greatest worth, in their order.
fn best<T>(list: &[T], items_most: usize, worth: impl Fn(usize, &T) -> usize) -> Vec<&T> {
    let mut ranked: Vec<usize> = (0..list.len()).collect();
    if ranked.len() > items_most {
        ranked.sort_by_key(|at| (std::cmp::Reverse(worth(*at, &list[*at])), *at));
        ranked.truncate(items_most);
        ranked.sort_unstable();
    }
    ranked.into_iter().map(|at| &list[at]).collect()
}

/// At most `bytes_most` bytes of `text` as JSON has them, the cut named; a text too short for
/// that is only the name of the cut.
fn cut(text: &str, bytes_most: usize) -> String {
    let mut target = bytes_most;
    loop {
        let shorter = shorten(text, target);
        // Two for the quotes.
        if target == 0 || json_bytes(&shorter) <= bytes_most + 2 {
            return shorter;
        }
        target = target * 3 / 4;
    }
}

fn core(whole: &Contract, b: &Bounds, made: &[Made]) -> Contract {
    let mut cuts = Cuts::default();
    let initial_prompt = Statement {
        text: cut(&whole.initial_prompt.text, b.prompt_bytes),
        ..whole.initial_prompt.clone()
    };
    let prompt_shortened = initial_prompt.text != whole.initial_prompt.text;
    let mut core = Contract {
        task_goal: Statement {
            text: cut(&whole.task_goal.text, b.goal_bytes).replace('\n', " "),
            ..whole.task_goal.clone()
        },
        initial_prompt,
        later_prompts: cuts.statements("laterPrompts", &whole.later_prompts, b.later),
        plan: plan(&mut cuts, &whole.plan, b.plan),
        tasks_remaining: cuts.texts("tasksRemaining", &whole.tasks_remaining, b.tasks),
        done: cuts.statements("done", &whole.done, b.done),
        next_action: whole.next_action.as_ref().map(|next| cuts.statement(next, b.next_bytes)),
        do_not_redo: cuts.statements("doNotRedo", &whole.do_not_redo, b.do_not_redo),
        decisions: cuts.statements("decisions", &whole.decisions, b.decisions),
        constraints: cuts.statements("constraints", &whole.constraints, b.constraints),
        acceptance_assertions: cuts.statements(
            "acceptanceAssertions",
            &whole.acceptance_assertions,
            b.acceptance,
        ),
        last_messages: messages(&mut cuts, &whole.last_messages, b.messages),
        staged: cuts.texts("staged", &whole.staged, b.staged),
        skills_loaded: cuts.texts("skillsLoaded", &whole.skills_loaded, bound(b.skills, 120)),
        file_manifest: files(&whole.file_manifest, b.files),
        commands_run: commands(&whole.commands_run, b.commands, b.tail_bytes),
        ..small(whole, b)
    };
    for call in
        cuts.pick("openCalls", &whole.open_calls, b.open_calls.items, |at, _| usize::MAX - at)
    {
        let mut call = call.clone();
        call.summary = cuts.text(&call.summary, b.open_calls.bytes);
        core.open_calls.push(call);
    }
    for piece in whole.in_flight_code.iter().take(b.in_flight.items) {
        let mut piece = piece.clone();
        piece.path = cut(&piece.path, 200);
        piece.snippet = cut(&piece.snippet, b.in_flight.bytes);
        core.in_flight_code.push(piece);
    }
    for missing in
        cuts.pick("notCaptured", &whole.not_captured, b.not_captured.items, |at, _| usize::MAX - at)
    {
        let what = cuts.text(&missing.what, b.not_captured.bytes);
        let why = cuts.text(&missing.why, b.not_captured.bytes);
        core.not_captured.push(NotCaptured { what, why });
    }
    let facts_needed = cuts.shortened || !cuts.left_out.is_empty();
    core.not_captured.extend(cuts.left_out);
    core.attachments = made
        .iter()
        .map(|made| &made.entry)
        .filter(|entry| match entry.name.as_str() {
            PROMPT => prompt_shortened,
            FACTS => facts_needed,
            _ => true,
        })
        .cloned()
        .collect();
    core
}

/// The fields that need no list of their own; the lists that `core` fills are empty.
fn small(whole: &Contract, b: &Bounds) -> Contract {
    let mut reason = whole.reason.clone();
    reason.text = reason.text.map(|text| cut(&text, b.next_bytes));
    Contract {
        format: whole.format.clone(),
        contract_id: whole.contract_id.clone(),
        session_id: whole.session_id.clone(),
        leg: whole.leg,
        created_at: whole.created_at,
        parent_contract: whole.parent_contract.clone(),
        from: whole.from.clone(),
        candidates: whole.candidates.clone(),
        reason,
        permission_level: whole.permission_level,
        branch: whole.branch.clone(),
        base_commit: whole.base_commit.clone(),
        snapshot_commit: whole.snapshot_commit.clone(),
        snapshot_tree: whole.snapshot_tree.clone(),
        safe_point: whole.safe_point.clone(),
        staged: Vec::new(),
        in_progress: whole.in_progress.clone(),
        task_goal: whole.task_goal.clone(),
        initial_prompt: Statement { text: String::new(), ..whole.task_goal.clone() },
        later_prompts: Vec::new(),
        plan: Vec::new(),
        tasks_remaining: Vec::new(),
        done: Vec::new(),
        next_action: None,
        do_not_redo: Vec::new(),
        decisions: Vec::new(),
        constraints: Vec::new(),
        acceptance_assertions: Vec::new(),
        file_manifest: FileManifest::default(),
        in_flight_code: Vec::new(),
        commands_run: Vec::new(),
        skills_loaded: Vec::new(),
        open_calls: Vec::new(),
        last_messages: Vec::new(),
        usage: whole.usage.iter().take(b.usage).cloned().collect(),
        not_captured: Vec::new(),
        redactions: whole.redactions.clone(),
        repository: whole.repository.clone(),
        attachments: Vec::new(),
    }
}

/// Open items before finished ones, the first open and the last finished. What is only claimed to
/// be finished is worth as much as what is open.
fn plan(cuts: &mut Cuts, plan: &[PlanEntry], bound: Bound) -> Vec<PlanEntry> {
    let worth = |at, item: &PlanEntry| match item.status {
        PlanStatus::Completed if item.not_seen_in_git => 2 * plan.len() - at,
        PlanStatus::Completed => at,
        PlanStatus::InProgress => 3 * plan.len(),
        PlanStatus::Pending => 2 * plan.len() - at,
    };
    let kept = cuts.pick("plan", plan, bound.items, worth);
    kept.into_iter()
        .map(|item| PlanEntry { text: cuts.text(&item.text, bound.bytes), ..item.clone() })
        .collect()
}

/// The newest words, then the summary of what was before them, then older words.
fn messages(cuts: &mut Cuts, said: &[Statement], bound: Bound) -> Vec<Statement> {
    let newest = said.len().saturating_sub(1);
    let worth = |at, message: &Statement| match at {
        at if at == newest => 2 * said.len(),
        _ if message.by.ends_with(SUMMARY_BY) => said.len(),
        at => at,
    };
    let kept = cuts.pick("lastMessages", said, bound.items, worth);
    kept.into_iter().map(|message| cuts.statement(message, bound.bytes)).collect()
}

/// Files that only the snapshot holds first; the manifest has all.
fn files(manifest: &FileManifest, bound: Bound) -> FileManifest {
    let count = manifest.files.len();
    let worth = |at, file: &FileEntry| count - at + if file.committed { 0 } else { count };
    let kept = best(&manifest.files, bound.items, worth).into_iter().map(|file| FileEntry {
        path: file.path.as_deref().map(|path| cut(path, bound.bytes)),
        path_base64: file.path_base64.clone().filter(|path| path.len() <= 2 * bound.bytes),
        ..file.clone()
    });
    // A path too long to be named here stands in the manifest alone.
    let named = |file: &FileEntry| {
        file.path_base64.is_some()
            || file.path.as_deref().is_some_and(|path| head_before_cut(path).is_none())
    };
    FileManifest { total: manifest.total, files: kept.filter(named).collect() }
}

/// Distinct commands, each as it went last: failing ones first, then the newest.
fn commands(runs: &[CommandEntry], bound: Bound, tail_bytes: usize) -> Vec<CommandEntry> {
    let last: HashMap<&str, usize> =
        runs.iter().enumerate().map(|(at, run)| (run.command.as_str(), at)).collect();
    let mut distinct: Vec<usize> = last.into_values().collect();
    distinct.sort_unstable();
    let distinct: Vec<&CommandEntry> = distinct.into_iter().map(|at| &runs[at]).collect();
    let worth = |at, run: &&CommandEntry| {
        at + if run.exit_code.is_some_and(|code| code != 0) { runs.len() } else { 0 }
    };
    best(&distinct, bound.items, worth)
        .into_iter()
        .map(|run| CommandEntry {
            command: cut(&run.command, bound.bytes),
            exit_code: run.exit_code,
            tail: if tail_bytes == 0 { String::new() } else { cut(&run.tail, tail_bytes) },
        })
        .collect()
}
