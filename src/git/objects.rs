//! Blobs, trees and commits, in and out; and the one flush that makes them durable together.

use super::{Durability, Repository, from_gix, to_gix};
use crate::error::{Fault, of_the_machine};
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use gix::bstr::ByteSlice;
use gix::object::tree::EntryKind;
use std::collections::{BTreeMap, BTreeSet};

/// Who every commit of ours is by; a user identity is never needed and never borrowed.
pub const AUTHOR_NAME: &str = "git-relay";
pub const AUTHOR_EMAIL: &str = "git-relay@localhost";

/// Commits walked at most between two points; more is cut off, newest first.
const COMMITS_MOST: usize = 10_000;

/// A commit as stored, taken apart so that its signature can be checked over the exact bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    pub message: String,
    /// When it was made (the author's time).
    pub time: i64,
    /// The armored signature, as `git verify-commit` hands it to its checker.
    pub signature: Option<String>,
    /// The bytes the signature is over.
    pub signed_payload: Vec<u8>,
}

/// The bytes of an unsigned commit of ours.
fn commit_payload(tree: &Oid, parents: &[Oid], message: &str, time: i64) -> Vec<u8> {
    let mut bytes = format!("tree {tree}\n");
    for parent in parents {
        bytes.push_str(&format!("parent {parent}\n"));
    }
    for role in ["author", "committer"] {
        bytes.push_str(&format!("{role} {AUTHOR_NAME} <{AUTHOR_EMAIL}> {time} +0000\n"));
    }
    bytes.push('\n');
    bytes.push_str(message.trim_end());
    bytes.push('\n');
    bytes.into_bytes()
}

/// Between the making of a folder for an object and the object's own coming, a `git gc` beside us
/// may remove the folder, since it is empty: the object is then written again.
pub(super) fn written<T, E>(mut write: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 0..4 {
        if let Ok(done) = write() {
            return Ok(done);
        }
    }
    write()
}

/// Writes what a tree was made into; every object in it must be here. An attempt that fails takes
/// the edits out of its editor, and the next would give the tree as it was before them: each has
/// an editor of its own.
pub(super) fn written_tree(editor: &gix::object::tree::Editor<'_>) -> Result<Oid> {
    let tree =
        written(|| editor.clone().write()).map_err(anyhow::Error::from).map_err(|error| {
            if of_the_machine(&error).is_some() {
                return error;
            }
            let words = "a tree cannot be written: an object in it is not here, or not whole";
            error.context(Fault::integrity(words).hint("git fsck"))
        })?;
    Ok(from_gix(&tree.detach()))
}

impl Repository {
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Oid> {
        Ok(from_gix(&written(|| self.gix.write_blob(bytes))?.detach()))
    }

    /// A blob's size, without its content.
    pub fn blob_size(&self, blob: &Oid) -> Result<u64> {
        Ok(self.gix.find_header(to_gix(blob)).map_err(|error| unreadable(blob, error))?.size())
    }

    pub fn read_blob(&self, blob: &Oid) -> Result<Vec<u8>> {
        let found = self.gix.find_blob(to_gix(blob));
        Ok(found.map_err(|error| unreadable(blob, error))?.take_data())
    }

    /// Whether the object exists here, without reading it.
    pub fn has_object(&self, oid: &Oid) -> bool {
        self.gix.has_object(to_gix(oid))
    }

    /// A tree of plain files, from `path/in/tree` and blob.
    pub fn write_tree(&self, files: &BTreeMap<String, Oid>) -> Result<Oid> {
        let mut editor = self.gix.empty_tree().edit()?;
        for (path, blob) in files {
            editor.upsert(path, EntryKind::Blob, to_gix(blob))?;
        }
        written_tree(&editor)
    }

    /// The content of one file in a commit's (or a bare) tree; `None` when it has no such file.
    pub fn read_tree_file(&self, commit: &Oid, path: &str) -> Result<Option<Vec<u8>>> {
        let mut object = self.intact(self.tree_at(commit)?.id)?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let tree = object.peel_to_tree()?;
            let Some(entry) = tree.find_entry(name) else { return Ok(None) };
            let wanted = if names.peek().is_some() {
                entry.mode().is_tree()
            } else {
                entry.mode().is_blob()
            };
            if !wanted {
                return Ok(None);
            }
            object = self
                .intact(entry.object_id())
                .with_context(|| format!("cannot read `{path}` of {commit}"))?;
        }
        Ok(Some(object.detach().data))
    }

    /// An object whose content has the name it was asked for by. Git and gix look for that only
    /// when they check a whole repository, and an agent can write to the objects folder: what a
    /// signature vouches for by name alone must be held against the name.
    pub(super) fn intact(&self, id: gix::ObjectId) -> Result<gix::Object<'_>> {
        let found = self.gix.find_object(id);
        let object = found.map_err(|error| unreadable(&from_gix(&id), error))?;
        if gix::objs::compute_hash(id.kind(), object.kind, &object.data)? != id {
            bail!(
                Fault::integrity(format!("object {id} does not hold what its name says"))
                    .hint("git fsck")
            );
        }
        Ok(object)
    }

    /// Every file of a commit's (or a bare) tree, at any depth, by path. For trees of our own
    /// making: a path that is not UTF-8 is left out.
    pub fn list_tree(&self, commit: &Oid) -> Result<Vec<(String, Oid)>> {
        let files = self.tree_at(commit)?.traverse().breadthfirst.files();
        let files = files.map_err(|error| unreadable(commit, error))?;
        let mut files: Vec<(String, Oid)> = files
            .into_iter()
            .filter_map(|entry| {
                Some((String::from_utf8(entry.filepath.into()).ok()?, from_gix(&entry.oid)))
            })
            .collect();
        files.sort();
        Ok(files)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid> {
        Ok(from_gix(&self.tree_at(commit)?.id))
    }

    pub(super) fn tree_at(&self, commit: &Oid) -> Result<gix::Tree<'_>> {
        self.gix
            .find_object(to_gix(commit))
            .and_then(gix::Object::peel_to_tree)
            .map_err(|error| unreadable(commit, error).context("cannot read its tree"))
    }

    pub fn write_commit(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        time: i64,
    ) -> Result<Oid> {
        self.write_commit_bytes(&commit_payload(tree, parents, message, time))
    }

    /// The bytes of a commit of ours as [`Repository::write_commit`] would store them: what a
    /// signature is made over.
    pub fn commit_payload(&self, tree: &Oid, parents: &[Oid], message: &str, time: i64) -> Vec<u8> {
        commit_payload(tree, parents, message, time)
    }

    /// Stores `payload` with its armored signature in the header that git looks for.
    pub fn write_signed_commit(&self, payload: &[u8], armored_signature: &str) -> Result<Oid> {
        let Some(end) = payload.find(b"\n\n") else {
            bail!("a commit without an empty line after its headers cannot be signed");
        };
        let mut bytes = payload[..=end].to_vec();
        for (number, line) in armored_signature.trim_end().lines().enumerate() {
            if number == 0 {
                bytes.extend_from_slice(self.signature_header().as_bytes());
            }
            bytes.push(b' ');
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&payload[end + 1..]);
        self.write_commit_bytes(&bytes)
    }

    pub(super) fn write_commit_bytes(&self, bytes: &[u8]) -> Result<Oid> {
        use gix::prelude::Write;
        // Read it back as git will before anything is stored.
        gix::objs::CommitRef::from_bytes(bytes, self.gix.object_hash())
            .context("a malformed commit was about to be written")?;
        let id = written(|| self.gix.objects.write_buf(gix::object::Kind::Commit, bytes))
            .map_err(|error| anyhow::anyhow!(error))
            .context("cannot write a commit")?;
        Ok(from_gix(&id))
    }

    fn signature_header(&self) -> &'static str {
        match self.object_format() {
            "sha256" => "gpgsig-sha256",
            _ => "gpgsig",
        }
    }

    pub fn read_commit(&self, commit: &Oid) -> Result<Commit> {
        let object = self
            .intact(to_gix(commit))
            .and_then(|object| Ok(object.try_into_commit()?))
            .with_context(|| format!("cannot read commit {commit}"))?;
        let decoded = object.decode().with_context(|| format!("cannot read commit {commit}"))?;
        let seconds = |signature: gix::actor::SignatureRef<'_>| signature.seconds();
        let (signature, signed_payload) = self.split_signature(&object.data);
        Ok(Commit {
            tree: from_gix(&decoded.tree()),
            parents: decoded.parents().map(|parent| from_gix(&parent)).collect(),
            message: decoded.message.to_str_lossy().into_owned(),
            time: seconds(decoded.author()?),
            signature,
            signed_payload,
        })
    }

    /// As git's own `parse_signed_commit`: the signature of this object format is taken out, one
    /// of the other format is dropped.
    fn split_signature(&self, bytes: &[u8]) -> (Option<String>, Vec<u8>) {
        let header = self.signature_header();
        let mut signature = String::new();
        let mut payload = Vec::with_capacity(bytes.len());
        let mut inside: Option<bool> = None;
        let mut in_headers = true;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if in_headers {
                let own = line.strip_prefix(header.as_bytes()).and_then(|l| l.strip_prefix(b" "));
                let foreign = line.starts_with(b"gpgsig ") || line.starts_with(b"gpgsig-sha256 ");
                let rest = match (own, line.strip_prefix(b" "), inside) {
                    (Some(rest), _, _) => {
                        inside = Some(true);
                        Some(rest)
                    }
                    (None, _, _) if foreign => {
                        inside = Some(false);
                        Some(line)
                    }
                    (None, Some(rest), Some(_)) => Some(rest),
                    _ => {
                        inside = None;
                        None
                    }
                };
                if let Some(rest) = rest {
                    if inside == Some(true) {
                        signature.push_str(&rest.to_str_lossy());
                    }
                    continue;
                }
                in_headers = line != b"\n";
            }
            payload.extend_from_slice(line);
        }
        ((!signature.is_empty()).then_some(signature), payload)
    }

    /// Whether `ancestor` is `descendant` or one of those it grew from.
    pub fn is_ancestor(&self, ancestor: &Oid, descendant: &Oid) -> Result<bool> {
        if ancestor == descendant {
            return Ok(true);
        }
        let call =
            self.git(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()]);
        let words = call.words();
        let output = call.output()?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(output.failure(&words)),
        }
    }

    /// The commits without parents that `of` grew from, sorted; none where the clone is shallow,
    /// for there they cannot be known.
    pub fn root_commits(&self, of: &Oid) -> Result<Vec<Oid>> {
        if self.is_shallow() {
            return Ok(Vec::new());
        }
        let output = self.git(["rev-list", "--max-parents=0", of.as_str(), "--"]).run()?;
        let roots: BTreeSet<Oid> = lines(&output).filter_map(Oid::new).collect();
        Ok(roots.into_iter().collect())
    }

    /// The commits reachable from `tip` and not from `base`, newest first.
    pub fn commits_between(&self, base: &Oid, tip: &Oid) -> Result<Vec<(Oid, Commit)>> {
        let mut found = Vec::new();
        let walk = self.gix.rev_walk([to_gix(tip)]).with_hidden([to_gix(base)]).all()?;
        for info in walk.take(COMMITS_MOST) {
            let info = info.map_err(|error| unreadable(tip, error))?;
            let oid = from_gix(&info.id);
            let commit = self.read_commit(&oid)?;
            found.push((oid, commit));
        }
        Ok(found)
    }

    /// Makes everything written so far survive a power cut: one flush of the file system.
    pub fn durable(&self) -> Result<()> {
        if self.durability == Durability::None {
            return Ok(());
        }
        flush(&self.common_dir.join("objects"))
            .with_context(|| format!("cannot flush `{}`", self.common_dir.display()))
            .map_err(|error| error.context(Fault::environment("the disk did not take a flush")))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn flush(folder: &std::path::Path) -> std::io::Result<()> {
    let folder = std::fs::File::open(folder)?;
    Ok(rustix::fs::syncfs(&folder)?)
}

/// Where one file system cannot be flushed alone: every object file younger than the last flush
/// would have to be found; the whole machine's flush is slower and right.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn flush(_folder: &std::path::Path) -> std::io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// An object that should be here: the machine may have stopped before it was flushed.
fn unreadable(oid: &Oid, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    if of_the_machine(&error).is_some() {
        return error.context(format!("cannot read {oid}"));
    }
    let fault = format!("object {oid} cannot be read: it is not here, or not whole");
    error.context(Fault::integrity(fault).hint("git fsck"))
}

pub(super) fn mode_word(kind: EntryKind) -> Option<&'static str> {
    match kind {
        EntryKind::Blob => Some("100644"),
        EntryKind::BlobExecutable => Some("100755"),
        EntryKind::Link => Some("120000"),
        EntryKind::Commit => Some("160000"),
        EntryKind::Tree => None,
    }
}

pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes.lines().map(|line| line.to_str_lossy().into_owned())
}
