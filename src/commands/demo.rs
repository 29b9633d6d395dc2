//! `git relay demo`: a whole relay with two scripted agents in a scratch repository.
//!
//! Every step is the real program run from outside, as a person would type it; nothing is faked
//! but the two agents.

use crate::cli::Demo;
use crate::error::Fault;
use crate::host::{env, files};
use crate::model::shell::shell_word;
use crate::ui::out;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

const SCRIPT: &str = include_str!("../../templates/demo-agent.sh");
const CONFIG: &str = include_str!("../../templates/demo-config.toml");

/// A scratch home with a scratch repository in it.
struct Scratch {
    home: PathBuf,
    repo: PathBuf,
    program: PathBuf,
}

pub(super) fn run(args: &Demo) -> Result<u8> {
    let folder = tempfile::Builder::new().prefix("git-relay-demo-").tempdir()?;
    let scratch = Scratch {
        home: folder.path().join("home"),
        repo: folder.path().join("repo"),
        program: env::program()?,
    };
    let outcome = play(&scratch);
    if args.keep {
        out::say(format!("demo: kept in {}", folder.keep().display()));
    }
    outcome?;
    out::say("demo: every step verified");
    Ok(0)
}

fn play(scratch: &Scratch) -> Result<()> {
    chapter("A scratch repository, and two scripted agents described in its configuration.");
    scratch.furnish()?;
    let relay = |words: &[&str]| scratch.show(&relay_words(words));
    relay(&["init"])?;

    chapter("`first` works, hits its usage limit half-way; `second` takes over and finishes.");
    relay(&["run", "Write greet.py and a test for it"])?;

    chapter("The contract, as git itself shows it.");
    let session = scratch.session()?;
    // The last line of a note is the signed bytes, which no person reads.
    scratch.show_line(&format!(
        "git log --notes=relay --format='%h %s%n%N' relay/{session} -4 | grep -v '^{{'"
    ))?;

    chapter("Every signature and digest, checked by us …");
    relay(&["verify"])?;

    chapter("… and by stock OpenSSH, which knows nothing of us.");
    let export = scratch.home.join("contract");
    relay(&["show", &session, "--export", &export.to_string_lossy()])?;
    let trust = scratch.read(&relay_words(&["trust", "--path"]))?;
    scratch.ssh_verify(&export, trust.trim_end())?;

    chapter("The result, brought to the branch it started from.");
    relay(&["finish", &session, "-m", "Add greet and its test"])?;
    scratch.show(&words(&["git", "log", "--oneline", "--stat", "-1"]))?;
    let files = scratch.read(&words(&["git", "ls-tree", "--name-only", "HEAD"]))?;
    anyhow::ensure!(
        files.contains("greet.py") && files.contains("test_greet.py"),
        Fault::refused("the result is not on the branch")
    );
    Ok(())
}

fn chapter(text: &str) {
    out::say("");
    out::say(format!("=== {text}"));
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Words as a person would type them.
fn typed(words: &[String]) -> String {
    words.iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

fn relay_words(list: &[&str]) -> Vec<String> {
    [&["git", "relay"], list].concat().into_iter().map(str::to_owned).collect()
}

impl Scratch {
    fn furnish(&self) -> Result<()> {
        let script = self.home.join("agent.sh");
        files::replace(&script, SCRIPT.as_bytes(), 0o755)?;
        let config = CONFIG
            .replace("@SCRIPT@", &script.to_string_lossy())
            .replace("@PROGRAM@", &self.program.to_string_lossy());
        files::replace(&self.home.join(".config/git-relay/config.toml"), config.as_bytes(), 0o644)?;
        // `git relay` finds the program under test, wherever cargo put it.
        let bin = self.home.join("bin");
        files::make_folder(&bin)?;
        std::os::unix::fs::symlink(&self.program, bin.join("git-relay"))?;
        files::make_folder(&self.repo)?;
        for line in [
            &["git", "init", "-q", "-b", "main"][..],
            &["git", "config", "user.name", "Demo"],
            &["git", "config", "user.email", "demo@example.invalid"],
            &["git", "commit", "-q", "--allow-empty", "-m", "Initial commit"],
        ] {
            self.read(&words(line))?;
        }
        Ok(())
    }

    /// A command in the scratch world: its own home and configuration, no other repository.
    fn command(&self, words: &[String]) -> duct::Expression {
        let path = env::var("PATH").unwrap_or_default();
        let mut all = vec![self.home.join("bin")];
        all.extend(std::env::split_paths(&path));
        let path = std::env::join_paths(all).unwrap_or(path);
        let mut command = duct::cmd(&words[0], &words[1..])
            .dir(&self.repo)
            .env("HOME", &self.home)
            .env("PATH", path)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_PAGER", "cat");
        for name in crate::git::run::LOCAL_ENV_VARS {
            command = command.env_remove(name);
        }
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "GIT_RELAY_LEG",
            "GIT_RELAY_SESSION",
            "GIT_RELAY_INBOX",
            "GIT_RELAY_FOLDER",
            "GIT_RELAY_AGENTS",
            "GIT_RELAY_THRESHOLD",
        ] {
            command = command.env_remove(name);
        }
        command
    }

    /// Shows a command and what it prints; it must succeed.
    fn show(&self, words: &[String]) -> Result<()> {
        self.show_as(&typed(words), words)
    }

    /// The same of a line for a shell.
    fn show_line(&self, line: &str) -> Result<()> {
        self.show_as(line, &words(&["sh", "-c", line]))
    }

    fn show_as(&self, shown: &str, words: &[String]) -> Result<()> {
        out::say(format!("$ {shown}"));
        let output =
            self.command(words).stdin_null().unchecked().run().context("git can be started")?;
        anyhow::ensure!(
            output.status.success(),
            Fault::refused(format!("'{shown}' failed")).hint("git relay demo --keep")
        );
        Ok(())
    }

    fn read(&self, words: &[String]) -> Result<String> {
        self.command(words)
            .stdin_null()
            .read()
            .with_context(|| format!("'{}' failed", words.join(" ")))
    }

    fn session(&self) -> Result<String> {
        let list: serde_json::Value =
            serde_json::from_str(&self.read(&relay_words(&["list", "--json"]))?)?;
        Ok(list["sessions"][0]["sessionId"].as_str().context("there is a session")?.to_owned())
    }

    fn ssh_verify(&self, export: &Path, trust: &str) -> Result<()> {
        let signature = export.join("contract.json.sig");
        let line = words(&[
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            trust,
            "-I",
            "relay",
            "-n",
            crate::model::sign::CONTRACT_NAMESPACE,
            "-s",
            &signature.to_string_lossy(),
        ]);
        let message = export.join("contract.json");
        out::say(format!("$ {} < {}", typed(&line), shell_word(&message)));
        let output = self
            .command(&line)
            .stdin_path(export.join("contract.json"))
            .unchecked()
            .run()
            .context("ssh-keygen can be started")?;
        anyhow::ensure!(output.status.success(), Fault::integrity("ssh-keygen does not agree"));
        Ok(())
    }
}
