//! What this user's other processes are: name, working folder, variables, open files. Read from
//! Linux's `/proc`; elsewhere nothing is found.

use super::process::identify;
use super::records;
use crate::model::session::Process;
use crate::model::time::Timestamp;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

const ENVIRONMENT_BYTES_MOST: u64 = 4 << 20;

/// Whether processes can be looked at here at all.
pub fn can_be_seen() -> bool {
    fs::metadata("/proc/self/stat").is_ok()
}

/// This user's processes that run a program of one of these names, with that name.
pub fn called<'a>(names: &[&'a str]) -> Vec<(Process, &'a str)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let program = name_of(pid)?;
            let name = names.iter().find(|name| program == OsStr::new(name))?;
            let is_own = entry.metadata().is_ok_and(|found| records::is_own(&found));
            is_own.then(|| identify(pid).map(|process| (process, *name))).flatten()
        })
        .collect()
}

/// The program's own name for itself, or else that of its file.
fn name_of(pid: u32) -> Option<OsString> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(OsString::from_vec(bytes.strip_suffix(b"\n").unwrap_or(&bytes).to_vec()))
}

/// When a process began, to the second or so.
pub fn began(process: Process) -> Option<Timestamp> {
    // What Linux shows to programs, whatever the kernel's own is.
    const TICKS_A_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    let since = i64::try_from(process.start_ticks / TICKS_A_SECOND).ok()?;
    Some(Timestamp(boot).plus_seconds(since))
}

/// The folder a process works in.
pub fn folder_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Variables that a process was started with, not empty, in the order asked for.
pub fn variables_of<const N: usize>(pid: u32, names: [&str; N]) -> [Option<OsString>; N] {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/environ"));
    _ = file.and_then(|file| file.take(ENVIRONMENT_BYTES_MOST).read_to_end(&mut bytes));
    names.map(|name| {
        bytes.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            (!value.is_empty()).then(|| OsStr::from_bytes(value).to_owned())
        })
    })
}

/// The files that a process has open.
pub fn open_files_of(pid: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}
