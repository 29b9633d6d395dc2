//! Which moves there are: found by trying every event in every kind of session that can be
//! reached, so that nothing said about the machine can differ from what it does.

use super::super::adoption::{Adoption, Left, Taken};
use super::super::names::{AgentName, ContractId, Digest, Nonce, Oid, SessionId};
use super::super::quota::Reading;
use super::super::session::{
    Breach, BreachReason, ContractRef, Dispatch, DispatchOutcome, FinishKind, Finishing, LegEnd,
    Outcome, PermissionLevel, Process, Session, Snapshot, State, Workplace,
};
use super::super::time::Timestamp;
use super::{Event, step, under_way};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Nothing decides by the clock.
const NOW: Timestamp = Timestamp(0);

/// One move: an event takes a session from a state to a state.
pub type Move = (State, &'static str, State);

static MOVES: LazyLock<BTreeSet<Move>> = LazyLock::new(|| {
    let mut moves = BTreeSet::new();
    for session in specimens() {
        for event in events(&session) {
            if let Ok(next) = step(&session, &event, NOW) {
                moves.insert((session.state, event.word(), next.state));
            }
        }
    }
    moves
});

/// Every move there is, in the order of the states.
pub fn moves() -> Vec<Move> {
    MOVES.iter().copied().collect()
}

/// Whether a state commit in `from` can be followed by one in `to`: what an audit of a chain asks.
pub fn may_follow(from: State, to: State) -> bool {
    MOVES.iter().any(|(known, _, next)| (*known, *next) == (from, to))
}

/// One session of every kind that can be reached, from one that begins. A kind is what a move
/// can depend on.
pub(super) fn specimens() -> Vec<Session> {
    let kind = |session: &Session| {
        (
            session.state,
            session.leg.min(2),
            session.contract.is_some(),
            session.dispatch.is_some(),
            under_way(session),
            session.leg_end.is_some(),
            session.finishing.is_some(),
            session.is_to_adopt(),
            session.is_interactive(),
        )
    };
    let mut open = vec![begin(), begin_adopting(), begin_at_terminal()];
    let mut seen: BTreeMap<_, _> = open.iter().map(|it| (kind(it), it.clone())).collect();
    while let Some(session) = open.pop() {
        for event in events(&session) {
            let Ok(next) = step(&session, &event, NOW) else { continue };
            if let Entry::Vacant(place) = seen.entry(kind(&next)) {
                place.insert(next.clone());
                open.push(next);
            }
        }
    }
    seen.into_values().collect()
}

pub(super) fn begin() -> Session {
    let workplace = Workplace {
        worktree: ".relay/sessions/specimen".into(),
        branch: "relay/specimen".into(),
        base_commit: commit(),
        base_branch: None,
        port_base: None,
    };
    let id = SessionId::new("specimen").expect("a session's name");
    let mut session = Session::begin(id, "a task".into(), workplace, NOW);
    session.agents = vec![agent()];
    session
}

/// The same with the work of an agent's that is still where it left it.
pub(super) fn begin_adopting() -> Session {
    let mut session = begin();
    session.adopted = Some(Adoption {
        agent: agent(),
        agent_session: "specimen".into(),
        account: None,
        config_folder: None,
        source: None,
        include_dirty: false,
        process: None,
        force: false,
        last_seen_at: NOW,
        taken: None,
    });
    session
}

/// The same at a person's terminal.
pub(super) fn begin_at_terminal() -> Session {
    Session { permission_level: PermissionLevel::Ask, ..begin() }
}

/// One of each event, fit for `session`: the right leg, a nonce never used, an agent consented to.
pub(super) fn events(session: &Session) -> Vec<Event> {
    let nonce = format!("{:032x}", session.dispatches.len());
    let nonce = Nonce::new(nonce).expect("32 hex digits");
    let dispatch = Dispatch::begin(agent(), nonce, session.leg + 1, NOW);
    vec![
        Event::Folded { offset: 0, facts: Vec::new(), request: None, hooks_fired: false },
        Event::Observed { readings: vec![reading()], safe_point: None },
        Event::Adopted {
            dispatch: Dispatch {
                agent_session: Some("specimen".into()),
                leg: 1,
                ..dispatch.clone()
            },
            left: Left { taken: taken(), leg_end: leg_end() },
        },
        Event::Dispatching { dispatch, guard: digest() },
        Event::Launched { process: Process { pid: 1, start_ticks: 1 } },
        Event::Started { agent_session: None },
        Event::Received,
        Event::DispatchFailed {
            outcome: DispatchOutcome::Failed,
            detail: String::new(),
            resets_at: None,
        },
        Event::Breached(breach()),
        Event::LegEnded(leg_end()),
        Event::Snapshotted { leg_end: leg_end(), snapshot: snapshot(session.leg) },
        Event::PauseUndone(leg_end()),
        Event::Contracted(contract(session.leg)),
        Event::Consented { agents: vec![agent()] },
        Event::LeftTerminal,
        Event::GuardAccepted { guard: digest() },
        Event::Finishing(finishing()),
        Event::FinishUndone,
        Event::Finished { result: String::new() },
        Event::Aborted { result: String::new() },
    ]
}

fn agent() -> AgentName {
    AgentName::new("specimen").expect("an agent's name")
}

fn commit() -> Oid {
    Oid::new("0".repeat(40)).expect("40 hex digits")
}

fn digest() -> Digest {
    Digest::new("0".repeat(64)).expect("64 hex digits")
}

fn reading() -> Reading {
    Reading {
        source: "specimen".into(),
        window_minutes: 300,
        used_permille: 950,
        resets_at: None,
        observed_at: NOW,
    }
}

fn breach() -> Breach {
    Breach { reason: BreachReason::Request, text: None, reading: None, target: None, at: NOW }
}

fn leg_end() -> LegEnd {
    LegEnd {
        outcome: Outcome::Done,
        detail: None,
        open_items: Vec::new(),
        forced: false,
        resets_at: None,
        at: NOW,
    }
}

fn taken() -> Taken {
    Taken { parent: commit(), commit: None, staged: Vec::new(), not_captured: Vec::new() }
}

fn snapshot(leg: u32) -> Snapshot {
    Snapshot {
        leg,
        commit: commit(),
        tree: commit(),
        parent: commit(),
        on_branch: true,
        in_progress: None,
        staged: Vec::new(),
        not_captured: Vec::new(),
        at: NOW,
    }
}

fn finishing() -> Finishing {
    Finishing {
        kind: FinishKind::Squash,
        branch: "refs/heads/specimen".into(),
        target: commit(),
        source: commit(),
        message: String::new(),
        aside: None,
        conflicts: Vec::new(),
    }
}

fn contract(leg: u32) -> ContractRef {
    let contract_id = ContractId::new("c-00000000").expect("c- and 8 hex digits");
    ContractRef { contract_id, sha256: digest(), leg }
}
