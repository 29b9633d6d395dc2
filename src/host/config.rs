//! Configuration: three TOML files and a few variables, the nearest wins.
//!
//! `GIT_RELAY_*`, then the clone's (`<common git dir>/relay/config.toml`), the shared one
//! (`.relay.toml`, tracked), the user's (`$XDG_CONFIG_HOME/git-relay/config.toml`), the defaults.
//! Flags are applied by the commands. The shared file comes with any clone, so it can only make
//! things stricter.
//!
//! Unlike the design's sketch, what belongs to one agent stands under `[agent.NAME]`: TOML
//! cannot hold a list `agents` and a table `[agents.NAME]` in one file.

use super::{env, files};
use crate::error::Fault;
use crate::model::names::AgentName;
use crate::model::quota::THRESHOLD_PERMILLE_DEFAULT;
use anyhow::Result;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEADLINE_S_MOST: u64 = 7 * 24 * 3600;
const FILE_BYTES_MOST: u64 = 256 * 1024;

/// What one of the user's own files may hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    agents: Option<Vec<String>>,
    threshold: Option<f64>,
    durability: Option<Durability>,
    secrets: Option<Secrets>,
    signing_key: Option<PathBuf>,
    pause_deadline_s: Option<u64>,
    start_deadline_s: Option<u64>,
    receipt_deadline_s: Option<u64>,
    wip_interval_s: Option<u64>,
    /// Only in the user's file: it arms the repository's own hooks and servers.
    trust_folder: Option<bool>,
    /// Only in the user's file: it names programs to run.
    #[serde(default)]
    agent: BTreeMap<String, AgentTable>,
}

/// What the tracked file may hold: it can narrow, lower and refuse, and run nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedFile {
    agents: Option<Vec<String>>,
    threshold: Option<f64>,
    secrets: Option<Secrets>,
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
    pub start: Option<String>,
    pub receipt: Option<String>,
    pub limit: Option<String>,
    pub done: Option<String>,
    pub asks: Option<String>,
    pub failed: Option<String>,
    /// With the named groups `used` (0 to 100), and where known `resets` (epoch seconds) and
    /// `window` (minutes).
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
    pub agent_tables: BTreeMap<AgentName, AgentTable>,
}

/// Reads all layers for a repository.
pub fn load(common_dir: &Path, main_work_tree: Option<&Path>) -> Result<Settings> {
    let user_path = env::config_folder()?.join("config.toml");
    let user: OwnFile = read(&user_path)?.unwrap_or_default();
    let clone_path = common_dir.join("relay/config.toml");
    let clone: OwnFile = read(&clone_path)?.unwrap_or_default();
    let shared_path = main_work_tree.map(|root| root.join(".relay.toml"));
    let shared: SharedFile = match &shared_path {
        Some(path) => read(path)?.unwrap_or_default(),
        None => SharedFile::default(),
    };
    if clone.trust_folder.is_some() || !clone.agent.is_empty() {
        return Err(Fault::usage(format!(
            "'trust_folder' and '[agent.NAME]' may stand only in the user's own file, not in '{}'",
            clone_path.display()
        ))
        .hint(format!("move them to {}", user_path.display()))
        .into());
    }
    let named = match env::text("GIT_RELAY_AGENTS") {
        Some(list) => Some(list.split(',').map(str::to_owned).collect()),
        None => clone.agents.or(user.agents),
    };
    let mut agents = names(named.unwrap_or_default())?;
    if let Some(allowed) = shared.agents {
        let allowed = names(allowed)?;
        agents.retain(|agent| allowed.contains(agent));
    }
    let threshold = clone.threshold.or(user.threshold);
    let mut threshold_permille = match env::text("GIT_RELAY_THRESHOLD") {
        Some(text) => permille(text.parse().ok().unwrap_or(f64::NAN))?,
        None => threshold.map_or(Ok(THRESHOLD_PERMILLE_DEFAULT), permille)?,
    };
    if let Some(lower) = shared.threshold {
        threshold_permille = threshold_permille.min(permille(lower)?);
    }
    let seconds = |clone: Option<u64>, user: Option<u64>, default| {
        let asked = clone.or(user).unwrap_or(default);
        if asked > DEADLINE_S_MOST {
            return Err(Fault::usage(format!("a deadline of {asked} s is longer than a week"))
                .hint("pause_deadline_s = 90"));
        }
        Ok(Duration::from_secs(asked))
    };
    Ok(Settings {
        agents,
        threshold_permille,
        durability: durability(clone.durability.or(user.durability))?,
        secrets: [clone.secrets.or(user.secrets), shared.secrets]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or_default(),
        signing_key: clone.signing_key.or(user.signing_key),
        pause_deadline: seconds(clone.pause_deadline_s, user.pause_deadline_s, 90)?,
        start_deadline: seconds(clone.start_deadline_s, user.start_deadline_s, 60)?,
        receipt_deadline: seconds(clone.receipt_deadline_s, user.receipt_deadline_s, 180)?,
        wip_interval: seconds(clone.wip_interval_s, user.wip_interval_s, 60)?,
        trust_folder: user.trust_folder.unwrap_or(false),
        agent_tables: user
            .agent
            .into_iter()
            .map(|(name, table)| Ok((agent_name(&name)?, table)))
            .collect::<Result<_>>()?,
    })
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
    AgentName::new(text).ok_or_else(|| {
        Fault::usage(format!("'{text}' is not an agent's name")).hint("git relay agents").into()
    })
}

/// A share of 0 to 1, as people write a threshold, in thousandths.
pub fn permille(share: f64) -> Result<u32> {
    if (0.01..=1.0).contains(&share) {
        Ok((share * 1000.0).round() as u32)
    } else {
        Err(Fault::usage(format!("a threshold is a share from 0.01 to 1, not '{share}'"))
            .hint("threshold = 0.90")
            .into())
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = files::read_text(path, FILE_BYTES_MOST).map_err(|error| {
        Fault::usage(format!("{error:#}")).hint(format!("look at {}", path.display()))
    })?;
    let Some(text) = text else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| {
        let fault = Fault::usage(format!("'{}': {error}", path.display()).trim_end());
        match nearest(error.message()) {
            Some(key) => fault.hint(format!("did you mean '{key}'?")),
            None => fault.hint(format!("edit {}", path.display())),
        }
        .into()
    })
}

/// The known key nearest to the unknown one, out of serde's sentence "unknown field `x`,
/// expected one of `a`, `b`".
fn nearest(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (typed, known) = rest.split_once('`')?;
    known
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|key| (strsim::damerau_levenshtein(typed, key), key))
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, key)| key.to_owned())
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
    fn a_threshold_is_a_share() {
        assert_eq!(permille(0.9).unwrap(), 900);
        assert!(permille(90.0).is_err());
        assert!(permille(f64::NAN).is_err());
    }
}
