//! Who may take a task over, and in which order.

use super::names::AgentName;
use super::session::{BreachReason, DispatchOutcome, Request, Session, State};
use super::time::Timestamp;

/// An agent at a limit whose end nobody told is left alone this long.
const UNKNOWN_LIMIT_S: i64 = 15 * 60;

/// The agent of the running or last leg: who gives the task away. A dispatch that failed since
/// then does not make its agent the giver.
fn giver(session: &Session) -> Option<&AgentName> {
    let mut received = session.dispatches.iter().rev();
    let received = received.find(|known| known.outcome == Some(DispatchOutcome::Received));
    received.map(|dispatch| &dispatch.agent)
}

/// The receivers in the order they are asked: the one that was wished for, then the user's order
/// from after the agent that stops, that agent itself last.
pub fn order(session: &Session) -> Vec<AgentName> {
    let mut order = session.agents.clone();
    if let Some(giver) = giver(session)
        && let Some(place) = order.iter().position(|agent| agent == giver)
    {
        order.rotate_left(place + 1);
    }
    if let Some(place) = wish(session).and_then(|wish| order.iter().position(|agent| agent == wish))
    {
        let wished = order.remove(place);
        order.insert(0, wished);
    }
    order
}

/// The agent a person asked for, if one did. A request that is not yet a breach came after it.
pub fn wish(session: &Session) -> Option<&AgentName> {
    let asked = session.request.as_ref().and_then(|request| request.to.as_ref());
    asked.or_else(|| session.breach.as_ref()?.target.as_ref())
}

/// Whether `agent` is not to be asked at `now`: its window is used up as far as the session
/// knows, or the hand-over that was asked for is to take the task from it.
pub fn rests(session: &Session, agent: &AgentName, now: Timestamp) -> bool {
    let spent = is_spent(session, agent, now);
    let gives = giver(session) == Some(agent);
    let asked = match &session.breach {
        // Of a single agent it was only saved, to go on later.
        Some(breach) => breach.reason == BreachReason::Request && session.agents.len() > 1,
        // Still RUNNING: the receiver is being looked for before the giver is stopped.
        None => session.state == State::Running,
    };
    // Who asks for the very agent that stopped (to answer it, to go on after Ctrl-C) means it.
    spent || (gives && asked && wish(session) != Some(agent))
}

/// Keeps a request for a hand-over. A person who forces it may know better than the limit that the
/// agent told before: that is forgotten.
pub fn ask(session: &mut Session, request: &Request) {
    session.request = Some(request.clone());
    let forced = request.to.as_ref().filter(|_| request.force && request.by == "user");
    for known in session.dispatches.iter_mut().filter(|known| Some(&known.agent) == forced) {
        (known.resets_at, known.limit_seen_at) = (None, None);
    }
}

/// The agent that takes it over next at `now`, as far as the session knows.
pub fn next(session: &Session, now: Timestamp) -> Option<AgentName> {
    order(session).into_iter().find(|agent| !rests(session, agent, now))
}

/// The agent that gave the task away, where it rests for nothing else.
pub fn free_giver(session: &Session, now: Timestamp) -> Option<AgentName> {
    let giver = giver(session).filter(|giver| session.agents.contains(giver))?;
    let is_free = rests(session, giver, now) && exhausted(session, giver, now).is_none();
    is_free.then(|| giver.clone())
}

/// Whether the window of `agent` is used up at `now`, as far as the session knows: that of one that
/// a person wished for, only where it is known until when.
fn is_spent(session: &Session, agent: &AgentName, now: Timestamp) -> bool {
    match exhausted(session, agent, now) {
        Some(Some(_)) => true,
        Some(None) => wish(session) != Some(agent),
        None => false,
    }
}

/// Whether the window of `agent` is used up at `now`, and until when. Where nobody told that, it is
/// after a while no longer known.
pub fn exhausted(
    session: &Session,
    agent: &AgentName,
    now: Timestamp,
) -> Option<Option<Timestamp>> {
    let lately = |seen: Timestamp| (0..UNKNOWN_LIMIT_S).contains(&(now.0 - seen.0));
    let mut own = session.dispatches.iter().filter(|dispatch| dispatch.agent == *agent);
    match reset_of(session, agent, now) {
        Some(reset) => Some(Some(reset)),
        None => own.any(|dispatch| dispatch.limit_seen_at.is_some_and(lately)).then_some(None),
    }
}

/// Until when the window of `agent` is used up at `now`, where that is known.
pub fn reset_of(session: &Session, agent: &AgentName, now: Timestamp) -> Option<Timestamp> {
    let own = session.dispatches.iter().filter(|dispatch| dispatch.agent == *agent);
    own.filter_map(|dispatch| dispatch.resets_at).filter(|reset| *reset > now).max()
}

/// When the first window opens again that the session knows to be used up at `now`, of the agents
/// that may take it over.
pub fn first_reset(session: &Session, now: Timestamp) -> Option<Timestamp> {
    session.agents.iter().filter_map(|agent| reset_of(session, agent, now)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::{Nonce, Oid, SessionId};
    use crate::model::session::{Breach, Dispatch, Workplace};

    const NOW: Timestamp = Timestamp(1000);

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    /// Leg 1 of `b`, with the agents a, b and c.
    fn session() -> Session {
        let workplace = Workplace {
            worktree: ".relay/sessions/s".into(),
            branch: "relay/s".into(),
            base_commit: Oid::new("0".repeat(40)).unwrap(),
            base_branch: None,
            port_base: None,
        };
        let mut session = Session::begin(SessionId::new("s").unwrap(), "t".into(), workplace, NOW);
        session.agents = ["a", "b", "c"].map(name).to_vec();
        session.leg = 1;
        session.state = State::Running;
        let nonce = Nonce::new("0".repeat(32)).unwrap();
        let mut dispatch = Dispatch::begin(name("b"), nonce, 1, NOW);
        dispatch.outcome = Some(DispatchOutcome::Received);
        session.dispatches.push(dispatch.clone());
        session.dispatch = Some(dispatch);
        session
    }

    fn breach(reason: BreachReason, target: Option<&str>) -> Option<Breach> {
        Some(Breach { reason, text: None, reading: None, target: target.map(name), at: NOW })
    }

    fn asked(session: &Session) -> String {
        let order = order(session);
        let awake: Vec<&str> = order
            .iter()
            .filter(|agent| !rests(session, agent, NOW))
            .map(AgentName::as_str)
            .collect();
        awake.join(" ")
    }

    #[test]
    fn the_next_in_the_users_order_comes_first_and_the_giver_last() {
        let mut session = session();
        session.breach = breach(BreachReason::Failed, None);
        assert_eq!(asked(&session), "c a b");
        session.breach = breach(BreachReason::Failed, Some("a"));
        assert_eq!(asked(&session), "a c b");
        session.leg = 0;
        session.dispatches.clear();
        session.breach = None;
        session.state = State::Dispatched;
        assert_eq!(asked(&session), "a b c");
    }

    #[test]
    fn a_start_that_failed_does_not_make_its_agent_the_giver() {
        let mut session = session();
        session.state = State::EnvelopeBuilt;
        session.breach = breach(BreachReason::Request, None);
        let mut failed = session.dispatches[0].clone();
        (failed.agent, failed.leg) = (name("c"), 2);
        failed.outcome = Some(DispatchOutcome::Failed);
        session.dispatches.push(failed.clone());
        session.dispatch = Some(failed);
        assert_eq!(asked(&session), "c a");
    }

    #[test]
    fn a_hand_over_that_was_asked_for_goes_to_somebody_else() {
        let mut session = session();
        assert_eq!(asked(&session), "c a", "looked for while the giver works");
        session.breach = breach(BreachReason::Request, None);
        session.state = State::EnvelopeBuilt;
        assert_eq!(asked(&session), "c a");
        session.breach = breach(BreachReason::Request, Some("b"));
        assert_eq!(asked(&session), "b c a", "unless that very agent was asked for");
    }

    #[test]
    fn an_exhausted_agent_rests_until_its_reset() {
        let mut session = session();
        session.state = State::EnvelopeBuilt;
        session.breach = breach(BreachReason::Limit, None);
        session.dispatches[0].resets_at = Some(Timestamp(1001));
        assert_eq!(asked(&session), "c a");
        assert_eq!(first_reset(&session, NOW), Some(Timestamp(1001)));
        assert_eq!(first_reset(&session, Timestamp(1001)), None);
        session.dispatches[0].resets_at = Some(NOW);
        assert_eq!(asked(&session), "c a b");
    }

    #[test]
    fn a_limit_that_nobody_told_the_end_of_counts_for_a_while() {
        let mut session = session();
        session.state = State::EnvelopeBuilt;
        session.breach = breach(BreachReason::Limit, None);
        session.dispatches[0].limit_seen_at = Some(Timestamp(990));
        assert_eq!(asked(&session), "c a");
        session.dispatches[0].limit_seen_at = Some(Timestamp(1000 - UNKNOWN_LIMIT_S));
        assert_eq!(asked(&session), "c a b");
        session.dispatches[0].limit_seen_at = Some(Timestamp(1001));
        assert_eq!(asked(&session), "c a b", "the clock was set back: it says nothing");
        session.dispatches[0].limit_seen_at = Some(Timestamp(990));
        session.breach = breach(BreachReason::Request, Some("b"));
        assert_eq!(asked(&session), "b c a", "unless a person asks for it");
    }

    #[test]
    fn a_later_request_outdoes_the_target_of_the_breach() {
        let mut session = session();
        session.state = State::EnvelopeBuilt;
        session.breach = breach(BreachReason::Request, Some("c"));
        session.request = Some(super::super::session::Request {
            to: Some(name("a")),
            reason: None,
            by: "user".into(),
            at: NOW,
            force: false,
            no_launch: false,
        });
        assert_eq!(asked(&session), "a c");
    }
}
