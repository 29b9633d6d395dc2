//! Parting from an agent that we did not start and that is still at work.

use super::transcript_of;
use crate::error::Fault;
use crate::host::process;
use crate::host::tail::Tail;
use crate::model::session::{Adoption, Process};
use crate::model::transcript::Transcript;
use crate::relay::Driver;
use crate::relay::leg::{HowEnded, Leg};
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(50);
/// Between two signals, as for an agent of a leg.
const PATIENCE: Duration = Duration::from_secs(10);

impl Driver<'_> {
    /// Ends the agent between two of its calls if the person said so; else waits until its turn is
    /// over. `None`: the person does not want to wait.
    pub(super) fn part_from(&mut self, adoption: &Adoption) -> Result<Option<HowEnded>> {
        let Some(process) = adoption.process.filter(|process| process::is_alive(*process)) else {
            return Ok(Some(HowEnded::ByItself));
        };
        let fold = self.hub.seat(&adoption.agent)?.agent.fold;
        let fold = fold.context("an agent whose session was found has a parser")?;
        let path = transcript_of(self.hub, adoption)
            .context("the transcript of a running agent is there")?;
        let mut transcript = Tail::new(path);
        let mut leg = Leg::of(Transcript::default());
        let agent = &adoption.agent;
        let what = if adoption.force { "it is ended between two calls" } else { "waiting for it" };
        self.notice(format!("{agent} is still at work (process {}): {what}", process.pid));
        let deadline = Instant::now() + self.hub.settings.pause_deadline;
        loop {
            // Before the look: what was written before the end is then read.
            let alive = process::is_alive(process);
            let more = transcript.read(|line| leg.take_line(line, fold))?;
            if self.is_interrupted() {
                return Ok(None);
            }
            if more {
                continue;
            }
            if !alive {
                return Ok(Some(HowEnded::ByItself));
            }
            let late = Instant::now() > deadline;
            if adoption.force && (late || !leg.has_open_call()) {
                let how = if leg.has_open_call() { HowEnded::Forced } else { HowEnded::Asked };
                if !self.end_stranger(adoption, process)? {
                    return Ok(None);
                }
                return Ok(Some(how));
            }
            if !adoption.force && (leg.is_idle() || leg.is_at_limit()) {
                self.notice(format!(
                    "{agent} is left as it is (process {}): what it does from now on does not come along",
                    process.pid
                ));
                return Ok(Some(HowEnded::Asked));
            }
            process::wait_end(process, TICK);
        }
    }

    /// SIGINT, SIGTERM, SIGKILL. `false`: the person wants no more of it.
    fn end_stranger(&mut self, adoption: &Adoption, stranger: Process) -> Result<bool> {
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            process::signal_stranger(stranger, signal);
            // One that was stopped by Ctrl-Z would not hear it.
            process::signal_stranger(stranger, Signal::CONT);
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until {
                if !process::is_alive(stranger) {
                    self.tell_left_running(adoption)?;
                    return Ok(true);
                }
                if self.is_interrupted() {
                    return Ok(false);
                }
                process::wait_end(stranger, TICK);
            }
        }
        let (agent, pid) = (&adoption.agent, stranger.pid);
        Err(Fault::refused(format!("{agent} (process {pid}) cannot be ended"))
            .hint(format!("end it, then: git relay resume {}", self.session().session_id))
            .into())
    }

    /// Commands that it had started may go on, and write: they are the person's to end.
    fn tell_left_running(&mut self, adoption: &Adoption) -> Result<()> {
        let caller = self.hub.seat(&adoption.agent)?.agent.caller;
        let left = caller.map(|name| process::find_by_variable(name, &adoption.agent_session));
        for process in left.unwrap_or_default() {
            self.notice(format!(
                "a command that {} had started still runs: process {}",
                adoption.agent, process.pid
            ));
        }
        Ok(())
    }
}
