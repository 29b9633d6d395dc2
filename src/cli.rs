//! Everything the user can type: clap types and help, nothing else. Man pages, completions and
//! the README's command table are generated from here.

mod outside;

pub use outside::{Adopt, Detect};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  git relay init --agents claude,codex
  git relay start 'Add a login page'";

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
    Start(Start),
    Run(Run),
    Handoff(Handoff),
    Adopt(Adopt),
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
    Detect(Detect),
    /// List what each agent can do and whether it could start now
    Agents(Listing),
    Key(Key),
    Trust(Trust),
    Allow(Allow),
    Doctor(Doctor),
    Demo(Demo),
    /// Entry point of all hooks
    #[command(hide = true)]
    Hook(Hook),
}

/// Put man pages and shell completions where they are found
///
/// Man pages: beside the program where that may be written, share/man/man1 for one in bin, else
/// below ~/.local/share. Completions: share/bash-completion/completions,
/// share/zsh/site-functions and share/fish/vendor_completions.d, beside a program of the system's
/// or below ~/.local/share. Every place is printed, and nothing else is written.
#[derive(Debug, Args)]
pub struct Setup {
    /// Take away again what setup wrote
    #[arg(long)]
    pub remove: bool,
}

/// Make this repository ready: key, trust, hooks, order of agents
///
/// Safe to repeat. No setting of git's is changed. The repository's own post-commit hook gets a
/// marked block at its end, which notes commits that you make in a session's worktree; where
/// another tool keeps the hooks, you are told the line to add.
#[derive(Debug, Args)]
pub struct Init {
    /// The agents to hand over to, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    /// Take the block out of the repository's hook file again
    #[arg(long, conflicts_with = "agents")]
    pub remove_hooks: bool,
    #[arg(long, help = "Print JSON")]
    pub json: bool,
}

/// Work on a task in this terminal, handing over down the list of agents
///
/// The agent is started here, as you would start it yourself: your own settings rule, and what you
/// type goes to it. When its limit comes, or you say `git relay handoff` in another terminal, the
/// work is saved and the next agent takes over in the same terminal. Leave an agent as ever (/exit,
/// Ctrl-D) and you are asked what you mean by it.
#[derive(Debug, Args)]
pub struct Start {
    /// What to do, in words; asked for if it is not given
    pub task: Option<String>,
    /// The agent to begin with
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// The agents to use, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    /// The commit to start from
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub base: String,
    /// Take along what is not committed in this worktree; it stays as it is here, too
    #[arg(long, conflicts_with = "base")]
    pub include_dirty: bool,
    /// Hand over when this share of a usage window is used (0.01 to 1)
    #[arg(long, value_name = "SHARE")]
    pub threshold: Option<f64>,
}

/// Work on a task headless, handing over down the list of agents
///
/// The task is worked on in a worktree of its own under .relay/sessions/, on the branch
/// relay/<session>; your own files, index and branches are not touched. Exits 0 when an agent
/// says the task is done, 1 when one asks something or leaves open items or none could go on, 6
/// when nobody is left and one at least is at its limit (the work is safe; `git relay resume` goes on).
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
    /// Make session and worktree, start nobody; `git relay resume` does
    #[arg(long)]
    pub no_launch: bool,
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
/// Where the agent can be asked, it first states what the next one must know.
#[derive(Debug, Args)]
pub struct Handoff {
    /// The agent to hand over to
    #[arg(long, value_name = "AGENT")]
    pub to: Option<String>,
    #[arg(
        value_name = "SESSION",
        conflicts_with = "session",
        help = "The session: its name, its beginning or its last four digits; else the one that is open"
    )]
    pub name: Option<String>,
    #[arg(long, value_name = "SESSION", help = "The same")]
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
    /// Save and sign, start nobody; `git relay resume` goes on, days later if need be
    #[arg(long)]
    pub no_launch: bool,
    /// Show the contract that would be signed, and write nothing
    #[arg(long, conflicts_with = "no_launch")]
    pub dry_run: bool,
    /// Print JSON; with --dry-run the contract's canonical bytes
    #[arg(long)]
    pub json: bool,
}

/// Go on from wherever a session stopped
///
/// A hand-over that was broken off is finished; an agent that still works is waited for; one that
/// asked something, left open items, or was ended by Ctrl-C is started again, with what is known.
#[derive(Debug, Args)]
pub struct Resume {
    /// The session: its name, its beginning or its last four digits; else the one that is open
    pub session: Option<String>,
    /// Use these agents from now on, in this order
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub agents: Vec<String>,
    /// Answer what the agent asked; it goes on with that
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Go on without a terminal from now on, as `git relay run` does, where it began at one
    #[arg(long)]
    pub headless: bool,
    /// Accept configuration (git's, git relay's own) and hooks as they were left
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
#[group(skip)]
#[command(
    group = clap::ArgGroup::new("fact").required(true).multiple(true),
    override_usage = "git relay record --done TEXT --next TEXT; at least one fact of those below, each as often as there is one"
)]
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
    #[arg(
        long,
        value_name = "SESSION",
        help = "The session: its name, its beginning or its last four digits; else the one that is open"
    )]
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show where a session stands
#[derive(Debug, Args)]
pub struct One {
    /// The session: its name, its beginning or its last four digits; else the one that is open
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
///
/// Newest first: commit, time, state, leg, agent, event. The events: begun (the task was taken
/// on), adopted (what an agent left elsewhere is its first leg); dispatching (an agent is about to be started), launched (its process is there), started
/// (it showed a first sign), received (its model made something: it took over), dispatch-failed
/// (the start came to nothing); folded (facts or a request were read from the inbox), observed
/// (usage or a commit was seen); leg-ended (the agent ended), breached (a hand-over was decided),
/// pause-undone (the agent finished meanwhile), snapshotted (the work was saved), contracted (the
/// contract was signed); consented (the agents were named anew), left-terminal (it goes on headless), guard-accepted (a changed
/// configuration was accepted); finishing (the result is being brought home), finish-undone (that was
/// taken back), finished; aborted.
#[derive(Debug, Args)]
pub struct Log {
    /// The session: its name, its beginning or its last four digits; else the one that is open
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
    /// The session: its name, its beginning or its last four digits; else the one that is open
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
/// left out, unless --include-snapshot. With --merge the commits come one by one, written anew
/// without the snapshots that lie between them. All of them stay reachable under a printed ref.
///
/// Where the branch is checked out, your own git makes the commit there, with your hooks and your
/// signing; that worktree must have nothing staged, and no change where the result touches it.
/// Conflicts are left there as git leaves them: resolve them, then --continue, or --abort.
#[derive(Debug, Default, Args)]
pub struct Finish {
    /// The session: its name, its beginning or its last four digits; else the one that is open
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
/// The agent is ended, if one runs: where its session is named, a command that drives it is
/// asked to, as Ctrl-C there does, and lets go. What is in the session's worktree is kept by a printed ref
/// before the worktree goes.
#[derive(Debug, Args)]
pub struct Abort {
    /// The session: its name, its beginning or its last four digits; else the one that is open
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

/// Let the shared configuration's commands run in new session worktrees
///
/// The file .relay.toml comes with any clone, so the setup commands in it are not run before you
/// have seen them. This shows them and remembers the file as it is now; after a change it has to
/// be said again.
#[derive(Debug, Args)]
pub struct Allow {
    /// Let nothing of it run any more
    #[arg(long)]
    pub remove: bool,
}

/// Find out what is wrong: hooks, keys, trust, locks, notes, disk, clock, agents
///
/// Hooks are proved, not guessed at: for the main tree and for each session's a commit is made in
/// a scratch repository, with the hooks that git would run there. Each finding names what to do.
/// Exits 1 if there is a problem.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Mend what is git relay's own; never what is yours
    #[arg(long)]
    pub fix: bool,
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
