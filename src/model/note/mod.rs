//! The note in `refs/notes/relay`: readable lines, then one record line with the whole signed core.
//!
//! Every line stands alone and begins with the id of what it is about, so that notes survive
//! git's merges (`union`, `cat_sort_uniq`, a squash that concatenates): the lines are a set, and
//! their order and the empty lines between them mean nothing. The readable lines are a projection
//! of the record: [`check`] renders them again and names every line that is missing or foreign.

mod finish;
mod lines;
mod record;
#[cfg(test)]
mod tests;

use super::contract::Contract;
use super::screen::{first_chars, one_line};
use std::collections::BTreeSet;

pub use finish::{FINISH_FORMAT, FinishRecord, FinishedLeg};
pub use record::{Record, RecordKind, read};

/// Readable lines of one record.
pub const LINES_MOST: usize = 12;
/// Characters of one readable line.
pub const LINE_CHARS_MOST: usize = 160;

/// The note of one contract. `core_bytes` are the stored bytes, `raw_sig` the SSHSIG without armor.
pub fn write(core_bytes: &[u8], contract: &Contract, raw_sig: &[u8]) -> String {
    let lines = lines::contract(contract);
    note(&lines, record::line(RecordKind::Contract, core_bytes, raw_sig))
}

/// The note of a finished session, on the result commit.
pub fn write_finish(core_bytes: &[u8], finish: &FinishRecord, raw_sig: &[u8]) -> String {
    let lines = finish::lines(finish, core_bytes);
    note(&lines, record::line(RecordKind::Finish, core_bytes, raw_sig))
}

fn note(lines: &[String], record: String) -> String {
    let mut note = lines.join("\n");
    note.push('\n');
    note.push_str(&record);
    note.push('\n');
    note
}

/// Two notes of one commit as one: byte for byte what git's `cat_sort_uniq` makes of them.
pub fn merge(existing: Option<&str>, ours: &str) -> String {
    // Not `str::lines`, which would take a carriage return off a line.
    let all = existing.unwrap_or("").split('\n').chain(ours.split('\n'));
    let lines: BTreeSet<&str> = all.filter(|line| !line.is_empty()).collect();
    let mut note = String::new();
    for line in lines {
        note.push_str(line);
        note.push('\n');
    }
    note
}

/// A record whose signature holds, with the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    pub body: Body<'a>,
    pub core: &'a [u8],
    /// The raw SSHSIG.
    pub sig: &'a [u8],
}

impl<'a> Verified<'a> {
    pub fn contract(contract: &'a Contract, core: &'a [u8], sig: &'a [u8]) -> Self {
        Self { body: Body::Contract(contract), core, sig }
    }

    pub fn finish(finish: &'a FinishRecord, core: &'a [u8], sig: &'a [u8]) -> Self {
        Self { body: Body::Finish(finish), core, sig }
    }
}

/// What a verified record says.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    Contract(&'a Contract),
    Finish(&'a FinishRecord),
}

/// How a note stands against its verified records; lines are named by their beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Lines that belong to a verified record and are not there.
    pub missing: Vec<String>,
    /// Lines that belong to no verified record: foreign, edited, or a record that does not verify.
    pub altered: Vec<String>,
}

impl Verdict {
    /// Every line is there and no other.
    pub fn holds(&self) -> bool {
        self.missing.is_empty() && self.altered.is_empty()
    }
}

/// Compares a note with the records that verified. Pass those read from the note, and any the
/// session's chain says must be here.
pub fn check(note: &str, verified: &[Verified<'_>]) -> Verdict {
    let found: BTreeSet<&str> = note.split('\n').filter(|line| !line.is_empty()).collect();
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for record in verified {
        let note = match record.body {
            Body::Contract(contract) => write(record.core, contract, record.sig),
            Body::Finish(finish) => write_finish(record.core, finish, record.sig),
        };
        expected.extend(note.lines().map(str::to_owned));
    }
    Verdict {
        altered: found.iter().filter(|line| !expected.contains(**line)).map(|l| named(l)).collect(),
        missing: expected
            .iter()
            .filter(|line| !found.contains(line.as_str()))
            .map(|line| named(line))
            .collect(),
    }
}

/// A line as a person is told of it: a record line may be 16 KiB long, a foreign one anything.
fn named(line: &str) -> String {
    first_chars(&one_line(line), LINE_CHARS_MOST)
}
