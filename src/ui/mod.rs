//! Words and screen: the only room that prints.

pub mod out;
pub mod progress;
pub mod standing;
pub mod terminal;
