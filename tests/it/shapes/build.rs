//! How each shape is made, and what is particular to it.

use super::{Expect, Shape, Site, WORKS};
use crate::it::support::{World, knows_reftable};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The world's repository made anew, as `git init` is told here.
pub(super) fn anew(world: &World, options: &[&str]) -> PathBuf {
    world.begin_anew(options);
    world.repo.clone()
}

/// With a git that cannot make one, it is refused.
pub(super) fn reftable(build: fn(&World) -> PathBuf) -> Shape {
    match knows_reftable() {
        true => Shape { build, ..WORKS },
        false => Shape {
            build: marked_reftable,
            expect: Expect::Refused("init", 5, "refs in reftable need git 2.45"),
            ..WORKS
        },
    }
}

fn marked_reftable(world: &World) -> PathBuf {
    world.git(&["config", "core.repositoryFormatVersion", "1"]);
    world.git(&["config", "extensions.refStorage", "reftable"]);
    world.repo.clone()
}

pub(super) fn linked(world: &World) -> PathBuf {
    world.git(&["worktree", "add", "-q", "../linked", "-b", "topic"]);
    world.root.join("linked")
}

pub(super) fn linked_on_reftable(world: &World) -> PathBuf {
    anew(world, &["--ref-format=reftable"]);
    linked(world)
}

pub(super) fn linked_of_bare(world: &World) -> PathBuf {
    world.git(&["clone", "-q", "--bare", ".", "../hub.git"]);
    world.git(&["-C", "../hub.git", "worktree", "add", "-q", "../linked", "main"]);
    world.root.join("linked")
}

pub(super) fn git_dir_elsewhere(world: &World) -> PathBuf {
    world.git(&["init", "-q", "--separate-git-dir", "../elsewhere"]);
    world.repo.clone()
}

pub(super) fn worktree_config(world: &World) -> PathBuf {
    world.git(&["config", "extensions.worktreeConfig", "true"]);
    world.git(&["config", "--worktree", "relay.mine", "yes"]);
    linked(world);
    world.git(&["-C", "../linked", "config", "--worktree", "relay.mine", "there"]);
    world.repo.clone()
}

/// A clone of the world's repository with some history.
pub(super) fn cloned(world: &World, options: &[&str]) -> PathBuf {
    for text in ["old\n", "older\n", "now\n"] {
        world.write("story.txt", text);
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", text.trim()]);
    }
    for name in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        world.git(&["config", name, "true"]);
    }
    let origin = match options.contains(&"--shared") {
        true => world.repo.display().to_string(),
        false => format!("file://{}", world.repo.display()),
    };
    world.git(&[&["clone", "-q"], options, &[&origin, "../clone"]].concat());
    world.root.join("clone")
}

/// The files of an older commit, which the task starts from, are not here yet.
pub(super) const PARTIAL: Shape = Shape {
    build: |world| cloned(world, &["--filter=blob:none"]),
    run: &["--base", "HEAD~1"],
    check: |site| assert_eq!(site.made("story.txt"), "older\n"),
    ..WORKS
};

fn with_submodule(world: &World) {
    world.git(&["clone", "-q", ".", "../library"]);
    let allow = ["-c", "protocol.file.allow=always"];
    world.git(&[&allow[..], &["submodule", "--quiet", "add", "../library", "lib"]].concat());
    world.git(&["commit", "-q", "-m", "Add lib"]);
}

pub(super) const SUBMODULE: Shape = Shape {
    build: |world| {
        with_submodule(world);
        world.repo.clone()
    },
    check: |site| {
        let link = |of: &str| site.git(&["ls-tree", of, "lib"]);
        assert_eq!(link(&site.branch), link("HEAD"));
    },
    ..WORKS
};

pub(super) fn inside_submodule(world: &World) -> PathBuf {
    with_submodule(world);
    world.git(&["-C", "lib", "switch", "-q", "main"]);
    world.repo.join("lib")
}

/// Only the files in the root and in `in` are in the worktree.
fn make_sparse(world: &World, options: &[&str]) -> PathBuf {
    world.write("in/a.txt", "a\n");
    world.write("out/b.txt", "b\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "Add in and out"]);
    let wanted: &[&str] =
        if options.contains(&"--no-cone") { &["/*.txt", "/*.md", "/in/"] } else { &["in"] };
    world.git(&[&["sparse-checkout", "set"], options, wanted].concat());
    assert!(!world.repo.join("out").exists());
    world.repo.clone()
}

const SPARSE: Shape = Shape {
    agent: "echo more >>in/a.txt; git add in/a.txt",
    check: |site| {
        assert_eq!(site.made("out/b.txt"), "b\n");
        assert_eq!(site.made("in/a.txt"), "a\nmore\n");
    },
    ..WORKS
};
pub(super) const SPARSE_CONE: Shape =
    Shape { build: |world| make_sparse(world, &["--cone"]), ..SPARSE };
pub(super) const SPARSE_PATTERNS: Shape =
    Shape { build: |world| make_sparse(world, &["--no-cone"]), ..SPARSE };
pub(super) const SPARSE_INDEX: Shape =
    Shape { build: |world| make_sparse(world, &["--cone", "--sparse-index"]), ..SPARSE };

pub(super) fn detached(world: &World) -> PathBuf {
    world.git(&["checkout", "-q", "--detach"]);
    world.repo.clone()
}

/// Changed by the agent and left for the snapshot, one of them committed.
pub(super) const ODD_NAMES: Shape = Shape {
    build: |world| {
        for name in ODD {
            fs::write(world.repo.join(OsStr::from_bytes(name)), "odd\n").unwrap();
        }
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Add odd names"]);
        world.repo.clone()
    },
    agent: "for name in *odd*; do echo more >>\"$name\"; done; git add ' odd '\n\
            echo new >\"$(printf 'new\\n\\303odd')\"",
    check: |site| {
        for name in ODD {
            assert_eq!(site.made(OsStr::from_bytes(name)), "odd\nmore\n", "{name:?}");
        }
        assert_eq!(site.made(OsStr::from_bytes(b"new\n\xc3odd")), "new\n");
    },
    ..WORKS
};
const ODD: [&[u8]; 5] =
    [b" odd ", b"two\nodd lines", b"\xff\xfeodd", "ödd odd \"q\"".as_bytes(), b"-odd"];

pub(super) fn moved_to(world: &World, name: &[u8]) -> PathBuf {
    let place = world.root.join(OsStr::from_bytes(name));
    fs::rename(&world.repo, &place).unwrap();
    place
}

fn hook(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// How often each hook has run, but in the making.
fn ran(site: &Site) -> String {
    fs::read_to_string(site.world.home.join("ran")).unwrap_or_default()
}

/// As husky 9 leaves it: a hooks folder that is ignored and so in no other worktree.
pub(super) const HUSKY: Shape = Shape {
    build: |world| {
        hook(&world.repo.join(".husky/pre-commit"), "echo npm test >>\"$HOME/ran\"\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Add husky"]);
        world.write(".husky/_/.gitignore", "*");
        hook(&world.repo.join(".husky/_/h"), "sh -e \".husky/$(basename \"$0\")\" \"$@\"\n");
        hook(&world.repo.join(".husky/_/pre-commit"), "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n");
        world.git(&["config", "core.hooksPath", ".husky/_"]);
        world.repo.clone()
    },
    check: |site| assert_eq!(ran(site), "", "git finds no hooks in a fresh worktree"),
    ..WORKS
};

/// Hooks in the common folder run for each commit of an agent's, and for none of ours.
pub(super) const LEFTHOOK: Shape = Shape {
    build: |world| {
        let hooks = world.repo.join(".git/hooks");
        let text = "#!/bin/sh\n[ \"$LEFTHOOK\" = 0 ] && exit 0\ncall_lefthook() { \
                    echo \"$@\" >>\"$HOME/ran\"; }\ncall_lefthook run \"pre-commit\" \"$@\"\n";
        hook(&hooks.join("pre-commit"), text);
        hook(&hooks.join("prepare-commit-msg"), "#!/bin/sh\n");
        world.repo.clone()
    },
    check: |site| assert_eq!(ran(site), "run pre-commit\nrun pre-commit\n"),
    ..WORKS
};

pub(super) const PRE_COMMIT: Shape = Shape {
    build: |world| {
        let hooks = world.repo.join(".git/hooks");
        for stage in ["pre-commit", "commit-msg", "post-commit"] {
            let text = format!(
                "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n\
                 ARGS=(hook-impl --hook-type={stage})\nHERE=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n\
                 ARGS+=(--hook-dir \"$HERE\" -- \"$@\")\necho \"${{ARGS[1]}}\" >>\"$HOME/ran\"\n"
            );
            hook(&hooks.join(stage), &text);
        }
        world.repo.clone()
    },
    check: |site| {
        let one = "--hook-type=pre-commit\n--hook-type=commit-msg\n--hook-type=post-commit\n";
        assert_eq!(ran(site), one.repeat(2));
    },
    ..WORKS
};

pub(super) fn nobody(world: &World) -> PathBuf {
    world.git(&["config", "--unset", "user.name"]);
    world.git(&["config", "--unset", "user.email"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    world.repo.clone()
}

/// The user's commits are signed, ours by nobody's key but the project's.
pub(super) const SIGNED: Shape = Shape {
    build: |world| {
        let key = world.home.join("key");
        let path = key.to_str().unwrap();
        world.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path]).exits(0);
        for (name, value) in
            [("gpg.format", "ssh"), ("user.signingKey", path), ("commit.gpgSign", "true")]
        {
            world.git(&["config", name, value]);
        }
        world.repo.clone()
    },
    check: |site| {
        let commits = site.git(&["rev-list", &format!("main..{}", site.branch)]);
        let is_signed = |commit: &&str| site.git(&["cat-file", "-p", commit]).contains("gpgsig");
        assert_eq!(commits.lines().count(), 3);
        assert_eq!(commits.lines().filter(is_signed).count(), 2, "the agents', not the snapshot");
    },
    ..WORKS
};

pub(super) const FILTERS: Shape = Shape {
    build: |world| {
        world.write(".gitattributes", "*.crlf text eol=crlf\n*.rot filter=rot\n");
        world.git(&["config", "filter.rot.clean", "tr a-y b-z"]);
        world.git(&["config", "filter.rot.smudge", "tr b-z a-y"]);
        world.git(&["config", "filter.rot.required", "true"]);
        world.git(&["config", "core.autocrlf", "input"]);
        world.git(&["config", "core.safecrlf", "true"]);
        world.write("a.crlf", "one\r\n");
        world.write("a.rot", "abc\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Add filtered files"]);
        world.repo.clone()
    },
    // One that is committed, one that is left for the snapshot.
    agent: "printf 'two\\r\\n' >>a.crlf; printf 'abd\\n' >>a.rot; git add a.crlf a.rot\n\
            git commit -q -m 'Change filtered files'; printf 'x\\r\\n' >b.crlf; echo abe >b.rot",
    check: |site| {
        assert_eq!(site.made("a.crlf"), "one\ntwo\n");
        assert_eq!(site.made("a.rot"), "bcd\nbce\n");
        assert_eq!(site.made("b.crlf"), "x\n");
        assert_eq!(site.made("b.rot"), "bcf\n");
        assert_eq!(fs::read_to_string(site.worktree.join("a.crlf")).unwrap(), "one\r\ntwo\r\n");
        assert_eq!(fs::read_to_string(site.worktree.join("a.rot")).unwrap(), "abc\nabd\n");
    },
    ..WORKS
};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

/// Pointers, and no git-lfs to make files of them.
pub(super) const LFS: Shape = Shape {
    build: |world| {
        world.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        world.write("a.bin", POINTER);
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Add a.bin"]);
        world.repo.clone()
    },
    check: |site| {
        assert_eq!(site.made("a.bin"), POINTER);
        assert_eq!(fs::read_to_string(site.worktree.join("a.bin")).unwrap(), POINTER);
    },
    ..WORKS
};

pub(super) fn unborn(world: &World) -> PathBuf {
    let place = world.root.join("unborn");
    world.git(&["init", "-q", "-b", "main", "../unborn"]);
    place
}

pub(super) fn bare(world: &World) -> PathBuf {
    world.git(&["clone", "-q", "--bare", ".", "../hub.git"]);
    world.root.join("hub.git")
}

pub(super) fn none(world: &World) -> PathBuf {
    let place = world.root.join("none");
    fs::create_dir(&place).unwrap();
    place
}

/// Root may go anywhere, so git looks at who owns a repository, and so must we.
pub(super) fn somebody_elses(world: &World) -> PathBuf {
    let gave = Command::new("chown").args(["-R", "nobody"]).arg(&world.repo).status().unwrap();
    assert!(gave.success(), "only root can give a repository to somebody else");
    world.repo.clone()
}

pub(super) fn branch_relay(world: &World) -> PathBuf {
    world.git(&["branch", "relay"]);
    world.repo.clone()
}

pub(super) fn file_relay(world: &World) -> PathBuf {
    world.write(".relay", "a file\n");
    world.repo.clone()
}

/// A git that says it is old.
fn git_says(world: &World, version: &str) {
    let git = which::which("git").unwrap();
    let script = format!(
        "#!/bin/sh\nfor word; do [ \"$word\" = version ] && echo 'git version {version}' && exit\n\
         done\nexec '{}' \"$@\"\n",
        git.display()
    );
    world.program("git", &script);
}

pub(super) fn old_git(world: &World) -> PathBuf {
    git_says(world, "2.37.1");
    world.repo.clone()
}

pub(super) fn old_git_on_reftable(world: &World) -> PathBuf {
    marked_reftable(world);
    git_says(world, "2.44.0");
    world.repo.clone()
}
