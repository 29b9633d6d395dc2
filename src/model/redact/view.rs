//! The same text read in other ways: escapes undone, broken lines put together. A view knows
//! where each of its bytes came from.

use crate::model::screen;
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;

struct Piece {
    view: usize,
    raw: usize,
    raw_len: usize,
    /// An escape: its bytes have no place of their own in the original.
    whole: bool,
}

pub struct View<'a> {
    pub bytes: Cow<'a, [u8]>,
    pieces: Vec<Piece>,
    /// Where in the view a line break, or something that is not seen, was taken out.
    pub joins: Vec<usize>,
}

impl<'a> View<'a> {
    pub fn plain(raw: &'a [u8]) -> Self {
        let piece = Piece { view: 0, raw: 0, raw_len: raw.len(), whole: false };
        View { bytes: Cow::Borrowed(raw), pieces: vec![piece], joins: vec![] }
    }

    /// With backslash escapes undone, however many levels deep: JSON in JSON reads like the
    /// innermost text. `None` where there is nothing to undo.
    pub fn decoded(raw: &[u8]) -> Option<View<'static>> {
        let mut view = Building::new(raw.len());
        let (mut done, mut at) = (0, 0);
        while let Some(found) = memchr(b'\\', &raw[at..]) {
            let start = at + found;
            let mut end = start;
            while raw.get(end) == Some(&b'\\') {
                end += 1;
            }
            at = end;
            let Some((value, len)) = escape(&raw[end..]) else {
                continue;
            };
            view.copy(raw, done, start);
            view.escape(start, end + len - start, value);
            done = end + len;
            at = done;
        }
        if done == 0 {
            return None;
        }
        view.copy(raw, done, raw.len());
        Some(view.0)
    }

    /// Without what is not seen where it is shown: escape sequences, control characters, those
    /// without a width, and what such a one is shown as. Every place of one is a join. `None` where
    /// there is nothing to leave out.
    pub fn bare(base: &[u8]) -> Option<View<'static>> {
        let first = (0..base.len()).find(|&at| unseen(&base[at..]).is_some())?;
        let mut view = Building::new(base.len());
        let (mut done, mut at) = (0, first);
        while at < base.len() {
            let Some(len) = unseen(&base[at..]) else {
                at += 1;
                continue;
            };
            view.copy(base, done, at);
            let place = view.0.bytes.len();
            if view.0.joins.last() != Some(&place) {
                view.0.joins.push(place);
            }
            at += len;
            done = at;
        }
        view.copy(base, done, base.len());
        Some(view.0)
    }

    /// Only the words at the ends and beginnings of lines, put together where a long word may
    /// have been broken: indentation, a trailing backslash and what stands before both lines (a
    /// diff's `+`, a quote's `>`, a listing's number) are left out.
    pub fn joined(base: &[u8]) -> View<'static> {
        let mut view = Building::new(base.len() / 4);
        let (mut line, mut written) = (0, usize::MAX);
        let mut mark = decoration(base);
        for newline in memchr_iter(b'\n', base) {
            let (this_line, this_mark) = (line, mark);
            line = newline + 1;
            mark = decoration(&base[line..]);
            let mut end = newline;
            while end > this_line && matches!(base[end - 1], b'\r' | b'\\') {
                end -= 1;
            }
            if end == this_line || !is_token(base[end - 1]) {
                continue;
            }
            let indent = line + blanks(&base[line..]);
            let next = if mark.0 == this_mark.0 { line + mark.1 } else { indent };
            if !base.get(next).copied().is_some_and(is_token) {
                continue;
            }
            let stop =
                next + base[next..].iter().take_while(|b| is_run(**b)).take(RUN_MOST).count();
            if written != end {
                let content = (this_line + this_mark.1).min(end);
                let run = base[content..end].iter().rev().take_while(|b| is_run(**b));
                let start = end - run.take(RUN_MOST).count();
                if start == end || (end - start) + (stop - next) < JOINED_LEAST {
                    continue;
                }
                view.0.bytes.to_mut().push(b'\n');
                view.copy(base, start, end);
            }
            let place = view.0.bytes.len();
            view.0.joins.push(place);
            view.copy(base, next, stop);
            written = stop;
        }
        view.0
    }

    /// The range in the original that `start..end` of the view was read from.
    pub fn raw(&self, start: usize, end: usize) -> (usize, usize) {
        let first = self.piece(start);
        let from = if first.whole { first.raw } else { first.raw + (start - first.view) };
        let last = self.piece(end - 1);
        let to = if last.whole { last.raw + last.raw_len } else { last.raw + (end - last.view) };
        (from, to)
    }

    fn piece(&self, at: usize) -> &Piece {
        &self.pieces[self.pieces.partition_point(|piece| piece.view <= at).max(1) - 1]
    }

    pub fn is_join(&self, at: usize) -> bool {
        !self.joins.is_empty() && self.joins.binary_search(&at).is_ok()
    }
}

/// How much of one word is looked at on either side of a break.
const RUN_MOST: usize = 4096;
/// Shorter words broken over lines are no token.
const JOINED_LEAST: usize = 16;

struct Building(View<'static>);

impl Building {
    fn new(capacity: usize) -> Self {
        // The first byte has no origin; a hit never covers it, but look-ups need a piece.
        let pieces = vec![Piece { view: 0, raw: 0, raw_len: 0, whole: true }];
        Self(View { bytes: Cow::Owned(Vec::with_capacity(capacity)), pieces, joins: vec![] })
    }

    fn copy(&mut self, from: &[u8], start: usize, end: usize) {
        if start < end {
            let view = self.0.bytes.len();
            self.0.pieces.push(Piece { view, raw: start, raw_len: end - start, whole: false });
            self.0.bytes.to_mut().extend_from_slice(&from[start..end]);
        }
    }

    fn escape(&mut self, raw: usize, raw_len: usize, value: char) {
        let view = self.0.bytes.len();
        self.0.pieces.push(Piece { view, raw, raw_len, whole: true });
        self.0.bytes.to_mut().extend_from_slice(value.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// How long what `rest` begins with is, if it is not seen where it is shown.
fn unseen(rest: &[u8]) -> Option<usize> {
    match *rest.first()? {
        0x1b => Some(escape_sequence(rest).unwrap_or(1)),
        b'\n' | b'\t' | b'\r' => None,
        0..b' ' | 0x7f => Some(1),
        b'<' => shown_number(rest),
        lead @ 0xc2..=0xf4 => {
            let len = match lead {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            let c = std::str::from_utf8(rest.get(..len)?).ok()?.chars().next()?;
            (c.is_control() || screen::invisible(c)).then_some(len)
        }
        _ => None,
    }
}

/// How long the escape sequence is that `rest` begins with.
fn escape_sequence(rest: &[u8]) -> Option<usize> {
    let past = |from: usize, within: std::ops::RangeInclusive<u8>| {
        from + rest[from..].iter().take_while(|byte| within.contains(byte)).count()
    };
    let (end, last) = match rest.get(1)? {
        b'[' => (past(2, b' '..=b'?'), b'@'..=b'~'),
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let ends = |byte: &u8| matches!(byte, 7 | 0x1b | b'\n' | b'\r');
            let end = 2 + rest[2..].iter().take(RUN_MOST).position(ends)?;
            return match rest[end] {
                7 => Some(end + 1),
                0x1b if rest.get(end + 1) == Some(&b'\\') => Some(end + 2),
                _ => None,
            };
        }
        _ => (past(1, b' '..=b'/'), b'0'..=b'~'),
    };
    last.contains(rest.get(end)?).then_some(end + 1)
}

/// `<U+200B>`, as a character that is not seen is shown.
fn shown_number(rest: &[u8]) -> Option<usize> {
    let digits = rest.strip_prefix(b"<U+")?;
    let len = digits.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
    (len >= 4 && digits.get(len) == Some(&b'>')).then_some(len + 4)
}

/// What stands after the backslashes, and how long it is.
fn escape(rest: &[u8]) -> Option<(char, usize)> {
    let hex = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
        all.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    Some(match rest.first()? {
        b'n' => ('\n', 1),
        b'r' => ('\r', 1),
        b't' => ('\t', 1),
        quote @ (b'"' | b'\'' | b'/' | b'`') => (char::from(*quote), 1),
        // Half of a surrogate pair is no part of a secret; any other character will do.
        b'u' => (char::from_u32(hex(rest.get(1..5)?)?).unwrap_or('\u{fffd}'), 5),
        b'x' => (char::from_u32(hex(rest.get(1..3)?)?)?, 3),
        _ => return None,
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/=.%~:".contains(&byte)
}

fn is_run(byte: u8) -> bool {
    byte > b' ' && !b"\"'`<>()[]{},;\\|".contains(&byte) && byte < 0x80
}

fn blanks(line: &[u8]) -> usize {
    line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// What stands before the text of a line in diffs, quotes, comments and listings: its sort, and
/// its length with the blanks around it.
pub fn decoration(line: &[u8]) -> (u32, usize) {
    let (mut sort, mut at) = (0, blanks(line));
    // A diff's mark stands in the first column; elsewhere it may be part of a token.
    let mut column = 0;
    for _ in 0..3 {
        let rest = &line[at..];
        let digits = rest.iter().take(9).take_while(|b| b.is_ascii_digit()).count();
        let (mark, len) = match rest {
            _ if digits > 0 => match &rest[digits..] {
                [0xe2, 0x86, 0x92, ..] => (1, digits + 3),
                [b'\t' | b'|' | b':', ..] => (1, digits + 1),
                [b' ', b'|', ..] => (1, digits + 2),
                _ => break,
            },
            [b'+', ..] if at == column => (2, 1),
            [b'-', ..] if at == column && !rest.starts_with(b"----") => (3, 1),
            [b'>', ..] => (4, 1),
            [b'|', ..] => (5, 1),
            [b'#', ..] => (6, 1),
            [b'*', ..] => (7, 1),
            [b'/', b'/', ..] => (8, 2),
            [0xe2, 0x94, 0x82, ..] => (9, 3),
            _ => break,
        };
        sort = sort * 16 + mark;
        at += len;
        column = if mark == 1 { at } else { usize::MAX };
        at += blanks(&line[at..]);
    }
    (sort, at)
}
