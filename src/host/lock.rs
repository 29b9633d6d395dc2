//! The kernel lock that makes one command the driver of a session; the kernel drops it at death.

use super::{files, process};
use anyhow::{Context, Result};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A held lock. Dropping it lets go; the file stays (removing it would let two holders coexist).
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock at `path`, waiting up to `patience`; `None` when somebody else holds it.
pub fn take(path: &Path, patience: Duration) -> Result<Option<Lock>> {
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
    }
    let file = files::open_append(path)?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // For whoever is refused; a file that cannot be written is locked all the same.
                _ = file.set_len(0);
                _ = write!(&file, "{}", std::process::id());
                return Ok(Some(Lock { _file: file }));
            }
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock '{}'", path.display()));
            }
        }
    }
}

/// The process that holds the lock at `path`, as it said itself.
pub fn holder(path: &Path) -> Option<u32> {
    let text = files::read_text(path, 32).ok().flatten()?;
    // Who holds it now may be none of ours and have left what another one had written.
    text.parse().ok().filter(|pid| is_held(path) && process::identify(*pid).is_some())
}

/// Whether somebody holds the lock at `path` right now. Changes nothing on disk.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
