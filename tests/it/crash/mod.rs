//! kill -9 at any instant: one further command, with no help, comes to the same end.

mod adopt;
mod alive;
mod crowd;
mod ends;
mod inject;
mod load;
mod power;
mod shim;
mod start;

use super::support::{World, knows_reftable, same};
use git_relay::host::process;
use inject::{Hit, Injector, Kill, Points};
use serde_json::Value;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// More workers than cores: much of a case is waiting.
const WORKERS: usize = 6;

/// What an agent does first: it says that it was started under its nonce, and whether another
/// agent of this world is at work. Its task is on standard input, unless that is a terminal.
const STARTED: &str = "[ -t 0 ] || cat >/dev/null\n\
     [ -e \"$HOME/pid\" ] && [ -e \"/proc/$(cat \"$HOME/pid\")/exe\" ] && echo two >>\"$HOME/starts\"\n\
     echo $$ >\"$HOME/pid\"; echo \"$GIT_RELAY_LEG\" >>\"$HOME/starts\"\n\
     tell() { if [ -t 0 ]; then echo \"$1\" >>\"$GIT_RELAY_SIGNS\"; else echo \"$1\"; fi; }\n";
/// All that `second` does, once it has said that it was started.
const SECOND: &str = "tell start; tell 'step two'; echo whole >half.txt; git add half.txt\n\
     git commit -q -m 'Finish half.txt'; tell 'done all'\n";

/// A world on memory where there is some: what a flush means is not what is tested here.
fn world() -> World {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => World::below(memory),
        false => World::new(),
    }
}

/// Agents: `first` comes half-way and to its limit, where it stays at a terminal; `second` finishes.
fn two_agents(world: &World) {
    world.with_two_agents(
        &format!(
            "{STARTED}tell start; tell 'step one'; echo a >done.txt; git add done.txt\n\
             git commit -q -m 'Add done.txt'; git-relay record --do-not-redo 'done.txt is written'\n\
             echo half >half.txt; tell 'limit you have hit your limit'; [ -t 0 ] && sleep 60; exit 1\n"
        ),
        &format!("{STARTED}{SECOND}"),
    );
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}

fn template(world: &World) -> PathBuf {
    world.root.join("template")
}

/// Keeps the world as it is now, for [`reset`]. Paths in it stay true: it is copied back to where
/// it was.
fn keep(world: &World) {
    for (name, path) in [("home", &world.home), ("repo", &world.repo)] {
        fs::create_dir_all(template(world)).unwrap();
        copy(path, &template(world).join(name));
    }
}

fn reset(world: &World) {
    for (name, path) in [("home", &world.home), ("repo", &world.repo)] {
        copy(&template(world).join(name), path);
    }
}

/// The state record of the only session.
fn state(world: &World) -> Value {
    let sessions = sessions(world);
    let text = world.git(&["show", &format!("refs/relay/sessions/{}:state.json", sessions[0])]);
    serde_json::from_str(&text).unwrap()
}

fn sessions(world: &World) -> Vec<String> {
    let refs = world.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions"]);
    refs.lines().map(str::to_owned).collect()
}

fn all_refs(world: &World) -> String {
    world.git(&["for-each-ref"])
}

/// Locks of git's kind below the git dir; the kernel's locks in `relay/` are no such thing.
fn locks(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if !path.ends_with(".git/relay") {
                locks(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
}

/// What holds after every crash of everything, whatever was being done.
fn holds(world: &World, users_things: &BTreeMap<String, String>) {
    same(&world.users_things(), users_things);
    let did = world.run("git", &["fsck", "--strict", "--no-dangling"]).exits(0);
    assert!(!did.stderr.contains("error"), "{}", did.stderr);
    let mut found = Vec::new();
    locks(&world.repo.join(".git"), &mut found);
    assert!(found.is_empty(), "locks are left: {found:?}");
    let starts = fs::read_to_string(world.home.join("starts")).unwrap_or_default();
    let mut nonces: Vec<&str> = starts.lines().collect();
    assert!(!nonces.contains(&"two"), "two agents at once");
    nonces.sort_unstable();
    let started = nonces.len();
    nonces.dedup();
    assert_eq!(nonces.len(), started, "a nonce was used twice: {starts}");
    for nonce in nonces {
        let left = process::find_by_variable("GIT_RELAY_LEG", nonce);
        assert!(left.is_empty(), "processes of {nonce} are left: {left:?}");
    }
    world.relay(&["verify"]).exits(0);
}

/// The end of a whole relay: one contract, one note, the branch as the agents left it.
fn relayed(world: &World) {
    let story = came_to_its_end(world);
    let of_first: Vec<&str> = story.lines().skip(2).collect();
    assert_eq!(of_first, ["Add done.txt"]);
}

/// The same, whatever the first agent could commit. Returns the story of the branch.
fn came_to_its_end(world: &World) -> String {
    let state = state(world);
    assert_eq!(state["state"], "RUNNING", "{state}");
    assert_eq!(state["leg"], 2, "{state}");
    assert_eq!(state["legEnd"]["outcome"], "done", "{state}");
    let session = &sessions(world)[0];
    let chain = format!("refs/relay/sessions/{session}");
    let contracts = world.git(&["log", "--format=%H", &chain, "--", "contract.json"]);
    assert_eq!(contracts.lines().count(), 1, "one contract for one leg");
    let notes = world.git(&["notes", "--ref=relay", "list"]);
    let snapshot = world.git(&["rev-parse", &format!("refs/relay/snapshots/{session}/1")]);
    assert_eq!(notes.lines().count(), 1, "{notes}");
    assert!(notes.ends_with(&snapshot), "{notes}");
    let branch = format!("relay/{session}");
    let story = world.git(&["log", "--format=%s", &format!("main..{branch}")]);
    let snapshot = format!("relay: snapshot of session {session}, leg 1");
    assert!(story.starts_with(&format!("Finish half.txt\n{snapshot}")), "{story}");
    assert_eq!(world.git(&["show", &format!("{branch}:half.txt")]), "whole");
    assert_eq!(world.git(&["show", &format!("{branch}:done.txt")]), "a");
    let worktree = world.repo.join(".relay/sessions").join(session);
    let status = world.git(&["-C", worktree.to_str().unwrap(), "status", "--porcelain"]);
    assert_eq!(status, "", "the worktree is not what its branch says");
    story
}

/// A command that is killed everywhere.
struct Scene {
    name: &'static str,
    /// With fewer points than this the loop has lost its way.
    points_least: usize,
    prepare: fn(&World),
    /// The command; `SESSION` stands for the session that there is before it.
    command: &'static [&'static str],
    /// The one further command, given the one that was killed.
    recover: fn(&World, &[&str]),
    /// What must hold at the end, and what of the user's must be as it was.
    check: fn(&World, &BTreeMap<String, String>),
}

fn resume(world: &World) {
    match sessions(world).as_slice() {
        // Killed before the session was: nothing has happened, and the user says it again.
        [] => world.relay(&["run", "Write two files"]).exits(0),
        [only] => world.relay(&["resume", only]).exits(0),
        more => panic!("one run made {more:?}"),
    };
}

const RUN: Scene = Scene {
    name: "run",
    points_least: 300,
    prepare: two_agents,
    command: &["run", "Write two files"],
    recover: |world, _| resume(world),
    check: |world, before| {
        relayed(world);
        at_rest_for_good(world, before);
    },
};

fn at_rest_for_good(world: &World, before: &BTreeMap<String, String>) {
    holds(world, before);
    let refs = all_refs(world);
    world.relay(&["resume"]).exits(0);
    assert_eq!(all_refs(world), refs, "a second resume changed something");
}

#[derive(Default)]
struct Tally {
    queue: VecDeque<Kill>,
    /// Where a run was killed, once.
    found: usize,
    tried: usize,
    resumed: usize,
    failures: Vec<String>,
}

impl Tally {
    fn next(&mut self) -> Option<Kill> {
        if self.tried.is_multiple_of(50) {
            println!("tried {}, {} to go", self.tried, self.queue.len());
        }
        self.queue.pop_front()
    }
}

impl Scene {
    /// Kills at every point; panics with what did not come out right.
    fn play(&self) {
        let every = std::env::var("CRASH_EVERY").map_or(1, |every| every.parse().unwrap());
        self.play_at(Points::all, every);
    }

    /// Kills at those points of a recorded run that `choose` chooses: at each, or at one in `every`,
    /// others each day.
    fn play_at(&self, choose: fn(&Points) -> Vec<Kill>, every: usize) {
        let began = Instant::now();
        let today = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 86_400;
        let offset = usize::try_from(today).unwrap() % every;
        let choose = |points: &Points| {
            choose(points).into_iter().skip(offset).step_by(every).collect::<Vec<_>>()
        };
        let only = std::env::var("CRASH_ONLY").ok();
        let tally = Mutex::new(Tally::default());
        let points = std::sync::OnceLock::new();
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| self.work(&tally, &points, &choose, only.as_deref()));
            }
        });
        let tally = tally.into_inner().unwrap();
        let found = tally.found;
        println!(
            "{}: {} calls seen, one in {every} tried from {offset}: points found {found}, tried {}, \
             resumed {}; {} s",
            self.name,
            points.get().map_or(0, Points::seen),
            tally.tried,
            tally.resumed,
            began.elapsed().as_secs()
        );
        assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n----\n"));
        assert!(found >= self.points_least / every || only.is_some(), "only {found} points");
    }

    fn work(
        &self,
        tally: &Mutex<Tally>,
        points: &std::sync::OnceLock<Points>,
        choose: &(dyn Fn(&Points) -> Vec<Kill> + Sync),
        only: Option<&str>,
    ) {
        let world = world();
        (self.prepare)(&world);
        keep(&world);
        let before = world.users_things();
        let injector = Injector::new(world.root.parent().unwrap());
        let sessions = sessions(&world);
        let session = |word: &&'static str| match *word {
            "SESSION" => sessions[0].as_str(),
            word => word,
        };
        let command: Vec<&str> = self.command.iter().map(session).collect();
        let points = points.get_or_init(|| {
            let points = injector.record(&world, &command);
            (self.check)(&world, &before);
            let mut all = choose(&points);
            if let Some(only) = only {
                all.retain(|kill| format!("{kill:?}").contains(only));
            }
            tally.lock().unwrap().queue.extend(all);
            points
        });
        loop {
            let Some(kill) = tally.lock().unwrap().next() else { return };
            reset(&world);
            let mut hit = Hit::Unreached;
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                hit = injector.run(&world, kill, &command);
                // A point of the recorded run that this one did not have: the run is whole, and
                // the checks hold for it as well.
                (self.recover)(&world, &command);
                (self.check)(&world, &before);
            }));
            let mut tally = tally.lock().unwrap();
            if hit == Hit::Killed {
                tally.found += 1;
                tally.tried += 1;
                if !points.has(kill) {
                    tally.queue.push_back(Points::next(kill));
                }
            }
            match outcome {
                Ok(()) => tally.resumed += usize::from(hit == Hit::Killed),
                Err(why) => {
                    println!("{} {kill:?}: {}", self.name, text(why.as_ref()));
                    let killed = injector.words();
                    tally.failures.push(format!(
                        "{} {kill:?} ({hit:?}): {}\n--- the killed command said\n{killed}",
                        self.name,
                        text(why.as_ref()),
                    ));
                    if let Some(folder) = std::env::var_os("CRASH_KEEP") {
                        let folder = PathBuf::from(folder).join(format!("{kill:?}"));
                        fs::create_dir_all(&folder).unwrap();
                        copy(&world.repo, &folder.join("repo"));
                        copy(&world.home, &folder.join("home"));
                    }
                }
            }
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "a panic without words".to_owned(),
    }
}

#[test]
#[ignore = "minutes: tests/run runs it"]
fn crash_loop_of_a_whole_relay() {
    RUN.play();
}
