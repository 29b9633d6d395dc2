//! The one door through which foreign text enters a contract.

use crate::model::redact::{Redacted, redact};
use crate::model::screen::{first_chars, sanitise};
use crate::model::transcript::{TAIL_BYTES_MOST, shorten};
use std::collections::BTreeMap;

/// Names (branch, model, account) are at most about this long; git's longest ref is 250.
const NAME_BYTES_MOST: usize = 250;
/// Attributions are at most about this long.
const BY_CHARS_MOST: usize = 48;

/// Cleans texts and sums up what was found in them.
#[derive(Default)]
pub(super) struct Cleaner {
    found: BTreeMap<String, u32>,
}

impl Cleaner {
    pub(super) fn found(self) -> BTreeMap<String, u32> {
        self.found
    }

    /// `text` sanitised, then redacted: taking out an escape sequence can join a secret that it
    /// had parted. Always given whole texts, so that no cut can halve a secret before.
    pub(super) fn text(&mut self, text: &str) -> String {
        let Redacted { text, found } = redact(&sanitise(text));
        for (kind, count) in found {
            *self.found.entry(kind).or_default() += count;
        }
        text
    }

    /// A name or an attribution: cleaned, on one line, short.
    pub(super) fn name(&mut self, text: &str) -> String {
        let clean = self.text(text);
        let words: Vec<&str> = clean.split_whitespace().collect();
        let line = words.join(" ");
        if line.len() <= NAME_BYTES_MOST {
            return line;
        }
        shorten(&line, NAME_BYTES_MOST).replace('\n', " ")
    }

    /// Who said something.
    pub(super) fn by(&mut self, by: &str) -> String {
        first_chars(&self.name(by), BY_CHARS_MOST)
    }

    /// A text out of a transcript, whose reader may have cut it, unredacted: the words beside
    /// such a cut may be halves of secrets, so they go.
    pub(super) fn quoted(&mut self, text: &str) -> String {
        let whole_words = without_torn_words(text);
        self.text(&whole_words)
    }

    /// The end of a command's output, which may begin anywhere in a line.
    pub(super) fn tail(&mut self, tail: &str) -> String {
        // A tail shorter than this by more than a character was not cut.
        if tail.len() + 4 <= TAIL_BYTES_MOST {
            return self.text(tail);
        }
        let from = tail.find(char::is_whitespace).unwrap_or(tail.len());
        self.text(&tail[from..])
    }
}

const CUT_FROM: &str = "\n[... ";
const CUT_TO: &str = " bytes cut ...]\n";

/// `text` without the words that touch a cut made by [`shorten`].
fn without_torn_words(text: &str) -> String {
    let Some((head, rest)) = text.split_once(CUT_FROM) else {
        return text.to_owned();
    };
    let Some((bytes, tail)) = rest.split_once(CUT_TO) else {
        return text.to_owned();
    };
    if bytes.is_empty() || !bytes.bytes().all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let head = head.rfind(char::is_whitespace).map_or("", |at| &head[..at]);
    let tail = tail.find(char::is_whitespace).map_or("", |at| &tail[at..]);
    format!("{head}{CUT_FROM}{bytes}{CUT_TO}{tail}")
}

/// The part of `text` before a cut made by [`shorten`], if there is one.
pub(super) fn head_before_cut(text: &str) -> Option<&str> {
    let (head, rest) = text.split_once(CUT_FROM)?;
    rest.contains(CUT_TO).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beside_a_cut_go_and_the_cut_stays_named() {
        let cut = shorten(&format!("{} {}", "head words", "secret".repeat(900)), 1200);
        let clean = without_torn_words(&cut);
        assert!(clean.starts_with("head words\n[... "), "{clean}");
        assert!(!clean.contains("secret"));
        assert_eq!(
            without_torn_words("a\n[... b bytes cut ...]\nc"),
            "a\n[... b bytes cut ...]\nc"
        );
        assert_eq!(head_before_cut(&cut).map(|head| head.starts_with("head")), Some(true));
        assert_eq!(head_before_cut("whole"), None);
    }

    #[test]
    fn a_secret_parted_by_an_escape_is_found() {
        let secret = crate::model::specimen::SECRET;
        let (head, tail) = secret.split_at(12);
        let mut cleaner = Cleaner::default();
        let text = cleaner.text(&format!("{head}\u{1b}[1m{tail}"));
        assert!(!text.contains(tail), "{text}");
        let torn = cleaner.tail(&format!("{tail} ok{}", " y".repeat(1100)));
        assert!(torn.trim_start().starts_with("ok"));
        assert_eq!(cleaner.found().values().sum::<u32>(), 1);
    }
}
