//! What a failed turn's error is, and what the rate limits say.

use crate::agents::loose::{self, Raw, loose};
use crate::agents::trouble::{self, Class};
use crate::model::quota::{Reading, permille};
use crate::model::time::Timestamp;
use crate::model::transcript::Trouble;

/// The readings in `rate_limits`. A window is told by its length, never by its slot; other meters
/// than Codex's own have windows of the same lengths and are left out.
pub(super) fn readings(raw: Raw<'_>, observed_at: Timestamp) -> Vec<Reading> {
    loose!(Limits { limit_id, primary, secondary });
    loose!(Window { used_percent, window_minutes, resets_at, resets_in_seconds });
    let limits: Limits<'_> = loose::object(raw).unwrap_or_default();
    if loose::text(limits.limit_id).is_some_and(|id| id != "codex") {
        return Vec::new();
    }
    [limits.primary, limits.secondary]
        .into_iter()
        .filter_map(|window| {
            let window: Window<'_> = loose::object(window)?;
            let resets_in = loose::integer(window.resets_in_seconds).filter(|wait| *wait >= 0);
            Some(Reading {
                source: "token_count".to_owned(),
                window_minutes: whole_window(loose::integer(window.window_minutes)?)?,
                used_permille: permille(loose::number(window.used_percent)?, 10.0)?,
                resets_at: loose::epoch(window.resets_at)
                    .or_else(|| resets_in.map(|wait| observed_at.plus_seconds(wait))),
                observed_at,
            })
        })
        .collect()
}

/// The service rounds: 299 is the five-hour window too.
fn whole_window(minutes: i64) -> Option<u32> {
    let known = [300, 10_080].into_iter().find(|known| (minutes - known).abs() <= 3);
    u32::try_from(known.unwrap_or(minutes)).ok().filter(|minutes| *minutes > 0)
}

/// `codex_error_info`, which decides where it is there and says more than "other".
const CODES: &[(&str, Class)] = &[
    ("usage_limit_exceeded", Class::Limit),
    ("rate_limit_exceeded", Class::Transient),
    ("server_overloaded", Class::Overload),
    ("flex_unavailable", Class::Overload),
    ("policy_capacity_unavailable", Class::Overload),
    ("unauthorized", Class::Auth),
    ("context_window_exceeded", Class::Context),
];

/// The HTTP status inside `codex_error_info`.
const STATUSES: &[(i64, Class)] = &[
    (401, Class::Auth),
    (403, Class::Auth),
    (429, Class::Transient),
    (503, Class::Overload),
    (529, Class::Overload),
];

/// How the messages of a failed turn begin, with straight apostrophes. Not read anywhere else.
const MESSAGES: &[(&str, Class)] = &[
    ("You've hit your usage limit", Class::Limit),
    ("Quota exceeded. Check your plan and billing details", Class::Limit),
    ("To use Codex with your ChatGPT plan, upgrade", Class::Limit),
    ("exceeded retry limit, last status: 401", Class::Auth),
    ("exceeded retry limit, last status: 403", Class::Auth),
    ("exceeded retry limit, last status: 429", Class::Transient),
    ("exceeded retry limit, last status: 503", Class::Overload),
    ("exceeded retry limit, last status: 529", Class::Overload),
    ("unexpected status 401", Class::Auth),
    ("unexpected status 403", Class::Auth),
    ("unexpected status 429", Class::Transient),
    ("unexpected status 503", Class::Overload),
    ("unexpected status 529", Class::Overload),
    ("Selected model is at capacity", Class::Overload),
    ("Missing environment variable: ", Class::Auth),
    ("Your access token could not be refreshed", Class::Auth),
    ("Codex ran out of room in the model's context window", Class::Context),
];

/// What a failed turn's error is. Its text names a reset time in the machine's local time without
/// a zone, so none is taken from it: a reading has it.
pub(super) fn trouble(info: Raw<'_>, message: &str) -> Trouble {
    loose!(Status { http_status_code });
    let code = loose::text(info);
    let status = loose::members(info).find_map(|(_, detail)| {
        loose::integer(loose::object::<Status<'_>>(Some(detail))?.http_status_code)
    });
    let plain = message.replace('’', "'");
    let code = CODES.iter().find(|(known, _)| code.as_deref() == Some(*known));
    let by_status = || STATUSES.iter().find(|(known, _)| status == Some(*known));
    let by_message =
        || MESSAGES.iter().find(|(beginning, _)| plain.trim_start().starts_with(beginning));
    let class = code
        .map(|(_, class)| *class)
        .or_else(|| by_status().map(|(_, class)| *class))
        .or_else(|| by_message().map(|(_, class)| *class));
    trouble::trouble(class, message, None)
}
