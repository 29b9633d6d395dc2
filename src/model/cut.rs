//! Texts cut to a bound, never inside a character.

use super::transcript::TEXT_BYTES_MOST;

/// `text` on one line, cut at `bytes_most`. What a line break or the cut goes through could not be
/// told for a secret any more, so that is done before.
pub fn one_line(text: &str, bytes_most: usize) -> String {
    let breaks = |c: char| c.is_whitespace() && c != ' ';
    let clean = (text.len() > bytes_most || text.contains(breaks))
        .then(|| super::foreign::quoted(&shorten(text, TEXT_BYTES_MOST)).text);
    let text = clean.as_deref().unwrap_or(text);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() + 1 > bytes_most {
            if line.is_empty() {
                line.push_str(&word[..boundary_before(word, bytes_most.min(word.len()))]);
            }
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// At most `bytes_most` bytes of `text`: all of it, or head and tail with the cut named.
pub fn shorten(text: &str, bytes_most: usize) -> String {
    if text.len() <= bytes_most {
        return text.to_owned();
    }
    let head = boundary_before(text, bytes_most * 2 / 3);
    let tail = boundary_before(text, text.len() - bytes_most / 3);
    format!("{}\n[... {} bytes cut ...]\n{}", &text[..head], tail - head, &text[tail..])
}

/// The last `bytes_most` bytes of `text`, from a character boundary on.
pub fn tail(text: &str, bytes_most: usize) -> String {
    let mut from = text.len().saturating_sub(bytes_most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// The last character boundary at or before `at`, which is within `text`.
fn boundary_before(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
