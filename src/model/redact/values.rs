//! What stands after a name: `KEY=value`, `"password": "…"`, `--token …`, and the password in
//! an address. And what is no secret there: placeholders, code, words, hashes.

use super::rules::Name;

const NAME_MOST: usize = 64;
const VALUE_MOST: usize = 1024;

pub struct Value {
    pub start: usize,
    pub end: usize,
    pub secret: bool,
}

/// The value that is assigned to the name around `word`.
pub fn assigned(view: &[u8], word: (usize, usize), name: Name, spelled: &str) -> Option<Value> {
    let (word_start, word_end) = word;
    let left = view[..word_start].iter().rev().take(NAME_MOST);
    let start = word_start - left.take_while(|b| is_name(**b)).count();
    let right =
        view[word_end..].iter().take(NAME_MOST).take_while(|b| is_name(**b) && **b != b'.').count();
    let end = word_end + right;
    if !tail_is_harmless(&view[word_end..end]) {
        return None;
    }
    let before = &view[start..word_start];
    // `pass` and `auth` are parts of too many words: `compass`, `bypass`.
    if matches!(spelled, "pass" | "pwd" | "auth") {
        let camel = view[word_start].is_ascii_uppercase()
            && before.last().is_some_and(u8::is_ascii_lowercase);
        if before.last().is_some_and(u8::is_ascii_alphanumeric)
            && !camel
            && !before.eq_ignore_ascii_case(b"db")
        {
            return None;
        }
    }
    let whole = &view[start..end];
    let shape = operator(view, start, end)?;
    let value = value(view, &shape)?;
    let env = shape.tight && !shape.quoted_name && is_env(whole);
    let text = &view[value.0..value.1];
    let how = How {
        env,
        quoted: value.2,
        data: shape.quoted_name && !shape.flag,
        flag: shape.flag,
        xml: shape.xml,
    };
    let secret = plausible(text, name, spelled, how);
    Some(Value { start: value.0, end: value.1, secret })
}

struct Shape {
    /// Where the value begins.
    at: usize,
    /// `=` without blanks.
    tight: bool,
    quoted_name: bool,
    flag: bool,
    xml: bool,
    /// Only a quoted value counts.
    strict: bool,
}

#[derive(Clone, Copy)]
struct How {
    env: bool,
    quoted: bool,
    data: bool,
    flag: bool,
    xml: bool,
}

const QUOTED: How = How { env: false, quoted: true, data: true, flag: false, xml: false };

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn is_env(name: &[u8]) -> bool {
    name.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

/// `API_TOKEN_2` and `SECRET_KEY_BASE` are secrets, `TOKEN_FILE` and `tokenizer` are not.
fn tail_is_harmless(tail: &[u8]) -> bool {
    let mut rest = tail.to_ascii_lowercase();
    rest.retain(|b| !b.is_ascii_digit() && !matches!(b, b'_' | b'-'));
    const TAILS: [&str; 22] = [
        "",
        "s",
        "key",
        "keys",
        "value",
        "keybase",
        "base",
        "prod",
        "production",
        "dev",
        "test",
        "testing",
        "staging",
        "live",
        "hex",
        "raw",
        "string",
        "str",
        "data",
        "old",
        "new",
        "access",
    ];
    TAILS.iter().any(|known| known.as_bytes() == rest)
}

fn blanks(view: &[u8], mut at: usize) -> usize {
    let limit = at + 24;
    while at < limit && matches!(view.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

fn operator(view: &[u8], start: usize, end: usize) -> Option<Shape> {
    let name = &view[start..end];
    let flag = name.starts_with(b"--");
    let xml = start > 0 && view[start - 1] == b'<';
    let mut at = end;
    while at < end + 2 && matches!(view.get(at), Some(b'"' | b'\'' | b'`' | b']')) {
        at += 1;
    }
    let quoted_name = at > end;
    let mut shape = Shape { at, tight: false, quoted_name, flag, xml, strict: false };
    if xml && view.get(at) == Some(&b'>') {
        shape.at = at + 1;
        return Some(shape);
    }
    let op = blanks(view, at);
    let next = |at: usize| view.get(at).copied().unwrap_or(b'\n');
    shape.at = match (next(op), next(op + 1)) {
        (b'=', b'=') => {
            shape.strict = true;
            op + 2 + usize::from(next(op + 2) == b'=')
        }
        (b'=', b'>') | (b':', b'=') => op + 2,
        (b'=', b'~') | (b':', b':') => return None,
        (b'=', _) => {
            shape.tight = op == at && !matches!(next(op + 1), b' ' | b'\t');
            op + 1
        }
        (b':', _) => typed(view, op + 1).unwrap_or(op + 1),
        // A flag and its value, alone or as elements of a list.
        (b',', _) if quoted_name && (flag || (start >= 2 && view[start - 2] == b'(')) => {
            shape.flag = true;
            shape.strict = true;
            op + 1
        }
        _ if flag && op > at => op,
        // `<add key="password" value="…">`
        (b'v', b'a') if quoted_name && view[op..].starts_with(b"value=") => op + 6,
        _ => return None,
    };
    shape.at = blanks(view, shape.at);
    Some(shape)
}

/// `password: str = "…"`: where the value begins.
fn typed(view: &[u8], at: usize) -> Option<usize> {
    let from = blanks(view, at);
    let rest = &view[from..view.len().min(from + 40)];
    if !rest.first()?.is_ascii_alphabetic() && rest[0] != b'&' {
        return None;
    }
    let len =
        rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_<>&'[]|?. ".contains(b)).count();
    (rest.get(len) == Some(&b'=') && rest.get(len + 1) != Some(&b'=')).then_some(from + len + 1)
}

/// Start, end, and whether it is in quotes.
fn value(view: &[u8], shape: &Shape) -> Option<(usize, usize, bool)> {
    let mut at = shape.at;
    // Python's b"…", C#'s @"…".
    if matches!(view.get(at), Some(b'b' | b'r' | b'u' | b'@' | b'L'))
        && matches!(view.get(at + 1), Some(b'"' | b'\''))
    {
        at += 1;
    }
    let rest = &view[at..view.len().min(at + VALUE_MOST)];
    let first = *rest.first()?;
    if matches!(first, b'"' | b'\'' | b'`') {
        let body = &rest[1..];
        let mut len = 0;
        while len < body.len() && body[len] != first && body[len] != b'\n' {
            len += if body[len] == b'\\' && len + 1 < body.len() && body[len + 1] != b'\n' {
                2
            } else {
                1
            };
        }
        let closed = body.get(len) == Some(&first);
        return (closed || len > 0).then_some((at + 1, at + 1 + len.min(body.len()), true));
    }
    if shape.strict {
        return None;
    }
    let stop = |b: &u8| b.is_ascii_whitespace() || b"\"'`<>".contains(b);
    let mut len = rest.iter().position(stop).unwrap_or(rest.len());
    // The next parameter of a query, the next command of a line.
    for i in memchr::memchr_iter(b'&', &rest[..len]) {
        let after = &rest[i + 1..len];
        let word = after.iter().take_while(|b| is_name(**b)).count();
        if after.first() == Some(&b'&') || (word > 0 && after.get(word) == Some(&b'=')) {
            len = i;
            break;
        }
    }
    while len > 0 && b";,)]}&|.:\\".contains(&rest[len - 1]) {
        len -= 1;
    }
    (len > 0).then_some((at, at + len, false))
}

fn plausible(text: &[u8], name: Name, spelled: &str, how: How) -> bool {
    if text.len() < 6
        || is_placeholder(text)
        || is_code(text, how)
        || text.eq_ignore_ascii_case(spelled.as_bytes())
    {
        return false;
    }
    if text.contains(&b' ') {
        let words = text.split(|b| *b == b' ').count();
        let prose = text.iter().any(|b| b"?!.:,()".contains(b)) || text[0].is_ascii_uppercase();
        return spelled == "passphrase"
            && (how.env || how.data)
            && (3..=12).contains(&words)
            && !prose;
    }
    if text.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    match name {
        Name::Weak => looks_random(text) && !is_hash(text),
        Name::Strong if how.env => {
            !is_number(text) && (how.quoted || !is_word(text) || text.len() >= 10)
        }
        Name::Strong if how.quoted || how.xml || how.flag => looks_mixed(text) && !is_path(text),
        Name::Strong => {
            looks_mixed(text)
                && !is_path(text)
                && !is_number(text)
                && text.len() >= 12
                && digits(text) >= 3
        }
        Name::Password if how.env => true,
        Name::Password if how.data && how.quoted => !names_itself(text) && !is_path(text),
        Name::Password if how.quoted || how.xml || how.flag => looks_mixed(text) && !is_path(text),
        Name::Password => {
            !is_number(text)
                && text.len() >= 8
                && looks_mixed(text)
                && digits(text) >= 2
                && !is_path(text)
        }
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().filter(|b| b.is_ascii_digit()).count()
}

/// In decimal or hex, with Rust's and C's suffixes.
fn is_number(text: &[u8]) -> bool {
    let hex = text.starts_with(b"0x") || text.starts_with(b"0X");
    let typed = [&b"_u32"[..], b"u32", b"i32", b"u64", b"i64", b"_u64", b"usize", b"UL", b"L"];
    let text = typed.iter().find_map(|suffix| text.strip_suffix(*suffix)).unwrap_or(text);
    let body = if hex { &text[2.min(text.len())..] } else { text };
    body.iter().all(|b| {
        b"._-+".contains(b) || if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() }
    })
}

/// `SYSCALL_BIT_32`: a constant's name.
fn is_constant(text: &[u8]) -> bool {
    let name = text.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    name && text.contains(&b'_') && digits(text) * 4 < text.len()
}

/// Words joined by marks, perhaps numbered.
fn is_word(text: &[u8]) -> bool {
    let end = text.len() - text.iter().rev().take(2).take_while(|b| b.is_ascii_digit()).count();
    text[..end].iter().all(|b| b.is_ascii_alphabetic() || b"_-./: ".contains(b))
}

fn names_itself(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |word: &[u8]| memchr::memmem::find(&lower, word).is_some();
    is_word(text)
        && [
            &b"pass"[..],
            b"pwd",
            b"secret",
            b"token",
            b"field",
            b"input",
            b"string",
            b"plain",
            b"confirm",
        ]
        .iter()
        .any(|word| has(word))
}

fn is_path(text: &[u8]) -> bool {
    let begins = [&b"/"[..], b"./", b"../", b"~"].iter().any(|mark| text.starts_with(mark));
    (begins && !looks_random(text)) || memchr::memmem::find(text, b"://").is_some()
}

/// Letters and digits, not as in `utf8` or `test-key-1`.
pub fn looks_mixed(text: &[u8]) -> bool {
    let letters = text.iter().any(u8::is_ascii_alphabetic);
    text.len() >= 8
        && letters
        && !is_placeholder(text)
        && ((digits(text) > 0 && !is_word(text))
            || (text.len() >= 20 && changes(text) >= 6 && !is_word_case(text)))
}

/// camelCase and such: every small letter run is a few letters long at least.
fn is_word_case(text: &[u8]) -> bool {
    let runs = text.split(|b| !b.is_ascii_lowercase()).filter(|run| !run.is_empty());
    let (count, total) = runs.fold((0, 0), |(count, total), run| (count + 1, total + run.len()));
    total * 10 >= count * 28
}

/// How often the sort of letter changes.
fn changes(text: &[u8]) -> usize {
    let sort = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    text.windows(2).filter(|pair| sort(pair[0]) != sort(pair[1])).count()
}

/// Long, of many different letters, digits among them, not made of words.
pub fn looks_random(text: &[u8]) -> bool {
    text.len() >= 16
        && digits(text) >= 2
        && text.iter().any(u8::is_ascii_alphabetic)
        && changes(text) * 6 >= text.len()
        && entropy_millibits(text) >= 3000
}

/// Shannon's entropy of the bytes, per byte.
fn entropy_millibits(text: &[u8]) -> u32 {
    let mut counts = [0u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let total = text.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|n| **n > 0)
        .map(|n| f64::from(*n) / total)
        .map(|p| -p * p.log2())
        .sum();
    (bits * 1000.0) as u32
}

/// The usual lengths of hex, and UUIDs: ids and checksums of public things.
pub fn is_hash(text: &[u8]) -> bool {
    let text = text.rsplit(|b| *b == b':').next().unwrap_or(text);
    let hex = text.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    let prefixed = [&b"sha1-"[..], b"sha256-", b"sha384-", b"sha512-", b"h1:", b"md5-", b"sha256:"];
    hex || prefixed.iter().any(|prefix| text.starts_with(prefix))
}

/// A stand-in for a value.
pub fn is_placeholder(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let filler = |b: &u8| b"x*._-0?#".contains(b);
    if lower.iter().filter(|b| !filler(b)).count() < 3
        || lower.windows(2).all(|pair| pair[0] == pair[1])
    {
        return true;
    }
    if matches!(lower[0], b'$' | b'<' | b'{' | b'[' | b'(')
        || lower.starts_with(b"%(")
        || lower.starts_with(b"%{")
    {
        return true;
    }
    if lower[0] == b'%' && lower.ends_with(b"%") {
        return true;
    }
    const WHOLE: [&str; 23] = [
        "changeme",
        "change-me",
        "change_me",
        "changeit",
        "password",
        "passwd",
        "secret",
        "undefined",
        "required",
        "optional",
        "redacted",
        "[redacted]",
        "hidden",
        "removed",
        "string",
        "boolean",
        "disabled",
        "enabled",
        "default",
        "unknown",
        "nullptr",
        "self.password",
        "example",
    ];
    const WITHIN: [&str; 12] = [
        "your-",
        "your_",
        "yourpass",
        "yourtoken",
        "yoursecret",
        "yourapi",
        "xxxx",
        "****",
        "placeholder",
        "insert-",
        "insert_",
        "replace_",
    ];
    let has = |word: &str| memchr::memmem::find(&lower, word.as_bytes()).is_some();
    WHOLE.iter().any(|word| word.as_bytes() == lower)
        || WITHIN.iter().any(|word| has(word))
        || has("redacted:")
}

/// An expression that yields the value, a pattern for one, or its type.
fn is_code(text: &[u8], how: How) -> bool {
    let has = |part: &str| memchr::memmem::find(text, part.as_bytes()).is_some();
    if has("${")
        || has("{{")
        || has("$(")
        || has("%s")
        || has("{}")
        || has("%d")
        || has("#{")
        || has("\\d")
        || has("\\w")
    {
        return true;
    }
    let braces =
        text.iter().position(|b| *b == b'{').is_some_and(|open| text[open..].contains(&b'}'));
    if how.quoted {
        return braces
            || has("[^")
            || has("\\n")
            || has("<<")
            || (has("[a-z") || has("[A-Z") || has("[0-9"));
    }
    const CALLS: [&str; 9] = [
        "os.environ",
        "process.env",
        "getenv",
        "env!",
        "env(",
        "env[",
        "import.meta",
        "secrets.",
        "::",
    ];
    if CALLS.iter().any(|call| has(call)) {
        return true;
    }
    if how.env {
        // `TOKEN=make_token()`; but a password may well have brackets in it.
        let open = text.iter().position(|b| *b == b'(');
        return open.is_some_and(|open| open > 2 && is_word(&text[..open]));
    }
    let marked = text.iter().any(|b| b"()[]{}$|\\".contains(b));
    let dereferenced = matches!(text[0], b'&' | b'*') || (text[0] == b'-' && text.len() < 12);
    braces || marked || dereferenced || is_member(text) || is_constant(text)
}

/// `self.token`, `user->password`, `Base64Url`
fn is_member(text: &[u8]) -> bool {
    let parts: Vec<_> = text.split(|b| b".>?!".contains(b)).collect();
    parts.len() > 1
        && parts.iter().all(|part| {
            part.first().is_none_or(|b| b.is_ascii_alphabetic() || *b == b'_')
                && part.iter().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(b))
                && part.split(|b| !b.is_ascii_digit()).filter(|run| !run.is_empty()).count() <= 1
        })
}

/// The password, or the lone token, of an address whose `://` is at `at`.
pub fn in_address(view: &[u8], at: usize) -> Option<(&'static str, usize, usize)> {
    let scheme = at.checked_sub(1).is_some_and(|before| view[before].is_ascii_alphanumeric());
    let start = at + 3;
    let rest = &view[start.min(view.len())..view.len().min(start + 512)];
    let stop = |b: &u8| b.is_ascii_whitespace() || b"/?#\"'<>`\\,".contains(b);
    let authority = &rest[..rest.iter().position(stop).unwrap_or(rest.len())];
    let host = authority.iter().rposition(|b| *b == b'@')?;
    let known =
        authority.get(host + 1).is_some_and(|b| b.is_ascii_alphanumeric() || b"[_{$".contains(b));
    if !scheme || !known {
        return None;
    }
    let login = &authority[..host];
    let Some(colon) = login.iter().position(|b| *b == b':') else {
        let token = login.len() >= 20 && looks_random(login) && !login.contains(&b'.');
        return token.then_some(("url-token", start, start + host));
    };
    let (user, password) = (&login[..colon], &login[colon + 1..]);
    let oauth = [&b"x-oauth-basic"[..], b"x-access-token", b""].contains(&password);
    if oauth {
        return (user.len() >= 20 && looks_random(user)).then_some((
            "url-token",
            start,
            start + colon,
        ));
    }
    const USUAL: [&str; 13] = [
        "pass",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "pswd",
        "passw0rd",
        "bar",
        "foo",
        "pass_word",
        "p",
    ];
    let usual = USUAL.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    let odd = password.len() < 3
        || is_placeholder(password)
        || is_code(password, QUOTED)
        || password == user;
    (!usual && !odd).then_some(("url-password", start + colon + 1, start + host))
}

/// Whether a header of cookies carries one that looks random.
pub fn has_session(text: &[u8]) -> bool {
    text.split(|b| b"; ".contains(b)).any(|pair| {
        let value = pair.iter().position(|b| *b == b'=').map(|at| &pair[at + 1..]);
        value.is_some_and(|value| value.len() >= 12 && looks_mixed(value) && digits(value) >= 2)
    })
}
