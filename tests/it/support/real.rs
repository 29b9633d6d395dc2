//! A world with the real Claude Code and Codex in it, each with a model server of its own. Only
//! inside `tests/isolate.sh`: no network but loopback, an unprivileged user, a scratch home.

use super::mock::Mock;
use super::{Did, World, binary, scripted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Stands in a step for the program as agents are told to call it.
pub(crate) const RELAY: &str = "@RELAY@";

/// Seconds a whole relay may take before it counts as hanging.
const PATIENCE: &str = "240";

/// The folder of the agents' commands.
///
/// # Panics
/// Where the tests cannot be run as they must be: such a run is a failure, never a silent pass.
fn agents_folder() -> PathBuf {
    let why = "REAL-AGENT TESTS CANNOT RUN HERE, AND SO THEY FAIL";
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    assert!(
        variable("GIT_RELAY_TEST_ISOLATED").is_some(),
        "{why}: they must run inside tests/isolate.sh; run tests/run"
    );
    let folder = variable("GIT_RELAY_TEST_AGENTS").map(|cache| PathBuf::from(cache).join("bin"));
    let folder = folder.unwrap_or_else(|| {
        panic!(
            "{why}: GIT_RELAY_TEST_AGENTS does not say where tests/install-agents.sh put the agents"
        )
    });
    for agent in ["claude", "codex"] {
        assert!(folder.join(agent).is_file(), "{why}: '{agent}' is not in {}", folder.display());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    for program in ["python3", "bwrap", "socat", "node"] {
        assert!(
            env::split_paths(&path).any(|folder| folder.join(program).is_file()),
            "{why}: '{program}' is not installed"
        );
    }
    folder
}

/// The program as agents are told to call it.
pub(crate) fn program(world: &World) -> PathBuf {
    world.repo.join(".git/relay/bin/git-relay")
}

/// Where repositories lie: outside the folder for temporary files.
pub(crate) fn scratch() -> PathBuf {
    env::var_os("GIT_RELAY_TEST_SCRATCH").map(PathBuf::from).unwrap_or_else(|| {
        panic!("REAL-AGENT TESTS CANNOT RUN HERE, AND SO THEY FAIL: run them by tests/run")
    })
}

/// What the agents of one test do.
pub(crate) struct Cast<'a> {
    /// The user's order.
    pub(crate) agents: &'a [&'a str],
    pub(crate) claude: Value,
    pub(crate) codex: Value,
    /// The script of the agent `third`, for which nobody wrote an adapter.
    pub(crate) third: Option<&'a str>,
}

/// A world with agents, after `init`.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) claude: Mock,
    pub(crate) codex: Mock,
    before: BTreeMap<String, String>,
    _moved: Option<tempfile::TempDir>,
}

impl Stage {
    pub(crate) fn new(cast: &Cast<'_>) -> Self {
        Self::with_repository_in(None, cast)
    }

    /// With all refs in one table.
    pub(crate) fn on_reftable(cast: &Cast<'_>) -> Self {
        Self::with(None, &["--ref-format=reftable"], cast)
    }

    /// With the repository below `place`; everything else is where it always is.
    pub(crate) fn with_repository_in(place: Option<&Path>, cast: &Cast<'_>) -> Self {
        Self::with(place, &[], cast)
    }

    /// In a repository made with these options.
    fn with(place: Option<&Path>, options: &[&str], cast: &Cast<'_>) -> Self {
        let bin = agents_folder();
        let mut world = World::below(&scratch());
        world.begin_anew(options);
        let moved = place.map(|place| tempfile::tempdir_in(place).unwrap());
        if let Some(folder) = &moved {
            let repo = folder.path().join("repo");
            fs::rename(&world.repo, &repo).unwrap();
            world.repo = repo;
        }
        let folder = world.root.join("mock");
        let program = program(&world);
        let job = |steps: &Value| -> Value {
            let text = steps.to_string().replace(RELAY, program.to_str().unwrap());
            serde_json::from_str(&text).unwrap()
        };
        let claude = Mock::start(&folder, "claude", &job(&cast.claude));
        let codex = Mock::start(&folder, "codex", &job(&cast.codex));
        let names: Vec<String> = cast.agents.iter().map(|name| format!("\"{name}\"")).collect();
        let mut config = format!("agents = [{}]\n", names.join(", "));
        if let Some(script) = cast.third {
            let path = world.program("third-agent", script);
            let described = scripted(&[("third", &path)]);
            config.push_str(described.split_once('\n').expect("its first line is the order").1);
        }
        world.configure(&config);
        world.write("notes.md", "notes\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", "Add notes"]);
        world.git(&["branch", "other"]);
        set_up_claude(&mut world, &claude);
        set_up_codex(&mut world, &codex);
        let path = world.variables.remove(std::ffi::OsStr::new("PATH"));
        assert!(path.is_none(), "nobody else sets PATH");
        let path = env::var("PATH").unwrap();
        let own = world.home.join("bin");
        world.set("PATH", format!("{}:{}:{path}", own.display(), bin.display()));
        world.relay(&["init"]).exits(0);
        let before = world.users_things();
        Self { world, claude, codex, before, _moved: moved }
    }

    /// Runs `git-relay`; one that hangs is ended.
    pub(crate) fn relay(&self, arguments: &[&str]) -> Did {
        let program = binary();
        let mut words = vec!["--kill-after=20", PATIENCE, program.to_str().unwrap()];
        words.extend(arguments);
        self.world.run("timeout", &words)
    }

    /// Starts `git-relay` and goes on.
    pub(crate) fn drive(&self, arguments: &[&str]) -> Driving {
        let said = fs::File::create(self.world.root.join("driver.errors")).unwrap();
        let mut command = self.world.command(binary());
        Driving(command.args(arguments).stdout(Stdio::null()).stderr(said).spawn().unwrap())
    }

    /// Starts an agent as a person would in a script, without us.
    pub(crate) fn without_us(&self, agent: &str, prompt: &str) -> Child {
        let line = match agent {
            "claude" => {
                "claude -p --output-format stream-json --verbose --permission-mode acceptEdits \
                 --allowedTools Bash"
            }
            _ => "codex exec --json -s danger-full-access -c tools.update_plan.enabled=true -",
        };
        let mut words = line.split_whitespace();
        let mut command = self.world.command(words.next().expect("a program"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
        child
    }

    /// How many sessions of its own an agent has kept.
    pub(crate) fn kept_by(&self, agent: &str) -> usize {
        let (folder, depth) = match agent {
            "claude" => (".claude/projects", 1),
            _ => (".codex/sessions", 3),
        };
        let mut found = vec![self.world.home.join(folder)];
        for _ in 0..=depth {
            let inside = found.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
            found = inside.map(|entry| entry.unwrap().path()).collect();
        }
        found.iter().filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).count()
    }

    /// The session as `status --json` tells it.
    #[track_caller]
    pub(crate) fn state(&self) -> Value {
        self.world.relay(&["status", "--json", &self.world.session()]).exits(0).json()["status"]
            ["session"]
            .clone()
    }

    /// The session as it was after each step called `event`, oldest first.
    #[track_caller]
    pub(crate) fn after(&self, event: &str) -> Vec<Value> {
        let id = self.world.session();
        let log = self.world.relay(&["log", "--json", &id]).exits(0).json();
        let rows = log["log"].as_array().unwrap_or_else(|| panic!("{log}"));
        rows.iter()
            .rev()
            .filter(|row| row["event"] == event)
            .map(|row| {
                let name = format!("{}:state.json", row["commit"].as_str().unwrap());
                serde_json::from_str(&self.world.git(&["cat-file", "blob", &name])).unwrap()
            })
            .collect()
    }

    /// Agent and outcome of every start, oldest first.
    #[track_caller]
    pub(crate) fn starts(&self) -> Vec<(String, String)> {
        let state = self.state();
        let dispatches = state["dispatches"].as_array().unwrap_or_else(|| panic!("{state}"));
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        dispatches.iter().map(|d| (word(&d["agent"]), word(&d["outcome"]))).collect()
    }

    /// What is true after every relay, however it went: all of it verifies, the user's own things
    /// are as `init` left them, and no agent's sandbox left anything in the way.
    #[track_caller]
    pub(crate) fn is_sound(&self) {
        self.world.relay(&["verify"]).exits(0);
        assert_eq!(self.world.users_things(), self.before, "the user's things were touched");
        self.world.git(&["fsck", "--strict"]);
        assert!(
            !self.world.repo.join(".git/config.lock").exists(),
            "a lock on the configuration stays"
        );
        let worktree = self.world.worktree();
        if worktree.exists() {
            let status = self.in_worktree(&["status", "--porcelain", "--ignored"]);
            for odd in [".claude", ".mcp.json", ".bashrc", ".codex"] {
                assert!(
                    !status.contains(odd),
                    "an agent's leavings are in the worktree:\n{status}"
                );
            }
        }
    }

    /// No process of any leg is left.
    #[track_caller]
    pub(crate) fn nobody_is_left(&self) {
        nobody_is_left(&self.state());
    }

    pub(crate) fn in_worktree(&self, arguments: &[&str]) -> String {
        let worktree = self.world.worktree();
        let mut words = vec!["-C", worktree.to_str().unwrap()];
        words.extend(arguments);
        self.world.git(&words)
    }

    /// The paths that the commit with this subject changed.
    #[track_caller]
    pub(crate) fn changed_by(&self, subject: &str) -> Vec<String> {
        let found = self.in_worktree(&["log", "--format=%H", &format!("--grep=^{subject}$")]);
        assert_eq!(found.lines().count(), 1, "one commit is called '{subject}': {found}");
        let names = self.in_worktree(&["show", "--name-only", "--format=", &found]);
        names.lines().map(str::to_owned).collect()
    }

    /// The files in the snapshot of `leg`.
    pub(crate) fn snapshot(&self, leg: u32) -> Vec<String> {
        let name = format!("refs/relay/snapshots/{}/{leg}", self.world.session());
        let names = self.world.git(&["ls-tree", "-r", "--name-only", &name]);
        names.lines().map(str::to_owned).collect()
    }

    /// Waits until `there` holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, there: impl Fn() -> bool) {
        let began = Instant::now();
        while !there() {
            assert!(began.elapsed() < Duration::from_secs(150), "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// No process carries a nonce of this session.
#[track_caller]
pub(crate) fn nobody_is_left(state: &Value) {
    for dispatch in state["dispatches"].as_array().into_iter().flatten() {
        let nonce = dispatch["nonce"].as_str().unwrap();
        let left = git_relay::host::process::find_by_variable("GIT_RELAY_LEG", nonce);
        assert!(left.is_empty(), "{} left {left:?}", dispatch["agent"]);
    }
}

/// A driver at work; ended with its agent when the test fails before it is killed.
pub(crate) struct Driving(Child);

impl Driving {
    /// Kills the driver, and nothing else, with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            _ = Command::new("kill").arg(self.0.id().to_string()).status();
            _ = self.0.wait();
        }
    }
}

/// Logged in by a token, with a model that offers plan tools.
fn set_up_claude(world: &mut World, mock: &Mock) {
    world.write_at(
        &world.home.join(".claude/settings.json"),
        &json!({"model": "claude-sonnet-4-5"}).to_string(),
    );
    world.set("ENABLE_TOOL_SEARCH", "false");
    world.set("ANTHROPIC_BASE_URL", mock.url());
    world.set("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-mock");
    world.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    world.set("DISABLE_AUTOUPDATER", "1");
}

/// Logged in by the key of a provider of the user's own.
fn set_up_codex(world: &mut World, mock: &Mock) {
    let config = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.mock]\nname = \"mock\"\nbase_url = \"{}/v1\"\nenv_key = \"MOCK_API_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n",
        mock.url()
    );
    world.write_at(&world.home.join(".codex/config.toml"), &config);
    world.set("MOCK_API_KEY", "x");
}

pub(crate) fn shell(command: &str) -> Value {
    json!({ "shell": command })
}

pub(crate) fn write(path: &str, content: &str) -> Value {
    json!({"write": {"path": path, "content": content}})
}

pub(crate) fn say(text: &str) -> Value {
    json!({ "text": text })
}

/// Items with their status: `x` completed, `>` in progress, anything else pending.
pub(crate) fn plan(items: &[&str]) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|item| match item.split_at(2) {
            ("x ", text) => json!({"text": text, "status": "completed"}),
            ("> ", text) => json!({"text": text, "status": "in_progress"}),
            (_, text) => json!({"text": text, "status": "pending"}),
        })
        .collect();
    json!({ "plan": items })
}

/// `step`; when it has been served, the server's knobs are turned.
pub(crate) fn then(mut step: Value, knobs: Value) -> Value {
    step["set"] = knobs;
    step
}
