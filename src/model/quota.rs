//! Usage: what a provider said, and when it is time to hand over.
//!
//! Only shares that a provider wrote are kept; a share is never counted out of tokens, and a
//! missing reading is unknown, never 0.

use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One observation of usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reading {
    /// Where it was read, e.g. `rate_limit_event` or `token_count`.
    pub source: String,
    /// Length of the window in minutes: 300 is the five-hour window, 10080 the weekly one.
    /// Windows are told apart by length, never by the slot they arrive in.
    pub window_minutes: u32,
    /// Used share in thousandths: 0 to 1000, and above where a provider lets it overrun.
    pub used_permille: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resets_at: Option<Timestamp>,
    pub observed_at: Timestamp,
}

/// The default threshold: hand over from 90 % on.
pub const THRESHOLD_PERMILLE_DEFAULT: u32 = 900;

/// Whether `reading` calls for a hand-over at `now`.
///
/// A reading whose window has been reset since says nothing any more.
pub fn breaches(reading: &Reading, threshold_permille: u32, now: Timestamp) -> bool {
    let still_holds = reading.resets_at.is_none_or(|reset| reset > now);
    still_holds && reading.used_permille >= threshold_permille
}

/// A share of 0 to 1 (Anthropic's unit) or 0 to 100 (OpenAI's) in thousandths, by `scale` = 1000
/// or 10. `None` for what is not a share (negative, NaN, absurd).
pub fn permille(share: f64, scale: f64) -> Option<u32> {
    let value = (share * scale).round();
    (value.is_finite() && (0.0..=100_000.0).contains(&value)).then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(used_permille: u32, resets_at: Option<i64>) -> Reading {
        Reading {
            source: "test".into(),
            window_minutes: 300,
            used_permille,
            resets_at: resets_at.map(Timestamp),
            observed_at: Timestamp(100),
        }
    }

    #[test]
    fn the_verdict_is_monotone_and_never_rests_on_a_window_that_is_over() {
        let now = Timestamp(1000);
        assert!(!breaches(&reading(899, None), 900, now));
        assert!(breaches(&reading(900, None), 900, now));
        assert!(breaches(&reading(1000, Some(1001)), 900, now));
        assert!(!breaches(&reading(1000, Some(1000)), 900, now));
    }

    #[test]
    fn shares_come_in_two_units() {
        assert_eq!(permille(0.76, 1000.0), Some(760));
        assert_eq!(permille(76.0, 10.0), Some(760));
        assert_eq!(permille(f64::NAN, 10.0), None);
        assert_eq!(permille(-0.1, 1000.0), None);
    }
}
