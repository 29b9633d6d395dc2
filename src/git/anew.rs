//! A branch written anew as it would be had some of its commits never been made: what only they
//! hold is in none of the others then. The same each time it is asked for.

use super::objects::lines;
use super::{Repository, to_gix};
use crate::model::names::Oid;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};

/// Headers that say the same of a commit with other parents and another tree. A signature does not.
const KEPT_HEADERS: [&[u8]; 3] = [b"author ", b"committer ", b"encoding "];

impl Repository {
    /// `tip` without the commits `dropped`, as far back as `base`. Each other commit changes what it
    /// changed before, by whom and when and why; one below which nothing is dropped stays what it is.
    pub fn without(&self, dropped: &BTreeSet<Oid>, base: &Oid, tip: &Oid) -> Result<Oid> {
        let walk = ["rev-list", "--topo-order", "--reverse", "--parents", tip.as_str()];
        let walk = self.git(walk).args(["--not", base.as_str(), "--"]).run()?;
        let mut anew: BTreeMap<Oid, Oid> = BTreeMap::new();
        for line in lines(&walk) {
            let mut names = line.split(' ').filter_map(Oid::new);
            let commit = names.next().context("git rev-list named no commit")?;
            let was: Vec<Oid> = names.collect();
            let parents: Vec<Oid> =
                was.iter().map(|it| anew.get(it).unwrap_or(it).clone()).collect();
            let written = if dropped.contains(&commit) {
                self.in_place_of(&commit, &parents, base)?
            } else if parents == was {
                continue;
            } else {
                let touched = self.touched_paths(&was[0], &commit)?.into_iter();
                let own: Vec<_> = touched.map(|path| (path, commit.clone())).collect();
                let tree = self.tree_with_paths_of(&parents[0], &own)?;
                self.write_commit_like(&commit, &tree, &parents)?
            };
            anew.insert(commit, written);
        }
        Ok(anew.remove(tip).unwrap_or_else(|| tip.clone()))
    }

    /// What a dropped commit stood on. Where that is several lines of history (HEAD was not on the
    /// branch), it is what they hold together, the first before the others.
    fn in_place_of(&self, dropped: &Oid, parents: &[Oid], base: &Oid) -> Result<Oid> {
        let mut tips: Vec<&Oid> = Vec::new();
        for parent in parents {
            let mut is_below = tips.contains(&parent);
            for other in parents.iter().filter(|other| *other != parent) {
                is_below = is_below || self.is_ancestor(parent, other)?;
            }
            if !is_below {
                tips.push(parent);
            }
        }
        let [first, others @ ..] = &tips[..] else {
            return Ok(parents.first().unwrap_or(base).clone());
        };
        let Some(last) = others.last() else { return Ok((*first).clone()) };
        let grew = self.is_ancestor(base, first)?;
        let mut own = Vec::new();
        for path in self.touched_paths(base, first)? {
            if grew || self.entry_at(first, &path)?.is_some() {
                own.push((path, (*first).clone()));
            }
        }
        let tree = self.tree_with_paths_of(last, &own)?;
        self.write_commit_like(dropped, &tree, &tips.into_iter().cloned().collect::<Vec<_>>())
    }

    /// Another commit's author, committer, dates and message, byte for byte, over another tree.
    fn write_commit_like(&self, like: &Oid, tree: &Oid, parents: &[Oid]) -> Result<Oid> {
        let data = self.intact(to_gix(like))?.detach().data;
        let end = data.find(b"\n\n").map_or(data.len(), |end| end + 1);
        let mut bytes = format!("tree {tree}\n").into_bytes();
        for parent in parents {
            bytes.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        for line in data[..end].split_inclusive(|byte| *byte == b'\n') {
            if KEPT_HEADERS.iter().any(|header| line.starts_with(header)) {
                bytes.extend_from_slice(line);
            }
        }
        bytes.extend_from_slice(&data[end..]);
        self.write_commit_bytes(&bytes)
    }
}
