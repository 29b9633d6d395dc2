//! The machine: files, clock, environment, processes, configuration. Every error names the path
//! or the program it is about. Nothing here knows git, sessions or agents.

pub mod allow;
pub mod clock;
pub mod config;
pub mod env;
pub mod files;
mod lines;
pub mod lock;
pub mod process;
pub mod random;
pub mod records;
pub mod running;
pub mod stand_by;
pub mod tail;
pub mod terminal;
mod values;
