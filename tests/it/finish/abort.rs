//! Aborting: always possible, and nothing unsaved goes that no printed ref holds.

use super::{WORK, kept, session_of, state, worked, worktree};
use crate::it::support::same;
use std::fs;

#[test]
fn all_that_was_in_the_worktree_stays_reachable() {
    let world = worked(WORK);
    let before = world.users_things();
    let did = world.relay(&["abort"]).exits(0);
    did.says(&kept(&world));
    assert_eq!(world.git(&["show", &format!("{}:draft.txt", kept(&world))]), "draft");
    assert!(world.git(&["log", "--format=%s", &kept(&world)]).contains("Add done.txt"));
    assert!(!worktree(&world).exists());
    assert_eq!(state(&world), "ABORTED");
    same(&world.users_things(), &before);
    world.relay(&["abort", &session_of(&world)]).exits(1).says("is ABORTED");
}

#[test]
fn a_worktree_that_was_deleted_by_hand_leaves_its_commits_and_what_was_staged() {
    let world = worked(&format!("{WORK}; git add draft.txt"));
    let id = session_of(&world);
    fs::remove_dir_all(worktree(&world)).unwrap();
    let before = super::everything(&world);
    for how in ["--squash", "--merge", "--keep"] {
        let did = super::finish(&world, &[how]).exits(1).says("is gone");
        did.says(&format!("git relay abort {id}"));
    }
    same(&super::everything(&world), &before);
    world.relay(&["abort"]).exits(0).says(&kept(&world));
    assert!(world.git(&["log", "--format=%s", &kept(&world)]).contains("Add done.txt"));
    assert_eq!(world.git(&["show", &format!("{}:draft.txt", kept(&world))]), "draft");
    assert_eq!(world.git(&["branch", "--list", "relay/*"]), "");
    assert!(!world.repo.join(".git/worktrees").join(&id).exists());
    world.git(&["worktree", "prune"]);
    world.git(&["fsck", "--strict"]);
}

#[test]
fn a_worktree_that_was_deleted_by_hand_comes_back_with_what_was_staged() {
    let world = worked(&format!("{WORK}; git add draft.txt"));
    fs::remove_dir_all(worktree(&world)).unwrap();
    world.relay(&["resume"]).exits(0).says("is restored from its branch");
    assert_eq!(fs::read_to_string(worktree(&world).join("draft.txt")).unwrap(), "draft\n");
    let at = worktree(&world);
    let status = world.git(&["-C", at.to_str().unwrap(), "status", "--porcelain"]);
    assert_eq!(status, "A  draft.txt");
}

#[test]
fn a_merge_in_progress_in_the_session_is_kept_with_both_its_sides() {
    let world = worked(
        "git commit -q --allow-empty -m Ours; echo ours >f; git add f; git commit -q -m 'Ours f'\n\
         git switch -q --detach HEAD~1; echo theirs >f; git add f; git commit -q -m 'Theirs f'\n\
         theirs=$(git rev-parse HEAD); git switch -q -; git merge -q $theirs >/dev/null",
    );
    let before = super::everything(&world);
    super::finish(&world, &[]).exits(1).says("a merge is in progress in the session worktree");
    same(&super::everything(&world), &before);
    world.relay(&["abort"]).exits(0).says(&kept(&world));
    let story = world.git(&["log", "--format=%s", &kept(&world)]);
    assert!(story.contains("Ours f") && story.contains("Theirs f"), "{story}");
    assert!(world.git(&["show", &format!("{}:f", kept(&world))]).contains("<<<<<<<"));
    assert!(!worktree(&world).exists());
    assert_eq!(state(&world), "ABORTED");
}

#[test]
fn ignored_files_are_nobodys_to_delete() {
    let world = worked(&format!("{WORK}; echo '*.log' >.gitignore; echo x >a.log"));
    world.relay(&["abort"]).exits(0).says("holds ignored files (a.log)");
    assert!(worktree(&world).join("a.log").exists());
    assert_eq!(state(&world), "ABORTED");
    fs::remove_file(worktree(&world).join("a.log")).unwrap();
    world.relay(&["abort", &session_of(&world)]).exits(0);
    assert!(!worktree(&world).exists());
}

/// A repository of its own in the worktree, and a file above the cap, are in no commit of ours.
#[test]
fn what_could_not_be_saved_is_nobodys_to_delete() {
    for words in
        [&["abort"][..], &["finish"], &["finish", "--include-snapshot"], &["finish", "--keep"]]
    {
        let world = worked(&format!(
            "{WORK}; git init -q nested; echo n >nested/n; git -C nested add n; \
             git -C nested commit -q -m n; truncate -s 101M big.bin"
        ));
        let id = session_of(&world);
        let did = world.relay(words).exits(0).says("not all in it could be saved");
        did.says("nested repository").says("big.bin");
        assert!(worktree(&world).join("nested/.git").exists(), "{words:?}");
        assert!(worktree(&world).join("big.bin").exists(), "{words:?}");
        // Said again, it still is.
        world.relay(&[words[0], &id]).exits(0);
        assert!(worktree(&world).join("nested/.git").exists(), "{words:?}");
    }
}

/// An end that is said again looks at the tree only as git was configured for the agent.
#[test]
fn an_end_that_is_said_again_runs_no_code_of_the_agents() {
    for verb in ["abort", "finish"] {
        let world = worked(&format!("{WORK}; echo '*.log' >.gitignore; echo x >a.log"));
        let id = session_of(&world);
        world.relay(&[verb, &id]).exits(0).says("holds ignored files");
        let config = fs::read_to_string(world.repo.join(".git/config")).unwrap();
        let trap = world.program("trap", "touch \"$HOME/trapped\"; cat\n");
        world.write(
            ".git/config",
            &format!("{config}[filter \"x\"]\n\tclean = {}\n", trap.display()),
        );
        world.write_at(&worktree(&world).join(".gitattributes"), "* filter=x\n");
        world.write_at(&worktree(&world).join("done.txt"), "other\n");
        world.relay(&[verb, &id]).exits(4).says("config filter.x.clean added");
        assert!(!world.home.join("trapped").exists(), "{verb} ran the agent's code");
        assert!(worktree(&world).join("a.log").exists());
    }
}
