//! Refs through the git program: reftable, and branches, whose reflogs git keeps.

use super::{Refs, Value};
use crate::error::Fault;
use crate::git::lock::{lock_path, sync_folder_of};
use crate::git::{Durability, Repository};
use crate::model::names::Oid;
use anyhow::{Context, Result, bail};
use gix::bstr::ByteSlice;

/// Git gives up on another's lock after 100 ms by itself.
const LOCK_PATIENCE: [&str; 4] =
    ["-c", "core.filesRefLockTimeout=2000", "-c", "reftable.lockTimeout=2000"];

pub(super) struct Program<'repo> {
    pub(super) repo: &'repo Repository,
}

impl Refs for Program<'_> {
    fn read(&self, name: &str) -> Result<Option<Value>> {
        let repo = self.repo;
        if name == "HEAD" {
            let output = repo.git(["symbolic-ref", "--quiet", name]).output()?;
            if output.code == Some(0) {
                let target = output.stdout.trim().to_str_lossy().into_owned();
                return Ok(Some(Value::Symbolic(target)));
            }
        }
        // It resolves symbolic refs on its own.
        let output = repo.git(["show-ref", "--verify", "--hash", "--quiet", name]).output()?;
        if output.code == Some(1) {
            return Ok(None);
        }
        let call = repo.git(["show-ref", "--verify", "--hash", name]);
        let oid = Oid::new(call.run()?.trim().to_str_lossy());
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
        if self.repo.durability == Durability::Full && !self.repo.reftable {
            let path = self.repo.ref_path(name);
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
        let call = self.repo.git(LOCK_PATIENCE).args(["update-ref"]).args(args);
        let words = call.words();
        let output = call.output()?;
        if output.code == Some(0) {
            return Ok(());
        }
        self.repo.must_stand_at(name, expected)?;
        let locks = if self.repo.reftable {
            vec![self.repo.common_dir.join("reftable/tables.list.lock")]
        } else {
            // To delete a ref git locks the packed ones as well.
            let packed = self.repo.common_dir.join("packed-refs");
            vec![lock_path(&self.repo.ref_path(name)), lock_path(&packed)]
        };
        if let Some(lock) = locks.iter().find(|lock| lock.exists()) {
            bail!(Fault::refused(format!("`{}` is in the way", lock.display())).hint(format!(
                "a git command is at work there, or died; if none runs: rm '{}'",
                lock.display()
            )));
        }
        Err(output.failure(&words))
    }
}
