//! What holds of the machine, tried on every kind of session and on long random walks:
//! an impossible event is refused and never a default; nothing is dispatched for a second leg
//! without the contract of the first; a nonce is never used twice; the leg counts on the receipt
//! alone; from everywhere there is a way to an end; a step depends on its arguments only.

use super::moves::{begin, begin_adopting, events, specimens};
use super::*;
use crate::model::names::Nonce;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOW: Timestamp = Timestamp(7);

/// For every event and state the states it can lead to, by letter, and `.` where it can be
/// refused.
fn table() -> String {
    let letter = |state: State| match state {
        State::Running => 'r',
        State::Pausing => 'p',
        State::Snapshotted => 's',
        State::EnvelopeBuilt => 'e',
        State::Dispatched => 'd',
        State::Resuming => 'u',
        State::Completed => 'C',
        State::Aborted => 'A',
    };
    let sessions = specimens();
    let mut text = format!("{:17}", "");
    for state in State::ALL {
        text.push_str(&format!("{:4}", letter(state)));
    }
    for (row, sample) in events(&begin()).iter().enumerate() {
        text = format!("{}\n{:17}", text.trim_end(), sample.word());
        for state in State::ALL {
            let ends: BTreeSet<char> = sessions
                .iter()
                .filter(|session| session.state == state)
                .map(|session| step(session, &events(session)[row], NOW))
                .map(|end| end.map_or('.', |next| letter(next.state)))
                .collect();
            text.push_str(&format!("{:4}", ends.into_iter().collect::<String>()));
        }
    }
    format!("{}\n", text.trim_end())
}

#[test]
fn every_event_in_every_state_is_taken_or_refused_as_written_here() {
    let expected = "
                 r   p   s   e   d   u   C   A
folded           r   p   s   e   d   u   .   .
observed         r   p   s   e   d   u   .   .
adopted          .   .   .   .   .r  .   .   .
dispatching      .   .   .   .d  .d  .   .   .
launched         .   .   .   .   .d  .   .   .
started          .   .   .   .   .u  .   .   .
received         .   .   .   .   .   r   .   .
dispatch-failed  .   .   .   .   .de de  .   .
breached         .p  .   .   .   .   .   .   .
leg-ended        .r  .   .   .   .   .   .   .
snapshotted      .   s   .   .   .   .   .   .
pause-undone     .   r   .   .   .   .   .   .
contracted       .   .   e   .   .   .   .   .
consented        r   p   s   e   d   u   .   .
left-terminal    .r  .   .   .e  .d  .   .   .
guard-accepted   r   p   s   e   d   u   .   .
finishing        .r  .   .   e   .d  .   .   .
finish-undone    .r  .   .   .e  .d  .   .   .
finished         .C  .   .   C   .C  .   .   .
aborted          .A  A   A   .A  .A  A   .   .
";
    assert_eq!(table(), expected.trim_start_matches('\n'), "\n{}", table());
}

#[test]
fn every_event_is_tried() {
    let source = include_str!("../fsm.rs");
    let words = source.split("pub const fn word").nth(1).unwrap().split("\n}\n").next().unwrap();
    let all: BTreeSet<&str> =
        words.split("=> \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let tried: BTreeSet<&str> = events(&begin()).iter().map(Event::word).collect();
    assert_eq!(tried, all);
}

#[test]
fn every_state_is_reached_and_every_one_but_the_ends_has_a_way_to_both_ends_and_to_running() {
    let moves = moves();
    let reached: BTreeSet<State> = specimens().iter().map(|session| session.state).collect();
    assert_eq!(reached.len(), State::ALL.len());
    for from in State::ALL {
        let mut within = BTreeSet::from([from]);
        loop {
            let next: BTreeSet<State> = moves
                .iter()
                .filter(|(start, _, _)| within.contains(start))
                .map(|(_, _, end)| *end)
                .filter(|end| !within.contains(end))
                .collect();
            if next.is_empty() {
                break;
            }
            within.extend(next);
        }
        if from.is_end() {
            assert_eq!(within.len(), 1, "{from} is no end");
        } else {
            for to in [State::Running, State::Completed, State::Aborted] {
                assert!(within.contains(&to), "no way from {from} to {to}");
            }
        }
    }
}

#[test]
fn nothing_leaves_an_end() {
    for session in specimens().into_iter().filter(|session| session.state.is_end()) {
        assert_eq!(due(&session), Effect::Rest);
        for event in events(&session) {
            assert!(step(&session, &event, NOW).is_err(), "{} in {}", event.word(), session.state);
        }
    }
}

#[test]
fn a_dispatch_of_another_leg_to_a_stranger_or_under_an_old_nonce_is_refused() {
    let mut tried = 0;
    for session in specimens() {
        for event in events(&session) {
            let Event::Dispatching { dispatch, guard } = &event else { continue };
            if step(&session, &event, NOW).is_err() {
                continue;
            }
            tried += 1;
            let why = |change: &dyn Fn(&mut Dispatch)| {
                let mut dispatch = dispatch.clone();
                change(&mut dispatch);
                let event = Event::Dispatching { dispatch, guard: guard.clone() };
                step(&session, &event, NOW).unwrap_err().why
            };
            assert_eq!(why(&|it| it.leg += 1), Why::WrongLeg);
            let stranger = AgentName::new("stranger").unwrap();
            assert_eq!(why(&|it| it.agent = stranger.clone()), Why::UnknownAgent);
            for old in &session.dispatches {
                assert_eq!(why(&|it| it.nonce = old.nonce.clone()), Why::NonceUsedBefore);
            }
        }
    }
    assert!(tried >= 3, "only {tried} dispatches were possible");
}

#[test]
fn a_snapshot_and_a_contract_bear_the_leg_that_ended() {
    for session in specimens() {
        let mut other = session.clone();
        other.leg += 1;
        for event in events(&other) {
            let bears = matches!(event, Event::Snapshotted { .. } | Event::Contracted(_));
            if bears && [State::Pausing, State::Snapshotted].contains(&session.state) {
                let refused = step(&session, &event, NOW).unwrap_err();
                assert!([Why::WrongLeg, Why::State].contains(&refused.why), "{refused}");
            }
        }
    }
}

#[test]
fn the_diagram_fits_a_page_and_names_every_move() {
    let text = diagram();
    assert!(text.lines().all(|line| line.len() <= 78), "{text}");
    for (_, event, _) in moves() {
        assert!(text.contains(event), "{event} is not in:\n{text}");
    }
    for state in State::ALL {
        assert!(text.contains(state.word()), "{state} is not in:\n{text}");
    }
}

/// One step of a walk: which event, and what may be wrong with it.
type Choice = (usize, u8, u8);

/// The event of a choice, sometimes with a leg or nonce that does not fit.
fn chosen(session: &Session, (which, leg, nonce): Choice) -> Event {
    let all = events(session);
    let mut event = all[which % all.len()].clone();
    if let Event::Dispatching { dispatch, .. } = &mut event {
        // Mostly fit, else another leg, or a nonce that may have been used.
        dispatch.leg += u32::from(leg == 0);
        if nonce < 128 {
            dispatch.nonce = Nonce::new(format!("{:032x}", nonce % 8)).unwrap();
        }
    }
    if let Event::LegEnded(end) | Event::PauseUndone(end) = &mut event {
        let outcomes = [
            crate::model::session::Outcome::Done,
            crate::model::session::Outcome::Limit,
            crate::model::session::Outcome::Asks,
            crate::model::session::Outcome::Unknown,
        ];
        end.outcome = outcomes[usize::from(leg) % outcomes.len()];
    }
    event
}

/// What holds of one accepted step.
fn check_step(before: &Session, event: &Event, after: &Session, used: &mut BTreeSet<Nonce>) {
    assert!(may_follow(before.state, after.state), "{} -> {}", before.state, after.state);
    let risen = after.leg - before.leg;
    let rises = matches!(event, Event::Received | Event::Adopted { .. });
    assert_eq!(risen, u32::from(rises), "{}", event.word());
    if let Event::Dispatching { dispatch, .. } = event {
        assert!(used.insert(dispatch.nonce.clone()), "{} was used before", dispatch.nonce);
    }
    if matches!(after.state, State::Dispatched | State::Resuming)
        && let Some(dispatch) = after.dispatch.as_ref().filter(|dispatch| dispatch.leg >= 2)
    {
        let closes = after.contract.as_ref().map(|contract| contract.leg);
        assert_eq!(closes, Some(dispatch.leg - 1), "a leg was started without its contract");
    }
    if after.state == State::EnvelopeBuilt {
        assert_eq!(after.contract.as_ref().map(|contract| contract.leg), Some(after.leg));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn walks_never_break_what_must_hold(
        adopts in any::<bool>(),
        choices in proptest::collection::vec((0_usize..20, 0_u8..8, any::<u8>()), 1..400)
    ) {
        let mut session = if adopts { begin_adopting() } else { begin() };
        let mut used = BTreeSet::new();
        for choice in choices {
            let event = chosen(&session, choice);
            let first = step(&session, &event, NOW);
            prop_assert_eq!(&first, &step(&session, &event, NOW));
            if let Ok(next) = first {
                check_step(&session, &event, &next, &mut used);
                prop_assert_eq!(next.updated_at, NOW);
                // Total: there is always something due, resting included.
                prop_assert_eq!(due(&next), due(&next.clone()));
                session = if next.state.is_end() { session } else { next };
            }
        }
    }

    #[test]
    fn a_walk_that_does_what_is_due_comes_to_the_next_leg(
        failures in 0_usize..4, adopts in any::<bool>(),
        idle in proptest::collection::vec(0_usize..2, 0..6)
    ) {
        let mut session = if adopts { begin_adopting() } else { begin() };
        let mut left = failures;
        for _ in 0..60 {
            for which in &idle {
                session = step(&session, &events(&session)[*which], NOW).unwrap();
            }
            let word = match (due(&session), session.state) {
                (Effect::Adopt, _) => "adopted",
                (Effect::Rest, _) if adopts && session.leg == 1 => "breached",
                (Effect::Dispatch, _) => "dispatching",
                (Effect::Watch, State::Dispatched) => "started",
                (Effect::Watch, State::Resuming) if left > 0 => { left -= 1; "dispatch-failed" }
                (Effect::Watch, State::Resuming) => "received",
                (Effect::Watch, _) if session.leg < 3 => "breached",
                (Effect::Watch, _) => "leg-ended",
                (Effect::Pause, _) => "snapshotted",
                (Effect::Contract, _) => "contracted",
                (Effect::Rest, _) => break,
            };
            let event = events(&session).into_iter().find(|event| event.word() == word).unwrap();
            session = step(&session, &event, NOW).unwrap();
        }
        prop_assert_eq!((session.leg, session.state), (3, State::Running));
        prop_assert_eq!(session.dispatches.len(), 3 + failures);
    }
}
