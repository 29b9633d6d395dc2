//! `git relay start` with scripted agents: the terminal's mechanics, whatever an agent does to it.

use super::support::real::nobody_is_left;
use super::support::terminal::Terminal;
use super::support::{World, scripted};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const NEXT: &str = "takes over in this terminal";

/// What every agent begins with: `tell` says something to the driver.
const HEAD: &str = "tell() { echo \"$1\" >>\"$GIT_RELAY_SIGNS\"; }\ntell start; tell 'step one'\n";
/// Leaves the terminal as a full-screen program does that is killed.
const RAW: &str = "stty raw -echo; printf '\\033[?1049h\\033[?25l\\033[?1002h\\033[?1006h\\033[?2004h\\033[?1h\\033='\n";
/// Says what it is told.
const LISTENS: &str = "echo ready; while read -r line; do echo \"heard $line\"; echo \"$line\" >>heard.txt\n\
     case $line in quit) tell 'done all'; exit 0;; limit) tell 'limit now'; sleep 60;; esac; done\n";

/// A repository with the agents `first` and `second`, after `init`.
fn world(first: &str, second: &str) -> World {
    let world = World::new();
    world.with_two_agents(&format!("{HEAD}{first}"), &format!("{HEAD}{second}"));
    world
}

/// Runs a command line between two looks at the terminal's settings, as one job of the shell.
fn runs(terminal: &Terminal<'_>, line: &str) {
    terminal.enters(&format!("sh -c \"stty -a >before; {line}; echo code \\$?; stty -a >after\""));
}

#[track_caller]
fn left_as_it_was(world: &World, terminal: &Terminal<'_>) {
    let text = |name: &str| fs::read_to_string(world.repo.join(name)).unwrap_or_default();
    terminal.wait("the settings are looked at again", || !text("after").is_empty());
    assert_eq!(text("before"), text("after"), "the terminal's settings were changed");
    assert_eq!(terminal.modes(), "alt=0 cursor=1 mouse=0 keypad=00 wrap=1");
    nobody_is_left(&state(world));
}

fn state(world: &World) -> Value {
    world.relay(&["status", "--json", &world.session()]).exits(0).json()["status"]["session"]
        .clone()
}

fn heard(world: &World) -> String {
    let path = world.worktree().join("heard.txt");
    fs::read_to_string(path).unwrap_or_default().replace('\n', " ")
}

/// The id of the driver that `terminal` runs.
fn driver(world: &World) -> u32 {
    let lock = world.repo.join(".git/relay").join(format!("{}.lock", world.session()));
    git_relay::host::lock::holder(&lock).expect("a driver holds the lock")
}

#[test]
fn it_is_refused_where_there_is_no_terminal() {
    let world = world(LISTENS, LISTENS);
    world.relay(&["start", "A task"]).exits(1).says("no terminal").says("git relay run");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/sessions"]), "");
}

/// What began at a terminal need not end there: overnight, say.
#[test]
fn a_session_goes_on_headless_when_the_person_says_so() {
    let headless = "[ -n \"$GIT_RELAY_SIGNS\" ] || { cat >/dev/null; echo start; echo 'step one'; \
         echo 'done all'; exit; }\n";
    let world = world(&format!("{headless}{LISTENS}"), LISTENS);
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    terminal.until("ready");
    // Its driver is gone, it is not: what it still does at the terminal is not taken for a run.
    world.run("kill", &["-9", &driver(&world).to_string()]).exits(0);
    let id = world.session();
    let hint = format!("hint: end it there, then: git relay resume {id} --headless\n");
    world
        .relay(&["resume", "--headless"])
        .exits(1)
        .says("first is at work at a terminal")
        .says(&hint);
    let agent = state(&world)["dispatch"]["process"]["pid"].to_string();
    world.run("kill", &["-9", &agent]).exits(0);
    terminal.until("code 137");
    world.relay(&["resume"]).exits(1).says(&format!("git relay resume {id} --headless\n"));
    assert_eq!(state(&world)["permissionLevel"], "ask");
    world.relay(&["resume", "--headless"]).exits(0).says("first took over (leg 2)");
    let state = state(&world);
    assert_eq!((&state["leg"], &state["permissionLevel"]), (&2.into(), &"edit".into()));
    world.relay(&["log"]).exits(0).says("left-terminal");
    world.relay(&["verify"]).exits(0);
    // Said again, or of a session that never had one, it is no other than `resume`.
    world.relay(&["resume", "--headless"]).exits(0).says("done. Look");
}

#[test]
fn two_legs_and_a_person_who_types_only_their_own_work() {
    let world = world(
        &format!("grep SigBlk /proc/self/status; {LISTENS}"),
        &format!("ls .relay; {LISTENS}"),
    );
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    terminal.until("ready");
    terminal.until("0000000000000000");
    terminal.enters("good morning");
    terminal.until("heard good morning");
    terminal.enters("limit");
    terminal.until(NEXT);
    for words in ["why    first is at its limit", "saved  every file", "signed, as contract"] {
        terminal.until(words);
    }
    terminal.press(&["Enter"]);
    terminal.until("envelope.md");
    terminal.enters("good evening");
    terminal.until("heard good evening");
    terminal.enters("quit");
    terminal.until("second was left, with nothing open");
    terminal.enters("");
    terminal.until("code 0");
    left_as_it_was(&world, &terminal);
    let state = state(&world);
    assert_eq!((&state["leg"], &state["permissionLevel"]), (&2.into(), &"ask".into()));
    assert_eq!(heard(&world), "good morning limit good evening quit ");
    world.relay(&["verify"]).exits(0);
}

#[test]
fn who_asks_from_elsewhere_is_told_that_the_person_is_asked() {
    let world = world(LISTENS, LISTENS);
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    // Where its task is, since it is not given on standard input.
    terminal.until("'first' finds its task in .relay/task.md here");
    terminal.until("ready");
    terminal.enters("quit");
    terminal.until("first was left, with nothing open");
    let mut asks = world.command(super::support::binary());
    let said = fs::File::create(world.root.join("said")).unwrap();
    let mut asks = asks.arg("handoff").stderr(said).spawn().unwrap();
    terminal.wait("the person there is named", || {
        let said = fs::read_to_string(world.root.join("said")).unwrap();
        said.contains("press h there to hand over")
    });
    terminal.enters("h");
    assert!(asks.wait().unwrap().success());
    terminal.enters("quit");
    terminal.until("second was left");
    terminal.enters("l");
    left_as_it_was(&world, &terminal);
}

#[test]
fn an_agent_that_is_killed_leaves_no_mess() {
    let world = world(&format!("{RAW}kill -9 $$\n"), &format!("{RAW}tell 'limit now'; sleep 60\n"));
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    terminal.until(NEXT);
    terminal.until("why    first ended badly");
    assert_eq!(terminal.modes(), "alt=0 cursor=1 mouse=0 keypad=00 wrap=1");
    terminal.press(&["Enter"]);
    // Killed by its driver this time: it sits at its limit for ever, and nobody is left.
    terminal.until("no agent is left");
    terminal.until("code 6");
    left_as_it_was(&world, &terminal);
}

/// A person's Ctrl-C is no fault of the agent's, before the receipt as after it.
#[test]
fn a_ctrl_c_before_it_took_over_starts_nobody_unasked() {
    let world = world("", LISTENS);
    world.program(
        "first-agent",
        "echo start >>\"$GIT_RELAY_SIGNS\"; echo thinking; exec sleep 60\n",
    );
    let terminal = Terminal::open(&world);
    runs(&terminal, "trap : INT; git relay start 'A task'");
    terminal.until("thinking");
    terminal.press(&["C-c"]);
    terminal.until("first was left.");
    terminal.enters("h");
    terminal.until("ready");
    terminal.enters("quit");
    terminal.until("second was left");
    terminal.enters("l");
    terminal.until("code 0");
    left_as_it_was(&world, &terminal);
}

#[test]
fn an_agent_killed_before_it_took_over_is_passed_over() {
    let world = world("", LISTENS);
    world.program("first-agent", "echo start >>\"$GIT_RELAY_SIGNS\"; kill -9 $$\n");
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    terminal.until("why    first did not take over");
    terminal.press(&["Enter"]);
    terminal.until("ready");
    terminal.enters("quit");
    terminal.until("second was left");
    terminal.enters("l");
    left_as_it_was(&world, &terminal);
}

#[test]
fn ctrl_c_reaches_the_agent_and_not_the_driver() {
    let world = world(
        "trap 'echo interrupted >>heard.txt' INT\necho ready; while :; do read -r line || continue\n\
         tell 'done all'; exit 0; done\n",
        LISTENS,
    );
    let terminal = Terminal::open(&world);
    runs(&terminal, "git relay start 'A task'");
    terminal.until("ready");
    terminal.press(&["C-c"]);
    terminal.wait("the agent heard it", || heard(&world).contains("interrupted"));
    terminal.enters("quit");
    terminal.until("first was left");
    terminal.enters("h");
    terminal.until("starting second");
    terminal.until("ready");
    terminal.enters("quit");
    terminal.until("second was left");
    terminal.enters("l");
    left_as_it_was(&world, &terminal);
}

#[test]
fn ctrl_c_between_two_agents_stops_there() {
    let world = world("tell 'limit now'; sleep 60\n", LISTENS);
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until(NEXT);
    terminal.press(&["C-c"]);
    terminal.until("stopped here. Go on: git relay resume");
    let state = state(&world);
    assert_eq!((&state["state"], &state["leg"]), (&"ENVELOPE_BUILT".into(), &1.into()));
    terminal.enters("clear; git relay resume");
    terminal.until("starting second");
    terminal.enters("quit");
    terminal.until("second was left");
}

#[test]
fn ctrl_z_gives_the_shell_its_terminal_and_fg_gives_it_back() {
    let world = world(&format!("stty -echo\n{LISTENS}"), LISTENS);
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until("ready");
    terminal.enters("one");
    terminal.until("heard one");
    terminal.press(&["C-z"]);
    terminal.until("Stopped");
    terminal.enters("stty -a | grep -c ' echo '; jobs | wc -l");
    terminal.until("1\n1");
    terminal.enters("clear; fg");
    terminal.until("git relay start");
    terminal.wait("its own settings are back", || terminal.settings().contains(" -echo "));
    terminal.enters("two");
    terminal.until("heard two");
    assert!(!terminal.screen().contains("\ntwo"), "{}", terminal.screen());
    terminal.press(&["C-z"]);
    terminal.until("Stopped");
    terminal.enters("bg");
    terminal.enters("echo still my shell");
    terminal.until("\nstill my shell");
    terminal.enters("clear; fg");
    terminal.enters("quit");
    terminal.until("first was left");
}

#[test]
fn the_window_size_follows() {
    let world = world(&format!("trap 'stty size >>heard.txt' WINCH\n{LISTENS}"), LISTENS);
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until("ready");
    terminal.resize(77, 22);
    terminal.wait("the agent has the new size", || {
        // The shell runs a trap once the read is over.
        terminal.enters("x");
        heard(&world).contains("22 77")
    });
}

#[test]
fn a_hang_up_ends_the_agent_and_leaves_the_session_whole() {
    let world = world(
        "trap 'echo hung up >>heard.txt; exit 1' HUP\necho ready; while :; do sleep 0.1; done\n",
        LISTENS,
    );
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until("ready");
    let driver = driver(&world);
    terminal.hangs_up();
    let gone = || git_relay::host::process::identify(driver).is_none();
    let began = std::time::Instant::now();
    while !gone() {
        assert!(began.elapsed().as_secs() < 60, "the driver lives on");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(heard(&world), "hung up ");
    let state = state(&world);
    assert_eq!(state["legEnd"]["outcome"], "killed", "{state}");
    nobody_is_left(&state);
    world.relay(&["resume"]).exits(1).says("works at a terminal");
}

#[test]
fn a_killed_driver_leaves_the_terminal_to_the_shell_and_the_session_to_resume() {
    let world = world(&format!("stty -echo\n{LISTENS}"), LISTENS);
    let terminal = Terminal::open(&world);
    terminal.enters("stty -a >before");
    terminal.enters("git relay start 'A task'");
    terminal.until("ready");
    terminal.enters("one");
    terminal.until("heard one");
    let pid = driver(&world).to_string();
    world.run("kill", &["-9", &pid]).exits(0);
    terminal.until("died of signal 9");
    terminal.enters("clear; stty -a >after; echo mine again");
    terminal.until("\nmine again");
    let text = |name: &str| fs::read_to_string(world.repo.join(name)).unwrap();
    assert_eq!(text("before"), text("after"), "the terminal's settings were changed");
    terminal.enters("clear; git relay resume");
    // The agent read from a terminal that was no longer its own, and ended.
    terminal.until("first was left");
    terminal.enters("h");
    terminal.enters("two");
    terminal.until("heard two");
    terminal.enters("quit");
    terminal.until("second was left");
    terminal.enters("l");
    terminal.wait("the driver is gone", || terminal.screen().contains("git relay abort"));
    assert_eq!(heard(&world), "one two quit ");
    nobody_is_left(&state(&world));
}

#[test]
fn who_stands_by_the_driver_may_be_killed_too() {
    let world = world(&format!("{RAW}echo ready; while :; do sleep 0.1; done\n"), LISTENS);
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until("ready");
    let driver = driver(&world);
    let beside = git_relay::host::process::parent(driver).expect("a parent").to_string();
    world.run("kill", &["-9", &beside]).exits(0);
    // The shell was told that its job is dead, so it is: agent, driver and all.
    terminal.until("died of signal 9");
    terminal.wait("the driver is gone", || git_relay::host::process::identify(driver).is_none());
    terminal.press(&["C-j"]);
    terminal.types("stty sane; echo mine $((6 * 7))");
    terminal.press(&["C-j"]);
    terminal.until("mine 42");
    let state = state(&world);
    assert_eq!(state["legEnd"]["outcome"], "killed", "{state}");
    nobody_is_left(&state);
}

#[test]
fn finish_is_one_of_the_answers() {
    let world = world(
        "echo new >new.txt; git add new.txt; git commit -q -m 'Add new.txt'; tell 'done all'\n",
        LISTENS,
    );
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start 'A task'");
    terminal.until("first was left");
    terminal.enters("f");
    terminal.until("main is now");
    assert_eq!(world.git(&["show", "HEAD:new.txt"]), "new");
}

#[test]
fn who_may_receive_it_is_asked_once_where_nobody_has_said() {
    let world = World::new();
    let path = world.program("first-agent", &format!("{HEAD}{LISTENS}"));
    let config = scripted(&[("first", &path)]);
    let (_, described) = config.split_once('\n').unwrap();
    world.configure(described);
    world.relay(&["init"]).exits(0);
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start");
    terminal.until("May these agents receive this work, one after the other: ");
    terminal.enters("n");
    terminal.until("nobody has said which agents may receive this work");
    terminal.enters("clear; git relay start");
    terminal.until("[y/N]");
    terminal.enters("y");
    terminal.until("What is to be done?");
    terminal.enters("Mend the roof");
    terminal.until("ready");
    assert_eq!(state(&world)["task"], "Mend the roof");
    terminal.enters("quit");
    terminal.until("first was left");
}

#[test]
fn what_is_not_committed_travels_and_stays() {
    let world = world(LISTENS, LISTENS);
    world.write("gone.txt", "gone\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "Add gone.txt"]);
    fs::remove_file(world.repo.join("gone.txt")).unwrap();
    world.write("README.md", "changed\n");
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    fs::write(world.repo.join("bytes.bin"), [0, 159, 146, 150]).unwrap();
    let tool: PathBuf = world.repo.join("tool.sh");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    world.run("chmod", &["+x", "tool.sh"]);
    std::os::unix::fs::symlink("README.md", world.repo.join("link")).unwrap();
    world.write(".git/info/exclude", "/.relay/\n/ignored.txt\n");
    world.write("ignored.txt", "ignored\n");
    let before = world.users_things();
    let terminal = Terminal::open(&world);
    terminal.enters("git relay start --include-dirty 'A task'");
    terminal.until("ready");
    let there = world.worktree();
    assert_eq!(fs::read(there.join("bytes.bin")).unwrap(), [0, 159, 146, 150]);
    assert_eq!(fs::read_link(there.join("link")).unwrap(), PathBuf::from("README.md"));
    assert_eq!(fs::read_to_string(there.join("README.md")).unwrap(), "changed\n");
    assert!(there.join("staged.txt").exists() && !there.join("ignored.txt").exists());
    assert!(!there.join("gone.txt").exists());
    let tree = world.git(&["-C", there.to_str().unwrap(), "ls-tree", "HEAD", "tool.sh", "link"]);
    assert!(tree.contains("100755 blob") && tree.contains("120000 blob"), "{tree}");
    assert_eq!(world.git(&["-C", there.to_str().unwrap(), "status", "--porcelain"]), "");
    terminal.enters("quit");
    terminal.until("first was left");
    terminal.enters("l");
    assert_eq!(world.users_things(), before);
}
