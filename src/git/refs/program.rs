//! Refs through the git program: reftable, and branches, whose reflogs git keeps.

use super::{Refs, Value};
use crate::git::lock::{in_the_way, lock_path, sync_folder_of};
use crate::git::{Durability, Repository};
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use gix::bstr::ByteSlice;

pub(super) struct Program<'repo> {
    pub(super) repo: &'repo Repository,
}

impl Refs for Program<'_> {
    fn read(&self, name: &str) -> Result<Option<Value>> {
        let repo = self.repo;
        if name == "HEAD" {
            let call = repo.git(["symbolic-ref", "--quiet", name]);
            let words = call.words();
            let output = call.output()?;
            match output.code {
                Some(0) => {
                    let target = output.stdout.trim().to_str_lossy().into_owned();
                    return Ok(Some(Value::Symbolic(target)));
                }
                // Detached.
                Some(1) => {}
                _ => return Err(output.failure(&words)),
            }
        }
        // It resolves symbolic refs on its own. Only when quiet does its exit code tell a ref that
        // is not there from one that cannot be read.
        let show = |how| repo.git(["show-ref", "--verify", how, name]);
        let mut shown = show("--hash").output()?;
        if shown.code != Some(0) {
            match show("--quiet").output()?.code {
                Some(1) => return Ok(None),
                // It came to be in between.
                Some(0) => shown = show("--hash").output()?,
                _ => {}
            }
        }
        if shown.code != Some(0) {
            return Err(shown.failure(&show("--hash").words()));
        }
        let oid = Oid::new(shown.stdout.trim().to_str_lossy());
        Ok(Some(Value::Direct(oid.context("git show-ref named no object id")?)))
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Oid)>> {
        // A pattern matches whole parts of a name only; what is too much is dropped.
        let folder = prefix.rfind('/').map_or("", |end| &prefix[..end]);
        let call = self.repo.git(["for-each-ref", "--format=%(objectname) %(refname)", folder]);
        let output = call.run()?;
        let refs = output.lines().filter_map(|line| {
            let (oid, name) = line.to_str().ok()?.split_once(' ')?;
            name.starts_with(prefix).then(|| Some((name.to_owned(), Oid::new(oid)?)))?
        });
        Ok(refs.collect())
    }

    fn swap(&self, name: &str, new: &Oid, expected: Option<&Oid>, why: &str) -> Result<()> {
        let zero = "0".repeat(self.repo.gix.object_hash().len_in_hex());
        let old = expected.map_or(zero.as_str(), Oid::as_str);
        self.update(&["-m", why, name, new.as_str(), old], name, expected)?;
        if self.repo.durability == Durability::Full {
            let path = match self.repo.reftable {
                true => self.repo.common_dir.join("reftable/tables.list"),
                false => self.repo.ref_path(name),
            };
            sync_folder_of(&path)
                .with_context(|| format!("cannot flush the folder of `{}`", path.display()))?;
        }
        Ok(())
    }

    fn delete(&self, name: &str, expected: &Oid) -> Result<()> {
        if self.repo.read_ref(name)?.is_none() {
            return Ok(());
        }
        self.update(&["-d", name, expected.as_str()], name, Some(expected))
    }
}

impl Program<'_> {
    fn update(&self, args: &[&str], name: &str, expected: Option<&Oid>) -> Result<()> {
        let call = self.repo.git(["update-ref"]).args(args);
        let words = call.words();
        let output = self.repo.write_refs(call)?;
        if output.code == Some(0) {
            return Ok(());
        }
        self.repo.must_stand_at(name, expected)?;
        let locks = if self.repo.reftable {
            self.repo.stack_locks(&self.repo.git_dir)
        } else {
            // To delete a ref git locks the packed ones as well.
            let packed = self.repo.common_dir.join("packed-refs");
            vec![lock_path(&self.repo.ref_path(name)), lock_path(&packed)]
        };
        if let Some(lock) = locks.iter().find(|lock| lock.exists()) {
            bail!(in_the_way(lock));
        }
        Err(output.failure(&words))
    }
}
