//! The same list from `git status --porcelain=v2`, which goes on past what may not be read.

use super::Repository;
use super::survey::{Findings, OWN_FOLDER, Wanted};
use anyhow::{Context, Result, bail};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::object::tree::EntryKind;
use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Looked into for what git does not name.
const FOLDERS_MOST: usize = 200_000;

impl Repository {
    pub(super) fn survey_by_git(&self) -> Result<Findings> {
        let call = self.git([
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ]);
        let words = call.words();
        let output = call.output()?;
        if output.code != Some(0) {
            return Err(output.failure(&words));
        }
        let mut found = Findings::default();
        for record in output.stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            self.note_record(&mut found, record.as_bstr()).with_context(|| {
                format!("cannot read a line of `{words}`: {}", record.as_bstr())
            })?;
        }
        for line in output.stderr.lines() {
            // warning: could not open directory 'x/': Permission denied
            if let Some((_, rest)) = line.split_once("could not open directory '")
                && let Some((path, why)) = rest.split_once("/': ")
            {
                found.miss(path.as_bytes().as_bstr(), format!("folder that cannot be read: {why}"));
            }
        }
        self.note_specials(&mut found)?;
        Ok(found)
    }

    /// Git names no pipe, socket or device.
    fn note_specials(&self, found: &mut Findings) -> Result<()> {
        let mut open = vec![self.work_tree.clone()];
        let (mut specials, mut looked_at) = (Vec::new(), 0);
        while let Some(folder) = open.pop() {
            looked_at += 1;
            if looked_at > FOLDERS_MOST {
                found.miss(
                    b"named pipes and the like".as_bstr(),
                    "too many folders to look for them",
                );
                break;
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                let inside = path.strip_prefix(&self.work_tree)?.as_os_str().as_bytes();
                if kind.is_dir() {
                    let is_ours = entry.file_name() == ".git" || inside == b".relay";
                    if !is_ours && !path.join(".git").exists() {
                        open.push(path);
                    }
                } else if !kind.is_file() && !kind.is_symlink() {
                    specials.extend_from_slice(inside);
                    specials.push(0);
                }
            }
        }
        let ignored = self.ignored_of(&specials)?;
        let ignored: HashSet<&[u8]> = ignored.split(|byte| *byte == 0).collect();
        for path in specials.split(|byte| *byte == 0).filter(|path| !ignored.contains(path)) {
            self.miss_special(found, path.as_bstr());
        }
        Ok(())
    }

    fn note_record(&self, found: &mut Findings, record: &BStr) -> Result<()> {
        // Fields before the path: `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
        let (count, kind) = match record.first() {
            Some(b'1') => (8, b'1'),
            Some(b'u') => (10, b'u'),
            Some(b'?') => (1, b'?'),
            _ => bail!("an unknown kind of line"),
        };
        let mut fields = record.splitn(count + 1, |byte| *byte == b' ');
        let head: Vec<&[u8]> = fields.by_ref().take(count).collect();
        let path: BString = fields.next().context("it is too short")?.into();
        if kind == b'?' {
            match path.strip_suffix(b"/") {
                Some(nested) => found.miss(nested.as_bstr(), "nested repository"),
                None if path.starts_with(OWN_FOLDER) => {}
                None => {
                    found.wanted.insert(path, Wanted::Write { tracked: false });
                }
            }
            return Ok(());
        }
        let [staged, unstaged] = head[1] else { bail!("it has no two states") };
        if kind == b'u' {
            found.conflict = true;
            let wanted = match self.on_disk(path.as_bstr()).symlink_metadata() {
                Ok(_) => Wanted::Write { tracked: true },
                Err(_) => Wanted::Remove,
            };
            found.wanted.insert(path, wanted);
            return Ok(());
        }
        match staged {
            b'.' => {}
            b'D' => {
                found.staged.insert(path.clone(), None);
            }
            _ => {
                let kind = match head[4] {
                    b"100755" => EntryKind::BlobExecutable,
                    b"120000" => EntryKind::Link,
                    b"160000" => EntryKind::Commit,
                    _ => EntryKind::Blob,
                };
                let id = gix::ObjectId::from_hex(head[7]).context("it has no object id")?;
                found.staged.insert(path.clone(), Some((kind, id)));
            }
        }
        let wanted = match unstaged {
            b'.' => None,
            b'D' => Some(Wanted::Remove),
            b'A' => Some(Wanted::Write { tracked: false }),
            _ => Some(Wanted::Write { tracked: true }),
        };
        found.wanted.extend(wanted.map(|wanted| (path, wanted)));
        Ok(())
    }
}
