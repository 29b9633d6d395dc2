//! The machine drawn with letters only, for the man page and the README.

use super::super::session::State;
use super::moves::{Move, moves};
use std::collections::{BTreeMap, BTreeSet};

/// The state diagram, at most 78 columns wide.
pub fn diagram() -> String {
    let moves = moves();
    let ring = ring(&moves);
    let mut text = drawn(&ring);
    let on_ring: BTreeSet<Move> = ring.iter().copied().collect();
    let (stays, leaves): (Vec<Move>, Vec<Move>) =
        moves.into_iter().filter(|it| !on_ring.contains(it)).partition(|(from, _, to)| from == to);
    text.push_str("\nOther moves:\n\n");
    for ((event, to), from) in grouped(&leaves) {
        text.push_str(&wrapped(&format!("{event} -> {to}"), &from));
    }
    text.push_str("\nSteps that stay in their state:\n\n");
    for ((event, _), from) in grouped_by_event(&stays) {
        text.push_str(&wrapped(event, &from));
    }
    text
}

/// The road of a hand-over: the shortest way from RUNNING back to it that goes through a contract.
fn ring(moves: &[Move]) -> Vec<Move> {
    let leg = |from, to| road(moves, from, to);
    [leg(State::Running, State::EnvelopeBuilt), leg(State::EnvelopeBuilt, State::Running)].concat()
}

/// The shortest way between two states; empty where there is none.
fn road(moves: &[Move], from: State, to: State) -> Vec<Move> {
    let mut roads: Vec<Vec<Move>> = vec![Vec::new()];
    let mut seen = BTreeSet::from([from]);
    while !roads.is_empty() {
        let mut longer = Vec::new();
        for road in &roads {
            let at = road.last().map_or(from, |(_, _, to)| *to);
            for next in moves.iter().filter(|(start, _, _)| *start == at) {
                let whole = [road.as_slice(), &[*next]].concat();
                if next.2 == to {
                    return whole;
                }
                if seen.insert(next.2) {
                    longer.push(whole);
                }
            }
        }
        roads = longer;
    }
    Vec::new()
}

fn drawn(ring: &[Move]) -> String {
    let mut text = String::new();
    for (number, (from, event, _)) in ring.iter().enumerate() {
        let begins = if *from == State::Dispatched { "<-- a session begins here" } else { "" };
        let right = if number == 0 { "<-----------------------------+" } else { "|" };
        let name = format!("{from:^16} {begins}");
        let name = if number == 0 { format!("{from:^16}") } else { name };
        let line =
            if number == 0 { format!("{name}{right}") } else { format!("{name:<46}{right}") };
        text.push_str(&format!("  {line}\n"));
        text.push_str(&format!("  {:<46}|\n", format!("       |   {event}")));
        let last = number + 1 == ring.len();
        let foot =
            if last { format!("       +{:->39}", "+") } else { format!("{:<46}|", "       v") };
        text.push_str(&format!("  {foot}\n"));
    }
    text
}

type Groups = BTreeMap<(&'static str, State), Vec<State>>;

fn grouped(moves: &[Move]) -> Groups {
    let mut groups = Groups::new();
    for (from, event, to) in moves {
        groups.entry((event, *to)).or_default().push(*from);
    }
    groups
}

/// Moves that stay: the state they lead to says nothing.
fn grouped_by_event(moves: &[Move]) -> Groups {
    let mut groups = Groups::new();
    for (from, event, _) in moves {
        groups.entry((event, State::Running)).or_default().push(*from);
    }
    groups
}

/// `what   in: STATES`, broken between states.
fn wrapped(what: &str, from: &[State]) -> String {
    let going = State::ALL.into_iter().filter(|state| !state.is_end());
    let words: Vec<String> = if going.clone().all(|state| from.contains(&state)) {
        vec!["every state but the ends".into()]
    } else {
        from.iter().map(ToString::to_string).collect()
    };
    let mut text = format!("  {what:<34} in ");
    let mut width = text.len();
    for (number, word) in words.iter().enumerate() {
        let comma = if number + 1 < words.len() { ", " } else { "" };
        if width + word.len() + 1 > 78 {
            text.push_str(&format!("\n{:40}", ""));
            width = 40;
        }
        text.push_str(word);
        text.push_str(comma);
        width += word.len() + comma.len();
    }
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
