//! Configuration: three TOML files and a few variables, the nearest wins.
//!
//! `GIT_RELAY_*`, then the clone's (`<common git dir>/relay/config.toml`), the shared one
//! (`.relay.toml`, tracked), the user's (`$XDG_CONFIG_HOME/git-relay/config.toml`), the defaults.
//! Flags are applied by the commands. The shared file comes with any clone, so it can only make
//! things stricter.
//!
//! Unlike the design's sketch, what belongs to one agent stands under `[agent.NAME]`: TOML
//! cannot hold a list `agents` and a table `[agents.NAME]` in one file.

use super::values::{self, Name};
use super::{allow, env, files};
use crate::error::Fault;
use crate::model::names::AgentName;
use crate::model::quota::THRESHOLD_PERMILLE_DEFAULT;
use crate::model::shell::shell_word;
use anyhow::Result;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

const BRANCH_PREFIX: &str = "relay";
const WORKTREE_DIR: &str = ".relay/sessions";
const FILE_BYTES_MOST: u64 = 256 * 1024;

/// What one of the user's own files may hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    #[serde(default, deserialize_with = "values::agents")]
    agents: Option<Vec<AgentName>>,
    #[serde(default, deserialize_with = "values::share")]
    threshold: Option<u32>,
    durability: Option<Durability>,
    secrets: Option<Secrets>,
    signing_key: Option<PathBuf>,
    #[serde(default, deserialize_with = "values::deadline")]
    pause_deadline_s: Option<Duration>,
    #[serde(default, deserialize_with = "values::deadline")]
    start_deadline_s: Option<Duration>,
    #[serde(default, deserialize_with = "values::deadline")]
    receipt_deadline_s: Option<Duration>,
    #[serde(default, deserialize_with = "values::deadline")]
    wip_interval_s: Option<Duration>,
    #[serde(default, deserialize_with = "values::branch_prefix")]
    branch_prefix: Option<String>,
    #[serde(default)]
    worktree: WorktreeTable,
    /// Only in the user's file: it arms the repository's own hooks and servers.
    trust_folder: Option<bool>,
    /// Only in the user's file: it names programs to run.
    #[serde(default)]
    agent: BTreeMap<Name, AgentTable>,
}

/// `[worktree]`: where sessions work, and what makes such a place fit to work in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorktreeTable {
    dir: Option<String>,
    setup: Option<Vec<String>>,
}

/// What the tracked file may hold: it can narrow, lower and refuse. What it would run is inert
/// until `git relay allow` has recorded the file's digest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedFile {
    #[serde(default, deserialize_with = "values::agents")]
    agents: Option<Vec<AgentName>>,
    #[serde(default, deserialize_with = "values::share")]
    threshold: Option<u32>,
    secrets: Option<Secrets>,
    #[serde(default, deserialize_with = "values::branch_prefix")]
    branch_prefix: Option<String>,
    #[serde(default)]
    worktree: SharedWorktreeTable,
}

/// [`WorktreeTable`] of the tracked file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedWorktreeTable {
    #[serde(default, deserialize_with = "values::inner_folder")]
    dir: Option<String>,
    setup: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A step is on disk before it counts.
    #[default]
    Full,
    /// For tests and scratch repositories.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    /// A secret in the work tree is named.
    #[default]
    Warn,
    /// A secret in the work tree stops the hand-over.
    Refuse,
}

/// `[agent.NAME]` of the user's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTable {
    /// The program, where it is not on PATH under its usual name.
    pub binary: Option<PathBuf>,
    /// Let it run shell commands without a sandbox where it has none that works here.
    #[serde(default)]
    pub unsandboxed_shell: bool,
    /// Let it have the level `all`.
    #[serde(default)]
    pub all: bool,
    /// For an agent nobody wrote an adapter for: how to start it. `{prompt_file}`, `{worktree}`,
    /// `{session}` and `{nonce}` are filled in.
    pub command: Option<Vec<String>>,
    #[serde(default)]
    pub prompt: PromptBy,
    /// Regular expressions over one line of its standard output.
    #[serde(default, deserialize_with = "values::pattern")]
    pub start: Option<String>,
    #[serde(default, deserialize_with = "values::pattern")]
    pub receipt: Option<String>,
    #[serde(default, deserialize_with = "values::pattern")]
    pub limit: Option<String>,
    #[serde(default, deserialize_with = "values::pattern")]
    pub done: Option<String>,
    #[serde(default, deserialize_with = "values::pattern")]
    pub asks: Option<String>,
    #[serde(default, deserialize_with = "values::pattern")]
    pub failed: Option<String>,
    /// With the named groups `used` (0 to 100), and where known `resets` (epoch seconds) and
    /// `window` (minutes).
    #[serde(default, deserialize_with = "values::pattern")]
    pub reading: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    #[default]
    Stdin,
    /// The program is given `{prompt_file}` in its command.
    File,
}

/// Everything resolved.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agents consented to, in the user's order; empty when nobody has said.
    pub agents: Vec<AgentName>,
    /// Those that the shared file leaves out.
    pub left_out: Vec<AgentName>,
    pub threshold_permille: u32,
    pub durability: Durability,
    pub secrets: Secrets,
    pub signing_key: Option<PathBuf>,
    pub pause_deadline: Duration,
    pub start_deadline: Duration,
    pub receipt_deadline: Duration,
    /// How often the work in progress is saved, at most.
    pub wip_interval: Duration,
    pub trust_folder: bool,
    /// Session branches are `<branch_prefix>/<session>`.
    pub branch_prefix: String,
    /// The folder of session worktrees: absolute, or relative to the main worktree.
    pub worktree_dir: PathBuf,
    /// Commands that make a new session worktree fit to work in.
    pub setup: Vec<String>,
    /// Those of the shared file while nobody has allowed it.
    pub inert: Vec<String>,
    pub agent_tables: BTreeMap<AgentName, AgentTable>,
}

/// Reads all layers for a repository.
pub fn load(common_dir: &Path, main_work_tree: Option<&Path>) -> Result<Settings> {
    know_variables()?;
    let user_path = env::config_folder()?.join("config.toml");
    let user: OwnFile = read(&user_path)?.unwrap_or_default();
    let clone_path = common_dir.join("relay/config.toml");
    let clone: OwnFile = read(&clone_path)?.unwrap_or_default();
    let shared_path = main_work_tree.map(|root| root.join(".relay.toml"));
    let shared: SharedFile = match &shared_path {
        Some(path) => read(path).map_err(not_for_all)?.unwrap_or_default(),
        None => SharedFile::default(),
    };
    let may_run = match &shared_path {
        Some(path) => allow::is_allowed(common_dir, path)?,
        None => false,
    };
    if clone.trust_folder.is_some() || !clone.agent.is_empty() {
        return Err(only_in(&user_path, &clone_path)?);
    }
    let named = match env::text("GIT_RELAY_AGENTS") {
        Some(list) => names(list.split(',').map(str::to_owned).collect())
            .map_err(|error| of_variable("GIT_RELAY_AGENTS", &error))?,
        None => clone.agents.or(user.agents).unwrap_or_default(),
    };
    let (agents, left_out) = named
        .into_iter()
        .partition(|agent| shared.agents.as_ref().is_none_or(|allowed| allowed.contains(agent)));
    let seconds = |clone: Option<Duration>, user: Option<Duration>, default| {
        clone.or(user).unwrap_or(Duration::from_secs(default))
    };
    let dir = clone.worktree.dir.or(shared.worktree.dir).or(user.worktree.dir);
    let (ours, theirs) = (clone.worktree.setup.is_none(), shared.worktree.setup);
    let inert = theirs.clone().filter(|_| ours && !may_run).unwrap_or_default();
    let theirs = theirs.filter(|_| may_run);
    let setup = clone.worktree.setup.or(theirs).or(user.worktree.setup).unwrap_or_default();
    let prefix = clone.branch_prefix.or(shared.branch_prefix).or(user.branch_prefix);
    Ok(Settings {
        agents,
        left_out,
        branch_prefix: prefix.unwrap_or_else(|| BRANCH_PREFIX.to_owned()),
        worktree_dir: worktree_dir(dir)?,
        setup,
        inert,
        threshold_permille: threshold(clone.threshold.or(user.threshold), shared.threshold)?,
        durability: durability(clone.durability.or(user.durability))?,
        secrets: [clone.secrets.or(user.secrets), shared.secrets]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or_default(),
        signing_key: clone.signing_key.or(user.signing_key),
        pause_deadline: seconds(clone.pause_deadline_s, user.pause_deadline_s, 90),
        start_deadline: seconds(clone.start_deadline_s, user.start_deadline_s, 60),
        receipt_deadline: seconds(clone.receipt_deadline_s, user.receipt_deadline_s, 180),
        wip_interval: seconds(clone.wip_interval_s, user.wip_interval_s, 60),
        trust_folder: user.trust_folder.unwrap_or(false),
        agent_tables: user.agent.into_iter().map(|(Name(name), table)| (name, table)).collect(),
    })
}

/// What in the user's own file says who is started and what is run; `None` where nothing does.
pub fn what_runs() -> Result<Option<String>> {
    let path = env::config_folder()?.join("config.toml");
    let text = match files::read_text(&path, FILE_BYTES_MOST) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(_) => return Ok(Some("unreadable".to_owned())),
    };
    let Ok(mut table) = text.parse::<toml::Table>() else { return Ok(Some(text)) };
    let runs = ["agent", "agents", "signing_key", "trust_folder", "worktree"];
    table.retain(|key, _| runs.contains(&key));
    Ok((!table.is_empty()).then(|| table.to_string()))
}

/// Refuses a variable that looks like a setting and is none: mistyped, it would do nothing.
fn know_variables() -> Result<()> {
    let Some(name) = env::unknown_variable() else { return Ok(()) };
    let fault = Fault::usage(format!("no setting is called '{name}'"));
    Err(match closest(&name, env::SETTINGS.into_iter()) {
        Some(known) => fault.hint(format!("did you mean '{known}'? If not: unset {name}")),
        None => fault.hint(format!("unset {name}; those there are: {}", env::SETTINGS.join(", "))),
    }
    .into())
}

fn of_variable(name: &str, error: &anyhow::Error) -> anyhow::Error {
    Fault::usage(format!("{name}: {error}"))
        .hint(format!("set it to another value, or: unset {name}"))
        .into()
}

/// The clone's file holds what only the user's may.
fn only_in(user: &Path, clone: &Path) -> Result<anyhow::Error> {
    #[derive(Deserialize)]
    struct Marks {
        trust_folder: Option<Spanned<toml::Value>>,
        agent: Option<Spanned<toml::Value>>,
    }
    let text = files::read_text(clone, FILE_BYTES_MOST)?.unwrap_or_default();
    let marks: Option<Marks> = toml::from_str(&text).ok();
    let first = marks.into_iter().flat_map(|marks| [marks.trust_folder, marks.agent]);
    let first = first.flatten().map(|value| value.span().start).min().unwrap_or(0);
    let before = text.get(..first).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Ok(Fault::usage(format!(
        "'{}', line {line}, column {column}: 'trust_folder' and '[agent.NAME]' may stand only in \
         the user's own file",
        clone.display()
    ))
    .hint(format!("move them to {}", shell_word(user)))
    .into())
}

/// The threshold of the environment or of one's own files, or a lower one that is shared.
fn threshold(own: Option<u32>, shared: Option<u32>) -> Result<u32> {
    let own = match env::text("GIT_RELAY_THRESHOLD") {
        Some(text) => {
            let share = text.parse().map_err(|_| format!("'{text}' is no number, as 0.90 is"));
            let share = share.and_then(values::permille);
            share.map_err(|why| of_variable("GIT_RELAY_THRESHOLD", &anyhow::Error::msg(why)))?
        }
        None => own.unwrap_or(THRESHOLD_PERMILLE_DEFAULT),
    };
    Ok(shared.map_or(own, |lower| own.min(lower)))
}

/// Where session worktrees lie.
fn worktree_dir(dir: Option<String>) -> Result<PathBuf> {
    let Some(dir) = dir else { return Ok(PathBuf::from(WORKTREE_DIR)) };
    match dir.strip_prefix("~/") {
        Some(rest) => Ok(env::home()?.join(rest)),
        None => Ok(PathBuf::from(dir.trim_end_matches('/'))),
    }
}

/// A key that only people's own files may hold is told apart from one that nobody knows.
fn not_for_all(error: anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let typed = text.split_once("unknown field `").and_then(|(_, rest)| rest.split_once('`'));
    let own = toml::from_str::<OwnFile>("none_is_called_this = 1").err();
    match (typed, own) {
        (Some((key, _)), Some(own)) if own.message().contains(&format!("`{key}`")) => {
            Fault::usage(&text)
                .hint(format!(
                    "'{key}' may stand only in your own file: the shared one comes with any clone"
                ))
                .into()
        }
        _ => error,
    }
}

/// What the environment says, else what the files say.
fn durability(of_files: Option<Durability>) -> Result<Durability> {
    match env::text("GIT_RELAY_DURABILITY").as_deref() {
        Some("none") => Ok(Durability::None),
        Some("full") => Ok(Durability::Full),
        Some(other) => Err(Fault::usage(format!("'{other}' is not a durability"))
            .hint("GIT_RELAY_DURABILITY=full or none")
            .into()),
        None => Ok(of_files.unwrap_or_default()),
    }
}

/// Agent names out of text, each once.
pub fn names(list: Vec<String>) -> Result<Vec<AgentName>> {
    let mut names = Vec::new();
    for text in list {
        let name = agent_name(text.trim())?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn agent_name(text: &str) -> Result<AgentName> {
    Ok(values::agent(text).map_err(|why| Fault::usage(why).hint("git relay agents"))?)
}

/// A share of 0 to 1, as people write a threshold, in thousandths.
pub fn permille(share: f64) -> Result<u32> {
    Ok(values::permille(share).map_err(|why| Fault::usage(why).hint("--threshold 0.90"))?)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = files::read_text(path, FILE_BYTES_MOST).map_err(|error| {
        Fault::usage(format!("{error:#}")).hint(format!("look at {}", shell_word(path)))
    })?;
    let Some(text) = text else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let fault = Fault::usage(format!("'{}': {error}", path.display()).trim_end());
        match nearest(error.message()) {
            Some(key) => fault.hint(format!("did you mean '{key}'?")),
            None => fault.hint(format!("edit {}", shell_word(path))),
        }
        .into()
    })
}

/// The known key (or word) nearest to the unknown one, out of serde's sentence "unknown field `x`,
/// expected one of `a`, `b`".
fn nearest(message: &str) -> Option<String> {
    let rest = ["unknown field `", "unknown variant `"];
    let rest = rest.into_iter().find_map(|start| message.strip_prefix(start))?;
    let (typed, known) = rest.split_once('`')?;
    closest(typed, known.split('`').skip(1).step_by(2)).map(str::to_owned)
}

/// The word that somebody who typed `typed` may have meant: a third of it may be wrong.
fn closest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (typed.chars().count() / 3).clamp(1, 3);
    known
        .map(|word| (strsim::damerau_levenshtein(typed, word), word))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error_with_a_suggestion() {
        let error = toml::from_str::<OwnFile>("treshold = 0.9\n").unwrap_err();
        assert_eq!(nearest(error.message()).as_deref(), Some("threshold"));
        assert!(error.to_string().contains("line 1"), "{error}");
        assert!(toml::from_str::<SharedFile>("trust_folder = true\n").is_err());
    }

    #[test]
    fn a_word_that_is_far_from_all_gets_no_suggestion() {
        let nearest = |text: &str| nearest(toml::from_str::<OwnFile>(text).unwrap_err().message());
        assert_eq!(nearest("colour = 1\n"), None);
        assert_eq!(nearest("foo = 1\n"), None);
        assert_eq!(nearest("[agent.x]\nal = true\n").as_deref(), Some("all"));
        assert_eq!(nearest("secrets = \"wran\"\n").as_deref(), Some("warn"));
    }
}
