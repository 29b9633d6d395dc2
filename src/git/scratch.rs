//! A worktree seen through a git dir of its own: whatever is written goes into a scratch folder,
//! whatever is read comes from the repository. For commands that only show what they would do.

use super::Repository;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

impl Repository {
    /// This linked worktree again, with index and new objects below `folder`, which is the
    /// caller's to remove.
    pub fn scratch(&self, folder: &Path) -> Result<Self> {
        let failed = || format!("cannot make a scratch git dir in `{}`", folder.display());
        let common = folder.join("git");
        self.lay_common(&common).with_context(failed)?;
        let name = self.git_dir.file_name().context("a worktree has a name")?;
        let git_dir = common.join("worktrees").join(name);
        copy_folder(&self.git_dir, &git_dir).with_context(failed)?;
        let mut scratch = Self::open_pinned(&common, &git_dir, &self.work_tree)?;
        scratch.set_durability(super::Durability::None);
        Ok(scratch)
    }

    fn lay_common(&self, common: &Path) -> std::io::Result<()> {
        let objects = common.join("objects");
        fs::create_dir_all(objects.join("info"))?;
        fs::create_dir_all(objects.join("pack"))?;
        let real = self.common_dir.join("objects");
        fs::write(objects.join("info/alternates"), quoted(real.as_os_str().as_bytes()))?;
        for entry in fs::read_dir(&self.common_dir)? {
            let entry = entry?;
            let (name, to) = (entry.file_name(), common.join(entry.file_name()));
            match name.as_bytes() {
                b"objects" | b"worktrees" | b"relay" | b"hooks" | b"index" => {}
                // A link there would be a symbolic ref to git.
                b"HEAD" => fs::copy(entry.path(), to).map(drop)?,
                name if name.ends_with(b".lock") => {}
                _ => symlink(entry.path(), to)?,
            }
        }
        Ok(())
    }
}

/// A line of `info/alternates`.
fn quoted(path: &[u8]) -> Vec<u8> {
    if !path.contains(&b'\n') {
        return [path, b"\n"].concat();
    }
    let mut line = b"\"".to_vec();
    for byte in path {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            other => line.push(*other),
        }
    }
    line.extend_from_slice(b"\"\n");
    line
}

/// The small files that are a worktree's git dir; locks of others are left out.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() && !entry.file_name().as_bytes().ends_with(b".lock") {
            // Git may be replacing it in this moment.
            match fs::copy(entry.path(), &target) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done.map(drop)?,
            }
        }
    }
    Ok(())
}
