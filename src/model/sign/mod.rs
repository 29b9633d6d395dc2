//! SSHSIG signatures and OpenSSH Ed25519 keys, as bytes.
//!
//! Sources: `PROTOCOL.sshsig` and `PROTOCOL.key` of OpenSSH, RFC 8709 (`ssh-ed25519` keys and
//! signatures), RFC 4251 section 5 (`string`, `uint32`), RFC 8032 (Ed25519). What is written here
//! is byte for byte what `ssh-keygen` writes, so that nobody needs this program to check a
//! signature; the tests hold it against the real `ssh-keygen`.
//!
//! Deliberately absent: other key types, certificates, encrypted keys and ssh-agent. `ssh-keygen`
//! does those when the user asks for them.

mod armor;
mod key;
#[cfg(test)]
mod tests;
mod wire;

pub use armor::{armor, dearmor};
pub use key::{KEY_BYTES_MOST, PublicKey, SigningKey};

use SignError::Malformed;
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use sha2::{Digest as _, Sha256, Sha512};
use wire::{Reader, put_string};

/// The SSHSIG namespace of contracts.
pub const CONTRACT_NAMESPACE: &str = "git-relay-contract@v1";
/// The SSHSIG namespace git signs commits and tags in (git `gpg-interface.c`).
pub const GIT_NAMESPACE: &str = "git";

const KEY_TYPE: &str = "ssh-ed25519";
const SIGNATURE_MAGIC: &[u8] = b"SSHSIG";

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

impl SigningKey {
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

/// What an error quotes of others' text: its beginning.
fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The text with a space for every control character.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
