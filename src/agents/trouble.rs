//! What an agent's error is, told from the words and codes that its own reader knows.

use crate::model::cut::shorten;
use crate::model::time::Timestamp;
use crate::model::transcript::{LABEL_BYTES_MOST, Trouble};

#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    Limit,
    Transient,
    Overload,
    Auth,
    Context,
}

/// The trouble of a class; no class is known to be another one. Only a limit has a reset.
pub(super) fn trouble(class: Option<Class>, text: &str, resets_at: Option<Timestamp>) -> Trouble {
    let text = shorten(text, LABEL_BYTES_MOST);
    match class {
        Some(Class::Limit) => Trouble::Limit { resets_at, text },
        Some(Class::Transient) => Trouble::Transient(text),
        Some(Class::Overload) => Trouble::Overload(text),
        Some(Class::Auth) => Trouble::Auth(text),
        Some(Class::Context) => Trouble::Context(text),
        None => Trouble::Other(text),
    }
}
