//! Everything that is known, as one contract without limits: cleaned, merged with what earlier
//! contracts knew, in a fixed order.

use super::Facts;
use super::bans;
use super::claims::is_unseen;
use super::clean::Cleaner;
use super::lists::{Said, by_user, declared, merge, note_left_out, same, statement};
use crate::model::contract::{
    CONTRACT_FORMAT, CommandEntry, Contract, FileEntry, FileManifest, From, InFlight,
    OpenCallEntry, PlanEntry, Repository, Standing, Statement,
};
use crate::model::envelope::is_ours;
use crate::model::quota::Reading;
use crate::model::screen::sanitise;
use crate::model::session::{Breach, DeclaredKind, NotCaptured, Outcome};
use crate::model::transcript::PlanStatus;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;

/// Runs of commands that are kept at all, newest ones.
const COMMANDS_MOST: usize = 1000;
/// Later prompts of the user that are kept at all, newest ones.
const PROMPTS_MOST: usize = 1000;
/// Root commits named; a history with more is bound by these.
const ROOTS_MOST: usize = 16;
/// Receivers named.
const CANDIDATES_MOST: usize = 16;
/// The attribution of a compaction's summary ends so.
pub(super) const SUMMARY_BY: &str = ", its own summary";
/// The attribution of what a subagent reported back ends so.
const REPORT_BY: &str = ", its subagent";

pub(super) fn gather(facts: &Facts<'_>, clean: &mut Cleaner) -> Contract {
    let session = facts.session;
    let speaker = format!("{} leg {}", facts.agent, facts.snapshot.leg);
    let mut not_captured = not_captured(facts, clean);
    let said = declared(facts, clean);
    let previous = facts.previous.map(|(contract, _)| contract);
    let of = |kind: DeclaredKind, before: fn(&Contract) -> &[Statement]| {
        let here = said.iter().filter(|fact| fact.kind == kind);
        merge(previous.map_or(&[], before), here.map(|fact| fact.statement.clone()))
    };
    let done = of(DeclaredKind::Done, |c| &c.done);
    let plan = plan(facts, clean, &speaker, &said, &done);
    let task = clean.text(&session.task);
    let later_prompts = later_prompts(facts, clean, &task, &mut not_captured);
    let mut constraints = of(DeclaredKind::Constraint, |c| &c.constraints);
    add_bans(&mut constraints, &task, &later_prompts);
    let do_not_redo = of(DeclaredKind::DoNotRedo, |c| &c.do_not_redo);
    let do_not_redo = with_recorded(&do_not_redo, &facts.transcript.refusals, clean, &speaker);
    let decisions = of(DeclaredKind::Decision, |c| &c.decisions);
    let decisions = with_recorded(&decisions, &facts.transcript.decisions, clean, &speaker);
    let commands_run = commands(facts, clean, &mut not_captured);
    Contract {
        format: CONTRACT_FORMAT.to_owned(),
        contract_id: facts.contract_id.clone(),
        session_id: session.session_id.clone(),
        leg: facts.snapshot.leg,
        created_at: facts.now,
        parent_contract: facts.previous.map(|(_, digest)| digest.clone()),
        from: from(facts, clean),
        candidates: facts.candidates.iter().take(CANDIDATES_MOST).cloned().collect(),
        reason: reason(facts.breach, clean),
        permission_level: session.permission_level,
        branch: clean.name(&session.workplace.branch),
        base_commit: session.workplace.base_commit.clone(),
        snapshot_commit: facts.snapshot.commit.clone(),
        snapshot_tree: facts.snapshot.tree.clone(),
        safe_point: session.safe_point.clone(),
        staged: facts.snapshot.staged.iter().map(|path| clean.text(path)).collect(),
        in_progress: facts.snapshot.in_progress.as_deref().map(|word| clean.name(word)),
        task_goal: by_user(first_line(&task)),
        initial_prompt: by_user(&task),
        later_prompts,
        next_action: next_action(facts, &plan, &said, &done),
        tasks_remaining: remaining(facts, clean, &plan),
        plan,
        done,
        do_not_redo,
        decisions,
        constraints,
        acceptance_assertions: of(DeclaredKind::Assert, |c| &c.acceptance_assertions),
        file_manifest: files(facts, clean),
        in_flight_code: in_flight(facts, clean),
        commands_run,
        skills_loaded: facts.transcript.skills.iter().map(|skill| clean.name(skill)).collect(),
        open_calls: open_calls(facts, clean),
        last_messages: last_messages(facts, clean, &speaker),
        usage: usage(facts, clean),
        not_captured,
        redactions: BTreeMap::new(),
        repository: Repository {
            object_format: clean.name(&facts.repository.object_format),
            root_commits: facts.repository.root_commits.iter().take(ROOTS_MOST).cloned().collect(),
        },
        attachments: Vec::new(),
    }
}

fn from(facts: &Facts<'_>, clean: &mut Cleaner) -> From {
    let dispatch = facts.session.dispatch.as_ref().filter(|start| &start.agent == facts.agent);
    let account = dispatch.and_then(|start| start.account.as_deref());
    let agent_session = dispatch
        .and_then(|start| start.agent_session.as_deref())
        .or(facts.transcript.agent_session.as_deref());
    From {
        agent: facts.agent.clone(),
        account: account.map(|account| clean.name(account)),
        model: facts.transcript.model.as_deref().map(|model| clean.name(model)),
        agent_session: agent_session.map(|id| clean.name(id)),
        outcome: facts.leg_end.outcome,
        forced: facts.leg_end.forced,
    }
}

fn reason(breach: &Breach, clean: &mut Cleaner) -> Breach {
    Breach {
        reason: breach.reason,
        text: breach.text.as_deref().map(|text| clean.text(text)),
        reading: breach.reading.as_ref().map(|reading| clean_reading(reading, clean)),
        target: breach.target.clone(),
        at: breach.at,
    }
}

fn clean_reading(reading: &Reading, clean: &mut Cleaner) -> Reading {
    Reading { source: clean.name(&reading.source), ..reading.clone() }
}

/// The first line of `text` that says something.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("")
}

/// What the user said after the task: of earlier legs, then of this one. Our own envelope and
/// first prompt are no words of the user's.
fn later_prompts(
    facts: &Facts<'_>,
    clean: &mut Cleaner,
    task: &str,
    not_captured: &mut Vec<NotCaptured>,
) -> Vec<Statement> {
    let known = facts.previous.map_or(&[][..], |(contract, _)| &contract.later_prompts);
    let prompts = &facts.transcript.prompts;
    let from = prompts.len().saturating_sub(PROMPTS_MOST);
    note_left_out(not_captured, "laterPrompts", from, None);
    let mut said = Vec::new();
    for prompt in &prompts[from..] {
        if is_ours(&prompt.text, &facts.session.task) {
            continue;
        }
        let text = clean.quoted(&prompt.text);
        if text.trim() != task.trim() && !text.trim().is_empty() {
            said.push(statement(&text, "user", Standing::Quoted));
        }
    }
    // An agent's session that goes on over two legs shows the first leg's prompts again.
    let mut all = known.to_vec();
    all.extend(said.into_iter().filter(|new| !known.iter().any(|old| same(old, new))));
    all
}

/// Adds the limits that the user set in task and prompts, in the user's own words.
fn add_bans(constraints: &mut Vec<Statement>, task: &str, later_prompts: &[Statement]) {
    let prompts = std::iter::once(task).chain(later_prompts.iter().map(|said| &*said.text));
    for text in bans::sentences(prompts) {
        let said = statement(text, "user", Standing::Quoted);
        if !constraints.iter().any(|known| same(known, &said)) {
            constraints.push(said);
        }
    }
}

/// The agent's last plan, or the one handed to it if it left none; then the items declared.
fn plan(
    facts: &Facts<'_>,
    clean: &mut Cleaner,
    speaker: &str,
    said: &[Said],
    done: &[Statement],
) -> Vec<PlanEntry> {
    let mut plan: Vec<PlanEntry> = Vec::new();
    for item in &facts.transcript.plan {
        plan.push(PlanEntry {
            text: clean.quoted(&item.text),
            status: item.status,
            by: speaker.to_owned(),
            standing: Standing::Quoted,
            not_seen_in_git: is_unseen(item, facts.files, &facts.transcript.files, facts.in_base),
        });
    }
    let own = !plan.is_empty();
    if let (false, Some((previous, _))) = (own, facts.previous) {
        plan.extend(previous.plan.iter().cloned());
    }
    let items = said.iter().filter(|fact| fact.kind == DeclaredKind::Plan);
    // An item an agent declared in an earlier leg is in that leg's plan or was dropped from it;
    // what the user asked for stays until it is done.
    for fact in items.filter(|fact| fact.this_leg || fact.statement.by == "user" || !own) {
        if plan.iter().all(|item| item.text.trim() != fact.statement.text.trim()) {
            let Statement { text, by, standing } = fact.statement.clone();
            let status = PlanStatus::Pending;
            plan.push(PlanEntry { text, status, by, standing, not_seen_in_git: false });
        }
    }
    for item in &mut plan {
        if done.iter().any(|fact| fact.text.trim() == item.text.trim()) {
            item.status = PlanStatus::Completed;
        }
    }
    plan
}

fn open(plan: &[PlanEntry]) -> impl Iterator<Item = &PlanEntry> {
    plan.iter().filter(|item| item.status != PlanStatus::Completed)
}

/// What the plan has open; of an agent without a plan, what its last turn named.
fn remaining(facts: &Facts<'_>, clean: &mut Cleaner, plan: &[PlanEntry]) -> Vec<String> {
    if plan.is_empty() {
        facts.leg_end.open_items.iter().map(|item| clean.text(item)).collect()
    } else {
        open(plan).map(|item| item.text.clone()).collect()
    }
}

/// Declared in this leg; else, if the agent left no plan, what it was told; else what it was at.
/// What was next before a leg that ended done, or is in what was done since, is done.
fn next_action(
    facts: &Facts<'_>,
    plan: &[PlanEntry],
    said: &[Said],
    done: &[Statement],
) -> Option<Statement> {
    let is_open = |next: &&Statement| done.iter().all(|fact| fact.text.trim() != next.text.trim());
    let declared = said
        .iter()
        .rfind(|fact| fact.kind == DeclaredKind::Next && fact.this_leg)
        .map(|fact| &fact.statement)
        .filter(is_open);
    let before = facts
        .previous
        .filter(|_| facts.transcript.plan.is_empty())
        .filter(|_| facts.leg_end.outcome != Outcome::Done)
        .and_then(|(contract, _)| contract.next_action.as_ref())
        .filter(|next| done.iter().all(|fact| !fact.text.contains(next.text.trim())));
    declared.or(before).cloned().or_else(|| {
        let item = open(plan)
            .find(|item| item.status == PlanStatus::InProgress)
            .or_else(|| open(plan).next())?;
        Some(statement(&item.text, &item.by, item.standing))
    })
}

/// Changed files in the order of their paths. A path that holds a secret is not kept as bytes.
fn files(facts: &Facts<'_>, clean: &mut Cleaner) -> FileManifest {
    let mut files: Vec<FileEntry> = Vec::with_capacity(facts.files.len());
    for file in facts.files {
        let mut file = file.clone();
        file.path = file.path.map(|path| clean.text(&path));
        file.mode =
            file.mode.filter(|mode| mode.len() <= 6 && mode.bytes().all(|b| b.is_ascii_digit()));
        if let Some(bytes) = &file.path_base64 {
            let raw = BASE64_STANDARD.decode(bytes).unwrap_or_default();
            let shown = sanitise(&String::from_utf8_lossy(&raw));
            let redacted = clean.text(&shown);
            if redacted != shown || raw.is_empty() {
                file.path = Some(redacted);
                file.path_base64 = None;
            }
        }
        files.push(file);
    }
    files.sort_by(|a, b| (&a.path, &a.path_base64).cmp(&(&b.path, &b.path_base64)));
    FileManifest { total: files.len() as u64, files }
}

fn in_flight(facts: &Facts<'_>, clean: &mut Cleaner) -> Vec<InFlight> {
    let mut pieces = Vec::with_capacity(facts.in_flight.len());
    for piece in facts.in_flight {
        pieces.push(InFlight {
            path: clean.text(&piece.path),
            line: piece.line,
            snippet: clean.quoted(&piece.snippet),
        });
    }
    pieces
}

fn commands(
    facts: &Facts<'_>,
    clean: &mut Cleaner,
    not_captured: &mut Vec<NotCaptured>,
) -> Vec<CommandEntry> {
    let runs = &facts.transcript.commands;
    let from = runs.len().saturating_sub(COMMANDS_MOST);
    note_left_out(not_captured, "commandsRun", from, None);
    let mut commands = Vec::with_capacity(runs.len() - from);
    for run in &runs[from..] {
        commands.push(CommandEntry {
            command: clean.quoted(&run.command),
            // What no canonical form holds is no exit code either.
            exit_code: run.exit_code.filter(|code| code.unsigned_abs() < 1 << 53),
            tail: clean.tail(&run.tail),
        });
    }
    commands
}

fn open_calls(facts: &Facts<'_>, clean: &mut Cleaner) -> Vec<OpenCallEntry> {
    let mut calls: Vec<_> = facts.transcript.open_calls.iter().collect();
    calls.sort_by(|a, b| (&a.1.tool, &a.1.summary, a.0).cmp(&(&b.1.tool, &b.1.summary, b.0)));
    let mut entries = Vec::with_capacity(calls.len());
    for (_, call) in calls {
        entries.push(OpenCallEntry {
            tool: clean.name(&call.tool),
            summary: clean.quoted(&call.summary),
        });
    }
    entries
}

/// What was declared, and what the agent's records say.
fn with_recorded(
    declared: &[Statement],
    recorded: &[String],
    clean: &mut Cleaner,
    speaker: &str,
) -> Vec<Statement> {
    // Its words are the agent's even where it tells what the user decided.
    let recorded =
        recorded.iter().map(|text| statement(&clean.quoted(text), speaker, Standing::Quoted));
    merge(declared, recorded)
}

fn last_messages(facts: &Facts<'_>, clean: &mut Cleaner, speaker: &str) -> Vec<Statement> {
    let summary = facts.transcript.summary.iter().map(|text| (text, SUMMARY_BY));
    let reports = facts.transcript.reports.iter().map(|text| (text, REPORT_BY));
    let messages = facts.transcript.messages.iter().map(|text| (text, ""));
    let mut said = Vec::new();
    for (text, what) in summary.chain(reports).chain(messages) {
        let text = clean.quoted(text);
        said.push(statement(&text, &format!("{speaker}{what}"), Standing::Quoted));
    }
    said
}

/// The latest reading of each window, from the session and the transcript.
fn usage(facts: &Facts<'_>, clean: &mut Cleaner) -> Vec<Reading> {
    let mut latest: Vec<&Reading> = Vec::new();
    for reading in facts.session.readings.iter().chain(&facts.transcript.readings) {
        match latest.iter_mut().find(|known| known.window_minutes == reading.window_minutes) {
            Some(known) if known.observed_at <= reading.observed_at => *known = reading,
            Some(_) => {}
            None => latest.push(reading),
        }
    }
    latest.sort_by_key(|reading| reading.window_minutes);
    latest.into_iter().map(|reading| clean_reading(reading, clean)).collect()
}

/// What could not be had, each reason of the transcript once.
fn not_captured(facts: &Facts<'_>, clean: &mut Cleaner) -> Vec<NotCaptured> {
    let mut all = Vec::new();
    for missing in &facts.snapshot.not_captured {
        all.push(NotCaptured { what: clean.text(&missing.what), why: clean.text(&missing.why) });
    }
    for warning in &facts.transcript.warnings {
        let why = clean.quoted(warning);
        if all.iter().all(|missing| missing.why != why) {
            all.push(NotCaptured { what: "transcript".to_owned(), why });
        }
    }
    all
}
