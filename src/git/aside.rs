//! Changes in a worktree of the user's that make way for a result which holds them: kept as one
//! commit (below it what was staged), cleared, and put back where the result does not come.

use super::Repository;
use crate::host::files;
use crate::model::names::Oid;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

impl Repository {
    /// A commit of `head` with `paths` as the capture `now` holds them; its second parent has them
    /// as they are staged. Nothing is moved.
    pub fn aside(
        &self,
        paths: &[Vec<u8>],
        head: &Oid,
        now: &Oid,
        message: &str,
        time: i64,
    ) -> Result<Oid> {
        let staged = self.staged_tree()?;
        let staged = self.write_commit(&staged, std::slice::from_ref(head), message, time)?;
        let of = |from: &Oid| paths.iter().map(|path| (path.clone(), from.clone())).collect();
        let sources: Vec<(Vec<u8>, Oid)> = of(&staged);
        let staged = self.tree_with_paths_of(head, &sources)?;
        let staged = self.write_commit(&staged, std::slice::from_ref(head), message, time)?;
        let sources: Vec<(Vec<u8>, Oid)> = of(now);
        let tree = self.tree_with_paths_of(head, &sources)?;
        self.write_commit(&tree, &[head.clone(), staged], message, time)
    }

    /// The tree that the index stands for; asking git for it would have it write the index.
    fn staged_tree(&self) -> Result<Oid> {
        let copy = self.aside_index();
        files::remove(&copy)?;
        fs::copy(self.index_path(), &copy)
            .with_context(|| format!("cannot copy `{}`", self.index_path().display()))?;
        let tree = self.tree_of_index(&copy).context("the index has a tree");
        files::remove(&copy)?;
        tree
    }

    fn aside_index(&self) -> PathBuf {
        self.git_dir.join("relay-aside-index")
    }

    /// Takes the changes of `aside` out of index and files.
    pub fn clear_for(&self, aside: &Oid) -> Result<()> {
        let (head, staged) = self.parents_of_aside(aside)?;
        let paths = self.paths_aside(&head, &staged, aside)?;
        self.restore(&paths.iter().collect::<Vec<_>>(), &head)
    }

    /// Puts them back; they are as the commit below them has them now.
    pub(super) fn put_back(&self, aside: &Oid) -> Result<()> {
        let (head, staged) = self.parents_of_aside(aside)?;
        let paths = self.paths_aside(&head, &staged, aside)?;
        let paths: Vec<&Vec<u8>> = paths.iter().collect();
        // Files first, by an index of our own; then only the index is as it was.
        let index = self.aside_index();
        files::remove(&index)?;
        self.git(["read-tree", aside.as_str()]).env("GIT_INDEX_FILE", &index).run()?;
        let mut there = Vec::new();
        for path in &paths {
            match self.entry_at(aside, path)? {
                Some(_) => {
                    there.extend_from_slice(path);
                    there.push(0);
                }
                None => self.remove_file(path)?,
            }
        }
        if !there.is_empty() {
            let call = self.git(["checkout-index", "-f", "-z", "--stdin"]).stdin(there);
            call.env("GIT_INDEX_FILE", &index).run()?;
        }
        files::remove(&index)?;
        self.stage(&paths, &staged)?;
        // Exit 1 only says that something differs.
        self.git(["update-index", "-q", "--refresh"]).output()?;
        Ok(())
    }

    fn parents_of_aside(&self, aside: &Oid) -> Result<(Oid, Oid)> {
        let mut parents = self.read_commit(aside)?.parents.into_iter();
        parents.next().zip(parents.next()).context("what was set aside has two parents")
    }

    fn paths_aside(&self, head: &Oid, staged: &Oid, aside: &Oid) -> Result<Vec<Vec<u8>>> {
        let mut paths = self.touched_paths(head, aside)?;
        paths.extend(self.touched_paths(head, staged)?);
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}
