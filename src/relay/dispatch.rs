//! The next agent: note, candidate, envelope, intent, start. ENVELOPE_BUILT to DISPATCHED.

use super::{Driver, End, hooks, start};
use crate::agents::{Order, Seat};
use crate::error::{Fault, Kind, kind_of};
use crate::host::process::{self, Spawn, Speaks};
use crate::host::{clock, env, files, random, tail::Tail};
use crate::model::envelope;
use crate::model::fsm::Event;
use crate::model::names::{AgentName, Nonce};
use crate::model::receivers;
use crate::model::session::{Dispatch, DispatchOutcome, State};
use crate::model::shell::shell_word;
use crate::model::{foreign, screen};
use crate::store::audit::{self, Note, Verified};
use crate::store::{keys, short};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

/// What an agent is to read, in the session worktree.
const ENVELOPE_FILE: &str = ".relay/envelope.md";
const TASK_FILE: &str = ".relay/task.md";
/// Where an agent at a terminal, or its hooks, tell how it goes.
const SIGNS_VARIABLE: &str = "GIT_RELAY_SIGNS";

impl Driver<'_> {
    /// Starts the next candidate; when nobody is left, says how the session rests.
    pub(super) fn dispatch(&mut self) -> Result<Option<End>> {
        // An agent whose start failed may have run for a while: what it rewrote is not taken as
        // what the next one starts with.
        self.check_guard()?;
        self.clear_streams()?;
        if self.session().contract.is_some() {
            self.write_note()?;
        }
        if self.is_interrupted() {
            return Ok(Some(End::Killed));
        }
        // Left before it took over: whoever did that is asked before another one is started.
        if std::mem::take(&mut self.left_by_hand) {
            return Ok(Some(End::Killed));
        }
        if self.options.no_launch {
            return Ok(Some(End::NotStarted));
        }
        if let Some(detail) = self.goes_in_circles() {
            return Ok(Some(End::Asks { detail: Some(detail), open_items: Vec::new() }));
        }
        let Some(agent) = self.next_receiver()? else {
            return Ok(Some(self.nobody_is_left()));
        };
        if self.must_be_announced() {
            return Ok(Some(End::Next { agent }));
        }
        if let Some(what) = start::nobody_commits(&self.hub.repo)? {
            self.notice_once(format!("{what} (to mend it: {})", start::TO_BE_KNOWN));
        }
        self.tried.push(agent.clone());
        let seat = self.hub.seat(&agent)?;
        let nonce = Nonce::new(random::hex(32)?).context("32 hex digits make a nonce")?;
        self.make_inbox()?;
        let prompt_file = self.write_prompt(&nonce)?;
        self.forget_pause()?;
        let common = self.hub.repo.common_dir();
        hooks::write(common)?;
        hooks::write_busy(common, &self.worktree().join(self.hub.repo.users_hooks()))?;
        let guard = self.record_guard()?;
        // It was said of what this agent finds, not of what it will leave.
        self.options.accept_config = false;
        let leg = self.session().leg + 1;
        let dispatch = Dispatch::begin(agent, nonce.clone(), leg, clock::now());
        // The intent is on disk before the act: from here on a process may carry this nonce.
        self.step(&Event::Dispatching { dispatch, guard }, None)?;
        if let Err(error) = self.launch(&seat, &nonce, &prompt_file) {
            // What the machine lacks for this agent, the next one may not need.
            if kind_of(&error) != Kind::Environment {
                return Err(error);
            }
            self.sweep(&nonce)?;
            let detail = foreign::clean(&format!("{error:#}")).text;
            let outcome = DispatchOutcome::Failed;
            self.step(&Event::DispatchFailed { outcome, detail, resets_at: None }, None)?;
        }
        Ok(None)
    }

    /// Who names agents outdoes a wish of before: the first that is free goes first. Of agents that
    /// are all at limits whose end nobody told, the person may know better: the first is asked again.
    pub fn ask_all_the_same(&mut self, named: &[AgentName]) -> Result<()> {
        let (session, now) = (self.session(), clock::now());
        let known = |agent| receivers::exhausted(session, agent, now);
        let free = named.iter().find(|agent| known(agent).is_none());
        let first = match free {
            Some(free) => receivers::wish(session).and(Some(free)),
            None => named.iter().find(|agent| known(agent) == Some(None)),
        };
        match (session.state, first.cloned()) {
            (State::EnvelopeBuilt, Some(first)) => self.request(Some(first), "to go on"),
            _ => Ok(()),
        }
    }

    fn nobody_is_left(&mut self) -> End {
        let now = clock::now();
        // Who gave it away is not asked to take it back.
        if let Some(free) = receivers::free_giver(self.session(), now)
            && !self.tried.contains(&free)
            && !self.spent.contains(&free)
        {
            let id = self.session().session_id.clone();
            self.notice(format!(
                "{free} gave it away and is free: git relay resume {id} --agents {free}"
            ));
        }
        let session = self.session();
        let resets_at = receivers::first_reset(session, now);
        let at_limit = |agent| receivers::exhausted(session, agent, now).is_some();
        if resets_at.is_some() || session.agents.iter().any(at_limit) {
            return End::Exhausted { resets_at };
        }
        let last = session.dispatches.iter().rev().find(|known| known.leg > session.leg);
        let of_leg = || session.breach.as_ref().and_then(|breach| breach.text.clone());
        let detail = last.and_then(|known| known.detail.clone()).or_else(of_leg);
        let agent = last.map(|known| &known.agent).or(session.agent());
        let whose = agent.map(|agent| format!("{agent}: ")).unwrap_or_default();
        End::Failed { detail: detail.map(|detail| format!("{whose}{detail}")) }
    }

    /// Writes the contract's note where it is missing: a projection of the stored bytes. One that
    /// is there must be whole: it was written in one piece, so somebody changed it.
    fn write_note(&mut self) -> Result<()> {
        let verified = audit::contract(&self.hub.repo, &self.hub.trust, &self.stored)?;
        let on = &verified.contract.snapshot_commit;
        match audit::note(&self.hub.repo, &self.hub.trust, on, Some(&verified))? {
            Note::Holds => Ok(()),
            Note::Gone => self.hub.write_note_of(&verified),
            Note::Broken(why) => {
                Err(Fault::integrity(format!("the note on {}: {why}", short(on)))
                    .hint(format!(
                        "git notes --ref=relay show {on}; to have it written anew: git notes --ref=relay remove {on}"
                    ))
                    .into())
            }
        }
    }

    /// Writes what the next agent will read: the envelope of the contract as verified now, from
    /// what is stored, or the task for the first leg.
    fn write_prompt(&self, nonce: &Nonce) -> Result<PathBuf> {
        let session = self.session();
        let relay = hooks::program_link(self.hub.repo.common_dir());
        let text = match &session.contract {
            Some(_) => {
                let verified = audit::contract(&self.hub.repo, &self.hub.trust, &self.stored)?;
                let text = render(&verified, &relay.to_string_lossy());
                let folder = self.worktree().join(".relay");
                if std::fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
                    return Err(Fault::integrity(format!("'{}' is a link", folder.display()))
                        .hint(format!("look at it, then: rm {}", shell_word(&folder)))
                        .into());
                }
                files::replace(&self.worktree().join(ENVELOPE_FILE), text.as_bytes(), 0o600)?;
                text
            }
            None => envelope::first_prompt(
                &session.task,
                session.session_id.as_str(),
                &shell_word(&relay),
            ),
        };
        if session.contract.is_none() && session.is_interactive() {
            files::replace(&self.worktree().join(TASK_FILE), text.as_bytes(), 0o600)?;
        }
        let path = self.hub.folder(&session.session_id).join(format!("{nonce}.prompt.md"));
        files::replace(&path, text.as_bytes(), 0o600)?;
        Ok(path)
    }

    fn launch(&mut self, seat: &Seat, nonce: &Nonce, prompt_file: &std::path::Path) -> Result<()> {
        let hub = self.hub;
        let folder = hub.folder(&self.session().session_id);
        let (worktree, git_dir) = (self.worktree(), self.git_dir());
        let program = seat.program().ok_or_else(|| {
            Fault::environment(format!("'{}' is not installed", seat.name)).hint("git relay agents")
        })?;
        let variables = self.variables(seat, nonce)?;
        let other_branches = self.other_branches()?;
        let at_terminal = self.session().is_interactive();
        let start = if at_terminal { seat.agent.terminal.launch } else { seat.agent.launch };
        let first = self.session().contract.is_none();
        let launch = start(
            seat,
            &Order {
                program: &program,
                level: self.session().permission_level,
                session: &self.session().session_id,
                nonce,
                worktree: &worktree,
                branch: &self.session().workplace.branch,
                git_dir: &git_dir,
                common_dir: hub.repo.common_dir(),
                folder: &folder,
                prompt_file,
                shown_file: if first { TASK_FILE } else { ENVELOPE_FILE },
                relay: &env::program()?,
                key_folder: &keys::key_folder()?,
                reftable: hub.repo.is_reftable(),
                other_branches: &other_branches,
                variables: &variables,
                unsandboxed_shell: self.options.unsandboxed_shell,
                trust_folder: hub.settings.trust_folder,
            },
        )?;
        for warning in &launch.warnings {
            self.notice(warning.clone());
        }
        let mut environment: Vec<(OsString, Option<OsString>)> = self.scrubbed().collect();
        environment.extend(variables.iter().map(|(name, value)| (name.into(), Some(value.into()))));
        environment.extend(launch.environment);
        let stdout = self.open_stream(nonce, "stream")?;
        let child = if at_terminal {
            environment.push((SIGNS_VARIABLE.into(), Some(self.stream_path(nonce).into())));
            self.spawn_at_terminal(&launch.argv, &environment)?
        } else {
            let stderr = self.open_stream(nonce, "errors")?;
            let stdin = launch.prompt_on_stdin.then_some(prompt_file);
            process::spawn(Spawn {
                argv: &launch.argv,
                folder: &worktree,
                environment: &environment,
                speaks: Speaks::Files { stdin, stdout, stderr },
            })?
        };
        let started = process::identify(child.id());
        self.child = Some(child);
        self.launched = true;
        match started {
            Some(process) => {
                self.step(&Event::Launched { process }, None)?;
                self.lend_to(process);
                Ok(())
            }
            // It ended at once; what it wrote says why.
            None => Ok(()),
        }
    }

    fn open_stream(&self, nonce: &Nonce, kind: &str) -> Result<File> {
        let folder = self.hub.folder(&self.session().session_id);
        files::open_append(&folder.join(format!("{nonce}.{kind}")))
    }

    /// The first candidate that could start now; what keeps the others is said, once.
    pub(super) fn next_receiver(&mut self) -> Result<Option<AgentName>> {
        let level = self.session().permission_level;
        // At a terminal an agent shows its own log-in; one that needs none comes first.
        let mut can_log_in = None;
        for agent in receivers::order(self.session()) {
            let spent = self.tried.contains(&agent) || self.spent.contains(&agent);
            if spent || receivers::rests(self.session(), &agent, clock::now()) {
                if receivers::wish(self.session()) == Some(&agent) {
                    self.notice_once(format!(
                        "{agent} was asked for, but its window is used up or its start failed"
                    ));
                }
                continue;
            }
            let found = start::obstacles(self.hub, &agent, level, self.options.unsandboxed_shell)?;
            if found.is_empty() {
                return Ok(Some(agent));
            }
            if self.can_log_in_here(&found) {
                can_log_in = can_log_in.or(Some(agent));
                continue;
            }
            for obstacle in found {
                let words = format!(
                    "{agent} is passed over: {} (to use it: {})",
                    obstacle.what, obstacle.hint
                );
                self.notice_once(words);
            }
        }
        Ok(can_log_in)
    }

    /// `detail`, or the last line the agent wrote on standard error where that says more.
    pub(super) fn with_last_words(&self, nonce: &Nonce, detail: String) -> String {
        let folder = self.hub.folder(&self.session().session_id);
        let mut last = String::new();
        let read = Tail::new(folder.join(format!("{nonce}.errors"))).read_all(|line| {
            if !line.is_empty() {
                last = String::from_utf8_lossy(line).into_owned();
            }
        });
        let said = screen::line(&foreign::clean(&last).text);
        match read {
            Ok(()) if !said.is_empty() => format!("{detail}: {said}"),
            _ => detail,
        }
    }
}

/// The envelope of a verified contract.
pub fn render(verified: &Verified, relay: &str) -> String {
    envelope::render(
        &verified.contract,
        &verified.sealed.attachments,
        &verified.fingerprint,
        &shell_word(relay),
        envelope::TOKENS_MOST,
    )
}
