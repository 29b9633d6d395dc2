//! Follows a file that somebody else appends to, line by line, within bounds.

use super::lines::Lines;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How much one call reads, about.
const PIECE_BYTES: usize = 1024 * 1024;
/// How much is read at once: small enough to stay in the processor's cache.
const BLOCK_BYTES: usize = 128 * 1024;

/// A growing file and how far it has been read. The file need not exist yet.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    lines: Lines,
}

impl Tail {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, file: None, offset: 0, lines: Lines::default() }
    }

    /// How many lines so far were longer than anybody holds: no part of them is given.
    pub fn dropped(&self) -> usize {
        self.lines.dropped
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much of the file has been read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// [`Tail::read`] to the end of the file as it is now.
    pub fn read_all(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        while self.read(&mut each)? {}
        Ok(())
    }

    /// Gives what stands after the last newline, as a line: call it once the writer is gone.
    pub fn rest(&mut self, mut each: impl FnMut(&[u8])) {
        if let Some(line) = self.lines.rest() {
            each(&line);
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
        let mut buffer = vec![0; BLOCK_BYTES];
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
            _ = self.lines.cut(&buffer[..count], |line| {
                each(line);
                ControlFlow::Continue(())
            });
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

    #[test]
    fn a_line_beyond_all_measure_is_dropped_and_counted() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\n").unwrap();
        // A gigabyte of zeros that takes no room on the disk.
        let end = file.as_file().metadata().unwrap().len() + (1 << 30);
        file.as_file().set_len(end).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\ntwo\n").unwrap();
        let mut tail = Tail::new(file.path());
        let mut seen = Vec::new();
        tail.read_all(|line| seen.push(line.to_vec())).unwrap();
        assert_eq!(seen, [b"one", b"two"]);
        assert_eq!(tail.dropped(), 1);
        assert_eq!(tail.lines.rest(), None);
    }
}
