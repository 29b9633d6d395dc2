//! Words of a shell command that people copy, and that agents' hooks run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A name or path as one word of a POSIX shell command. What a terminal would not show as it is,
/// or what is no text, goes through `printf`, so that the word still names the same file.
pub fn shell_word(text: impl AsRef<OsStr>) -> String {
    let text = text.as_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    match text.to_str() {
        // A leading `=` is an expansion in zsh.
        Some(text) if !text.is_empty() && !text.starts_with('=') && text.chars().all(plain) => {
            text.to_owned()
        }
        Some(text) if super::screen::line(text) == text => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let escaped = |byte: &u8| match byte {
                b if b.is_ascii_alphanumeric() || b"/._-+=:@, ".contains(b) => {
                    char::from(*b).into()
                }
                b => format!("\\{b:03o}"),
            };
            format!("\"$(printf '{}')\"", text.as_bytes().iter().map(escaped).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_its_text_and_nothing_else() {
        for (text, expected) in [
            ("/a/b-c.d", "/a/b-c.d"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("größe", "'größe'"),
            ("$(id);x", "'$(id);x'"),
            ("=ls", "'=ls'"),
            ("a\nb%", "\"$(printf 'a\\012b\\045')\""),
            ("\u{1b}[2J", "\"$(printf '\\033\\1332J')\""),
        ] {
            assert_eq!(shell_word(text), expected, "{text:?}");
        }
        assert_eq!(shell_word(OsStr::from_bytes(b"caf\xe9")), "\"$(printf 'caf\\351')\"");
    }
}
