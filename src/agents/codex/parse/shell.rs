//! Shell commands and patches, as the model meant them.

use crate::agents::loose::{self, Raw};
use crate::model::cut::one_line;
use crate::model::transcript::{Effect, FileTouch, LABEL_BYTES_MOST, TouchKind};
use std::borrow::Cow;

/// A command as the model meant it: without the shell that Codex puts around it.
pub(super) fn command(raw: Raw<'_>) -> String {
    if let Some(text) = loose::text(raw) {
        return match words(&text) {
            Some(words) => match script(&words) {
                Some(script) => script.to_owned(),
                None => text.into_owned(),
            },
            None => text.into_owned(),
        };
    }
    let words: Vec<_> = loose::array(raw).filter_map(|word| loose::text(Some(word))).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string()).collect();
    match script(&words) {
        Some(script) => script.to_owned(),
        None => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// The script of `bash -lc SCRIPT`.
fn script(words: &[String]) -> Option<&str> {
    let [shell, option, script] = words else {
        return None;
    };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(shell, "bash" | "sh" | "zsh" | "dash");
    (is_shell && matches!(&**option, "-c" | "-lc")).then_some(script)
}

/// A word as one would type it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// The words of a shell command of at most three words; `None` for more, and for anything but
/// plain words and quotes.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' => return None,
            c => word.get_or_insert_default().push(c),
        }
        if words.len() > 2 {
            return None;
        }
    }
    words.extend(word);
    Some(words)
}

/// Whether a shell command is nothing but a patch, which Codex takes out of it.
pub(super) fn is_patch(command: &str) -> bool {
    let command = command.trim_start();
    (command.starts_with("apply_patch") || command.starts_with("applypatch"))
        && command.contains("*** Begin Patch")
}

/// The files that a patch text names.
pub(super) fn patch(text: &str, cwd: Option<&str>) -> Effect {
    let mut files: Vec<FileTouch> = Vec::new();
    for line in text.lines() {
        let heads = [
            ("*** Add File: ", TouchKind::Added),
            ("*** Update File: ", TouchKind::Changed),
            ("*** Delete File: ", TouchKind::Deleted),
        ];
        let head = heads
            .iter()
            .find_map(|(head, kind)| line.strip_prefix(head).map(|path| (path.trim(), *kind)));
        if let Some((path, kind)) = head {
            files.push(FileTouch { path: absolute(path, cwd), kind });
        } else if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(from) = files.last_mut()
        {
            from.kind = TouchKind::Deleted;
            files.push(FileTouch { path: absolute(to.trim(), cwd), kind: TouchKind::Added });
        }
    }
    Effect::Files(files)
}

/// A patch in one line: its files; anything else as it is.
pub(super) fn patch_summary(effect: &Effect, otherwise: &str) -> String {
    match effect {
        Effect::Files(files) => {
            let paths: Vec<_> = files.iter().map(|file| &*file.path).collect();
            one_line(&paths.join(" "), LABEL_BYTES_MOST)
        }
        _ => one_line(otherwise, LABEL_BYTES_MOST),
    }
}

/// Items give absolute paths, patches relative ones: both become absolute, so that one file is one.
pub(super) fn absolute(path: &str, cwd: Option<&str>) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => {
            let path = path.strip_prefix("./").unwrap_or(path);
            format!("{}/{path}", cwd.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}
