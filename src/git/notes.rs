//! Notes by plumbing: git's fan-out, our own compare-and-swap.
//!
//! `git notes add` loses notes when two write at once (tried: 1 of 40 kept); here every writer
//! reads, edits and swaps until nobody was faster.

use super::objects::written;
use super::{NOTES_REF, Repository, from_gix, to_gix};
use crate::error::{Fault, Kind, kind_of, of_the_machine};
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::note::plumbing::State;
use std::fs::{self, File};
use std::thread;
use std::time::Duration;

/// Lost races before giving up; each waits a little longer.
const TRIES_MOST: u32 = 50;

impl Repository {
    /// The note on `commit` in our notes ref.
    pub fn read_note(&self, commit: &Oid) -> Result<Option<Vec<u8>>> {
        let Some(tip) = self.read_ref(NOTES_REF)? else {
            return Ok(None);
        };
        let root = self.tree_at(&tip).with_context(torn)?.id;
        let mut notes = State::new(root, &self.gix.objects).with_context(torn)?;
        match notes.get(&to_gix(commit), &self.gix.objects).with_context(torn)? {
            Some(blob) => Ok(Some(self.note_of(commit, blob)?)),
            None => Ok(None),
        }
    }

    /// Puts a note on `commit`, in place of one that is there. Other writers lose nothing.
    pub fn write_note(&self, commit: &Oid, bytes: &[u8], time: i64) -> Result<()> {
        self.update_note(commit, time, |_| bytes.to_vec())
    }

    /// Puts in place of the note on `commit` what `update` makes of it. Called again with what
    /// is there then, when somebody else was faster: nothing is lost between reading and writing.
    pub fn update_note(
        &self,
        commit: &Oid,
        time: i64,
        update: impl Fn(Option<&[u8]>) -> Vec<u8>,
    ) -> Result<()> {
        let message = format!("relay: note on {}", &commit.as_str()[..12]);
        self.edit_notes(time, &message, |notes| {
            let old = notes.get(&to_gix(commit), &self.gix.objects).with_context(torn)?;
            let bytes = old.map(|blob| self.note_of(commit, blob)).transpose()?;
            let new = update(bytes.as_deref());
            if bytes.as_ref() == Some(&new) {
                return Ok(false);
            }
            let blob = self.write_blob(&new)?;
            notes
                .edit(to_gix(commit), Some(to_gix(&blob)), &self.gix.objects)
                .with_context(torn)?;
            Ok(true)
        })
    }

    fn note_of(&self, commit: &Oid, blob: gix::ObjectId) -> Result<Vec<u8>> {
        let note = self.intact(blob).with_context(|| {
            Fault::integrity(format!("the note on {commit} in refs/notes/relay cannot be read"))
                .hint(format!(
                    "git notes --ref=relay remove {commit}, then: git relay doctor --fix"
                ))
        })?;
        Ok(note.detach().data)
    }

    /// Refuses notes to which none could be added.
    pub fn must_have_notes(&self) -> Result<()> {
        if let Some(tip) = self.read_ref(NOTES_REF)? {
            let root = self.tree_at(&tip).with_context(torn)?.id;
            State::new(root, &self.gix.objects).with_context(torn)?;
        }
        Ok(())
    }

    /// Every commit with a note, with the note's blob.
    pub fn list_notes(&self) -> Result<Vec<(Oid, Oid)>> {
        let Some(tip) = self.read_ref(NOTES_REF)? else {
            return Ok(Vec::new());
        };
        let width = self.gix.object_hash().len_in_hex();
        let mut notes: Vec<(Oid, Oid)> = self
            .list_tree(&tip)
            .with_context(torn)?
            .into_iter()
            .filter_map(|(path, blob)| {
                let hex = path.replace('/', "");
                (hex.len() == width).then(|| Some((Oid::new(hex)?, blob)))?
            })
            .collect();
        notes.sort();
        Ok(notes)
    }

    /// Makes the notes ref if it is missing, so that `git log --notes=relay` never warns.
    pub fn make_empty_notes_ref(&self, time: i64) -> Result<()> {
        if self.read_ref(NOTES_REF)?.is_some() {
            return Ok(());
        }
        self.edit_notes(time, "relay: notes begin", |_| Ok(true))
    }

    fn edit_notes(
        &self,
        time: i64,
        message: &str,
        edit: impl Fn(&mut State) -> Result<bool>,
    ) -> Result<()> {
        // Our own writers queue here; the swap below is for the others (git itself, fetches).
        let _queue = self.notes_queue()?;
        for attempt in 0..TRIES_MOST {
            let tip = self.read_ref(NOTES_REF)?;
            let root = match &tip {
                Some(tip) => self.tree_at(tip).with_context(torn)?.id,
                None => written(|| self.gix.write_object(gix::objs::Tree::empty()))?.detach(),
            };
            // A write that fails drops what was edited: it is done again from the beginning.
            let tree = written(|| -> Result<_> {
                let mut notes = State::new(root, &self.gix.objects).with_context(torn)?;
                if !edit(&mut notes)? {
                    return Ok(None);
                }
                let tree = notes.write(&self.gix.objects).map_err(anyhow::Error::from);
                // It reads what is beside the note, too.
                Ok(Some(tree.map_err(|error| match of_the_machine(&error) {
                    Some(_) => error,
                    None => error.context(torn()),
                })?))
            })?;
            let Some(tree) = tree.map(|tree| from_gix(&tree)) else { return Ok(()) };
            let parents: Vec<Oid> = tip.iter().cloned().collect();
            let commit = self.write_commit(&tree, &parents, message, time)?;
            self.durable()?;
            match self.swap_notes_ref(&commit, tip.as_ref()) {
                Err(error) if kind_of(&error) == Kind::Raced && attempt + 1 < TRIES_MOST => {
                    thread::sleep(jitter(attempt));
                }
                done => return done.context("cannot write the note"),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Whoever holds this is the only writer of ours, so a `.lock` that outlasts the wait is a
    /// dead one's.
    fn notes_queue(&self) -> Result<File> {
        let folder = self.common_dir.join("relay");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let path = folder.join("notes.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open `{}`", path.display()))?;
        file.lock().with_context(|| format!("cannot lock `{}`", path.display()))?;
        Ok(file)
    }
}

/// What the notes lead to is not there or not whole. The refs of the sessions hold every contract
/// that is in a note too.
fn torn() -> Fault {
    Fault::integrity(
        "the notes in refs/notes/relay cannot be read; the sessions themselves hold all of it",
    )
    .hint("git update-ref -d refs/notes/relay, then: git relay doctor --fix")
}

/// 1-8 ms at first, at most 64 ms, different in each process.
fn jitter(attempt: u32) -> Duration {
    let spread = u64::from(std::process::id())
        .wrapping_mul(2_654_435_761)
        .wrapping_add(u64::from(attempt) * 7919);
    let most = 8_u64 << attempt.min(3);
    Duration::from_millis(1 + spread % most)
}
