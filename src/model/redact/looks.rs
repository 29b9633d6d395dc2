//! What a text looks like: a word, a number, a path, a hash, or drawn at random.

use super::placeholder::is_placeholder;

pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

pub fn digits(text: &[u8]) -> usize {
    text.iter().filter(|b| b.is_ascii_digit()).count()
}

/// In decimal or hex, with Rust's and C's suffixes.
pub fn is_number(text: &[u8]) -> bool {
    let hex = text.starts_with(b"0x") || text.starts_with(b"0X");
    let typed = [&b"_u32"[..], b"u32", b"i32", b"u64", b"i64", b"_u64", b"usize", b"UL", b"L"];
    let text = typed.iter().find_map(|suffix| text.strip_suffix(*suffix)).unwrap_or(text);
    let body = if hex { &text[2.min(text.len())..] } else { text };
    body.iter().all(|b| {
        b"._-+".contains(b) || if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() }
    })
}

/// Words joined by marks, perhaps numbered.
pub fn is_word(text: &[u8]) -> bool {
    let end = text.len() - text.iter().rev().take(2).take_while(|b| b.is_ascii_digit()).count();
    text[..end].iter().all(|b| b.is_ascii_alphabetic() || b"_-./: ".contains(b))
}

pub fn names_itself(text: &[u8]) -> bool {
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

pub fn is_path(text: &[u8]) -> bool {
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

/// Whether a header of cookies carries one that looks random.
pub fn has_session(text: &[u8]) -> bool {
    text.split(|b| b"; ".contains(b)).any(|pair| {
        let value = pair.iter().position(|b| *b == b'=').map(|at| &pair[at + 1..]);
        value.is_some_and(|value| value.len() >= 12 && looks_mixed(value) && digits(value) >= 2)
    })
}
