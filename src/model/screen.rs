//! Foreign text made fit to be read: nothing in it moves a cursor, hides, or reorders.
//!
//! Used for whatever leaves the program as words: contract texts, envelope, note, terminal.
//! Colour sequences go away without a trace; any other invisible character is shown by its
//! number, so that a reader sees that something was there.

use std::iter::Peekable;
use std::str::Chars;

/// `text` without terminal escapes; control, bidirectional and zero-width characters are written
/// as `<U+202E>`. Line ends become `\n`, tabs stay. Doing it twice changes nothing more.
///
/// Removing escapes can join what they parted, so secrets are looked for *after* this.
pub fn sanitise(text: &str) -> String {
    if text.bytes().all(|b| b == b'\n' || b == b'\t' || (b' '..0x7f).contains(&b)) {
        return text.to_owned();
    }
    let plain = without_escapes(text);
    let mut out = String::with_capacity(plain.len());
    let mut rest = plain.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{0b}' | '\u{0c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            _ if joins(c) && between_wide(&out, rest.peek()) => out.push(c),
            _ if c.is_control() || invisible(c) => show(&mut out, c),
            _ => out.push(c),
        }
    }
    out
}

/// `text` without whole escape sequences; an ESC that begins none is shown.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if let Some(after) = after_escape(rest.clone()) {
            rest = after;
        } else {
            show(&mut out, c);
        }
    }
    out
}

/// `text` sanitised and on one line, its spaces kept.
pub fn line(text: &str) -> String {
    sanitise(text).replace(['\n', '\t'], " ")
}

/// `text` sanitised and on one line: each run of white space is one space.
pub fn one_line(text: &str) -> String {
    let clean = sanitise(text);
    let mut out = String::with_capacity(clean.len());
    for word in clean.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// At most `chars_most` characters of `text`; a cut ends in `…`.
pub fn first_chars(text: &str, chars_most: usize) -> String {
    match text.char_indices().nth(chars_most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(chars_most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

fn show(out: &mut String, c: char) {
    use std::fmt::Write as _;
    write!(out, "<U+{:04X}>", u32::from(c)).expect("a String takes every write");
}

/// What follows a whole escape sequence, whose ESC has been taken; `None` if it is none.
fn after_escape(mut rest: Peekable<Chars<'_>>) -> Option<Peekable<Chars<'_>>> {
    match rest.next()? {
        // CSI: parameters, intermediates, one final byte.
        '[' => loop {
            match rest.next()? {
                ' '..='?' => {}
                '@'..='~' => return Some(rest),
                _ => return None,
            }
        },
        // OSC, DCS, SOS, PM, APC: a string up to BEL or ESC \, within one line.
        ']' | 'P' | 'X' | '^' | '_' => loop {
            match rest.next()? {
                '\u{07}' => return Some(rest),
                '\u{1b}' => return (rest.next()? == '\\').then_some(rest),
                c if c == '\n' || c == '\r' => return None,
                _ => {}
            }
        },
        // Others: intermediates, then one final byte.
        mut c => {
            while (' '..='/').contains(&c) {
                c = rest.next()?;
            }
            ('0'..='~').contains(&c).then_some(rest)
        }
    }
}

/// Joiners and variation selectors, which emoji and several scripts need.
fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a joiner stands where it has a job: after one visible character that is not ASCII and,
/// if anything follows, not before ASCII letters or digits. A run of them is a hiding place.
fn between_wide(before: &str, after: Option<&char>) -> bool {
    let wide_before =
        before.chars().next_back().is_some_and(|c| c > '\u{a0}' && (!joins(c) || c == '\u{fe0f}'));
    wide_before && after.is_none_or(|c| !c.is_ascii_alphanumeric())
}

/// Characters without a width of their own that are not control characters by category.
pub(super) fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_hides_and_nothing_moves_the_cursor() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[31;1mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y", "xy"),
            ("\u{1b}(Bx\u{1b}7y", "xy"),
            ("\u{1b}", "<U+001B>"),
            ("\u{1b}]never ended", "<U+001B>]never ended"),
            ("\u{1b}\u{1b}[2Jx", "<U+001B>x"),
            ("10%\r20%\r\ndone", "10%\n20%\ndone"),
            ("a\u{202e}b\u{200b}c\u{7}\u{9b}", "a<U+202E>b<U+200B>c<U+0007><U+009B>"),
            ("\u{e0041}", "<U+E0041>"),
            ("👨\u{200d}👩 ❤\u{fe0f}", "👨\u{200d}👩 ❤\u{fe0f}"),
            ("gh\u{200d}p", "gh<U+200D>p"),
            ("日本語 mañana", "日本語 mañana"),
            ("a\u{2028}b\u{85}c", "a\nb\nc"),
        ] {
            assert_eq!(sanitise(text), expected, "{text:?}");
        }
        assert_eq!(one_line("  a\n\n b\tc \u{2029}"), "a b c");
        assert_eq!(line("  a\n\tb\u{1b}[0m"), "  a  b");
        assert_eq!(first_chars("häßlich", 4), "häß…");
        assert_eq!(first_chars("häß", 3), "häß");
    }

    proptest! {
        #[test]
        fn sanitising_twice_is_sanitising_once(text in "(\\PC|[\u{0}-\u{20}\u{1b}\u{200d}\u{fe0f}\u{202e}❤]|\u{1b}\\[[0-9;]*m|\u{1b}\\])*") {
            let once = sanitise(&text);
            prop_assert_eq!(&sanitise(&once), &once);
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!one_line(&text).contains('\n'));
        }
    }
}
