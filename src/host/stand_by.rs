//! Beside a driver at a terminal: the same command again, which drives, and whose parent waits to
//! put the terminal right should it be killed. It is the parent that the shell waits for, so the
//! shell finds the terminal as it was, whoever is quicker.

use super::terminal::Terminal;
use super::{env, process};
use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal as Caught};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;

/// Holds the parent's process id in the child, so that nobody else who inherits it is meant.
const VARIABLE: &str = "GIT_RELAY_STANDS_BY";

/// The process that stands by us, where one does.
pub fn who() -> Option<u32> {
    let parent = std::os::unix::process::parent_id();
    (env::text(VARIABLE)? == parent.to_string()).then_some(parent)
}

/// Runs this command once more and gives its exit code; `None` where it has to be done here: it
/// is the child already, or nobody sits at a terminal. Signals are passed on. A child that was
/// killed kills us too, after the terminal is as it was.
pub fn stand_by() -> Result<Option<u8>> {
    if who().is_some() {
        return Ok(None);
    }
    let Some(mut terminal) = Terminal::open()? else { return Ok(None) };
    let mut child = process::start_again(VARIABLE, &std::process::id().to_string())?;
    // Not before: a child begins with the signals blocked that its parent has blocked.
    let mut waited_for = SigSet::empty();
    for signal in
        [Caught::SIGCHLD, Caught::SIGINT, Caught::SIGQUIT, Caught::SIGTERM, Caught::SIGHUP]
    {
        waited_for.add(signal);
    }
    waited_for.thread_block()?;
    let pid = Pid::from_child(&child);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let caught = waited_for.wait()?;
        if caught != Caught::SIGCHLD {
            let signal = Signal::from_named_raw(caught as i32).context("a signal's number")?;
            _ = kill_process(pid, signal);
        }
    };
    let Some(signal) = status.signal() else {
        return Ok(status.code().and_then(|code| u8::try_from(code).ok()).or(Some(70)));
    };
    terminal.restore();
    waited_for.thread_unblock()?;
    let signal = Signal::from_named_raw(signal).context("a signal's number")?;
    kill_process(getpid(), signal)?;
    bail!("the driver was ended by {signal:?}")
}
