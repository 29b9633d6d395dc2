//! Vectors for reading a contract, in the manner of C2SP's CCTV: `tests/vectors/contract/*.txt`
//! hold a header, an empty line, and the bytes. One failure each; another implementation can use
//! them. They are stable for ever: `UPDATE=1` derives them anew from `valid.txt`, and a change in
//! one that exists is a change of the format.
//!
//! Header: `expect` is the verdict, `signer` the only key that is believed, `signature` the raw
//! SSHSIG in base64, `about` what is wrong. Checked in this order: length, signature and its
//! namespace, signer, JSON of the right shape, canonical form, format word.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use git_relay::model::canon::{self, CanonError};
use git_relay::model::contract::{CONTRACT_FORMAT, CORE_BYTES_MOST, Contract};
use git_relay::model::sign::{self, CONTRACT_NAMESPACE, GIT_NAMESPACE, SigningKey};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

struct Vector {
    expect: String,
    signer: String,
    signature: Vec<u8>,
    about: String,
    bytes: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/contract")
}

impl Vector {
    fn read(file: &[u8]) -> Self {
        let end = file.windows(2).position(|pair| pair == b"\n\n").expect("an empty line");
        let head = std::str::from_utf8(&file[..end]).expect("the header is text");
        let field = |name: &str| {
            let start = format!("{name}: ");
            head.lines().find_map(|line| line.strip_prefix(&start)).expect(name).to_owned()
        };
        Self {
            expect: field("expect"),
            signer: field("signer"),
            signature: BASE64_STANDARD.decode(field("signature")).unwrap(),
            about: field("about"),
            bytes: file[end + 2..].to_vec(),
        }
    }

    fn write(&self) -> Vec<u8> {
        let signature = BASE64_STANDARD.encode(&self.signature);
        let mut file = format!(
            "expect: {}\nabout: {}\nsigner: {}\nsignature: {signature}\n\n",
            self.expect, self.about, self.signer
        )
        .into_bytes();
        file.extend_from_slice(&self.bytes);
        file
    }

    fn verdict(&self) -> &'static str {
        if self.bytes.len() > CORE_BYTES_MOST {
            return "too long";
        }
        let armored = sign::armor(&self.signature);
        let Ok(signer) = sign::verify(&armored, CONTRACT_NAMESPACE, &self.bytes) else {
            return "bad signature";
        };
        if signer.to_openssh_line("") != self.signer {
            return "another key";
        }
        match canon::decode::<Contract>(&self.bytes) {
            Err(CanonError::Unreadable(_)) => "unreadable",
            Err(CanonError::NotCanonical(_)) => "not canonical",
            Err(CanonError::Integer(_)) => "integer too large",
            Err(_) => "not writable",
            Ok(contract) if contract.format != CONTRACT_FORMAT => "unknown format",
            Ok(_) => "valid",
        }
    }
}

/// The key of the vectors, and nobody's: its seed stands here.
fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

fn vector(expect: &str, about: &str, bytes: Vec<u8>) -> Vector {
    let signature = sign::dearmor(&key().sign(CONTRACT_NAMESPACE, &bytes)).unwrap();
    let signer = key().public().to_openssh_line("");
    Vector { expect: expect.into(), about: about.into(), signer, signature, bytes }
}

type Vectors = BTreeMap<&'static str, Vector>;

/// Every vector but `valid`, which they are made from.
fn derived(valid: &[u8]) -> Vectors {
    let mut all = spelt(valid);
    all.extend(shaped(valid));
    all.extend(forged(valid));
    all
}

/// `valid` with the only `old` in it changed.
fn swapped(valid: &[u8], old: &str, new: &str) -> Vec<u8> {
    let text = std::str::from_utf8(valid).unwrap();
    assert_eq!(text.matches(old).count(), 1, "'{old}' does not stand once in valid.txt");
    text.replace(old, new).into_bytes()
}

fn with_goal(valid: &[u8], goal: &str) -> Vec<u8> {
    let old = "\"text\":\"Add a login page\"}";
    swapped(valid, old, &format!("\"text\":\"{goal}\"}}"))
}

fn put(all: &mut Vectors, name: &'static str, expect: &str, about: &str, bytes: Vec<u8>) {
    assert!(all.insert(name, vector(expect, about, bytes)).is_none(), "{name}");
}

fn goal_at(valid: &[u8]) -> usize {
    std::str::from_utf8(valid).unwrap().find("Add a login page").unwrap()
}

/// The same content, spelt otherwise, or not JSON at all.
fn spelt(valid: &[u8]) -> Vectors {
    let swap = |old: &str, new: &str| swapped(valid, old, new);
    let with_goal = |goal: &str| with_goal(valid, goal);
    let mut all = Vectors::new();
    let mut put =
        |name, expect: &str, about: &str, bytes| put(&mut all, name, expect, about, bytes);
    put("valid-composed", "valid", "text is never normalized", with_goal("caf\u{e9}"));
    put("valid-decomposed", "valid", "text is never normalized", with_goal("cafe\u{301}"));
    put("valid-escapes", "valid", "the only escapes", with_goal("\\\"\\\\\\b\\f\\n\\r\\t\\u001b"));
    put("valid-astral", "valid", "no escape beyond ASCII", with_goal("\u{1f511}\u{7f}\u{2028}"));
    put("space", "not canonical", "a space after a colon", swap("\"leg\":2", "\"leg\": 2"));
    put("newline-after", "not canonical", "a newline after the end", [valid, b"\n"].concat());
    put("bytes-after", "unreadable", "something after the end", [valid, b"{}"].concat());
    put("byte-order-mark", "unreadable", "a mark before", [b"\xef\xbb\xbf", valid].concat());
    put("empty", "unreadable", "nothing", Vec::new());
    put("torn", "unreadable", "the last byte is missing", valid[..valid.len() - 1].to_vec());
    put(
        "key-order",
        "not canonical",
        "two keys the wrong way round",
        swap("\"count\":3,\"name\":\"manifest.jsonl\"", "\"name\":\"manifest.jsonl\",\"count\":3"),
    );
    put("solidus", "not canonical", "an escape that is not needed", with_goal("a\\/b"));
    put("letter-escaped", "not canonical", "an escape that is not needed", with_goal("\\u0041dd"));
    put("upper-hex", "not canonical", "hex digits in upper case", with_goal("\\u001B"));
    put("raw-control", "unreadable", "a control character as it is", with_goal("a\u{1}b"));
    put("lone-surrogate", "unreadable", "half a character", with_goal("\\ud800"));
    let at = goal_at(valid);
    let mut bytes = valid.to_vec();
    bytes[at] = 0xff;
    put("not-utf8", "unreadable", "bytes that are no text", bytes);
    all
}

/// Another content, of a shape that no contract has.
fn shaped(valid: &[u8]) -> Vectors {
    let swap = |old: &str, new: &str| swapped(valid, old, new);
    let with_goal = |goal: &str| with_goal(valid, goal);
    let mut all = Vectors::new();
    let mut put =
        |name, expect: &str, about: &str, bytes| put(&mut all, name, expect, about, bytes);
    put("float", "unreadable", "a float", swap("\"leg\":2", "\"leg\":2.0"));
    put("exponent", "unreadable", "an exponent", swap("\"leg\":2", "\"leg\":2e0"));
    put(
        "zero-before",
        "unreadable",
        "a number that begins with 0",
        swap("\"leg\":2", "\"leg\":02"),
    );
    put("negative", "unreadable", "a leg below 0", swap("\"leg\":2", "\"leg\":-2"));
    put("number-as-text", "unreadable", "a number in quotes", swap("\"leg\":2", "\"leg\":\"2\""));
    let large = swap("\"sizeBytes\":12,", "\"sizeBytes\":9007199254740992,");
    put("integer", "integer too large", "2^53 is beyond what every reader holds", large);
    let most = swap("\"sizeBytes\":12,", "\"sizeBytes\":9007199254740991,");
    put("valid-integer", "valid", "2^53-1", most);
    put("field-twice", "unreadable", "a field twice", swap("\"leg\":2", "\"leg\":2,\"leg\":2"));
    put(
        "field-more",
        "unreadable",
        "a field nobody knows",
        swap("\"leg\":2", "\"leg\":2,\"lego\":1"),
    );
    put("field-less", "unreadable", "no leg", swap("\"leg\":2,", ""));
    let inner = swap("\"mode\":\"100644\",", "\"mode\":\"100644\",\"owner\":1,");
    put("field-more-inside", "unreadable", "a field nobody knows, deeper", inner);
    put(
        "null",
        "not canonical",
        "absent is not null",
        swap("\"leg\":2", "\"inProgress\":null,\"leg\":2"),
    );
    let empty = swap("\"snapshotCommit\"", "\"skillsLoaded\":[],\"snapshotCommit\"");
    put("empty-list", "not canonical", "absent is not an empty list", empty);
    put("format", "unknown format", "the next version", swap("contract@v1", "contract@v2"));
    put("word", "unreadable", "a level that is none", swap("\"edit\"", "\"root\""));
    let oid = swap("\"snapshotTree\":\"dddd", "\"snapshotTree\":\"DDDD");
    put("upper-oid", "unreadable", "an object id in upper case", oid);
    let digest = swap("\"parentContract\":\"ffff", "\"parentContract\":\"fff");
    put("short-digest", "unreadable", "a digest that is too short", digest);
    put(
        "session-name",
        "unreadable",
        "a session's name that is a path",
        swap("\"sessionId\":\"", "\"sessionId\":\"../"),
    );
    put(
        "moment",
        "unreadable",
        "a moment that is none",
        swap("\"createdAt\":\"2026-11", "\"createdAt\":\"2026-13"),
    );
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    put("deep", "unreadable", "200 lists in each other", nested.into_bytes());
    put("long", "too long", "more than 16 KiB", with_goal(&"x".repeat(CORE_BYTES_MOST)));
    all
}

/// Bytes and signature that do not belong together.
fn forged(valid: &[u8]) -> Vectors {
    let at = goal_at(valid);
    let swap = |old: &str, new: &str| swapped(valid, old, new);
    let mut all = Vectors::new();
    let mut forge = |name, expect: &str, about: &str, change: &dyn Fn(&mut Vector)| {
        let mut forged = vector(expect, about, valid.to_vec());
        change(&mut forged);
        all.insert(name, forged);
    };
    forge("byte-flipped", "bad signature", "one bit of the bytes", &|v| v.bytes[at] ^= 1);
    forge("leg-changed", "bad signature", "another leg, the old signature", &|v| {
        v.bytes = swap("\"leg\":2", "\"leg\":3");
    });
    forge("signature-flipped", "bad signature", "one bit of the signature", &|v| {
        let last = v.signature.len() - 5;
        v.signature[last] ^= 1;
    });
    forge("signature-torn", "bad signature", "the signature's last byte is missing", &|v| {
        v.signature.pop();
    });
    forge("signature-more", "bad signature", "a byte after the signature", &|v| {
        v.signature.push(0);
    });
    forge("signature-none", "bad signature", "no signature", &|v| v.signature.clear());
    forge("namespace", "bad signature", "signed as a commit is", &|v| {
        v.signature = sign::dearmor(&key().sign(GIT_NAMESPACE, &v.bytes)).unwrap();
    });
    forge("another-key", "another key", "a good signature of somebody else", &|v| {
        let other = SigningKey::from_seed([2; 32]);
        v.signature = sign::dearmor(&other.sign(CONTRACT_NAMESPACE, &v.bytes)).unwrap();
    });
    all
}

#[test]
fn every_vector_gets_its_verdict_and_none_ever_changes() {
    let valid_path = folder().join("valid.txt");
    let valid = Vector::read(&fs::read(&valid_path).unwrap());
    let mut all = derived(&valid.bytes);
    all.insert("valid", vector("valid", &valid.about, valid.bytes));
    if std::env::var_os("UPDATE").is_some() {
        for (name, vector) in &all {
            fs::write(folder().join(format!("{name}.txt")), vector.write()).unwrap();
        }
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        let stored = Vector::read(&bytes);
        assert_eq!(stored.verdict(), stored.expect, "{name}: {}", stored.about);
        let made = all.get(name.as_str()).unwrap_or_else(|| panic!("{name}.txt is nobody's"));
        assert_eq!(bytes, made.write(), "{name}.txt is not what it was: UPDATE=1 rewrites it");
        names.push(name);
    }
    assert_eq!(names.len(), all.len(), "UPDATE=1 writes those that are missing: {names:?}");
}

#[test]
fn no_single_bit_of_a_valid_contract_can_flip() {
    let valid = Vector::read(&fs::read(folder().join("valid.txt")).unwrap());
    for at in 0..valid.bytes.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bytes = valid.bytes.clone();
            bytes[at] ^= bit;
            let signature = valid.signature.clone();
            let (signer, about) = (valid.signer.clone(), String::new());
            let flipped = Vector { expect: String::new(), signer, signature, about, bytes };
            assert_eq!(flipped.verdict(), "bad signature", "bit {bit} of byte {at}");
        }
    }
}
