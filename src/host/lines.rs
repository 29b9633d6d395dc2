//! Lines cut out of a file that is read piece by piece.

use crate::model::transcript::LINE_BYTES_MOST;
use std::ops::ControlFlow;

/// More room than this is not kept for the lines that follow a huge one.
const ROOM_BYTES_MOST: usize = 1024 * 1024;

/// What is left of the pieces so far: the beginning of a line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    torn: Vec<u8>,
    is_dropping: bool,
    /// How many lines were longer than [`LINE_BYTES_MOST`]: they are never held, and no part of
    /// them is given.
    pub(super) dropped: usize,
}

impl Lines {
    /// Gives each line that `piece` completes, without its newline, until `each` breaks off.
    pub(super) fn cut(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if std::mem::take(&mut self.is_dropping) {
                continue;
            }
            if self.torn.is_empty() {
                each(line)?;
                continue;
            }
            self.torn.extend_from_slice(line);
            let flow = each(&self.torn);
            self.torn.clear();
            self.torn.shrink_to(ROOM_BYTES_MOST);
            flow?;
        }
        if !self.is_dropping {
            self.torn.extend_from_slice(rest);
        }
        if self.torn.len() > LINE_BYTES_MOST {
            self.torn = Vec::new();
            self.is_dropping = true;
            self.dropped += 1;
        }
        ControlFlow::Continue(())
    }

    /// What stands after the last newline, if anything does.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        (!self.torn.is_empty()).then(|| std::mem::take(&mut self.torn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `text`, cut out of pieces of `length` bytes.
    fn cut(lines: &mut Lines, text: &[u8], length: usize) -> Vec<usize> {
        let mut seen = Vec::new();
        for piece in text.chunks(length) {
            let flow = lines.cut(piece, |line| {
                seen.push(line.len());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
        }
        seen
    }

    #[test]
    fn a_huge_line_keeps_no_room() {
        let mut lines = Lines::default();
        let long = 2 * ROOM_BYTES_MOST;
        let text = [&vec![b'x'; long][..], b"\ntwo\n"].concat();
        assert_eq!(cut(&mut lines, &text, 64 * 1024), [long, 3]);
        assert!(lines.torn.capacity() <= ROOM_BYTES_MOST);
        let text = [&vec![b'x'; LINE_BYTES_MOST + long][..], b"\ntwo\n"].concat();
        assert_eq!(cut(&mut lines, &text, ROOM_BYTES_MOST), [3]);
        assert_eq!((lines.dropped, lines.torn.capacity()), (1, 0));
    }
}
