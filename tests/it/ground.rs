//! A session's worktree is fit to work in: what it gets, what is never taken into it, what runs
//! there and only after somebody allowed it, where it lies.

use super::support::{World, scripted};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const WORKS: &str = "cat >/dev/null; echo start; echo 'step one'; env | sort >\"$HOME/env\"; \
     ls -A >\"$HOME/seen\"; echo 'done it'\n";

/// A world with one agent that notes its environment and what it finds.
fn world(config: &str) -> World {
    let world = World::new();
    let agent = world.program("agent", WORKS);
    let agents = scripted(&[("only", &agent)]);
    let (first, rest) = agents.split_once('\n').unwrap();
    world.configure(&format!("{first}\n{config}\n{rest}"));
    world.relay(&["init"]).exits(0);
    world
}

fn environment(world: &World, name: &str) -> Option<String> {
    let text = fs::read_to_string(world.home.join("env")).unwrap();
    text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")).map(str::to_owned))
}

fn worktree(world: &World) -> PathBuf {
    let status = world.relay(&["status", "--json"]).exits(0).json();
    PathBuf::from(status["status"]["worktree"].as_str().unwrap())
}

#[test]
fn listed_ignored_files_are_copied_and_nothing_else() {
    let world = world("");
    world.write(".gitignore", ".env*\n/cache/\n/linked\n*.key\n");
    world.write(
        ".worktreeinclude",
        "# what a session needs\n.env*\n!.env.prod\n/cache/**\nplain.txt\n/linked/**\nout\n",
    );
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "rules"]);
    for (name, text) in [
        (".env", "A=1\n"),
        (".env.prod", "B=1\n"),
        ("cache/deep/x", "x\n"),
        ("plain.txt", "mine\n"),
        ("other.key", "no\n"),
        ("sub/.env", "C=1\n"),
    ] {
        world.write(name, text);
    }
    fs::set_permissions(world.repo.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    // Out of the tree by a link, as a file and as a folder: neither is followed.
    world.write_at(&world.root.join("outside/secret"), "no\n");
    symlink(world.root.join("outside/secret"), world.repo.join(".env.link")).unwrap();
    symlink(world.root.join("outside"), world.repo.join("linked")).unwrap();
    let big = fs::File::create(world.repo.join("cache/big")).unwrap();
    big.set_len((100 << 20) + 1).unwrap();
    let did = world.relay(&["run", "Do it"]).exits(0);
    let did = did.says("'cache/big': it is larger than 100 MiB");
    did.says("'.env.link': it is no plain file").says("copied 3 ignored files");
    let worktree = worktree(&world);
    let text = |name: &str| fs::read_to_string(worktree.join(name)).ok();
    assert_eq!(text(".env").as_deref(), Some("A=1\n"));
    assert_eq!(text("cache/deep/x").as_deref(), Some("x\n"));
    assert_eq!(text("sub/.env").as_deref(), Some("C=1\n"));
    let mode = fs::metadata(worktree.join(".env")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    // Not listed, not ignored, a link, through a link, too large.
    for name in [".env.prod", "other.key", "plain.txt", ".env.link", "linked", "cache/big"] {
        assert!(fs::symlink_metadata(worktree.join(name)).is_err(), "{name}");
    }
    assert_eq!(world.git(&["-C", worktree.to_str().unwrap(), "status", "--porcelain"]), "");
}

#[test]
fn nothing_is_copied_through_a_link_that_is_checked_in() {
    let world = world("");
    let outside = world.root.join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.repo.join("conf")).unwrap();
    world.write(".gitignore", "secret\n");
    world.write(".worktreeinclude", "secret\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "a link"]);
    fs::remove_file(world.repo.join("conf")).unwrap();
    world.write("conf/secret", "mine\n");
    world.relay(&["run", "Do it"]).exits(0).says("'conf/secret': it leads through a link");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn submodules_are_filled_from_this_clone_without_a_network() {
    let world = world("");
    let source = world.root.join("source");
    let at = source.to_str().unwrap();
    world.git(&["init", "-q", at]);
    for setting in [["user.name", "S"], ["user.email", "s@example.invalid"]] {
        world.git(&["-C", at, "config", setting[0], setting[1]]);
        world.git(&["config", "--global", setting[0], setting[1]]);
    }
    world.write_at(&source.join("lib.txt"), "lib\n");
    world.git(&["-C", at, "add", "."]);
    world.git(&["-C", at, "commit", "-q", "-m", "lib"]);
    for path in ["third party/lib", "unfilled"] {
        world.git(&["-c", "protocol.file.allow=always", "submodule", "-q", "add", at, path]);
    }
    world.git(&["commit", "-q", "-m", "submodules"]);
    world.git(&["submodule", "-q", "deinit", "unfilled"]);
    fs::remove_dir_all(world.repo.join(".git/modules/unfilled")).unwrap();
    // Nothing can be fetched: the address is gone.
    fs::rename(&source, world.root.join("gone")).unwrap();
    let config = fs::read(world.repo.join(".git/config")).unwrap();
    let did = world.relay(&["run", "Do it"]).exits(0);
    did.says("the submodule 'unfilled' is empty here: it is not filled in the main worktree");
    let worktree = worktree(&world);
    let lib = worktree.join("third party/lib");
    assert_eq!(fs::read_to_string(lib.join("lib.txt")).unwrap(), "lib\n");
    let lib = lib.to_str().unwrap();
    assert_eq!(world.git(&["-C", lib, "config", "remote.origin.url"]), at);
    assert_eq!(world.git(&["-C", lib, "status", "--porcelain"]), "");
    assert_eq!(world.git(&["-C", worktree.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(fs::read(world.repo.join(".git/config")).unwrap(), config);
    world.relay(&["abort", &world.session()]).exits(0);
}

#[test]
fn setup_runs_once_before_the_agent_and_a_failure_is_no_dead_end() {
    let world = world(
        "[worktree]\nsetup = [\"echo ran >>\\\"$HOME/ran\\\"; env >\\\"$HOME/of-setup\\\"; echo made >made; echo shown; test -e \\\"$HOME/ok\\\"\"]\n",
    );
    let did = world.relay(&["run", "Do it"]).exits(1);
    did.says("setting up: ").says("shown").says("failed (exit 1)").says("git relay resume");
    assert!(!world.home.join("env").exists(), "an agent was started");
    world.write_at(&world.home.join("ok"), "");
    let session = world.session();
    world.relay(&["resume", &session]).exits(0);
    let ran = fs::read_to_string(world.home.join("ran")).unwrap();
    assert_eq!(ran, "ran\nran\n");
    assert!(fs::read_to_string(world.home.join("seen")).unwrap().contains("made"));
    let base = environment(&world, "GIT_RELAY_PORT_BASE").unwrap();
    let of_setup = fs::read_to_string(world.home.join("of-setup")).unwrap();
    assert!(of_setup.contains(&format!("GIT_RELAY_PORT_BASE={base}\n")), "{of_setup}");
    assert!(of_setup.contains(&format!("GIT_RELAY_SESSION={session}\n")), "{of_setup}");
    // The next leg of the session: not again, and the same ports.
    world.relay(&["handoff", "--session", &session, "--to", "only"]).exits(0);
    assert_eq!(fs::read_to_string(world.home.join("ran")).unwrap(), ran);
    assert_eq!(environment(&world, "GIT_RELAY_PORT_BASE"), Some(base.clone()));
    world.relay(&["run", "Another"]).exits(0);
    assert_ne!(environment(&world, "GIT_RELAY_PORT_BASE"), Some(base));
}

#[test]
fn shared_commands_are_inert_until_allowed_and_again_after_a_change() {
    let world = world("");
    let ran = || fs::read_to_string(world.home.join("ran")).unwrap_or_default();
    let shared = |word: &str| {
        let command = format!("echo {word} >>\\\"$HOME/ran\\\"");
        world.write(".relay.toml", &format!("[worktree]\nsetup = [\"{command}\"]\n"));
    };
    world.relay(&["allow"]).exits(1).says("no shared '.relay.toml'");
    shared("one");
    world.relay(&["run", "First"]).exits(0).says("not run: look at them with git relay allow");
    assert_eq!(ran(), "");
    world.relay(&["allow"]).exits(0).says("echo one >>");
    world.relay(&["allow"]).exits(0).says("is allowed already");
    world.relay(&["run", "Second"]).exits(0);
    assert_eq!(ran(), "one\n");
    shared("two");
    world.relay(&["run", "Third"]).exits(0).says("git relay allow");
    assert_eq!(ran(), "one\n");
    world.relay(&["allow"]).exits(0).says("echo two >>");
    world.relay(&["allow", "--remove"]).exits(0);
    world.relay(&["run", "Fourth"]).exits(0).says("git relay allow");
    assert_eq!(ran(), "one\n");
    // An agent cannot allow it for itself.
    let did = world.run("env", &["GIT_RELAY_LEG=x", "git-relay", "allow"]);
    did.exits(1).says("an agent of a relay may not");
}

#[test]
fn worktrees_and_branches_go_where_they_are_told_and_stay_found() {
    let world = world("branch_prefix = \"bots/relay\"\n[worktree]\ndir = \"~/trees\"\n");
    world.relay(&["run", "First"]).exits(0);
    let session = world.session();
    let place = world.home.join("trees").join(&session);
    assert_eq!(worktree(&world), place);
    let head = world.git(&["-C", place.to_str().unwrap(), "symbolic-ref", "HEAD"]);
    assert_eq!(head, format!("refs/heads/bots/relay/{session}"));
    // Another place from now on: this session is where it was.
    let config = fs::read_to_string(world.home.join(".config/git-relay/config.toml")).unwrap();
    world.configure(&config.replace("~/trees", ".trees").replace("bots/relay", "else"));
    world.relay(&["handoff", "--session", &session, "--to", "only"]).exits(0);
    assert_eq!(worktree(&world), place);
    world.relay(&["finish", &session]).exits(0);
    assert!(!place.exists());
    world.relay(&["run", "Second"]).exits(0);
    let list = world.relay(&["list", "--json"]).exits(0).json();
    let second = list["sessions"].as_array().unwrap().iter().find(|s| s["state"] == "RUNNING");
    let second = second.unwrap()["sessionId"].as_str().unwrap();
    assert!(world.repo.join(".trees").join(second).join("README.md").exists());
    // Out of git's sight, as `.relay` is.
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_place_that_cannot_be_is_refused_before_anything_is_made() {
    let refs = |world: &World| world.git(&["for-each-ref", "refs/relay", "refs/heads"]);
    let world_ = world("branch_prefix = \"a/b\"\n");
    world_.git(&["branch", "a"]);
    let before = refs(&world_);
    world_.relay(&["run", "x"]).exits(1).says("a branch 'a' exists").says("git branch -m a a-old");
    assert_eq!(refs(&world_), before);
    for (shared, said) in [
        ("[worktree]\ndir = \"../out\"\n", "must be a folder of the repository"),
        ("[worktree]\ndir = \"/tmp\"\n", "must be a folder of the repository"),
        ("[worktree]\ndir = \".git/x\"\n", "must be a folder of the repository"),
        ("branch_prefix = \"-x\"\n", "cannot begin the names of branches"),
        ("trust_folder = true\n", "may stand only in your own file"),
        ("[worktree]\ndri = \"x\"\n", "did you mean 'dir'?"),
        ("tresh = 1\n[worktree]\n", "line 1, column 1"),
    ] {
        let world = world("");
        world.write(".relay.toml", shared);
        let before = refs(&world);
        let did = world.relay(&["run", "x"]);
        assert_eq!(did.code, Some(2), "{shared}: {}", did.stderr);
        did.says(said);
        assert_eq!(refs(&world), before);
    }
    let world = world("");
    world.write(".relay.toml", "[worktree]\ndir = \"trees\"\n");
    symlink(&world.root, world.repo.join("trees")).unwrap();
    let before = refs(&world);
    world.relay(&["run", "x"]).exits(1).says("is not a folder");
    assert_eq!(refs(&world), before);
}

#[test]
fn what_would_test_the_wrong_code_is_named_in_a_line() {
    let world = world("");
    for program in ["direnv", "mise"] {
        world.program(program, "#!/bin/sh\n");
    }
    world.write("package.json", "{}");
    world.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");
    world.write(".envrc", "");
    world.write("mise.toml", "");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "a project"]);
    world.write_at(&world.repo.join("node_modules/x/index.js"), "");
    world.write_at(&world.root.join("Cargo.toml"), "[workspace]\nmembers = []\n");
    let did = world.relay(&["run", "x"]).exits(0);
    for words in
        ["node takes packages", "cargo takes this for a part", "direnv allow", "mise trust"]
    {
        let lines = did.stderr.lines().filter(|line| line.contains(words)).count();
        assert_eq!(lines, 1, "{words}:\n{}", did.stderr);
    }
}
