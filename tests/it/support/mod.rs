//! A hermetic world for tests: scratch home, scratch repository, scripted agents, the built
//! binary. Nothing of the caller's environment gets in.

pub(crate) mod mock;
pub(crate) mod real;
pub(crate) mod terminal;

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program under test.
pub(crate) fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_git-relay"))
}

/// One scratch machine with one repository that has one commit.
pub(crate) struct World {
    /// Removed with everything in it when the test ends well; `KEEP_WORLDS=1` keeps it.
    _folder: Option<tempfile::TempDir>,
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) repo: PathBuf,
    /// Added to every command's environment.
    pub(crate) variables: BTreeMap<OsString, OsString>,
}

/// What a command did.
pub(crate) struct Did {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Did {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Panics with everything that was said unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        let all = format!("{}\n{}", self.stdout, self.stderr);
        assert!(all.contains(words), "'{words}' was not said:\n{all}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("not JSON ({error}):\n{}\n--- stderr\n{}", self.stdout, self.stderr)
        })
    }
}

impl World {
    /// A world below the temporary folder.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A world below `parent`. Real agents' sandboxes leave `/tmp` writable, so tests with them
    /// want another place.
    pub(crate) fn below(parent: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("relay-world-").tempdir_in(parent).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let keep = std::env::var_os("KEEP_WORLDS").is_some();
        let world = Self {
            home: root.join("home"),
            repo: root.join("repo"),
            root,
            variables: BTreeMap::new(),
            _folder: if keep {
                _ = folder.keep();
                None
            } else {
                Some(folder)
            },
        };
        fs::create_dir_all(world.home.join("bin")).unwrap();
        fs::create_dir_all(&world.repo).unwrap();
        std::os::unix::fs::symlink(binary(), world.home.join("bin/git-relay")).unwrap();
        world.begin(&[]);
        world
    }

    /// Makes the repository, with one commit.
    pub(crate) fn begin(&self, options: &[&str]) {
        self.git(&[&["init", "-q", "-b", "main"], options].concat());
        self.git(&["config", "user.name", "Somebody"]);
        self.git(&["config", "user.email", "somebody@example.invalid"]);
        self.write("README.md", "# a project\n");
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "Initial commit"]);
    }

    /// Makes another in place of the repository.
    pub(crate) fn begin_anew(&self, options: &[&str]) {
        fs::remove_dir_all(&self.repo).unwrap();
        fs::create_dir(&self.repo).unwrap();
        self.begin(options);
    }

    /// Writes the user's own configuration.
    pub(crate) fn configure(&self, config: &str) {
        self.write_at(&self.home.join(".config/git-relay/config.toml"), config);
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// A command in this world and nothing else of the caller's.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.home.join("bin").display()))
            .env("HOME", &self.home)
            .env("TMPDIR", std::env::temp_dir())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("COLUMNS", "100")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_RELAY_DURABILITY", "none")
            .envs(&self.variables)
            .current_dir(&self.repo)
            .stdin(Stdio::null());
        command
    }

    /// Runs `git-relay` as built.
    pub(crate) fn relay(&self, arguments: &[&str]) -> Did {
        Did::of(&self.command(binary()).args(arguments).output().unwrap())
    }

    /// Runs git; it must succeed; its output without the last newline.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.command("git").args(arguments).output().unwrap();
        let did = Did::of(&output).exits(0);
        did.stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs a program; says how it went.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Did {
        Did::of(&self.command(program).args(arguments).output().unwrap())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.write_at(&self.repo.join(path), text);
    }

    pub(crate) fn write_at(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program in this world's `bin`; returns its path.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.home.join("bin").join(name);
        self.write_at(&path, script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Sets the scripted agents `first` and `second` up, in this order, and runs `init`.
    pub(crate) fn with_two_agents(&self, first: &str, second: &str) {
        let first = self.program("first-agent", first);
        let second = self.program("second-agent", second);
        self.configure(&scripted(&[("first", &first), ("second", &second)]));
        self.relay(&["init"]).exits(0);
    }

    /// The id of the only session.
    #[track_caller]
    pub(crate) fn session(&self) -> String {
        let list = self.relay(&["list", "--json"]).exits(0).json();
        let sessions = list["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{list}");
        sessions[0]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.repo.join(".relay/sessions").join(self.session())
    }

    /// Everything of the user's that a relay must not touch: files of the main worktree, index,
    /// HEAD, config, hooks, stash, and every ref that is not ours. By name, with a digest.
    pub(crate) fn users_things(&self) -> BTreeMap<String, String> {
        let mut things = BTreeMap::new();
        self.collect(&self.repo, "", &mut things);
        for name in ["HEAD", "index", "config", "description", "info/exclude", "packed-refs"] {
            if let Ok(bytes) = fs::read(self.repo.join(".git").join(name)) {
                things.insert(format!(".git/{name}"), digest(&bytes));
            }
        }
        self.collect(&self.repo.join(".git/hooks"), ".git/hooks/", &mut things);
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        for line in refs.lines() {
            let ours = ["refs/relay/", "refs/heads/relay/", "refs/notes/relay "];
            if !ours.iter().any(|prefix| line.starts_with(prefix)) {
                things.insert(line.to_owned(), String::new());
            }
        }
        things
    }

    fn collect(&self, folder: &Path, prefix: &str, things: &mut BTreeMap<String, String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if name == ".git" || name == ".relay" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                self.collect(&entry.path(), &format!("{name}/"), things);
            } else {
                let mode = entry.metadata().unwrap().permissions().mode();
                let bytes = fs::read(entry.path()).unwrap_or_default();
                things.insert(name, format!("{mode:o} {}", digest(&bytes)));
            }
        }
    }
}

/// Whether the installed git can keep refs in reftable (from 2.45 on).
pub(crate) fn knows_reftable() -> bool {
    let place = tempfile::tempdir().unwrap();
    let mut init = Command::new("git");
    init.args(["init", "-q", "--ref-format=reftable"]).arg(place.path());
    init.output().unwrap().status.success()
}

/// Panics with what differs.
#[track_caller]
pub(crate) fn same(after: &BTreeMap<String, String>, before: &BTreeMap<String, String>) {
    let gone = before.iter().filter(|(name, value)| after.get(*name) != Some(value));
    let came = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    let differs: Vec<_> = gone.chain(came).map(|(name, _)| name).collect();
    assert!(differs.is_empty(), "was changed: {differs:#?}");
}

/// A short digest of bytes, good enough to see a difference.
pub(crate) fn digest(bytes: &[u8]) -> String {
    git_relay::store::audit::sha256(bytes).to_string()
}

/// Configuration for scripted agents: each is `sh SCRIPT`, and speaks the words of
/// `templates/demo-agent.sh` (start, step, used=, limit, failed, asks, done) on standard output.
pub(crate) fn scripted(agents: &[(&str, &Path)]) -> String {
    let names: Vec<String> = agents.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let mut config = format!("agents = [{}]\n", names.join(", "));
    for (name, script) in agents {
        config.push_str(&format!(
            "\n[agent.{name}]\ncommand = [\"sh\", \"{}\"]\nstart = '^start$'\nreceipt = '^step '\n\
             limit = '^limit '\nfailed = '^failed '\nasks = '^asks '\ndone = '^done '\n\
             reading = '^used=(?P<used>[0-9.]+) resets=(?P<resets>[0-9]+)$'\n",
            script.display()
        ));
    }
    config
}
