//! Takes secrets out of text before it is stored or shown.
//!
//! The text is read up to four times: as it stands, with backslash escapes undone (a transcript
//! is JSON, often JSON in JSON), without what is not seen (colours, zero-width characters), and
//! with the words at line ends put together (what a terminal or a diff broke in two). One automaton
//! looks for the words of the table; a row's pattern is compiled and run only where its word
//! stands. Every pattern is bounded, so the time is linear in the text.
//!
//! Redacting twice changes nothing more.

mod address;
mod assigned;
mod code;
mod looks;
mod pem;
mod placeholder;
mod rules;
#[cfg(test)]
#[expect(clippy::print_stdout, reason = "recall is a number to be seen")]
mod tests;
mod view;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::bytes::{Regex, RegexBuilder};
use rules::{Form, Gate, KINDS_BY_CODE, NAMES, Prefix, RULES};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};
use view::View;

/// What was taken out: kind → count.
pub type Redactions = BTreeMap<String, u32>;

/// A text without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    pub text: String,
    pub found: Redactions,
}

/// Where a secret stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub kind: &'static str,
    pub start: usize,
    pub end: usize,
}

/// Puts `[redacted:KIND]` in the place of every secret.
pub fn redact(text: &str) -> Redacted {
    let mut out = Redacted { text: text.to_owned(), found: Redactions::new() };
    // What is taken out changes its neighbourhood, so look again until nothing is found. Each
    // round takes out bytes that are in no mark, so there is a last one.
    loop {
        let hits = find(&out.text);
        if hits.is_empty() {
            return out;
        }
        let mut next = String::with_capacity(out.text.len());
        let mut done = 0;
        for hit in hits {
            next.push_str(&out.text[done..hit.start]);
            next.push_str(MARK);
            next.push_str(hit.kind);
            next.push(']');
            done = hit.end;
            *out.found.entry(hit.kind.to_owned()).or_default() += 1;
        }
        next.push_str(&out.text[done..]);
        out.text = next;
    }
}

/// The secrets in `text`, sorted, none overlapping another.
pub fn find(text: &str) -> Vec<Hit> {
    let mut hits = scan(text.as_bytes());
    for hit in &mut hits {
        while !text.is_char_boundary(hit.start) {
            hit.start -= 1;
        }
        while !text.is_char_boundary(hit.end) {
            hit.end += 1;
        }
    }
    hits
}

/// The kind and the line (from 1) of each secret in a file. Nothing in a binary file: one with a
/// NUL in its first 8000 bytes, as git sees it.
pub fn find_in_bytes(bytes: &[u8]) -> Vec<(&'static str, usize)> {
    if bytes[..bytes.len().min(8000)].contains(&0) {
        return vec![];
    }
    let (mut line, mut done) = (1, 0);
    let numbered = scan(bytes).into_iter().map(|hit| {
        line += memchr::memchr_iter(b'\n', &bytes[done..hit.start]).count();
        done = hit.start;
        (hit.kind, line)
    });
    numbered.collect()
}

/// Every kind there is.
pub fn kinds() -> BTreeSet<&'static str> {
    let rows = RULES.iter().map(|rule| rule.kind);
    rows.chain(NAMES.iter().map(|name| name.1)).chain(KINDS_BY_CODE.iter().copied()).collect()
}

const MARK: &str = "[redacted:";

/// What a word of the automaton stands for.
#[derive(Clone, Copy)]
enum Word {
    Rule(usize),
    Name(usize),
    Address,
    Armour,
    Putty,
}

/// Every word, and what it stands for at the same index.
static WORDS: LazyLock<(Vec<&str>, Vec<Word>)> = LazyLock::new(|| {
    let mut spelled = vec!["://", "PRIVATE KEY", "Private-Lines: "];
    let mut meanings = vec![Word::Address, Word::Armour, Word::Putty];
    for (index, rule) in RULES.iter().enumerate() {
        spelled.extend(rule.words);
        meanings.extend(rule.words.iter().map(|_| Word::Rule(index)));
    }
    for (index, name) in NAMES.iter().enumerate() {
        spelled.push(name.0);
        meanings.push(Word::Name(index));
    }
    (spelled, meanings)
});

fn automaton(kind: AhoCorasickKind) -> AhoCorasick {
    let mut builder = AhoCorasickBuilder::new();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::Standard).kind(Some(kind));
    builder.build(&WORDS.0).expect("a few hundred short words")
}

/// Quick to build (about 1 ms): a hook has no more time.
static FINDER: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(AhoCorasickKind::ContiguousNFA));
/// Takes 4 ms to build and pays from some hundred kilobytes on.
static FINDER_LARGE: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(AhoCorasickKind::DFA));
const LARGE: usize = 512 * 1024;

/// The pattern of row `index`, compiled when its word is first seen.
fn pattern(index: usize) -> &'static Regex {
    static PATTERNS: [OnceLock<Regex>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];
    PATTERNS[index].get_or_init(|| {
        let text = match RULES[index].form {
            Form::Token { pattern, .. } => format!("^(?:{pattern})"),
            // Words are found whatever their case, and so are names.
            Form::Named { pattern } => format!(
                r#"^(?i:{})[A-Za-z0-9_.-]{{0,40}}["'\]]{{0,2}}[ \t]{{0,8}}(?:=>|:=|[=:,])[ \t]{{0,8}}["']?({pattern})"#,
                RULES[index].words.join("|"),
            ),
            Form::Around { pattern, .. } => format!("^(?i){pattern}").replace("^(?i)(?i:", "^(?:(?i)"),
        };
        let mut builder = RegexBuilder::new(&text);
        builder.unicode(false).size_limit(64 << 20).dfa_size_limit(1 << 20);
        builder.build().expect("the table's patterns are constants")
    })
}

/// No secret is longer, but for private keys.
const WINDOW: usize = 24 * 1024;

#[derive(Clone, Copy)]
struct Found {
    hit: Hit,
    /// Lower ones give the name where two overlap.
    rank: usize,
}

const RANK_BLOCK: usize = 0;
const RANK_ROW: usize = 1;
const RANK_ADDRESS: usize = RANK_ROW + RULES.len();
const RANK_NAME: usize = RANK_ADDRESS + 1;

fn scan(raw: &[u8]) -> Vec<Hit> {
    let mut found = vec![];
    let plain = View::plain(raw);
    let add = |found: &mut Vec<Found>, view: &View, kind, rank, start, end| {
        let (start, end) = view.raw(start, end);
        found.push(Found { hit: Hit { kind, start, end }, rank });
    };
    look(&plain, true, &mut |kind, rank, start, end| {
        add(&mut found, &plain, kind, rank, start, end);
    });
    let decoded = View::decoded(raw);
    if let Some(view) = &decoded {
        look(view, true, &mut |kind, rank, start, end| {
            add(&mut found, view, kind, rank, start, end);
        });
    }
    let base = decoded.as_ref().unwrap_or(&plain);
    let bare = View::bare(&base.bytes);
    if let Some(bare) = &bare {
        look(bare, false, &mut |kind, rank, start, end| {
            let (start, end) = bare.raw(start, end);
            add(&mut found, base, kind, rank, start, end);
        });
    }
    let joined = View::joined(bare.as_ref().map_or(&base.bytes, |bare| &bare.bytes));
    look(&joined, false, &mut |kind, rank, start, end| {
        let (start, end) = joined.raw(start, end);
        let (start, end) = bare.as_ref().map_or((start, end), |bare| bare.raw(start, end));
        add(&mut found, base, kind, rank, start, end);
    });
    settle(raw, found)
}

/// Goes over the words in `view`. In a view of joined lines (`all` is false) only tokens count,
/// and only those that a line break ran through.
fn look(view: &View, all: bool, emit: &mut dyn FnMut(&'static str, usize, usize, usize)) {
    let bytes: &[u8] = &view.bytes;
    let finder = if bytes.len() < LARGE { &*FINDER } else { &*FINDER_LARGE };
    let mut seen = [Looked::default(); RULES.len()];
    let mut value = Looked::default();
    for word in finder.find_overlapping_iter(bytes) {
        let at = (word.start(), word.end());
        match WORDS.1[word.pattern().as_usize()] {
            Word::Rule(index) => {
                if !seen[index].admits(at.0) {
                    continue;
                }
                let Some((start, end, secret)) = row(view, index, at, all) else {
                    continue;
                };
                seen[index].looked_to(end);
                if secret {
                    emit(RULES[index].kind, RANK_ROW + index, start, end);
                }
            }
            _ if !all => {}
            Word::Name(index) => {
                let (spelled, kind, name) = NAMES[index];
                if !value.admits(at.0) {
                    continue;
                }
                if let Some(found) = assigned::assigned(bytes, at, name, spelled) {
                    value.looked_to(found.end);
                    if found.secret {
                        emit(kind, RANK_NAME + index, found.start, found.end);
                    }
                }
            }
            Word::Address => {
                if let Some((kind, start, end)) = address::in_address(bytes, at.0) {
                    emit(kind, RANK_ADDRESS, start, end);
                }
            }
            Word::Armour => {
                if let Some((start, end)) = pem::block(bytes, at.0) {
                    emit("private-key", RANK_BLOCK, start, end);
                }
            }
            Word::Putty => {
                if let Some((start, end)) = pem::putty(bytes, at.0) {
                    emit("putty-private-key", RANK_BLOCK, start, end);
                }
            }
        }
    }
}

/// How far a row or a name has looked ahead. Words within that stretch are looked at again only
/// a few times: else a long line of nothing but words would take the square of its length.
#[derive(Clone, Copy, Default)]
struct Looked {
    end: usize,
    again: u32,
}

impl Looked {
    fn admits(&mut self, at: usize) -> bool {
        self.again = if at < self.end { self.again + 1 } else { 0 };
        self.again <= 8
    }

    fn looked_to(&mut self, end: usize) {
        self.end = self.end.max(end);
    }
}

/// Runs row `index` where its word stands: what it matched, and whether that is a secret.
fn row(view: &View, index: usize, word: (usize, usize), all: bool) -> Option<(usize, usize, bool)> {
    let bytes: &[u8] = &view.bytes;
    let rule = &RULES[index];
    let window = |from: usize| &bytes[from..bytes.len().min(from + WINDOW)];
    match rule.form {
        Form::Token { lead, prefix, pattern: text } => {
            let spelled = &bytes[word.0..word.1];
            if !text.starts_with("(?i")
                && !rule.words.iter().any(|known| known.as_bytes() == spelled)
            {
                return None;
            }
            let start = if lead == 0 { word.0 } else { lead_start(bytes, word.0, lead)? };
            if !text.starts_with(r"\.") && !is_edge_before(view, start) {
                return None;
            }
            // A JWT may be long: in `eyJ-eyJ-…` look only once.
            if text.starts_with("eyJ") && start > 0 && b"-_".contains(&bytes[start - 1]) {
                return None;
            }
            let mut end = start + pattern(index).find(window(start))?.end();
            if !all {
                end = trim_joined(view, word.1, start, end)?;
                if pattern(index).find(&bytes[start..end])?.end() != end - start {
                    return None;
                }
            }
            let body = if lead == 0 { &bytes[word.1..end] } else { &bytes[start..end] };
            let sound = match prefix {
                Prefix::Telling => !is_filler(body),
                Prefix::Loose => looks::looks_mixed(body) && body.iter().any(u8::is_ascii_digit),
            };
            Some((start, end, sound && is_edge_after(view, end)))
        }
        Form::Named { .. } => {
            if word.0 > 0
                && bytes[word.0 - 1].is_ascii_lowercase()
                && bytes[word.0].is_ascii_lowercase()
            {
                return None;
            }
            let group = pattern(index).captures(window(word.0))?.get(1)?;
            let (start, end) = (word.0 + group.start(), word.0 + group.end());
            let joined = all || view.joins.iter().any(|join| (start + 1..end).contains(join));
            Some((start, end, joined && is_edge_after(view, end) && !is_filler(group.as_bytes())))
        }
        Form::Around { .. } if !all => None,
        Form::Around { gate, .. } => {
            if word.0 > 0
                && bytes[word.0].is_ascii_alphabetic()
                && bytes[word.0 - 1].is_ascii_alphabetic()
            {
                return None;
            }
            let window = &bytes[word.0..bytes.len().min(word.0 + 4096 + 64)];
            let group = pattern(index).captures(window)?.get(1)?;
            let text = group.as_bytes();
            // A call: `authorization = base64.decode(…)`.
            let call = window.get(group.end()) == Some(&b'(');
            let sound = match gate {
                _ if call => false,
                Gate::Password => !placeholder::is_placeholder(text) && looks::looks_mixed(text),
                Gate::Mixed => {
                    looks::looks_mixed(text)
                        && text.iter().filter(|b| b.is_ascii_digit()).count() >= 2
                }
                Gate::Basic => is_basic(text),
                Gate::Cookies => looks::has_session(text),
            };
            Some((word.0 + group.start(), word.0 + group.end(), sound))
        }
    }
}

/// Where the token begins that has its word up to `lead` bytes in.
fn lead_start(bytes: &[u8], word: usize, lead: usize) -> Option<usize> {
    let body = |b: &&u8| b.is_ascii_alphanumeric() || b"_-~.".contains(b);
    let len = bytes[..word].iter().rev().take(lead).take_while(body).count();
    (len > 0).then(|| word - len)
}

fn is_edge_before(view: &View, start: usize) -> bool {
    let bytes = &view.bytes;
    if start == 0 || !bytes[start - 1].is_ascii_alphanumeric() || view.is_join(start) {
        return true;
    }
    // `%3D` and the like in an address.
    start >= 3
        && bytes[start - 3] == b'%'
        && bytes[start - 2].is_ascii_hexdigit()
        && bytes[start - 1].is_ascii_hexdigit()
}

fn is_edge_after(view: &View, end: usize) -> bool {
    view.is_join(end) || !view.bytes.get(end).is_some_and(u8::is_ascii_alphanumeric)
}

/// `xxxx…`, `....`, `****`: nobody's key.
fn is_filler(body: &[u8]) -> bool {
    body.iter().filter(|b| !b"xX*._-0=".contains(b)).count() < 4
}

/// How much of `start..end` is one token, where line breaks ran through it: a last piece that
/// looks like a word of the next line is not.
fn trim_joined(view: &View, word_end: usize, start: usize, mut end: usize) -> Option<usize> {
    let first = view.joins.partition_point(|join| *join <= start);
    let mut last = view.joins.partition_point(|join| *join < end);
    while last > first {
        let piece = &view.bytes[view.joins[last - 1]..end];
        let whole =
            view.bytes.get(end).is_none_or(|b| !b.is_ascii_alphanumeric()) || view.is_join(end);
        let digit = piece.iter().any(u8::is_ascii_digit);
        let cased = piece.iter().skip(1).any(u8::is_ascii_uppercase)
            && piece.iter().any(u8::is_ascii_lowercase);
        let starts_anew = RULES_BEGIN.iter().any(|prefix| piece.starts_with(prefix.as_bytes()));
        if whole && !starts_anew && (digit || cased || piece.iter().all(u8::is_ascii_uppercase)) {
            return Some(end);
        }
        last -= 1;
        end = view.joins[last];
        if end <= word_end {
            return None;
        }
    }
    None
}

/// A line that begins like this has a token of its own.
const RULES_BEGIN: [&str; 10] =
    ["sk-", "sk_", "ghp_", "gho_", "ghs_", "AKIA", "ASIA", "xox", "eyJ", "glpat-"];

/// RFC 7617: base64 of `user:password`.
fn is_basic(text: &[u8]) -> bool {
    let decoded = STANDARD.decode(text).ok();
    decoded.is_some_and(|login| {
        let colon = login.iter().position(|b| *b == b':');
        let printed = login.iter().all(|b| *b >= b' ' && *b != 0x7f);
        printed && colon.is_some_and(|at| login.len() > at + 1)
    })
}

/// Sorts, merges what overlaps, and leaves marks of earlier rounds alone.
fn settle(raw: &[u8], mut found: Vec<Found>) -> Vec<Hit> {
    if found.is_empty() {
        return vec![];
    }
    let marks = marks(raw);
    found.retain_mut(|found| {
        let hit = &mut found.hit;
        let first = marks.partition_point(|mark| mark.1 <= hit.start);
        let touching = marks[first..].iter().take_while(|mark| mark.0 < hit.end);
        let (mut start, mut end) = (hit.start, hit.end);
        for mark in touching {
            if mark.0 <= hit.start && hit.end <= mark.1 {
                return false;
            }
            start = start.min(mark.0);
            end = end.max(mark.1);
        }
        (hit.start, hit.end) = (start, end);
        let taken: usize = marks
            .iter()
            .filter(|mark| start <= mark.0 && mark.1 <= end)
            .map(|mark| mark.1 - mark.0)
            .sum();
        taken < end - start
    });
    found.sort_by_key(|found| (found.hit.start, found.rank, std::cmp::Reverse(found.hit.end)));
    let mut settled: Vec<Found> = vec![];
    for next in found {
        match settled.last_mut() {
            Some(last) if next.hit.start < last.hit.end => {
                last.hit.end = last.hit.end.max(next.hit.end);
                if next.rank < last.rank {
                    last.rank = next.rank;
                    last.hit.kind = next.hit.kind;
                }
            }
            _ => settled.push(next),
        }
    }
    settled.into_iter().map(|found| found.hit).collect()
}

/// The marks that stand in the text already; only those with a kind of ours.
fn marks(raw: &[u8]) -> Vec<(usize, usize)> {
    let kinds = kinds();
    let mark = |start: usize| {
        let name = &raw[start + MARK.len()..raw.len().min(start + MARK.len() + 64)];
        let len = memchr::memchr(b']', name)?;
        let name = std::str::from_utf8(&name[..len]).ok()?;
        kinds.contains(name).then_some((start, start + MARK.len() + len + 1))
    };
    memchr::memmem::find_iter(raw, MARK).filter_map(mark).collect()
}
