//! `git relay`: a signed hand-over between coding agents, kept in git.
//!
//! # Code map
//!
//! Rooms from left to right; a room names only rooms to its left (`tests/it/tidy.rs` holds that).
//!
//! ```text
//! error cli | model → host → git → store → agents → relay → ui → commands → main
//! ```
//!
//! | room | what lives there | what is absent |
//! |---|---|---|
//! | `error` | kinds of failure and their exit codes | printing |
//! | `cli` | every flag and help text | any doing |
//! | `model` | the rules: state machine, contract, envelope, quota, redaction | files, clock, environment, processes, randomness |
//! | `host` | the machine: files, clock, environment, processes, configuration | git |
//! | `git` | the only room that knows git's formats | sessions and agents |
//! | `store` | session ↔ ref, contract ↔ note, keys and trust | deciding anything |
//! | `agents` | one file per agent: facts, parser, launch, hook answers | other agents |
//! | `relay` | the driver: load, step, act, save; the same code is resume after a crash | words for people |
//! | `ui` | the only printing | git |
//! | `commands` | one verb per file | logic that two verbs share |

pub mod agents;
pub mod cli;
pub mod commands;
pub mod error;
pub mod git;
pub mod host;
pub mod model;
pub mod relay;
pub mod store;
pub mod ui;
