//! The power fails: what a disk holds at an instant is a copy of the file behind a mounted ext4,
//! taken without a flush. Whatever was announced before that instant is there when it is mounted
//! again. What an agent's own git had not flushed is torn then, and the relay goes on all the same.

use super::{relayed, sessions, state, two_agents};
use crate::it::support::{World, binary};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DISK_MIB: u64 = 64;

fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A disk that can lose its power: an ext4 in a file, on memory where there is some.
struct Disk {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Disk {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("relay-disk-").tempdir_in(parent).unwrap();
        let disk = Self { folder, mounted: false };
        let file = fs::File::create(disk.file()).unwrap();
        file.set_len(DISK_MIB * 1024 * 1024).unwrap();
        must("mkfs.ext4", &["-q", disk.file().to_str().unwrap()]);
        fs::create_dir(disk.place()).unwrap();
        disk
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Always the same: worktrees and configuration hold full paths.
    fn place(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    /// The journal is written when somebody flushes, and not because time goes by.
    fn mount(&mut self, file: &Path) {
        let (file, place) = (file.to_str().unwrap().to_owned(), self.place());
        must("mount", &["-o", "loop,commit=600", &file, place.to_str().unwrap()]);
        self.mounted = true;
    }

    fn unmount(&mut self) {
        must("umount", &[self.place().to_str().unwrap()]);
        self.mounted = false;
    }

    /// How often the disk was written to.
    fn writes(&self) -> String {
        let device = must("findmnt", &["-no", "SOURCE", self.place().to_str().unwrap()]);
        let stat = format!("/sys/block/{}/stat", device.trim_start_matches("/dev/"));
        fs::read_to_string(stat).unwrap().split_whitespace().nth(4).unwrap().to_owned()
    }

    /// What would be left if the power failed now.
    fn cut(&self, name: &str) -> PathBuf {
        let copy = self.folder.path().join(name);
        for _ in 0..20 {
            let before = self.writes();
            must("cp", &["--sparse=always", self.file().to_str().unwrap(), copy.to_str().unwrap()]);
            if self.writes() == before {
                return copy;
            }
        }
        panic!("the disk is never at rest");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            _ = Command::new("umount").arg("-l").arg(self.place()).status();
        }
    }
}

/// An instant at which the power fails, and what had been announced until then.
struct Cut {
    disk: PathBuf,
    said: Vec<String>,
}

/// Runs the command with the power failing after each line it says, and at its end.
fn run_with_cuts(world: &World, disk: &Disk, arguments: &[&str], cuts: &mut Vec<Cut>) {
    let mut child = world.command(binary()).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said.push(line.unwrap());
        kill_process(pid, Signal::STOP).unwrap();
        let name = format!("cut-{}", cuts.len());
        cuts.push(Cut { disk: disk.cut(&name), said: said.clone() });
        _ = kill_process(pid, Signal::CONT);
    }
    assert!(child.wait().unwrap().success(), "{said:?}");
    let name = format!("cut-{}", cuts.len());
    cuts.push(Cut { disk: disk.cut(&name), said });
}

/// The states a session announced, in their order, without repetitions.
fn announced(said: &[String]) -> Vec<String> {
    let word = |line: &String| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    let mut states: Vec<String> = said.iter().filter_map(word).collect();
    states.dedup();
    states
}

/// Every object that our refs reach is there and whole.
fn our_objects_are_whole(world: &World) {
    for name in world.git(&["for-each-ref", "--format=%(refname)"]).lines() {
        if name.starts_with("refs/relay/") || name == "refs/notes/relay" {
            let all = world.git(&["rev-list", "--objects", "--no-object-names", name]);
            assert!(!all.is_empty(), "{name}");
            let check = world.command("sh").args(["-c", &format!(
                "git rev-list --objects --no-object-names {name} | git cat-file --batch >/dev/null"
            )]).output().unwrap();
            assert!(check.status.success() && check.stderr.is_empty(), "{name}: {check:?}");
        }
    }
}

/// Whether every announced state is in the session's chain.
fn remembers(world: &World, states: &[String]) {
    let Some(session) = sessions(world).first().cloned() else {
        assert!(states.is_empty(), "{states:?} was announced and is gone");
        return;
    };
    let log = world.relay(&["log", &session, "--json"]).exits(0).json();
    let entries = log["log"].as_array().unwrap();
    // The newest comes first.
    let chain: Vec<&str> = entries.iter().rev().map(|e| e["state"].as_str().unwrap()).collect();
    let mut left = states.iter();
    let mut wanted = left.next();
    for state in &chain {
        if wanted.is_some_and(|wanted| wanted == state) {
            wanted = left.next();
        }
    }
    assert!(
        wanted.is_none(),
        "{wanted:?} of {states:?} was announced, and the chain has {chain:?}"
    );
}

/// The relay comes to its end, and its result to where it belongs. What an agent had written and
/// nobody flushed may be gone.
fn goes_on(world: &World) {
    let Some(session) = sessions(world).first().cloned() else { return };
    world.relay(&["resume", &session]).exits(0);
    our_objects_are_whole(world);
    assert_eq!(state(world)["legEnd"]["outcome"], "done");
    world.relay(&["verify"]).exits(0);
    world.relay(&["finish", &session]).exits(0);
    assert_eq!(world.git(&["show", "main:half.txt"]), "whole");
    our_objects_are_whole(world);
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn crash_loop_of_a_power_cut() {
    let mut disk = Disk::new();
    let file = disk.file();
    disk.mount(&file);
    let mut world = World::below(&disk.place());
    world.set("GIT_RELAY_DURABILITY", "full");
    two_agents(&world);
    rustix::fs::sync();
    let mut cuts = Vec::new();
    run_with_cuts(&world, &disk, &["run", "Write two files"], &mut cuts);
    relayed(&world);
    disk.unmount();
    for (number, cut) in cuts.iter().enumerate() {
        disk.mount(&cut.disk);
        println!("power cut {number}: {:?}", cut.said.last());
        our_objects_are_whole(&world);
        remembers(&world, &announced(&cut.said));
        goes_on(&world);
        disk.unmount();
    }
    println!("power cuts: {} tried and resumed, nothing that was announced is lost", cuts.len());
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn crash_loop_of_a_power_cut_after_init_and_finish() {
    let mut disk = Disk::new();
    let file = disk.file();
    disk.mount(&file);
    let mut world = World::below(&disk.place());
    world.set("GIT_RELAY_DURABILITY", "full");
    rustix::fs::sync();
    two_agents(&world);
    let made = disk.cut("init");
    world.relay(&["run", "Write two files"]).exits(0);
    rustix::fs::sync();
    world.relay(&["finish"]).exits(0);
    let finished = disk.cut("finish");
    disk.unmount();

    disk.mount(&made);
    world.relay(&["key"]).exits(0);
    world.relay(&["verify"]).exits(0);
    disk.unmount();

    disk.mount(&finished);
    our_objects_are_whole(&world);
    assert_eq!(world.git(&["show", "main:half.txt"]), "whole");
    world.git(&["fsck", "--strict", "--no-dangling"]);
    remembers(&world, &["COMPLETED".to_owned()]);
    world.relay(&["verify"]).exits(0);
    disk.unmount();
}
