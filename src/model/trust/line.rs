//! One line of the file, as `ssh-keygen` reads it: principals, options, key, comment.

use super::Signer;
use crate::model::sign::{PublicKey, SignError, one_line};
use crate::model::time::Timestamp;

pub(super) const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// One line that is neither blank nor a comment; the error is the warning about it.
pub(super) fn read(line: &str, doubts: &mut Vec<String>) -> Result<Signer, String> {
    if line.contains(|c: char| c.is_control() && c != '\t') {
        // A C string ends at NUL, so ssh-keygen may see another line than we do.
        return Err("skipped: it has control characters".to_owned());
    }
    let (principals, rest) =
        principals(line).ok_or("skipped: a quote is not closed or out of place")?;
    if rest.is_empty() {
        return Err("skipped: it has no key".to_owned());
    }
    let principals = list(principals);
    // ssh-keygen asks for a principal and would find none here; we do not ask for one.
    if principals.iter().all(|pattern| pattern.is_empty() || pattern.starts_with('!')) {
        return Err("skipped: it is about nobody".to_owned());
    }
    let mut options = Options::default();
    let key = if is_key_type(word(rest).0) {
        rest
    } else {
        let after = options.read(rest, doubts)?;
        after.trim_start_matches(BLANKS)
    };
    let (kind, after) = word(key);
    let (blob, comment) = word(after);
    if kind.is_empty() {
        return Err("skipped: it has no key".to_owned());
    }
    let key = PublicKey::from_openssh_line(&format!("{kind} {blob}")).map_err(|why| match why {
        SignError::UnsupportedKey(_) if !is_key_type(kind) => "skipped: it has no key".to_owned(),
        why => format!("skipped: {why}"),
    })?;
    Ok(Signer {
        principals,
        namespaces: options.namespaces.as_deref().map(list),
        valid_after: options.valid_after,
        valid_before: options.valid_before,
        cert_authority: options.cert_authority,
        key,
        comment: comment.to_owned(),
    })
}

/// The first word, and what comes after it and its blanks.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start_matches(BLANKS))
}

/// The first field, which may stand in quotes as a whole (`strdelimw` in OpenSSH's misc.c).
fn principals(line: &str) -> Option<(&str, &str)> {
    match line.strip_prefix('"') {
        Some(quoted) => {
            let (principals, rest) = quoted.split_once('"')?;
            Some((principals, rest.trim_start_matches(BLANKS)))
        }
        // A quote inside a word: ssh-keygen takes it out in a way nobody should rely on.
        None if word(line).0.contains('"') => None,
        None => Some(word(line)),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// How the names of key types begin: `ssh-rsa`, `ecdsa-sha2-…`, `sk-ssh-…@openssh.com`.
fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-"].iter().any(|start| word.starts_with(start))
}

#[derive(Default)]
struct Options {
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
    cert_authority: bool,
}

impl Options {
    /// Reads the options at the beginning of `text` and gives what comes after them
    /// (`sshsigopt_parse` in OpenSSH's sshsig.c). Names in any case, each value at most once.
    fn read<'a>(&mut self, text: &'a str, doubts: &mut Vec<String>) -> Result<&'a str, String> {
        let mut rest = text;
        loop {
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let name = rest[..end].to_ascii_lowercase();
            rest = &rest[end..];
            if name == "cert-authority" && !rest.starts_with('=') {
                self.cert_authority = true;
            } else {
                let quoted = rest.strip_prefix("=\"").ok_or_else(|| unknown(&name))?;
                let (value, after) = unquote(quoted).ok_or("skipped: a quote is not closed")?;
                rest = after;
                match &*name {
                    "namespaces" => once(&mut self.namespaces, value, &name)?,
                    "valid-after" => once(&mut self.valid_after, time(&value, doubts)?, &name)?,
                    "valid-before" => once(&mut self.valid_before, time(&value, doubts)?, &name)?,
                    _ => return Err(unknown(&name)),
                }
            }
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None if rest.is_empty() || rest.starts_with([' ', '\t']) => return Ok(rest),
                None => return Err("skipped: options are not separated by commas".to_owned()),
            }
        }
    }
}

fn unknown(name: &str) -> String {
    let name: String = one_line(name).chars().take(64).collect();
    format!("skipped: {name:?} is neither an option nor a key type that is known")
}

fn once<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("skipped: it has {name} twice")),
    }
}

/// The value up to the closing quote, with `\"` for a quote in it, and what comes after.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                chars.next();
                value.push('"');
            }
            _ => value.push(c),
        }
    }
    None
}

/// `YYYYMMDD[HHMM[SS]][Z]` (`parse_absolute_time` in OpenSSH's misc.c).
fn time(text: &str, doubts: &mut Vec<String>) -> Result<Timestamp, String> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let whole = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        _ => digits.to_owned(),
    };
    let moment = (whole.len() == 14 && whole.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| {
            let part = |from, to| &whole[from..to];
            let (date, clock) = (
                format!("{}-{}-{}", part(0, 4), part(4, 6), part(6, 8)),
                format!("{}:{}:{}", part(8, 10), part(10, 12), part(12, 14)),
            );
            Timestamp::parse(&format!("{date}T{clock}Z"))
        })
        .flatten()
        .ok_or_else(|| format!("skipped: {:?} is not a time", one_line(text)))?;
    if digits.len() == text.len() {
        doubts.push(format!("{text:?} has no Z; it is read as UTC, not as local time"));
    }
    Ok(moment)
}
