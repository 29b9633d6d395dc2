"""What it costs to find an agent's sessions on this machine."""

import datetime
import os
import random
import shutil
import subprocess

from common import ROOT, clean, heads, in_turns, installed, row

# Walks a store, stats every file and reads 4 KiB of it: nobody who looks inside can do with less.
FLOOR = r"""
use std::{env, fs, io::Read, path::Path};
fn walk(folder: &Path, sum: &mut u64) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), sum);
        } else {
            let mut file = fs::File::open(entry.path()).unwrap();
            let mut bytes = [0; 4096];
            *sum += file.metadata().unwrap().len() + file.read(&mut bytes).unwrap() as u64;
        }
    }
}
fn main() {
    let mut sum = 0;
    env::args().skip(1).for_each(|folder| walk(Path::new(&folder), &mut sum));
    std::hint::black_box(sum);
}
"""

# What others offer: the sessions of this folder, by either agent.
PEERS = {
    "casr": "casr list --limit 20",
    "baton": "baton list --from claude && baton list --from codex",
    # Finds the newest of each only.
    "handoff": "handoff claude codex --prompt && handoff codex claude --prompt",
}
PROJECTS = 50
SHOWN_IN = 0


def recorded(agent, name, cwd):
    text = (ROOT / f"tests/agents/{agent}/{name}.transcript.jsonl").read_text()
    return text.replace("/home/dev/demo/.relay/sessions/x", cwd).encode()


def size(chance, number, many):
    """As in life: half below 200 KB, one in a hundred above 50 MB."""
    if number % 100 == 7:
        return chance.randrange(50, 60) << 20 if many else 50 << 20
    return min(int(chance.lognormvariate(12.2, 1.1)), 20 << 20)


def write(path, record, length, is_whole):
    """A session of this length: the recording again and again, or, where nobody reads so far, a
    hole behind it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        written = file.write(record)
        while is_whole and written < length:
            written += file.write(record)
        file.truncate(max(written, length))


def store(home, repo, sessions, is_whole):
    """Sessions of 50 folders, one of which is the repository; half of each agent's. All are whole
    where others than us read them."""
    chance = random.Random(sessions)
    total = 0
    newest = 1_790_000_000
    for number in range(sessions):
        project = number % PROJECTS
        cwd = str(repo) if project == SHOWN_IN else f"/home/dev/project-{project}"
        uuid = "-".join(f"{chance.getrandbits(bits):0{bits // 4}x}" for bits in (32, 16, 16, 16, 48))
        agent = ("claude", "codex")[number // PROJECTS % 2]
        if agent == "claude":
            folder = cwd.replace("/", "-")
            path = home / f".claude/projects/{folder}/{uuid}.jsonl"
        else:
            day = datetime.date(2026, 1, 1) + datetime.timedelta(number % 300)
            path = home / f".codex/sessions/{day:%Y/%m/%d}/rollout-{day}T00-09-00-{uuid}.jsonl"
        length = size(chance, number, sessions)
        write(path, recorded(agent, "limit", cwd), length, is_whole or project == SHOWN_IN)
        moment = newest - chance.randrange(30 * 24 * 3600)
        os.utime(path, (moment, moment))
        total += length
    return total


def detect(relay, folder, runs, counts):
    folder.mkdir()
    floor = folder / "floor"
    (folder / "floor.rs").write_text(FLOOR)
    subprocess.run(["rustc", "-O", "-o", floor, folder / "floor.rs"], check=True)
    others = installed(PEERS)
    for sessions, budget in counts.items():
        home, repo = folder / f"home{sessions}", folder / f"repo{sessions}"
        environment = clean(home)
        subprocess.run(["git", "init", "--quiet", str(repo)], env=environment, check=True)
        rest = others if sessions == min(counts) else {}
        total = store(home, repo, sessions, bool(rest))
        rivals = {
            "floor": ([str(floor), f"{home}/.claude/projects", f"{home}/.codex/sessions"],
                      environment, repo),
            "here": ([str(relay), "detect"], environment, repo),
            "bare": ([str(relay), "detect", "--limit", "0"], environment, repo),
            "all": ([str(relay), "detect", "--all", "--json"], environment, repo),
            **{name: (["sh", "-c", line], environment, repo) for name, line in rest.items()},
        }
        times = in_turns(rivals, runs)
        heads(f"detect: {sessions:,} sessions, {total / 2**30:.1f} GiB")
        row("walk, stat, read 4 KiB of each", times["floor"])
        row("this repository, 20 rows", times["here"], times["floor"], budget)
        row("this repository, counted only", times["bare"], times["floor"], budget)
        row("all folders, 20 rows, JSON", times["all"], times["floor"])
        for name in rest:
            row(name, times[name], times["floor"])
        shutil.rmtree(home)
