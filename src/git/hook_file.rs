//! The post-commit hook for people's shells: a marked block at the end of the repository's own
//! hook file, never before what the user has there.
//!
//! Written only into the hooks folder that belongs to this clone. Where another tool keeps the
//! hooks, or the file is tracked, it is said what to add instead. No configuration key is set.

use super::{Repository, normal};
use crate::host::files;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const BLOCK: &str = include_str!("../../hooks/post-commit.sh");
const BEGIN: &str = "# >>> git-relay";
const END: &str = "# <<< git-relay";
/// What stands above the block where there was no hook.
const SHEBANG: &str = "#!/bin/sh\n";
/// Beside the hook file: the user's own hook, where no block can follow it in the same file.
const KEPT: &str = "post-commit.before-git-relay";
/// Above the block then.
const RUNS_KEPT: &str = "#!/bin/sh\n\
    # Made by git relay init: the hook that stood here lies beside this file, and runs first.\n\
    \"$0.before-git-relay\" \"$@\"\n";
const HOOK_BYTES_MOST: u64 = 16 << 20;

/// The one line for a hook file that is not ours to write: a shell's own test, then the entry.
pub const LINE: &str = r#"[ ! -e "$GIT_DIR/relay-inbox" ] || git-relay hook git post-commit || :"#;
const LEFTHOOK_LINE: &str =
    "post-commit: {jobs: [{name: git-relay, run: git-relay hook git post-commit}]}";
const PRE_COMMIT_LINE: &str = "- {repo: local, hooks: [{id: git-relay, name: git-relay, \
    language: system, entry: git-relay hook git post-commit, stages: [post-commit], \
    always_run: true, pass_filenames: false}]}";

/// How a commit made by hand in a session's worktree comes to be noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By our block in this file, or by a line of the user's there.
    Block(PathBuf),
    /// By a line the user adds: what keeps us from doing it, the line, and where it goes.
    ByHand { why: String, line: String, file: String },
}

impl Repository {
    /// The folder git takes hooks from in this worktree, by the user's configuration.
    pub fn hooks_folder(&self) -> Result<PathBuf> {
        Ok(match self.users_hooks_path()? {
            Some(path) => self.work_tree.join(path),
            None => self.common_dir.join("hooks"),
        })
    }

    /// `core.hooksPath` as the user's files have it; the last one counts, as for git.
    fn users_hooks_path(&self) -> Result<Option<PathBuf>> {
        let asked = ["config", "--show-scope", "--type=path", "-z", "--get-all", "core.hooksPath"];
        let output = self.git(asked).output()?;
        let mut fields = output.stdout.split(|byte| *byte == 0);
        let mut found = None;
        while let (Some(scope), Some(value)) = (fields.next(), fields.next()) {
            // What our own calls pin is no setting of the user's.
            if scope != b"command" {
                found = Some(PathBuf::from(value.to_os_str()?));
            }
        }
        Ok(found)
    }

    /// Puts the block where it belongs, and says by what way commits are noted from then on; the
    /// flag tells whether anything was written. Safe to repeat.
    pub fn install_hook(&self, program: &Path) -> Result<(Way, bool)> {
        if let Some(way) = self.kept_by_others()? {
            return Ok((way, false));
        }
        let path = self.common_dir.join("hooks/post-commit");
        let quoted = program.to_string_lossy().replace('\'', "'\\''");
        let block = BLOCK.replace("@PROGRAM@", &quoted);
        let old = files::read(&path, HOOK_BYTES_MOST)?;
        let Some(body) = without_block(old.as_deref().unwrap_or_default()) else {
            let why = format!("the marks of git relay's block in '{}' are broken", path.display());
            let file = path.display().to_string();
            return Ok((Way::ByHand { why, line: LINE.to_owned(), file }, false));
        };
        if has_entry(&body) {
            return Ok((Way::Block(path), false));
        }
        let head = match old {
            None => SHEBANG.as_bytes().to_vec(),
            Some(_) if can_be_followed(&body) => body,
            Some(_) => {
                // Linked, then replaced in one piece: at no moment is the user's hook missing.
                let kept = path.with_file_name(KEPT);
                anyhow::ensure!(!kept.exists(), "'{}' is in the way", kept.display());
                fs::hard_link(&path, &kept)
                    .with_context(|| format!("cannot make '{}'", kept.display()))?;
                RUNS_KEPT.as_bytes().to_vec()
            }
        };
        let mut new = head;
        if !new.ends_with(b"\n") {
            new.push(b'\n');
        }
        new.extend_from_slice(block.as_bytes());
        if files::read(&path, HOOK_BYTES_MOST)?.as_deref() == Some(new.as_slice()) {
            return Ok((Way::Block(path), false));
        }
        let mode = fs::metadata(&path).map_or(0o755, |found| found.permissions().mode() & 0o777);
        files::replace(&path, &new, mode)?;
        Ok((Way::Block(path), true))
    }

    /// Takes the block away again, and with it a file that held nothing else; says which.
    pub fn remove_hook(&self) -> Result<Option<PathBuf>> {
        let path = self.common_dir.join("hooks/post-commit");
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Ok(None);
        }
        let Some(old) = files::read(&path, HOOK_BYTES_MOST)? else { return Ok(None) };
        let Some(body) = without_block(&old).filter(|body| *body != old) else { return Ok(None) };
        let kept = path.with_file_name(KEPT);
        if body == RUNS_KEPT.as_bytes() && kept.exists() {
            fs::rename(&kept, &path)
                .with_context(|| format!("cannot put back '{}'", path.display()))?;
        } else if body == SHEBANG.as_bytes() {
            files::remove(&path)?;
        } else {
            let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
            files::replace(&path, &body, mode)?;
        }
        Ok(Some(path))
    }

    /// Whether the block stands in the repository's own hook file.
    pub fn has_block(&self) -> Result<bool> {
        let path = self.common_dir.join("hooks/post-commit");
        let text = files::read(&path, HOOK_BYTES_MOST)?.unwrap_or_default();
        Ok(without_block(&text).is_some_and(|body| body != text))
    }

    /// What to add by hand, where the hook file is another tool's or tracked.
    pub fn kept_by_others(&self) -> Result<Option<Way>> {
        let by_hand = |why: String, line: &str, file: &str| {
            Ok(Some(Way::ByHand { why, line: line.to_owned(), file: file.to_owned() }))
        };
        let folder = self.hooks_folder()?;
        let path = folder.join("post-commit");
        if folder.iter().any(|part| part == ".husky") {
            return by_hand("husky keeps the hooks here".to_owned(), LINE, ".husky/post-commit");
        }
        let text = files::read(&path, HOOK_BYTES_MOST).ok().flatten().unwrap_or_default();
        let is = |word: &str| memchr::memmem::find(&text, word.as_bytes()).is_some();
        if is("lefthook") {
            let why = "lefthook keeps the hooks here and writes them anew".to_owned();
            return by_hand(why, LEFTHOOK_LINE, "lefthook-local.yml");
        }
        if is("generated by pre-commit") {
            let why = "pre-commit keeps this hook and writes it anew".to_owned();
            return by_hand(why, PRE_COMMIT_LINE, ".pre-commit-config.yaml, below 'repos:'");
        }
        let shown = path.display().to_string();
        if folder != self.common_dir.join("hooks") {
            let why = format!("core.hooksPath is '{}'", folder.display());
            return by_hand(why, LINE, &shown);
        }
        // Through a link it would be written into the user's files.
        let leads_away = normal(&folder).is_ok_and(|real| real != folder)
            || fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file());
        if leads_away {
            return by_hand(format!("'{shown}' is a link, or leads through one"), LINE, &shown);
        }
        if is("overcommit") {
            return by_hand("overcommit keeps the hooks here".to_owned(), LINE, &shown);
        }
        let switched_off = fs::metadata(&path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 == 0);
        if switched_off {
            let why = format!("'{shown}' is not executable, so git does not run it");
            return by_hand(why, LINE, &shown);
        }
        Ok(None)
    }
}

/// Whether the user calls our entry there already.
fn has_entry(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"git-relay hook git post-commit").is_some()
}

/// The file without our block; `None` when its marks do not pair.
fn without_block(text: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut inside = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match (inside, line.starts_with(BEGIN.as_bytes()), line.starts_with(END.as_bytes())) {
            (false, true, _) => inside = true,
            (true, false, true) => inside = false,
            (false, false, true) | (true, true, _) => return None,
            (false, false, false) => body.extend_from_slice(line),
            (true, false, false) => {}
        }
    }
    (!inside).then_some(body)
}

/// Whether lines at the end of the file are run by a POSIX shell: it is a script of one, and its
/// last line does not leave it.
fn can_be_followed(body: &[u8]) -> bool {
    if body.contains(&0) {
        return false;
    }
    let text = body.to_str_lossy();
    // Without a first line of that kind git lets `sh` read it.
    let is_shell =
        text.lines().next().and_then(|line| line.strip_prefix("#!")).is_none_or(|line| {
            let mut words = line.split([' ', '\t', '/']).filter(|word| !word.is_empty());
            words.any(|word| ["sh", "bash", "dash", "ksh", "zsh", "ash"].contains(&word))
        });
    let last =
        text.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let leaves = last.is_some_and(|line| {
        ["exec", "exit"].contains(&line.split([' ', ';']).next().unwrap_or_default())
    });
    is_shell && !leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_out_and_nothing_else() {
        let user = b"#!/bin/sh\necho mine\n".to_vec();
        let with = [user.as_slice(), BLOCK.as_bytes(), b"echo later\n"].concat();
        assert_eq!(without_block(&with).unwrap(), b"#!/bin/sh\necho mine\necho later\n");
        assert_eq!(without_block(&user).unwrap(), user);
        assert_eq!(without_block(b"# >>> git-relay\necho\n"), None);
        assert_eq!(without_block(b"# <<< git-relay\n"), None);
    }

    #[test]
    fn only_a_shell_script_that_runs_to_its_end_is_followed() {
        for (text, followed) in [
            ("#!/bin/sh\necho\n", true),
            ("#!/usr/bin/env bash\necho\n", true),
            ("#!/usr/bin/env -S bash -e\necho\n", true),
            ("echo without a first line\n", true),
            ("#!/usr/bin/env python3\nprint()\n", false),
            ("#!/usr/bin/fish\necho\n", false),
            ("#!/bin/sh\nexec other \"$@\"\n", false),
            ("#!/bin/sh\nexit 0\n# the end\n\n", false),
            ("\u{7f}ELF\0", false),
        ] {
            assert_eq!(can_be_followed(text.as_bytes()), followed, "{text:?}");
        }
    }
}
