//! Git's own lock files (`<file>.lock`, made exclusively, renamed over the file): the protocol git
//! and gix follow, with the flush that both leave out.

use super::Durability;
use crate::error::Fault;
use crate::model::shell::shell_word;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a lock of a dead process may stand in the way.
pub(super) const STALE_AFTER: Duration = Duration::from_secs(2);

/// How long others may go before us.
const PATIENCE_MOST: Duration = Duration::from_secs(30);

/// What to do with a lock that is still there after the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// It may be the user's git: only say what stands in the way.
    Explain,
    /// Only a dead process of ours can have left it: clear it and go on.
    Clear,
}

/// A lock held; given up when dropped without [`LockFile::commit`].
pub(super) struct LockFile {
    pub(super) file: File,
    path: PathBuf,
    target: PathBuf,
    open: bool,
}

/// Refused: `lock` is in the way, and who made it may be at work yet.
pub fn in_the_way(lock: &Path) -> Fault {
    Fault::refused(format!("'{}' is in the way", lock.display())).hint(format!(
        "a git command is at work there, or died; if none runs: rm {}",
        shell_word(lock)
    ))
}

impl LockFile {
    /// Locks `target`; a lock that nobody touches is waited for up to [`STALE_AFTER`], one that
    /// goes from hand to hand up to [`PATIENCE_MOST`].
    pub(super) fn acquire(target: &Path, stale: Stale) -> Result<Self> {
        let path = lock_path(target);
        let began = Instant::now();
        let mut start = began;
        let mut seen = identity(&path);
        let mut cleared = false;
        loop {
            let now = identity(&path);
            if now != seen && began.elapsed() < PATIENCE_MOST {
                (seen, start) = (now, Instant::now());
            }
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(Self { file, path, target: target.to_owned(), open: true });
                }
                Err(error)
                    if error.kind() == ErrorKind::NotFound && start.elapsed() < STALE_AFTER =>
                {
                    // Git removes ref folders that became empty; make it again and try again.
                    let folder = path.parent().expect("a lock file is in a folder");
                    fs::create_dir_all(folder)
                        .with_context(|| format!("cannot make `{}`", folder.display()))?;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if start.elapsed() < STALE_AFTER {
                        thread::sleep(Duration::from_millis(10));
                    } else if stale == Stale::Clear && !cleared && seen == identity(&path) {
                        cleared = true;
                        match fs::remove_file(&path) {
                            Err(error) if error.kind() != ErrorKind::NotFound => {
                                return Err(error)
                                    .with_context(|| format!("cannot clear `{}`", path.display()));
                            }
                            _ => {}
                        }
                    } else {
                        bail!(in_the_way(&path));
                    }
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot make `{}`", path.display()));
                }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a finished file the content.
    pub(super) fn fill_from(&mut self, finished: &Path) -> Result<()> {
        let step = || -> io::Result<File> {
            let file = File::open(finished)?;
            fs::rename(finished, &self.path)?;
            Ok(file)
        };
        self.file = step().with_context(|| format!("cannot move `{}`", finished.display()))?;
        Ok(())
    }

    /// Puts what was written in place of the target. With full durability the content is flushed
    /// before the rename and the folder after it, so no power cut shows an empty file.
    pub(super) fn commit(mut self, durability: Durability) -> Result<()> {
        let step = || -> io::Result<()> {
            if durability == Durability::Full {
                self.file.sync_all()?;
            }
            fs::rename(&self.path, &self.target)?;
            if durability == Durability::Full {
                sync_folder_of(&self.target)?;
            }
            Ok(())
        };
        step().with_context(|| format!("cannot replace `{}`", self.target.display()))?;
        self.open = false;
        Ok(())
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if self.open {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Where git and we lock `target`.
pub(super) fn lock_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().expect("a file is in a folder"))?.sync_all()
}

/// Removes the lock beside `target` if nothing has touched it for [`STALE_AFTER`]; for locks that
/// only dead children of ours can have left and that git, not we, would meet next.
pub(super) fn clear_stale(target: &Path) -> Result<()> {
    let path = lock_path(target);
    let Some(seen) = identity(&path) else {
        return Ok(());
    };
    let start = Instant::now();
    while start.elapsed() < STALE_AFTER {
        if identity(&path) != Some(seen) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot clear `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

/// Which file it is and when it was last written.
pub(super) fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}
