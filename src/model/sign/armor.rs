//! The armor around a signature, and the folding it shares with key files.

use super::SignError::{self, Malformed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An armored signature is at most this long; an Ed25519 one has about 300 bytes, and RSA with
/// 16384 bits still fits, so that it is named as unsupported rather than as too long.
pub(super) const SIGNATURE_BYTES_MOST: usize = 8 * 1024;
pub(super) const SIGNATURE_BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
pub(super) const SIGNATURE_END: &str = "-----END SSH SIGNATURE-----\n";
/// ssh-keygen breaks base64 after so many characters (`sshbuf_dtob64`).
const LINE_CHARS: usize = 70;

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

/// base64 in lines between two marks, newline at the end.
pub(super) fn fold(begin: &str, base64: &[u8], end: &str) -> String {
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
