//! A leg as it could have been, for the tests of what is made out of it.

use super::contract::{Contract, FileEntry, FileStatus, InFlight, Repository};
use super::digest::{Draft, Facts, attachment_digest, build};
use super::names::{AgentName, ContractId, Digest, Nonce, Oid, SessionId};
use super::quota::Reading;
use super::session::{
    Breach, BreachReason, Declared, DeclaredKind, Dispatch, LegEnd, NotCaptured, Outcome,
    PermissionLevel, STATE_FORMAT, SafePoint, Session, Snapshot, State, Workplace,
};
use super::time::Timestamp;
use super::transcript::{CommandRun, OpenCall, PlanItem, PlanStatus, Prompt, Transcript};
use std::collections::BTreeSet;

pub(crate) const NOW: Timestamp = Timestamp(1_795_997_341);

/// Everything [`Facts`] borrows.
#[derive(Clone)]
pub(crate) struct Leg {
    pub(crate) session: Session,
    pub(crate) agent: AgentName,
    pub(crate) breach: Breach,
    pub(crate) leg_end: LegEnd,
    pub(crate) snapshot: Snapshot,
    pub(crate) transcript: Transcript,
    pub(crate) trailers: Vec<Declared>,
    pub(crate) files: Vec<FileEntry>,
    pub(crate) in_base: BTreeSet<String>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) diff: Vec<u8>,
    pub(crate) repository: Repository,
    pub(crate) previous: Option<(Contract, Digest)>,
    pub(crate) contract_id: ContractId,
    pub(crate) candidates: Vec<AgentName>,
}

/// A secret as a program could print it.
pub(crate) const SECRET: &str = concat!("AKIA", "Z7QX2LM4NP6RT5WB");

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

pub(crate) fn oid(digit: char) -> Oid {
    Oid::new(digit.to_string().repeat(40)).unwrap()
}

pub(crate) fn declared(kind: DeclaredKind, text: &str, by: &str, leg: u32) -> Declared {
    Declared { id: "0123456789abcdef".into(), kind, text: text.into(), by: by.into(), leg, at: NOW }
}

pub(crate) fn item(text: &str, status: PlanStatus) -> PlanItem {
    PlanItem { text: text.into(), status }
}

pub(crate) fn run(command: &str, exit_code: i64, tail: &str) -> CommandRun {
    CommandRun { command: command.into(), exit_code: Some(exit_code), tail: tail.into() }
}

pub(crate) fn file(path: &str, committed: bool) -> FileEntry {
    FileEntry {
        path: Some(path.into()),
        path_base64: None,
        status: FileStatus::Changed,
        mode: Some("100644".into()),
        sha256: Some(attachment_digest(path.as_bytes())),
        size_bytes: Some(10),
        committed,
    }
}

impl Leg {
    /// Claude's first leg on a login page, ended by its limit.
    pub(crate) fn first() -> Self {
        let reading = Reading {
            source: "rate_limit_event".into(),
            window_minutes: 300,
            used_permille: 1000,
            resets_at: Some(NOW.plus_seconds(3600)),
            observed_at: NOW,
        };
        let prompt = |text: &str| Prompt { text: text.into(), at: None };
        let task = "Add a login page\n\nUse the existing session table.";
        Self {
            session: session(task),
            agent: agent("claude"),
            breach: Breach {
                reason: BreachReason::Limit,
                text: Some("You've hit your session limit".into()),
                reading: Some(reading.clone()),
                target: None,
                at: NOW,
            },
            leg_end: LegEnd {
                outcome: Outcome::Limit,
                detail: None,
                open_items: vec!["Write the form".into()],
                forced: false,
                resets_at: None,
                at: NOW,
            },
            snapshot: snapshot(1),
            transcript: Transcript {
                agent_session: Some("8f14e45f".into()),
                model: Some("model-1".into()),
                prompts: vec![prompt(task), prompt("Keep the old route working.")],
                plan: vec![
                    item("Read the session table", PlanStatus::Completed),
                    item("Write the form", PlanStatus::InProgress),
                    item("Test the form", PlanStatus::Pending),
                ],
                commands: vec![
                    run("npm test", 1, "2 failed"),
                    run("ls", 0, ""),
                    run("npm run build", 0, "built"),
                ],
                open_calls: [(
                    "call_1".to_owned(),
                    OpenCall { tool: "Bash".into(), summary: "npm run migrate".into() },
                )]
                .into(),
                messages: vec!["I am writing the form now.".into()],
                skills: vec!["forms".into()],
                readings: vec![reading],
                ..Transcript::default()
            },
            trailers: vec![declared(
                DeclaredKind::Decision,
                "Sessions last a day",
                "commit 1a2b3c4",
                1,
            )],
            files: vec![file("src/login.ts", false), file("src/app.ts", true)],
            in_base: BTreeSet::new(),
            in_flight: vec![InFlight {
                path: "src/login.ts".into(),
                line: 3,
                snippet: "+<form>".into(),
            }],
            diff: b"+<form>\n".to_vec(),
            repository: Repository { object_format: "sha1".into(), root_commits: vec![oid('f')] },
            previous: None,
            contract_id: ContractId::new("c-3f2a1b2c").unwrap(),
            candidates: vec![agent("codex"), agent("gemini")],
        }
    }

    pub(crate) fn build(&self) -> Draft {
        let previous = self.previous.as_ref().map(|(contract, digest)| (contract, digest));
        let facts = Facts {
            session: &self.session,
            agent: &self.agent,
            breach: &self.breach,
            leg_end: &self.leg_end,
            snapshot: &self.snapshot,
            transcript: &self.transcript,
            trailers: &self.trailers,
            files: &self.files,
            in_base: &self.in_base,
            in_flight: &self.in_flight,
            in_flight_diff: &self.diff,
            repository: &self.repository,
            previous,
            contract_id: self.contract_id.clone(),
            candidates: &self.candidates,
            now: NOW,
        };
        build(&facts)
    }

    /// The leg after this one: Codex, with nothing said yet.
    pub(crate) fn next(&self) -> Self {
        let draft = self.build();
        let mut next = Self::first();
        next.session = self.session.clone();
        next.session.leg = 2;
        next.agent = agent("codex");
        next.snapshot = snapshot(2);
        next.transcript = Transcript::default();
        next.trailers = Vec::new();
        next.leg_end.open_items = Vec::new();
        next.contract_id = ContractId::new("c-00000002").unwrap();
        let digest = attachment_digest(&core(&draft.contract));
        next.previous = Some((draft.contract, digest));
        next
    }

    /// The same leg with `mark` in every text that comes from outside.
    pub(crate) fn planted(mut self, mark: &str) -> Self {
        let plant = |text: &mut String| *text = format!("{text} {mark} x");
        plant(&mut self.session.task);
        plant(&mut self.session.workplace.branch);
        let dispatch = self.session.dispatch.as_mut().unwrap();
        dispatch.account = Some(mark.into());
        dispatch.agent_session = Some(mark.into());
        self.breach.text.iter_mut().for_each(plant);
        self.breach.reading.iter_mut().for_each(|reading| plant(&mut reading.source));
        self.leg_end.open_items.iter_mut().for_each(plant);
        self.snapshot.staged.iter_mut().for_each(plant);
        self.snapshot.in_progress = Some(mark.into());
        for missing in &mut self.snapshot.not_captured {
            plant(&mut missing.what);
            plant(&mut missing.why);
        }
        for fact in self.session.declared.iter_mut().chain(&mut self.trailers) {
            plant(&mut fact.text);
            plant(&mut fact.by);
        }
        let t = &mut self.transcript;
        t.prompts.iter_mut().for_each(|prompt| plant(&mut prompt.text));
        t.plan.iter_mut().for_each(|item| plant(&mut item.text));
        t.commands.iter_mut().for_each(|run| {
            plant(&mut run.command);
            plant(&mut run.tail);
        });
        t.open_calls.values_mut().for_each(|call| {
            plant(&mut call.tool);
            plant(&mut call.summary);
        });
        t.messages.iter_mut().chain(&mut t.skills).for_each(plant);
        t.summary = Some(mark.into());
        t.model = Some(mark.into());
        t.warnings.push(mark.into());
        t.readings.iter_mut().for_each(|reading| plant(&mut reading.source));
        self.files.iter_mut().for_each(|file| file.path.iter_mut().for_each(plant));
        for piece in &mut self.in_flight {
            plant(&mut piece.path);
            plant(&mut piece.snippet);
        }
        self.diff.extend_from_slice(mark.as_bytes());
        plant(&mut self.repository.object_format);
        self
    }
}

/// The bytes of a contract as they are stored.
pub(crate) fn core(contract: &Contract) -> Vec<u8> {
    super::canon::encode(contract).unwrap()
}

fn session(task: &str) -> Session {
    let facts = [
        (DeclaredKind::DoNotRedo, "migration 0042 applied"),
        (DeclaredKind::Decision, "Plain HTML, no framework"),
        (DeclaredKind::Constraint, "No new dependency"),
        (DeclaredKind::Done, "Read the session table"),
        (DeclaredKind::Assert, "npm test passes"),
    ];
    Session {
        format: STATE_FORMAT.into(),
        session_id: SessionId::new("add-a-login-page-3f2a").unwrap(),
        state: State::Snapshotted,
        leg: 1,
        created_at: NOW,
        updated_at: NOW,
        task: task.into(),
        workplace: Workplace {
            worktree: ".relay/sessions/add-a-login-page-3f2a".into(),
            branch: "relay/add-a-login-page-3f2a".into(),
            base_commit: oid('a'),
            base_branch: Some("main".into()),
            port_base: None,
        },
        permission_level: PermissionLevel::Edit,
        agents: vec![agent("claude"), agent("codex"), agent("gemini")],
        threshold_permille: 900,
        inbox_offset: 0,
        declared: facts
            .map(|(kind, text)| declared(kind, text, "claude leg 1", 1))
            .into_iter()
            .collect(),
        request: None,
        adopted: None,
        dispatch: Some(Dispatch::begin(
            agent("claude"),
            Nonce::new("0".repeat(32)).unwrap(),
            1,
            NOW,
        )),
        dispatches: Vec::new(),
        breach: None,
        leg_end: None,
        safe_point: Some(SafePoint { commit: oid('b'), at: NOW }),
        snapshot: None,
        contract: None,
        readings: Vec::new(),
        hooks_fired: true,
        guard: None,
        finishing: None,
        result: None,
    }
}

fn snapshot(leg: u32) -> Snapshot {
    Snapshot {
        leg,
        commit: oid('c'),
        tree: oid('d'),
        parent: oid('b'),
        on_branch: true,
        in_progress: None,
        staged: vec!["src/app.ts".into()],
        not_captured: vec![NotCaptured { what: "big.bin".into(), why: "above 100 MiB".into() }],
        at: NOW,
    }
}
