//! Reading JSON that others wrote and change in every version: each field stays raw until it is
//! asked for, and a field of an unexpected type reads as absent instead of losing the record.
//!
//! Fields are found by parsing, never by a byte pattern: a tool's output may hold any JSON.

mod scan;
pub(super) mod skim;
mod text;

use crate::model::time::Timestamp;
use crate::model::transcript::LINE_BYTES_MOST;
use scan::Walk;
use std::borrow::Cow;
use text::WHOLE_BYTES_MOST;

/// What a tool printed is read up to this: more than anybody keeps of it.
const RESULT_BYTES_MOST: usize = 16 * 1024;

/// A value as it stands in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Json<'a>(pub(super) &'a str);

impl<'a> Json<'a> {
    pub(super) fn get(self) -> &'a str {
        self.0
    }
}

/// A field as it stands in the line; `None` when absent or null.
pub(super) type Raw<'a> = Option<Json<'a>>;

fn raw(json: &str) -> Raw<'_> {
    (json != "null").then_some(Json(json))
}

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
    let mut record = T::default();
    let mut members = Walk::members(json);
    while let Some((key, value)) = members.next_member() {
        if let Some(field) = record.take(&text::text(key, usize::MAX)?) {
            *field = raw(value).or(*field);
        }
    }
    members.is_whole.then_some(record)
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
pub(super) fn array<'a>(raw: Raw<'a>) -> impl Iterator<Item = Json<'a>> {
    let mut elements = Walk::elements(raw.map_or("", Json::get));
    std::iter::from_fn(move || elements.next_element().map(Json))
}

/// The members of an object, in order.
pub(super) fn members<'a>(raw: Raw<'a>) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
    let mut members = Walk::members(raw.map_or("", Json::get));
    std::iter::from_fn(move || {
        let (key, value) = members.next_member()?;
        Some((text::text(key, WHOLE_BYTES_MOST)?, Json(value)))
    })
}

/// The text in a field; of one beyond all measure, its two ends.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text::text(raw?.get(), WHOLE_BYTES_MOST)
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
    let json = raw?.get();
    let is_number = matches!(json.as_bytes().first(), Some(b'-' | b'0'..=b'9'));
    json.parse().ok().filter(|_| is_number)
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
    joined(raw, WHOLE_BYTES_MOST)
}

/// [`blocks`] of what a tool printed: of a long one, its two ends.
pub(super) fn result(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    joined(raw, RESULT_BYTES_MOST)
}

fn joined(raw: Raw<'_>, most: usize) -> Option<Cow<'_, str>> {
    loose!(Block { text });
    if let Some(text) = text::text(raw?.get(), most) {
        return Some(text);
    }
    let mut all: Option<Cow<'_, str>> = None;
    for block in array(raw) {
        let Some(block) = object::<Block<'_>>(Some(block)).and_then(|block| block.text) else {
            continue;
        };
        let Some(text) = text::text(block.get(), most) else { continue };
        all = match all {
            None => Some(text),
            Some(all) if all.len() > most => return Some(all),
            Some(all) => Some(Cow::Owned(format!("{all}\n{text}"))),
        };
    }
    all
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
        assert_eq!(array(sample.b).count(), 3);
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
