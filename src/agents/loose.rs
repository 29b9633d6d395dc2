//! Reading JSON that others wrote and change in every version: each field stays raw until it is
//! asked for, and a field of an unexpected type reads as absent instead of losing the record.
//!
//! Fields are found by parsing, never by a byte pattern: a tool's output may hold any JSON.

use crate::model::time::Timestamp;
use crate::model::transcript::LINE_BYTES_MOST;
use serde::Deserialize;
use serde::de::{Deserializer as _, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A field as it stands in the line; `None` when absent or null.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// Declares a record whose fields are all [`Raw`], so that any shape of any field is accepted.
/// A field that comes twice, or under both of its names, is no fault either: the last that is not
/// null counts.
macro_rules! loose {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $($key:literal)|+) => { $($key)|+ };
    ($name:ident { $($field:ident $(= $($key:literal)|+)?),* $(,)? }) => {
        #[derive(Default)]
        struct $name<'a> {
            $($field: $crate::agents::loose::Raw<'a>,)*
        }

        impl<'a> $crate::agents::loose::Loose<'a> for $name<'a> {
            fn take(&mut self, key: &str) -> Option<&mut $crate::agents::loose::Raw<'a>> {
                match key {
                    $($crate::agents::loose::loose!(@key $field $($($key)|+)?) => {
                        Some(&mut self.$field)
                    })*
                    _ => None,
                }
            }
        }
    };
}
pub(super) use loose;

/// What [`loose!`] declares.
pub(super) trait Loose<'a>: Default {
    /// Where the value of `key` goes, if anywhere.
    fn take(&mut self, key: &str) -> Option<&mut Raw<'a>>;
}

/// Reads a whole JSON text as a record.
fn read<'a, T: Loose<'a>>(json: &'a str) -> Option<T> {
    struct Fill<T>(T);
    impl<'a, T: Loose<'a>> Visitor<'a> for Fill<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<T, A::Error> {
            while let Some(key) = map.next_key::<Text<'a>>()? {
                match self.0.take(&key.0) {
                    Some(field) => {
                        let value: Raw<'a> = map.next_value()?;
                        *field = value.or(*field);
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(self.0)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let record = reader.deserialize_map(Fill(T::default())).ok()?;
    reader.end().ok()?;
    Some(record)
}

/// One line as a record. `Ok(None)` for an empty line, `Err` says why it was skipped.
pub(super) fn record<'a, T: Loose<'a>>(line: &'a [u8]) -> Result<Option<T>, &'static str> {
    if line.len() > LINE_BYTES_MOST {
        return Err("a record was too long and was skipped");
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return Err("a record was not UTF-8 and was skipped");
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some).ok_or("a record was torn or not JSON and was skipped")
}

/// The object in a field.
pub(super) fn object<'a, T: Loose<'a>>(raw: Raw<'a>) -> Option<T> {
    read(raw?.get())
}

/// The object that a string field holds as JSON text, as the vendors nest arguments.
pub(super) fn embedded<'a, T: Loose<'a>>(json: &'a str) -> Option<T> {
    read(json)
}

/// The elements of an array; none when it is something else.
pub(super) fn array(raw: Raw<'_>) -> Vec<&RawValue> {
    raw.filter(|raw| raw.get().starts_with('['))
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// The members of an object, in order.
pub(super) fn members<'a>(raw: Raw<'a>) -> Vec<(Cow<'a, str>, &'a RawValue)> {
    struct InOrder;
    impl<'a> Visitor<'a> for InOrder {
        type Value = Vec<(Cow<'a, str>, &'a RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<Text<'a>, &'a RawValue>()? {
                members.push((key.0, value));
            }
            Ok(members)
        }
    }
    let Some(raw) = raw else { return Vec::new() };
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(InOrder).unwrap_or_default()
}

/// The text in a field.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let json = raw?.get();
    if !json.starts_with('"') {
        return None;
    }
    if let Ok(text) = serde_json::from_str::<Text<'_>>(json) {
        return Some(text.0);
    }
    // Half a surrogate pair, where an agent cut its text in the middle of an emoji.
    struct Lossy;
    impl Visitor<'_> for Lossy {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    let mut json = serde_json::Deserializer::from_str(json);
    json.deserialize_bytes(Lossy).ok().map(Cow::Owned)
}

/// Whether the text in a field is `expected`.
pub(super) fn is(raw: Raw<'_>, expected: &str) -> bool {
    text(raw).is_some_and(|text| text == expected)
}

/// The true or false in a field.
pub(super) fn flag(raw: Raw<'_>) -> Option<bool> {
    match raw?.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

pub(super) fn number(raw: Raw<'_>) -> Option<f64> {
    serde_json::from_str(raw?.get()).ok()
}

pub(super) fn integer(raw: Raw<'_>) -> Option<i64> {
    let number = number(raw)?.round();
    (number.abs() < 9e15).then_some(number as i64)
}

/// A moment in seconds since 1970; milliseconds are told apart by their size.
pub(super) fn epoch(raw: Raw<'_>) -> Option<Timestamp> {
    let moment = integer(raw)?;
    match moment {
        1..1_000_000_000_000 => Timestamp::from_epoch(moment),
        1_000_000_000_000.. => Timestamp::from_epoch(moment / 1000),
        _ => None,
    }
}

/// A moment in RFC 3339.
pub(super) fn moment(raw: Raw<'_>) -> Option<Timestamp> {
    Timestamp::parse(&text(raw)?)
}

/// Texts of content blocks: a string, or an array of `{text}` objects.
pub(super) fn blocks(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    loose!(Block { text });
    if let Some(text) = text(raw) {
        return Some(text);
    }
    let blocks = array(raw);
    let texts: Vec<_> = blocks
        .into_iter()
        .filter_map(|block| text(object::<Block<'_>>(Some(block))?.text))
        .collect();
    match texts.len() {
        0 => None,
        1 => texts.into_iter().next(),
        _ => Some(Cow::Owned(texts.join("\n"))),
    }
}

/// A string that borrows from the line where it holds no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Whole).map(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    loose!(Sample { a, b = "b" | "b_b" });

    #[test]
    fn any_shape_of_any_field_is_accepted() {
        let line = br#" {"x": {"a": 1}, "a" : "caf\u00e9 \ud83d", "b":[1,{"text":"t"}, null]} "#;
        let sample: Sample<'_> = record(line).unwrap().unwrap();
        assert_eq!(text(sample.a).unwrap().replace('\u{fffd}', "?").trim_end_matches('?'), "café ");
        assert_eq!(array(sample.b).len(), 3);
        assert_eq!(blocks(sample.b).as_deref(), Some("t"));
        assert_eq!(flag(sample.a), None);
        assert_eq!(number(sample.b), None);
    }

    #[test]
    fn a_field_may_come_twice() {
        let sample: Sample<'_> = record(br#"{"a":1,"b_b":2,"a":3,"b":null}"#).unwrap().unwrap();
        assert_eq!((integer(sample.a), integer(sample.b)), (Some(3), Some(2)));
    }

    #[test]
    fn what_is_no_record_is_named() {
        assert!(matches!(record::<Sample<'_>>(b"  "), Ok(None)));
        assert!(record::<Sample<'_>>(br#"{"a": 1"#).is_err());
        assert!(record::<Sample<'_>>(b"[1, 2]").is_err());
        assert!(record::<Sample<'_>>(b"{\"a\": \"\xff\"}").is_err());
        assert!(record::<Sample<'_>>(&vec![b' '; LINE_BYTES_MOST + 1]).is_err());
    }

    #[test]
    fn moments_come_in_seconds_and_milliseconds() {
        let sample: Sample<'_> = record(br#"{"a":1796004532,"b":1796004532000}"#).unwrap().unwrap();
        assert_eq!(epoch(sample.a), Some(Timestamp(1_796_004_532)));
        assert_eq!(epoch(sample.b), Some(Timestamp(1_796_004_532)));
    }
}
