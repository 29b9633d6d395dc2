//! Ed25519 keys as OpenSSH writes them: the line of a `.pub` file and the private key file.

#[cfg(test)]
mod tests;

use super::SignError::{self, Malformed};
use super::armor::fold;
use super::wire::{Reader, Wiped, put_string};
use super::{KEY_TYPE, excerpt, one_line};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::VerifyingKey;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A private key file is at most this long; an Ed25519 one has about 400 bytes and its comment.
pub const KEY_BYTES_MOST: usize = 16 * 1024;
const KEY_MAGIC: &[u8] = b"openssh-key-v1\0";
const KEY_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
const KEY_END: &str = "-----END OPENSSH PRIVATE KEY-----\n";
/// Padding of an unencrypted private section (`PROTOCOL.key`; the block size of cipher `none`).
const KEY_BLOCK: usize = 8;

/// An Ed25519 public key: a point of the curve, and not one of the few of small order.
///
/// Ordered and compared by its 32 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(super) [u8; 32]);

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
    pub(super) fn to_blob(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(51);
        put_string(&mut blob, KEY_TYPE.as_bytes());
        put_string(&mut blob, &self.0);
        blob
    }

    pub(super) fn from_blob(blob: &[u8]) -> Result<Self, SignError> {
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
pub struct SigningKey(pub(super) ed25519_dalek::SigningKey);

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
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().fingerprint())
    }
}
