//! The work in progress is saved beside the agent, and a worktree that was deleted comes back.

use super::support::{World, binary, scripted};
use std::fs;

/// Keeps what it was told and shows what it found.
const LOOKS: &str = "cat >got.md; mv got.md \"$HOME/got.md\"; echo start; echo 'step two'; \
     git status --porcelain >\"$HOME/status\"; cp -a . \"$HOME/found\"; echo 'done all'\n";
/// Half of it committed, half not; it goes on for a moment, and then asks.
const WORKS: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >committed.txt; \
     git add committed.txt; git commit -q -m 'Add committed.txt'; echo b >>committed.txt; \
     echo half >half.txt; mkdir -p deep; echo x >'deep/a file'; rm README.md; sleep 2; \
     echo 'asks which one?'\n";

fn world(interval: u32, first: &str) -> World {
    let world = World::new();
    let first = world.program("first-agent", first);
    let second = world.program("second-agent", LOOKS);
    let agents = scripted(&[("first", &first), ("second", &second)]);
    world.configure(&format!("wip_interval_s = {interval}\n{agents}"));
    world.relay(&["init"]).exits(0);
    world
}

fn wip(world: &World) -> String {
    format!("refs/relay/snapshots/{}/wip", world.session())
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.home.join(name)).unwrap_or_default()
}

/// What can be taken away, with the command that does it in the main worktree.
const TAKEN: [(&str, &str); 4] = [
    ("all of .relay", "rm -rf .relay"),
    ("the worktree, and git has tidied", "rm -rf .relay; git worktree prune"),
    (
        "the worktree's git dir and the branch",
        "rm -rf .relay .git/worktrees; git update-ref -d refs/heads/relay/$S",
    ),
    ("the session's worktree", "rm -rf .relay/sessions/$S"),
];

#[test]
fn a_worktree_that_was_deleted_comes_back_with_the_work_in_progress() {
    for (what, command) in TAKEN {
        for next in [&["handoff", "--to", "second"][..], &["resume", "--agents", "second"]] {
            let world = world(0, WORKS);
            world.relay(&["run", "A task"]).exits(1);
            let session = world.session();
            let before = world.users_things();
            world.run("sh", &["-c", &format!("S={session}; {command}")]).exits(0);
            assert!(!world.worktree().exists(), "{what}");
            let did = world.relay(next);
            if next[0] == "resume" {
                // It goes on with the same agent's question, in the same leg, or hands over.
                assert!(did.stderr.contains("is restored as saved at"), "{what}:\n{}", did.stderr);
                let half =
                    fs::read_to_string(world.worktree().join("half.txt")).unwrap_or_default();
                assert_eq!(half, "half\n", "{what}");
                continue;
            }
            did.exits(0).says("is restored as saved at").says("is lost");
            assert_eq!(read(&world, "found/half.txt"), "half\n", "{what}");
            assert_eq!(read(&world, "found/committed.txt"), "a\nb\n", "{what}");
            assert_eq!(read(&world, "found/deep/a file"), "x\n", "{what}");
            assert!(!world.home.join("found/README.md").exists(), "{what}: it was removed before");
            assert_eq!(read(&world, "status"), "", "{what}");
            assert!(read(&world, "got.md").contains("is restored as saved at"), "{what}");
            let story = world.git(&["log", "--format=%s", &format!("main..relay/{session}")]);
            assert!(story.ends_with("Add committed.txt"), "{what}: {story}");
            assert_eq!(world.users_things(), before, "{what}");
            world.relay(&["verify"]).exits(0).says("work in progress");
            world.git(&["fsck", "--strict"]);
        }
    }
}

#[test]
fn a_worktree_that_no_agent_has_seen_comes_back_with_all_it_had() {
    for (what, command) in TAKEN {
        let world = world(
            0,
            "cat >/dev/null; echo start; echo 'step one'; ls -A >\"$HOME/seen\"; echo 'done all'\n",
        );
        world.write(".gitignore", ".env\n");
        world.write(".worktreeinclude", ".env\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "rules"]);
        world.write(".env", "A=1\n");
        world.relay(&["run", "A task", "--no-launch"]).exits(0);
        let session = world.session();
        world.run("sh", &["-c", &format!("S={session}; {command}")]).exits(0);
        world.relay(&["finish", &session]).exits(1).says("git relay resume");
        let did = world.relay(&["resume"]);
        assert_eq!(did.code, Some(0), "{what}:\n{}", did.stderr);
        did.says("restored from its branch").says("copied 1 ignored files");
        let seen = read(&world, "seen");
        assert!(seen.contains(".env") && seen.contains("README.md"), "{what}: {seen}");
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn without_newer_work_it_comes_back_from_its_branch_and_the_loss_is_said() {
    let world = world(3600, WORKS);
    world.relay(&["run", "A task"]).exits(1);
    world.run("rm", &["-rf", ".relay"]).exits(0);
    world
        .relay(&["handoff", "--to", "second"])
        .exits(0)
        .says("is restored from its branch")
        .says("what was not committed");
    assert_eq!(read(&world, "found/committed.txt"), "a\n");
    assert!(world.home.join("found/README.md").exists());
    assert!(read(&world, "got.md").contains("restored from its branch"));
    world.relay(&["verify"]).exits(0);
}

#[test]
fn an_agent_that_deletes_its_own_worktree_costs_the_last_moment_only() {
    let first = WORKS
        .replace("echo 'asks which one?'", "rm -rf \"$PWD\"; sleep 1; echo 'limit enough'; exit 1");
    let world = world(0, &first);
    world.relay(&["run", "A task"]).exits(0).says("second took over");
    assert_eq!(read(&world, "found/half.txt"), "half\n", "an empty tree is no work in progress");
    let tip = world.git(&["log", "--format=%s", &format!("relay/{}", world.session())]);
    assert!(tip.contains("Add committed.txt"), "{tip}");
    world.relay(&["verify"]).exits(0);
}

#[test]
fn files_without_their_git_pointer_are_kept_as_they_are() {
    let world = world(3600, WORKS);
    world.relay(&["run", "A task"]).exits(1);
    fs::remove_file(world.worktree().join(".git")).unwrap();
    world.relay(&["handoff", "--to", "second"]).exits(0).says("was no worktree any more");
    assert_eq!(read(&world, "found/half.txt"), "half\n");
    assert!(!world.home.join("found/README.md").exists());
}

#[test]
fn nothing_is_laid_out_through_a_link_or_over_a_repository_of_the_person_s() {
    for (what, harm) in [
        ("is a link", "rm -r .relay/sessions/$S; ln -s \"$HOME/precious\" .relay/sessions/$S"),
        ("is a link", "rm -r .relay; mkdir -p .relay; ln -s \"$HOME\" .relay/sessions"),
        ("is no folder", "rm -r .relay/sessions/$S; echo mine >.relay/sessions/$S"),
        ("is a repository of its own", "cd .relay/sessions/$S; rm .git; git init -q ."),
        ("is a link", "cd .relay/sessions/$S; mv .git \"$HOME/p\"; ln -s \"$HOME/p\" .git"),
    ] {
        let world = world(3600, WORKS);
        world.relay(&["run", "A task"]).exits(1);
        let precious = world.home.join("precious");
        world.write_at(&precious.join("mine.txt"), "mine\n");
        world.run("sh", &["-c", &format!("S={}; {harm}", world.session())]).exits(0);
        let branch = world.git(&["rev-parse", &format!("relay/{}", world.session())]);
        for words in [&["resume"][..], &["handoff", "--to", "second"]] {
            let did = world.relay(words).exits(4).says(what);
            assert!(did.stderr.contains("hint: move it away: mv "), "{harm}:\n{}", did.stderr);
        }
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 1, "{harm}");
        assert!(!world.home.join("found").exists(), "{harm}: an agent was started");
        assert_eq!(world.git(&["rev-parse", &format!("relay/{}", world.session())]), branch);
    }
}

#[test]
fn torn_files_of_a_worktree_are_written_again() {
    for (name, torn) in [
        ("HEAD", ""),
        ("HEAD", "\u{1}\u{7}pack\0\0"),
        ("HEAD", "what another file had\n"),
        ("HEAD", "0123456789abcdef\n"),
        ("gitdir", "\0\0"),
        ("commondir", ""),
        (".git", "\0"),
        (".git", "rubbish\n"),
    ] {
        let world = world(3600, WORKS);
        world.relay(&["run", "A task"]).exits(1);
        let git_dir = world.repo.join(".git/worktrees").join(world.session());
        let file = if name == ".git" { world.worktree().join(name) } else { git_dir.join(name) };
        let before = fs::read(&file).unwrap();
        fs::write(&file, torn).unwrap();
        world.relay(&["handoff", "--to", "second"]).exits(0).says("was no worktree any more");
        assert_eq!(fs::read(&file).unwrap(), before, "{name}");
        assert_eq!(read(&world, "found/half.txt"), "half\n", "{name}");
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn an_agent_s_own_git_never_meets_a_snapshot_of_its_work() {
    let busy = "cat >/dev/null; echo start; echo 'step one'; for n in $(seq 60); do \
         echo $n >f-$n.txt; git add f-$n.txt 2>>\"$HOME/errors\" && \
         git commit -q -m $n 2>>\"$HOME/errors\" || echo failed >>\"$HOME/errors\"; done; \
         git status --porcelain >>\"$HOME/errors\"; echo 'done all'\n";
    let world = world(0, busy);
    world.relay(&["run", "A task"]).exits(0);
    assert_eq!(read(&world, "errors"), "");
    world.git(&["cat-file", "-e", &wip(&world)]);
    world.relay(&["verify"]).exits(0);
}

#[test]
fn secrets_that_are_refused_get_into_no_ref() {
    let key = ["ghp_", "016C7yZ0FqkVVXlPDbG8TnJvWcRk2M3mDBfE"].concat();
    let first = format!(
        "cat >/dev/null; echo start; echo 'step one'; echo 'token = {key}' >conf; sleep 1; \
         echo 'asks which one?'\n"
    );
    let world = world(0, &first);
    let config = world.home.join(".config/git-relay/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("secrets = \"refuse\"\n{text}")).unwrap();
    let did = world.relay(&["run", "A task"]).exits(1);
    let refs = world.git(&["for-each-ref", "refs/relay/snapshots"]);
    if did.stderr.contains("secret in the work tree") {
        assert_eq!(refs, "", "{}", did.stderr);
        assert!(did.stderr.contains("no snapshot of the work in progress"), "{}", did.stderr);
    } else {
        panic!("the planted token is none of ours:\n{}", did.stderr);
    }
}

/// What a power cut leaves of an agent's git, which flushes nothing; `$O` empties the loose object
/// that a revision names.
const TORN: [(&str, &str, &str); 6] = [
    ("the branch's ref", ": >.git/refs/heads/relay/$S", "it was gone: it begins again at"),
    ("the last commit", "O relay/$S", "cannot be read: it begins again at"),
    ("a tree of the last commit", "O relay/$S:", "cannot be read: it begins again at"),
    (
        "half of a committed file",
        "F=$(P relay/$S:committed.txt); chmod u+w $F; truncate -s 9 $F",
        "cannot be read: it begins again at",
    ),
    ("the index", ": >.git/worktrees/$S/index", "it was torn and is made anew"),
    (
        "what was staged",
        "git -C .relay/sessions/$S add half.txt; O $(git -C .relay/sessions/$S rev-parse :half.txt)",
        "it was torn and is made anew",
    ),
];

#[test]
fn what_a_power_cut_tore_is_set_right_and_no_file_is_lost() {
    for (what, tear, said) in TORN {
        let world = world(3600, WORKS);
        world.run("git", &["config", "core.logAllRefUpdates", "true"]).exits(0);
        world.relay(&["run", "A task"]).exits(1);
        let session = world.session();
        let script = format!(
            "S={session}; P() {{ git rev-parse $1 | sed 's,^..,.git/objects/&/,'; }}; \
             O() {{ F=$(P $1); chmod u+w $F; : >$F; }}; {tear}"
        );
        world.run("sh", &["-c", &script]).exits(0);
        let did = world.relay(&["handoff", "--to", "second"]).exits(0);
        assert!(did.stderr.contains(said), "{what}:\n{}", did.stderr);
        assert_eq!(read(&world, "found/half.txt"), "half\n", "{what}");
        assert_eq!(read(&world, "found/committed.txt"), "a\nb\n", "{what}");
        assert!(!world.home.join("found/README.md").exists(), "{what}");
        assert_eq!(read(&world, "status"), "", "{what}");
        assert!(read(&world, "got.md").contains(said), "{what}: the next agent is told");
        world.git(&["rev-list", "--objects", &format!("relay/{session}")]);
        let tree = world.git(&["show", &format!("relay/{session}:committed.txt")]);
        assert_eq!(tree, "a\nb", "{what}");
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn an_agent_whose_end_nobody_saw_is_asked_again() {
    let world = World::new();
    let only = world.program(
        "an-agent",
        "cat >/dev/null; echo start; echo 'step one'\n\
         [ -e \"$HOME/again\" ] && { echo 'done all'; exit 0; }\n\
         touch \"$HOME/again\"; sleep 60\n",
    );
    world.configure(&scripted(&[("only", &only)]));
    world.relay(&["init"]).exits(0);
    let mut command = world.command(binary());
    let mut driver = command.args(["run", "A task"]).spawn().unwrap();
    let began = std::time::Instant::now();
    let state = || world.relay(&["status", "--json"]).json()["status"]["session"].clone();
    while !world.home.join("again").exists() || state()["state"] != "RUNNING" {
        assert!(began.elapsed().as_secs() < 60, "it does not run");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // As when the machine stops.
    let agent = state()["dispatch"]["process"]["pid"].to_string();
    driver.kill().unwrap();
    driver.wait().unwrap();
    world.run("kill", &["-9", &agent]).exits(0);
    world.relay(&["resume"]).exits(0).says("done");
}
