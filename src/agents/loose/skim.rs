//! Single values out of JSON that may be cut short anywhere: the head of a file whose first record
//! is longer than anybody wants to read. Only what lies before the value is stepped over, without
//! recursion and without looking into it.

use super::scan::{self, past_space, string_end};
use std::borrow::Cow;

/// The JSON text of the value at `path`, if it is whole: the first of that name.
pub(in crate::agents) fn json_at<'a>(json: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let mut at = past_space(json, 0);
    for key in path {
        at = member(json, at, key)?;
    }
    Some(&json[at..value_end(json, at)?])
}

/// The text at `path`.
pub(in crate::agents) fn text_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    let text = std::str::from_utf8(json_at(json, path)?).ok()?;
    let plain = text.strip_prefix('"')?.strip_suffix('"')?;
    match plain.contains('\\') {
        true => serde_json::from_str(text).ok().map(Cow::Owned),
        false => Some(Cow::Borrowed(plain)),
    }
}

/// The whole number at `path`.
pub(in crate::agents) fn number_at(json: &[u8], path: &[&str]) -> Option<u64> {
    std::str::from_utf8(json_at(json, path)?).ok()?.parse().ok()
}

/// Where the value of `key` begins, of the object that begins at `at`.
fn member(json: &[u8], at: usize, key: &str) -> Option<usize> {
    let mut at = (json.get(at)? == &b'{').then_some(at + 1)?;
    loop {
        let from = past_space(json, at);
        let to = (json.get(from)? == &b'"').then(|| string_end(json, from))??;
        let colon = past_space(json, to);
        let value = (json.get(colon)? == &b':').then(|| past_space(json, colon + 1))?;
        if json[from + 1..to - 1] == *key.as_bytes() {
            return Some(value);
        }
        at = past_space(json, value_end(json, value)?);
        at = (json.get(at)? == &b',').then_some(at + 1)?;
    }
}

/// Where the value that begins at `at` ends. A number or a word is whole where something else
/// follows it.
fn value_end(json: &[u8], at: usize) -> Option<usize> {
    let end = scan::value_end(json, at)?;
    (end < json.len() || matches!(json[at], b'"' | b'{' | b'[')).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#" {"a" : [{"cwd":"no"}, "}\"cwd\":1"], "b":{"cwd":"/caf\u00e9"},"cwd":"/x y", "n":12,"t":true,"z":null}"#;

    #[test]
    fn a_value_is_found_where_it_belongs() {
        let line = LINE.as_bytes();
        assert_eq!(text_at(line, &["cwd"]).as_deref(), Some("/x y"));
        assert_eq!(text_at(line, &["b", "cwd"]).as_deref(), Some("/caf\u{e9}"));
        assert_eq!(number_at(line, &["n"]), Some(12));
        assert_eq!(json_at(line, &["t"]), Some(&b"true"[..]));
        assert_eq!(json_at(line, &["a"]).map(<[u8]>::len), Some(28));
        for absent in [&["c"][..], &["a", "cwd"], &["cwd", "b"], &["b", "c"]] {
            assert_eq!(json_at(line, absent), None, "{absent:?}");
        }
        assert_eq!((text_at(line, &["n"]), number_at(line, &["cwd"])), (None, None));
    }

    /// Cut anywhere, a value is there whole or not at all.
    #[test]
    fn what_is_cut_is_not_there() {
        for cut in 0..LINE.len() {
            let line = &LINE.as_bytes()[..cut];
            let texts = [text_at(line, &["cwd"]), text_at(line, &["b", "cwd"])];
            assert!(texts[0].as_ref().is_none_or(|text| text == "/x y"), "{cut}");
            assert!(texts[1].as_ref().is_none_or(|text| text == "/caf\u{e9}"), "{cut}");
            assert!(number_at(line, &["n"]).is_none_or(|number| number == 12), "{cut}");
        }
    }

    #[test]
    fn rubbish_is_no_record() {
        for rubbish in [
            "",
            " ",
            "[1]",
            "{",
            "}",
            "{}",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1 2,\"cwd\":\"x\"}",
        ] {
            assert_eq!(json_at(rubbish.as_bytes(), &["cwd"]), None, "{rubbish}");
        }
        let deep = "[".repeat(1 << 20);
        assert_eq!(json_at(format!("{{\"a\":{deep}").as_bytes(), &["cwd"]), None);
        assert_eq!(json_at(b"{\"a\":\"\\", &["a"]), None);
    }
}
