"""What a step of a session costs beside many other sessions."""

import subprocess

from common import clean, heads, in_turns, row

CONFIG = """\
agents = ["only"]

[agent.only]
command = ["sh", "-c", "echo '> on it'; echo DONE"]
receipt = '^> '
done = '^DONE'
"""


def world(folder, relay, sessions):
    """A repository with one real session and more refs that look like one."""
    home, repo = folder / "home", folder / "repo"
    environment = clean(home)
    config = home / ".config/git-relay/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)

    def run(*words):
        done = subprocess.run(words, cwd=repo if repo.exists() else folder, env=environment,
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()
    run("git", "init", "--quiet", "-b", "main", str(repo))
    run("git", "commit", "--quiet", "--allow-empty", "-m", "Begin")
    run(relay, "init")
    run(relay, "run", "bench")
    name = run("git", "for-each-ref", "--format=%(refname)", "refs/relay/sessions").split("/")[-1]
    refs = repo / ".git/refs/relay/sessions"
    tip = run("git", "rev-parse", f"refs/relay/sessions/{name}")
    for number in range(sessions - 1):
        (refs / f"other-{number:04}").write_text(tip + "\n")
    return environment, repo, name


def steps(relay, folder, runs):
    rivals = {}
    for count in (1, 1000):
        environment, repo, name = world(make(folder / f"steps{count}"), relay, count)
        rivals["step", count] = (
            [str(relay), "record", "--session", name, "--decision", "a fact"], environment, repo)
        rivals["look", count] = ([str(relay), "status", name, "--json"], environment, repo)
    times = in_turns(rivals, runs)
    heads("one step: a fact taken into the state, signed, durable")
    row("1 session", times["step", 1])
    row("1,000 sessions, above 1", times["step", 1000], times["step", 1])
    heads("one look: status of one session")
    row("1 session", times["look", 1])
    row("1,000 sessions, above 1", times["look", 1000], times["look", 1])


def make(folder):
    folder.mkdir()
    return folder
