//! Where a session stands, in a person's words: the state word is the protocol's, and RUNNING also
//! stands for a task that is done and waits to be finished.

use crate::model::fsm::{self, Effect};
use crate::model::session::{DispatchOutcome, Outcome, Session, State};

/// Who is at it, and what it waits for. `driven`: a command holds its lock; `alive`: its agent's
/// process is there.
pub fn standing(session: &Session, driven: bool, alive: bool) -> String {
    match (session.state, &session.leg_end) {
        (State::Completed, _) => return "finished".to_owned(),
        (State::Aborted, _) => return "given up".to_owned(),
        _ if session.finishing.as_ref().is_some_and(|left| !left.conflicts.is_empty()) => {
            return "being finished: conflicts wait to be resolved".to_owned();
        }
        _ if session.finishing.is_some() && !driven => {
            return "being finished, and broken off: finish it again".to_owned();
        }
        (State::Running, Some(end)) if !driven => {
            return match end.outcome {
                Outcome::Done => "done: waiting for you to finish it",
                Outcome::Asks if end.open_items.is_empty() => "waits for your answer",
                Outcome::Asks => "stopped with open items",
                Outcome::Killed => "its agent was ended by you",
                Outcome::Limit | Outcome::Paused | Outcome::Failed | Outcome::Unknown => {
                    "to be handed over: resume it"
                }
            }
            .to_owned();
        }
        _ => {}
    }
    match (driven, alive) {
        (true, _) if session.state == State::Running => "at work".to_owned(),
        (true, _) => "being handed over".to_owned(),
        (false, true) => "at work without a driver: resume it".to_owned(),
        (false, false) if session.leg == 0 => "not begun: resume it".to_owned(),
        (false, false) if nobody_took_it(session) => "nobody could take it over yet".to_owned(),
        (false, false) if !matches!(fsm::due(session), Effect::Rest | Effect::Dispatch) => {
            "broken off, not at rest: resume it".to_owned()
        }
        (false, false) => "at rest: resume it".to_owned(),
    }
}

/// Whether starts were tried since the last leg ended, and none was received.
fn nobody_took_it(session: &Session) -> bool {
    let tried = |outcome| outcome != Some(DispatchOutcome::Received);
    session.dispatches.iter().any(|known| known.leg > session.leg && tried(known.outcome))
}
