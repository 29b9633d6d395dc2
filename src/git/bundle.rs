//! Many new objects at once, as one pack that git stores: thousands of loose files cost several
//! times as much to make, to flush and to read again.

use super::Repository;
use super::objects::written;
use anyhow::Result;
use gix::objs::Kind;
use gix::zlib::{Compression, stream::deflate};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Objects that are worth a pack. (Git too unpacks a push of fewer.)
const OBJECTS_FROM: usize = 100;
/// Of compressed objects that one bundle holds; what comes after that is written loose.
const BYTES_MOST: usize = 16 << 20;

/// What git finds in the file that keeps a pack of ours.
const KEPT_BY: &str = "git-relay";
/// Such a file that is older was left by a command that was killed.
const KEPT_MOST: Duration = Duration::from_secs(3600);

/// A pack that no `git repack -a -d` beside us takes away. It would, since nothing names its objects
/// yet; when this is dropped, a ref should.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptPack(PathBuf);

impl Drop for KeptPack {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// New objects, compressed, that are not in the repository yet.
#[derive(Default)]
pub(super) struct Bundle {
    entries: BTreeMap<gix::ObjectId, Vec<u8>>,
    bytes: usize,
}

impl Bundle {
    /// The bundle for about as many objects, if they are worth one; without, they go out loose.
    pub(super) fn of(objects: usize) -> Option<Self> {
        (objects >= OBJECTS_FROM).then(Self::default)
    }

    /// Makes `gix` keep in memory what it writes, and believe that what is here is there: an editor
    /// writes no tree of files that it does not know.
    pub(super) fn name_to(&self, gix: &mut gix::Repository) {
        let mut known = gix::odb::memory::Storage::default();
        known.extend(self.entries.keys().map(|id| (*id, (Kind::Blob, Vec::new()))));
        gix.objects.set_object_memory(known);
    }

    /// Takes over what `gix` was told to write and has kept in memory.
    pub(super) fn take_from(&mut self, gix: &gix::Repository) -> Result<()> {
        use gix::objs::Write as _;
        for (id, (kind, data)) in gix.objects.reset_object_memory().unwrap_or_default().iter() {
            if self.entries.contains_key(id) {
                continue;
            }
            if self.bytes + data.len() > BYTES_MOST {
                let disk: &gix::odb::Handle = &gix.objects;
                written(|| disk.write_buf_with_known_id(*kind, data, *id))?;
                continue;
            }
            let entry = entry(*kind, data)?;
            self.bytes += entry.len();
            self.entries.insert(*id, entry);
        }
        Ok(())
    }

    pub(super) fn join(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }
}

impl Repository {
    /// Stores a bundle; from then on its objects can be read here.
    pub(super) fn store(&self, bundle: &Bundle) -> Result<Option<KeptPack>> {
        let Bundle { entries, .. } = bundle;
        if entries.is_empty() {
            return Ok(None);
        }
        let packs = self.common_dir.join("objects/pack");
        let_go_of_forgotten(&packs);
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(u32::try_from(entries.len())?.to_be_bytes());
        entries.values().for_each(|entry| pack.extend(entry));
        let mut hasher = gix::hash::hasher(self.gix.object_hash());
        hasher.update(&pack);
        pack.extend(hasher.try_finalize()?.as_slice());
        let keep = format!("--keep={KEPT_BY}");
        let said = self.git(["index-pack", "--stdin", &keep]).stdin(pack).run()?;
        // `keep`, a tab and its name; `pack` where it was there before.
        let said = String::from_utf8_lossy(&said);
        let name = said.trim().strip_prefix("keep\t");
        Ok(name.map(|name| KeptPack(packs.join(format!("pack-{name}.keep")))))
    }
}

/// Lets go of packs that a command kept and was killed before it let go of them.
fn let_go_of_forgotten(packs: &Path) {
    for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_old = || {
            let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
            age.is_some_and(|age| age > KEPT_MOST)
        };
        if path.extension().is_some_and(|ending| ending == "keep")
            && is_old()
            && fs::read(&path).is_ok_and(|text| text.trim_ascii() == KEPT_BY.as_bytes())
        {
            _ = fs::remove_file(path);
        }
    }
}

/// One object as a pack has it: kind and size, four bits and then seven a byte, and the content.
fn entry(kind: Kind, data: &[u8]) -> io::Result<Vec<u8>> {
    let kind = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut head = Vec::with_capacity(data.len() / 2 + 16);
    let mut byte = kind << 4 | (data.len() & 15) as u8;
    let mut rest = data.len() >> 4;
    while rest > 0 {
        head.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    head.push(byte);
    let mut out = deflate::Write::new(head, Compression::BEST_SPEED);
    out.write_all(data)?;
    out.flush()?;
    Ok(out.into_inner())
}
