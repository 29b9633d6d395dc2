//! Beside a running agent: its signs, the inbox, the quota, its end.

use super::leg::{HowEnded, Leg};
use super::{Driver, LEG_VARIABLE};
use crate::agents::{Pause, Seat};
use crate::host::tail::Tail;
use crate::host::{clock, process};
use crate::model::fsm::Event;
use crate::model::heard;
use crate::model::names::Nonce;
use crate::model::quota;
use crate::model::session::{
    Breach, BreachReason, Dispatch, DispatchOutcome, Outcome, Process, State,
};
use crate::model::transcript::Transcript;
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the agent's output is looked at.
const TICK: Duration = Duration::from_millis(50);
/// How often the inbox is looked at.
const INBOX_TICK: Duration = Duration::from_millis(250);
/// How long a process that carries the nonce is looked for before its dispatch has failed.
const SEARCH: Duration = Duration::from_secs(2);
/// How long a hand-over without a receiver is put off before one is looked for again.
const PUT_OFF: Duration = Duration::from_secs(30);
/// An agent that said it ended is given this long to be gone.
const LINGER: Duration = Duration::from_secs(10);
/// The same at a terminal, where it never goes by itself: its hooks are to be done.
const LINGER_AT_TERMINAL: Duration = Duration::from_secs(1);
/// An agent whose window is used up is given this long to say that it was refused.
const REFUSAL: Duration = Duration::from_secs(3);
/// The exit code of a program that could not be started.
const NOT_STARTED: i32 = 127;
/// A window that is used up, in thousandths.
const ALL_PERMILLE: u32 = 1000;

/// A running (or just ended) leg as the driver sees it.
pub(super) struct Watch {
    seat: Seat,
    dispatch: Dispatch,
    process: Option<Process>,
    pub(super) leg: Leg,
    stream: Tail,
    transcript: Option<Tail>,
    /// Whose transcript that is, for an agent at a terminal.
    followed: Option<String>,
    inbox_seen: Instant,
    /// Since when a window is known to be used up.
    used_up_since: Option<Instant>,
    /// How its process ended, as far as we are its parent.
    status: Option<ExitStatus>,
}

impl Watch {
    pub(super) fn is_alive(&self) -> bool {
        self.process.is_some_and(process::is_alive)
    }

    /// It was ended by a signal, or could not be started, as far as is known. What the keys of its
    /// terminal send comes from the person there.
    fn was_cut_off(&self) -> bool {
        let by_keys = [Signal::INT, Signal::QUIT].map(Signal::as_raw);
        self.status.is_some_and(|status| {
            status.signal().is_some_and(|signal| !by_keys.contains(&signal))
                || status.code() == Some(NOT_STARTED)
        })
    }

    /// How its process ended, in words: nobody but its parent is told.
    fn ended(&self) -> String {
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("it ended with exit status {code}"),
            Some((None, Some(signal))) => format!("it was ended by signal {signal}"),
            Some((None, None)) | None => "it ended".to_owned(),
        }
    }

    pub(super) fn process(&self) -> Option<Process> {
        self.process
    }

    pub(super) fn nonce(&self) -> Nonce {
        self.dispatch.nonce.clone()
    }

    pub(super) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Folds new lines of the agent's output and transcript; says whether there is more to read.
    pub(super) fn look(&mut self) -> Result<bool> {
        let now = clock::now();
        if self.leg.at_terminal.is_some() {
            return self.look_from_aside();
        }
        let (seat, leg) = (&self.seat, &mut self.leg);
        let take = |line: &[u8]| seat.signs(line, now).into_iter().for_each(|sign| leg.take(sign));
        let more = self.stream.read(take)?;
        let Some(signs) = self.seat.agent.transcript_signs else { return Ok(more) };
        if self.transcript.is_none()
            && let (Some(find), Some(id)) = (self.seat.agent.transcript, &self.leg.agent_session)
        {
            self.transcript = find(id).map(Tail::new);
        }
        let Some(transcript) = &mut self.transcript else { return Ok(more) };
        let leg = &mut self.leg;
        let take = |line: &[u8]| signs(line, now).into_iter().for_each(|sign| leg.take(sign));
        Ok(transcript.read(take)? || more)
    }

    /// The same for an agent at a terminal: what its hooks kept, and its transcript.
    fn look_from_aside(&mut self) -> Result<bool> {
        let now = clock::now();
        let (seat, leg) = (&self.seat, &mut self.leg);
        let kept = seat.agent.terminal.keep.is_some();
        let signs = |line: &[u8]| if kept { heard::signs(line) } else { seat.signs(line, now) };
        let more =
            self.stream.read(|line| signs(line).into_iter().for_each(|sign| leg.take(sign)))?;
        let (Some(find), Some(fold)) = (self.seat.agent.transcript, self.seat.agent.fold) else {
            return Ok(more);
        };
        let id = self.leg.agent_session.clone();
        if id != self.followed
            && let Some(path) = id.as_deref().and_then(find)
        {
            if self.followed.is_some() {
                self.leg.take_new_transcript();
            }
            self.followed = id;
            self.transcript = Some(Tail::new(path));
        }
        let Some(transcript) = &mut self.transcript else { return Ok(more) };
        let leg = &mut self.leg;
        Ok(transcript.read(|line| leg.take_line(line, fold))? || more)
    }

    /// Folds what is left once the agent is gone: its last line may lack a newline.
    pub(super) fn look_last(&mut self) -> Result<()> {
        while self.look()? {}
        let (seat, leg, now) = (&self.seat, &mut self.leg, clock::now());
        self.stream.rest(|line| seat.signs(line, now).into_iter().for_each(|sign| leg.take(sign)));
        Ok(())
    }
}

impl Driver<'_> {
    /// The stream file of one dispatch: its name carries the nonce, so that what is in it is
    /// bound to that dispatch.
    pub(super) fn stream_path(&self, nonce: &Nonce) -> PathBuf {
        self.hub.folder(&self.session().session_id).join(format!("{nonce}.stream"))
    }

    /// Finds the process of the current dispatch and reads its output from the start.
    pub(super) fn attach(&mut self) -> Result<Watch> {
        let dispatch = self.session().dispatch.clone().context("a dispatch is under way")?;
        let seat = Seat::or_unknown(&self.hub.settings, &dispatch.agent);
        let process = self.find_process(&dispatch);
        if let (State::Dispatched, None, Some(process)) =
            (self.session().state, dispatch.process, process)
        {
            // The driver that started it was killed before it could say so.
            self.step(&Event::Launched { process }, None)?;
        }
        let mut leg = Leg::default();
        if self.session().is_interactive() {
            leg.at_terminal = Some(Transcript::default());
            leg.agent_session = seat.agent.terminal.session.map(|id| id(&dispatch.nonce));
        }
        self.lend_again(process);
        let mut watch = Watch {
            stream: Tail::new(self.stream_path(&dispatch.nonce)),
            seat,
            process,
            dispatch,
            leg,
            transcript: None,
            followed: None,
            inbox_seen: Instant::now(),
            used_up_since: None,
            status: None,
        };
        watch.look()?;
        Ok(watch)
    }

    /// The process we started, or the eldest one that carries the nonce and was started as we do
    /// it. A driver that was killed between its intent and the start may have left none.
    pub(super) fn find_process(&self, dispatch: &Dispatch) -> Option<Process> {
        if let Some(child) = &self.child {
            return process::identify(child.id());
        }
        // It was never ours to start.
        if self.session().adopted.is_some() && dispatch.leg == 1 {
            return None;
        }
        // Once recorded, it is gone when it is gone: a shell child that it left running is not it.
        if dispatch.process.is_some() {
            return dispatch.process.filter(|process| process::is_alive(*process));
        }
        let until = Instant::now() + SEARCH;
        loop {
            let found = process::find_by_variable(LEG_VARIABLE, dispatch.nonce.as_str());
            let found = found.into_iter().filter(|process| process::is_as_spawned(*process));
            if let Some(eldest) = found.min_by_key(|process| process.start_ticks) {
                return Some(eldest);
            }
            if Instant::now() > until {
                return None;
            }
            sleep(INBOX_TICK);
        }
    }

    /// Watches until the leg needs a decision: it ended, it is to be handed over, or its start
    /// came to nothing.
    pub(super) fn watch(&mut self) -> Result<()> {
        let ours = self.child.is_some();
        let mut watch = self.attach()?;
        if let (false, Some(process)) = (ours, watch.process) {
            let agent = &watch.dispatch.agent;
            self.notice(format!(
                "{agent} is still at work (process {}): waiting beside it",
                process.pid
            ));
        }
        let began = Instant::now();
        let mut ended_at: Option<Instant> = None;
        let mut told_retry = String::new();
        loop {
            // Before the look: what was written before the end is then read.
            let alive = self.is_alive(&mut watch)?;
            let more = watch.look()?;
            self.note_start(&watch)?;
            if !alive && !more {
                let by_hand = watch.leg.at_terminal.is_some() && !watch.was_cut_off();
                let how = if by_hand { HowEnded::ByHand } else { HowEnded::ByItself };
                return self.leg_is_over(&mut watch, how);
            }
            if self.is_interrupted() {
                self.end_agent(&mut watch, HowEnded::ByUser)?;
                return self.leg_is_over(&mut watch, HowEnded::ByUser);
            }
            if let Some(retrying) = watch.leg.retrying().filter(|text| *text != told_retry) {
                told_retry = retrying.to_owned();
                self.notice(format!("{}: {told_retry}", watch.dispatch.agent));
            }
            if watch.leg.must_be_ended() {
                let since = *ended_at.get_or_insert_with(Instant::now);
                let linger =
                    if watch.leg.at_terminal.is_some() { LINGER_AT_TERMINAL } else { LINGER };
                if since.elapsed() > linger {
                    self.end_agent(&mut watch, HowEnded::ByItself)?;
                    return self.leg_is_over(&mut watch, HowEnded::ByItself);
                }
            } else {
                ended_at = None;
            }
            match self.session().state {
                State::Running => {
                    if self.wants_pause(&mut watch)? {
                        return Ok(());
                    }
                    self.keep_wip(&watch);
                }
                _ => {
                    if self.is_overdue(&watch, began) {
                        return self.give_up_start(&mut watch);
                    }
                }
            }
            if !more {
                self.wait_tick(&watch);
            }
        }
    }

    /// Steps DISPATCHED → RESUMING on the start and RESUMING → RUNNING on the receipt.
    fn note_start(&mut self, watch: &Watch) -> Result<()> {
        if self.session().state == State::Dispatched && watch.leg.started {
            let agent_session = watch.leg.agent_session.clone();
            self.step(&Event::Started { agent_session }, None)?;
        }
        if self.session().state == State::Resuming && watch.leg.received {
            self.step(&Event::Received, None)?;
        }
        Ok(())
    }

    /// Whether the leg is now to be paused; the step to PAUSING is then saved.
    fn wants_pause(&mut self, watch: &mut Watch) -> Result<bool> {
        if watch.inbox_seen.elapsed() >= INBOX_TICK {
            watch.inbox_seen = Instant::now();
            self.fold_inbox()?;
            self.tell_silent_hooks(watch);
        }
        let now = clock::now();
        let breach = if let Some(request) = self.session().request.clone() {
            Breach {
                reason: BreachReason::Request,
                text: request.reason,
                reading: None,
                target: request.to,
                at: now,
            }
        } else if let Some(reading) = self.crossed(watch) {
            Breach {
                reason: BreachReason::Threshold,
                text: None,
                reading: Some(reading),
                target: None,
                at: now,
            }
        } else {
            return Ok(false);
        };
        // The receiver is looked at while the giver still works: without one the giver goes on.
        let request = self.session().request.as_ref();
        let forced = request.is_some_and(|request| request.force || request.no_launch);
        if self.put_off_until.is_some_and(|until| Instant::now() < until) {
            return Ok(false);
        }
        if !forced && self.next_receiver()?.is_none() {
            self.put_off_until = Some(Instant::now() + PUT_OFF);
            let reason = breach.reason.word();
            self.notice_once(format!(
                "hand-over ({reason}) put off: no other agent could start now"
            ));
            return Ok(false);
        }
        let readings = watch.leg.readings.clone();
        let request = self.stored.session.request.as_ref();
        self.options.no_launch |= request.is_some_and(|request| request.no_launch);
        self.circle.asked(request);
        self.step(&Event::Observed { readings, safe_point: None }, None)?;
        self.step(&Event::Breached(breach), None)?;
        Ok(true)
    }

    fn crossed(&self, watch: &mut Watch) -> Option<quota::Reading> {
        let threshold = self.session().threshold_permille;
        let now = clock::now();
        // An agent that is at its end is left to end: a finished one is finished.
        if watch.leg.has_ended() {
            return None;
        }
        let found = watch.leg.readings.iter().find(|r| quota::breaches(r, threshold, now))?;
        // The refusal itself says that the window is used up, a moment before the agent says how
        // it ended: there is nothing to pause then. One that may go on all the same is paused.
        if found.used_permille >= ALL_PERMILLE {
            let since = *watch.used_up_since.get_or_insert_with(Instant::now);
            if since.elapsed() < REFUSAL {
                return None;
            }
        }
        Some(found.clone())
    }

    /// Whether the process still lives; our own child is reaped when it does not.
    pub(super) fn is_alive(&mut self, watch: &mut Watch) -> Result<bool> {
        // Of our own child only its exit status counts: it looks dead before all its threads are.
        let alive = match &mut self.child {
            Some(child) => match child.try_wait()? {
                Some(status) => {
                    watch.status = Some(status);
                    watch.process = None;
                    self.child = None;
                    false
                }
                None => true,
            },
            None => watch.is_alive(),
        };
        self.tend_terminal(alive);
        Ok(alive)
    }

    /// Waits one tick, less if the process ends in it.
    pub(super) fn wait_tick(&self, watch: &Watch) {
        match watch.process {
            Some(process) => process::wait_end(process, TICK),
            None => sleep(TICK),
        }
    }

    fn is_overdue(&self, watch: &Watch, began: Instant) -> bool {
        // The person may have to trust the folder first, or to log in.
        if watch.leg.at_terminal.is_some() {
            return false;
        }
        let patience = if watch.leg.started {
            self.hub.settings.start_deadline + self.hub.settings.receipt_deadline
        } else {
            self.hub.settings.start_deadline
        };
        began.elapsed() > patience
    }

    fn give_up_start(&mut self, watch: &mut Watch) -> Result<()> {
        let detail = match (watch.leg.started, watch.leg.retrying()) {
            (_, Some(retrying)) => format!("no receipt in time: {retrying}"),
            (true, None) => "no receipt in time: its model made nothing".to_owned(),
            (false, None) => "it did not start in time".to_owned(),
        };
        self.end_agent(watch, HowEnded::Forced)?;
        let nonce = watch.dispatch.nonce.clone();
        self.sweep(&nonce)?;
        let outcome = DispatchOutcome::Failed;
        self.step(&Event::DispatchFailed { outcome, detail, resets_at: None }, None)
    }

    /// The process is gone: what was left of its output decides what that means.
    fn leg_is_over(&mut self, watch: &mut Watch, how: HowEnded) -> Result<()> {
        watch.look_last()?;
        self.note_start(watch)?;
        let nonce = watch.dispatch.nonce.clone();
        self.sweep(&nonce)?;
        self.fold_inbox()?;
        if self.session().state != State::Running {
            let (outcome, told, resets_at) = watch.leg.failure();
            let detail =
                told.unwrap_or_else(|| format!("{} before its model made anything", watch.ended()));
            if how == HowEnded::ByUser {
                let detail = "ended by the user".to_owned();
                self.step(&Event::DispatchFailed { outcome, detail, resets_at }, None)?;
                self.tried = self.session().agents.clone();
                return Ok(());
            }
            let detail = self.with_last_words(&nonce, detail);
            self.left_by_hand = how == HowEnded::ByHand && outcome != DispatchOutcome::Limit;
            return self.step(&Event::DispatchFailed { outcome, detail, resets_at }, None);
        }
        let readings = watch.leg.readings.clone();
        if !readings.is_empty() {
            self.step(&Event::Observed { readings, safe_point: None }, None)?;
        }
        let open_items = self.open_items(watch);
        let mut end = watch.leg.end(how, open_items, clock::now());
        if end.outcome == Outcome::Unknown && end.detail.is_none() {
            let detail = format!("{} and {}", watch.ended(), watch.seat.told_no_end());
            end.detail = Some(self.with_last_words(&nonce, detail));
        }
        self.step(&Event::LegEnded(end), None)
    }

    /// Ends a living agent: SIGINT, SIGTERM, SIGKILL to its process group, ten seconds apart.
    pub(super) fn end_agent(&mut self, watch: &mut Watch, how: HowEnded) -> Result<()> {
        // A second Ctrl-C is impatience.
        let patience = Duration::from_secs(if how == HowEnded::ByUser { 5 } else { 10 });
        let first = if self.hung_up() { Signal::HUP } else { Signal::INT };
        for signal in [first, Signal::TERM, Signal::KILL] {
            let Some(process) = watch.process() else { return Ok(()) };
            process::signal_group(process, signal);
            // One that was stopped by Ctrl-Z would not hear it.
            process::signal_group(process, Signal::CONT);
            let until = Instant::now() + patience;
            while Instant::now() < until {
                if !self.is_alive(watch)? {
                    return Ok(());
                }
                self.wait_tick(watch);
            }
        }
        Ok(())
    }

    /// Says once that no hook of ours has fired although the agent calls tools: policy, trust or
    /// `disableAllHooks` keep them silent, and a pause will be a signal.
    fn tell_silent_hooks(&mut self, watch: &Watch) {
        let hooked = !matches!(watch.seat.agent.pause, Pause::Interrupt);
        if hooked && watch.leg.has_called() && !self.session().hooks_fired {
            let agent = &watch.dispatch.agent;
            self.notice_once(format!(
                "no hook of ours has fired in {agent}: a signal between two calls will pause it"
            ));
        }
    }
}
