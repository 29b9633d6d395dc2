//! One verb per file: arguments to room `relay` or `store`, result to room `ui`.

mod abort;
mod adopt;
mod agents;
mod allow;
mod completions;
mod demo;
mod detect;
mod doctor;
mod finish;
mod handoff;
pub mod hook;
mod init;
mod key;
mod list;
mod log;
mod record;
mod resume;
mod run;
mod setup;
mod show;
mod start;
mod status;
mod terminal;
mod trust;
mod verify;

use crate::agents::Seat;
use crate::cli::{Cli, Command};
use crate::error::{Fault, kind_of};
use crate::git::{self, Repository};
use crate::host::config::{self, Durability, Settings};
use crate::host::env;
use crate::model::names::{AgentName, SessionId};
use crate::relay::start::TO_BE_KNOWN;
use crate::relay::{End, Hub};
use crate::store::keys;
use crate::ui::out;
use anyhow::Result;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Parses the command line, runs the verb, prints an error if there is one.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(as_meant(std::env::args_os().collect())) {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // Help goes to standard output, usage errors to standard error: clap knows which.
            _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            out::error(&error);
            ExitCode::from(kind_of(&error).exit_code())
        }
    }
}

/// `version` and `help VERB` as git itself takes them.
fn as_meant(mut words: Vec<OsString>) -> Vec<OsString> {
    match words.get(1).and_then(|word| word.to_str()) {
        Some("version") => words[1] = "--version".into(),
        Some("help") => {
            words.remove(1);
            words.push("--help".into());
        }
        _ => {}
    }
    words
}

fn run(command: Command) -> Result<u8> {
    match command {
        Command::Setup(args) => setup::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Start(args) => start::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Handoff(args) => handoff::run(&args),
        Command::Adopt(args) => adopt::run(&args),
        Command::Resume(args) => resume::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Status(args) => status::run(&args),
        Command::List(args) => list::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Finish(args) => finish::run(&args),
        Command::Abort(args) => abort::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Detect(args) => detect::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Allow(args) => allow::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Demo(args) => demo::run(&args),
        // `main` takes hooks before clap; this is reached only by odd spellings of them.
        Command::Hook(args) => {
            hook::run([args.source.into(), args.event.into()].into_iter());
            Ok(0)
        }
    }
}

/// The repository of the current folder, ready or not.
fn open_repository() -> Result<Repository> {
    Repository::open(&env::current_folder()?)
}

/// The repository of the current folder with its settings and trust; it must be ready.
fn open_hub() -> Result<Hub> {
    let found = open_repository()?;
    let here = found
        .is_ours()
        .then(|| found.git_dir().file_name()?.to_str().and_then(SessionId::new))
        .flatten();
    let mut repo = match found.main_work_tree() {
        Some(main) if here.is_some() => Repository::open(main)?,
        _ => found,
    };
    if keys::project(&repo)?.is_none() {
        return Err(Fault::refused("this repository is not ready for relays")
            .hint("git relay init")
            .into());
    }
    let settings = config::load(repo.common_dir(), repo.main_work_tree())?;
    repo.set_durability(match settings.durability {
        Durability::Full => git::Durability::Full,
        Durability::None => git::Durability::None,
    });
    let trust = keys::load_trust(&repo)?;
    Ok(Hub { repo, here, settings, trust })
}

/// Nothing can begin in a repository without commits. Where git knows nobody, the command that makes
/// one would fail: that is said too.
fn no_commit_yet(repo: &Repository) -> Result<anyhow::Error> {
    let commit = "git commit --allow-empty -m 'Initial commit'";
    let hint = match repo.identity_fault()? {
        Some(_) => format!("{TO_BE_KNOWN} && {commit}"),
        None => commit.to_owned(),
    };
    Ok(Fault::refused("this repository has no commit yet").hint(hint).into())
}

/// The agents that are here, as `--agents` takes them.
fn found_here(settings: &Settings) -> String {
    let installed = Seat::installed(settings);
    let words: Vec<&str> = installed.iter().map(AgentName::as_str).collect();
    if words.is_empty() { "NAME,NAME".to_owned() } else { words.join(",") }
}

/// The exit code of a drive's end.
fn code_of(end: &End) -> u8 {
    match end {
        End::Done | End::NotStarted | End::Over(_) => 0,
        End::Asks { .. } | End::Killed | End::Failed { .. } | End::Next { .. } => 1,
        End::Exhausted { .. } => 6,
    }
}
