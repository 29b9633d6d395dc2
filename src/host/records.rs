//! Files of records that other programs write, read within bounds: plain files of this user's own,
//! no link followed, no pipe waited for, whatever lies there.

use super::lines::Lines;
use crate::model::time::Timestamp;
use anyhow::Result;
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PIECE_BYTES: usize = 256 * 1024;

/// One file of records, opened.
#[derive(Debug)]
pub struct Records {
    file: File,
    pub modified: Timestamp,
    pub size: u64,
}

/// Whether something is this user's own.
pub fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// The entries of a folder of this user's, as they come; none when it is no folder, or somebody
/// else's. The folder itself may be a link: what links lead to *within* it is not looked at.
pub fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let read = || -> io::Result<fs::ReadDir> {
        match is_own(&fs::metadata(folder)?) {
            true => fs::read_dir(folder),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    read().into_iter().flatten().filter_map(Result::ok)
}

/// The real folders in a folder.
pub fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    entries(folder)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

impl Records {
    /// `None` when it is gone, cannot be read, or is no plain file of this user's.
    pub fn open(path: &Path) -> Option<Self> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
        let found = file.metadata().ok()?;
        (found.is_file() && is_own(&found)).then(|| Self {
            file,
            modified: Timestamp(found.mtime()),
            size: found.len(),
        })
    }

    /// The bytes from `from` on, `bytes_most` of them, in place of what `buffer` held.
    pub fn read(&self, buffer: &mut Vec<u8>, from: u64, bytes_most: usize) -> io::Result<()> {
        buffer.resize(bytes_most, 0);
        let mut filled = 0;
        while filled < bytes_most {
            match self.file.read_at(&mut buffer[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.truncate(filled);
        Ok(())
    }

    /// Gives every line from byte `from` on to `each`, without its newline, until it breaks off or
    /// the file as it was when it was opened is at its end. A line that is not whole comes too:
    /// where it is torn its parser sees. Gives how many were too long to be held.
    pub fn lines(
        &self,
        mut from: u64,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<usize> {
        let mut lines = Lines::default();
        let mut piece = Vec::new();
        while from < self.size {
            let most = usize::try_from(self.size - from).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            self.read(&mut piece, from, most)?;
            if piece.is_empty() {
                break;
            }
            from += piece.len() as u64;
            if lines.cut(&piece, &mut each).is_break() {
                return Ok(lines.dropped);
            }
        }
        if let Some(line) = lines.rest() {
            _ = each(&line);
        }
        Ok(lines.dropped)
    }
}
