//! Private keys in armour: PEM, OpenSSH, PGP, SSH2 and PuTTY. Blocks may be torn, indented,
//! quoted, numbered or part of a diff.

use super::view::decoration;
use memchr::memchr;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// A block is looked through for this many bytes: longer than any key.
const BLOCK_BYTES_MOST: usize = 64 * 1024;

static EDGE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^-{4,6} ?(BEGIN|END) (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}";
    RegexBuilder::new(pattern).unicode(false).build().expect("a constant pattern")
});

enum Line {
    /// Base64 or a header; how long its base64 is.
    Body(usize),
    Blank,
    /// Where the END ends, and how much stands before it.
    End(usize, usize),
    Other,
}

/// The block around the words `PRIVATE KEY` at `word`, if there is key material in it.
pub fn block(view: &[u8], word: usize) -> Option<(usize, usize)> {
    let floor = word.saturating_sub(48);
    let dashes = floor + memchr::memmem::rfind(&view[floor..word], b"----")?;
    let mut start = dashes;
    while start > 0 && view[start - 1] == b'-' && dashes - start < 2 {
        start -= 1;
    }
    let edge = EDGE.captures(&view[start..view.len().min(word + 40)])?;
    let edge_end = start + edge.get(0)?.end();
    if edge.get(1)?.as_bytes() == b"END" {
        return torn_above(view, start).map(|from| (from, edge_end));
    }
    let (end, body) = below(view, edge_end);
    (body >= 16).then_some((start, end))
}

/// PuTTY's `Private-Lines: 8`, then as many lines of base64.
pub fn putty(view: &[u8], word: usize) -> Option<(usize, usize)> {
    let eol = word + memchr(b'\n', &view[word..])?;
    let start = eol + 1;
    let (end, body) = below(view, start);
    (body >= 16).then_some((start, end))
}

/// Walks down from `start` to the end of the block or of what looks like base64; how much of it
/// there was.
fn below(view: &[u8], start: usize) -> (usize, usize) {
    let limit = view.len().min(start + BLOCK_BYTES_MOST);
    let (mut at, mut end, mut body, mut first) = (start, start, 0, true);
    let mut short = false;
    while at < limit {
        let eol = memchr(b'\n', &view[at..limit]).map_or(limit, |len| at + len);
        match line(&view[at..eol], first) {
            Line::End(len, before) => return (at + len, body + before),
            Line::Other => break,
            Line::Blank => {}
            // Base64 ends in its first short line; what follows is text, or a checksum.
            Line::Body(len) if short && len > 8 => break,
            Line::Body(len) => {
                let text = view[at..eol].trim_ascii_end();
                end = at + text.len();
                body += len;
                short = len > 0 && len < 40 && !first;
            }
        }
        first = false;
        at = eol + 1;
    }
    (end, body)
}

/// Walks up from an END without a BEGIN.
fn torn_above(view: &[u8], end: usize) -> Option<usize> {
    let floor = end.saturating_sub(BLOCK_BYTES_MOST);
    // The line of the END itself may hold the whole body.
    let mut from = None;
    let mut eol = end;
    loop {
        let bol = memchr::memrchr(b'\n', &view[floor..eol]).map_or(floor, |at| floor + at + 1);
        let text = &view[bol..eol];
        match line(text, false) {
            Line::Body(len) if len >= 16 || (from.is_none() && len > 0) => {
                let (_, skip) = decoration(text);
                from = Some(bol + skip.min(text.len().saturating_sub(len)));
            }
            Line::Blank if eol == end => {}
            _ => break,
        }
        if bol == floor {
            break;
        }
        eol = bol - 1;
    }
    from.filter(|from| end - from >= 24)
}

fn line(raw: &[u8], first: bool) -> Line {
    // What begins like the line mark of a diff may be base64 itself: try it both ways.
    let (_, skip) = decoration(raw);
    let text = raw[skip..].trim_ascii();
    let text = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    if let Some(at) =
        memchr::memmem::find(raw, b"----END ").or(memchr::memmem::find(raw, b"---- END "))
    {
        let from = raw[..at].iter().rposition(|b| *b != b'-').map_or(0, |last| last + 1);
        if let Some(edge) = EDGE.find(&raw[from..]) {
            let before = raw[..from].iter().filter(|b| b.is_ascii_alphanumeric()).count();
            return Line::End(from + edge.end(), before);
        }
        return Line::Other;
    }
    let text = match text {
        [start @ .., b'"' | b'\'', b'+' | b',' | b';' | b'\\'] => start,
        [start @ .., b'"' | b'\''] => start,
        [start @ .., b'"' | b'\'', b' ', b'+' | b'.' | b'\\'] => start,
        [start @ .., b'\\'] => start,
        _ => text,
    };
    if text.is_empty() {
        return Line::Blank;
    }
    let headers: [&[u8]; 5] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:"];
    if headers.iter().any(|header| text.starts_with(header)) {
        return Line::Body(0);
    }
    // A mark for what was taken out before.
    if text.starts_with(b"[redacted:") {
        return Line::Body(0);
    }
    let mut words = text.split(|b| *b == b' ').filter(|word| !word.is_empty()).peekable();
    let mut len = 0;
    while let Some(word) = words.next() {
        let base64 = word.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b));
        let long =
            word.len() >= 32 || (words.peek().is_none() && (len > 0 || random_end(word, first)));
        if !base64 || !long {
            return if len >= 32 { Line::Body(len) } else { Line::Other };
        }
        len += word.len();
    }
    Line::Body(len)
}

/// Whether a short line can be the last of base64: not a plain word.
fn random_end(word: &[u8], first: bool) -> bool {
    let sort = |test: fn(&u8) -> bool| word.iter().any(test);
    let mixed = sort(u8::is_ascii_digit)
        || word.contains(&b'=')
        || word.contains(&b'/')
        || word.contains(&b'+');
    let cased = sort(u8::is_ascii_lowercase) && word.iter().skip(1).any(u8::is_ascii_uppercase);
    if first { word.len() >= 16 && mixed } else { mixed || cased }
}
