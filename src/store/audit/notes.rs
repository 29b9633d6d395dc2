//! The notes: what people read of a contract, held against the signed records.

use super::{Finding, Verified};
use crate::git::Repository;
use crate::host::clock;
use crate::model::canon;
use crate::model::contract::Contract;
use crate::model::names::Oid;
use crate::model::note;
use crate::model::screen::first_chars;
use crate::model::sign::{self, CONTRACT_NAMESPACE};
use crate::model::trust::Trust;
use crate::store::short;
use anyhow::Result;
use std::collections::BTreeSet;

/// How the note on a commit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Holds,
    Gone,
    /// `altered: …` or `incomplete: …`, naming the lines.
    Broken(String),
}

/// Checks the note on the commit `on`: every record in it must be signed by a believed key and be
/// about this very commit, and its readable lines must be those of its records. The contract in
/// `must`, if one is given, has to be among them.
pub fn note(repo: &Repository, trust: &Trust, on: &Oid, must: Option<&Verified>) -> Result<Note> {
    let Some(bytes) = repo.read_note(on)? else { return Ok(Note::Gone) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let records = note::read(&text);
    let mut why = Vec::new();
    let mut contracts: Vec<(Contract, &note::Record)> = Vec::new();
    let mut finishes: Vec<(note::FinishRecord, &note::Record)> = Vec::new();
    for record in &records {
        let held = signed_record(trust, record).and_then(|()| match record.kind {
            note::RecordKind::Contract => {
                let contract: Contract = canon::decode(&record.core).map_err(|e| e.to_string())?;
                if contract.snapshot_commit != *on {
                    return Err("a contract of another commit".into());
                }
                if repo.tree_of(on).ok().as_ref() != Some(&contract.snapshot_tree) {
                    return Err("a contract of another tree".into());
                }
                contracts.push((contract, record));
                Ok(())
            }
            note::RecordKind::Finish => {
                let finish: note::FinishRecord =
                    canon::decode(&record.core).map_err(|e| e.to_string())?;
                if finish.result_commit != *on {
                    return Err("a finish of another commit".into());
                }
                finishes.push((finish, record));
                Ok(())
            }
        });
        why.extend(held.err());
    }
    let mut verified: Vec<note::Verified<'_>> = Vec::new();
    for (contract, record) in &contracts {
        verified.push(note::Verified::contract(contract, &record.core, &record.sig));
    }
    for (finish, record) in &finishes {
        verified.push(note::Verified::finish(finish, &record.core, &record.sig));
    }
    let raw = must.map(|must| sign::dearmor(&must.sealed.signature)).transpose()?;
    verified.extend(
        must.zip(raw.as_ref())
            .map(|(must, raw)| note::Verified::contract(&must.contract, &must.sealed.bytes, raw)),
    );
    let verdict = note::check(&text, &verified);
    let named = |lines: &[String]| {
        let shown: Vec<String> = lines.iter().map(|line| first_chars(line, 100)).collect();
        shown.join("; ")
    };
    if !verdict.altered.is_empty() {
        why.push(named(&verdict.altered));
        return Ok(Note::Broken(format!("altered: {}", why.join("; "))));
    }
    if !verdict.missing.is_empty() {
        return Ok(Note::Broken(format!("incomplete: {}", named(&verdict.missing))));
    }
    Ok(Note::Holds)
}

fn signed_record(trust: &Trust, record: &note::Record) -> Result<(), String> {
    let armored = sign::armor(&record.sig);
    let signer = sign::verify(&armored, CONTRACT_NAMESPACE, &record.core)
        .map_err(|error| format!("a record's signature: {error}"))?;
    trust
        .check(&signer, CONTRACT_NAMESPACE, clock::now())
        .map(drop)
        .map_err(|error| format!("a record's key {}: {error}", signer.fingerprint()))
}

/// Checks every note of ours that no contract in `known` has on its commit: all of them must be
/// records about their own commits.
pub fn other_notes(
    repo: &Repository,
    trust: &Trust,
    known: &BTreeSet<Oid>,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (on, _) in repo.list_notes()? {
        if known.contains(&on) {
            continue;
        }
        let fault = match note(repo, trust, &on, None) {
            Ok(Note::Holds | Note::Gone) => None,
            Ok(Note::Broken(why)) => Some(why),
            Err(error) => Some(format!("{error:#}")),
        };
        let mut found = Finding::new(format!("note on {}", short(&on)), fault);
        // No contract is kept that says it, so it cannot be written again.
        found.next = found.fault.as_ref().map(|_| {
            format!(
                "git notes --ref=relay show {on}; what it was: git log -p refs/notes/relay; to be rid of it: git notes --ref=relay remove {on}"
            )
        });
        found.commit = Some(on);
        findings.push(found);
    }
    Ok(findings)
}
