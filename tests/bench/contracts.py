"""What a contract from a 100 MB transcript costs: processor time and peak memory of the whole
process, beside a scan of the same file for its line ends."""

import pathlib
import shutil
import stat
import statistics
import subprocess
import sys

from common import clean, installed, spent_with_memory
from transcripts import make

# An agent that says it has done its turn; its transcript is there beforehand.
STAND_INS = {
    "claude": """\
#!/bin/sh
cat >/dev/null
echo '{{"type":"system","subtype":"init","session_id":"{session}"}}'
echo '{{"type":"assistant","message":{{"model":"m","content":[{{"type":"text","text":"on it"}}]}}}}'
echo '{{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed"}}'
""",
    "codex": """\
#!/bin/sh
cat >/dev/null
echo '{{"type":"thread.started","thread_id":"{session}"}}'
echo '{{"type":"item.completed","item":{{"id":"0","type":"agent_message","text":"on it"}}}}'
echo '{{"type":"turn.completed"}}'
""",
}
# What others make of one session for the other agent, shown and not written.
PEERS = {
    "casr": "casr resume {other} {session} --dry-run",
    "baton": "baton move --from {agent} --to {other} --session {session} --dry-run",
}
OTHER = {"claude": "codex", "codex": "claude"}
# Counts lines the way anything that reads a transcript has to, at least.
LINES = ["wc", "-l"]


class World:
    """A repository with a session whose agent left a transcript of so many megabytes."""

    def __init__(self, folder, relay, agent, megabytes):
        self.home, self.repo = folder / "home", folder / "repo"
        self.environment = clean(self.home)
        programs = self.home / "bin"
        programs.mkdir(parents=True)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.environment["CLAUDE_CODE_OAUTH_TOKEN"] = self.environment["CODEX_API_KEY"] = "x"
        place = {"claude": self.home / ".claude/projects/repo",
                 "codex": self.home / ".codex/sessions/2026/11/01"}[agent]
        place.mkdir(parents=True)
        self.transcript = place / "making.jsonl"
        session = self.session = make(agent, megabytes, self.transcript, self.repo)
        name = session if agent == "claude" else f"rollout-2026-11-01T00-00-00-{session}"
        self.transcript = self.transcript.rename(place / f"{name}.jsonl")
        program = programs / agent
        program.write_text(STAND_INS[agent].format(session=session))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        config = self.home / ".config/git-relay/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'agents = ["{agent}"]\ndurability = "none"\n')
        run = dict(cwd=self.repo, env=self.environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["git", "init", "--quiet", "-b", "main", self.repo], **{**run, "cwd": folder})
        (self.repo / "README.md").write_text("bench\n")
        subprocess.run(["git", "add", "-A"], **run)
        subprocess.run(["git", "commit", "--quiet", "-m", "Begin"], **run)
        subprocess.run([relay, "init"], **run)
        # It rests with open items in its plan: exit 1, and nothing of it is signed yet.
        subprocess.run([relay, "run", "--unsandboxed-shell", "Move the billing code"],
                       **{**run, "check": False})

    def envelope(self, relay):
        """What the next agent would read."""
        run = dict(cwd=self.repo, env=self.environment, check=True, capture_output=True)
        subprocess.run([relay, "handoff", "--no-launch"], **run)
        return subprocess.run([relay, "show", "--envelope"], **run).stdout


def contracts(relay, folder, runs, megabytes):
    others = installed(PEERS)
    print(f"\ncontract from a transcript of {megabytes} MB, whole process, {runs} runs")
    print(f"{'':<34} {'cpu ms':>8} {'min':>8} {'wall ms':>8} {'peak MiB':>9}  budget")
    for agent in STAND_INS:
        world = World(folder / agent, relay, agent, megabytes)
        ours = [relay, "handoff", "--dry-run", "--json"]
        floor = [shutil.which(LINES[0]), *LINES[1:], world.transcript]
        rivals = {"wc -l": floor, "contract": ours}
        for name, line in others.items():
            line = line.format(agent=agent, other=OTHER[agent], session=world.session)
            rivals[name] = line.split()
        figures = {name: [] for name in rivals}
        for _ in range(runs + 1):
            for name, argv in rivals.items():
                figures[name].append(spent_with_memory(argv, world.environment, world.repo))
        for name in rivals:
            label, budget = f"{agent}: {name}", "300 ms, 64 MiB" if name == "contract" else ""
            wall, used, peak = zip(*figures[name][1:])
            print(f"{label:<34} {statistics.median(used):>8.1f} {min(used):>8.1f}"
                  f" {statistics.median(wall):>8.1f} {max(peak):>9.1f}  {budget}")
        said = len(world.envelope(relay))
        print(f"{f'{agent}: envelope':<34} {said} bytes, about {said // 4} tokens  8,000 tokens")


if __name__ == "__main__":
    # By itself: contracts.py BINARY FOLDER [MEGABYTES [RUNS]]
    binary, place, *more = sys.argv[1:]
    size, count = (int(word) for word in (more + ["100", "5"][len(more):]))
    contracts(str(pathlib.Path(binary).resolve()), pathlib.Path(place), count, size)
