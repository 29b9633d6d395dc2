//! Facts about a repository's own configuration that could run a program, or send git elsewhere,
//! at our next call: compared before and after a leg, because an agent may rewrite them.
//!
//! Read here byte by byte: git is not run, nothing found is obeyed. Files that are included are
//! read too, whatever the condition. What our own calls silence (hooks, the file-system monitor) is
//! told apart: shown, no stop.

use super::changes::sha256;
use crate::host::env;
use crate::model::names::Digest;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A configuration file longer than this is a fact by its digest alone.
const FILE_BYTES_MOST: u64 = 4 << 20;
/// Submodules may hold submodules, this deep.
const MODULE_DEPTH_MOST: usize = 8;
/// Git follows no longer chain of includes.
const INCLUDE_DEPTH_MOST: usize = 10;
/// Of our own files in the common git dir: whom we believe, and what we would run.
const OWN_FILES: [&str; 3] = ["relay/allowed", "relay/allowed_signers", "relay/config.toml"];

/// How hooks and agents call git relay: a link in the common git dir.
pub const PROGRAM: &str = "relay/bin/git-relay";

/// The facts that stop a session when they change. `git_dir` is the worktree's own.
pub fn guard_facts(
    common_dir: &Path,
    git_dir: &Path,
    work_tree: &Path,
) -> Result<BTreeMap<String, String>> {
    let mut facts = BTreeMap::new();
    raw_fact(&mut facts, ".git", &work_tree.join(".git"))?;
    for name in ["commondir", "gitdir"] {
        raw_fact(&mut facts, name, &git_dir.join(name))?;
    }
    fact_unless_empty(&mut facts, "config.worktree", &git_dir.join("config.worktree"))?;
    let alternates = "objects/info/alternates";
    fact_unless_empty(&mut facts, alternates, &common_dir.join(alternates))?;
    config_facts(&mut facts, "", &common_dir.join("config"), runs_or_moves)?;
    // Where `extensions.worktreeConfig` is on, the main worktree has a file of its own, and our
    // calls from there obey it.
    let main = common_dir.join("config.worktree");
    config_facts(&mut facts, "main worktree's ", &main, runs_or_moves)?;
    for base in [common_dir, git_dir] {
        module_facts(&mut facts, base, "", MODULE_DEPTH_MOST)?;
    }
    Ok(facts)
}

/// The like of them outside the repository's own configuration: in that of the user and of the
/// machine, and in the files of ours that say whom to believe and what to run.
pub fn outer_facts(common_dir: &Path) -> Result<BTreeMap<String, String>> {
    let mut facts = BTreeMap::new();
    for (name, path) in outer_files() {
        config_facts(&mut facts, name, &path, runs_or_moves)?;
    }
    for name in OWN_FILES {
        raw_fact(&mut facts, name, &common_dir.join(name))?;
    }
    // Where it leads, and not what is there: an update puts another program in the same place.
    let program = common_dir.join(PROGRAM);
    match fs::read_link(&program) {
        Ok(target) => {
            facts.insert(PROGRAM.to_owned(), format!("link to {}", target.display()));
        }
        Err(_) => raw_fact(&mut facts, PROGRAM, &program)?,
    }
    Ok(facts)
}

/// Where git finds the user's and the machine's configuration.
fn outer_files() -> Vec<(&'static str, PathBuf)> {
    let mut files = Vec::new();
    let is_off = |text: String| !matches!(text.as_str(), "0" | "false" | "no" | "off");
    if !env::text("GIT_CONFIG_NOSYSTEM").is_some_and(is_off) {
        let own = env::find_program("git").and_then(|git| fs::canonicalize(git).ok());
        let own = own.as_deref().and_then(Path::parent).and_then(Path::parent);
        // A git of the user's own has its own, beside it.
        let beside = own.map(|prefix| prefix.join("etc/gitconfig"));
        let named = env::var("GIT_CONFIG_SYSTEM").map(PathBuf::from);
        for path in named.into_iter().chain(beside).chain([PathBuf::from("/etc/gitconfig")]) {
            files.push(("system ", path));
        }
    }
    if let Some(path) = env::var("GIT_CONFIG_GLOBAL") {
        files.push(("global ", path.into()));
    } else {
        files.extend(env::git_folder().ok().map(|folder| ("global ", folder.join("config"))));
        files.extend(env::home().ok().map(|home| ("global ", home.join(".gitconfig"))));
    }
    files
}

/// The facts that are recorded and shown only: our own git calls are deaf to them.
pub fn silenced_facts(common_dir: &Path) -> Result<BTreeMap<String, String>> {
    let mut facts = BTreeMap::new();
    config_facts(&mut facts, "", &common_dir.join("config"), is_silenced)?;
    for (name, path) in outer_files() {
        config_facts(&mut facts, name, &path, is_silenced)?;
    }
    raw_fact(&mut facts, "info/attributes", &common_dir.join("info/attributes"))?;
    let hooks = common_dir.join("hooks");
    for entry in fs::read_dir(&hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".sample") {
            raw_fact(&mut facts, &format!("hooks/{name}"), &entry.path())?;
        }
    }
    Ok(facts)
}

/// One digest over all facts.
pub fn digest(facts: &BTreeMap<String, String>) -> Digest {
    let mut bytes = Vec::new();
    for (key, value) in facts {
        for part in [key, value] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    sha256(&bytes)
}

/// What differs, in a few words each, keys only: values may be secrets.
pub fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter_map(|key| match (before.get(key), after.get(key)) {
            (None, Some(_)) => Some(format!("{key} added")),
            (Some(_), None) => Some(format!("{key} removed")),
            (Some(old), Some(new)) if old != new => Some(format!("{key} changed")),
            _ => None,
        })
        .collect()
}

fn raw_fact(facts: &mut BTreeMap<String, String>, name: &str, path: &Path) -> Result<()> {
    let value = match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot look at `{}`", path.display()));
        }
        Ok(metadata) if metadata.is_symlink() => {
            let target =
                fs::read_link(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            // Where it leads can be changed without touching it: its content counts as well.
            let content = match fs::metadata(path) {
                Ok(metadata) if is_plain(&metadata) => fs::read(path)
                    .map_or_else(|_| "none".to_owned(), |bytes| sha256(&bytes).to_string()),
                _ => "none".to_owned(),
            };
            format!("link to {}, {content}", target.display())
        }
        Ok(metadata) if metadata.is_dir() => "a folder".to_owned(),
        Ok(metadata) if !is_plain(&metadata) => format!("no plain file, {} bytes", metadata.len()),
        Ok(_) => {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            sha256(&bytes).to_string()
        }
    };
    facts.insert(name.to_owned(), value);
    Ok(())
}

/// A file that can be read to its end: no pipe, and of a bearable length.
fn is_plain(metadata: &fs::Metadata) -> bool {
    metadata.is_file() && metadata.len() <= FILE_BYTES_MOST
}

/// A file that, empty, says what a missing one says: Claude Code's sandbox leaves such files where
/// it shut a path that was not there (tried on 2.1.332).
fn fact_unless_empty(facts: &mut BTreeMap<String, String>, name: &str, path: &Path) -> Result<()> {
    let empty = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0);
    if empty { Ok(()) } else { raw_fact(facts, name, path) }
}

/// The configuration of submodules: looking at them for changes runs their filters.
fn module_facts(
    facts: &mut BTreeMap<String, String>,
    git_dir: &Path,
    above: &str,
    depth: usize,
) -> Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let folder = git_dir.join("modules");
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = format!("{above}modules/{}/", entry.file_name().to_string_lossy());
        if path.join("HEAD").exists() {
            config_facts(facts, &name, &path.join("config"), runs_or_moves)?;
            let name = format!("{name}config.worktree");
            fact_unless_empty(facts, &name, &path.join("config.worktree"))?;
            module_facts(facts, &path, &name, depth - 1)?;
        } else if path.is_dir() {
            // A submodule's name may have slashes.
            nested_names(facts, &path, &name, depth - 1)?;
        }
    }
    Ok(())
}

fn nested_names(
    facts: &mut BTreeMap<String, String>,
    folder: &Path,
    name: &str,
    depth: usize,
) -> Result<()> {
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = format!("{name}{}/", entry.file_name().to_string_lossy());
        if path.join("HEAD").exists() {
            config_facts(facts, &name, &path.join("config"), runs_or_moves)?;
            module_facts(facts, &path, &name, depth - 1)?;
        } else if path.is_dir() {
            nested_names(facts, &path, &name, depth - 1)?;
        }
    }
    Ok(())
}

fn config_facts(
    facts: &mut BTreeMap<String, String>,
    prefix: &str,
    path: &Path,
    counts: fn(&str, &str, &str) -> bool,
) -> Result<()> {
    let mut values = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut files = vec![(prefix.to_owned(), path.to_owned(), INCLUDE_DEPTH_MOST)];
    while let Some((prefix, path, depth)) = files.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let bytes = match fs::metadata(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                continue;
            }
            Ok(metadata) if !is_plain(&metadata) => {
                facts.insert(format!("{prefix}config"), "no plain file".to_owned());
                continue;
            }
            _ => fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        let Some(found) = keys_of(&bytes) else {
            // Nothing can be said about single keys: any change is a difference.
            facts.insert(format!("{prefix}config"), format!("unreadable, {}", sha256(&bytes)));
            continue;
        };
        for Key { section, sub, name, value } in found {
            if counts(&section, &name, &value) {
                let full = match &sub {
                    Some(sub) => format!("{prefix}config {section}.{sub}.{name}"),
                    None => format!("{prefix}config {section}.{name}"),
                };
                values.entry(full).or_insert_with(Vec::new).push(value.clone());
            }
            if matches!(section.as_str(), "include" | "includeif") && name == "path" && depth > 0 {
                let included = included(&value, &path);
                files.push((format!("'{}' ", included.display()), included, depth - 1));
            }
        }
    }
    facts.extend(
        values
            .into_iter()
            .map(|(key, values)| (key, sha256(values.join("\n").as_bytes()).to_string())),
    );
    Ok(())
}

/// One value of a configuration file; names in lower case.
struct Key {
    section: String,
    sub: Option<String>,
    name: String,
    value: String,
}

/// Every value of a configuration file; `None` when it cannot be parsed.
fn keys_of(bytes: &[u8]) -> Option<Vec<Key>> {
    let parsed = gix::config::File::from_bytes_no_includes(
        bytes,
        gix::config::file::Metadata::api(),
        gix::config::file::init::Options::default(),
    )
    .ok()?;
    let mut found = Vec::new();
    for section in parsed.sections() {
        let name = section.header().name().to_str_lossy().to_ascii_lowercase();
        let sub = section.header().subsection_name().map(|sub| sub.to_str_lossy().into_owned());
        let names: BTreeSet<String> =
            section.value_names().map(|name| name.to_ascii_lowercase()).collect();
        for key in names {
            found.extend(section.values(&key).into_iter().map(|value| Key {
                section: name.clone(),
                sub: sub.clone(),
                name: key.clone(),
                value: value.to_str_lossy().into_owned(),
            }));
        }
    }
    Some(found)
}

/// The file that `path` in the configuration file `file` names.
fn included(path: &str, file: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), env::home()) {
        (Some(rest), Ok(home)) => home.join(rest),
        _ => file.parent().unwrap_or(file).join(path),
    }
}

fn runs_or_moves(section: &str, key: &str, value: &str) -> bool {
    match section {
        "filter" | "include" | "includeif" | "extensions" | "gpg" | "credential" | "hook"
        | "protocol" | "pager" => true,
        "core" => matches!(
            key,
            "alternaterefscommand"
                | "askpass"
                | "attributesfile"
                | "bare"
                | "editor"
                | "gitproxy"
                | "pager"
                | "repositoryformatversion"
                | "sshcommand"
                | "worktree"
        ),
        "diff" => matches!(key, "command" | "textconv" | "external" | "orderfile"),
        "merge" => key == "driver",
        "difftool" | "mergetool" | "browser" | "man" => matches!(key, "cmd" | "path"),
        "remote" => {
            matches!(key, "uploadpack" | "receivepack" | "proxy" | "vcs")
                || (matches!(key, "url" | "pushurl") && runs_helper(value))
        }
        "url" => matches!(key, "insteadof" | "pushinsteadof"),
        "uploadpack" => key == "packobjectshook",
        "alias" => value.trim_start().starts_with('!'),
        "submodule" => {
            (key == "update" && value.trim_start().starts_with('!'))
                || (key == "url" && runs_helper(value))
        }
        "sequence" => key == "editor",
        "interactive" => key == "difffilter",
        "trailer" => matches!(key, "command" | "cmd"),
        "init" => key == "templatedir",
        "lfs" => {
            matches!(key, "path" | "args" | "clean" | "smudge" | "url" | "standalonetransferagent")
        }
        "ssh" => key == "variant",
        "user" => key == "signingkey",
        _ => false,
    }
}

/// `ext::command` and its like.
fn runs_helper(url: &str) -> bool {
    url.contains("::") || url.starts_with('-')
}

fn is_silenced(section: &str, key: &str, _value: &str) -> bool {
    section == "core" && matches!(key, "fsmonitor" | "hookspath")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_of(config: &str) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), config).unwrap();
        guard_facts(folder.path(), folder.path(), folder.path()).unwrap()
    }

    #[test]
    fn a_key_that_runs_a_program_is_a_fact_and_others_are_not() {
        let before = facts_of(
            "[core]\n\tfilemode = true\n[user]\n\tname = N\n[remote \"o\"]\n\turl = https://h/r\n",
        );
        assert_eq!(before, BTreeMap::new());
        let after = facts_of(
            "[core]\n\tsshCommand = x\n[filter \"lfs\"]\n\tclean = evil\n[include]\n\tpath = /x\n\
             [alias]\n\tco = checkout\n\tgo = !sh\n[diff \"a\"]\n\ttextconv = x\n[remote \"o\"]\n\turl = ext::sh\n",
        );
        let keys = differences(&before, &after);
        assert_eq!(
            keys,
            [
                "config alias.go added",
                "config core.sshcommand added",
                "config diff.a.textconv added",
                "config filter.lfs.clean added",
                "config include.path added",
                "config remote.o.url added",
            ]
        );
        assert_ne!(digest(&before), digest(&after));
        assert_eq!(digest(&after), digest(&after.clone()));
    }

    #[test]
    fn an_empty_worktree_configuration_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let facts = || guard_facts(&at.join("common"), at, at).unwrap();
        let before = facts();
        fs::write(at.join("config.worktree"), "").unwrap();
        assert_eq!(facts(), before);
        fs::write(at.join("config.worktree"), "[core]\n").unwrap();
        assert_eq!(differences(&before, &facts()), ["config.worktree added"]);
        // The main worktree's counts by its keys, as the common configuration does.
        fs::create_dir(at.join("common")).unwrap();
        fs::write(at.join("common/config.worktree"), "[core]\n\tsparseCheckout\n\tpager = x\n")
            .unwrap();
        assert!(facts().contains_key("main worktree's config core.pager"), "{:?}", facts());
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_a_fact_as_a_whole() {
        let broken = facts_of("[core\nworktree");
        assert!(broken.contains_key("config"));
        assert_ne!(broken, facts_of("[core\nworktree = 1"));
    }
}
