//! What a fresh session worktree lacks: ignored files that somebody listed, and submodules.

use super::{Repository, worktree};
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// In gitignore's syntax: which ignored files a session's worktree gets a copy of.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
const INCLUDE_BYTES_MOST: u64 = 256 * 1024;
const FILES_MOST: usize = 10_000;
const FILE_BYTES_MOST: u64 = 100 << 20;
const BYTES_MOST: u64 = 1 << 30;

/// What was copied, and what was not and why.
#[derive(Debug, Default)]
pub struct Included {
    pub copied: usize,
    /// Path and reason.
    pub left: Vec<(PathBuf, &'static str)>,
}

impl Repository {
    /// Copies the files of this worktree that [`INCLUDE_FILE`] matches and that git ignores, here
    /// and in `session`, into that worktree. No link is followed, nothing there is replaced.
    pub fn copy_included(&self, session: &Self) -> Result<Included> {
        let mut done = Included::default();
        let list = self.work_tree.join(INCLUDE_FILE);
        let Ok(found) = fs::symlink_metadata(&list) else { return Ok(done) };
        if !found.is_file() || found.len() > INCLUDE_BYTES_MOST {
            done.left.push((INCLUDE_FILE.into(), "it is no plain file, or too large"));
            return Ok(done);
        }
        let matched = self
            .git(["ls-files", "-z", "--others", "--ignored"])
            .args([format!("--exclude-from={}", list.display())])
            .run()?;
        let mut asked = Vec::new();
        for name in self.ignored_of(&matched)?.split(|byte| *byte == 0) {
            let path = Path::new(OsStr::from_bytes(name));
            // Git itself fails on a path beyond a link.
            if leads_through_link(&session.work_tree, path) {
                done.left.push((path.to_owned(), "it leads through a link"));
            } else if !name.is_empty() {
                asked.extend_from_slice(name);
                asked.push(0);
            }
        }
        let ignored = session.ignored_of(&asked)?;
        let mut bytes = 0;
        for name in ignored.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let path = PathBuf::from(OsStr::from_bytes(name));
            // Our own, and repositories inside this one.
            if path.starts_with(".relay") || name.ends_with(b"/") {
                continue;
            }
            match copy_one(&self.work_tree, &session.work_tree, &path, &mut bytes, done.copied) {
                Ok(Copied::Yes) => done.copied += 1,
                Ok(Copied::There) => {}
                Ok(Copied::Left(why)) => done.left.push((path, why)),
                Err(_) => done.left.push((path, "it cannot be read, or not be written there")),
            }
        }
        Ok(done)
    }

    /// Those of the paths (ended by NUL) that git ignores in this worktree.
    pub(super) fn ignored_of(&self, paths: &[u8]) -> Result<Vec<u8>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let output = self.git(["check-ignore", "-z", "--stdin"]).stdin(paths).output()?;
        match output.code {
            Some(0 | 1) => Ok(output.stdout),
            _ => Err(output.failure("git check-ignore")),
        }
    }

    /// Fills the submodules of this fresh session worktree from the repositories that the main
    /// worktree has of them; nothing is fetched. Names those that cannot be filled, with a reason.
    pub fn fill_submodules(&self, main: &Self) -> Result<Vec<(String, String)>> {
        let mut left = Vec::new();
        if !fs::symlink_metadata(self.work_tree.join(".gitmodules")).is_ok_and(|f| f.is_file()) {
            return Ok(left);
        }
        let asked = ["config", "-z", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
        let listed = self.git(asked).output()?.stdout;
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let (Some((key, path)), true) = (entry.split_once_str("\n"), entry.is_utf8()) else {
                continue;
            };
            let (key, path) = (key.to_str_lossy(), path.to_str_lossy());
            let name = &key["submodule.".len()..key.len() - ".path".len()];
            if !is_inside(Path::new(name)) || !is_inside(Path::new(&*path)) || name.contains('=') {
                left.push((path.into_owned(), "its name or path is odd".to_owned()));
                continue;
            }
            let Some(source) = main.submodule_source(name, &path) else {
                left.push((path.into_owned(), "it is not filled in the main worktree".to_owned()));
                continue;
            };
            if let Err(error) = self.fill_one(name, &path, &source) {
                left.push((path.into_owned(), format!("{error:#}")));
            }
        }
        Ok(left)
    }

    /// The main worktree's own repository of a submodule.
    fn submodule_source(&self, name: &str, path: &str) -> Option<PathBuf> {
        let candidates =
            [self.common_dir.join("modules").join(name), self.work_tree.join(path).join(".git")];
        candidates.into_iter().find(|git_dir| git_dir.join("HEAD").is_file())
    }

    fn fill_one(&self, name: &str, path: &str, source: &Path) -> Result<()> {
        let own = self.git_dir.join("modules").join(name);
        // Of an attempt that was killed: nobody has worked there yet.
        worktree::remove_all(&own)?;
        crate::host::files::remove(&self.work_tree.join(path).join(".git"))?;
        // The address is given for this one call: no configuration of the repository changes.
        let url = format!("submodule.{name}.url={}", source.display());
        let how = format!("submodule.{name}.update=checkout");
        let settings = ["-c", &url, "-c", &how, "-c", "protocol.file.allow=always"];
        self.git(settings).args(["submodule", "--quiet", "update", "--", path]).run()?;
        let origin = |config: &Path| {
            let call = self.git(["config", "-f"]).args([config]);
            call.args(["--get", "remote.origin.url"]).output()
        };
        let there = origin(&source.join("config"))?.stdout;
        if own.join("config").is_file() && !there.trim().is_empty() {
            let call = self.git(["config", "-f"]).args([own.join("config")]);
            call.args(["remote.origin.url", &there.trim().to_str_lossy()]).run()?;
        }
        Ok(())
    }
}

enum Copied {
    Yes,
    There,
    Left(&'static str),
}

fn copy_one(from: &Path, to: &Path, path: &Path, bytes: &mut u64, count: usize) -> Result<Copied> {
    let ours = to.join(".relay");
    let linked = leads_through_link(from, path) || leads_through_link(to, path);
    if !is_inside(path) || linked || fs::symlink_metadata(&ours).is_ok_and(|f| f.is_symlink()) {
        return Ok(Copied::Left("it leads through a link"));
    }
    let (source, target) = (from.join(path), to.join(path));
    let found = fs::symlink_metadata(&source)?;
    if !found.is_file() {
        return Ok(Copied::Left("it is no plain file"));
    }
    if fs::symlink_metadata(&target).is_ok() {
        return Ok(Copied::There);
    }
    if found.len() > FILE_BYTES_MOST {
        return Ok(Copied::Left("it is larger than 100 MiB"));
    }
    if count >= FILES_MOST || *bytes + found.len() > BYTES_MOST {
        return Ok(Copied::Left("that would be more than 10,000 files or 1 GiB"));
    }
    *bytes += found.len();
    let folder = target.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)?;
    // In our own folder until it is whole: what a killed command leaves there git does not see.
    fs::create_dir_all(&ours)?;
    let mode = fs::Permissions::from_mode(found.permissions().mode() & 0o777);
    let mut new = tempfile::Builder::new().permissions(mode).tempfile_in(&ours)?;
    io::copy(&mut File::open(&source)?, &mut new)?;
    new.persist_noclobber(&target).map_err(|error| error.error)?;
    Ok(Copied::Yes)
}

/// Whether the path stays below the folder it is taken from.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
        && path.components().next().is_some_and(|first| first.as_os_str() != ".git")
}

/// Whether a folder on the way to `path` is a link.
fn leads_through_link(root: &Path, path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
        .any(|above| fs::symlink_metadata(root.join(above)).is_ok_and(|found| found.is_symlink()))
}
