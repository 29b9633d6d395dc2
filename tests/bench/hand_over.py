"""What a hand-over costs: from the end of one agent to the start of the next."""

import os
import pathlib
import statistics
import subprocess
import sys
import time

from common import clean

PLACES = 400
CONFIG = """\
agents = ["first", "second"]
durability = "full"

[agent.first]
command = ["{python}", "-B", "{script}", "first"]
start = '^ready'
receipt = '^> '
limit = '^limit'
done = '^DONE'

[agent.second]
command = ["sh", "-c", "date +%s%N >{home}/started; echo ready; echo '> on it'; echo DONE"]
start = '^ready'
receipt = '^> '
done = '^DONE'
"""


def place(number):
    return pathlib.Path(f"d{number % 40}/e{number % PLACES}/f{number}.txt")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text * 40)


def make_dirty(work, dirty, mark):
    """Changes half of `dirty` files and adds the other half, all with content never seen before."""
    for number in range(dirty // 2):
        write(work / place(number), f"changed {mark} {number}\n")
        write(work / f"new/{mark}/n{number}.txt", f"new {mark} {number}\n")
    os.sync()


class World:
    """A repository with many files, and two scripted agents."""

    def __init__(self, folder, relay, files, dirty):
        self.home, self.repo = folder / "home", folder / "repo"
        self.relay, self.dirty = relay, dirty
        self.environment = clean(self.home)
        config = self.home / ".config/git-relay/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG.format(python=sys.executable, script=__file__, home=self.home))
        self.git("init", "--quiet", "-b", "main", str(self.repo), cwd=folder)
        for number in range(files):
            write(self.repo / place(number), f"file {number}\n")
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "Begin")
        subprocess.run([relay, "init"], cwd=self.repo, env=self.environment, check=True,
                       stderr=subprocess.DEVNULL)
        self.floor = folder / "floor"
        self.git("worktree", "add", "--quiet", "--detach", str(self.floor))
        self.index = folder / "index"

    def git(self, *words, cwd=None, **more):
        subprocess.run(["git", *words], cwd=cwd or self.repo, check=True,
                       env=dict(self.environment, **more), stdout=subprocess.DEVNULL)

    def by_git(self, mark):
        """Milliseconds of `git add -A && git write-tree` with an index of its own."""
        make_dirty(self.floor, self.dirty, f"floor{mark}")
        private = dict(GIT_INDEX_FILE=str(self.index))
        durable = ("-c", "core.fsync=loose-object", "-c", "core.fsyncMethod=batch")
        self.index.write_bytes((self.repo / ".git/worktrees/floor/index").read_bytes())
        began = time.perf_counter()
        self.git(*durable, "add", "-A", cwd=self.floor, **private)
        self.git(*durable, "write-tree", cwd=self.floor, **private)
        return (time.perf_counter() - began) * 1000

    def by_us(self, mark):
        """Milliseconds of each part of a hand-over, and of the whole."""
        environment = dict(self.environment, BENCH_DIRTY=str(self.dirty), BENCH_MARK=str(mark))
        run = subprocess.Popen([self.relay, "run", f"bench {mark}"], cwd=self.repo,
                               env=environment, stderr=subprocess.PIPE, text=True)
        seen = {}
        for line in run.stderr:
            for word in ("PAUSING", "SNAPSHOTTED", "ENVELOPE_BUILT"):
                if f"[{word}]" in line:
                    seen.setdefault(word, time.time())
        if run.wait() != 0:
            sys.exit("bench: the relay did not come to its end")
        gone, started = (int((self.home / name).read_text()) / 1e9 for name in ("gone", "started"))
        steps = [gone, seen["PAUSING"], seen["SNAPSHOTTED"], seen["ENVELOPE_BUILT"], started]
        parts = [(after - before) * 1000 for before, after in zip(steps, steps[1:])]
        return [*parts, (started - gone) * 1000]


def hand_over(relay, folder, runs, files, dirty):
    folder.mkdir()
    world = World(folder, relay, files, dirty)
    floors, ours = [], []
    for number in range(runs):
        floors.append(world.by_git(number))
        ours.append(world.by_us(number))
    print(f"\nagent gone, next agent started: {files:,} files, {dirty:,} dirty, durable, {runs} runs")
    print(f"{'(ms)':<44} {'median':>8} {'min':>8} {'max':>8}  budget")

    def row(name, times, budget=""):
        print(f"{name:<44} {statistics.median(times):>8.0f} {min(times):>8.0f} {max(times):>8.0f}"
              f" {budget:>7}")
    row("git add -A && git write-tree, as durable", floors)
    names = ("until its end is known", "the snapshot, its index, branch and state",
             "contract, signature, note", "check again, envelope, start")
    for name, times in zip((*names, "all of it"), zip(*ours)):
        row(name, times, "1000" if name == "all of it" else "")


def first():
    """The agent that hits its limit: it leaves many files behind in no commit."""
    print("ready\n> on it", flush=True)
    make_dirty(pathlib.Path.cwd(), int(os.environ["BENCH_DIRTY"]), os.environ["BENCH_MARK"])
    print("limit", flush=True)
    (pathlib.Path.home() / "gone").write_text(str(time.time_ns()))


if __name__ == "__main__" and sys.argv[1:] == ["first"]:
    first()
