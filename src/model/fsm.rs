//! The state machine of a hand-over.
//!
//! `step(session, event) → session` is a pure function; an event that is impossible in a state is a
//! typed refusal, never a default. What has to be *done* in a state is [`due`], a function of the
//! session alone: a driver that loads it after a crash does what the one before would have done.
#![deny(clippy::wildcard_enum_match_arm)]

mod diagram;
mod moves;
#[cfg(test)]
mod tests;

pub use diagram::diagram;
pub use moves::{may_follow, moves};

use super::adoption::Left;
use super::names::{AgentName, Digest};
use super::quota::Reading;
use super::session::{
    Breach, BreachReason, ContractRef, Declared, Dispatch, DispatchOutcome, Finishing, LegEnd,
    Outcome, PermissionLevel, Process, Request, SafePoint, Session, Snapshot, State,
};
use super::time::Timestamp;
use std::fmt;

/// Something that happened, or that the driver intends (and has not done yet).
#[derive(Clone, Debug)]
pub enum Event {
    /// Inbox lines were read up to `offset`; what they state comes with it.
    Folded {
        offset: u64,
        facts: Vec<Declared>,
        request: Option<Request>,
        hooks_fired: bool,
    },
    /// The driver saw usage or a safe point worth keeping.
    Observed {
        readings: Vec<Reading>,
        safe_point: Option<SafePoint>,
    },
    /// What an agent left that worked before the session began is in its worktree: that was leg 1.
    /// No process ever carries the nonce of `dispatch`.
    Adopted {
        dispatch: Dispatch,
        left: Left,
    },
    /// Intent: this agent is about to be started under this nonce. `guard` is the digest of the
    /// git configuration facts it is started with.
    Dispatching {
        dispatch: Dispatch,
        guard: Digest,
    },
    /// The agent's process exists.
    Launched {
        process: Process,
    },
    /// The new process showed its first sign that carries the nonce.
    Started {
        agent_session: Option<String>,
    },
    /// The model made something: the agent took over.
    Received,
    /// The start came to nothing.
    DispatchFailed {
        outcome: DispatchOutcome,
        detail: String,
        resets_at: Option<Timestamp>,
    },
    /// The leg calls for a hand-over.
    Breached(Breach),
    /// The agent ended while nobody asked it to.
    LegEnded(LegEnd),
    /// The pause is over: agent ended, sweep empty, tree saved.
    Snapshotted {
        leg_end: LegEnd,
        snapshot: Snapshot,
    },
    /// The agent finished by itself while it was being paused: there is nothing to hand over.
    PauseUndone(LegEnd),
    /// The contract is signed; its bytes are in the same commit.
    Contracted(ContractRef),
    /// The list of consented agents was changed by the person.
    Consented {
        agents: Vec<AgentName>,
    },
    /// Between two legs (one ends where it began): from here on without the person's terminal.
    LeftTerminal,
    /// The person accepted a changed git configuration.
    GuardAccepted {
        guard: Digest,
    },
    /// Intent: the result is about to be merged into a branch that the user has checked out; a
    /// second time, when that has met conflicts.
    Finishing(Finishing),
    /// That merge was taken back.
    FinishUndone,
    Finished {
        result: String,
    },
    Aborted {
        result: String,
    },
}

impl Event {
    /// One word per event: the subject of the state commit.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Folded { .. } => "folded",
            Self::Observed { .. } => "observed",
            Self::Adopted { .. } => "adopted",
            Self::Dispatching { .. } => "dispatching",
            Self::Launched { .. } => "launched",
            Self::Started { .. } => "started",
            Self::Received => "received",
            Self::DispatchFailed { .. } => "dispatch-failed",
            Self::Breached(_) => "breached",
            Self::LegEnded(_) => "leg-ended",
            Self::Snapshotted { .. } => "snapshotted",
            Self::PauseUndone(_) => "pause-undone",
            Self::Contracted(_) => "contracted",
            Self::Consented { .. } => "consented",
            Self::LeftTerminal => "left-terminal",
            Self::GuardAccepted { .. } => "guard-accepted",
            Self::Finishing(_) => "finishing",
            Self::FinishUndone => "finish-undone",
            Self::Finished { .. } => "finished",
            Self::Aborted { .. } => "aborted",
        }
    }
}

/// What a driver has to do next in a state, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// End the agent whose work is adopted if it still runs, and take that work.
    Adopt,
    /// Watch the agent that runs under the dispatch's nonce; wait beside it if it is not ours.
    Watch,
    /// Tell the agent to stop, end it after the deadline, sweep, snapshot.
    Pause,
    /// Build, redact and sign the contract.
    Contract,
    /// Write the note if it is missing, then take the next candidate and start it.
    Dispatch,
    /// Nothing by itself: a person decides (`resume`, `handoff`, `finish`, `abort`).
    Rest,
}

/// What is due in the state the session is in.
pub fn due(session: &Session) -> Effect {
    if session.finishing.is_some() {
        return Effect::Rest;
    }
    match session.state {
        State::Dispatched if session.is_to_adopt() => Effect::Adopt,
        State::Running if session.leg_end.is_some() => Effect::Rest,
        State::Running | State::Resuming => Effect::Watch,
        State::Dispatched if under_way(session) => Effect::Watch,
        State::Dispatched | State::EnvelopeBuilt => Effect::Dispatch,
        State::Pausing => Effect::Pause,
        State::Snapshotted => Effect::Contract,
        State::Completed | State::Aborted => Effect::Rest,
    }
}

fn under_way(session: &Session) -> bool {
    session.dispatch.as_ref().is_some_and(|dispatch| dispatch.outcome.is_none())
}

/// An event that cannot happen in this state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{event}' cannot happen in {state}{why}")]
pub struct Refused {
    pub event: &'static str,
    pub state: State,
    pub why: Why,
}

/// The reason beyond the state itself, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    State,
    NonceUsedBefore,
    WrongLeg,
    NoProcessYet,
    AgentStillRuns,
    UnknownAgent,
    BeingFinished,
    NotAdopted,
    AnotherSession,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State => "",
            Self::NonceUsedBefore => ": the nonce was used before",
            Self::WrongLeg => ": it belongs to another leg",
            Self::NoProcessYet => ": no start is under way",
            Self::AgentStillRuns => ": its agent still runs",
            Self::UnknownAgent => ": the agent was not consented to",
            Self::BeingFinished => ": it is being finished",
            Self::NotAdopted => ": what it begins with is not here yet",
            Self::AnotherSession => ": it adopts another one",
        })
    }
}

/// The session after `event`, or why it cannot happen. `now` becomes `updatedAt`.
pub fn step(session: &Session, event: &Event, now: Timestamp) -> Result<Session, Refused> {
    let mut next = session.clone();
    next.updated_at = now;
    match take(&mut next, event) {
        Ok(state) => {
            next.state = state;
            Ok(next)
        }
        Err(why) => Err(Refused { event: event.word(), state: session.state, why }),
    }
}

/// Applies `event` to `next` and says which state it leads to.
fn take(next: &mut Session, event: &Event) -> Result<State, Why> {
    let state = next.state;
    if next.finishing.is_some() && is_refused_while_finishing(event) {
        return Err(Why::BeingFinished);
    }
    match event {
        Event::Folded { offset, facts, request, hooks_fired } if !state.is_end() => {
            fold(next, *offset, facts, request.as_ref(), *hooks_fired);
            Ok(state)
        }
        Event::Observed { readings, safe_point } if !state.is_end() => {
            for reading in readings {
                next.readings.retain(|known| known.window_minutes != reading.window_minutes);
                next.readings.push(reading.clone());
            }
            if safe_point.is_some() {
                next.safe_point.clone_from(safe_point);
            }
            Ok(state)
        }
        Event::Consented { agents } if !state.is_end() => {
            next.agents.clone_from(agents);
            Ok(state)
        }
        Event::LeftTerminal if is_at_rest(next) && next.is_interactive() => {
            next.permission_level = PermissionLevel::Edit;
            Ok(state)
        }
        Event::GuardAccepted { guard } if !state.is_end() => {
            next.guard = Some(guard.clone());
            Ok(state)
        }
        Event::Adopted { dispatch, left } => adopted(next, dispatch, left),
        Event::Dispatching { dispatch, guard } => dispatching(next, dispatch, guard),
        Event::Launched { process } => {
            let dispatch = open_dispatch(next, &[State::Dispatched])?;
            dispatch.process = Some(*process);
            Ok(State::Dispatched)
        }
        Event::Started { agent_session } => {
            let dispatch = open_dispatch(next, &[State::Dispatched])?;
            dispatch.agent_session.clone_from(agent_session);
            Ok(State::Resuming)
        }
        Event::Received => received(next),
        Event::DispatchFailed { outcome, detail, resets_at } => {
            let now = next.updated_at;
            let dispatch = open_dispatch(next, &[State::Dispatched, State::Resuming])?;
            dispatch.outcome = Some(*outcome);
            dispatch.detail = Some(detail.clone());
            dispatch.resets_at = *resets_at;
            dispatch.limit_seen_at =
                (*outcome == DispatchOutcome::Limit && resets_at.is_none()).then_some(now);
            let over = dispatch.clone();
            next.dispatches.push(over);
            // Leg 1 has no contract: it starts from the task, which is in the state itself.
            Ok(if next.contract.is_some() { State::EnvelopeBuilt } else { State::Dispatched })
        }
        Event::Breached(breach) if state == State::Running => {
            next.breach = Some(breach.clone());
            next.request = None;
            Ok(State::Pausing)
        }
        Event::LegEnded(end) if state == State::Running && next.leg_end.is_none() => {
            leg_ended(next, end);
            Ok(State::Running)
        }
        Event::PauseUndone(end) if state == State::Pausing => {
            leg_ended(next, end);
            next.breach = None;
            Ok(State::Running)
        }
        Event::Snapshotted { leg_end, snapshot } if state == State::Pausing => {
            if snapshot.leg != next.leg {
                return Err(Why::WrongLeg);
            }
            leg_ended(next, leg_end);
            next.snapshot = Some(snapshot.clone());
            Ok(State::Snapshotted)
        }
        Event::Contracted(contract) if state == State::Snapshotted => {
            if contract.leg != next.leg {
                return Err(Why::WrongLeg);
            }
            next.contract = Some(contract.clone());
            Ok(State::EnvelopeBuilt)
        }
        Event::Finishing(finishing) if is_at_rest(next) => {
            next.finishing = Some(finishing.clone());
            Ok(state)
        }
        Event::FinishUndone if next.finishing.is_some() => {
            next.finishing = None;
            Ok(state)
        }
        Event::Finished { result } if is_at_rest(next) => end(next, result, State::Completed),
        Event::Aborted { result } => end(next, result, State::Aborted),
        Event::Finished { .. } | Event::Finishing(_) if !state.is_end() => Err(Why::AgentStillRuns),
        Event::Folded { .. }
        | Event::Observed { .. }
        | Event::Consented { .. }
        | Event::LeftTerminal
        | Event::GuardAccepted { .. }
        | Event::Breached(_)
        | Event::LegEnded(_)
        | Event::PauseUndone(_)
        | Event::Snapshotted { .. }
        | Event::Contracted(_)
        | Event::Finishing(_)
        | Event::FinishUndone
        | Event::Finished { .. } => Err(Why::State),
    }
}

/// While a session is being finished no leg may begin or end.
fn is_refused_while_finishing(event: &Event) -> bool {
    match event {
        Event::Adopted { .. }
        | Event::Dispatching { .. }
        | Event::Launched { .. }
        | Event::Started { .. }
        | Event::Received
        | Event::DispatchFailed { .. }
        | Event::Breached(_)
        | Event::LegEnded(_)
        | Event::Snapshotted { .. }
        | Event::PauseUndone(_)
        | Event::Contracted(_)
        | Event::LeftTerminal
        | Event::Aborted { .. } => true,
        Event::Folded { .. }
        | Event::Observed { .. }
        | Event::Consented { .. }
        | Event::GuardAccepted { .. }
        | Event::Finishing(_)
        | Event::FinishUndone
        | Event::Finished { .. } => false,
    }
}

/// No agent runs and nothing is half done: the session can be finished.
fn is_at_rest(session: &Session) -> bool {
    !session.state.is_end() && matches!(due(session), Effect::Rest | Effect::Dispatch)
}

/// The offset may go back: a shortened inbox is read again from its start, and known ids drop.
fn fold(
    next: &mut Session,
    offset: u64,
    facts: &[Declared],
    request: Option<&Request>,
    hooks_fired: bool,
) {
    next.inbox_offset = offset;
    for fact in facts {
        if !next.declared.iter().any(|known| known.id == fact.id) {
            next.declared.push(fact.clone());
        }
    }
    if let Some(request) = request {
        super::receivers::ask(next, request);
    }
    next.hooks_fired |= hooks_fired;
}

/// Leg 1 is over: its agent had taken over long ago, and its end is known.
fn adopted(next: &mut Session, dispatch: &Dispatch, left: &Left) -> Result<State, Why> {
    if next.state != State::Dispatched || !next.is_to_adopt() {
        return Err(Why::State);
    }
    let Some(adoption) = &mut next.adopted else { return Err(Why::State) };
    let names = (&dispatch.agent, dispatch.agent_session.as_ref());
    if names != (&adoption.agent, Some(&adoption.agent_session)) {
        return Err(Why::AnotherSession);
    }
    if dispatch.leg != 1 {
        return Err(Why::WrongLeg);
    }
    adoption.taken = Some(left.taken.clone());
    let taken = Dispatch { outcome: Some(DispatchOutcome::Received), ..dispatch.clone() };
    next.leg = 1;
    next.dispatches.push(taken.clone());
    next.dispatch = Some(taken);
    // Whoever adopts wants it handed over, however it ended; most ends say so by themselves.
    let speaks = left.leg_end.outcome.is_breach();
    let asked = next.request.take().filter(|request| request.to.is_some() || !speaks);
    leg_ended(next, &left.leg_end);
    next.request = asked;
    Ok(State::Running)
}

fn dispatching(next: &mut Session, dispatch: &Dispatch, guard: &Digest) -> Result<State, Why> {
    if next.is_to_adopt() {
        return Err(Why::NotAdopted);
    }
    match next.state {
        State::EnvelopeBuilt => {}
        State::Dispatched if !under_way(next) => {}
        State::Dispatched
        | State::Running
        | State::Pausing
        | State::Snapshotted
        | State::Resuming
        | State::Completed
        | State::Aborted => return Err(Why::State),
    }
    if !next.agents.contains(&dispatch.agent) {
        return Err(Why::UnknownAgent);
    }
    if dispatch.leg != next.leg + 1 {
        return Err(Why::WrongLeg);
    }
    if next.dispatches.iter().any(|known| known.nonce == dispatch.nonce) {
        return Err(Why::NonceUsedBefore);
    }
    next.dispatch = Some(dispatch.clone());
    next.guard = Some(guard.clone());
    Ok(State::Dispatched)
}

/// The leg's count rises here and nowhere else: on the receipt, not on a dispatch.
fn received(next: &mut Session) -> Result<State, Why> {
    let at = next.updated_at;
    let dispatch = open_dispatch(next, &[State::Resuming])?;
    dispatch.outcome = Some(DispatchOutcome::Received);
    dispatch.received_at = Some(at);
    let taken = dispatch.clone();
    next.leg = taken.leg;
    next.dispatches.push(taken);
    next.breach = None;
    next.request = None;
    next.leg_end = None;
    next.readings.clear();
    next.hooks_fired = false;
    Ok(State::Running)
}

/// Keeps the end, and until when its agent need not be asked again. A request that came before
/// an end which is no breach is answered by it: an agent that finished is finished.
fn leg_ended(next: &mut Session, end: &LegEnd) {
    if !end.outcome.is_breach() {
        next.request = None;
    }
    let of_threshold = next
        .breach
        .as_ref()
        .filter(|breach| breach.reason == BreachReason::Threshold)
        .and_then(|breach| breach.reading.as_ref()?.resets_at);
    let resets_at = end.resets_at.or(of_threshold);
    let leg = next.leg;
    if let Some(taken) = next.dispatches.iter_mut().rfind(|dispatch| dispatch.leg == leg) {
        taken.resets_at = resets_at;
        taken.limit_seen_at =
            (end.outcome == Outcome::Limit && resets_at.is_none()).then_some(end.at);
    }
    next.leg_end = Some(end.clone());
}

/// The dispatch that is under way, in one of `states`.
fn open_dispatch<'a>(next: &'a mut Session, states: &[State]) -> Result<&'a mut Dispatch, Why> {
    if !states.contains(&next.state) {
        return Err(Why::State);
    }
    match &mut next.dispatch {
        Some(dispatch) if dispatch.outcome.is_none() => Ok(dispatch),
        Some(_) | None => Err(Why::NoProcessYet),
    }
}

fn end(next: &mut Session, result: &str, state: State) -> Result<State, Why> {
    if next.state.is_end() {
        return Err(Why::State);
    }
    next.finishing = None;
    next.result = Some(result.to_owned());
    Ok(state)
}
