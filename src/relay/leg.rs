//! What a leg's signs add up to: has it started, was it received, how did it end.

use crate::model::cut::shorten;
use crate::model::foreign;
use crate::model::quota::Reading;
use crate::model::session::{DispatchOutcome, LegEnd, Outcome};
use crate::model::time::Timestamp;
use crate::model::transcript::{Ending, PlanStatus, Sign, Transcript, Trouble};
use std::collections::BTreeSet;

/// What is read of a text of the agent's, and what is kept of it.
const READ_BYTES_MOST: usize = 16 * 1024;
const KEPT_BYTES_MOST: usize = 600;

/// An agent's own words as the session may hold and show them: one line, no secret, not long.
fn words(text: &str) -> String {
    shorten(&foreign::one_line(&shorten(text, READ_BYTES_MOST)), KEPT_BYTES_MOST)
}

/// [`words`] for whatever an ending says.
fn clean(ending: Ending) -> Ending {
    let trouble = match ending {
        Ending::Asks(question) => return Ending::Asks(words(&question)),
        Ending::Trouble(trouble) => trouble,
        Ending::TurnEnded | Ending::StoppedByHook | Ending::Interrupted => return ending,
    };
    Ending::Trouble(match trouble {
        Trouble::Limit { resets_at, text } => Trouble::Limit { resets_at, text: words(&text) },
        Trouble::Transient(text) => Trouble::Transient(words(&text)),
        Trouble::Overload(text) => Trouble::Overload(words(&text)),
        Trouble::Auth(text) => Trouble::Auth(words(&text)),
        Trouble::Context(text) => Trouble::Context(words(&text)),
        Trouble::Other(text) => Trouble::Other(words(&text)),
    })
}

/// Whether it can be an agent's name for its session; it becomes part of a path and of a state.
fn is_id(text: &str) -> bool {
    text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// The state of one leg, folded from its signs in order. Folding a stream again from its start
/// gives the same: that is how a new driver catches up.
#[derive(Clone, Debug, Default)]
pub(super) struct Leg {
    pub(super) started: bool,
    pub(super) received: bool,
    pub(super) agent_session: Option<String>,
    pub(super) readings: Vec<Reading>,
    open_calls: BTreeSet<String>,
    calls_ended: usize,
    open_items: usize,
    /// Open items of an agent that tells its plan item by item.
    open_tasks: BTreeSet<String>,
    ending: Option<Ending>,
    retrying: Option<String>,
    /// What the transcript of an agent at a terminal adds up to.
    pub(super) at_terminal: Option<Transcript>,
}

impl Leg {
    /// What the whole transcript of an agent adds up to that worked at somebody's terminal.
    pub(super) fn of(transcript: Transcript) -> Self {
        Self {
            started: true,
            received: true,
            agent_session: transcript.agent_session.clone(),
            readings: transcript.readings.clone(),
            open_calls: transcript.open_calls.keys().cloned().collect(),
            open_items: transcript.plan.iter().filter(|item| item.is_open()).count(),
            ending: transcript.ending.clone().map(clean),
            at_terminal: Some(transcript),
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self, sign: Sign) {
        match sign {
            Sign::Started { agent_session } => {
                self.started = true;
                self.agent_session =
                    agent_session.filter(|id| is_id(id)).or(self.agent_session.take());
            }
            Sign::ModelMade => {
                self.started = true;
                self.received = true;
                self.retrying = None;
                // The agent went on (a Stop hook, a new turn): it has not ended after all.
                self.ending = None;
            }
            Sign::ToolStarted { call } => {
                self.open_calls.insert(call);
            }
            Sign::ToolEnded { call } => {
                self.open_calls.remove(&call);
                self.calls_ended += 1;
            }
            Sign::Plan { open } => self.open_items = open,
            Sign::Task { task, open: true } => _ = self.open_tasks.insert(task),
            Sign::Task { task, open: false } => _ = self.open_tasks.remove(&task),
            Sign::Reading(reading) => {
                self.readings.retain(|known| known.window_minutes != reading.window_minutes);
                self.readings.push(reading);
            }
            Sign::Retrying(text) => self.retrying = Some(words(&text)),
            Sign::Ended(ending) => self.end_with(clean(ending)),
        }
    }

    /// Folds one line of the transcript of an agent at a terminal, with `fold`.
    pub(super) fn take_line(&mut self, line: &[u8], fold: fn(&mut Transcript, &[u8])) {
        let Some(mut seen) = self.at_terminal.take() else { return };
        let before = seen.ending.clone();
        fold(&mut seen, line);
        if seen.ending != before {
            self.ending = seen.ending.clone().map(clean);
        }
        let open: BTreeSet<String> = seen.open_calls.keys().cloned().collect();
        self.calls_ended += self.open_calls.difference(&open).count();
        self.open_calls = open;
        self.open_items =
            seen.plan.iter().filter(|item| item.status != PlanStatus::Completed).count();
        for reading in &seen.readings {
            self.readings.retain(|known| known.window_minutes != reading.window_minutes);
            self.readings.push(reading.clone());
        }
        if !seen.messages.is_empty() || self.has_called() {
            self.started = true;
            self.received = true;
        }
        self.at_terminal = Some(seen);
    }

    /// Another session of the agent's begins, as after `/clear`: calls of the last are over.
    pub(super) fn take_new_transcript(&mut self) {
        self.at_terminal = Some(Transcript::default());
        self.open_calls.clear();
        self.ending = None;
    }

    /// An agent may say the limit twice, the second time without the reset.
    fn end_with(&mut self, ending: Ending) {
        let known = match &self.ending {
            Some(Ending::Trouble(Trouble::Limit { resets_at, .. })) => *resets_at,
            _ => None,
        };
        self.ending = Some(match ending {
            Ending::Trouble(Trouble::Limit { resets_at, text }) => {
                Ending::Trouble(Trouble::Limit { resets_at: resets_at.or(known), text })
            }
            other => other,
        });
    }

    fn has_open_items(&self) -> bool {
        self.open_items > 0 || !self.open_tasks.is_empty()
    }

    /// A moment after at least one tool call, with none open.
    pub(super) fn is_between_calls(&self) -> bool {
        self.calls_ended > 0 && self.open_calls.is_empty()
    }

    pub(super) fn has_called(&self) -> bool {
        self.calls_ended > 0 || !self.open_calls.is_empty()
    }

    pub(super) fn has_open_call(&self) -> bool {
        !self.open_calls.is_empty()
    }

    /// A person broke its last turn off.
    pub(super) fn was_interrupted(&self) -> bool {
        self.ending == Some(Ending::Interrupted)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// It said it ended, and is to be gone. At a terminal only a limit is an end: a turn is none,
    /// and what is wrong otherwise the person sees.
    pub(super) fn must_be_ended(&self) -> bool {
        self.has_ended() && (self.at_terminal.is_none() || self.is_at_limit())
    }

    /// At a limit, where an agent at a terminal waits, or goes on by itself at the reset.
    pub(super) fn is_at_limit(&self) -> bool {
        matches!(self.ending, Some(Ending::Trouble(Trouble::Limit { .. })))
    }

    /// At a terminal: its turn is over and it waits for the person.
    pub(super) fn is_idle(&self) -> bool {
        self.at_terminal.is_some() && self.ending.is_some() && self.open_calls.is_empty()
    }

    pub(super) fn retrying(&self) -> Option<&str> {
        self.retrying.as_deref()
    }

    /// How the leg ended, once its process is gone: from its end record, never from an exit code.
    pub(super) fn end(&self, how: HowEnded, open_items: Vec<String>, at: Timestamp) -> LegEnd {
        let mut end = LegEnd {
            outcome: Outcome::Unknown,
            detail: None,
            open_items,
            forced: how == HowEnded::Forced,
            resets_at: None,
            at,
        };
        match &self.ending {
            Some(Ending::TurnEnded) if end.open_items.is_empty() && !self.has_open_items() => {
                end.outcome = Outcome::Done;
            }
            Some(Ending::TurnEnded) => end.outcome = Outcome::Asks,
            Some(Ending::Asks(question)) => {
                end.outcome = Outcome::Asks;
                end.detail = Some(question.clone());
            }
            Some(Ending::StoppedByHook) => end.outcome = Outcome::Paused,
            Some(Ending::Trouble(trouble)) => {
                (end.outcome, end.detail, end.resets_at) = self.of_trouble(trouble);
            }
            Some(Ending::Interrupted) | None => {}
        }
        match how {
            // What we asked it to do is not a fault of its own.
            HowEnded::Asked | HowEnded::Forced
                if matches!(end.outcome, Outcome::Unknown | Outcome::Failed) =>
            {
                end.outcome = Outcome::Paused;
            }
            // It ended its turn because it was told to: the task is not done by that.
            HowEnded::Told
                if !matches!(
                    self.ending,
                    Some(Ending::Trouble(Trouble::Limit { .. }) | Ending::Asks(_))
                ) =>
            {
                end.outcome = Outcome::Paused;
                end.detail = None;
            }
            // At a terminal the end of a turn is not the end of the work.
            HowEnded::Asked | HowEnded::Forced
                if self.at_terminal.is_some() && end.outcome != Outcome::Limit =>
            {
                end.outcome = Outcome::Paused;
            }
            HowEnded::ByUser if end.outcome != Outcome::Done => end.outcome = Outcome::Killed,
            // Nothing but a limit takes the choice from a person who closed it.
            HowEnded::ByHand if matches!(end.outcome, Outcome::Unknown | Outcome::Failed) => {
                end.outcome = Outcome::Killed;
            }
            HowEnded::Asked
            | HowEnded::Told
            | HowEnded::Forced
            | HowEnded::ByUser
            | HowEnded::ByHand
            | HowEnded::ByItself => {}
        }
        end
    }

    fn of_trouble(&self, trouble: &Trouble) -> (Outcome, Option<String>, Option<Timestamp>) {
        match trouble {
            Trouble::Limit { resets_at, text } => {
                let known = self.readings.iter().max_by_key(|reading| reading.used_permille);
                let resets_at = resets_at.or(known.and_then(|reading| reading.resets_at));
                (Outcome::Limit, Some(text.clone()), resets_at)
            }
            Trouble::Transient(text)
            | Trouble::Overload(text)
            | Trouble::Auth(text)
            | Trouble::Context(text)
            | Trouble::Other(text) => (Outcome::Failed, Some(text.clone()), None),
        }
    }

    /// Why a start came to nothing, when no receipt had come; in words where it told.
    pub(super) fn failure(&self) -> (DispatchOutcome, Option<String>, Option<Timestamp>) {
        match &self.ending {
            Some(Ending::Trouble(trouble)) => {
                let (_, text, resets_at) = self.of_trouble(trouble);
                let outcome = match trouble {
                    Trouble::Limit { .. } => DispatchOutcome::Limit,
                    Trouble::Auth(_) => DispatchOutcome::Auth,
                    Trouble::Transient(_)
                    | Trouble::Overload(_)
                    | Trouble::Context(_)
                    | Trouble::Other(_) => DispatchOutcome::Failed,
                };
                (outcome, text, resets_at)
            }
            _ => (DispatchOutcome::Failed, None, None),
        }
    }
}

/// How the process came to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HowEnded {
    ByItself,
    /// A pause was wanted, and it ended by itself or between two calls.
    Asked,
    /// So it did, and its own hook had told it to.
    Told,
    /// It took a signal.
    Forced,
    /// The user ended it, through us.
    ByUser,
    /// The person left it, at its own prompt.
    ByHand,
}
