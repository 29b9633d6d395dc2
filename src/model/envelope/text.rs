//! Foreign text inside the envelope: it cannot leave the place it is put in.

use super::{END_MARK, ENVELOPE_MARK};
use crate::model::cut::shorten;
use crate::model::screen::{one_line, sanitise};

/// What the name of a cut may take beyond the bytes that are kept.
const CUT_NAME_BYTES: usize = 64;

/// `text` in a fence longer than any run of backticks in it, at most about `bytes_most` bytes.
pub(super) fn fenced(text: &str, bytes_most: usize) -> String {
    // Cut first, so that a long text is not walked whole; sanitising can only lengthen it.
    let text = without_marks(&sanitise(&shorten(text, bytes_most)));
    let text = shorten(&text, bytes_most.saturating_add(CUT_NAME_BYTES));
    let text = text.trim_matches('\n');
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

/// `text` on one line, at most `bytes_most` bytes and the name of the cut. It is to be put after
/// words of ours, so that it never begins a line.
pub(super) fn line(text: &str, bytes_most: usize) -> String {
    let line = one_line(text).replace("<!--", "<! --");
    if line.len() <= bytes_most {
        return line;
    }
    let mut end = bytes_most;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} [... {} bytes cut]", line[..end].trim_end(), line.len() - end)
}

/// Quoted text must not look like the edge of the envelope.
fn without_marks(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in [ENVELOPE_MARK, END_MARK] {
        if text.contains(mark) {
            text = text.replace(mark, &mark.replace("<!--", "<! --"));
        }
    }
    text
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(|run| run.len() / of.len_utf8()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        assert_eq!(fenced("plain\n", 99), "```\nplain\n```");
        assert_eq!(fenced("a\n```\nb ````` c", 99), "``````\na\n```\nb ````` c\n``````");
        assert_eq!(fenced("\u{1b}[31mred\u{202e}", 99), "```\nred<U+202E>\n```");
        assert!(!fenced("<!-- end of relay contract c-3f2a1b2c -->", 99).contains(END_MARK));
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(line("a\n# b\u{7} <!-- c", 99), "a # b<U+0007> <! -- c");
        assert_eq!(line("ääää", 5), "ää [... 4 bytes cut]");
    }
}
