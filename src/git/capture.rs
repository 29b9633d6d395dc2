//! Reading the wanted files into objects, through the filters that `git add` applies.

use super::Repository;
use super::bundle::Bundle;
use super::survey::{Findings, Wanted};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Mode, Stat};
use gix::object::tree::EntryKind;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread;

/// A file that changes while it is read is read again this often.
const READS_MOST: usize = 3;
/// Writing objects gains little from more threads than this.
const THREADS_MOST: usize = 4;
/// Fewer files than this are not worth another thread.
const FILES_A_THREAD: usize = 64;

/// One file as captured.
pub(super) struct Captured {
    pub(super) kind: EntryKind,
    pub(super) id: gix::ObjectId,
    pub(super) stat: Stat,
}

enum Outcome {
    Read(Captured),
    Gone,
    Folder,
    Changing,
    Failed(String),
}

impl Repository {
    /// Writes the content of every wanted file, into `bundle` if there is one; what cannot be
    /// written is named and dropped from the list.
    pub(super) fn capture(
        &self,
        found: &mut Findings,
        index: &gix::index::File,
        bundle: &mut Option<Bundle>,
    ) -> Result<BTreeMap<BString, Captured>> {
        let paths: Vec<(BString, bool)> = found
            .wanted
            .iter()
            .filter_map(|(path, wanted)| match wanted {
                Wanted::Write { tracked } => Some((path.clone(), *tracked)),
                Wanted::Remove => None,
            })
            .collect();
        let outcomes = self.read_in_parts(&paths, index, bundle)?;
        let mut captured = BTreeMap::new();
        for ((path, tracked), outcome) in paths.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Read(file) => {
                    captured.insert(path, file);
                }
                Outcome::Gone if tracked => {
                    found.wanted.insert(path, Wanted::Remove);
                }
                Outcome::Gone => {
                    found.wanted.remove(&path);
                }
                Outcome::Folder => {
                    if self.on_disk(path.as_bstr()).join(".git").exists() {
                        found.miss(path.as_bstr(), "nested repository");
                    }
                    found.wanted.insert(path, Wanted::Remove);
                }
                Outcome::Changing => {
                    found.wanted.remove(&path);
                    found.miss(path.as_bstr(), "kept changing while it was read");
                }
                Outcome::Failed(why) => {
                    found.wanted.remove(&path);
                    found.miss(path.as_bstr(), why);
                }
            }
        }
        Ok(captured)
    }

    /// Reads the files on several threads; the outcomes are in the order of the paths.
    fn read_in_parts(
        &self,
        paths: &[(BString, bool)],
        index: &gix::index::File,
        bundle: &mut Option<Bundle>,
    ) -> Result<Vec<Outcome>> {
        let threads = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(THREADS_MOST)
            .min(paths.len().div_ceil(FILES_A_THREAD))
            .max(1);
        let shared = self.gix.clone().into_sync();
        let bundled = bundle.is_some();
        let parts: Result<Vec<(Vec<Outcome>, Bundle)>> = thread::scope(|scope| {
            let workers: Vec<_> = paths
                .chunks(paths.len().div_ceil(threads).max(1))
                .map(|part| {
                    let (shared, work_tree) = (&shared, &self.work_tree);
                    scope.spawn(move || {
                        let mut gix = shared.to_thread_local();
                        if bundled {
                            gix = gix.with_object_memory();
                        }
                        read_all(&gix, work_tree, part, index)
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| {
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut outcomes = Vec::with_capacity(paths.len());
        for (part, written) in parts? {
            outcomes.extend(part);
            if let Some(bundle) = bundle {
                bundle.join(written);
            }
        }
        Ok(outcomes)
    }
}

fn read_all(
    gix: &gix::Repository,
    work_tree: &Path,
    paths: &[(BString, bool)],
    index: &gix::index::File,
) -> Result<(Vec<Outcome>, Bundle)> {
    let (mut pipeline, _) = gix.filter_pipeline(None)?;
    let trusted = gix.filesystem_options()?;
    let mut bundle = Bundle::default();
    let mut read = |(path, _): &(BString, bool)| {
        let path = path.as_bstr();
        let on_disk = work_tree.join(OsStr::from_bytes(path));
        let mut outcome = Outcome::Gone;
        for _ in 0..READS_MOST {
            outcome = read_one(&mut pipeline, path, &on_disk, index)?;
            if !matches!(outcome, Outcome::Changing) {
                break;
            }
        }
        if let Outcome::Read(file) = &mut outcome {
            file.kind = kind_to_keep(file.kind, index.entry_by_path(path), &trusted);
        }
        bundle.take_from(gix)?;
        Ok(outcome)
    };
    let outcomes = paths.iter().map(&mut read).collect::<Result<_>>()?;
    Ok((outcomes, bundle))
}

/// Where the file system cannot show it (`core.fileMode`, `core.symlinks` false), the kind that
/// git knew stays.
fn kind_to_keep(
    seen: EntryKind,
    known: Option<&gix::index::Entry>,
    trusted: &gix::fs::Capabilities,
) -> EntryKind {
    let known = known.map(|entry| entry.mode);
    match seen {
        EntryKind::Blob if !trusted.symlink && known == Some(Mode::SYMLINK) => EntryKind::Link,
        EntryKind::Blob | EntryKind::BlobExecutable if !trusted.executable_bit => {
            if known == Some(Mode::FILE_EXECUTABLE) {
                EntryKind::BlobExecutable
            } else {
                EntryKind::Blob
            }
        }
        kind => kind,
    }
}

fn read_one(
    pipeline: &mut gix::filter::Pipeline<'_>,
    path: &BStr,
    on_disk: &Path,
    index: &gix::index::File,
) -> Result<Outcome> {
    let before = match fs::symlink_metadata(on_disk) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Gone),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Outcome::Gone),
        Err(error) => return Ok(Outcome::Failed(error.to_string())),
    };
    if let Some(what) = special(&before) {
        return Ok(Outcome::Failed(what.to_owned()));
    }
    let (id, kind) = match pipeline.worktree_file_to_object(path, index) {
        Ok(Some((id, kind, _))) => (id, kind),
        Ok(None) if before.is_dir() => return Ok(Outcome::Folder),
        Ok(None) => return Ok(Outcome::Gone),
        Err(error) => return not_read(error.into()),
    };
    let Ok(after) = gix::index::fs::Metadata::from_path_no_follow(on_disk) else {
        return Ok(Outcome::Changing);
    };
    let Ok(stat) = Stat::from_fs(&after) else {
        return Ok(Outcome::Failed("has no usable time".into()));
    };
    let same = kind == EntryKind::Commit
        || (before.len() == after.len()
            && i64::from(stat.mtime.nsecs) == before.mtime_nsec()
            && stat.mtime.secs == before.mtime() as u32
            && stat.ino == before.ino() as u32);
    Ok(if same { Outcome::Read(Captured { kind, id, stat }) } else { Outcome::Changing })
}

/// A file that could not be made an object. Where no object can be written the whole snapshot
/// fails: nothing is missed in one file that would not be missed in all.
fn not_read(error: anyhow::Error) -> Result<Outcome> {
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    match kind {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem) => {
            Err(error.context("the work cannot be saved"))
        }
        // The file, or the folder for its object, which a `git gc` beside us takes when it is empty.
        Some(ErrorKind::NotFound) => Ok(Outcome::Changing),
        _ => Ok(Outcome::Failed(format!("cannot be read: {}", error.root_cause()))),
    }
}

/// What is no file, folder or link; opening it could wait for ever.
pub(super) fn special(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}
