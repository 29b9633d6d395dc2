//! Code that yields a value, and patterns for one.

use super::looks::{digits, is_word};

/// A hole that something else fills, or what stands for digits and letters in a pattern.
pub fn is_template(text: &[u8]) -> bool {
    const HOLES: [&str; 9] = ["${", "{{", "$(", "%s", "{}", "%d", "#{", "\\d", "\\w"];
    HOLES.iter().any(|hole| has(text, hole))
}

/// What a quoted value holds that is a pattern, or text with a place for a value.
pub fn is_pattern(text: &[u8]) -> bool {
    const MARKS: [&str; 6] = ["[^", "\\n", "<<", "[a-z", "[A-Z", "[0-9"];
    has_braces(text) || MARKS.iter().any(|mark| has(text, mark))
}

/// A bare value that is a call, a variable, a type or a constant.
pub fn is_expression(text: &[u8], is_env: bool) -> bool {
    const CALLS: [&str; 9] = [
        "os.environ",
        "process.env",
        "getenv",
        "env!",
        "env(",
        "env[",
        "import.meta",
        "secrets.",
        "::",
    ];
    if CALLS.iter().any(|call| has(text, call)) {
        return true;
    }
    if is_env {
        // `TOKEN=make_token()`; but a password may well have brackets in it.
        let open = text.iter().position(|b| *b == b'(');
        return open.is_some_and(|open| open > 2 && is_word(&text[..open]));
    }
    let marked = text.iter().any(|b| b"()[]{}$|\\".contains(b));
    let dereferenced = matches!(text[0], b'&' | b'*') || (text[0] == b'-' && text.len() < 12);
    marked || dereferenced || is_member(text) || is_constant(text)
}

fn has(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

fn has_braces(text: &[u8]) -> bool {
    text.iter().position(|b| *b == b'{').is_some_and(|open| text[open..].contains(&b'}'))
}

/// `self.token`, `user->password`, `Base64Url`
fn is_member(text: &[u8]) -> bool {
    let parts: Vec<_> = text.split(|b| b".>?!".contains(b)).collect();
    parts.len() > 1
        && parts.iter().all(|part| {
            part.first().is_none_or(|b| b.is_ascii_alphabetic() || *b == b'_')
                && part.iter().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(b))
                && part.split(|b| !b.is_ascii_digit()).filter(|run| !run.is_empty()).count() <= 1
        })
}

/// `SYSCALL_BIT_32`: a constant's name.
fn is_constant(text: &[u8]) -> bool {
    let name = text.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    name && text.contains(&b'_') && digits(text) * 4 < text.len()
}
