//! Lists of statements: who said what, merged over legs, each once.

use super::Facts;
use super::clean::Cleaner;
use crate::model::contract::{Standing, Statement};
use crate::model::foreign::head_before_cut;
use crate::model::session::{DeclaredKind, NotCaptured};
use std::collections::HashSet;

pub(super) fn statement(text: &str, by: &str, standing: Standing) -> Statement {
    Statement { text: text.to_owned(), by: by.to_owned(), standing }
}

pub(super) fn by_user(text: &str) -> Statement {
    statement(text, "user", Standing::Declared)
}

/// A declared fact, cleaned.
pub(super) struct Said {
    pub(super) kind: DeclaredKind,
    pub(super) statement: Statement,
    /// Said since the contract before.
    pub(super) this_leg: bool,
}

/// Declared facts and commit trailers of all legs, oldest first, each kind and text once.
pub(super) fn declared(facts: &Facts<'_>, clean: &mut Cleaner) -> Vec<Said> {
    let mut all: Vec<_> = facts.session.declared.iter().chain(facts.trailers).collect();
    all.sort_by_key(|fact| fact.at);
    let legs_before = facts.previous.map_or(0, |(contract, _)| contract.leg);
    let mut known = HashSet::new();
    let mut said = Vec::new();
    for fact in all {
        let text = clean.text(&fact.text);
        let text = text.trim();
        // The last word on what is next counts, even if it was said before.
        let again = fact.kind != DeclaredKind::Next && !known.insert((fact.kind, text.to_owned()));
        if text.is_empty() || again {
            continue;
        }
        said.push(Said {
            kind: fact.kind,
            statement: statement(text, &clean.by(&fact.by), Standing::Declared),
            this_leg: fact.leg > legs_before,
        });
    }
    said
}

/// What the contract before knew and nobody repeated, then what was said.
///
/// The contract before may hold a text shortened whose whole is still here.
pub(super) fn merge(before: &[Statement], said: impl Iterator<Item = Statement>) -> Vec<Statement> {
    let said: Vec<Statement> = said.collect();
    let mut all: Vec<Statement> =
        before.iter().filter(|old| !said.iter().any(|new| same(old, new))).cloned().collect();
    all.extend(said);
    all
}

/// Whether two statements say the same, the old one perhaps shortened.
pub(super) fn same(old: &Statement, new: &Statement) -> bool {
    old.text.trim() == new.text.trim()
        || head_before_cut(&old.text).is_some_and(|head| new.text.starts_with(head))
}

/// Says that `count` entries of the list `what` are not in the core; `place` has them whole.
pub(super) fn note_left_out(
    not_captured: &mut Vec<NotCaptured>,
    what: &str,
    count: usize,
    place: Option<&str>,
) {
    if count == 0 {
        return;
    }
    let why = match place {
        Some(place) => format!("{count} more in the attachment {place}"),
        None => format!("{count} older ones left out"),
    };
    not_captured.push(NotCaptured { what: what.to_owned(), why });
}
