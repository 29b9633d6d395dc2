//! Foreign text as it may be kept or shown: fit to be read, and without secrets.
//!
//! What moves a cursor is taken out before secrets are looked for, since it can part one; and
//! they are looked for before lines are put together or cut.

use super::redact::{Redacted, redact};
use super::screen::sanitise;
use super::transcript::TAIL_BYTES_MOST;

/// A whole text.
pub fn clean(text: &str) -> Redacted {
    redact(&sanitise(text))
}

/// A text whose reader may have cut it: the words beside such a cut may be halves of secrets, so
/// they go.
pub fn quoted(text: &str) -> Redacted {
    clean(&without_torn_words(text))
}

/// The end of a command's output, which may begin anywhere in a line.
pub fn tail(tail: &str) -> Redacted {
    // A tail shorter than this by more than a character was not cut.
    if tail.len() + 4 <= TAIL_BYTES_MOST {
        return clean(tail);
    }
    let from = tail.find(char::is_whitespace).unwrap_or(tail.len());
    clean(&tail[from..])
}

/// [`quoted`] on one line.
pub fn one_line(text: &str) -> String {
    super::screen::one_line(&quoted(text).text)
}

/// [`clean`] on one line, its spaces kept.
pub fn line(text: &str) -> String {
    super::screen::line(&clean(text).text)
}

const CUT_FROM: &str = "\n[... ";
const CUT_TO: &str = " bytes cut ...]\n";

/// `text` without the words that touch what looks like a cut made by
/// [`shorten`](super::cut::shorten).
fn without_torn_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, after)) = rest.split_once(CUT_FROM) {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let Some(tail) = after[digits..].strip_prefix(CUT_TO).filter(|_| digits > 0) else {
            out.push_str(head);
            out.push_str(CUT_FROM);
            rest = after;
            continue;
        };
        out.push_str(head.rfind(char::is_whitespace).map_or("", |at| &head[..at]));
        out.push_str(CUT_FROM);
        out.push_str(&after[..digits]);
        out.push_str(CUT_TO);
        rest = tail.find(char::is_whitespace).map_or("", |at| &tail[at..]);
    }
    out + rest
}

/// The part of `text` before a cut made by `shorten`, if there is one.
pub(super) fn head_before_cut(text: &str) -> Option<&str> {
    let (head, rest) = text.split_once(CUT_FROM)?;
    rest.contains(CUT_TO).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cut::shorten;

    #[test]
    fn words_beside_a_cut_go_and_the_cut_stays_named() {
        let cut = shorten(&format!("{} {}", "head words", "secret".repeat(900)), 1200);
        let clean = without_torn_words(&cut);
        assert!(clean.starts_with("head words\n[... "), "{clean}");
        assert!(!clean.contains("secret"));
        let foreign = "a\n[... b bytes cut ...]\nc";
        assert_eq!(without_torn_words(foreign), foreign);
        // One that the text brings along does not stand for the real one.
        for before in [foreign, "a b\n[... 1 bytes cut ...]\nc d"] {
            let clean = without_torn_words(&format!("{before} {cut}"));
            assert!(!clean.contains("secret"), "{clean}");
        }
        assert_eq!(head_before_cut(&cut).map(|head| head.starts_with("head")), Some(true));
        assert_eq!(head_before_cut("whole"), None);
    }

    /// A secret that a cut, a line break or an escape goes through is told for one all the same.
    #[test]
    fn no_half_of_a_secret_is_left() {
        let secret = crate::model::specimen::SECRET;
        let (head, rest) = secret.split_at(12);
        for parts in ["\n", "\r", "\r\n", "\u{1b}[1m", "\u{200b}", "\u{1b}[1m\n"] {
            let text = format!("use {head}{parts}{rest} now");
            for line in [one_line(&text), line(&text), crate::model::cut::one_line(&text, 99)] {
                let line = clean(&line).text;
                assert!(!line.contains(head) && !line.contains(rest), "{text:?}: {line}");
            }
        }
        let word = format!("{}/{secret}", "x".repeat(90));
        let line = crate::model::cut::one_line(&word, 100);
        assert!(!line.contains(&secret[..6]), "{line}");
        let output = format!("{secret}{}", " y".repeat(1100));
        for from in 1..secret.len() {
            let end = crate::model::cut::tail(&output[..from + 2048], 2048);
            assert!(!tail(&end).text.contains(&secret[secret.len() - 3..]), "{from}");
        }
    }
}
