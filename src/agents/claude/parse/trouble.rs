//! What an error record is, and what the records of limits say.

use super::{Record, loose};
use crate::agents::loose::Raw;
use crate::agents::trouble::{Class, trouble};
use crate::model::quota::{Reading, permille};
use crate::model::time::Timestamp;
use crate::model::transcript::Trouble;
use std::borrow::Cow;

impl Record<'_> {
    /// The trouble that this record states, if it states one.
    pub(super) fn trouble(&self, text: &str) -> Trouble {
        loose!(Params { rate_limit_info });
        let params: Params<'_> = loose::object(self.api_params).unwrap_or_default();
        let limits: Limits<'_> = loose::object(self.quota_limits)
            .or_else(|| loose::object(params.rate_limit_info))
            .unwrap_or_default();
        let status = self.api_status.map(|status| Cow::Borrowed(status.get()));
        let facts = [
            (Field::Terminal, loose::text(self.terminal_reason)),
            (Field::Code, loose::text(self.api_error)),
            (Field::Kind, loose::text(self.error)),
            (Field::Type, loose::text(self.api_type)),
            // A throttled request says "rejected" too, but names no reset.
            (Field::Quota, loose::text(limits.status.filter(|_| limits.resets_at.is_some()))),
            (Field::Text, Some(Cow::Owned(text.replace('’', "'")))),
            (Field::Status, status),
        ];
        let class = CLASSES.iter().find(|(field, value, _)| {
            facts.iter().any(|(known, fact)| {
                let fact = fact.as_deref().unwrap_or_default();
                known == field
                    && if *field == Field::Text { fact.starts_with(value) } else { fact == *value }
            })
        });
        let class = class.map(|(_, _, class)| *class);
        trouble(class, text, loose::epoch(limits.resets_at))
    }
}

/// Where an error record says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `terminal_reason` of the result.
    Terminal,
    /// `api_error`.
    Code,
    /// `error` of the message.
    Kind,
    /// `api_error_type`, the service's own.
    Type,
    /// `status` of the limits that came with the error.
    Quota,
    /// The beginning of the sentence, in a record already marked as an API error.
    Text,
    /// `api_error_status`.
    Status,
}

/// What an error is, most telling sign first: the first row that holds decides. A 429 alone is the
/// last to be believed, and is never the usage limit.
const CLASSES: &[(Field, &str, Class)] = &[
    (Field::Terminal, "prompt_too_long", Class::Context),
    (Field::Terminal, "blocking_limit", Class::Context),
    (Field::Terminal, "rapid_refill_breaker", Class::Context),
    (Field::Code, "usage_limit_reached", Class::Limit),
    (Field::Code, "model_requires_usage_credits", Class::Limit),
    (Field::Code, "autocompact_thrashing", Class::Context),
    (Field::Code, "long_context_credits_required", Class::Context),
    (Field::Code, "message_over_context_limit", Class::Context),
    (Field::Code, "api_key_auth_disabled", Class::Auth),
    (Field::Code, "gateway_session_expired", Class::Auth),
    (Field::Code, "gateway_signin_required", Class::Auth),
    (Field::Code, "invalid_credential_header", Class::Auth),
    (Field::Code, "oauth_refresh_store_refused", Class::Auth),
    (Field::Code, "org_disabled_credential", Class::Auth),
    (Field::Code, "provider_credentials", Class::Auth),
    (Field::Code, "stored_login_refused", Class::Auth),
    (Field::Kind, "account_on_hold", Class::Auth),
    (Field::Kind, "authentication_failed", Class::Auth),
    (Field::Kind, "cloud_credential_error", Class::Auth),
    (Field::Kind, "oauth_org_not_allowed", Class::Auth),
    (Field::Kind, "verification_required", Class::Auth),
    (Field::Kind, "billing_error", Class::Limit),
    (Field::Kind, "overloaded", Class::Overload),
    (Field::Type, "authentication_error", Class::Auth),
    (Field::Type, "permission_error", Class::Auth),
    (Field::Type, "billing_error", Class::Limit),
    (Field::Type, "overloaded_error", Class::Overload),
    (Field::Quota, "rejected", Class::Limit),
    (Field::Text, "API Error: Server is temporarily limiting requests", Class::Transient),
    (Field::Text, "You've hit your ", Class::Limit),
    (Field::Text, "Claude AI usage limit reached", Class::Limit),
    (Field::Text, "Credit balance is too low", Class::Limit),
    (Field::Text, "Not logged in", Class::Auth),
    (Field::Text, "Invalid API key", Class::Auth),
    (Field::Text, "Prompt is too long", Class::Context),
    (Field::Type, "rate_limit_error", Class::Transient),
    (Field::Kind, "rate_limit", Class::Transient),
    (Field::Status, "401", Class::Auth),
    (Field::Status, "403", Class::Auth),
    (Field::Status, "413", Class::Context),
    (Field::Status, "429", Class::Transient),
    (Field::Status, "529", Class::Overload),
];

loose!(Limits {
    status,
    resets_at = "resetsAt",
    kind = "rateLimitType",
    utilization,
    windows = "unifiedWindows",
});

/// The windows that Claude names, with their lengths in minutes. A weekly window of one model
/// counts as weekly where no more is said.
const WINDOWS: &[(&str, u32)] = &[
    ("five_hour", 300),
    ("seven_day", 10_080),
    ("seven_day_opus", 10_080),
    ("seven_day_sonnet", 10_080),
];

/// The readings in a record of limits; a window without a share is no reading.
pub(super) fn readings(raw: Raw<'_>, source: &str, observed_at: Timestamp) -> Vec<Reading> {
    loose!(Windows { five_hour, seven_day });
    let limits: Limits<'_> = loose::object(raw).unwrap_or_default();
    let windows: Windows<'_> = loose::object(limits.windows).unwrap_or_default();
    let reading = |window: &Limits<'_>, window_minutes| {
        let used_permille = permille(loose::number(window.utilization)?, 1000.0)?;
        let resets_at = loose::epoch(window.resets_at);
        let source = source.to_owned();
        Some(Reading { source, window_minutes, used_permille, resets_at, observed_at })
    };
    let unified: Vec<_> = [(windows.five_hour, 300), (windows.seven_day, 10_080)]
        .into_iter()
        .filter_map(|(window, minutes)| reading(&loose::object(window)?, minutes))
        .collect();
    if !unified.is_empty() {
        return unified;
    }
    let kind = loose::text(limits.kind).unwrap_or_default();
    WINDOWS
        .iter()
        .find(|(name, _)| *name == kind)
        .and_then(|(_, minutes)| reading(&limits, *minutes))
        .into_iter()
        .collect()
}
