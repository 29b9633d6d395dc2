//! Whether a relay can be had here at all; asked where a person begins, never in a hook.

use super::Repository;
use crate::error::Fault;
use anyhow::{Result, bail};

/// The first with `merge-tree --write-tree`.
const OLDEST: (u32, u32) = (2, 38);
/// The first that knows reftable.
const OLDEST_FOR_REFTABLE: (u32, u32) = (2, 45);

impl Repository {
    /// # Errors
    /// Environment: git is too old for what a relay needs of it here. Refused: agents are told of
    /// this place in JSON, TOML and words, which cannot hold its name.
    pub fn can_relay(&self) -> Result<()> {
        for path in [Some(&self.common_dir), self.main_work_tree.as_ref()].into_iter().flatten() {
            if path.to_str().is_none() {
                bail!(
                    Fault::refused(format!("the path `{}` is not UTF-8", path.display()))
                        .hint("move the repository to a folder with another name")
                );
            }
        }
        let output = self.git(["version"]).run()?;
        let said = String::from_utf8_lossy(&output);
        let (oldest, what) = match self.is_reftable() {
            true => (OLDEST_FOR_REFTABLE, "refs in reftable need"),
            false => (OLDEST, "a relay needs"),
        };
        match parse(&said) {
            Some(found) if found < oldest => bail!(
                Fault::environment(format!(
                    "{what} git {}.{} or newer; this is {}.{}",
                    oldest.0, oldest.1, found.0, found.1
                ))
                .hint(format!("install git {}.{} or newer", oldest.0, oldest.1))
            ),
            // A version of another form: git's own words will tell if it cannot do something.
            _ => Ok(()),
        }
    }
}

/// `git version 2.39.5 (Apple Git-154)` → 2, 39.
fn parse(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("git version ")?.split('.').map(str::trim);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn versions_as_distributions_write_them() {
        for (said, wanted) in [
            ("git version 2.39.5\n", Some((2, 39))),
            ("git version 2.39.5 (Apple Git-154)\n", Some((2, 39))),
            ("git version 2.45.windows.1\n", Some((2, 45))),
            ("git version 2.51.0-rc1\n", Some((2, 51))),
            ("git version next\n", None),
        ] {
            assert_eq!(parse(said), wanted, "{said}");
        }
    }
}
