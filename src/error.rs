//! What can go wrong, and the exit code each kind of it has.
//!
//! Functions return `anyhow::Result`. Where an exit code depends on the error, its chain holds
//! one [`Fault`]; anything else is an internal error (exit 70). Nothing is printed here.

use std::fmt::Display;
use std::io::{self, ErrorKind};

/// The kinds of failure a script can tell apart, by exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Refused, or tried and failed: exit 1.
    Refused,
    /// The command line or a configuration file is wrong: exit 2.
    Usage,
    /// Somebody else moved the ref first; trying again is right: exit 3.
    Raced,
    /// A signature or a stored fact does not hold: exit 4.
    Integrity,
    /// The machine lacks something (git too old, an agent missing, disk full): exit 5.
    Environment,
    /// Every agent is exhausted; the work is safe: exit 6.
    Exhausted,
    /// A fault of ours: exit 70 (`EX_SOFTWARE` of sysexits.h).
    Internal,
}

impl Kind {
    /// The process exit code of this kind.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Raced => 3,
            Self::Integrity => 4,
            Self::Environment => 5,
            Self::Exhausted => 6,
            Self::Internal => 70,
        }
    }
}

/// An expected failure: a lower-case fragment with its subject quoted, and a line that names what
/// to run next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub kind: Kind,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(kind: Kind, message: impl Display) -> Self {
        Self { kind, message: message.to_string(), hint: None }
    }

    pub fn refused(message: impl Display) -> Self {
        Self::new(Kind::Refused, message)
    }

    pub fn usage(message: impl Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn raced(message: impl Display) -> Self {
        Self::new(Kind::Raced, message)
    }

    pub fn integrity(message: impl Display) -> Self {
        Self::new(Kind::Integrity, message)
    }

    pub fn environment(message: impl Display) -> Self {
        Self::new(Kind::Environment, message)
    }

    /// Adds the line that says what to do; it should name a command that can be run as it stands.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

/// The kind of an error: that of the first [`Fault`] in its chain, else internal.
pub fn kind_of(error: &anyhow::Error) -> Kind {
    match fault_of(error) {
        Some(fault) => fault.kind,
        None if of_the_machine(error).is_some() => Kind::Environment,
        None => Kind::Internal,
    }
}

/// The hint of the first [`Fault`] in the chain, if it has one.
pub fn hint_of(error: &anyhow::Error) -> Option<&str> {
    fault_of(error).and_then(|fault| fault.hint.as_deref())
}

/// A full disk, or a place that may not be written, and what to do: no fault of ours, unless a
/// [`Fault`] says more.
pub fn of_the_machine(error: &anyhow::Error) -> Option<(&'static str, &'static str)> {
    if fault_of(error).is_some() {
        return None;
    }
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.find_map(|cause| match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some((
            "the disk is full, or your share of it; what was saved is whole",
            "make room, then the same again",
        )),
        ErrorKind::ReadOnlyFilesystem => {
            Some(("the file system is read-only", "make it writable, then the same again"))
        }
        ErrorKind::PermissionDenied => Some((
            "a file or folder may not be used by you",
            "look at whose it is (ls -ld on the path above), then the same again",
        )),
        _ => None,
    })
}

fn fault_of(error: &anyhow::Error) -> Option<&Fault> {
    // One that was added as context is seen only from the outside.
    let outer = error.downcast_ref::<Fault>();
    outer.or_else(|| error.chain().find_map(|cause| cause.downcast_ref::<Fault>()))
}
