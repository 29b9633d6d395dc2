//! A session's ref that somebody else moves while an agent is at work: nobody works on, nothing is
//! lost, and the way back is said.

use super::support::{Did, World, scripted};
use std::fs;

const DONE: &str = "cat >/dev/null; echo start; echo 'step two'; echo 'done all'\n";

/// The first agent does `harm` to its session's ref, and would then work on for a minute.
fn harmed(harm: &str) -> (World, String, Did) {
    let world = World::new();
    let script = format!(
        "cat >/dev/null; echo $$ >\"$HOME/pid\"; echo start; echo 'step one'; echo half >half.txt; \
         R=refs/relay/sessions/$GIT_RELAY_SESSION; sleep 1; {harm}; \
         git-relay record --done 'a step'; sleep 60\n"
    );
    let first = world.program("first-agent", &script);
    let second = world.program("second-agent", DONE);
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    let did = world.relay(&["run", "A task"]).exits(4);
    let pid = fs::read_to_string(world.home.join("pid")).unwrap();
    let alive = fs::read_dir(format!("/proc/{}", pid.trim())).is_ok();
    assert!(!alive, "the agent works on for a session that is not ours");
    let command = hint(&did);
    (world, command, did)
}

/// The commands of the hint: `…, then: …`.
fn hint(did: &Did) -> String {
    let line = did.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
    line.unwrap_or_else(|| panic!("no hint:\n{}", did.stderr)).replace(", then: ", " && ")
}

#[test]
fn a_session_whose_ref_was_deleted_comes_back_by_the_command_that_is_said() {
    let (world, command, did) = harmed("git update-ref -d $R");
    did.says("somebody other than its driver moved").says("it is gone").says("first was ended");
    // From everywhere the same is said, and a collection of garbage takes nothing.
    world.git(&["-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now"]);
    for words in [&["resume"][..], &["status"], &["handoff"]] {
        let said = world.relay(words).exits(4);
        assert_eq!(hint(&said), command, "{words:?}");
    }
    world.relay(&["doctor"]).exits(1).says("git update-ref refs/relay/sessions/");
    world.run("sh", &["-c", &command]).exits(0).says("second took over (leg 2)");
    assert_eq!(fs::read_to_string(world.worktree().join("half.txt")).unwrap(), "half\n");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/moved"]), "");
    world.relay(&["verify"]).exits(0);
    world.relay(&["finish"]).exits(0);
}

#[test]
fn a_session_whose_ref_is_torn_is_named_and_comes_back() {
    for torn in ["", "\0\0\0\n"] {
        let world = World::new();
        let first = world.program(
            "first-agent",
            "cat >/dev/null; echo start; echo 'step one'; echo 'asks what?'\n",
        );
        let second = world.program("second-agent", DONE);
        world.configure(&scripted(&[("first", &first), ("second", &second)]));
        world.relay(&["init"]).exits(0);
        world.relay(&["run", "A task"]).exits(1);
        let session = world.session();
        let name = format!("refs/relay/sessions/{session}");
        let tip = world.git(&["rev-parse", &name]);
        fs::write(world.repo.join(".git").join(&name), torn).unwrap();
        for words in [&["resume"][..], &["status"], &["handoff"], &["resume", &session]] {
            let said = world.relay(words).exits(4).says("is an empty file");
            assert!(hint(&said).contains(&tip), "{words:?}: {}", said.stderr);
        }
        world.relay(&["list"]).exits(4).says("is an empty file");
        world.relay(&["doctor"]).exits(1).says("is an empty file");
        let verified = world.relay(&["verify"]).exits(4);
        assert!(verified.stdout.contains("BROKEN"), "{}", verified.stdout);
        let command = hint(&world.relay(&["status"]).exits(4));
        let command = command.replace("git relay resume", "git relay status");
        world.run("sh", &["-c", &command]).exits(0);
        assert_eq!(world.git(&["rev-parse", &name]), tip);
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn a_session_whose_ref_was_set_back_is_not_gone_on_with_from_there() {
    let (world, command, did) = harmed("git update-ref $R $R~2");
    did.says("somebody other than its driver moved").says("it stands at ");
    let said = world.relay(&["resume"]).exits(4);
    assert_eq!(hint(&said), command);
    world.run("sh", &["-c", &command]).exits(0).says("second took over (leg 2)");
    world.relay(&["verify"]).exits(0);
}

#[test]
fn notes_that_cannot_be_read_are_named_and_begin_anew() {
    let world = World::new();
    let first = world.program("first-agent", DONE);
    world.configure(&scripted(&[("first", &first)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(0);
    let missing = format!("{}\n", "1".repeat(40));
    fs::write(world.repo.join(".git/refs/notes/relay"), missing).unwrap();
    let said =
        world.relay(&["verify"]).exits(4).says("the notes in refs/notes/relay cannot be read");
    assert_eq!(hint(&said), "git update-ref -d refs/notes/relay && git relay doctor --fix");
    world.run("sh", &["-c", &hint(&said)]).exits(0);
    world.relay(&["finish"]).exits(0);
}

/// `T` empties the loose object that a revision names, `N` names the blob of session $A's note.
const TEAR: &str = "T() { F=$(git rev-parse $1 | sed 's,^..,.git/objects/&/,'); chmod u+w $F; \
     : >$F; }; N() { git notes --ref=relay list refs/relay/snapshots/$A/1; }; ";

/// Two sessions that are done, by name; the first has a contract.
fn two_sessions() -> (World, String, String) {
    let world = World::new();
    let asks =
        "cat >/dev/null; echo start; echo 'step one'; echo half >half.txt; echo 'asks what?'\n";
    let first = world.program("first-agent", asks);
    let works =
        DONE.replace("echo 'done", "echo x >done.txt; git add .; git commit -qm x; echo 'done");
    let second = world.program("second-agent", &works);
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(1);
    let a = world.session();
    world.relay(&["handoff", "--to", "second"]).exits(0);
    world.relay(&["run", "Another task", "--agents", "second"]).exits(0);
    let list = world.relay(&["list", "--json"]).exits(0).json();
    let ids = list["sessions"].as_array().unwrap().iter();
    let mut ids = ids.map(|session| session["sessionId"].as_str().unwrap().to_owned());
    let b = ids.find(|id| *id != a).unwrap();
    (world, a, b)
}

#[test]
fn torn_notes_of_one_session_keep_no_other_from_its_end() {
    // So many that git keeps them in folders.
    let many = "for n in $(seq 300); do echo $n >\"$HOME/n-$n\"; done; ls \"$HOME\"/n-* | \
         git hash-object -w --stdin-paths | sed \"s/^/$(git rev-parse refs/relay/snapshots/$A/1) /\" | \
         git notes --ref=relay copy --stdin; ";
    for (what, tear) in [
        ("the note", "T $(N)".to_owned()),
        ("all notes", "T refs/notes/relay^{tree}".to_owned()),
        ("the newest commit of the notes", "T refs/notes/relay".to_owned()),
        (
            "a folder of notes",
            format!(
                "{many} for P in $(git ls-tree -d --name-only refs/notes/relay | head -n 128); do T refs/notes/relay:$P; done"
            ),
        ),
    ] {
        let (world, a, b) = two_sessions();
        world.run("bash", &["-ec", &format!("A={a}; {TEAR}{tear}")]).exits(0);
        let did = world.relay(&["finish", &b]);
        if did.code != Some(0) {
            let command = hint(&did.exits(4).says("notes in refs/notes/relay cannot be read"));
            assert_eq!(command, "git update-ref -d refs/notes/relay && git relay doctor --fix");
            world.run("sh", &["-c", &command]).says("note");
            world.relay(&["finish", &b]).exits(0);
        } else {
            assert_ne!(what, "all notes");
        }
        assert_eq!(world.git(&["show", "main:done.txt"]), "x", "{what}");
        world.git(&["notes", "--ref=relay", "show", "main"]);
        world.relay(&["finish", &a]).exits(0);
    }
}

#[test]
fn no_torn_object_ends_in_an_internal_error() {
    let (world, a, _) = two_sessions();
    let state = format!("refs/relay/sessions/{a}");
    let torn = [
        "$(N)".to_owned(),
        "refs/notes/relay".to_owned(),
        "refs/notes/relay^{tree}".to_owned(),
        format!("{state}~2"),
        format!("{state}^{{tree}}"),
        format!("{state}:state.json"),
        format!("{state}:contract.json"),
        format!("{state}:contract.sig"),
        format!("{state}:attachments"),
        format!("$(git ls-tree -r {state} attachments | head -n 1 | cut -c13-52)"),
        format!("refs/relay/snapshots/{a}/1"),
        format!("refs/relay/snapshots/{a}/1^{{tree}}"),
        format!("refs/relay/snapshots/{a}/1:half.txt"),
    ];
    for torn in torn {
        let keep = "rm -rf ../kept; cp -a .git ../kept; ";
        world.run("bash", &["-ec", &format!("A={a}; {keep}{TEAR}T {torn}")]).exits(0);
        for words in [
            &["verify"][..],
            &["status", &a],
            &["log", &a],
            &["show", &a],
            &["show", &a, "--leg", "1"],
            &["list"],
            &["detect"],
            &["doctor"],
            &["doctor", "--fix"],
            &["handoff", "--session", &a, "--dry-run"],
            &["record", "--session", &a, "--done", "x"],
            &["resume", &a],
            &["handoff", "--session", &a, "--to", "second"],
            &["finish", &a],
            &["abort", &a],
        ] {
            let did = world.relay(words);
            assert!(matches!(did.code, Some(0 | 1 | 4)), "{torn}: {words:?}: {}", did.stderr);
            let says = did.code != Some(4) || did.stderr.contains("hint: ");
            let lists = matches!(words[0], "verify" | "list");
            assert!(says || lists, "{torn}: {words:?}: {}", did.stderr);
        }
        world.run("bash", &["-ec", "rm -rf .git; cp -a ../kept .git"]).exits(0);
    }
}
