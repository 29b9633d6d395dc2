//! kill -9 at a chosen system call of the driver or of a git child of its, by strace.
//!
//! strace counts the calls of one name in one process, so a point is a name and a number, and each
//! kind of process has its own way: the driver is traced alone (neither git nor an agent is), and
//! git is reached through a shim that only the driver's git, and git's own children, go through.
//! Agents are never traced.

use crate::it::support::{World, binary};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Calls that change a file system or start a process; `?`: where the architecture has them.
const CALLS: [&str; 30] = [
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "truncate",
    "ftruncate",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "fallocate",
    "chmod",
    "fchmod",
    "fchmodat",
    "clone",
    "clone3",
    "fork",
    "vfork",
];
/// What opens a file; libc and Rust know no other.
const OPEN: &str = "openat";

/// The calls as strace wants to have them said.
fn all_calls() -> String {
    CALLS.map(|call| format!("?{call}")).join(",")
}

/// The `nth` call of this name in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Point {
    name: &'static str,
    nth: usize,
}

impl Point {
    fn next(self) -> Self {
        Self { nth: self.nth + 1, ..self }
    }

    fn inject(self) -> String {
        format!("inject={}:signal=KILL:when={}", self.name, self.nth)
    }
}

/// The points of a log, each with its line.
fn points(log: &str) -> Vec<(Point, String)> {
    let mut counts: HashMap<&'static str, usize> = HashMap::new();
    let mut found = Vec::new();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        let Some(name) = CALLS.into_iter().chain([OPEN]).find(|known| *known == name) else {
            continue;
        };
        let nth = counts.entry(name).or_default();
        *nth += 1;
        found.push((Point { name, nth: *nth }, line.to_owned()));
    }
    found
}

/// Where a run is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kill {
    /// The driver, on entry to a call.
    Ours(Point),
    /// The driver, on entry to the opening of this number that may make a file.
    Open(usize),
    /// The git process of this number (children of git count too), on entry to a call; `both`: the
    /// driver, and a git above it, die with it.
    Git { call: usize, at: Point, both: bool },
    /// The driver, instead of the git of this number.
    Before(usize),
    /// The driver, while that git runs.
    Beside(usize),
    /// The driver, when the git of this number has ended and before it is told.
    After(usize),
    /// The driver first; then git runs, while the next command has begun already.
    Orphan(usize),
    /// Nobody: git fails, and the driver has to live with it.
    Fails(usize),
}

/// What came of a run that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    Killed,
    /// The run ended before the point was reached.
    Unreached,
}

/// The points of one run, as recorded.
pub(crate) struct Points {
    /// For each call of the driver, whether a kill there is an instant of its own.
    ours: Vec<(Point, bool)>,
    /// The same for each opening of the driver that may make a file.
    opens: Vec<bool>,
    /// The calls of each git process.
    git: Vec<Vec<Point>>,
    last_start: usize,
}

impl Points {
    /// Where the driver starts the last program of its run.
    pub(crate) fn last_start(&self) -> Kill {
        Kill::Ours(self.ours[self.last_start].0)
    }

    /// How many calls were seen.
    pub(crate) fn seen(&self) -> usize {
        self.ours.len() + self.opens.len() + self.git.iter().map(Vec::len).sum::<usize>()
    }

    /// Every instant once. Two kills with nothing changed on disk in between are one: a folder
    /// that is there already, a word on the terminal, more bytes in a temporary file that is not
    /// named yet.
    pub(crate) fn all(&self) -> Vec<Kill> {
        let mut all: Vec<Kill> = Vec::new();
        let seen: Vec<Point> = self.ours.iter().map(|(point, _)| *point).collect();
        all.extend(self.ours.iter().filter(|(_, own)| *own).map(|(point, _)| Kill::Ours(*point)));
        // One more of each than was recorded: the runs that must end by themselves.
        all.extend(beyond(&seen).into_iter().map(Kill::Ours));
        let opens = self.opens.iter().zip(1..).filter(|(own, _)| **own);
        all.extend(opens.map(|(_, n)| Kill::Open(n)));
        for (calls, call) in self.git.iter().zip(1..) {
            for at in calls.iter().copied().chain(beyond(calls)) {
                all.extend([true, false].map(|both| Kill::Git { call, at, both }));
            }
            all.extend([Kill::After(call), Kill::Orphan(call), Kill::Fails(call)]);
        }
        all.push(Kill::After(self.git.len() + 1));
        all
    }

    /// Before, beside and after every call of git, git cannot do it, and at every renaming of git's:
    /// there it holds the lock on what it renames.
    pub(crate) fn around_git(&self) -> Vec<Kill> {
        let mut all = Vec::new();
        for (calls, call) in self.git.iter().zip(1..) {
            all.extend([Kill::Before(call), Kill::Beside(call), Kill::After(call)]);
            all.extend([Kill::Orphan(call), Kill::Fails(call)]);
            for at in calls.iter().copied().filter(|at| at.name.starts_with("rename")) {
                all.extend([true, false].map(|both| Kill::Git { call, at, both }));
            }
        }
        // One more than was recorded: the run that must end by itself.
        all.push(Kill::Before(self.git.len() + 1));
        all
    }

    pub(crate) fn next(kill: Kill) -> Kill {
        match kill {
            Kill::Ours(at) => Kill::Ours(at.next()),
            Kill::Open(n) => Kill::Open(n + 1),
            Kill::Git { call, at, both } => Kill::Git { call, at: at.next(), both },
            Kill::Before(n) => Kill::Before(n + 1),
            Kill::Beside(n) => Kill::Beside(n + 1),
            Kill::After(n) => Kill::After(n + 1),
            Kill::Orphan(n) => Kill::Orphan(n + 1),
            Kill::Fails(n) => Kill::Fails(n + 1),
        }
    }

    /// Whether the recorded run had this point: an unkilled run there only differs from it.
    pub(crate) fn has(&self, kill: Kill) -> bool {
        match kill {
            Kill::Ours(at) => self.ours.iter().any(|(point, _)| *point == at),
            Kill::Open(n) => n <= self.opens.len(),
            Kill::Git { call, at, .. } => {
                self.git.get(call - 1).is_some_and(|known| known.contains(&at))
            }
            Kill::Before(n)
            | Kill::Beside(n)
            | Kill::After(n)
            | Kill::Orphan(n)
            | Kill::Fails(n) => n <= self.git.len(),
        }
    }
}

/// For each name among `calls`, the one after its last.
fn beyond(calls: &[Point]) -> Vec<Point> {
    let is_last = |point: &&Point| !calls.contains(&point.next());
    calls.iter().filter(is_last).map(|point| point.next()).collect()
}

/// The shim for git and the logs of strace, outside the world they are used on.
pub(crate) struct Injector {
    folder: tempfile::TempDir,
    strace: PathBuf,
}

impl Injector {
    pub(crate) fn new(parent: &Path) -> Self {
        let strace = which::which("strace").expect(
            "strace is missing, and no crash can be tested without it: apt-get install strace",
        );
        let git = which::which("git").expect("git is on PATH");
        let folder = tempfile::Builder::new().prefix("relay-shim-").tempdir_in(parent).unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let output = Command::new(&git).arg("--exec-path").output().unwrap();
        let programs = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
        for entry in fs::read_dir(&programs).unwrap().map(Result::unwrap) {
            if entry.file_name() != "git" {
                symlink(entry.path(), bin.join(entry.file_name())).unwrap();
            }
        }
        let script = include_str!("git-shim.sh")
            .replace("@GIT@", &git.to_string_lossy())
            .replace("@STRACE@", &strace.to_string_lossy())
            .replace("@CALLS@", &all_calls())
            .replace("@FOLDER@", &folder.path().to_string_lossy());
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, strace }
    }

    /// Runs to the end and counts.
    pub(crate) fn record(&self, world: &World, arguments: &[&str]) -> Points {
        self.plan("0 record");
        let set = format!("trace={},{OPEN}", all_calls());
        let status = self.traced(world, &["-y", "-e", &set], arguments);
        assert!(status.success(), "unkilled, it must succeed: {}", self.words());
        let git = (1..)
            .map(|call| self.folder.path().join(format!("log.{call}")))
            .take_while(|log| log.exists())
            .map(|log| points(&fs::read_to_string(log).unwrap()))
            .map(|points| points.into_iter().map(|(point, _)| point).collect())
            .collect();
        let (mut ours, mut opens) = (Vec::new(), Vec::new());
        // Whether the disk is as it was at a kill that is in the list already.
        let mut same = false;
        let mut last = String::new();
        let mut last_start = 0;
        for (point, line) in self.log() {
            let is_open = point.name == OPEN;
            if is_open && !makes(&line) {
                continue;
            }
            let file = line.split_once(", ").map_or("", |(file, _)| file).to_owned();
            let more = line.starts_with("write") && file == last;
            if line.contains("CLONE_VFORK") || point.name == "vfork" {
                last_start = ours.len();
            }
            match is_open {
                true => opens.push(!same && !more),
                false => ours.push((point, !same && !more)),
            }
            same = (same || !more) && !changes(&line);
            last = file;
        }
        Points { ours, opens, git, last_start }
    }

    /// Runs and kills.
    pub(crate) fn run(&self, world: &World, kill: Kill, arguments: &[&str]) -> Hit {
        match kill {
            Kill::Ours(at) => self.strike(world, at, arguments),
            Kill::Open(n) => self.run_open(world, n, arguments),
            Kill::Git { call, at, both } => {
                let how = if both { "both" } else { "alone" };
                self.shimmed(world, &format!("{call} {how} {} {}", at.name, at.nth), arguments)
            }
            Kill::Before(call) => self.shimmed(world, &format!("{call} before"), arguments),
            Kill::Beside(call) => self.shimmed(world, &format!("{call} beside"), arguments),
            Kill::After(call) => self.shimmed(world, &format!("{call} after"), arguments),
            Kill::Orphan(call) => self.shimmed(world, &format!("{call} orphan"), arguments),
            Kill::Fails(call) => self.shimmed(world, &format!("{call} fails"), arguments),
        }
    }

    /// Openings that may make a file are counted among all openings, whose number varies a little
    /// with the processes on the machine: an unkilled run just before says which one to strike. A
    /// kill beside it is one all the same.
    fn run_open(&self, world: &World, wanted: usize, arguments: &[&str]) -> Hit {
        self.plan("0 none");
        let status = self.traced(world, &["-e", &format!("trace={OPEN}")], arguments);
        assert!(status.success(), "unkilled, it must succeed: {}", self.words());
        let log = self.log();
        let Some((at, _)) = log.iter().filter(|(_, line)| makes(line)).nth(wanted - 1) else {
            return Hit::Unreached;
        };
        super::reset(world);
        self.strike(world, *at, arguments)
    }

    fn strike(&self, world: &World, at: Point, arguments: &[&str]) -> Hit {
        self.plan("0 none");
        let trace = format!("trace={}", at.name);
        was_killed(self.traced(world, &["-e", &trace, "-e", &at.inject()], arguments))
    }

    /// Runs, and holds the driver back for a second after a call instead of killing it.
    pub(crate) fn hold(&self, world: &World, kill: Kill, arguments: &[&str]) {
        let Kill::Ours(at) = kill else { panic!("only the driver can be held back") };
        self.plan("0 none");
        let trace = format!("trace={}", at.name);
        let inject = format!("inject={}:delay_exit=1000000:when={}", at.name, at.nth);
        self.traced(world, &["-e", &trace, "-e", &inject], arguments);
    }

    /// What the killed run said.
    pub(crate) fn words(&self) -> String {
        fs::read_to_string(self.folder.path().join("words")).unwrap_or_default()
    }

    fn plan(&self, plan: &str) {
        for entry in fs::read_dir(self.folder.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::write(self.folder.path().join("plan"), format!("{plan}\n")).unwrap();
    }

    fn traced(&self, world: &World, options: &[&str], arguments: &[&str]) -> ExitStatus {
        let mut command = world.command(&self.strace);
        command.args(["-e", "signal=none", "-o"]).arg(self.folder.path().join("log"));
        command.args(options).arg("--").arg(binary()).args(arguments);
        self.start(world, command)
    }

    fn shimmed(&self, world: &World, plan: &str, arguments: &[&str]) -> Hit {
        self.plan(plan);
        let mut command = world.command(binary());
        command.args(arguments);
        self.start(world, command);
        match self.folder.path().join("hit").exists() {
            true => Hit::Killed,
            false => Hit::Unreached,
        }
    }

    /// Nothing is read from pipes: orphans would hold them open.
    fn start(&self, world: &World, mut command: Command) -> ExitStatus {
        if command.get_args().any(|word| word == "start") {
            command = seated(world, &command);
        }
        let bin = self.folder.path().join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", bin.display(), world.home.join("bin").display());
        let words = File::create(self.folder.path().join("words")).unwrap();
        command.env("PATH", path).env("GIT_EXEC_PATH", &bin).env("GIT_RELAY_DURABILITY", "full");
        command.stdout(words.try_clone().unwrap()).stderr(words).status().unwrap()
    }

    fn log(&self) -> Vec<(Point, String)> {
        points(&fs::read_to_string(self.folder.path().join("log")).unwrap_or_default())
    }
}

/// The command in a terminal of its own, at which somebody presses Enter all the time. Nobody
/// stands by it: the driver itself is to be traced.
pub(crate) fn seated(world: &World, command: &Command) -> Command {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> =
        words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))).collect();
    let line = format!("GIT_RELAY_STANDS_BY=$$ exec {}", words.join(" "));
    let mut seated = world.command("sh");
    seated.args([
        "-c",
        "while sleep 0.1; do echo; done 2>/dev/null | exec script -qefc \"$1\" /dev/null",
        "sh",
        &line,
    ]);
    seated
}

/// strace ends as what it traced did.
fn was_killed(status: ExitStatus) -> Hit {
    match (status.signal(), status.code()) {
        (Some(9), _) | (_, Some(137)) => Hit::Killed,
        _ => Hit::Unreached,
    }
}

fn makes(line: &str) -> bool {
    line.contains("O_CREAT")
}

/// Whether a recorded call changed anything that the next command could see.
fn changes(line: &str) -> bool {
    let failed = line.contains(" = -1 ");
    let unseen = ["write(1<", "write(2<", "fsync", "fdatasync", "syncfs", "sync"];
    let thread = line.contains("CLONE_THREAD");
    !failed && !thread && !unseen.iter().any(|call| line.starts_with(call))
}
