"""What a hook and a commit cost."""

import subprocess

from common import clean, heads, in_turns, row


class World:
    """A scratch repository that is ready for relays, with a session's worktree."""

    def __init__(self, folder, relay, sessions):
        self.home = folder / "home"
        self.repo = folder / "repo"
        self.environment = clean(self.home)
        self.home.mkdir(parents=True)
        self.git("init", "--quiet", "-b", "main", str(self.repo), cwd=folder)
        self.git("commit", "--quiet", "--allow-empty", "-m", "Begin")
        subprocess.run([relay, "init"], cwd=self.repo, env=self.environment, check=True,
                       stderr=subprocess.DEVNULL)
        self.worktree = self.repo / ".relay/sessions/bench-0000"
        self.git("worktree", "add", "--quiet", "-b", "relay/bench-0000", str(self.worktree))
        head = self.git("rev-parse", "HEAD")
        for number in range(sessions):
            for kind in ("sessions", "snapshots"):
                path = self.repo / ".git/refs/relay" / kind / f"bench-{number:04}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(head + "\n")
            folder = self.repo / ".git/relay/sessions" / f"bench-{number:04}"
            folder.mkdir(parents=True, exist_ok=True)
        self.git_dir = self.repo / ".git/worktrees/bench-0000"
        # What a driver gives the agent it starts.
        self.leg = dict(
            self.environment,
            GIT_RELAY_SESSION="bench-0000",
            GIT_RELAY_LEG="0" * 32,
            GIT_RELAY_INBOX=str(self.git_dir / "relay-inbox"),
            GIT_RELAY_FOLDER=str(self.repo / ".git/relay/sessions/bench-0000"),
            GIT_RELAY_HOOKS_INDEX="0",
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0="core.hooksPath",
        )

    def git(self, *words, cwd=None):
        done = subprocess.run(["git", *words], cwd=cwd or self.repo, env=self.environment,
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def with_hooks(self, folder):
        return dict(self.leg, GIT_CONFIG_VALUE_0=str(folder))


def hook_entry(relay, floor, one, many, runs):
    argv = [str(relay), "hook", "git", "post-commit"]
    times = in_turns({
        "floor": ([str(floor)], one.leg, one.worktree),
        "one": (argv, one.leg, one.worktree),
        "many": (argv, many.leg, many.worktree),
        "silent": (argv, one.environment, one.worktree),
    }, runs)
    heads("hook entry")
    row("a program that does nothing", times["floor"])
    row("outside a leg", times["silent"], times["floor"], 0.7)
    row("in a leg, 1 session", times["one"], times["floor"], 0.7)
    row("in a leg, 1,000 sessions", times["many"], times["floor"], 0.7)


def whole_commit(relay, world, folder, runs):
    ours = world.repo / ".git/relay/hooks"
    silent, only_post, none = folder / "silent", folder / "post", folder / "none"
    none.mkdir()
    for place, names in ((silent, [path.name for path in ours.iterdir()]),
                         (only_post, ["post-commit"])):
        place.mkdir()
        for name in names:
            hook = place / name
            hook.write_text("#!/bin/sh\nexit 0\n")
            hook.chmod(0o755)
    argv = ["git", "commit", "--quiet", "--allow-empty", "-m", "x"]
    times = in_turns({
        "none": (argv, world.with_hooks(none), world.worktree),
        "post": (argv, world.with_hooks(only_post), world.worktree),
        "silent": (argv, world.with_hooks(silent), world.worktree),
        "ours": (argv, world.with_hooks(ours), world.worktree),
    }, runs)
    heads("whole commit")
    row("no hook", times["none"])
    row("a post-commit hook that does nothing", times["post"])
    row("all hooks do nothing", times["silent"])
    row("ours, above a post-commit that does nothing", times["ours"], times["post"], 3.0)
    row("ours, above all hooks that do nothing", times["ours"], times["silent"])

    hook = ours / "post-commit"
    times = in_turns({
        "floor": ([str(silent / "post-commit")], world.with_hooks(ours), world.worktree),
        "ours": ([str(hook)], world.with_hooks(ours), world.worktree),
    }, runs)
    heads("the post-commit hook alone")
    row("a hook that does nothing", times["floor"])
    row("ours", times["ours"], times["floor"], 3.0)
