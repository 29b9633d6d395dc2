//! Follows a file that somebody else appends to, line by line, within bounds.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much one call reads, about.
const PIECE_BYTES: usize = 1024 * 1024;
/// A line longer than this is dropped whole.
const LINE_BYTES_MOST: usize = 8 * 1024 * 1024;

/// A growing file and how far it has been read. The file need not exist yet.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    torn: Vec<u8>,
    dropping: bool,
}

impl Tail {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None, offset: 0, torn: Vec::new(), dropping: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// [`Tail::read`] to the end of the file as it is now.
    pub fn read_all(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        while self.read(&mut each)? {}
        Ok(())
    }

    /// Gives what stands after the last newline, as a line: call it once the writer is gone.
    pub fn rest(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.torn.is_empty() && !self.dropping {
            each(&std::mem::take(&mut self.torn));
        }
    }

    /// Gives lines that have been completed since the last call to `each`, without their newline;
    /// says whether there is more to read. One call reads a bounded piece, so that whoever follows
    /// a very talkative writer can look at other things in between.
    pub fn read(&mut self, mut each: impl FnMut(&[u8])) -> Result<bool> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot open '{}'", self.path.display()));
                }
            }
        }
        let file = self.file.as_mut().expect("it was just opened");
        let mut piece = 0;
        let mut buffer = vec![0; 64 * 1024];
        file.seek(SeekFrom::Start(self.offset))?;
        loop {
            let count = file
                .read(&mut buffer)
                .with_context(|| format!("cannot read '{}'", self.path.display()))?;
            if count == 0 {
                return Ok(false);
            }
            piece += count;
            self.offset += count as u64;
            let mut rest = &buffer[..count];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                if self.dropping {
                    self.dropping = false;
                } else if self.torn.is_empty() {
                    each(&rest[..end]);
                } else {
                    self.torn.extend_from_slice(&rest[..end]);
                    each(&self.torn);
                }
                self.torn.clear();
                rest = &rest[end + 1..];
            }
            if !self.dropping {
                self.torn.extend_from_slice(rest);
            }
            if self.torn.len() > LINE_BYTES_MOST {
                self.torn = Vec::new();
                self.dropping = true;
            }
            if piece >= PIECE_BYTES {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_come_whole_however_they_were_written() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = Tail::new(file.path());
        let mut seen = Vec::new();
        for piece in ["one\ntw", "o\n", "thr", "ee"] {
            file.write_all(piece.as_bytes()).unwrap();
            tail.read(|line| seen.push(String::from_utf8_lossy(line).into_owned())).unwrap();
        }
        assert_eq!(seen, ["one", "two"]);
        file.write_all(b"\n").unwrap();
        tail.read(|line| seen.push(String::from_utf8_lossy(line).into_owned())).unwrap();
        assert_eq!(seen, ["one", "two", "three"]);
        file.write_all(b"last").unwrap();
        tail.read(|_| panic!("it is not whole")).unwrap();
        for _ in 0..2 {
            tail.rest(|line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        assert_eq!(seen, ["one", "two", "three", "last"]);
    }
}
