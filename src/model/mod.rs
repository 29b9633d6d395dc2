//! The rules. Pure: no files, clock, environment, processes or randomness; time and nonces come
//! in as parameters. Everything here is decided by its arguments alone.

pub mod adoption;
pub mod canon;
pub mod contract;
pub mod cut;
pub mod digest;
pub mod envelope;
pub mod foreign;
pub mod fsm;
pub mod heard;
pub mod inbox;
pub mod lineage;
pub mod moved;
pub mod names;
pub mod note;
pub mod outcome;
pub mod ports;
pub mod quota;
pub mod receivers;
pub mod redact;
pub mod screen;
pub mod session;
pub mod shell;
pub mod sign;
#[cfg(test)]
pub(crate) mod specimen;
pub mod time;
pub mod transcript;
pub mod trust;
