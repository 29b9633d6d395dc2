"""What every bench here needs: binaries, a clean environment, runs in turns, rows of figures."""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTHING = "fn main() {}\n"
QUIET = [(os.POSIX_SPAWN_OPEN, which, os.devnull, os.O_WRONLY, 0) for which in (1, 2)]


def built(target, binary):
    """The release binary and its floor."""
    if binary is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)
    floor = target / "release" / "nothing"
    floor.parent.mkdir(parents=True, exist_ok=True)
    source = floor.with_suffix(".rs")
    source.write_text(NOTHING)
    subprocess.run(["rustc", "-O", "-o", floor, source], check=True)
    return (binary or target / "release" / "git-relay").resolve(), floor.resolve()


def clean(home):
    """An environment of its own: nothing of the caller's gets in."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Bench",
        "GIT_AUTHOR_EMAIL": "bench@example.invalid",
        "GIT_COMMITTER_NAME": "Bench",
        "GIT_COMMITTER_EMAIL": "bench@example.invalid",
    }


def installed(peers):
    """Those of other people's programs that are on this machine."""
    here = {name: peer for name, peer in peers.items() if shutil.which(name)}
    for name in peers.keys() - here.keys():
        print(f"{name}: not here, not measured")
    return here


def spent(argv, environment, cwd):
    """Milliseconds from start to end of a process, and those of the processor in it and below."""
    os.chdir(cwd)
    begin = time.perf_counter_ns()
    pid = os.posix_spawnp(argv[0], argv, environment, file_actions=QUIET)
    _, status, used = os.wait4(pid, 0)
    took = (time.perf_counter_ns() - begin) / 1e6
    if status != 0:
        sys.exit(f"bench: {argv} failed")
    return took, (used.ru_utime + used.ru_stime) * 1e3


def spent_with_memory(argv, environment, cwd):
    """The same, with the most memory that the process held at once, in MiB.

    A child is told its parent's peak until it has run another program, so a small one starts it.
    """
    os.chdir(cwd)
    begin = time.perf_counter_ns()
    ours, theirs = os.pipe()
    measure = (
        "import os,sys\n"
        "pid=os.posix_spawnp(sys.argv[2],sys.argv[2:],os.environ,file_actions="
        "[(os.POSIX_SPAWN_OPEN,w,os.devnull,os.O_WRONLY,0) for w in (1,2)])\n"
        "_,status,used=os.wait4(pid,0)\n"
        "os.write(int(sys.argv[1]),f'{status} {used.ru_utime+used.ru_stime} {used.ru_maxrss}'"
        ".encode())\n"
    )
    words = [sys.executable, "-SIc", measure, str(theirs), *map(str, argv)]
    subprocess.run(words, env=environment, pass_fds=[theirs], check=True)
    took = (time.perf_counter_ns() - begin) / 1e6
    status, used, peak = os.read(ours, 200).split()
    os.close(ours)
    os.close(theirs)
    if int(status) != 0:
        sys.exit(f"bench: {argv} failed")
    return took, float(used) * 1e3, int(peak) / 1024


def in_turns(rivals, runs):
    """Runs each rival once a round, so that a busy moment hits all alike."""
    times = {name: [] for name in rivals}
    for name, job in rivals.items():
        spent(*job)
    for number in range(runs):
        names = list(rivals)
        # Nobody always goes first.
        for name in names[number % len(names):] + names[:number % len(names)]:
            times[name].append(spent(*rivals[name]))
    return times


def row(name, runs, floor=None, budget=None):
    clock, used = ([run[which] for run in runs] for which in (0, 1))
    above = ["", "", ""]
    if floor is not None:
        beside = [[run[which] for run in floor] for which in (0, 1)]
        above = [
            f"{statistics.median(clock) - statistics.median(beside[0]):+.2f}",
            f"{min(clock) - min(beside[0]):+.2f}",
            f"{statistics.median(used) - statistics.median(beside[1]):+.2f}",
        ]
    cells = [statistics.median(clock), min(clock), max(clock), statistics.median(used)]
    text = f"{name:<44}" + "".join(f" {cell:>8.2f}" for cell in cells)
    text += "".join(f" {cell:>8}" for cell in above)
    print(text + (f" {budget:>7.2f}" if budget is not None else ""))


def heads(text):
    """`cpu` is the median of the processor's time: on a busy machine the truer figure."""
    cells = ("median", "min", "max", "cpu", "+median", "+min", "+cpu")
    print(f"\n{text + ' (ms)':<44}" + "".join(f" {cell:>8}" for cell in cells) + "  budget")
