//! Processes of other programs: started, told apart, found by a variable, ended.
//!
//! What is read here is Linux's `/proc`; elsewhere the searches find nothing.

use crate::error::Fault;
use crate::model::session::Process;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process deeper down than this is nobody's shell.
const ANCESTORS_MOST: usize = 64;

/// How to start a program that outlives us if need be.
#[derive(Debug)]
pub struct Spawn<'a> {
    pub argv: &'a [OsString],
    pub folder: &'a Path,
    /// Added to (or taken out of, when `None`) our own environment.
    pub environment: &'a [(OsString, Option<OsString>)],
    pub speaks: Speaks<'a>,
}

/// Where a program reads and writes.
#[derive(Debug)]
pub enum Speaks<'a> {
    /// In files, not in pipes of ours: it must be able to live on when we die.
    Files {
        /// Read from its start; nothing to read when `None`.
        stdin: Option<&'a Path>,
        stdout: File,
        stderr: File,
    },
    /// In our own terminal.
    Terminal,
}

/// Starts a program in a process group of its own.
pub fn spawn(order: Spawn<'_>) -> Result<Child> {
    let (program, arguments) = order.argv.split_first().context("an argv has a program")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(order.folder).process_group(0);
    if let Speaks::Files { stdin, stdout, stderr } = order.speaks {
        let stdin = match stdin {
            Some(path) => File::open(path)
                .with_context(|| format!("cannot open '{}'", path.display()))
                .map(Stdio::from)?,
            None => Stdio::null(),
        };
        command.stdin(stdin).stdout(stdout).stderr(stderr);
    }
    change_environment(&mut command, order.environment);
    command.spawn().map_err(|error| {
        Fault::environment(format!("cannot start '{}': {error}", program.to_string_lossy())).into()
    })
}

fn change_environment(command: &mut Command, changes: &[(OsString, Option<OsString>)]) {
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Becomes another program; returns only what kept it from that.
pub fn become_program(argv: &[OsString]) -> anyhow::Error {
    match argv.split_first() {
        Some((program, arguments)) => {
            let error = Command::new(program).args(arguments).exec();
            anyhow::anyhow!("cannot start '{}': {error}", program.to_string_lossy())
        }
        None => anyhow::anyhow!("no program is named"),
    }
}

/// Starts this very command again, in the same process group, with one variable more.
pub fn start_again(variable: &str, value: &str) -> Result<Child> {
    let mut command = Command::new(super::env::program()?);
    command.args(std::env::args_os().skip(1)).env(variable, value);
    command.spawn().context("cannot start this program again")
}

/// The fields of `/proc/<pid>/stat` from the third (state) on.
fn stat_of(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses and may itself hold both.
    Some(stat[stat.rfind(')')? + 2..].split(' ').map(str::to_owned).collect())
}

/// Whether exactly this process is stopped, by Ctrl-Z for one.
pub fn is_stopped(process: Process) -> bool {
    is_alive(process) && stat_of(process.pid).is_some_and(|fields| fields[0] == "T")
}

/// The device number of the terminal that controls `pid`; 0 for none.
pub fn terminal_of(pid: u32) -> Option<i32> {
    stat_of(pid)?.get(4)?.parse().ok()
}

/// The process `pid` with its start time, `None` if there is none or it is a zombie.
pub fn identify(pid: u32) -> Option<Process> {
    let fields = stat_of(pid)?;
    if matches!(fields.first()?.as_str(), "Z" | "X") {
        return None;
    }
    Some(Process { pid, start_ticks: fields.get(19)?.parse().ok()? })
}

/// Whether exactly this process still lives.
pub fn is_alive(process: Process) -> bool {
    identify(process.pid) == Some(process)
}

/// Whether a process still lives and runs the program (or script) called `name`.
pub fn is_called(process: Process, name: &str) -> bool {
    let comm = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
    comm.trim_end() == name && is_alive(process)
}

/// Whether a process leads its group and no session: so [`spawn`] starts it, and what `setsid`
/// starts below it is told apart.
pub fn is_as_spawned(process: Process) -> bool {
    let read = || -> Option<bool> {
        let fields = stat_of(process.pid)?;
        let group: u32 = fields.get(2)?.parse().ok()?;
        let session: u32 = fields.get(3)?.parse().ok()?;
        Some(group == process.pid && session != process.pid)
    };
    read().unwrap_or(false)
}

/// The parent of `pid`.
pub fn parent(pid: u32) -> Option<u32> {
    stat_of(pid)?.get(1)?.parse().ok()
}

/// Our own processes (this user's) whose environment holds `NAME=value`, this one left out.
pub fn find_by_variable(name: &str, value: &str) -> Vec<Process> {
    let wanted = format!("{name}={value}");
    let ourselves = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != ourselves)
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
            })
        })
        .filter_map(identify)
        .collect()
}

/// Whether a process that we can look into has the file open or mapped; also where that cannot be
/// seen at all.
pub fn may_have(file: &Path) -> bool {
    let Ok(wanted) = fs::metadata(file) else { return false };
    let Ok(entries) = fs::read_dir("/proc/self/fd").and(fs::read_dir("/proc")) else {
        return true;
    };
    let number = wanted.ino().to_string();
    entries.flatten().any(|process| {
        let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let mut open = files.filter_map(|file| fs::metadata(file.path()).ok());
        // A line's fifth word is the inode. Its device is not compared: some systems show another.
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        open.any(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()))
            || maps.lines().any(|line| line.split_whitespace().nth(4) == Some(&number))
    })
}

/// Sends `signal` to the process group that `process` leads, if it still lives.
pub fn signal_group(process: Process, signal: Signal) {
    if let (true, Some(pid)) = (is_alive(process), pid(process)) {
        // A group that is gone in the meantime is what we wanted.
        _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Sends `signal` to one process, if it is still the same.
pub fn signal(process: Process, signal: Signal) {
    if let (true, Some(pid)) = (is_alive(process), pid(process)) {
        _ = rustix::process::kill_process(pid, signal);
    }
}

/// Sends `signal` to a process of this user that we did not start: to its group where it leads one
/// that is its own, else to it alone. A shell without job control leaves what it starts in its own
/// group, and with that itself and us.
pub fn signal_stranger(process: Process, signal: Signal) {
    let is_own = fs::metadata(format!("/proc/{}", process.pid))
        .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    if !is_own {
        return;
    }
    let group = |pid: u32| stat_of(pid)?.get(2)?.parse::<u32>().ok();
    let leads = group(process.pid) == Some(process.pid);
    let with_us = ancestors().chain(parent(process.pid)).any(|pid| group(pid) == Some(process.pid));
    if leads && !with_us {
        signal_group(process, signal);
    } else {
        self::signal(process, signal);
    }
}

/// This very process, its parent, and so on.
pub fn ancestors() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(std::process::id()), |pid| parent(*pid))
        .take_while(|pid| *pid != 0)
        .take(ANCESTORS_MOST)
}

fn pid(process: Process) -> Option<Pid> {
    i32::try_from(process.pid).ok().and_then(Pid::from_raw)
}

/// Waits until the process ends, `patience` at most.
pub fn wait_end(process: Process, patience: Duration) {
    let handle = pid(process).and_then(|pid| {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    });
    let Some(handle) = handle else { return std::thread::sleep(patience) };
    let mut watched = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    let timeout = rustix::event::Timespec {
        tv_sec: patience.as_secs().cast_signed(),
        tv_nsec: patience.subsec_nanos().into(),
    };
    // Interrupted by a signal: the caller looks again anyway.
    _ = rustix::event::poll(&mut watched, Some(&timeout));
}

/// Ends every process whose environment holds `NAME=value`: SIGTERM, then SIGKILL after
/// `patience`; returns how many there were. Repeats until a search finds none.
///
/// Shell children of a killed agent go on writing files (tried on Claude Code 2.1.332), and they
/// sit in sessions of their own, so that no process group reaches them.
pub fn sweep(name: &str, value: &str, patience: Duration) -> Result<usize> {
    let mut met: Vec<Process> = Vec::new();
    let started = Instant::now();
    loop {
        let found = find_by_variable(name, value);
        if found.is_empty() {
            return Ok(met.len());
        }
        anyhow::ensure!(
            started.elapsed() < patience + Duration::from_secs(10),
            "process {} carries {name}={value} and cannot be ended",
            found[0].pid
        );
        let stern = started.elapsed() >= patience;
        for process in found {
            let first_time = !met.contains(&process);
            if first_time {
                met.push(process);
            }
            if stern {
                signal(process, Signal::KILL);
            } else if first_time {
                signal(process, Signal::TERM);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a short helper program came to.
#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a short program without a shell and waits at most `patience`.
pub fn run(
    argv: &[&str],
    environment: &[(&str, &str)],
    stdin: &[u8],
    patience: Duration,
) -> Result<Output> {
    let (program, arguments) = argv.split_first().context("an argv has a program")?;
    let mut expression = duct::cmd(*program, arguments)
        .stdin_bytes(stdin.to_vec())
        .stdout_capture()
        .stderr_capture()
        .unchecked();
    for (name, value) in environment {
        expression = expression.env(name, value);
    }
    let handle = expression
        .start()
        .map_err(|error| Fault::environment(format!("cannot start '{program}': {error}")))?;
    match handle.wait_timeout(patience)? {
        Some(output) => Ok(Output {
            code: output.status.code(),
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
        }),
        None => {
            handle.kill()?;
            anyhow::bail!("'{program}' did not end within {} s", patience.as_secs())
        }
    }
}

/// Runs a command in a shell with its output on our standard error, and gives its exit code;
/// `None` when a signal ended it, or when `stop` said so and it was killed.
pub fn run_shown(
    command: &str,
    folder: &Path,
    environment: &[(OsString, Option<OsString>)],
    stop: &dyn Fn() -> bool,
) -> Result<Option<i32>> {
    let ours = || rustix::io::dup(rustix::stdio::stderr()).map(Stdio::from);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null());
    shell.stdout(ours()?).stderr(ours()?);
    change_environment(&mut shell, environment);
    let mut child = shell.spawn().context("cannot start 'sh'")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if stop() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
