//! Where a JSON value ends, found without reading it: strings are jumped over and brackets
//! counted, so that what lies inside a string can never be taken for structure. Nothing is
//! allocated and nothing recurses, however deep the nesting.
//!
//! It takes a little more than JSON is (a closing bracket of the wrong kind, a raw control
//! character in a string), and never less.

/// What a byte outside a string can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a number, a word, or between values.
    Pass,
    Quote,
    Open,
    Close,
    /// No JSON has it here.
    Bad,
}

const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Bad; 256];
    let pass = b" \t\r\n,:+-.0123456789eEtrufalsn";
    let mut at = 0;
    while at < pass.len() {
        classes[pass[at] as usize] = Class::Pass;
        at += 1;
    }
    classes[b'"' as usize] = Class::Quote;
    classes[b'{' as usize] = Class::Open;
    classes[b'[' as usize] = Class::Open;
    classes[b'}' as usize] = Class::Close;
    classes[b']' as usize] = Class::Close;
    classes
}

/// The first place from `at` on that is no white space.
pub(super) fn past_space(json: &[u8], mut at: usize) -> usize {
    while matches!(json.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// Where the string that opens at `at` ends, behind its closing quote.
pub(super) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    let first = at + 1;
    let mut from = first;
    loop {
        let quote = from + memchr::memchr(b'"', json.get(from..)?)?;
        let backslashes = json[from..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        from = quote + 1;
        if backslashes % 2 == 0 {
            return Some(from);
        }
    }
}

/// Where the value that begins at `at` ends; `None` where it does not.
pub(super) fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match CLASSES[usize::from(*json.get(at)?)] {
        Class::Quote => string_end(json, at),
        Class::Open => nested_end(json, at),
        Class::Pass => {
            let is_scalar = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            let length = json[at..].iter().take_while(is_scalar).count();
            let word = &json[at..at + length];
            let known = matches!(word, b"true" | b"false" | b"null")
                || matches!(word.first(), Some(b'-' | b'0'..=b'9'));
            known.then_some(at + length)
        }
        Class::Close | Class::Bad => None,
    }
}

fn nested_end(json: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match CLASSES[usize::from(*json.get(at)?)] {
            Class::Pass => {}
            Class::Quote => {
                at = string_end(json, at)?;
                continue;
            }
            Class::Open => depth += 1,
            Class::Close if depth == 1 => return Some(at + 1),
            Class::Close => depth -= 1,
            Class::Bad => return None,
        }
        at += 1;
    }
}

/// The members of an object or the elements of an array, one after the other.
pub(super) struct Walk<'a> {
    json: &'a str,
    /// Where to go on; `None` once the value is whole or broken.
    at: Option<usize>,
    /// It ended as it should, at the end of the text.
    pub(super) is_whole: bool,
    close: u8,
    is_first: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn members(json: &'a str) -> Self {
        Self::new(json, b'{', b'}')
    }

    pub(super) fn elements(json: &'a str) -> Self {
        Self::new(json, b'[', b']')
    }

    fn new(json: &'a str, open: u8, close: u8) -> Self {
        let at = past_space(json.as_bytes(), 0);
        let at = (json.as_bytes().get(at) == Some(&open)).then_some(at + 1);
        Self { json, at, is_whole: false, close, is_first: true }
    }

    /// Steps over a comma, or ends.
    fn step(&mut self) -> Option<usize> {
        let json = self.json.as_bytes();
        let at = past_space(json, self.at.take()?);
        let is_first = std::mem::replace(&mut self.is_first, false);
        match json.get(at)? {
            byte if *byte == self.close => {
                self.is_whole = past_space(json, at + 1) == json.len();
                None
            }
            b',' if !is_first => Some(past_space(json, at + 1)),
            _ if is_first => Some(at),
            _ => None,
        }
    }

    pub(super) fn next_element(&mut self) -> Option<&'a str> {
        let from = self.step()?;
        let to = value_end(self.json.as_bytes(), from)?;
        self.at = Some(to);
        self.json.get(from..to)
    }

    /// The key with its quotes, and the value.
    pub(super) fn next_member(&mut self) -> Option<(&'a str, &'a str)> {
        let json = self.json.as_bytes();
        let from = self.step()?;
        if json.get(from) != Some(&b'"') {
            return None;
        }
        let to = string_end(json, from)?;
        let key = self.json.get(from..to)?;
        let colon = past_space(json, to);
        if json.get(colon) != Some(&b':') {
            return None;
        }
        let from = past_space(json, colon + 1);
        let to = value_end(json, from)?;
        self.at = Some(to);
        Some((key, self.json.get(from..to)?))
    }
}
