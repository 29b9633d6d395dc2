//! The record line: the exact bytes that were signed, readable in `git log --notes`, and the
//! signature beside them.
//!
//! `{"contract":<core>,"sig":"<base64>","v":1}`: itself canonical JSON, because the core is. It is
//! read back by cutting between the fixed parts, so the core comes out byte for byte.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::IgnoredAny;

const SIG: &str = ",\"sig\":\"";
const END: &str = "\",\"v\":1}";

/// What a record line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Contract,
    Finish,
}

impl RecordKind {
    pub const ALL: [Self; 2] = [Self::Contract, Self::Finish];

    const fn begin(self) -> &'static str {
        match self {
            Self::Contract => "{\"contract\":",
            Self::Finish => "{\"finish\":",
        }
    }
}

/// A record as it stands in a note: nothing in it is verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: RecordKind,
    /// The bytes that were signed.
    pub core: Vec<u8>,
    /// The raw SSHSIG.
    pub sig: Vec<u8>,
}

/// The record line, without its line end. The core is canonical JSON: UTF-8 on one line.
pub(super) fn line(kind: RecordKind, core: &[u8], sig: &[u8]) -> String {
    let core = std::str::from_utf8(core).expect("canonical JSON is UTF-8");
    format!("{}{core}{SIG}{}{END}", kind.begin(), BASE64_STANDARD.encode(sig))
}

/// Every well-formed record of a note. A torn or edited record line is no record; `check` names it.
pub fn read(note: &str) -> Vec<Record> {
    note.split('\n').filter_map(record).collect()
}

fn record(line: &str) -> Option<Record> {
    let kind = RecordKind::ALL.into_iter().find(|kind| line.starts_with(kind.begin()))?;
    let (core, sig) = line[kind.begin().len()..].strip_suffix(END)?.rsplit_once(SIG)?;
    // The standard engine is strict: one spelling for each signature.
    let sig = BASE64_STANDARD.decode(sig).ok()?;
    let is_object = core.starts_with('{') && core.ends_with('}');
    (is_object && serde_json::from_str::<IgnoredAny>(core).is_ok()).then(|| Record {
        kind,
        core: core.as_bytes().to_vec(),
        sig,
    })
}
