//! Keys, held against the real `ssh-keygen`.

use super::super::tests::{MESSAGE, blob, key, printed};
use super::super::{CONTRACT_NAMESPACE, verify};
use super::*;
use proptest::prelude::*;
use std::fs;

/// A folder only we can read, else ssh-keygen refuses the key in it.
fn folder_with(pem: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(folder.path().join("key")).unwrap();
    std::io::Write::write_all(&mut file, pem.as_bytes()).unwrap();
    folder
}

/// RFC 8032, 7.1, test 1: the key of the seed.
#[test]
fn the_rfcs_key() {
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let bytes = |hex: &str| -> [u8; 32] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
    };
    assert_eq!(SigningKey::from_seed(bytes(seed)).public().0, bytes(public));
}

#[test]
fn a_public_line_is_read_as_it_is_written() {
    let public = key().public();
    assert_eq!(PublicKey::from_openssh_line(&public.to_openssh_line("a b")), Ok(public.clone()));
    let bare = public.to_openssh_line("");
    assert_eq!(bare.split(' ').count(), 2);
    assert_eq!(PublicKey::from_openssh_line(&format!(" {bare}\r\n")), Ok(public.clone()));
    assert_eq!(public.to_openssh_line("a\nb\u{1b}[2J"), format!("{bare} a b [2J"));
    for other in ["", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 AAAA", "ssh-ed25519 !", "#"] {
        assert!(PublicKey::from_openssh_line(other).is_err(), "{other}");
    }
    assert_eq!(
        PublicKey::from_openssh_line("ssh-rsa AAAAB3NzaC1yc2E= x"),
        Err(SignError::UnsupportedKey("ssh-rsa".to_owned())),
    );
    assert!(PublicKey::from_openssh_line(&format!("{bare}\n{bare}")).is_err());
    // 32 bytes that are no point of the curve.
    let mut bytes = [0xff; 32];
    bytes[0] = 2;
    let off = STANDARD.encode(blob(KEY_TYPE, &bytes));
    assert!(PublicKey::from_openssh_line(&format!("ssh-ed25519 {off}")).is_err());
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?} {:#?}", key(), Some(key()));
    assert!(shown.starts_with("SigningKey(SHA256:"), "{shown}");
    let secret = STANDARD.encode([7; 32]);
    assert!(!shown.contains("7, 7") && !shown.contains("0707") && !shown.contains(&secret[..8]));
}

#[test]
fn a_private_key_is_read_as_it_is_written() {
    for comment in ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "relay@höst 1"] {
        let pem = key().to_openssh_pem(comment, 0x0102_0304);
        let read = SigningKey::from_openssh_pem(&pem).unwrap();
        assert_eq!(read.0.to_bytes(), [7; 32], "{comment}");
    }
    let pem = key().to_openssh_pem("x", 1);
    assert!(SigningKey::from_openssh_pem(&pem.replace('\n', "\r\n")).is_ok());
    assert!(SigningKey::from_openssh_pem(&pem.replace("KEY-----\n", "KEY-----\n\n")).is_ok());
    for other in [
        "",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        &pem[..pem.len() - 60],
        &pem.replacen("b3Bl", "B3Bl", 1),
        &pem.replacen("b3Bl", "b3B!", 1),
        &format!("{KEY_BEGIN}{}{KEY_END}", "A".repeat(KEY_BYTES_MOST)),
    ] {
        assert!(matches!(SigningKey::from_openssh_pem(other), Err(Malformed(_))), "{other}");
    }
}

/// Every bit counts but those of the comment.
#[test]
fn a_private_key_with_a_changed_bit_is_refused_or_the_same_key() {
    let pem = key().to_openssh_pem("x", 1);
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let raw = STANDARD.decode(body).unwrap();
    let mut same = 0;
    for bit in 0..raw.len() * 8 {
        let mut changed = raw.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let text = STANDARD.encode(changed);
        let pem = fold(KEY_BEGIN, text.as_bytes(), KEY_END);
        if let Ok(read) = SigningKey::from_openssh_pem(&pem) {
            assert_eq!(read.public(), key().public(), "bit {bit}");
            same += 1;
        }
    }
    // The comment has eight; a ninth makes it five bytes long, and takes the padding in.
    assert_eq!(same, 9);
}

#[test]
fn ssh_keygen_reads_our_keys_and_signs_the_same() {
    let public = key().public();
    let folder = folder_with(&key().to_openssh_pem("relay@host", 42));
    let folder = folder.path();
    let line = printed(folder, &["-y", "-f", "key"], b"");
    assert_eq!(line.trim_end(), public.to_openssh_line("relay@host"));
    fs::write(folder.join("key.pub"), line).unwrap();
    let listed = printed(folder, &["-l", "-f", "key.pub"], b"");
    assert_eq!(listed, format!("256 {} relay@host (ED25519)\n", public.fingerprint()));
    let long = "x".repeat(5000);
    for (namespace, message) in
        [("git", MESSAGE), (CONTRACT_NAMESPACE, b""), ("file", long.as_bytes())]
    {
        let theirs = printed(folder, &["-Y", "sign", "-f", "key", "-n", namespace], message);
        assert_eq!(theirs, key().sign(namespace, message));
    }
    let short = ["-Y", "sign", "-f", "key", "-n", "git", "-O", "hashalg=sha256"];
    assert_eq!(verify(&printed(folder, &short, MESSAGE), "git", MESSAGE), Ok(public));
}

#[test]
fn we_read_the_keys_of_ssh_keygen() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let make = |name: &str, kind: &str, passphrase: &str| {
        let arguments = ["-q", "-t", kind, "-N", passphrase, "-C", "a comment", "-f", name];
        printed(folder, &arguments, b"");
        let read = |name: String| fs::read_to_string(folder.join(name)).unwrap();
        (read(name.to_owned()), read(format!("{name}.pub")))
    };
    let (pem, line) = make("plain", "ed25519", "");
    let read = SigningKey::from_openssh_pem(&pem).unwrap();
    assert_eq!(read.public().to_openssh_line("a comment"), line.trim_end());
    // With their check number our file is theirs to the byte. It stands 8 bytes into the
    // private section, which is the last string of the file.
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let raw = STANDARD.decode(body).unwrap();
    let at = KEY_MAGIC.len() + 8 + 8 + 4 + 4 + 4 + 51 + 4;
    let check = u32::from_be_bytes(raw[at..at + 4].try_into().unwrap());
    assert_eq!(read.to_openssh_pem("a comment", check), pem);

    let (pem, _) = make("locked", "ed25519", "secret");
    assert_eq!(SigningKey::from_openssh_pem(&pem).unwrap_err(), SignError::EncryptedKey);
    let (pem, line) = make("other", "ecdsa", "");
    let unsupported = SignError::UnsupportedKey("ecdsa-sha2-nistp256".to_owned());
    assert_eq!(SigningKey::from_openssh_pem(&pem).unwrap_err(), unsupported);
    assert_eq!(PublicKey::from_openssh_line(&line).unwrap_err(), unsupported);
    let theirs = printed(folder, &["-Y", "sign", "-f", "other", "-n", "git"], MESSAGE);
    assert_eq!(verify(&theirs, "git", MESSAGE).unwrap_err(), unsupported);
}

proptest! {
    #[test]
    fn random_input_is_refused_without_a_panic(bytes: Vec<u8>, text: String) {
        prop_assert!(PublicKey::from_openssh_line(&text).is_err());
        let line = format!("{KEY_TYPE} {text}");
        prop_assert!(PublicKey::from_openssh_line(&line).is_err());
        let body = STANDARD.encode([KEY_MAGIC, &bytes].concat());
        let pem = fold(KEY_BEGIN, body.as_bytes(), KEY_END);
        prop_assert!(SigningKey::from_openssh_pem(&pem).is_err());
    }
}
