//! The only reader of the wall clock.

use crate::model::time::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in whole seconds. A clock set before 1970 reads as 0.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).ok().and_then(Timestamp::from_epoch).unwrap_or(Timestamp(0))
}
