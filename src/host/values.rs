//! Values of settings, checked where they stand, so that what is wrong with one is said with its
//! file, line and column.

use crate::model::names::AgentName;
use regex::Regex;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::path::{Component, Path};
use std::time::Duration;

const DEADLINE_S_MOST: u64 = 7 * 24 * 3600;

/// A share of 0 to 1, as people write a threshold, in thousandths.
pub(super) fn permille(share: f64) -> Result<u32, String> {
    if (0.01..=1.0).contains(&share) {
        Ok((share * 1000.0).round() as u32)
    } else {
        Err(format!("a threshold is a share from 0.01 to 1, as 0.90 is, not '{share}'"))
    }
}

pub(super) fn share<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    permille(f64::deserialize(value)?).map(Some).map_err(Error::custom)
}

pub(super) fn deadline<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    match u64::deserialize(value)? {
        seconds if seconds <= DEADLINE_S_MOST => Ok(Some(Duration::from_secs(seconds))),
        seconds => Err(Error::custom(format!("{seconds} s is longer than a week"))),
    }
}

/// The name of an agent, in words where it is none.
pub(super) fn agent(text: &str) -> Result<AgentName, String> {
    AgentName::new(text).ok_or_else(|| format!("'{text}' is not an agent's name"))
}

/// Names of agents, each once.
pub(super) fn agents<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Vec<AgentName>>, D::Error> {
    let mut names = Vec::new();
    for Name(name) in Vec::deserialize(value)? {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(Some(names))
}

/// One of them, told of where it stands.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) AgentName);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        agent(&String::deserialize(value)?).map(Self).map_err(Error::custom)
    }
}

/// A regular expression over one line.
pub(super) fn pattern<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(value)?;
    match Regex::new(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(Error::custom(format!("'{text}' is no regular expression: {error}"))),
    }
}

/// What can stand before the last slash of a branch's name.
pub(super) fn branch_prefix<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<String>, D::Error> {
    let named = String::deserialize(value)?;
    let prefix = named.strip_suffix('/').unwrap_or(&named);
    let part = |part: &str| {
        let plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with(".lock")
            && !part.ends_with('.')
            && !part.contains("..")
            && part.chars().all(plain)
    };
    if prefix.split('/').all(part) {
        return Ok(Some(prefix.to_owned()));
    }
    Err(Error::custom(format!("'{named}' cannot begin the names of branches, as 'relay' can")))
}

/// A folder of the repository: the shared file may name no other place.
pub(super) fn inner_folder<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<String>, D::Error> {
    let dir = String::deserialize(value)?;
    let mut parts = Path::new(&dir).components().peekable();
    let is_inside = parts.peek().is_some_and(|first| first.as_os_str() != ".git")
        && parts.all(|part| matches!(part, Component::Normal(_)));
    if is_inside {
        return Ok(Some(dir));
    }
    Err(Error::custom(format!(
        "'dir' in a shared file must be a folder of the repository, not '{dir}'; another place goes \
         into your own file"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_share() {
        assert_eq!(permille(0.9), Ok(900));
        assert!(permille(90.0).is_err());
        assert!(permille(f64::NAN).is_err());
    }
}
