//! Who is believed: the allowed-signers file.
//!
//! The format is OpenSSH's (ssh-keygen(1), ALLOWED SIGNERS), so that one file serves this program,
//! `ssh-keygen -Y verify` and `git log --show-signature`. A line that grants something here grants
//! it there. The reverse is not promised: only Ed25519 keys are believed, certificates never. Two
//! differences are named in warnings: a line that cannot be read is skipped, where ssh-keygen
//! stops; and a time without `Z` is UTC, since the rules know no clock and no time zone.

mod line;
mod pattern;
#[cfg(test)]
mod tests;

use super::sign::{CONTRACT_NAMESPACE, GIT_NAMESPACE, PublicKey};
use super::time::Timestamp;
use line::BLANKS;

/// One line of the file: a key, who has it, and what it may sign when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// Patterns: names, `*` and `?`, with `!` in front to exclude.
    pub principals: Vec<String>,
    /// Patterns likewise; `None` allows every namespace.
    pub namespaces: Option<Vec<String>>,
    /// The first moment that the key counts at.
    pub valid_after: Option<Timestamp>,
    /// The last moment that the key counts at.
    pub valid_before: Option<Timestamp>,
    /// The key signs certificates. Those are not read here, so this line grants nothing.
    pub cert_authority: bool,
    pub key: PublicKey,
    pub comment: String,
}

impl Signer {
    fn check(&self, namespace: &str, at: Timestamp) -> Result<(), Untrusted> {
        let namespaces = self.namespaces.as_deref();
        if namespaces.is_some_and(|patterns| !pattern::any_matches(namespace, patterns)) {
            Err(Untrusted::WrongNamespace)
        } else if self.valid_after.is_some_and(|first| at < first) {
            Err(Untrusted::NotYetValid)
        } else if self.valid_before.is_some_and(|last| at > last) {
            Err(Untrusted::Expired)
        } else {
            Ok(())
        }
    }
}

/// Why a key is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    #[error("the key is not among the trusted ones")]
    UnknownKey,
    #[error("the key is not trusted for this namespace")]
    WrongNamespace,
    #[error("the key was not yet valid")]
    NotYetValid,
    #[error("the key had expired")]
    Expired,
}

/// The allowed-signers file, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// In the file's order.
    pub signers: Vec<Signer>,
    /// What was skipped or read with a doubt, each with its line: `line 3: …`.
    pub warnings: Vec<String>,
}

impl Trust {
    /// Reads the file; never fails.
    ///
    /// A line is `principals [options] type base64 [comment]`, with `#` and blank lines between.
    /// Options: `namespaces="…"`, `valid-after="…"`, `valid-before="…"`, `cert-authority`; a line
    /// with any other one is skipped, since it may restrict what we do not know. Times are
    /// `YYYYMMDD[HHMM[SS]]` and `Z`; without the `Z` they are in the machine's time zone for
    /// ssh-keygen, but read as UTC here, with a warning.
    pub fn parse(text: &str) -> Self {
        let mut trust = Self::default();
        for (index, line) in text.split('\n').enumerate() {
            let line = line.trim_matches(BLANKS);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut doubts = Vec::new();
            match line::read(line, &mut doubts) {
                Ok(signer) => trust.signers.push(signer),
                Err(why) => doubts.push(why),
            }
            trust.warnings.extend(doubts.iter().map(|why| format!("line {}: {why}", index + 1)));
        }
        trust
    }

    /// The first line that believes `key` for `namespace` at the time `at`.
    ///
    /// As ssh-keygen does, further lines with the same key are tried; when none grants it, the
    /// reason of the first one is given. The principal is not asked for: the caller learns it from
    /// the line.
    pub fn check(
        &self,
        key: &PublicKey,
        namespace: &str,
        at: Timestamp,
    ) -> Result<&Signer, Untrusted> {
        let mut why = None;
        for signer in self.signers.iter().filter(|known| !known.cert_authority && known.key == *key)
        {
            match signer.check(namespace, at) {
                Ok(()) => return Ok(signer),
                Err(refusal) => why = why.or(Some(refusal)),
            }
        }
        Err(why.unwrap_or(Untrusted::UnknownKey))
    }
}

/// The line that trusts `key` for contracts and for commits, without a newline:
/// `relay@host namespaces="git,git-relay-contract@v1" ssh-ed25519 AAAA… comment`.
///
/// In the principal, everything but ASCII letters and digits, `@`, `.`, `_`, `+` and `-` becomes
/// `-` (a name must not turn into a pattern, a list or a comment); an empty one becomes `relay`.
pub fn signer_line(principal: &str, key: &PublicKey, comment: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@._+-".contains(c);
    let mut name: String = principal.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    if name.is_empty() {
        name.push_str("relay");
    }
    format!(
        "{name} namespaces=\"{GIT_NAMESPACE},{CONTRACT_NAMESPACE}\" {}",
        key.to_openssh_line(comment)
    )
}
