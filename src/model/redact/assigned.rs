//! What stands after a name: `KEY=value`, `"password": "…"`, `--token …`.

use super::code::{is_expression, is_pattern, is_template};
use super::looks::{
    digits, is_hash, is_name, is_number, is_path, is_word, looks_mixed, looks_random, names_itself,
};
use super::placeholder::is_placeholder;
use super::rules::Name;

const NAME_MOST: usize = 64;
const VALUE_MOST: usize = 1024;

pub struct Value {
    pub start: usize,
    pub end: usize,
    pub secret: bool,
}

/// The value that is assigned to the name around `word`.
pub fn assigned(view: &[u8], word: (usize, usize), name: Name, spelled: &str) -> Option<Value> {
    let (word_start, word_end) = word;
    let left = view[..word_start].iter().rev().take(NAME_MOST);
    let start = word_start - left.take_while(|b| is_name(**b)).count();
    let right =
        view[word_end..].iter().take(NAME_MOST).take_while(|b| is_name(**b) && **b != b'.').count();
    let end = word_end + right;
    if !tail_is_harmless(&view[word_end..end]) {
        return None;
    }
    let before = &view[start..word_start];
    // `pass` and `auth` are parts of too many words: `compass`, `bypass`.
    if matches!(spelled, "pass" | "pwd" | "auth") {
        let camel = view[word_start].is_ascii_uppercase()
            && before.last().is_some_and(u8::is_ascii_lowercase);
        if before.last().is_some_and(u8::is_ascii_alphanumeric)
            && !camel
            && !before.eq_ignore_ascii_case(b"db")
        {
            return None;
        }
    }
    let whole = &view[start..end];
    let shape = operator(view, start, end)?;
    let value = value(view, &shape)?;
    let env = shape.tight && !shape.quoted_name && is_env(whole);
    let text = &view[value.0..value.1];
    let how = How {
        env,
        quoted: value.2,
        data: shape.quoted_name && !shape.flag,
        flag: shape.flag,
        xml: shape.xml,
    };
    let secret = plausible(text, name, spelled, how);
    Some(Value { start: value.0, end: value.1, secret })
}

struct Shape {
    /// Where the value begins.
    at: usize,
    /// `=` without blanks.
    tight: bool,
    quoted_name: bool,
    flag: bool,
    xml: bool,
    /// Only a quoted value counts.
    strict: bool,
}

#[derive(Clone, Copy)]
struct How {
    env: bool,
    quoted: bool,
    data: bool,
    flag: bool,
    xml: bool,
}

fn is_env(name: &[u8]) -> bool {
    name.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

/// `API_TOKEN_2` and `SECRET_KEY_BASE` are secrets, `TOKEN_FILE` and `tokenizer` are not.
fn tail_is_harmless(tail: &[u8]) -> bool {
    let mut rest = tail.to_ascii_lowercase();
    rest.retain(|b| !b.is_ascii_digit() && !matches!(b, b'_' | b'-'));
    const TAILS: [&str; 22] = [
        "",
        "s",
        "key",
        "keys",
        "value",
        "keybase",
        "base",
        "prod",
        "production",
        "dev",
        "test",
        "testing",
        "staging",
        "live",
        "hex",
        "raw",
        "string",
        "str",
        "data",
        "old",
        "new",
        "access",
    ];
    TAILS.iter().any(|known| known.as_bytes() == rest)
}

fn blanks(view: &[u8], mut at: usize) -> usize {
    let limit = at + 24;
    while at < limit && matches!(view.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

fn operator(view: &[u8], start: usize, end: usize) -> Option<Shape> {
    let name = &view[start..end];
    let flag = name.starts_with(b"--");
    let xml = start > 0 && view[start - 1] == b'<';
    let mut at = end;
    while at < end + 2 && matches!(view.get(at), Some(b'"' | b'\'' | b'`' | b']')) {
        at += 1;
    }
    let quoted_name = at > end;
    let mut shape = Shape { at, tight: false, quoted_name, flag, xml, strict: false };
    if xml && view.get(at) == Some(&b'>') {
        shape.at = at + 1;
        return Some(shape);
    }
    let op = blanks(view, at);
    let next = |at: usize| view.get(at).copied().unwrap_or(b'\n');
    shape.at = match (next(op), next(op + 1)) {
        (b'=', b'=') => {
            shape.strict = true;
            op + 2 + usize::from(next(op + 2) == b'=')
        }
        (b'=', b'>') | (b':', b'=') => op + 2,
        (b'=', b'~') | (b':', b':') => return None,
        (b'=', _) => {
            shape.tight = op == at && !matches!(next(op + 1), b' ' | b'\t');
            op + 1
        }
        (b':', _) => typed(view, op + 1).unwrap_or(op + 1),
        // A flag and its value, alone or as elements of a list.
        (b',', _) if quoted_name && (flag || (start >= 2 && view[start - 2] == b'(')) => {
            shape.flag = true;
            shape.strict = true;
            op + 1
        }
        _ if flag && op > at => op,
        // `<add key="password" value="…">`
        (b'v', b'a') if quoted_name && view[op..].starts_with(b"value=") => op + 6,
        _ => return None,
    };
    shape.at = blanks(view, shape.at);
    Some(shape)
}

/// `password: str = "…"`: where the value begins.
fn typed(view: &[u8], at: usize) -> Option<usize> {
    let from = blanks(view, at);
    let rest = &view[from..view.len().min(from + 40)];
    if !rest.first()?.is_ascii_alphabetic() && rest[0] != b'&' {
        return None;
    }
    let len =
        rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_<>&'[]|?. ".contains(b)).count();
    (rest.get(len) == Some(&b'=') && rest.get(len + 1) != Some(&b'=')).then_some(from + len + 1)
}

/// Start, end, and whether it is in quotes.
fn value(view: &[u8], shape: &Shape) -> Option<(usize, usize, bool)> {
    let mut at = shape.at;
    // Python's b"…", C#'s @"…".
    if matches!(view.get(at), Some(b'b' | b'r' | b'u' | b'@' | b'L'))
        && matches!(view.get(at + 1), Some(b'"' | b'\''))
    {
        at += 1;
    }
    let rest = &view[at..view.len().min(at + VALUE_MOST)];
    let first = *rest.first()?;
    if matches!(first, b'"' | b'\'' | b'`') {
        let body = &rest[1..];
        let mut len = 0;
        while len < body.len() && body[len] != first && body[len] != b'\n' {
            len += if body[len] == b'\\' && len + 1 < body.len() && body[len + 1] != b'\n' {
                2
            } else {
                1
            };
        }
        let closed = body.get(len) == Some(&first);
        return (closed || len > 0).then_some((at + 1, at + 1 + len.min(body.len()), true));
    }
    if shape.strict {
        return None;
    }
    let stop = |b: &u8| b.is_ascii_whitespace() || b"\"'`<>".contains(b);
    let mut len = rest.iter().position(stop).unwrap_or(rest.len());
    // The next parameter of a query, the next command of a line.
    for i in memchr::memchr_iter(b'&', &rest[..len]) {
        let after = &rest[i + 1..len];
        let word = after.iter().take_while(|b| is_name(**b)).count();
        if after.first() == Some(&b'&') || (word > 0 && after.get(word) == Some(&b'=')) {
            len = i;
            break;
        }
    }
    while len > 0 && b";,)]}&|.:\\".contains(&rest[len - 1]) {
        len -= 1;
    }
    (len > 0).then_some((at, at + len, false))
}

fn plausible(text: &[u8], name: Name, spelled: &str, how: How) -> bool {
    if text.len() < 6
        || is_placeholder(text)
        || is_code(text, how)
        || text.eq_ignore_ascii_case(spelled.as_bytes())
    {
        return false;
    }
    if text.contains(&b' ') {
        let words = text.split(|b| *b == b' ').count();
        let prose = text.iter().any(|b| b"?!.:,()".contains(b)) || text[0].is_ascii_uppercase();
        return spelled == "passphrase"
            && (how.env || how.data)
            && (3..=12).contains(&words)
            && !prose;
    }
    if text.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    match name {
        Name::Weak => looks_random(text) && !is_hash(text),
        Name::Strong if how.env => {
            !is_number(text) && (how.quoted || !is_word(text) || text.len() >= 10)
        }
        Name::Strong if how.quoted || how.xml || how.flag => looks_mixed(text) && !is_path(text),
        Name::Strong => {
            looks_mixed(text)
                && !is_path(text)
                && !is_number(text)
                && text.len() >= 12
                && digits(text) >= 3
        }
        Name::Password if how.env => true,
        Name::Password if how.data && how.quoted => !names_itself(text) && !is_path(text),
        Name::Password if how.quoted || how.xml || how.flag => looks_mixed(text) && !is_path(text),
        Name::Password => {
            !is_number(text)
                && text.len() >= 8
                && looks_mixed(text)
                && digits(text) >= 2
                && !is_path(text)
        }
    }
}

/// An expression that yields the value, a pattern for one, or its type.
fn is_code(text: &[u8], how: How) -> bool {
    is_template(text) || if how.quoted { is_pattern(text) } else { is_expression(text, how.env) }
}
