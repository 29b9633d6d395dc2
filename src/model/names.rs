//! Names that travel between files: validated when made, so that a name in hand is a good one.

use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $valid:expr, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $type(String);

        impl $type {
            /// The name, or `None` if the text does not have its form.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                let valid: fn(&str) -> bool = $valid;
                valid(&text).then_some(Self(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(text).ok_or_else(|| de::Error::custom(concat!("not ", $form)))
            }
        }
    };
}

fn hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

name!(
    /// A session: `[a-z0-9-]{1,32}`, not beginning or ending in `-`.
    SessionId,
    |text| (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-'),
    "a session id ([a-z0-9-]{1,32})"
);
name!(
    /// A git object id in full: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
    Oid,
    |text| matches!(text.len(), 40 | 64) && hex(text),
    "a full object id"
);
name!(
    /// The random mark of one dispatch, 32 hex digits; never used twice.
    Nonce,
    |text| text.len() == 32 && hex(text),
    "a nonce of 32 hex digits"
);
name!(
    /// A SHA-256 in hex.
    Digest,
    |text| text.len() == 64 && hex(text),
    "a SHA-256 in hex"
);
name!(
    /// A contract's short name: `c-` and 8 hex digits.
    ContractId,
    |text| text.len() == 10 && text.starts_with("c-") && hex(&text[2..]),
    "a contract id (c- and 8 hex digits)"
);
name!(
    /// An agent by the name it has in configuration: `[a-z0-9-]{1,32}`.
    AgentName,
    |text| (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-'),
    "an agent name ([a-z0-9-]{1,32})"
);

impl SessionId {
    /// A session id out of a task's words and four hex digits: `add-a-login-page-3f2a`.
    ///
    /// The task must have been redacted before; a task without ASCII words becomes `task-3f2a`.
    pub fn from_task(redacted_task: &str, suffix: &str) -> Option<Self> {
        let mut words = String::new();
        for word in redacted_task
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(6)
        {
            if words.len() + word.len() + 1 > 26 {
                break;
            }
            if !words.is_empty() {
                words.push('-');
            }
            words.push_str(&word.to_ascii_lowercase());
        }
        if words.is_empty() {
            words.push_str("task");
        }
        Self::new(format!("{words}-{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_hand_is_a_good_one() {
        for bad in ["", "-a", "a-", "A", "a/b", "..", &"a".repeat(33)] {
            assert!(SessionId::new(bad).is_none(), "{bad}");
        }
        let id = |task| SessionId::from_task(task, "3f2a").map(|id| id.to_string());
        assert_eq!(
            id("Add a login page, please!").as_deref(),
            Some("add-a-login-page-please-3f2a")
        );
        assert_eq!(id("日本語").as_deref(), Some("task-3f2a"));
        assert_eq!(id(&"x".repeat(90)).as_deref(), Some("task-3f2a"));
        assert!(Oid::new("a".repeat(40)).is_some() && Oid::new("A".repeat(40)).is_none());
    }
}
