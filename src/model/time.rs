//! Moments in whole seconds, written as RFC 3339 in UTC (`2026-11-30T01:02:03Z`).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// A moment that somebody else wrote as seconds; `None` before 1970 and beyond the year 9999,
    /// which could not be written down and read back.
    pub fn from_epoch(seconds: i64) -> Option<Self> {
        (seconds >= 0 && jiff::Timestamp::from_second(seconds).is_ok()).then_some(Self(seconds))
    }

    /// Seconds from `earlier` to this, 0 when the clock went backwards.
    pub fn seconds_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Reads RFC 3339 with any offset and fraction; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().and_then(|moment| Self::from_epoch(moment.as_second()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0) {
            Ok(moment) => write!(f, "{}", moment.strftime("%Y-%m-%dT%H:%M:%SZ")),
            // Outside the years -9999..9999: shown as a number, and never read back.
            Err(_) => write!(f, "@{}", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment = Self::parse(&text).ok_or_else(|| de::Error::custom("not RFC 3339"))?;
        // Our own data is read strictly: one moment has one spelling.
        if moment.to_string() == text {
            Ok(moment)
        } else {
            Err(de::Error::custom(format!("`{text}` is not in the form 2026-11-30T01:02:03Z")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_one_spelling() {
        let moment = Timestamp(1_795_997_341);
        assert_eq!(moment.to_string(), "2026-11-30T00:09:01Z");
        assert_eq!(Timestamp::parse("2026-11-30T01:09:01.5+01:00"), Some(moment));
        assert!(serde_json::from_str::<Timestamp>("\"2026-11-30T01:09:01+01:00\"").is_err());
        assert_eq!(Timestamp::from_epoch(99_999_999_999_999), None);
        let late = Timestamp::from_epoch(253_000_000_000).map(|it| it.to_string());
        assert_eq!(late.as_deref(), Some("9987-04-02T17:46:40Z"));
        assert_eq!(serde_json::to_string(&moment).unwrap(), "\"2026-11-30T00:09:01Z\"");
    }
}
