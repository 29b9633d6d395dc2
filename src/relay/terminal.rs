//! Driving at a person's terminal: lending it to the agent of a leg, taking it back, and the pauses
//! in which the person is heard.

use super::{Driver, End, Progress};
use crate::agents::{Obstacle, ObstacleKind};
use crate::error::Fault;
use crate::host::env;
use crate::host::process::{self, Spawn, Speaks};
use crate::host::terminal::Terminal;
use crate::model::fsm::{self, Effect, Event};
use crate::model::names::AgentName;
use crate::model::session::{Process, State};
use anyhow::Result;
use std::ffi::OsString;
use std::process::Child;
use std::sync::atomic::Ordering;

impl Driver<'_> {
    /// Takes the terminal for an interactive session; nothing to do for another.
    ///
    /// # Errors
    /// Refused: there is none.
    pub fn sit_down(&mut self) -> Result<()> {
        if self.session().is_interactive() && !self.session().state.is_end() {
            let id = &self.session().session_id;
            let fault =
                Fault::refused(format!("session '{id}' works at a terminal, and this is none"))
                    .hint(format!(
                        "in a terminal of yours: git relay resume {id}; or to go on without one: git relay resume {id} --headless"
                    ));
            self.terminal = Some(Terminal::open()?.ok_or(fault)?);
        }
        Ok(())
    }

    /// Goes on without the terminal from here on: what was done at it is sealed as it was, and the
    /// next agent is started as `run` starts one.
    ///
    /// # Errors
    /// Refused: the agent is at work in its terminal.
    pub fn leave_terminal(&mut self) -> Result<()> {
        if !self.session().is_interactive() || self.session().state.is_end() {
            return Ok(());
        }
        let open = self.session().dispatch.clone();
        let open = open.filter(|_| matches!(fsm::due(self.session()), Effect::Watch));
        if let Some(process) = open.as_ref().and_then(|dispatch| self.find_process(dispatch)) {
            let (agent, id) = (&self.session().agent(), &self.session().session_id);
            let agent = agent.map_or("an agent", AgentName::as_str);
            return Err(Fault::refused(format!(
                "{agent} is at work at a terminal (process {})",
                process.pid
            ))
            .hint(format!("end it there, then: git relay resume {id} --headless"))
            .into());
        }
        let no_launch = std::mem::replace(&mut self.options.no_launch, true);
        let settled = self.drive();
        self.options.no_launch = no_launch;
        if !matches!(settled?, End::Over(_)) {
            self.go_on()?;
            self.step(&Event::LeftTerminal, None)?;
        }
        Ok(())
    }

    /// The person has seen who is next, or has just asked for it.
    pub fn announced(&mut self) {
        self.announced = true;
    }

    /// Whether the next start is to be shown to the person first: every one but a session's first.
    pub(super) fn must_be_announced(&mut self) -> bool {
        let seen = std::mem::take(&mut self.announced);
        self.terminal.is_some() && !seen && !self.session().dispatches.is_empty()
    }

    /// The person wants another agent to go on.
    pub fn hand_over(&mut self) -> Result<()> {
        match self.session().state {
            State::Running => self.request(None, "ended by hand"),
            // Nobody had taken over yet: the next candidate is due anyway.
            _ => Ok(()),
        }
    }

    /// Whether somebody wants us gone: by a signal, or the terminal hung up.
    pub fn is_to_stop(&self) -> bool {
        self.is_interrupted()
    }

    pub(super) fn hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Relaxed)
    }

    /// Starts a program that is to have the terminal: it waits until it has it.
    pub(super) fn spawn_at_terminal(
        &self,
        argv: &[OsString],
        environment: &[(OsString, Option<OsString>)],
    ) -> Result<Child> {
        anyhow::ensure!(self.terminal.is_some(), "no terminal to start an agent in");
        let mut words = vec![env::program()?.into(), "hook".into(), "foreground".into()];
        words.extend_from_slice(argv);
        let folder = self.worktree();
        process::spawn(Spawn {
            argv: &words,
            folder: &folder,
            environment,
            speaks: Speaks::Terminal,
        })
    }

    pub(super) fn lend_to(&mut self, process: Process) {
        if let Some(terminal) = &mut self.terminal {
            (self.report)(Progress::Lent);
            terminal.lend(process);
        }
    }

    /// Lends the terminal to an agent whose driver was killed, if it lives in this very one.
    pub(super) fn lend_again(&mut self, process: Option<Process>) {
        if let (None, Some(process), Some(terminal)) = (&self.child, process, &self.terminal)
            && terminal.is_of(process)
        {
            self.lend_to(process);
        }
    }

    /// One look after the terminal: an agent that was stopped stops us, one that is gone gives it
    /// back.
    pub(super) fn tend_terminal(&mut self, alive: bool) {
        let Some(terminal) = &mut self.terminal else { return };
        if alive {
            terminal.tend();
        } else if terminal.take_back() {
            (self.report)(Progress::Back);
        }
    }

    /// At a terminal an agent that is not logged in shows its own log-in.
    pub(super) fn can_log_in_here(&self, found: &[Obstacle]) -> bool {
        self.terminal.is_some()
            && found.iter().all(|obstacle| obstacle.kind == ObstacleKind::NotSignedIn)
    }
}
