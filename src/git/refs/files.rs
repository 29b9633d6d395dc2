//! Refs as git keeps them by default: a file each, older ones packed into one.
//!
//! Written here by git's lock protocol because neither gix nor git flushes what it renames: an
//! empty ref after a power cut (tried).

use super::{Refs, Value, program};
use crate::error::Fault;
use crate::git::lock::{LockFile, Stale, sync_folder_of};
use crate::git::{Durability, Repository, from_gix};
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};

pub(super) struct Files<'repo> {
    pub(super) repo: &'repo Repository,
    pub(super) stale: Stale,
}

impl Files<'_> {
    /// Opened anew each time: a copy kept by time stamp can be stale within one tick of the clock.
    fn packed(&self) -> Result<Option<gix::refs::packed::Buffer>> {
        Ok(self.repo.gix.refs.open_packed_buffer()?)
    }

    fn loose(&self, name: &str) -> Result<Option<Value>> {
        let path = self.repo.ref_path(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        };
        let text = bytes.trim_ascii_end();
        if let Some(target) = text.strip_prefix(b"ref:") {
            let target = String::from_utf8_lossy(target.trim_ascii()).into_owned();
            return Ok(Some(Value::Symbolic(target)));
        }
        if let Some(oid) = std::str::from_utf8(text).ok().and_then(|text| Oid::new(text.trim())) {
            return Ok(Some(Value::Direct(oid)));
        }
        if bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace()) {
            return Ok(None);
        }
        bail!(Fault::integrity(format!("`{}` holds no object id", path.display())))
    }
}

impl Refs for Files<'_> {
    fn read(&self, name: &str) -> Result<Option<Value>> {
        if let Some(value) = self.loose(name)? {
            return Ok(Some(value));
        }
        let Some(packed) = self.packed()? else {
            return Ok(None);
        };
        let found = packed.try_find(name)?;
        Ok(found.map(|reference| Value::Direct(from_gix(&reference.target()))))
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Oid)>> {
        let mut loose = Vec::new();
        let mut folders = vec![prefix.rfind('/').map_or("", |end| &prefix[..end]).to_owned()];
        while let Some(folder) = folders.pop() {
            let path = self.repo.common_dir.join(&folder);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
                {
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot list `{}`", path.display()));
                }
            };
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot list `{}`", path.display()))?;
                let Some(file) = entry.file_name().to_str().map(str::to_owned) else {
                    continue;
                };
                let name = format!("{folder}/{file}");
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(name);
                } else if name.starts_with(prefix) && !name.ends_with(".lock") {
                    loose.push(name);
                }
            }
        }
        // After the loose ones: packed in between, a ref would be in neither.
        let mut found = BTreeMap::new();
        if let Some(packed) = self.packed()? {
            for reference in packed.iter_prefixed(prefix.into())? {
                let reference = reference?;
                if let Ok(name) = std::str::from_utf8(reference.name.as_bstr()) {
                    found.insert(name.to_owned(), from_gix(&reference.target()));
                }
            }
        }
        for name in loose {
            // Empty, and not packed either: as if it were not there.
            if let Some(oid) = self.repo.read_ref(&name)? {
                found.insert(name, oid);
            }
        }
        Ok(found.into_iter().collect())
    }

    fn swap(&self, name: &str, new: &Oid, expected: Option<&Oid>, _why: &str) -> Result<()> {
        let path = self.repo.ref_path(name);
        let folder = path.parent().expect("a ref is in a folder");
        let mut made = Vec::new();
        let mut above = folder;
        while !above.exists()
            && let Some(parent) = above.parent()
        {
            made.push(above.to_owned());
            above = parent;
        }
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let mut lock = LockFile::acquire(&path, self.stale)?;
        self.repo.must_stand_at(name, expected)?;
        lock.file
            .write_all(format!("{new}\n").as_bytes())
            .with_context(|| format!("cannot write `{}`", lock.path().display()))?;
        lock.commit(self.repo.durability)?;
        if self.repo.durability == Durability::Full {
            for folder in &made {
                sync_folder_of(folder).with_context(|| {
                    format!("cannot flush the folder of `{}`", folder.display())
                })?;
            }
        }
        Ok(())
    }

    fn delete(&self, name: &str, expected: &Oid) -> Result<()> {
        // Git knows how to take it out of the packed ones as well.
        program::Program { repo: self.repo }.delete(name, expected)
    }
}
