//! The text in a JSON string, whole or only its two ends: of a megabyte that a tool printed, a
//! few lines are kept, and only those are read.

use std::borrow::Cow;

/// A text with escapes is read whole up to this.
pub(super) const WHOLE_BYTES_MOST: usize = 1024 * 1024;

/// The text between the quotes of `json`, at most about `most` bytes: its head and its tail with
/// the cut named as `shorten` names it. A text without escapes is only borrowed, never copied.
pub(super) fn text(json: &str, most: usize) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.len() <= most {
        return Some(unescaped(inner));
    }
    let head = edge(inner, most / 4);
    let tail = edge(inner, inner.len() - most * 3 / 4);
    Some(Cow::Owned(format!(
        "{}\n[... {} bytes cut ...]\n{}",
        unescaped(&inner[..head]),
        tail - head,
        unescaped(&inner[tail..])
    )))
}

/// A place at or a little before `at` where no character and no escape is cut in two.
fn edge(inner: &str, mut at: usize) -> usize {
    while !inner.is_char_boundary(at) {
        at -= 1;
    }
    let bytes = inner.as_bytes();
    // An escape is at most six bytes: begin from its backslash, if one of the last five is one
    // that is not itself escaped.
    for back in 1..=5.min(at) {
        let place = at - back;
        if bytes[place] != b'\\' {
            continue;
        }
        let run = bytes[..=place].iter().rev().take_while(|byte| **byte == b'\\').count();
        let escape = if run % 2 == 1 { place } else { place - 1 };
        let length = if bytes.get(escape + 1) == Some(&b'u') { 6 } else { 2 };
        return if escape + length > at { escape } else { at };
    }
    at
}

/// A JSON string's text. Half a surrogate pair, where an agent cut in the middle of an emoji, and
/// escapes that do not exist become replacement characters.
fn unescaped(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else {
        return Cow::Borrowed(inner);
    };
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    let mut next = Some(first);
    while let Some(at) = next {
        text.push_str(&rest[..at]);
        let (c, length) = escape(&rest[at..]);
        text.push(c);
        rest = &rest[at + length..];
        next = memchr::memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that the escape at the beginning of `text` stands for, and its length.
fn escape(text: &str) -> (char, usize) {
    let bytes = text.as_bytes();
    let plain = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
        Some(b'u') => return unicode(text),
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (plain, 2)
}

fn unicode(text: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = text.get(from..from + 4)?;
        let digits = digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(digits)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(high) = unit(2) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let Some(c) = char::from_u32(high) {
        return (c, 6);
    }
    let low = if text.get(6..8) == Some("\\u") { unit(8) } else { None };
    match (high, low) {
        (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_as_a_parser_reads_them() {
        let texts = ["", "plain", "a\"b\\c/d\n\t\r\u{8}\u{c}\u{1}", "café 😀 \u{10ffff}"];
        for wanted in texts {
            for json in [serde_json::to_string(wanted).unwrap(), all_escaped(wanted)] {
                assert_eq!(text(&json, 1000).unwrap(), wanted, "{json}");
            }
        }
        assert_eq!(text(r#""\ud83d x \q \u12""#, 100).unwrap(), "\u{fffd} x \u{fffd}q \u{fffd}12");
        assert_eq!(text("17", 100), None);
    }

    fn all_escaped(text: &str) -> String {
        let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{}\"", units.concat())
    }

    #[test]
    fn no_cut_goes_through_an_escape() {
        let words = "a\\\"é\\u00e9\\\\\\\\\\n\\\\u0041".repeat(3);
        let json = format!("\"{words}\"");
        let whole = text(&json, 1000).unwrap();
        for at in 0..words.len() {
            let at = edge(&words, at);
            let joined = format!("{}{}", unescaped(&words[..at]), unescaped(&words[at..]));
            assert_eq!(joined, whole, "at {at}");
        }
        let long = format!("\"{}\"", "\\n".repeat(10_000));
        let cut = text(&long, 400).unwrap();
        assert!(cut.len() < 300 && cut.contains(" bytes cut ...]\n"), "{cut}");
    }
}
