//! SSHSIG signatures and OpenSSH Ed25519 keys, as bytes.
//!
//! Sources: `PROTOCOL.sshsig` and `PROTOCOL.key` of OpenSSH, RFC 8709 (`ssh-ed25519` keys and
//! signatures), RFC 4251 section 5 (`string`, `uint32`), RFC 8032 (Ed25519). What is written here
//! is byte for byte what `ssh-keygen` writes, so that nobody needs this program to check a
//! signature; the tests hold it against the real `ssh-keygen`.
//!
//! Deliberately absent: other key types, certificates, encrypted keys and ssh-agent. `ssh-keygen`
//! does those when the user asks for them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;

/// The SSHSIG namespace of contracts.
pub const CONTRACT_NAMESPACE: &str = "git-relay-contract@v1";
/// The SSHSIG namespace git signs commits and tags in (git `gpg-interface.c`).
pub const GIT_NAMESPACE: &str = "git";
/// An armored signature is at most this long; an Ed25519 one has about 300 bytes, and RSA with
/// 16384 bits still fits, so that it is named as unsupported rather than as too long.
pub const SIGNATURE_BYTES_MOST: usize = 8 * 1024;
/// A private key file is at most this long; an Ed25519 one has about 400 bytes and its comment.
pub const KEY_BYTES_MOST: usize = 16 * 1024;

const KEY_TYPE: &str = "ssh-ed25519";
const SIGNATURE_MAGIC: &[u8] = b"SSHSIG";
const SIGNATURE_BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
const SIGNATURE_END: &str = "-----END SSH SIGNATURE-----\n";
const KEY_MAGIC: &[u8] = b"openssh-key-v1\0";
const KEY_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
const KEY_END: &str = "-----END OPENSSH PRIVATE KEY-----\n";
/// ssh-keygen breaks base64 after so many characters (`sshbuf_dtob64`).
const LINE_CHARS: usize = 70;
/// Padding of an unencrypted private section (`PROTOCOL.key`; the block size of cipher `none`).
const KEY_BLOCK: usize = 8;

/// Why a signature does not hold, or a key cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The bytes have not the form they should have.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// The signature was made for another purpose.
    #[error("signed in namespace {0:?}")]
    WrongNamespace(String),
    /// The form is right, but the key did not sign this message.
    #[error("the signature does not match the message")]
    BadSignature,
    /// A key of a type other than `ssh-ed25519`.
    #[error("key type {0:?} is not supported, only {KEY_TYPE}")]
    UnsupportedKey(String),
    /// A private key behind a passphrase.
    #[error("the key is encrypted with a passphrase")]
    EncryptedKey,
}

use SignError::Malformed;

/// An Ed25519 public key: a point of the curve, and not one of the few of small order.
///
/// Ordered and compared by its 32 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    fn new(bytes: [u8; 32]) -> Result<Self, SignError> {
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(bytes)),
            _ => Err(Malformed("the public key is not a point of Ed25519")),
        }
    }

    /// Reads `ssh-ed25519 AAAA… [comment]`, the line of a `.pub` file; the comment is skipped.
    ///
    /// [`SignError::UnsupportedKey`] with the first word if that is another one.
    pub fn from_openssh_line(line: &str) -> Result<Self, SignError> {
        let line = line.trim_matches([' ', '\t', '\r', '\n']);
        if line.contains('\n') {
            return Err(Malformed("the public key has more than one line"));
        }
        let (kind, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        if kind != KEY_TYPE {
            return Err(SignError::UnsupportedKey(excerpt(kind)));
        }
        let blob = rest.trim_start_matches([' ', '\t']).split([' ', '\t']).next().unwrap_or("");
        if blob.len() > KEY_BYTES_MOST {
            return Err(Malformed("the public key is too long"));
        }
        let blob = STANDARD.decode(blob).map_err(|_| Malformed("the public key is not base64"))?;
        Self::from_blob(&blob)
    }

    /// `ssh-ed25519 AAAA… comment`, without a newline; an empty comment leaves no space.
    ///
    /// Control characters of the comment become spaces, so that it stays one line.
    pub fn to_openssh_line(&self, comment: &str) -> String {
        let line = format!("{KEY_TYPE} {} {}", STANDARD.encode(self.to_blob()), one_line(comment));
        line.trim_end().to_owned()
    }

    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(self.to_blob())))
    }

    /// `string "ssh-ed25519"`, `string` of 32 bytes (RFC 8709, section 4).
    fn to_blob(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(51);
        put_string(&mut blob, KEY_TYPE.as_bytes());
        put_string(&mut blob, &self.0);
        blob
    }

    fn from_blob(blob: &[u8]) -> Result<Self, SignError> {
        let mut reader = Reader(blob);
        reader.key_type()?;
        let key = reader.array("the public key has not 32 bytes")?;
        reader.end("bytes after the public key")?;
        Self::new(key)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// An Ed25519 private key. Its bytes are wiped when it is dropped, and `Debug` shows the public
/// half only.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of a seed (RFC 8032, 5.1.5), which the caller draws from the system's generator.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Wiped(seed);
        Self(ed25519_dalek::SigningKey::from_bytes(&seed.0))
    }

    /// Reads a private key file of `ssh-keygen -t ed25519 -N ''` (`PROTOCOL.key`).
    ///
    /// Line lengths and line ends are free, as for ssh-keygen. Refused: a key with a passphrase
    /// ([`SignError::EncryptedKey`]), another type ([`SignError::UnsupportedKey`]), anything else
    /// ([`SignError::Malformed`]), in particular halves that do not belong together.
    pub fn from_openssh_pem(pem: &str) -> Result<Self, SignError> {
        if pem.len() > KEY_BYTES_MOST {
            return Err(Malformed("the private key is too long"));
        }
        let body = pem
            .trim_end()
            .strip_prefix(KEY_BEGIN.trim_end())
            .and_then(|rest| rest.strip_suffix(KEY_END.trim_end()))
            .ok_or(Malformed("not an OpenSSH private key"))?;
        let mut text = Wiped(Vec::with_capacity(body.len()));
        text.0.extend(body.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
        let mut bytes = Wiped(vec![0; text.0.len()]);
        let length = STANDARD
            .decode_slice(&text.0, &mut bytes.0)
            .map_err(|_| Malformed("the private key is not base64"))?;

        let outer = bytes.0[..length].strip_prefix(KEY_MAGIC);
        let mut outer = Reader(outer.ok_or(Malformed("not an openssh-key-v1"))?);
        let cipher = outer.string()?;
        let kdf = outer.string()?;
        let kdf_options = outer.string()?;
        if outer.uint32()? != 1 {
            return Err(Malformed("not exactly one private key"));
        }
        // The public half is in the clear even in an encrypted key, so the type comes first.
        let public = PublicKey::from_blob(outer.string()?)?;
        if cipher != b"none" || kdf != b"none" {
            return Err(SignError::EncryptedKey);
        }
        if !kdf_options.is_empty() {
            return Err(Malformed("options for no key derivation"));
        }
        let section = outer.string()?;
        outer.end("bytes after the private key")?;

        if section.len() % KEY_BLOCK != 0 {
            return Err(Malformed("the private section is not padded"));
        }
        let mut inner = Reader(section);
        if inner.uint32()? != inner.uint32()? {
            return Err(Malformed("the check numbers differ"));
        }
        inner.key_type()?;
        let inner_public = inner.string()?;
        let pair: Wiped<[u8; 64]> = Wiped(inner.array("the private key has not 64 bytes")?);
        inner.string()?;
        if inner.0.len() >= KEY_BLOCK || inner.0.iter().zip(1..).any(|(byte, n)| *byte != n) {
            return Err(Malformed("the padding is not 1, 2, 3, …"));
        }
        let key = ed25519_dalek::SigningKey::from_keypair_bytes(&pair.0)
            .map_err(|_| Malformed("the halves of the key do not belong together"))?;
        if inner_public != public.0 || key.verifying_key().as_bytes() != &public.0 {
            return Err(Malformed("the halves of the key do not belong together"));
        }
        Ok(Self(key))
    }

    /// The private key file as ssh-keygen writes it without a passphrase, newline at the end.
    ///
    /// `check` is any number, drawn at random by ssh-keygen; it matters for encrypted keys only.
    /// Control characters of the comment become spaces. The caller has to keep the text secret.
    pub fn to_openssh_pem(&self, comment: &str, check: u32) -> String {
        let public = self.public();
        let comment = one_line(comment);
        let mut section = Wiped(Vec::with_capacity(160 + comment.len()));
        section.0.extend_from_slice(&check.to_be_bytes());
        section.0.extend_from_slice(&check.to_be_bytes());
        put_string(&mut section.0, KEY_TYPE.as_bytes());
        put_string(&mut section.0, &public.0);
        put_string(&mut section.0, &Wiped(self.0.to_keypair_bytes()).0);
        put_string(&mut section.0, comment.as_bytes());
        let padding = (KEY_BLOCK - section.0.len() % KEY_BLOCK) % KEY_BLOCK;
        section.0.extend((1..=KEY_BLOCK as u8).take(padding));

        let mut bytes = Wiped(Vec::with_capacity(120 + section.0.len()));
        bytes.0.extend_from_slice(KEY_MAGIC);
        put_string(&mut bytes.0, b"none");
        put_string(&mut bytes.0, b"none");
        put_string(&mut bytes.0, b"");
        bytes.0.extend_from_slice(&1_u32.to_be_bytes());
        put_string(&mut bytes.0, &public.to_blob());
        put_string(&mut bytes.0, &section.0);
        // Its copies of the text are wiped; the one returned is the caller's.
        let mut text = Wiped(vec![0; bytes.0.len().div_ceil(3) * 4]);
        let length = STANDARD.encode_slice(&bytes.0, &mut text.0).unwrap_or(0);
        fold(KEY_BEGIN, &text.0[..length], KEY_END)
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// The armored signature of `message` in `namespace`: what `ssh-keygen -Y sign` prints.
    ///
    /// Ed25519 is deterministic, so the same call gives the same text. The namespace should not be
    /// empty: [`verify`] and ssh-keygen refuse that.
    pub fn sign(&self, namespace: &str, message: &[u8]) -> String {
        let hash = Sha512::digest(message);
        let signature = self.0.sign(&to_be_signed(namespace, "sha512", &hash));
        let mut signature_blob = Vec::with_capacity(83);
        put_string(&mut signature_blob, KEY_TYPE.as_bytes());
        put_string(&mut signature_blob, &signature.to_bytes());

        let mut raw = Vec::with_capacity(256);
        raw.extend_from_slice(SIGNATURE_MAGIC);
        raw.extend_from_slice(&1_u32.to_be_bytes());
        put_string(&mut raw, &self.public().to_blob());
        put_string(&mut raw, namespace.as_bytes());
        put_string(&mut raw, b"");
        put_string(&mut raw, b"sha512");
        put_string(&mut raw, &signature_blob);
        armor(&raw)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().fingerprint())
    }
}

/// The key that made this armored signature of `message` in `namespace`.
///
/// Says nothing about whether that key is believed: `trust` does. Form comes first
/// ([`SignError::Malformed`], [`SignError::UnsupportedKey`]), then the namespace
/// ([`SignError::WrongNamespace`], with the one it was made in), then the signature by the strict
/// rules of ed25519-dalek ([`SignError::BadSignature`]). Stricter than ssh-keygen: the armor has
/// to be as ssh-keygen writes it ([`dearmor`]), the reserved field empty, the namespace UTF-8.
pub fn verify(armored: &str, namespace: &str, message: &[u8]) -> Result<PublicKey, SignError> {
    let raw = dearmor(armored)?;
    let mut reader = Reader(raw.strip_prefix(SIGNATURE_MAGIC).ok_or(Malformed("not an SSHSIG"))?);
    if reader.uint32()? != 1 {
        return Err(Malformed("not version 1 of SSHSIG"));
    }
    let key = PublicKey::from_blob(reader.string()?)?;
    let signed_in = reader.text("the namespace is not UTF-8")?;
    if !reader.string()?.is_empty() {
        return Err(Malformed("the reserved field is not empty"));
    }
    let hash_name = reader.text("an unknown hash")?;
    let hash = match hash_name {
        "sha512" => Sha512::digest(message).to_vec(),
        "sha256" => Sha256::digest(message).to_vec(),
        _ => return Err(Malformed("an unknown hash")),
    };
    let mut inner = Reader(reader.string()?);
    reader.end("bytes after the signature")?;
    inner.key_type()?;
    let signature = Signature::from_bytes(&inner.array("the signature has not 64 bytes")?);
    inner.end("bytes after the signature")?;

    if signed_in.is_empty() {
        return Err(Malformed("the namespace is empty"));
    }
    if signed_in != namespace {
        return Err(SignError::WrongNamespace(excerpt(signed_in)));
    }
    VerifyingKey::from_bytes(&key.0)
        .and_then(|verifier| {
            verifier.verify_strict(&to_be_signed(namespace, hash_name, &hash), &signature)
        })
        .map_err(|_| SignError::BadSignature)?;
    Ok(key)
}

/// The armored form of a raw SSHSIG: lines of 70 characters between the marks, newline at the end.
pub fn armor(raw: &[u8]) -> String {
    fold(SIGNATURE_BEGIN, STANDARD.encode(raw).as_bytes(), SIGNATURE_END)
}

/// The raw SSHSIG in an armored one, which must be spelt exactly as [`armor`] and ssh-keygen do,
/// down to the last newline; so a signature cannot be respelt and still be accepted.
pub fn dearmor(armored: &str) -> Result<Vec<u8>, SignError> {
    if armored.len() > SIGNATURE_BYTES_MOST {
        return Err(Malformed("the signature is too long"));
    }
    let body = armored
        .strip_prefix(SIGNATURE_BEGIN)
        .and_then(|rest| rest.strip_suffix(SIGNATURE_END))
        .ok_or(Malformed("not an armored SSH signature"))?;
    let text: Vec<u8> = body.bytes().filter(|byte| *byte != b'\n').collect();
    let raw = STANDARD.decode(text).map_err(|_| Malformed("the signature is not base64"))?;
    if armor(&raw) != armored {
        return Err(Malformed("the armor is not as ssh-keygen writes it"));
    }
    Ok(raw)
}

/// An armored signature as one line of base64, for a record that is itself one line.
pub fn to_line(armored: &str) -> Result<String, SignError> {
    Ok(STANDARD.encode(dearmor(armored)?))
}

/// The armored signature of a line that [`to_line`] made; any other spelling is refused.
pub fn from_line(line: &str) -> Result<String, SignError> {
    if line.len() > SIGNATURE_BYTES_MOST {
        return Err(Malformed("the signature is too long"));
    }
    let raw = STANDARD.decode(line).map_err(|_| Malformed("the signature is not base64"))?;
    Ok(armor(&raw))
}

/// The value of git's commit header `gpgsig` (`gpgsig-sha256` in a SHA-256 repository): the armor,
/// its last newline dropped, each further line after one space (git `gitformat-signature(5)`).
///
/// The commit line is `gpgsig`, a space, this and a newline. What is signed, in namespace
/// [`GIT_NAMESPACE`], is the commit without the header.
pub fn gpgsig_header(armored: &str) -> String {
    armored.trim_end_matches('\n').replace('\n', "\n ")
}

/// What Ed25519 signs: `SSHSIG`, namespace, reserved, hash name, hash (`PROTOCOL.sshsig`, 3).
fn to_be_signed(namespace: &str, hash_name: &str, hash: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(SIGNATURE_MAGIC);
    put_string(&mut bytes, namespace.as_bytes());
    put_string(&mut bytes, b"");
    put_string(&mut bytes, hash_name.as_bytes());
    put_string(&mut bytes, hash);
    bytes
}

fn fold(begin: &str, base64: &[u8], end: &str) -> String {
    let lines = base64.len().div_ceil(LINE_CHARS);
    // Room for all of it at once: a grown `String` would leave copies of a private key behind.
    let mut text = String::with_capacity(begin.len() + base64.len() + lines + end.len());
    text.push_str(begin);
    for line in base64.chunks(LINE_CHARS) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text.push_str(end);
    text
}

/// `string` of RFC 4251: its length in four bytes, then the bytes.
fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a string of SSH is shorter than 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The unread rest of SSH's wire form.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn uint32(&mut self) -> Result<u32, SignError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*head))
    }

    fn string(&mut self) -> Result<&'a [u8], SignError> {
        let length = usize::try_from(self.uint32()?).map_err(|_| Malformed("cut short"))?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(head)
    }

    fn text(&mut self, otherwise: &'static str) -> Result<&'a str, SignError> {
        std::str::from_utf8(self.string()?).map_err(|_| Malformed(otherwise))
    }

    /// A string of exactly `N` bytes.
    fn array<const N: usize>(&mut self, otherwise: &'static str) -> Result<[u8; N], SignError> {
        self.string()?.try_into().map_err(|_| Malformed(otherwise))
    }

    /// The word `ssh-ed25519`.
    fn key_type(&mut self) -> Result<(), SignError> {
        match self.text("the key type is not UTF-8")? {
            KEY_TYPE => Ok(()),
            other => Err(SignError::UnsupportedKey(excerpt(other))),
        }
    }

    fn end(self, otherwise: &'static str) -> Result<(), SignError> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed(otherwise)) }
    }
}

/// What an error quotes of others' text: its beginning.
fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The text with a space for every control character.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Secret bytes, overwritten when they go. Without `unsafe` this is a best effort: `black_box`
/// keeps the compiler from dropping the writes, but the language promises nothing.
struct Wiped<T: AsMut<[u8]>>(T);

impl<T: AsMut<[u8]>> Drop for Wiped<T> {
    fn drop(&mut self) {
        let bytes = self.0.as_mut();
        bytes.fill(0);
        std::hint::black_box(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    const MESSAGE: &[u8] = b"{\"leg\":1}";

    fn key() -> SigningKey {
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
    fn printed(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
        let output = ssh_keygen(folder, arguments, input);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "ssh-keygen {arguments:?}: {talk}");
        String::from_utf8(output.stdout).unwrap()
    }

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
        let parts =
            [&fields.key, &fields.namespace, &fields.reserved, &fields.hash_name, &signature];
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

    fn blob(kind: &str, bytes: &[u8]) -> Vec<u8> {
        let mut blob = Vec::new();
        put_string(&mut blob, kind.as_bytes());
        put_string(&mut blob, bytes);
        blob
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
        assert_eq!(
            result(|fields| fields.signature = Some(blob("ssh-rsa", &[0; 64]))),
            unsupported
        );
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

    #[test]
    fn one_line_for_the_note_and_many_for_the_commit() {
        let armored = key().sign("git", MESSAGE);
        let line = to_line(&armored).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(from_line(&line).as_ref(), Ok(&armored));
        assert!(from_line(&format!("{line}\n")).is_err());
        assert!(from_line(line.trim_end_matches('=')).is_err());
        let header = gpgsig_header(&armored);
        assert!(header.starts_with("-----BEGIN SSH SIGNATURE-----\n U1NIU0lH"));
        assert!(header.ends_with("\n -----END SSH SIGNATURE-----"));
        assert_eq!(header.replace("\n ", "\n") + "\n", armored);
    }

    #[test]
    fn a_public_line_is_read_as_it_is_written() {
        let public = key().public();
        assert_eq!(
            PublicKey::from_openssh_line(&public.to_openssh_line("a b")),
            Ok(public.clone())
        );
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
        assert!(
            !shown.contains("7, 7") && !shown.contains("0707") && !shown.contains(&secret[..8])
        );
    }

    #[test]
    fn a_private_key_is_read_as_it_is_written() {
        for comment in ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "relay@höst 1"]
        {
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
            prop_assert!(from_line(&text).is_err() || text.len() % 4 == 0);
            prop_assert!(PublicKey::from_openssh_line(&text).is_err());
            let line = format!("{KEY_TYPE} {text}");
            prop_assert!(PublicKey::from_openssh_line(&line).is_err());
            let body = STANDARD.encode([KEY_MAGIC, &bytes].concat());
            let pem = fold(KEY_BEGIN, body.as_bytes(), KEY_END);
            prop_assert!(SigningKey::from_openssh_pem(&pem).is_err());
        }

        #[test]
        fn armor_and_dearmor_are_inverse(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(dearmor(&armor(&bytes)), Ok(bytes));
        }
    }
}
