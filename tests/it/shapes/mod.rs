//! Every shape of repository that people have: a whole relay in each, from `init` to `finish` and
//! `abort`. What works leaves the user's things byte for byte; what is refused has made nothing.

mod build;

use super::support::{Did, World, binary, digest, scripted};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One shape, and what is expected of a relay in it.
struct Shape {
    /// Makes it in the world, and says where in it the person works.
    build: fn(&World) -> PathBuf,
    expect: Expect,
    /// What the first agent does besides, in the session worktree.
    agent: &'static str,
    /// More words for `run`.
    run: &'static [&'static str],
    /// The branch for the result, where `finish` cannot know it.
    into: Option<&'static str>,
    /// What must hold besides, after the hand-over.
    check: fn(&Site),
}

enum Expect {
    Works,
    /// By which command, with which exit code, in which words; and nothing was made.
    Refused(&'static str, i32, &'static str),
}

const WORKS: Shape = Shape {
    build: |world| world.repo.clone(),
    expect: Expect::Works,
    agent: "",
    run: &[],
    into: None,
    check: |_| {},
};

macro_rules! shapes {
    ($($name:ident: $shape:expr;)*) => {
        $(#[test] fn $name() { play(&$shape); })*
    };
}

shapes! {
    plain: WORKS;
    sha256: Shape { build: |w| build::anew(w, &["--object-format=sha256"]), ..WORKS };
    reftable: build::reftable(|w| build::anew(w, &["--ref-format=reftable"]));
    reftable_and_sha256: build::reftable(|w| build::anew(w, &["--ref-format=reftable", "--object-format=sha256"]));
    linked_worktree: Shape { build: build::linked, ..WORKS };
    linked_worktree_on_reftable: build::reftable(build::linked_on_reftable);
    linked_worktree_of_a_bare_repository: Shape { build: build::linked_of_bare, ..WORKS };
    git_dir_elsewhere: Shape { build: build::git_dir_elsewhere, ..WORKS };
    worktree_config: Shape { build: build::worktree_config, ..WORKS };
    shallow: Shape { build: |w| build::cloned(w, &["--depth=1"]), ..WORKS };
    shared: Shape { build: |w| build::cloned(w, &["--shared"]), ..WORKS };
    partial: build::PARTIAL;
    submodule: build::SUBMODULE;
    inside_a_submodule: Shape { build: build::inside_submodule, ..WORKS };
    sparse_cone: build::SPARSE_CONE;
    sparse_patterns: build::SPARSE_PATTERNS;
    sparse_index: build::SPARSE_INDEX;
    detached_head: Shape { build: build::detached, into: Some("main"), ..WORKS };
    odd_names: build::ODD_NAMES;
    odd_place: Shape { build: |w| build::moved_to(w, b"it's a \"place\" of $HOME"), ..WORKS };
    place_with_a_newline: Shape { build: |w| build::moved_to(w, b"two\nlines"), ..WORKS };
    place_that_is_not_utf8: Shape {
        build: |w| build::moved_to(w, b"caf\xe9"),
        expect: Expect::Refused("init", 1, "is not UTF-8"),
        ..WORKS
    };
    husky: build::HUSKY;
    hooks_of_lefthook: build::LEFTHOOK;
    hooks_of_pre_commit: build::PRE_COMMIT;
    nobody: Shape { build: build::nobody, ..WORKS };
    signed_commits: build::SIGNED;
    line_ends_and_filters: build::FILTERS;
    lfs_pointers: build::LFS;
    unborn_head: Shape {
        build: build::unborn,
        expect: Expect::Refused("init", 1, "no commit yet"),
        ..WORKS
    };
    bare: Shape {
        build: build::bare,
        expect: Expect::Refused("init", 1, "is a bare repository"),
        ..WORKS
    };
    no_repository: Shape {
        build: build::none,
        expect: Expect::Refused("init", 1, "is not in a git repository"),
        ..WORKS
    };
    somebody_elses: Shape {
        build: build::somebody_elses,
        expect: Expect::Refused("init", 1, "belongs to somebody else"),
        ..WORKS
    };
    branch_relay: Shape {
        build: build::branch_relay,
        expect: Expect::Refused("run", 1, "a branch 'relay' exists"),
        ..WORKS
    };
    file_relay: Shape {
        build: build::file_relay,
        expect: Expect::Refused("run", 1, "is not a folder"),
        ..WORKS
    };
    old_git: Shape {
        build: build::old_git,
        expect: Expect::Refused("init", 5, "needs git 2.38 or newer; this is 2.37"),
        ..WORKS
    };
    git_too_old_for_reftable: Shape {
        build: build::old_git_on_reftable,
        expect: Expect::Refused("init", 5, "refs in reftable need git 2.45 or newer"),
        ..WORKS
    };
}

const FSCK: &[&str] = &["fsck", "--strict", "--no-dangling"];

/// A shape while it is tried.
struct Site {
    world: World,
    /// Where the person works.
    at: PathBuf,
    /// Of the session: set once there is one.
    worktree: PathBuf,
    branch: String,
}

impl Site {
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.world.command(program);
        command.current_dir(&self.at);
        command
    }

    fn relay(&self, words: &[&str]) -> Did {
        self.run(binary(), words)
    }

    fn run(&self, program: impl AsRef<OsStr>, words: &[&str]) -> Did {
        Did::of(&self.command(program).args(words).output().unwrap())
    }

    #[track_caller]
    fn git(&self, words: &[&str]) -> String {
        git(&self.world, &self.at, words)
    }

    /// A file as the session's branch has it.
    #[track_caller]
    fn made(&self, path: impl AsRef<OsStr>) -> String {
        let mut name = std::ffi::OsString::from(format!("{}:", self.branch));
        name.push(path);
        Did::of(&self.command("git").arg("show").arg(name).output().unwrap()).exits(0).stdout
    }
}

/// Git in any folder, by somebody whom no configuration names.
#[track_caller]
fn git(world: &World, at: &Path, words: &[&str]) -> String {
    let mut command = world.command("git");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Somebody");
        command.env(format!("GIT_{role}_EMAIL"), "somebody@example.invalid");
    }
    let output = command.current_dir(at).args(words).output().unwrap();
    Did::of(&output).exits(0).stdout.trim_end_matches('\n').to_owned()
}

/// `first` comes half-way and to its limit, `second` finishes.
fn agents(world: &World, more: &str) {
    let who = "export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.invalid\n\
               export GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.invalid\n\
               cat >/dev/null; echo start; echo 'step one'\n";
    let first = world.program(
        "first-agent",
        &format!(
            "{who}{more}\necho a >done.txt; git add done.txt\n\
             git commit -q -m 'Add done.txt' && git-relay record --do-not-redo 'done.txt is there'\n\
             echo half >half.txt; echo 'limit you have hit your limit'; exit 1\n"
        ),
    );
    let second = world.program(
        "second-agent",
        &format!(
            "{who}echo whole >half.txt; git add half.txt\n\
             git commit -q -m 'Finish half.txt'; echo 'done all'\n"
        ),
    );
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
}

fn play(shape: &Shape) {
    let world = World::new();
    let at = (shape.build)(&world);
    agents(&world, shape.agent);
    let mut site = Site { world, at, worktree: PathBuf::new(), branch: String::new() };
    match shape.expect {
        Expect::Works => works(shape, &mut site),
        Expect::Refused(by, code, words) => refused(&site, by, code, words),
    }
}

fn refused(site: &Site, by: &str, code: i32, words: &str) {
    if by != "init" {
        site.relay(&["init"]).exits(0);
    }
    let before = listing(&site.world.root);
    let task: &[&str] = if by == "run" { &["run", "Write two files"] } else { &["init"] };
    let did = site.relay(task).exits(code).says(words);
    assert!(did.stderr.contains("hint: "), "{}", did.stderr);
    same(&before, &listing(&site.world.root), "it was refused, and something was made");
}

fn works(shape: &Shape, site: &mut Site) {
    dirt(site);
    // Git's own index of a sparse worktree names trees that are not there (tried on 2.47.3).
    let was_sound = site.run("git", FSCK).code;
    let before = footprint(site);
    site.relay(&["init"]).exits(0);
    let ran = site.relay(&[&["run", "--json", "Write two files"], shape.run].concat());
    let ran = ran.exits(0).says("second took over (leg 2)").json();
    let of = |key: &str| ran["run"][key].as_str().unwrap().to_owned();
    let session = of("sessionId");
    site.branch = of("branch");
    site.worktree = of("worktree").into();
    same(&before, &footprint(site), "the user's things were touched");
    assert_eq!(site.made("done.txt"), "a\n");
    assert_eq!(site.made("half.txt"), "whole\n");
    (shape.check)(site);
    site.relay(&["verify"]).exits(0);
    site.relay(&["status"]).exits(0);
    site.relay(&["show", &session, "--envelope"]).exits(0).says("done.txt is there");
    finish(shape, site, &session);
    abort(site);
    // Git writes a sparse index anew when something in it changes, and then it is sound.
    let is_sound = site.run("git", FSCK).code;
    assert!(is_sound == Some(0) || is_sound == was_sound, "{is_sound:?}");
}

/// The result comes to its branch, and what the user had not committed stays as it was.
fn finish(shape: &Shape, site: &Site, session: &str) {
    // The commit would take along what is staged, so that is refused.
    site.git(&["reset", "-q", "--", "staged.txt"]);
    let before = &footprint(site);
    let status = site.git(&["status", "--porcelain"]);
    let old = site.git(&["rev-parse", "HEAD"]);
    let branch = match shape.into {
        Some(branch) => {
            site.relay(&["finish", session]).exits(1).says("did not start from a branch");
            same(before, &footprint(site), "finish was refused");
            site.relay(&["finish", session, "--into", branch]).exits(0);
            branch.to_owned()
        }
        None => {
            site.relay(&["finish", session]).exits(0);
            site.git(&["symbolic-ref", "--short", "HEAD"])
        }
    };
    assert_eq!(site.git(&["show", &format!("{branch}:half.txt")]), "whole");
    assert_eq!(site.git(&["show", &format!("{branch}:done.txt")]), "a");
    assert_eq!(site.git(&["status", "--porcelain"]), status);
    let after = footprint(site);
    let mut moved = vec![format!("ref refs/heads/{branch}"), "git index".to_owned()];
    let changed = site.command("git").args(["diff", "--name-only", "-z", &old, &branch]).output();
    for name in changed.unwrap().stdout.split(|byte| *byte == 0) {
        moved.extend(["main", "here"].map(|mark| format!("{mark} {}", name.escape_ascii())));
    }
    for (name, was) in before.iter().filter(|(name, _)| !moved.contains(name)) {
        assert_eq!(after.get(name), Some(was), "finish touched '{name}'");
    }
}

/// Another session, given up: its work stays reachable, and nothing else of it stays.
fn abort(site: &Site) {
    let before = footprint(site);
    let ran = site.relay(&["run", "--json", "--agents", "second", "Another"]).exits(0).json();
    let session = ran["run"]["sessionId"].as_str().unwrap();
    site.relay(&["abort", session]).exits(0).says(&format!("refs/relay/kept/{session}"));
    assert_eq!(site.git(&["show", &format!("refs/relay/kept/{session}:half.txt")]), "whole");
    same(&before, &footprint(site), "abort touched what is the user's");
    assert_eq!(site.git(&["branch", "--list", "relay/*"]), "");
}

/// What people have lying about: a stash, something staged, changed, new.
fn dirt(site: &Site) {
    let write = |name: &str, text: &str| fs::write(site.at.join(name), text).unwrap();
    write("README.md", "# stashed\n");
    site.git(&["stash", "-q"]);
    write("README.md", "# changed\n");
    write("staged.txt", "staged\n");
    site.git(&["add", "staged.txt"]);
    write("new.txt", "new\n");
}

/// The user's things: files of the worktrees, index, HEAD, configuration, hooks, stash, refs.
fn footprint(site: &Site) -> BTreeMap<String, String> {
    let path = |what: &str| PathBuf::from(site.git(&["rev-parse", "--path-format=absolute", what]));
    let (common, own) = (path("--git-common-dir"), path("--git-dir"));
    let mut things = BTreeMap::new();
    let mut add = |mark: &str, folder: &Path, wanted: &dyn Fn(&str) -> bool| {
        for (name, what) in listing(folder) {
            let first = name.split('/').next().unwrap();
            if wanted(first) && name != "info/exclude" {
                things.insert(format!("{mark} {name}"), what);
            }
        }
    };
    let main = if common.ends_with(".git") { common.parent().unwrap() } else { &site.at };
    for (mark, folder) in [("main", main), ("here", &site.at)] {
        add(mark, folder, &|first| first != ".git" && first != ".relay");
    }
    let kept =
        ["HEAD", "index", "config", "config.worktree", "hooks", "info", "modules", "shallow"];
    add("git", &common, &|first| kept.contains(&first) && first != "index");
    add("git", &own, &|first| kept.contains(&first));
    // `init` says that it puts a block there; what else the hook holds is the user's.
    let hook = "hooks/post-commit";
    if let Ok(text) = fs::read_to_string(common.join(hook)) {
        let (before, rest) = text.split_once("# >>> git-relay").unwrap_or((&text, ""));
        let after = rest.split_once("# <<< git-relay\n").map_or("", |(_, after)| after);
        match format!("{before}{after}").trim() {
            "#!/bin/sh" => things.remove(&format!("git {hook}")),
            users => things.insert(format!("git {hook}"), users.to_owned()),
        };
    }
    let refs = site.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    for line in refs.lines() {
        let ours = ["refs/relay/", "refs/heads/relay/", "refs/notes/relay "];
        if !ours.iter().any(|prefix| line.starts_with(prefix)) {
            let (name, oid) = line.split_once(' ').unwrap();
            things.insert(format!("ref {name}"), oid.to_owned());
        }
    }
    things.insert("stash".to_owned(), site.git(&["stash", "list"]));
    things
}

/// Everything below a folder, by name, with mode and digest.
fn listing(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
            let name = name.escape_ascii().to_string();
            let what = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => {
                    folders.push(path);
                    "a folder".to_owned()
                }
                (_, true) => fs::read_link(&path).unwrap().display().to_string(),
                _ => {
                    let mode = entry.metadata().unwrap().permissions().mode();
                    format!("{mode:o} {}", digest(&fs::read(&path).unwrap_or_default()))
                }
            };
            found.insert(name, what);
        }
    }
    found
}

#[track_caller]
fn same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, why: &str) {
    let names = before.keys().chain(after.keys());
    let other: Vec<&String> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(other.is_empty(), "{why}: {other:?}");
}
