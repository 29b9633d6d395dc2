//! Which session is meant, who may receive it, and what is refused.

use super::{envelope, left, world};
use crate::it::support::{Did, World, binary};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

fn transcript(world: &World, id: &str) -> std::path::PathBuf {
    let found =
        world.run("find", &[world.home.to_str().unwrap(), "-name", &format!("*{id}.jsonl")]);
    found.exits(0).stdout.trim().into()
}

fn age(world: &World, id: &str, seconds: u64) {
    let file = fs::File::options().append(true).open(transcript(world, id)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

/// People drop what they see into the command line.
#[test]
fn a_transcripts_path_names_it_and_a_folder_is_answered_with_the_way_there() {
    let world = world();
    let id = left(&world, "claude", "todos-limit", &world.repo);
    let path = transcript(&world, &id);
    let path = path.to_str().unwrap();
    world.relay(&["detect", path]).exits(0).says(&id[..8]);
    world.relay(&["adopt", "/dev/null", "--headless"]).exits(1).says("no agent's session '/dev");
    let folder = world.repo.to_str().unwrap();
    let did = world.relay(&["adopt", folder, "--headless"]).exits(1).says("is a folder");
    let hint = did.stderr.lines().find_map(|line| line.split_once("there: ")).unwrap().1;
    world.relay(&["adopt", path, "--headless", "--no-launch"]).exits(0).says("git relay resume");
    world.relay(&["abort"]).exits(0);
    world.run("sh", &["-c", hint]).exits(1).says("was adopted before");
}

#[test]
fn without_an_id_it_is_the_one_that_is_plainly_meant() {
    let world = world();
    world.relay(&["adopt", "--headless"]).exits(1).says("no agent's session was found");
    let limited = left(&world, "claude", "todos-limit", &world.repo);
    let finished = left(&world, "codex", "plain-ok", &world.repo);
    age(&world, &limited, 60);
    let did =
        world.relay(&["adopt", "--headless"]).exits(1).says("several sessions could be meant");
    for words in
        [&limited, &finished, "ended at its limit", "Write greeting.txt", "git relay adopt ID"]
    {
        assert!(did.stderr.contains(words), "'{words}' is not in:\n{}", did.stderr);
    }
    assert_eq!(world.git(&["for-each-ref", "refs/relay/"]), "");
    // Later, and not able to go on by itself: that one.
    age(&world, &finished, 120);
    world.relay(&["adopt", "--headless", "--no-launch"]).exits(0).says("git relay resume");
    assert!(world.session().starts_with("write-greeting-txt"));
    // It is taken; the other one is left.
    world
        .relay(&["adopt", &limited, "--headless"])
        .exits(1)
        .says("was adopted already, as session");
    world.relay(&["adopt", "--headless"]).exits(0);
}

/// What was adopted and is over is not taken again by a slip; said by name it is, and that is told.
#[test]
fn what_was_adopted_before_is_adopted_again_only_by_name() {
    let world = world();
    let id = left(&world, "codex", "limit", &world.repo);
    age(&world, &id, 60);
    let relay = |words: &[&str]| {
        let json = world.relay(&["detect", "--json"]).exits(0).json();
        (world.relay(words), json["detected"]["sessions"][0]["relaySession"].clone())
    };
    world.relay(&["adopt", "--headless"]).exits(0);
    let first = world.session();
    world.relay(&["abort"]).exits(0);
    let (did, named) = relay(&["adopt", "--headless"]);
    let did = did.exits(1).says(&format!("was adopted before, as session '{first}' (ABORTED)"));
    did.says(&format!("git relay adopt {id}"));
    assert_eq!(named, first.as_str());
    let said = format!("it was adopted before, as session {first} (ABORTED)");
    // States say their time in seconds.
    std::thread::sleep(Duration::from_millis(1100));
    let (did, _) = relay(&["adopt", &id, "--headless", "--no-launch", "--json"]);
    let second = did.exits(0).says(&said).json()["run"]["sessionId"].clone();
    assert_ne!(second, first.as_str());
    let (_, named) = relay(&["list"]);
    assert_eq!(named, second, "the open one");
    world.relay(&["abort", second.as_str().unwrap()]).exits(0);
    let (_, named) = relay(&["list"]);
    assert_eq!(named, second, "the newest");
    // Its agent went on since: that is new work.
    let file = fs::File::options().append(true).open(transcript(&world, &id)).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(10)).unwrap();
    world.relay(&["adopt", "--headless"]).exits(0);
}

#[test]
fn one_of_many_that_adopt_at_once_gets_it() {
    let world = world();
    let id = left(&world, "claude", "todos-limit", &world.repo);
    let start = || {
        let mut command = world.command(binary());
        command.args(["adopt", &id, "--headless", "--no-launch"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<Child> = (0..4).map(|_| start()).collect();
    let ended: Vec<_> = started.into_iter().map(|it| it.wait_with_output().unwrap()).collect();
    let won = ended.iter().filter(|output| output.status.success()).count();
    assert_eq!(won, 1, "{ended:?}");
    for output in ended.iter().filter(|output| !output.status.success()) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("was adopted already, as session"), "{said}");
    }
    assert_eq!(world.git(&["for-each-ref", "refs/relay/sessions"]).lines().count(), 1);
}

#[test]
fn one_id_in_two_projects_is_that_of_this_repository() {
    for name in ["-a", "-zzz"] {
        let world = world();
        let id = left(&world, "claude", "todos-limit", &world.repo);
        let own = transcript(&world, &id);
        let text = fs::read_to_string(&own).unwrap();
        let other = world.root.join("other");
        fs::create_dir_all(&other).unwrap();
        let text = text.replace(world.repo.to_str().unwrap(), other.to_str().unwrap());
        let text = text.replace("Write greeting.txt", "Write something else");
        let copy = world.home.join(format!(".claude/projects/{name}/{id}.jsonl"));
        world.write_at(&copy, &text);
        world.relay(&["adopt", &id, "--headless"]).exits(0);
        assert!(envelope(&world).contains("Write greeting.txt"), "{name}");
        assert!(!envelope(&world).contains("something else"), "{name}: two were mixed");
        world.relay(&["verify"]).exits(0);
    }
}

#[test]
fn what_is_saved_without_a_launch_is_resumed_and_can_be_verified() {
    let world = world();
    left(&world, "codex", "limit", &world.repo);
    let did = world.relay(&["adopt", "--headless", "--no-launch", "--json"]).exits(0);
    assert_eq!(did.json()["run"]["end"], "notStarted");
    assert!(!world.home.join("got.md").exists());
    world.relay(&["verify"]).exits(0);
    let log = world.relay(&["log"]).exits(0).stdout;
    assert!(log.contains("adopted") && log.contains("begun"), "{log}");
    world.relay(&["resume"]).exits(0).says("second took over");
    assert!(envelope(&world).contains("Write greeting.txt and commit it"));
}

#[test]
fn a_leg_of_ours_and_nobody_are_refused() {
    let mut world = world();
    left(&world, "codex", "limit", &world.repo);
    world.set("GIT_RELAY_LEG", "0".repeat(32));
    world.relay(&["adopt"]).exits(1).says("may not do this");
    world.variables.clear();
    world.relay(&["adopt", "nothing"]).exits(1).says("no agent's session 'nothing' was found");
    world.relay(&["adopt"]).exits(1).says("hint: git relay adopt --headless\n");
    let to = ["adopt", "01", "--clean", "--to", "second"];
    world.relay(&to).exits(1).says("hint: git relay adopt 01 --to second --clean --headless\n");
    world.relay(&["adopt", "--to", "nobody"]).exits(2).says("no agent is called 'nobody'");
    world.relay(&["adopt", "--to", "codex", "--headless"]).exits(5).says("not installed");
    world.configure("");
    let did = world.relay(&["adopt", "--headless"]).exits(2).says("nobody has said which agents");
    did.says("git relay init --agents ");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/"]), "");
}

#[test]
fn what_an_agent_says_or_does_not_say_of_its_end_is_kept() {
    for (agent, recording, outcome) in [
        ("claude", "open-call", "unknown"),
        ("codex", "sigint", "killed"),
        ("claude", "plain-ok", "done"),
        ("claude", "context", "failed"),
    ] {
        let world = world();
        left(&world, agent, recording, &world.repo);
        world.relay(&["adopt", "--headless"]).exits(0);
        let contract = super::contract(&world);
        assert_eq!(contract["from"]["outcome"], outcome, "{agent} {recording}");
        if recording == "open-call" {
            assert!(contract["openCalls"].as_array().is_some_and(|calls| !calls.is_empty()));
        }
    }
}

/// A program that is called as `agent` and works on its session.
struct Runs(Child);

impl Drop for Runs {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A `claude` that works on `id`, as its own record of it says; it ends at `signal`.
fn running(world: &World, id: &str, script: &str) -> Runs {
    let path = world.home.join("bin/claude");
    // By a program of its own: what is open for writing here cannot be run from another thread.
    world.run("cp", &["/bin/sh", path.to_str().unwrap()]).exits(0);
    let mut command = Command::new(path);
    command.args(["-c", script]).current_dir(&world.repo).env_clear();
    command.env("HOME", &world.home).env("PATH", std::env::var("PATH").unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().unwrap();
    let process = git_relay::host::process::identify(child.id()).unwrap();
    let record = format!(
        r#"{{"pid":{},"sessionId":"{id}","procStart":"{}","status":"idle"}}"#,
        process.pid, process.start_ticks
    );
    world.write_at(&world.home.join(format!(".claude/sessions/{}.json", child.id())), &record);
    Runs(child)
}

#[test]
fn an_agent_that_still_runs_is_ended_only_if_that_is_said() {
    let world = world();
    let id = left(&world, "claude", "todos-limit", &world.repo);
    let mut runs = running(&world, &id, "trap 'exit 0' INT; while :; do sleep 0.05; done");
    let did = world.relay(&["adopt", "--headless"]).exits(1).says("still runs with it");
    assert!(
        did.stderr.contains(&format!("git relay adopt {id} --headless --force")),
        "{}",
        did.stderr
    );
    assert!(runs.0.try_wait().unwrap().is_none(), "it was ended");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/"]), "");
    world.relay(&["adopt", "--headless", "--force"]).exits(0).says("ended between two calls");
    assert!(runs.0.try_wait().unwrap().is_some(), "it still runs");
    let contract = super::contract(&world);
    assert_eq!(contract["from"]["outcome"], "limit", "{contract}");
}

#[test]
fn inside_the_agents_own_shell_it_is_only_begun() {
    let world = world();
    let id = left(&world, "claude", "plain-ok", &world.repo);
    let relay = binary();
    let program = relay.display();
    let out = world.home.join("out");
    // Its shell's environment names its session; what it says and what is above must agree.
    let script = format!(
        "while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done\n\
         {program} adopt >{out} 2>&1; echo plain $? >>{out}\n\
         CLAUDE_CODE_SESSION_ID=other {program} adopt >>{out} 2>&1; echo other $? >>{out}\n\
         CLAUDE_CODE_SESSION_ID={id} {program} adopt else >>{out} 2>&1; echo else $? >>{out}\n\
         CLAUDE_CODE_SESSION_ID={id} {program} adopt --headless >>{out} 2>&1; echo own $? >>{out}\n\
         touch \"$HOME/done\"; while [ ! -e \"$HOME/end\" ]; do sleep 0.05; done",
        out = out.display()
    );
    let runs = running(&world, &id, &script);
    fs::write(world.home.join("go"), "").unwrap();
    while !world.home.join("done").exists() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = super::text(&out);
    for words in ["plain 1", "other 1", "else 1", "own 0", "End your turn now", "git relay resume"]
    {
        assert!(said.contains(words), "'{words}' is not in:\n{said}");
    }
    let session = world.session();
    assert!(!world.home.join("got.md").exists());
    let early = world.relay(&["record", "--decision", "too early"]).exits(1);
    early.says("has no worktree now").says(&format!("git relay resume {session}"));
    // Its turn is over, so nothing of it is still to come; it is not ended.
    world.relay(&["resume"]).exits(0).says("is left as it is").says("second took over (leg 2)");
    assert!(git_relay::host::process::identify(runs.0.id()).is_some(), "it was ended");
    fs::write(world.home.join("end"), "").unwrap();
    assert_eq!(session, world.session());
}

#[test]
fn an_environment_without_its_agent_is_refused() {
    let mut world = world();
    let id = left(&world, "codex", "limit", &world.repo);
    world.set("CODEX_THREAD_ID", &id);
    world
        .relay(&["adopt", "--headless"])
        .exits(1)
        .says("no codex can be seen above it")
        .says(&format!("git relay adopt {id}"));
}

/// Wherever it is typed, the folder that is known is named, and nothing that was typed is dropped.
#[test]
fn outside_every_repository_the_folder_to_go_to_is_named() {
    let world = world();
    let id = left(&world, "codex", "limit", &world.repo);
    let mut command = world.command(binary());
    command.args(["adopt", &id[..13], "--headless", "--to", "second"]).current_dir(&world.home);
    let did = Did::of(&command.output().unwrap()).exits(1).says("no repository here");
    let hint = format!(
        "hint: cd {} && git relay adopt {id} --to second --headless\n",
        world.repo.display()
    );
    did.says(&hint);
}
