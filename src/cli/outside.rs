//! The commands for sessions that agents have had without us.

use super::Level;
use clap::Args;

/// Find agents' sessions on this machine, whoever started them
///
/// Looks into the config folders of every agent with an adapter: the usual ones, those your
/// environment names, and those of agents that are running. Shown are the sessions of this
/// repository and all its worktrees, newest first: id, agent, state, age, plan, files; what you
/// asked first; model, context and usage as far as the agent told. States: working and idle (its
/// process is there), limited, ended (and how its
/// last turn did, or that its transcript is damaged), unknown (a process may be at it). Nothing is written.
#[derive(Debug, Args)]
pub struct Detect {
    /// The session to show: the beginning of its id is enough, or the path of its transcript
    pub id: Option<String>,
    /// Show all that is known of it: prompts, plan, commands, files, last words
    #[arg(long, requires = "id")]
    pub show: bool,
    /// Sessions of every folder, not only of this repository
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// Only those written to in the last 7d (or 12h, 30m, 2w)
    #[arg(long, value_name = "AGE", conflicts_with = "id")]
    pub since: Option<String>,
    /// How many to show at most
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "id")]
    pub limit: usize,
    #[arg(long, help = "Print JSON")]
    pub json: bool,
}

/// Go on with what an agent has begun without git relay
///
/// The agent's own session becomes the first leg of a session here: what it was told, planned, ran
/// and wrote is sealed in a contract, what it has not committed comes along, and the next agent
/// takes over in this terminal, as with `git relay start`. The folder where it worked is only read.
/// From inside an agent's shell this passes on that agent's own session.
#[derive(Debug, Args)]
pub struct Adopt {
    /// The agent's id of its session, the beginning of it, or the path of its transcript; else the
    /// one plainly meant in this folder
    pub id: Option<String>,
    /// The agent to hand over to
    #[arg(long, value_name = "AGENT")]
    pub to: Option<String>,
    /// Take along what is not committed where it worked (the default)
    #[arg(long, conflicts_with = "clean")]
    pub include_dirty: bool,
    /// Start from its commits alone
    #[arg(long)]
    pub clean: bool,
    /// Go on headless, as `git relay run` does
    #[arg(long)]
    pub headless: bool,
    /// What agents may do
    #[arg(long, value_enum, requires = "headless")]
    pub level: Option<Level>,
    /// End the agent if it still runs, between two of its calls
    #[arg(long)]
    pub force: bool,
    /// Save and sign, start nobody; `git relay resume` does
    #[arg(long)]
    pub no_launch: bool,
    /// Print the end as JSON
    #[arg(long)]
    pub json: bool,
}
