//! Who is believed: the allowed-signers file.
//!
//! The format is OpenSSH's (ssh-keygen(1), ALLOWED SIGNERS), so that one file serves this program,
//! `ssh-keygen -Y verify` and `git log --show-signature`. A line that
//! grants something here grants it there. The reverse is not promised: only Ed25519 keys are
//! believed, certificates never. Two differences are named in warnings: a line that cannot be read
//! is skipped, where ssh-keygen stops; and a time without `Z` is UTC, since the rules know no clock
//! and no time zone.

use super::sign::{CONTRACT_NAMESPACE, GIT_NAMESPACE, PublicKey, SignError, one_line};
use super::time::Timestamp;

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
    /// Whether the line is about this principal.
    pub fn is_called(&self, principal: &str) -> bool {
        matches_list(principal, &self.principals)
    }

    fn check(&self, namespace: &str, at: Timestamp) -> Result<(), Untrusted> {
        let namespaces = self.namespaces.as_deref();
        if namespaces.is_some_and(|patterns| !matches_list(namespace, patterns)) {
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
            match signer(line, &mut doubts) {
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

const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// One line that is neither blank nor a comment; the error is the warning about it.
fn signer(line: &str, doubts: &mut Vec<String>) -> Result<Signer, String> {
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

/// Whether `text` matches one of the patterns and none of those that `!` excludes
/// (ssh_config(5), PATTERNS).
fn matches_list(text: &str, patterns: &[String]) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(excluded) if matches(text, excluded) => return false,
            Some(_) => {}
            None => found |= matches(text, pattern),
        }
    }
    found
}

/// `*` for any bytes, `?` for one; in time |text| × |pattern| at most.
fn matches(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut at, mut next) = (0, 0);
    // Where to go on after the last star, if what follows it does not fit where it was tried.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((at, next + 1));
                next += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[at] => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((tried, after)) = star else {
                    return false;
                };
                star = Some((tried + 1, after));
                (at, next) = (tried + 1, after);
            }
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sign::{SigningKey, gpgsig_header};
    use proptest::prelude::*;
    use std::fs;
    use std::process::{Command, Stdio};

    const NOON: Timestamp = Timestamp(1_796_040_000);

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    /// The line of key 1 with these principals and options.
    fn line(before: &str) -> String {
        format!("{before} {}", key(1).public().to_openssh_line("a comment"))
    }

    fn check(text: &str) -> Result<(), Untrusted> {
        Trust::parse(text).check(&key(1).public(), "git", NOON).map(drop)
    }

    #[test]
    fn our_own_line_is_read_back() {
        let line = signer_line("relay@host", &key(1).public(), "made by init");
        assert!(line.starts_with(
            "relay@host namespaces=\"git,git-relay-contract@v1\" ssh-ed25519 AAAAC3NzaC1lZDI1"
        ));
        let trust = Trust::parse(&line);
        assert_eq!(trust.warnings, Vec::<String>::new());
        let signer = trust.check(&key(1).public(), CONTRACT_NAMESPACE, NOON).unwrap();
        assert_eq!(
            *signer,
            Signer {
                principals: vec!["relay@host".to_owned()],
                namespaces: Some(vec!["git".to_owned(), CONTRACT_NAMESPACE.to_owned()]),
                valid_after: None,
                valid_before: None,
                cert_authority: false,
                key: key(1).public(),
                comment: "made by init".to_owned(),
            }
        );
        let trusted = |seed, namespace| trust.check(&key(seed).public(), namespace, NOON);
        assert_eq!(trusted(1, "file"), Err(Untrusted::WrongNamespace));
        assert_eq!(trusted(2, "git"), Err(Untrusted::UnknownKey));
    }

    #[test]
    fn a_line_of_ours_stays_one_line_with_one_name() {
        let public = key(1).public();
        for (principal, name) in
            [("a b\n* c", "a-b---c"), ("*", "-"), ("!x,\"y", "-x--y"), ("", "relay"), ("#", "-")]
        {
            let trust = Trust::parse(&signer_line(principal, &public, "x\n* ssh-ed25519 y"));
            assert_eq!(trust.warnings, Vec::<String>::new());
            assert_eq!(trust.signers.len(), 1);
            assert_eq!(trust.signers[0].principals, [name]);
            assert_eq!(trust.signers[0].comment, "x * ssh-ed25519 y");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_grants_nothing_and_hides_nothing() {
        for (bad, why) in [
            ("a", "has no key"),
            ("a ssh-rsa AAAAB3NzaC1yc2E= x", "\"ssh-rsa\" is not supported"),
            ("a sk-ssh-ed25519@openssh.com AAAA x", "is not supported"),
            ("a ssh-ed25519", "cut short"),
            ("a ssh-ed25519 AAAA", "malformed"),
            (&line("!root@host"), "about nobody"),
            (&line("\"\""), "about nobody"),
            ("a ssh-ed25519 !!!!", "not base64"),
            (&line("a restrict"), "neither an option"),
            (&line("a namespaces=git"), "neither an option"),
            (&line("a namespaces=\"git"), "not closed"),
            (&line("a namespaces=\"git\",namespaces=\"file\""), "twice"),
            (&line("a namespaces=\"git\"valid-after=\"20260101Z\""), "commas"),
            (&line("a cert-authorit"), "neither an option"),
            (&line("a valid-before=\"tomorrow\""), "not a time"),
            (&line("a valid-before=\"20261301Z\""), "not a time"),
            (&line("a valid-before=\"20260230Z\""), "not a time"),
            (&line("a valid-before=\"2026+101Z\""), "not a time"),
            (&line("a valid-before=\"é0260101Z\""), "not a time"),
            (&line("a").replacen("ssh", "\0ssh", 1), "control"),
            (&line("\"a"), "not closed"),
            (&line("a\"b\""), "not closed"),
        ] {
            let trust = Trust::parse(&format!("# one\n{bad}\n\n{}\r\n", line("b")));
            assert_eq!(trust.signers.len(), 1, "{bad}");
            assert_eq!(trust.signers[0].principals, ["b"], "{bad}");
            let [warning] = &*trust.warnings else { panic!("{bad}: {:?}", trust.warnings) };
            assert!(warning.starts_with("line 2: ") && warning.contains(why), "{bad}: {warning}");
        }
        assert_eq!(Trust::parse("\n \t\n# x\n  # y\n\r\n"), Trust::default());
    }

    #[test]
    fn options_are_read_as_ssh_keygen_reads_them() {
        let one = |before: &str| {
            let trust = Trust::parse(&line(before));
            assert_eq!(trust.signers.len(), 1, "{before}: {:?}", trust.warnings);
            (trust.signers[0].clone(), trust.warnings)
        };
        let (signer, warnings) =
            one("\"a b,*@c\"\tNameSpaces=\"git,f\\\"x y\",valid-after=\"20260102Z\",\
             valid-before=\"202612312359Z\",cert-authority");
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(signer.principals, ["a b", "*@c"]);
        assert_eq!(signer.namespaces.unwrap(), ["git", "f\"x y"]);
        assert_eq!(signer.valid_after, Timestamp::parse("2026-01-02T00:00:00Z"));
        assert_eq!(signer.valid_before, Timestamp::parse("2026-12-31T23:59:00Z"));
        assert!(signer.cert_authority);
        assert_eq!(signer.comment, "a comment");

        let (signer, warnings) = one("a valid-after=\"20260102030405\"");
        assert_eq!(signer.valid_after, Timestamp::parse("2026-01-02T03:04:05Z"));
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("no Z"));
    }

    #[test]
    fn each_refusal_has_its_name_and_any_line_can_grant() {
        let expired = line("a valid-before=\"20251231Z\"");
        let future = line("b valid-after=\"20300101Z\"");
        let file = line("c namespaces=\"file\"");
        let authority = line("d cert-authority");
        assert_eq!(check(""), Err(Untrusted::UnknownKey));
        assert_eq!(check(&expired), Err(Untrusted::Expired));
        assert_eq!(check(&future), Err(Untrusted::NotYetValid));
        assert_eq!(check(&file), Err(Untrusted::WrongNamespace));
        assert_eq!(check(&authority), Err(Untrusted::UnknownKey));
        let all = [&*authority, &*expired, &*future, &*file].join("\n");
        assert_eq!(check(&all), Err(Untrusted::Expired));
        let trust = Trust::parse(&format!("{all}\n{}", line("e")));
        assert_eq!(trust.check(&key(1).public(), "git", NOON).unwrap().principals, ["e"]);

        // Both ends count.
        let both = Trust::parse(&line("a valid-after=\"20260101Z\",valid-before=\"20260102Z\""));
        let first = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let at =
            |seconds| both.check(&key(1).public(), "git", first.plus_seconds(seconds)).map(drop);
        assert_eq!(at(-1), Err(Untrusted::NotYetValid));
        assert_eq!(at(0), Ok(()));
        assert_eq!(at(86_400), Ok(()));
        assert_eq!(at(86_401), Err(Untrusted::Expired));
    }

    #[test]
    fn patterns() {
        for (text, pattern, fits) in [
            ("", "", true),
            ("", "*", true),
            ("a", "", false),
            ("relay@host", "*", true),
            ("relay@host", "relay@host", true),
            ("relay@host", "*@host", true),
            ("relay@host", "*@hos", false),
            ("relay@host", "r*y@*t", true),
            ("relay@host", "Relay@host", false),
            ("aab", "*ab", true),
            ("abab", "a*b?", false),
            ("abc", "a?c", true),
            ("ac", "a?c", false),
            ("ac", "a**c", true),
        ] {
            assert_eq!(matches(text, pattern), fits, "{text} {pattern}");
        }
        assert!(!matches(&"a".repeat(2000), &"a*".repeat(500).replace("a*a", "a*ab")));
        let signer = &Trust::parse(&line("*@host,!root@host")).signers[0];
        assert!(signer.is_called("relay@host"));
        assert!(!signer.is_called("root@host") && !signer.is_called("x"));
    }

    /// For each file: ssh-keygen's verdict on a signature by key 1, and ours.
    #[test]
    fn ssh_keygen_agrees_on_who_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let message = b"message";
        let public = key(1).public();
        fs::write(folder.join("message"), message).unwrap();
        let other = signer_line("relay@host", &key(2).public(), "other");
        for (file, namespace, trusted) in [
            (signer_line("relay@host", &public, ""), "git", Ok(())),
            (signer_line("relay@host", &public, "x y"), CONTRACT_NAMESPACE, Ok(())),
            (signer_line("relay@host", &public, ""), "file", Err(Untrusted::WrongNamespace)),
            (other.clone(), "git", Err(Untrusted::UnknownKey)),
            (format!("# x\n\n{other}\n{}", line("*")), "git", Ok(())),
            (line("\"x y,*@host\""), "git", Ok(())),
            (line("* namespaces=\"g?t\""), "git", Ok(())),
            (line("* namespaces=\"*,!git\""), "git", Err(Untrusted::WrongNamespace)),
            (line("* Namespaces=\"git\""), "git", Ok(())),
            (line("* valid-before=\"20251231Z\""), "git", Err(Untrusted::Expired)),
            (line("* valid-after=\"20300101Z\""), "git", Err(Untrusted::NotYetValid)),
            (
                line("* valid-after=\"20261130115959Z\",valid-before=\"20261130120000Z\""),
                "git",
                Ok(()),
            ),
            (line("* valid-before=\"202611301159Z\""), "git", Err(Untrusted::Expired)),
            (line("* valid-before=\"20251231Z\"") + "\n" + &line("*"), "git", Ok(())),
            (line("* cert-authority"), "git", Err(Untrusted::UnknownKey)),
            (line("* namespaces=\"git\",restrict"), "git", Err(Untrusted::UnknownKey)),
            (line("* namespaces=\"git\",namespaces=\"git\""), "git", Err(Untrusted::UnknownKey)),
            (line("* \t namespaces=\"git\"\t"), "git", Ok(())),
        ] {
            fs::write(folder.join("signers"), &file).unwrap();
            fs::write(folder.join("sig"), key(1).sign(namespace, message)).unwrap();
            let output = Command::new("ssh-keygen")
                .args(["-Y", "verify", "-f", "signers", "-I", "relay@host", "-n", namespace])
                .args(["-s", "sig", "-O", "verify-time=20261130120000Z"])
                .current_dir(folder)
                .stdin(Stdio::from(fs::File::open(folder.join("message")).unwrap()))
                .output()
                .expect("these tests need ssh-keygen");
            let talk = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), trusted.is_ok(), "{file}\n{talk}");
            let ours = Trust::parse(&file).check(&public, namespace, NOON).map(drop);
            assert_eq!(ours, trusted, "{file}");
        }
        assert_eq!(NOON.to_string(), "2026-11-30T12:00:00Z");
    }

    /// `gpgsig_header` and `signer_line` are what stock git wants for a signed commit.
    #[test]
    fn git_believes_our_commits() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let git = |arguments: &[&str], input: &str| {
            fs::write(folder.join("input"), input).unwrap();
            let output = Command::new("git")
                .args(["-c", "gpg.ssh.allowedSignersFile=signers"])
                .args(arguments)
                .current_dir(folder)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1")])
                .stdin(Stdio::from(fs::File::open(folder.join("input")).unwrap()))
                .output()
                .expect("these tests need git");
            (output.status.success(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
        };
        assert!(git(&["init", "-q"], "").0);
        fs::write(folder.join("signers"), signer_line("relay@host", &key(1).public(), "")).unwrap();
        let (_, tree) = git(&["mktree"], "");
        let who = "Relay <relay@host> 1796040000 +0000";
        let head = format!("tree {tree}\nauthor {who}\ncommitter {who}\n");
        for (signer, message, verdict) in
            [(1, "\nstep\n", "G"), (2, "\nstep\n", "U"), (1, "\nstep \n", "B")]
        {
            let armored = key(signer).sign(GIT_NAMESPACE, format!("{head}\nstep\n").as_bytes());
            let commit = format!("{head}gpgsig {}\n{message}", gpgsig_header(&armored));
            let (_, id) = git(&["hash-object", "-t", "commit", "-w", "--stdin"], &commit);
            assert_eq!(git(&["log", "-1", "--format=%G?", &id], "").1, verdict);
            assert_eq!(git(&["verify-commit", &id], "").0, verdict == "G");
            assert!(git(&["fsck", "--strict"], "").0);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(
            text: String, near in "[a\"\\\\, =#*!\t\nZ0-9é\u{0}-]{0,60}",
        ) {
            Trust::parse(&text);
            Trust::parse(&near);
            Trust::parse(&line(&near));
            Trust::parse(&line(&format!("a namespaces={near}")));
            Trust::parse(&line(&format!("a valid-after=\"{near}\"")));
        }

        #[test]
        fn a_pattern_of_stars_and_parts_fits_what_it_was_cut_from(
            parts in prop::collection::vec("[ab]{0,3}", 1..6), between in "[abc]{0,4}",
        ) {
            prop_assert!(matches(&parts.join(&between), &parts.join("*")));
        }
    }
}
