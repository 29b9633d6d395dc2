//! The one door through which foreign text enters a contract.

use crate::model::cut::shorten;
use crate::model::foreign;
use crate::model::redact::Redacted;
use crate::model::screen::first_chars;
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

    /// A text, always given whole, so that no cut can halve a secret before.
    pub(super) fn text(&mut self, text: &str) -> String {
        self.count(foreign::clean(text))
    }

    fn count(&mut self, redacted: Redacted) -> String {
        for (kind, count) in redacted.found {
            *self.found.entry(kind).or_default() += count;
        }
        redacted.text
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

    /// A text out of a transcript, whose reader may have cut it, unredacted.
    pub(super) fn quoted(&mut self, text: &str) -> String {
        self.count(foreign::quoted(text))
    }

    /// The end of a command's output.
    pub(super) fn tail(&mut self, tail: &str) -> String {
        self.count(foreign::tail(tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
