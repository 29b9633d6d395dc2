//! Signatures, held against the real `ssh-keygen`.

use super::armor::{SIGNATURE_BEGIN, SIGNATURE_BYTES_MOST, SIGNATURE_END};
use super::*;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(super) const MESSAGE: &[u8] = b"{\"leg\":1}";

pub(super) fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

/// Runs the real ssh-keygen in `folder`, away from the user's agent and settings.
fn ssh_keygen(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    fs::write(folder.join("stdin"), input).unwrap();
    Command::new("ssh-keygen")
        .args(arguments)
        .current_dir(folder)
        .env_remove("SSH_AUTH_SOCK")
        .env("TZ", "UTC")
        .stdin(Stdio::from(fs::File::open(folder.join("stdin")).unwrap()))
        .output()
        .expect("these tests need ssh-keygen")
}

/// As [`ssh_keygen`], of which this is what it printed when it went well.
pub(super) fn printed(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
    let output = ssh_keygen(folder, arguments, input);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ssh-keygen {arguments:?}: {talk}");
    String::from_utf8(output.stdout).unwrap()
}

/// The raw signature of [`MESSAGE`] with its fields changed by `change`, signed rightly.
fn forged(change: impl FnOnce(&mut Forged)) -> String {
    let mut fields = Forged {
        magic: SIGNATURE_MAGIC.to_vec(),
        version: 1,
        key: key().public().to_blob(),
        namespace: b"git".to_vec(),
        reserved: Vec::new(),
        hash_name: b"sha512".to_vec(),
        signature: None,
        after: Vec::new(),
    };
    change(&mut fields);
    let hash = match &*fields.hash_name {
        b"sha256" => Sha256::digest(MESSAGE).to_vec(),
        _ => Sha512::digest(MESSAGE).to_vec(),
    };
    let mut signed = SIGNATURE_MAGIC.to_vec();
    for part in [&fields.namespace, &fields.reserved, &fields.hash_name, &hash] {
        put_string(&mut signed, part);
    }
    let signature = fields.signature.unwrap_or_else(|| {
        let mut blob = Vec::new();
        put_string(&mut blob, KEY_TYPE.as_bytes());
        put_string(&mut blob, &key().0.sign(&signed).to_bytes());
        blob
    });
    let mut raw = fields.magic;
    raw.extend_from_slice(&fields.version.to_be_bytes());
    let parts = [&fields.key, &fields.namespace, &fields.reserved, &fields.hash_name, &signature];
    for part in parts {
        put_string(&mut raw, part);
    }
    raw.extend_from_slice(&fields.after);
    armor(&raw)
}

struct Forged {
    magic: Vec<u8>,
    version: u32,
    key: Vec<u8>,
    namespace: Vec<u8>,
    reserved: Vec<u8>,
    hash_name: Vec<u8>,
    signature: Option<Vec<u8>>,
    after: Vec<u8>,
}

pub(super) fn blob(kind: &str, bytes: &[u8]) -> Vec<u8> {
    let mut blob = Vec::new();
    put_string(&mut blob, kind.as_bytes());
    put_string(&mut blob, bytes);
    blob
}

/// Checked once with OpenSSH 9.2 and fixed: a change in a dependency would show here.
#[test]
fn a_fixed_vector() {
    let pem = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACDqSmxj4pxSCr71UHsTLsX5lUd2rr6+e5JCHuppFEbSLAAAAIgAAAABAAAA
AQAAAAtzc2gtZWQyNTUxOQAAACDqSmxj4pxSCr71UHsTLsX5lUd2rr6+e5JCHuppFEbSLA
AAAEAHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB+pKbGPinFIKvvVQexMuxfmV
R3auvr57kkIe6mkURtIsAAAAAXYBAgME
-----END OPENSSH PRIVATE KEY-----
";
    let line = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs v";
    let armored = "\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg6kpsY+KcUgq+9VB7Ey7F+ZVHdq
6+vnuSQh7qaRRG0iwAAAAVZ2l0LXJlbGF5LWNvbnRyYWN0QHYxAAAAAAAAAAZzaGE1MTIA
AABTAAAAC3NzaC1lZDI1NTE5AAAAQIsJ6hEqViDMQV1BGqzrd8PMxDBIi/BHhQ9vEzikmG
B2y0B9HtZyrsfs/RMHiZjrQtNDvhWAXHVkAVQdDAXa0g4=
-----END SSH SIGNATURE-----
";
    assert_eq!(key().to_openssh_pem("v", 1), pem);
    assert_eq!(key().public().to_openssh_line("v"), line);
    assert_eq!(key().sign(CONTRACT_NAMESPACE, MESSAGE), armored);
}

#[test]
fn a_signature_holds_for_its_message_namespace_and_key_only() {
    let armored = key().sign(CONTRACT_NAMESPACE, MESSAGE);
    assert_eq!(verify(&armored, CONTRACT_NAMESPACE, MESSAGE), Ok(key().public()));
    assert_eq!(verify(&armored, CONTRACT_NAMESPACE, b""), Err(SignError::BadSignature));
    assert_eq!(
        verify(&armored, GIT_NAMESPACE, MESSAGE),
        Err(SignError::WrongNamespace(CONTRACT_NAMESPACE.to_owned())),
    );
    let other = SigningKey::from_seed([8; 32]).public().to_blob();
    let swapped = forged(|fields| fields.key = other);
    assert_eq!(verify(&swapped, "git", MESSAGE), Err(SignError::BadSignature));
    assert!(verify(&key().sign("", MESSAGE), "", MESSAGE).is_err());
}

#[test]
fn both_hashes_hold_and_every_other_form_is_refused() {
    let result = |change: fn(&mut Forged)| verify(&forged(change), "git", MESSAGE);
    assert_eq!(forged(|_| ()), key().sign("git", MESSAGE));
    assert!(result(|fields| fields.hash_name = b"sha256".to_vec()).is_ok());
    let malformed: [fn(&mut Forged); 13] = [
        |fields| fields.magic = b"SSHSIH".to_vec(),
        |fields| fields.version = 0,
        |fields| fields.version = 2,
        |fields| fields.reserved = b"x".to_vec(),
        |fields| fields.hash_name = b"sha1".to_vec(),
        |fields| fields.hash_name = b"SHA512".to_vec(),
        |fields| fields.namespace = b"\xff".to_vec(),
        |fields| fields.namespace = Vec::new(),
        |fields| fields.after = b"\0".to_vec(),
        |fields| fields.key.push(0),
        |fields| fields.key = blob(KEY_TYPE, &[0; 31]),
        |fields| fields.signature = Some(blob(KEY_TYPE, &[0; 63])),
        // The neutral element, which verifies a zero signature of anything under loose rules.
        |fields| {
            let mut one = [0; 32];
            one[0] = 1;
            fields.key = blob(KEY_TYPE, &one);
            fields.signature = Some(blob(KEY_TYPE, &[one, [0; 32]].concat()));
        },
    ];
    for change in malformed {
        let result = result(change);
        assert!(matches!(result, Err(Malformed(_))), "{result:?}");
    }
    let unsupported = Err(SignError::UnsupportedKey("ssh-rsa".to_owned()));
    assert_eq!(result(|fields| fields.key = blob("ssh-rsa", &[3; 32])), unsupported);
    assert_eq!(result(|fields| fields.signature = Some(blob("ssh-rsa", &[0; 64]))), unsupported);
    let zero = result(|fields| fields.signature = Some(blob(KEY_TYPE, &[0; 64])));
    assert_eq!(zero, Err(SignError::BadSignature));
}

#[test]
fn the_armor_has_one_spelling() {
    let armored = key().sign("git", MESSAGE);
    assert_eq!(armor(&dearmor(&armored).unwrap()), armored);
    for other in [
        armored.trim_end().to_owned(),
        format!("{armored}\n"),
        format!("\n{armored}"),
        armored.replace('\n', "\r\n"),
        armored.replacen("-\n", "-\n\n", 1),
        armored.replacen("U1NI", "U1NI\n", 1),
        armored.replacen("U1NI", "U1NI ", 1),
        armored.replacen("SSH SIGNATURE", "PGP SIGNATURE", 1),
        format!("{SIGNATURE_BEGIN}{SIGNATURE_END}{armored}"),
        format!("{armored}{armored}"),
        String::new(),
        SIGNATURE_BEGIN.to_owned(),
        armor(&vec![0; SIGNATURE_BYTES_MOST]),
    ] {
        assert!(matches!(verify(&other, "git", MESSAGE), Err(Malformed(_))), "{other}");
    }
    assert_eq!(dearmor(&armor(b"")), Ok(Vec::new()));
}

#[test]
fn any_changed_bit_is_refused() {
    let armored = key().sign("git", MESSAGE);
    let raw = dearmor(&armored).unwrap();
    for bit in 0..raw.len() * 8 {
        let mut changed = raw.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&armor(&changed), "git", MESSAGE).is_err(), "bit {bit}");
    }
    for length in 0..raw.len() {
        assert!(verify(&armor(&raw[..length]), "git", MESSAGE).is_err(), "length {length}");
    }
}

/// Both say yes to the true signature and no to each spoilt one.
#[test]
fn ssh_keygen_agrees_on_what_holds() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut spoilt = dearmor(&key().sign("git", MESSAGE)).unwrap();
    *spoilt.last_mut().unwrap() ^= 1;
    let cases = [
        (key().sign("git", MESSAGE), "git", MESSAGE, true),
        (key().sign("git", MESSAGE), "file", MESSAGE, false),
        (key().sign("git", MESSAGE), "git", b"{\"leg\":2}", false),
        (armor(&spoilt), "git", MESSAGE, false),
        (forged(|fields| fields.hash_name = b"sha256".to_vec()), "git", MESSAGE, true),
        (forged(|fields| fields.version = 2), "git", MESSAGE, false),
        (forged(|fields| fields.hash_name = b"sha1".to_vec()), "git", MESSAGE, false),
        (forged(|fields| fields.after = b"x".to_vec()), "git", MESSAGE, false),
        (forged(|fields| fields.key.push(0)), "git", MESSAGE, false),
    ];
    for (at, (armored, namespace, message, holds)) in cases.into_iter().enumerate() {
        fs::write(folder.join("sig"), &armored).unwrap();
        let arguments = ["-Y", "check-novalidate", "-s", "sig", "-n", namespace];
        let theirs = ssh_keygen(folder, &arguments, message).status.success();
        assert_eq!(theirs, holds, "ssh-keygen on case {at}");
        assert_eq!(verify(&armored, namespace, message).is_ok(), holds, "case {at}");
    }
}

proptest! {
    #[test]
    fn any_message_round_trips(
        seed: [u8; 32], namespace in "\\PC{1,40}", message: Vec<u8>, other: Vec<u8>,
    ) {
        let key = SigningKey::from_seed(seed);
        let armored = key.sign(&namespace, &message);
        prop_assert_eq!(verify(&armored, &namespace, &message), Ok(key.public()));
        if other != message {
            prop_assert!(verify(&armored, &namespace, &other).is_err());
        }
    }

    #[test]
    fn random_input_is_refused_without_a_panic(bytes: Vec<u8>, text: String) {
        prop_assert!(verify(&armor(&bytes), "git", MESSAGE).is_err());
        let wrapped = [SIGNATURE_MAGIC, &1_u32.to_be_bytes(), &bytes].concat();
        prop_assert!(verify(&armor(&wrapped), "git", MESSAGE).is_err());
        prop_assert!(verify(&text, "git", MESSAGE).is_err());
    }

    #[test]
    fn armor_and_dearmor_are_inverse(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(dearmor(&armor(&bytes)), Ok(bytes));
    }
}
