//! What changed, as facts for the contract: files against the base commit, and the code that
//! changed since the last safe point.

use super::objects::mode_word;
use super::{Repository, from_gix};
use crate::model::contract::{FileEntry, FileStatus, InFlight};
use crate::model::names::{Digest, Oid};
use anyhow::{Context, Result};
use base64::Engine;
use gix::bstr::{BString, ByteSlice};
use gix::diff::tree::recorder::Change as TreeChange;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Files of which a piece is shown.
const PIECES_MOST: usize = 40;
/// Of one piece.
const PIECE_LINES_MOST: usize = 16;
const PIECE_BYTES_MOST: usize = 800;

/// One path whose content, mode or being there differs between two trees.
pub(super) struct Change {
    pub(super) path: BString,
    pub(super) old: Option<Side>,
    pub(super) new: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) kind: gix::object::tree::EntryKind,
    pub(super) id: gix::ObjectId,
}

impl Repository {
    /// Every file that differs between `base` and `snapshot`, by path.
    pub fn changed_files(&self, base: &Oid, snapshot: &Oid) -> Result<Vec<FileEntry>> {
        let parent = self.read_commit(snapshot)?.parents.first().cloned();
        let parent = parent.as_ref().unwrap_or(base);
        let committed: BTreeMap<BString, Option<Side>> =
            self.tree_changes(base, parent)?.into_iter().map(|it| (it.path, it.new)).collect();
        self.tree_changes(base, snapshot)?
            .into_iter()
            .map(|change| {
                let committed = committed.get(&change.path) == Some(&change.new);
                self.file_entry(change, committed)
            })
            .collect()
    }

    fn file_entry(&self, change: Change, committed: bool) -> Result<FileEntry> {
        let status = match (change.old, change.new) {
            (None, _) => FileStatus::Added,
            (_, None) => FileStatus::Deleted,
            (Some(old), Some(new)) if type_of(old) != type_of(new) => FileStatus::TypeChanged,
            (Some(_), Some(_)) => FileStatus::Changed,
        };
        let (path, path_base64) = match String::from_utf8(change.path.into()) {
            Ok(path) => (Some(path), None),
            Err(error) => {
                let engine = base64::engine::general_purpose::STANDARD;
                (None, Some(engine.encode(error.as_bytes())))
            }
        };
        let mut entry = FileEntry {
            path,
            path_base64,
            status,
            mode: change.new.and_then(|new| mode_word(new.kind)).map(str::to_owned),
            sha256: None,
            size_bytes: None,
            committed,
        };
        if let Some(new) = change.new.filter(|new| new.kind != gix::object::tree::EntryKind::Commit)
        {
            let bytes = self.read_blob(&from_gix(&new.id))?;
            entry.sha256 = Some(sha256(&bytes));
            entry.size_bytes = Some(bytes.len() as u64);
        }
        Ok(entry)
    }

    /// The files that a commit has and another has not, or not so: path and blob. Links and
    /// submodules are left out.
    pub fn changed_blobs(&self, old: &Oid, new: &Oid) -> Result<Vec<(Vec<u8>, Oid)>> {
        let is_file = |side: &Side| {
            matches!(
                side.kind,
                gix::object::tree::EntryKind::Blob | gix::object::tree::EntryKind::BlobExecutable
            )
        };
        let changes = self.tree_changes(old, new)?;
        Ok(changes
            .into_iter()
            .filter_map(|change| {
                let new = change.new.filter(is_file)?;
                Some((change.path.into(), from_gix(&new.id)))
            })
            .collect())
    }

    /// The files that differ between two commits (or trees), sorted by path.
    pub(super) fn tree_changes(&self, old: &Oid, new: &Oid) -> Result<Vec<Change>> {
        let (old, new) = (self.tree_at(old)?, self.tree_at(new)?);
        let mut recorder = gix::diff::tree::Recorder::default();
        gix::diff::tree(
            gix::objs::TreeRefIter::from_bytes(&old.data, self.gix.object_hash()),
            gix::objs::TreeRefIter::from_bytes(&new.data, self.gix.object_hash()),
            gix::diff::tree::State::default(),
            &self.gix.objects,
            &mut recorder,
        )
        .context("cannot compare two trees")?;
        let mut changes: BTreeMap<BString, Change> = BTreeMap::new();
        let mut note = |path: BString, old: Option<Side>, new: Option<Side>| {
            let change = changes.entry(path.clone()).or_insert_with(|| Change {
                path,
                old: None,
                new: None,
            });
            change.old = change.old.or(old);
            change.new = change.new.or(new);
        };
        let side = |mode: gix::object::tree::EntryMode, id| {
            (!mode.is_tree()).then(|| Side { kind: mode.kind(), id })
        };
        for record in recorder.records {
            match record {
                TreeChange::Addition { entry_mode, oid, path, .. } => {
                    note(path, None, side(entry_mode, oid));
                }
                TreeChange::Deletion { entry_mode, oid, path, .. } => {
                    note(path, side(entry_mode, oid), None);
                }
                TreeChange::Modification {
                    previous_entry_mode,
                    previous_oid,
                    entry_mode,
                    oid,
                    path,
                } => note(path, side(previous_entry_mode, previous_oid), side(entry_mode, oid)),
            }
        }
        Ok(changes.into_values().filter(|it| it.old != it.new).collect())
    }

    /// What changed in text files between the last safe point and the snapshot's tree: a piece of
    /// each file, and the whole as a unified diff of at most `bytes_most`, cut at a line.
    pub fn in_flight(
        &self,
        safe_point: &Oid,
        snapshot_tree: &Oid,
        bytes_most: usize,
    ) -> Result<(Vec<InFlight>, Vec<u8>)> {
        let call = self.git([
            "diff-tree",
            "-r",
            "-p",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--end-of-options",
            safe_point.as_str(),
            snapshot_tree.as_str(),
        ]);
        let (mut diff, whole) = call.head(bytes_most as u64)?;
        if !whole {
            diff.truncate(diff.rfind_byte(b'\n').map_or(0, |end| end + 1));
        }
        Ok((pieces(&diff), diff))
    }
}

fn type_of(side: Side) -> &'static str {
    use gix::object::tree::EntryKind;
    match side.kind {
        EntryKind::Blob | EntryKind::BlobExecutable => "file",
        EntryKind::Link => "link",
        EntryKind::Commit => "submodule",
        EntryKind::Tree => "tree",
    }
}

/// The first hunk of each file of a unified diff.
fn pieces(diff: &[u8]) -> Vec<InFlight> {
    let mut found = Vec::new();
    let mut path: Option<String> = None;
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        if found.len() == PIECES_MOST {
            break;
        }
        if line.starts_with(b"diff --git ") {
            path = None;
        } else if let Some(name) = line.strip_prefix(b"--- a/") {
            path = Some(name.to_str_lossy().into_owned());
        } else if let Some(name) = line.strip_prefix(b"--- \"a/") {
            path = Some(unquote(name));
        } else if let Some(name) = line.strip_prefix(b"+++ b/") {
            path = Some(name.to_str_lossy().into_owned());
        } else if let Some(name) = line.strip_prefix(b"+++ \"b/") {
            path = Some(unquote(name));
        } else if line.starts_with(b"@@ ")
            && let Some(path) = path.take()
        {
            let mut number = new_start(line).unwrap_or(1);
            let mut first = None;
            let mut snippet = String::new();
            let mut taken = 0;
            while let Some(line) = lines.next_if(|line| {
                line.first().is_some_and(|first| matches!(first, b' ' | b'+' | b'-' | b'\\'))
            }) {
                match line.first() {
                    Some(b' ') if first.is_none() => number += 1,
                    Some(b'+' | b'-') => {
                        first.get_or_insert(number);
                    }
                    _ => {}
                }
                if first.is_some() && taken < PIECE_LINES_MOST {
                    let text = line.to_str_lossy();
                    if snippet.len() + text.len() < PIECE_BYTES_MOST {
                        snippet.push_str(&text);
                        snippet.push('\n');
                        taken += 1;
                    } else {
                        let room = PIECE_BYTES_MOST.saturating_sub(snippet.len());
                        snippet.extend(text.chars().take(room));
                        snippet.push_str("…\n");
                        taken = PIECE_LINES_MOST;
                    }
                }
            }
            found.push(InFlight { path, line: first.unwrap_or(number).max(1), snippet });
        }
    }
    found
}

/// `@@ -1,2 +30,4 @@` → 30.
fn new_start(header: &[u8]) -> Option<u32> {
    let plus = header.find_byte(b'+')?;
    let digits = header[plus + 1..].split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A path as git quotes it (`caf\303\251"`), up to the closing quote.
fn unquote(quoted: &[u8]) -> String {
    let mut bytes = Vec::new();
    let mut rest = quoted.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => match rest.next() {
                Some(digit @ b'0'..=b'3') => {
                    let mut value = digit - b'0';
                    for _ in 0..2 {
                        let Some(digit) = rest.next_if(|b| (b'0'..=b'7').contains(b)) else {
                            break;
                        };
                        value = value << 3 | (digit - b'0');
                    }
                    bytes.push(value);
                }
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'r') => bytes.push(b'\r'),
                Some(b'a') => bytes.push(7),
                Some(b'b') => bytes.push(8),
                Some(b'v') => bytes.push(11),
                Some(b'f') => bytes.push(12),
                Some(other) => bytes.push(other),
                None => {}
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The SHA-256 of bytes, whatever the repository's own format is.
pub(super) fn sha256(bytes: &[u8]) -> Digest {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        hex.push_str(&format!("{byte:02x}"));
    }
    Digest::new(hex).expect("32 bytes make 64 hex digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_begins_at_the_first_changed_line() {
        let diff = b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -10,3 +12,4 @@ fn\n same\n-old\n+new\n+more\n same\n\
diff --git \"a/caf\\303\\251 \\\"q\\\"\" \"b/caf\\303\\251 \\\"q\\\"\"\ndeleted file mode 100644\n--- \"a/caf\\303\\251 \\\"q\\\"\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
diff --git a/b b/b\nBinary files a/b and b/b differ\n";
        let found = pieces(diff);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].path.as_str(), found[0].line), ("x", 13));
        assert_eq!(found[0].snippet, "-old\n+new\n+more\n same\n");
        assert_eq!((found[1].path.as_str(), found[1].line), ("café \"q\"", 1));
    }
}
