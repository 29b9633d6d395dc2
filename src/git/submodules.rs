//! Submodules hold work of their own that no commit of ours can hold: their commit is recorded,
//! what is not committed inside is named.

use super::survey::Findings;
use super::{Repository, normal};
use anyhow::Result;
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use std::fs;
use std::path::{Path, PathBuf};

impl Repository {
    pub(super) fn look_into_submodules(
        &self,
        found: &mut Findings,
        index: &gix::index::File,
    ) -> Result<()> {
        for entry in index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT) {
            let path = entry.path(index);
            let on_disk = self.on_disk(path);
            if !on_disk.join(".git").exists() {
                continue;
            }
            let Some(git_dir) = self.git_dir_kept_here(&on_disk) else {
                // Its configuration is not guarded, and looking at it would obey that.
                found.miss(path, "repository kept inside the worktree: not looked into");
                continue;
            };
            let status = self
                .git(["status", "--porcelain", "--untracked-files=normal"])
                .env("GIT_DIR", &git_dir)
                .env("GIT_COMMON_DIR", &git_dir)
                .env("GIT_WORK_TREE", &on_disk)
                .directory(&on_disk)
                .head(1);
            match status {
                Ok((output, _)) if output.is_empty() => {}
                Ok(_) => found.miss(path, "submodule with changes that are not committed in it"),
                Err(error) => {
                    let why = format!("submodule that cannot be looked into: {error:#}");
                    found.miss(path.as_bstr(), why);
                }
            }
        }
        Ok(())
    }

    /// The git dir of a submodule, if it is one of those whose configuration is guarded.
    fn git_dir_kept_here(&self, submodule: &Path) -> Option<PathBuf> {
        let text = fs::read_to_string(submodule.join(".git")).ok()?;
        let git_dir = normal(&submodule.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
        [&self.git_dir, &self.common_dir]
            .iter()
            .any(|base| git_dir.starts_with(base.join("modules")))
            .then_some(git_dir)
    }
}
