//! A value on its way out, and its bytes.

use super::{CanonError, INTEGER_MOST};
use std::collections::BTreeMap;

/// A value on its way out: everything checked, objects in order.
pub(super) enum Node {
    /// `null`, `true`, `false` or an integer, as it is written.
    Plain(String),
    Text(String),
    List(Vec<Self>),
    Object(Members),
}

/// By the key's UTF-16 code units: the order of the map is the order of RFC 8785.
pub(super) type Members = BTreeMap<Vec<u16>, (String, Node)>;

impl Node {
    pub(super) fn integer(number: i128) -> Result<Self, CanonError> {
        if number.unsigned_abs() > INTEGER_MOST.unsigned_abs().into() {
            return Err(CanonError::Integer(number));
        }
        Ok(Self::Plain(number.to_string()))
    }

    /// The content of an enum's variant is the one member of an object.
    pub(super) fn tagged(self, variant: Option<&str>) -> Self {
        match variant {
            None => self,
            Some(name) => {
                let member = (name.encode_utf16().collect(), (name.to_owned(), self));
                Self::Object(Members::from([member]))
            }
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (key, value)) in members.values().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0x00..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[rest..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(format!("{byte:04x}").as_bytes());
        }
        rest = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[rest..]);
    out.push(b'"');
}
