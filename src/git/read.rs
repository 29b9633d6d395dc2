//! Small questions to a repository.

use super::objects::written_tree;
use super::{Repository, from_gix};
use crate::model::names::Oid;
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::collections::BTreeSet;
use std::path::PathBuf;

impl Repository {
    /// The commit that `revision` names, as gitrevisions(7) has it; `None` when it names none.
    pub fn resolve(&self, revision: &str) -> Result<Option<Oid>> {
        if self.reftable {
            // gix would not find a single ref.
            let wanted = format!("{revision}^{{commit}}");
            let call = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
            let output = self.git(call).output()?;
            return Ok(
                Oid::new(output.stdout.trim().to_str_lossy()).filter(|_| output.code == Some(0))
            );
        }
        let Ok(found) = self.gix.rev_parse_single(revision) else { return Ok(None) };
        let commit = found.object()?.peel_tags_to_end()?;
        Ok((commit.kind == gix::object::Kind::Commit).then(|| from_gix(&commit.id)))
    }

    /// Where git looks for the user's own hooks, by the repository's own configuration; relative
    /// to a worktree's root. This handle and our git calls are pinned to no hooks at all, so the
    /// file itself is asked.
    pub fn users_hooks(&self) -> PathBuf {
        let own = || {
            let bytes = std::fs::read(self.common_dir.join("config")).ok()?;
            let parsed = gix::config::File::from_bytes_no_includes(
                &bytes,
                gix::config::file::Metadata::api(),
                gix::config::file::init::Options::default(),
            );
            let path = parsed.ok()?.string("core.hooksPath")?;
            Some(PathBuf::from(path.to_str().ok()?))
        };
        own().unwrap_or_else(|| self.common_dir.join("hooks"))
    }

    /// Every path in this worktree's index; those that are not UTF-8 are left out.
    pub fn tracked_paths(&self) -> Result<BTreeSet<String>> {
        let index = self.read_index()?;
        Ok(index
            .entries()
            .iter()
            .filter_map(|entry| Some(entry.path(&index).to_str().ok()?.to_owned()))
            .collect())
    }

    /// The tree of `commit` with each file as it is in the commit beside it: put back, or taken
    /// out where that one has none. A folder in the place of a file stays as it is.
    pub fn tree_with_paths_of(&self, commit: &Oid, sources: &[(Vec<u8>, Oid)]) -> Result<Oid> {
        let tree = self.tree_at(commit)?;
        let mut editor = tree.edit()?;
        let mut found = Vec::new();
        for (path, source) in sources {
            let entry = self.tree_at(source)?.lookup_entry(path.split(|byte| *byte == b'/'))?;
            let file = entry.filter(|entry| !entry.mode().is_tree());
            found.push((path, file.map(|entry| (entry.mode().kind(), entry.object_id()))));
        }
        // Removals first: a file may stand where a folder was, and the other way round.
        for (path, _) in found.iter().filter(|(_, entry)| entry.is_none()) {
            let there = tree.lookup_entry(path.split(|byte| *byte == b'/'))?;
            if there.is_some_and(|there| !there.mode().is_tree()) {
                editor.remove(path.as_bstr())?;
            }
        }
        for (path, entry) in &found {
            if let Some((kind, id)) = entry {
                editor.upsert(path.as_bstr(), *kind, *id)?;
            }
        }
        written_tree(&editor)
    }

    /// Whether a tracked file of this worktree differs from its last commit.
    pub fn has_changes(&self) -> Result<bool> {
        // gix sees no HEAD in reftable, and no way through a sparse index.
        if let Ok(dirty) = self.gix.is_dirty() {
            return Ok(dirty);
        }
        let call = self.git(["status", "--porcelain", "--untracked-files=no"]);
        Ok(!call.head(1)?.0.is_empty())
    }

    /// Mode and object of one path in a commit's tree.
    pub fn entry_at(&self, commit: &Oid, path: &[u8]) -> Result<Option<(u16, Oid)>> {
        let entry = self.tree_at(commit)?.lookup_entry(path.split(|byte| *byte == b'/'))?;
        Ok(entry.map(|entry| (entry.mode().value(), from_gix(&entry.object_id()))))
    }

    /// Ignored files in this worktree, first level of each, ours left out: what would be lost if
    /// the worktree were removed and is in no snapshot.
    pub fn ignored_paths(&self) -> Result<Vec<String>> {
        let status = ["status", "--porcelain", "-z", "--ignored=traditional"];
        let output = self.git(status).run()?;
        Ok(output
            .split(|byte| *byte == 0)
            .filter_map(|field| field.strip_prefix(b"!! "))
            .filter(|path| !path.starts_with(b".relay/"))
            .map(|path| path.to_str_lossy().into_owned())
            .collect())
    }
}
