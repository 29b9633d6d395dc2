//! Files: bounded reads, whole replacements, private modes.

use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file's bytes, `None` when there is no such file, an error when it is larger.
pub fn read(path: &Path, bytes_most: u64) -> Result<Option<Vec<u8>>> {
    // Without waiting for the other end of a pipe that lies there.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot open '{}'", path.display()));
        }
    };
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    anyhow::ensure!(is_file, "'{}' is no file", path.display());
    let mut bytes = Vec::new();
    file.take(bytes_most + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read '{}'", path.display()))?;
    anyhow::ensure!(
        bytes.len() as u64 <= bytes_most,
        "'{}' is larger than {bytes_most} bytes",
        path.display()
    );
    Ok(Some(bytes))
}

/// What a file of others holds from byte `from` on, `bytes_most` of it, and how long it is.
///
/// # Errors
/// Besides those of reading: it is a link, a pipe, a folder, or else no plain file. Such a thing
/// is not followed and not waited for.
pub fn read_plain(path: &Path, from: u64, bytes_most: u64) -> Result<Option<(Vec<u8>, u64)>> {
    let Some(mut file) = open_plain(path, OpenOptions::new().read(true))? else { return Ok(None) };
    let failed = || format!("cannot read '{}'", path.display());
    let len = file.metadata().with_context(failed)?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).with_context(failed)?;
    file.take(bytes_most).read_to_end(&mut bytes).with_context(failed)?;
    Ok(Some((bytes, len)))
}

/// Opens a plain file and nothing else, without following a link or waiting for a pipe's other
/// end; `None` when there is none.
fn open_plain(path: &Path, options: &mut OpenOptions) -> Result<Option<File>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) => {
            return Err(error).with_context(|| format!("cannot open '{}'", path.display()));
        }
        _ => anyhow::bail!("'{}' is no plain file", path.display()),
    };
    Ok(Some(file))
}

/// [`read`] as UTF-8 text.
pub fn read_text(path: &Path, bytes_most: u64) -> Result<Option<String>> {
    let Some(bytes) = read(path, bytes_most)? else { return Ok(None) };
    let text =
        String::from_utf8(bytes).with_context(|| format!("'{}' is not UTF-8", path.display()))?;
    Ok(Some(text))
}

/// Replaces (or makes) a file as a whole: a reader sees the old bytes or the new ones.
///
/// The new file has `mode` (say `0o600`) and is on disk before it takes the old one's name.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().context("a file to replace has a folder")?;
    make_folder(folder)?;
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".relay-")
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write '{}'", path.display()))
}

/// Makes `path` a symbolic link to `target`, replacing what stands there as a whole.
pub fn link(path: &Path, target: &Path) -> Result<()> {
    if fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let folder = path.parent().context("a link has a folder")?;
    make_folder(folder)?;
    let write = || -> std::io::Result<()> {
        let scratch = tempfile::Builder::new().prefix(".relay-").tempdir_in(folder)?;
        let new = scratch.path().join("link");
        std::os::unix::fs::symlink(target, &new)?;
        fs::rename(&new, path)
    };
    write().with_context(|| format!("cannot make the link '{}'", path.display()))
}

/// Makes a private folder (0700 for what is new) with all above it.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the folder '{}'", path.display()))
}

/// Opens a private file for appending, making it if need be.
pub fn open_append(path: &Path) -> Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot open '{}'", path.display()))
}

/// Appends `line` and a newline in one write, so that lines of two writers never mix (`write(2)`
/// with `O_APPEND`, lines of at most 4 KiB).
///
/// An agent can put something else in the file's place: a link is not followed, a pipe not waited
/// for.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let mut file = open_plain(path, &mut options)?
        .with_context(|| format!("cannot make '{}'", path.display()))?;
    file.write_all(format!("{line}\n").as_bytes())
        .with_context(|| format!("cannot append to '{}'", path.display()))
}

/// How much can still be written where `path` is.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path)
        .with_context(|| format!("cannot ask for the room at '{}'", path.display()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether anybody but the user may read or write the file.
pub fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// Lets nobody but the user read or write the file.
pub fn make_private(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("cannot change the mode of '{}'", path.display()))
}

/// Where to tell people to move what stands at `path`.
pub fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".aside");
    name.into()
}

/// Removes a file; one that is gone already is fine.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove '{}'", path.display()))
        }
        _ => Ok(()),
    }
}
