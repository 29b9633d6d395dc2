//! Everything the user can type: clap types and help, nothing else. Man pages, completions and
//! the README's command table are generated from here.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  git relay init --agents claude,codex
  git relay run 'Add a login page'";

/// Hand a coding task from one AI agent to the next, signed and kept in git
#[derive(Debug, Parser)]
#[command(name = "git-relay", bin_name = "git relay", version, after_help = AFTER)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// A verb is described at its arguments, unless several share them.
#[derive(Debug, Subcommand)]
pub enum Command {
    Setup(Setup),
    Init(Init),
    Run(Run),
    Handoff(Handoff),
    Resume(Resume),
    Record(Record),
    /// Show where a session stands
    Status(One),
    /// List the sessions of this repository
    List(Listing),
    Log(Log),
    Show(Show),
    Verify(Verify),
    Finish(Finish),
    Abort(Abort),
    /// List what each agent can do and whether it could start now
    Agents(Listing),
    Key(Key),
    Trust(Trust),
    Demo(Demo),
    /// Entry point of all hooks
    #[command(hide = true)]
    Hook(Hook),
}

/// Put man pages where git finds them
#[derive(Debug, Args)]
pub struct Setup {
    /// Take away again what setup wrote
    #[arg(long)]
    pub remove: bool,
}

/// Make this repository ready: key, trust, hooks folder, order of agents
///
/// Safe to repeat. Changes nothing that it did not make: no hook and no setting of yours.
#[derive(Debug, Args)]
pub struct Init {
    /// The agents to hand over to, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    #[arg(long, hide_short_help = true, help = "Print JSON")]
    pub json: bool,
}

/// Work on a task headless, handing over down the list of agents
///
/// The task is worked on in a worktree of its own under .relay/sessions/, on the branch
/// relay/<session>; your own files, index and branches are not touched. Exits 0 when an agent
/// says the task is done, 1 when one asks something or leaves open items, 6 when every agent is
/// exhausted (the work is safe; `git relay resume` goes on).
#[derive(Debug, Args)]
pub struct Run {
    /// What to do, in words
    pub task: String,
    /// The agents to use, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    /// The commit to start from
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub base: String,
    /// What agents may do
    #[arg(long, value_enum, default_value_t = Level::Edit)]
    pub level: Level,
    /// Hand over when this share of a usage window is used (0.01 to 1)
    #[arg(long, value_name = "SHARE")]
    pub threshold: Option<f64>,
    /// Let an agent's shell run without a sandbox where none works here
    #[arg(long)]
    pub unsandboxed_shell: bool,
    /// Print the end as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Level {
    /// Look, change nothing
    Read,
    /// Edit files and run commands in a sandbox
    Edit,
    /// No sandbox (only where your own configuration allows it)
    All,
}

/// Hand over to the next agent now
///
/// With a driver at work (`git relay run`) this asks it and shows what it does. From inside the
/// agent's own shell it asks and returns at once. Without a driver it does the hand-over itself.
#[derive(Debug, Args)]
pub struct Handoff {
    /// The agent to hand over to
    #[arg(long, value_name = "AGENT")]
    pub to: Option<String>,
    #[arg(long, value_name = "SESSION", help = "The session, where it is not plain")]
    pub session: Option<String>,
    /// Why, in one line
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// What the next agent should do first
    #[arg(long, value_name = "TEXT")]
    pub next: Option<String>,
    /// Go on even if the receiver looks unable to start
    #[arg(long)]
    pub force: bool,
}

/// Go on from wherever a session stopped
///
/// A hand-over that was broken off is finished; an agent that still works is waited for; one that
/// asked something, left open items, or was ended by Ctrl-C is started again, with what is known.
#[derive(Debug, Args)]
pub struct Resume {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// Use these agents from now on, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    /// Answer what the agent asked; it goes on with that
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Accept the git configuration as the agent left it
    #[arg(long)]
    pub accept_config: bool,
    /// Let an agent's shell run without a sandbox where none works here
    #[arg(long)]
    pub unsandboxed_shell: bool,
    /// Print the end as JSON
    #[arg(long)]
    pub json: bool,
}

/// State a fact that the next agent must know
///
/// Agents call this while they work; people can too. Facts stand in the next contract, signed and
/// with the name of who stated them.
#[derive(Debug, Args)]
#[group(id = "fact", required = true, multiple = true)]
pub struct Record {
    /// Something decided, with its reason
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub decision: Vec<String>,
    /// Something that must not be done or must hold
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub constraint: Vec<String>,
    /// Something done that must not be done again
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub do_not_redo: Vec<String>,
    /// Something finished
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub done: Vec<String>,
    /// What should be done next
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub next: Vec<String>,
    /// An open item of the plan
    #[arg(long, value_name = "TEXT", group = "fact")]
    pub plan: Vec<String>,
    /// Something that must be true at the end
    #[arg(long = "assert", value_name = "TEXT", group = "fact")]
    pub assertion: Vec<String>,
    #[arg(long, value_name = "SESSION", help = "The session, where it is not plain")]
    pub session: Option<String>,
}

/// Show where a session stands
#[derive(Debug, Args)]
pub struct One {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Listing {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show the signed chain of a session's states
#[derive(Debug, Args)]
pub struct Log {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// Print the git command that checks the signatures, and run it
    #[arg(long)]
    pub signatures: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show a contract, or the envelope an agent was given
#[derive(Debug, Args)]
pub struct Show {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// The contract that closed this leg (default: the last)
    #[arg(long, value_name = "N")]
    pub leg: Option<u32>,
    /// Render the envelope again, byte for byte
    #[arg(long, conflicts_with = "json")]
    pub envelope: bool,
    /// Write contract.json, contract.json.sig and attachments into this folder
    #[arg(long, value_name = "FOLDER")]
    pub export: Option<PathBuf>,
    /// Print the contract's stored bytes
    #[arg(long)]
    pub json: bool,
}

/// Check every signature and digest
///
/// Exits 4 and names what is broken. Without a session, all of them are checked.
#[derive(Debug, Args)]
pub struct Verify {
    /// Only this session
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Bring the result to the branch the session started from
///
/// All that the agents committed, as one commit. Files that only a snapshot holds are listed and
/// left out, unless --include-snapshot. The session's commits stay reachable under a printed ref.
///
/// Where the branch is checked out, your own git makes the commit there, with your hooks and your
/// signing; that worktree must have nothing staged, and no change where the result touches it.
/// Conflicts are left there as git leaves them: resolve them, then --continue, or --abort.
#[derive(Debug, Args)]
pub struct Finish {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// Make one commit of it (the default)
    #[arg(long, group = "how")]
    pub squash: bool,
    /// Make a merge commit, with the session's own commits behind it
    #[arg(long, group = "how")]
    pub merge: bool,
    /// Leave the result on the session's branch, and touch no other
    #[arg(long, group = "how", conflicts_with_all = ["into", "message", "include_snapshot"])]
    pub keep: bool,
    /// The branch to bring it to, instead of the one it started from
    #[arg(long, value_name = "BRANCH")]
    pub into: Option<String>,
    /// The commit's message, instead of one made from the contracts
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,
    /// Bring what no agent committed, too
    #[arg(long)]
    pub include_snapshot: bool,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on after conflicts that you have resolved and added
    #[arg(long = "continue", group = "how", conflicts_with_all = ["into", "include_snapshot", "dry_run"])]
    pub go_on: bool,
    /// Take a finish with conflicts back
    #[arg(long, group = "how", conflicts_with_all = ["into", "message", "include_snapshot", "dry_run"])]
    pub abort: bool,
    /// Accept git configuration and hooks as the agent left them
    #[arg(long)]
    pub accept_config: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// End a session, keeping its work reachable
///
/// The agent is ended, if one runs. What is in the session's worktree is kept by a printed ref
/// before the worktree goes.
#[derive(Debug, Args)]
pub struct Abort {
    /// The session, where it is not plain
    pub session: Option<String>,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show this repository's key
#[derive(Debug, Args)]
pub struct Key {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show or change who is believed
#[derive(Debug, Args)]
pub struct Trust {
    /// Print the path of the allowed-signers file
    #[arg(long)]
    pub path: bool,
    /// Believe the key in this public key file
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    pub add: Option<PathBuf>,
    /// The name to know it by
    #[arg(long, value_name = "NAME", requires = "add", default_value = "relay")]
    pub principal: String,
    /// Believe the key with this fingerprint no more
    #[arg(long, value_name = "SHA256:…", conflicts_with_all = ["path", "add"])]
    pub remove: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Play a whole relay with two scripted agents in a scratch repository
///
/// Needs no agent and no account. Exits 0 only if every step really verified.
#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the scratch repository and say where it is
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Args)]
pub struct Hook {
    /// The agent, or `git`
    pub source: String,
    /// The event
    pub event: String,
}
