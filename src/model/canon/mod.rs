//! Canonical JSON (RFC 8785, the subset without floats) and its strict reader.
//!
//! One value has one spelling, so bytes can be signed and hashed. The rules, with their source in
//! RFC 8785: no white space (3.2.1); only the escapes `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t` and
//! `\u00xx` in lower-case hex (3.2.2.2); keys sorted by their UTF-16 code units (3.2.3); UTF-8
//! (3.2.4). Beyond it: no floats at all, so that number formatting is never a question, and
//! integers only where every JSON reader holds them exactly, |n| ≤ 2^53-1 (RFC 7493, 2.2).
//! Text is never normalized: two spellings of `é` are two texts.
//!
//! The reader needs no rules of its own. It decodes, encodes again and compares: what is equal is
//! in the encoder's range, so it is canonical, and no field of it was dropped on the way.

mod builder;
mod node;
#[cfg(test)]
mod tests;

use builder::Builder;
use serde::de::DeserializeOwned;
use serde::ser::{self, Serialize};
use std::fmt::Display;

/// The largest integer, and the negative of the smallest: 2^53-1.
pub const INTEGER_MOST: i64 = (1 << 53) - 1;
/// Arrays and objects stand at most this deep in each other.
pub const DEPTH_MOST: usize = 32;

/// Why a value has no canonical form, or bytes are not one.
#[derive(Debug, thiserror::Error)]
pub enum CanonError {
    #[error("a float stands where only integers are allowed")]
    Float,
    #[error("the integer {0} is beyond 2^53-1")]
    Integer(i128),
    #[error("an object key is not a string")]
    Key,
    #[error("the object key {0:?} stands twice")]
    DuplicateKey(String),
    #[error("nested deeper than {DEPTH_MOST}")]
    TooDeep,
    /// A `Serialize` of ours gave up; the text is its own.
    #[error("cannot be written: {0}")]
    Unwritable(String),
    /// Not JSON, or not of the type that was asked for: `serde_json`'s text, with line and column.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A reading of the bytes exists, but it is spelt otherwise from this byte on (counted from 0).
    #[error("not canonical from byte {0} on")]
    NotCanonical(usize),
}

impl ser::Error for CanonError {
    fn custom<T: Display>(text: T) -> Self {
        Self::Unwritable(text.to_string())
    }
}

/// The canonical bytes of `value`, without a newline after them.
///
/// Enums are tagged as serde_json does it. Refused: floats, integers beyond [`INTEGER_MOST`], keys
/// that are not strings or stand twice in an object, byte strings, depth beyond [`DEPTH_MOST`].
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonError> {
    let mut out = Vec::with_capacity(256);
    value.serialize(Builder::default())?.write(&mut out);
    Ok(out)
}

/// Reads exactly what [`encode`] writes, and nothing else.
///
/// Refused as [`CanonError::Unreadable`] is what serde_json cannot read as a `T` (broken JSON or
/// UTF-8, lone surrogates, bytes after the end, a wrong shape); by the error of `encode` what it
/// would not write; as [`CanonError::NotCanonical`] any other spelling of the value, and any field
/// that `T` does not keep.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, CanonError> {
    // serde_json stops at depth 128 by itself, so hostile nesting cannot exhaust the stack.
    let value = serde_json::from_slice(bytes).map_err(CanonError::Unreadable)?;
    let again = encode(&value)?;
    if again == bytes {
        return Ok(value);
    }
    let same = again.iter().zip(bytes).take_while(|(ours, theirs)| ours == theirs).count();
    Err(CanonError::NotCanonical(same))
}
