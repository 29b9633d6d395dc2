//! What cannot be done is refused with a sentence and a next step, and changes nothing.

use super::{WORK, everything, finish, session_of, worked};
use crate::it::support::{Did, World, same, scripted};
use std::fs;
use std::process::Stdio;

/// Exits with `code`, says `why`, names a next step, and leaves everything as it was.
#[track_caller]
fn refused(world: &World, arguments: &[&str], code: i32, why: &str) -> Did {
    let before = everything(world);
    let did = world.relay(arguments).exits(code).says(why);
    assert!(did.stderr.contains("hint: "), "no next step:\n{}", did.stderr);
    same(&everything(world), &before);
    did
}

#[test]
fn what_is_not_clean_where_it_would_be_touched_is_named() {
    let world = worked(WORK);
    for how in ["--squash", "--merge"] {
        world.write("done.txt", "mine, untracked\n");
        refused(&world, &["finish", how], 1, "has changes of yours in: done.txt");
        fs::remove_file(world.repo.join("done.txt")).unwrap();
        world.write("README.md", "# staged\n");
        world.git(&["add", "README.md"]);
        refused(&world, &["finish", how], 1, "has staged changes").says("README.md");
        world.git(&["reset", "-q", "--hard"]);
    }
}

#[test]
fn a_change_of_the_user_s_that_git_is_told_not_to_see_is_not_written_over() {
    let world = worked("echo '# theirs' >README.md; git commit -qam 'Change it'");
    for flag in ["assume-unchanged", "skip-worktree"] {
        world.write("README.md", "# mine, and hidden\n");
        world.git(&["update-index", &format!("--{flag}"), "README.md"]);
        refused(&world, &["finish"], 1, "has changes of yours in: README.md");
        world.git(&["update-index", &format!("--no-{flag}"), "README.md"]);
    }
}

#[test]
fn a_target_that_is_none_is_named() {
    let world = worked(WORK);
    let id = session_of(&world);
    refused(&world, &["finish", "--into", "nothing"], 1, "there is no branch 'nothing'")
        .says(&format!("hint: git relay finish {id} --into main\n"));
    let own = format!("relay/{id}");
    refused(&world, &["finish", "--into", &own], 1, "is the session's own branch")
        .says(&format!("git relay finish {id} --keep"));
    refused(&world, &["finish", "nobody"], 1, "there is no session 'nobody'");
    refused(&world, &["abort", "nobody"], 1, "there is no session 'nobody'");
    refused(&world, &["finish", "--abort"], 1, "no finish of session");
    refused(&world, &["finish", "--continue"], 1, "no finish of session");
    for more in [
        &["--squash", "--merge"][..],
        &["--keep", "--into", "main"],
        &["--keep", "-m", "x"],
        &["--continue", "--abort"],
        &["--abort", "--dry-run"],
        &["--continue", "--include-snapshot"],
    ] {
        let before = everything(&world);
        finish(&world, more).exits(2);
        same(&everything(&world), &before);
    }
    world.git(&["branch", "-m", "main", "trunk"]);
    let hint = format!("hint: git relay finish {id} --merge --dry-run --into trunk");
    let typed = ["finish", "--merge", "--dry-run"];
    refused(&world, &typed, 1, "there is no branch 'main'").says(&hint);
}

#[test]
fn an_operation_of_the_users_is_not_disturbed() {
    let world = worked(WORK);
    world.git(&["switch", "-q", "-c", "side"]);
    world.write("README.md", "# side\n");
    world.git(&["commit", "-qam", "Side"]);
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "# main\n");
    world.git(&["commit", "-qam", "Main"]);
    world.run("git", &["merge", "side"]).exits(1);
    refused(&world, &["finish"], 1, "a merge is in progress in");
    world.git(&["merge", "--abort"]);
    world.git(&["bisect", "start"]);
    refused(&world, &["finish"], 1, "a bisect is in progress in");
}

#[test]
fn a_lock_in_the_way_is_named_before_anything_is_touched() {
    let world = worked(WORK);
    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock", "ORIG_HEAD.lock"] {
        let lock = world.repo.join(".git").join(name);
        fs::write(&lock, "").unwrap();
        refused(&world, &["finish"], 1, &format!("{name}' is in the way"));
        fs::remove_file(lock).unwrap();
    }
    finish(&world, &[]).exits(0);
}

#[test]
fn another_sessions_branch_is_not_moved() {
    let world = worked("echo $GIT_RELAY_SESSION >who.txt; git add who.txt; git commit -q -m Who");
    let first = session_of(&world);
    world.relay(&["run", "Another task"]).exits(0);
    let into = format!("relay/{first}");
    let list = world.relay(&["list", "--json"]).exits(0).json();
    let sessions = list["sessions"].as_array().unwrap();
    let ids: Vec<&str> = sessions.iter().map(|it| it["sessionId"].as_str().unwrap()).collect();
    let second = ids.into_iter().find(|id| *id != first).unwrap();
    refused(&world, &["finish", second, "--into", &into], 1, "is the branch of another session");
    for verb in ["finish", "abort", "status", "log", "resume", "handoff --session"] {
        let words = verb.split(' ').next().unwrap();
        let did = refused(&world, &[words], 1, "several sessions are open");
        for id in [second, &first] {
            assert!(did.stderr.contains(&format!("{id} (RUNNING)")), "{}", did.stderr);
        }
        did.says(&format!("hint: git relay {verb} {second}\n"));
    }
    // What was typed is not lost in what is to be typed.
    for (typed, rest) in [
        (&["finish", "--merge", "--dry-run"][..], " --merge --dry-run"),
        (&["finish", "--continue", "-m", "It's done"], " --continue -m 'It'\\''s done'"),
        (&["abort", "--dry-run"], " --dry-run"),
        (&["resume", "--answer", "blue"], " --answer blue"),
    ] {
        refused(&world, typed, 1, "several sessions are open")
            .says(&format!("hint: git relay {} {second}{rest}\n", typed[0]));
    }
    let did = refused(&world, &["record", "--done", "x y"], 1, "several sessions are open");
    did.says(&format!("hint: git relay record --session {second} --done 'x y'\n"));
    // Named without the flag it is meant, too; an agent is none.
    refused(&world, &["handoff", second], 1, "there is no other agent").says(second);
    refused(&world, &["handoff", "one"], 2, "is an agent").says("git relay handoff --to one");
}

/// An end that is typed once too often must not end another session.
#[test]
fn an_end_said_once_more_ends_no_session_that_was_not_worked() {
    for verb in ["finish", "abort"] {
        let world = worked(WORK);
        let first = session_of(&world);
        world.relay(&["run", "--no-launch", "Another task"]).exits(0);
        world.relay(&[verb, &first]).exits(0);
        let list = world.relay(&["list", "--json"]).exits(0).json();
        let sessions = list["sessions"].as_array().unwrap();
        let mut ids = sessions.iter().map(|it| it["sessionId"].as_str().unwrap());
        let second = ids.find(|id| *id != first).unwrap();
        refused(&world, &[verb], 1, &format!("session '{second}' is the only one that is open"))
            .says(&format!("hint: git relay {verb} {second}\n"));
        world.relay(&[verb, second]).exits(0).says(second);
    }
}

#[test]
fn a_session_that_somebody_drives_is_theirs() {
    let world = World::new();
    let agent = world.program(
        "an-agent",
        "cat >/dev/null; echo start; echo 'step one'; touch \"$HOME/up\"\n\
         while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done; echo 'done all'\n",
    );
    world.configure(&scripted(&[("one", &agent)]));
    world.relay(&["init"]).exits(0);
    let mut driver = world
        .command(crate::it::support::binary())
        .args(["run", "Wait"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !world.home.join("up").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for (verb, hint) in [("finish", "or: git relay handoff"), ("abort", "git relay abort wait-")] {
        let did = world.relay(&[verb]).exits(3);
        let did = did.says(&format!("is being driven by process {}", driver.id()));
        did.says(hint);
    }
    fs::write(world.home.join("go"), "").unwrap();
    assert!(driver.wait().unwrap().success());
    world.relay(&["finish"]).exits(0);
}

#[test]
fn a_place_without_relays_is_named() {
    let world = World::new();
    for verb in ["finish", "abort"] {
        refused(&world, &[verb], 1, "not ready for relays").says("git relay init");
    }
}

/// The agent committed after all that was saved: its worktree's own reflog knows of it.
#[test]
fn a_branch_that_was_deleted_is_told_of_and_comes_back_with_what_was_committed() {
    let world = worked(WORK);
    let id = session_of(&world);
    let branch = format!("refs/heads/relay/{id}");
    let tip = world.git(&["rev-parse", &branch]);
    world.git(&["update-ref", "-d", &branch]);
    let hint = format!("git branch relay/{id} {} brings it back", &tip[..10]);
    for how in ["--squash", "--merge", "--keep"] {
        refused(&world, &["finish", how, "--dry-run"], 1, "is gone").says(&hint);
    }
    let before = everything(&world);
    world.relay(&["abort", "--dry-run"]).exits(0);
    world.relay(&["status"]).exits(0).says(&hint);
    world.relay(&["doctor"]).exits(1).says(&hint);
    same(&everything(&world), &before);
    let did = finish(&world, &["--merge"]).exits(0).says("the reflog of its worktree");
    did.says("left out, since no agent committed it: draft.txt");
    assert_eq!(world.git(&["rev-parse", "main^2"]), tip);
}
