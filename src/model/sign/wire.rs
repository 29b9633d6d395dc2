//! SSH's wire form (RFC 4251, section 5), and bytes that are wiped.

use super::SignError::{self, Malformed};
use super::{KEY_TYPE, excerpt};

/// `string` of RFC 4251: its length in four bytes, then the bytes.
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a string of SSH is shorter than 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The unread rest of SSH's wire form.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn uint32(&mut self) -> Result<u32, SignError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*head))
    }

    pub(super) fn string(&mut self) -> Result<&'a [u8], SignError> {
        let length = usize::try_from(self.uint32()?).map_err(|_| Malformed("cut short"))?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn text(&mut self, otherwise: &'static str) -> Result<&'a str, SignError> {
        std::str::from_utf8(self.string()?).map_err(|_| Malformed(otherwise))
    }

    /// A string of exactly `N` bytes.
    pub(super) fn array<const N: usize>(
        &mut self,
        otherwise: &'static str,
    ) -> Result<[u8; N], SignError> {
        self.string()?.try_into().map_err(|_| Malformed(otherwise))
    }

    /// The word `ssh-ed25519`.
    pub(super) fn key_type(&mut self) -> Result<(), SignError> {
        match self.text("the key type is not UTF-8")? {
            KEY_TYPE => Ok(()),
            other => Err(SignError::UnsupportedKey(excerpt(other))),
        }
    }

    pub(super) fn end(self, otherwise: &'static str) -> Result<(), SignError> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed(otherwise)) }
    }
}

/// Secret bytes, overwritten when they go. Without `unsafe` this is a best effort: `black_box`
/// keeps the compiler from dropping the writes, but the language promises nothing.
pub(super) struct Wiped<T: AsMut<[u8]>>(pub(super) T);

impl<T: AsMut<[u8]>> Drop for Wiped<T> {
    fn drop(&mut self) {
        let bytes = self.0.as_mut();
        bytes.fill(0);
        std::hint::black_box(bytes);
    }
}
