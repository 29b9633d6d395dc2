//! The person's terminal, lent to one program at a time.
//!
//! An interactive program gets a process group of its own *and* the terminal: Ctrl-C and the window
//! size reach it and not us, and what stops it (Ctrl-Z) stops us too, so that the shell gets its
//! terminal back. Whatever it leaves behind, killed or not, is put right here.

use super::{process, stand_by};
use crate::model::session::Process;
use anyhow::Result;
use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, kill_process, kill_process_group};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, Termios, isatty, tcgetattr, tcgetpgrp,
    tcsetattr, tcsetpgrp,
};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

/// Takes back what full-screen programs switch on: alternate screen, hidden cursor, its shape,
/// scroll region, application keys, bracketed paste, mouse and focus reports, synchronised output,
/// the keyboard protocols of kitty and xterm, colours, character set; then what they drew below the
/// cursor. A terminal that knows one of them not, or has it off, does nothing.
///
/// Not `?1049l`: on the normal screen it would move the cursor to wherever it was saved last.
const RESTORE: &str = "\x1b[?2026l\x1b[?1047l\x1b7\x1b[r\x1b8\x1b[?7h\x1b[?1l\x1b>\x1b[?25h\x1b[0 q\
     \x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[=0;1u\x1b[<9u\x1b[>4;0m\
     \x1b[0m\x1b(B\r\x1b[J";

/// Whether a person sits at standard input and output.
pub fn is_one() -> bool {
    isatty(rustix::stdio::stdin()) && isatty(rustix::stdio::stdout())
}

/// The controlling terminal, as it was when the command began.
#[derive(Debug)]
pub struct Terminal {
    tty: File,
    ours: Pid,
    settings: Termios,
    lent: Option<Lent>,
    /// Who puts the terminal right should we be killed.
    beside: Option<u32>,
}

/// To whom it is lent, and how they had set it when they were stopped.
#[derive(Debug)]
struct Lent {
    process: Process,
    group: Pid,
    settings: Option<Termios>,
    /// It was stopped, and we with it; it goes on when the shell gives us the terminal again.
    parked: bool,
}

impl Terminal {
    /// The terminal we are in the foreground of; `None` where there is none.
    pub fn open() -> Result<Option<Self>> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let (true, Ok(tty)) = (is_one(), tty) else { return Ok(None) };
        block_ttou()?;
        let ours = getpgrp();
        if tcgetpgrp(&tty) != Ok(ours) {
            return Ok(None);
        }
        let settings = sane(tcgetattr(&tty)?);
        Ok(Some(Self { tty, ours, settings, lent: None, beside: stand_by::who() }))
    }

    /// Whether `process` lives in this very terminal, so that it can be lent to it.
    pub fn is_of(&self, process: Process) -> bool {
        let device = |pid| process::terminal_of(pid).filter(|device| *device != 0);
        device(process.pid).is_some_and(|theirs| device(std::process::id()) == Some(theirs))
    }

    /// Gives the terminal to the group that `process` leads, and wakes it.
    pub fn lend(&mut self, process: Process) {
        let Some(group) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
        self.lent = Some(Lent { process, group, settings: None, parked: false });
        self.give();
    }

    fn give(&mut self) {
        let Some(lent) = &mut self.lent else { return };
        if let Some(settings) = lent.settings.take() {
            _ = tcsetattr(&self.tty, OptionalActions::Drain, &settings);
        }
        lent.parked = false;
        // One that is gone already, or a line that hung up: the next look at the process tells.
        _ = tcsetpgrp(&self.tty, lent.group);
        process::signal_group(lent.process, Signal::CONT);
    }

    /// To be called again and again while it is lent: stops us with the borrower (Ctrl-Z), and
    /// gives it the terminal again when the shell has given it to us.
    pub fn tend(&mut self) {
        if self.is_orphaned() {
            // The shell has been told that its job is dead: as if the line had hung up.
            _ = kill_process(getpid(), Signal::HUP);
            return;
        }
        let Some(lent) = &mut self.lent else { return };
        let stopped = !lent.parked && process::is_stopped(lent.process);
        if stopped && !shell_has(&self.tty, self.ours) {
            lent.parked = true;
            lent.settings = tcgetattr(&self.tty).ok();
            self.regain(OptionalActions::Drain);
            // The whole job, as the shell sees it: git is our parent. Without job control nothing
            // stops, and the borrower goes on at once.
            _ = kill_process_group(self.ours, Signal::TSTP);
        }
        if tcgetpgrp(&self.tty) == Ok(self.ours) {
            self.give();
        }
    }

    /// Takes the terminal back from a borrower that is gone and puts right what it left; says
    /// whether it was lent. What was typed for the borrower is dropped.
    pub fn take_back(&mut self) -> bool {
        let was_lent = self.lent.take().is_some();
        // Sent to the background by the shell: the terminal is not ours to touch.
        if was_lent && !self.is_orphaned() && !shell_has(&self.tty, self.ours) {
            self.regain(OptionalActions::Flush);
        }
        was_lent
    }

    /// Whether who stood by us was killed: the shell has taken the terminal back.
    fn is_orphaned(&self) -> bool {
        self.beside.is_some() && stand_by::who() != self.beside
    }

    /// Puts it right for a driver that was killed.
    pub fn restore(&mut self) {
        if !shell_has(&self.tty, self.ours) {
            self.regain(OptionalActions::Drain);
        }
    }

    fn regain(&mut self, how: OptionalActions) {
        _ = tcsetpgrp(&self.tty, self.ours);
        // The screen first: a program's own settings would turn a newline into something else.
        let written = self.tty.write_all(RESTORE.as_bytes()).and_then(|()| self.tty.flush());
        // EIO after a hang-up: nobody is left to see it.
        drop(written);
        while tcsetattr(&self.tty, how, &self.settings) == Err(Errno::INTR) {}
    }
}

impl Drop for Terminal {
    /// An error on the way out leaves nobody a raw terminal.
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Once the terminal is somebody else's, taking it back would stop us. Programs that we start
/// inherit this; see [`wait_for_it`].
fn block_ttou() -> Result<()> {
    Ok(ttou().thread_block()?)
}

fn ttou() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Blocked::SIGTTOU);
    signals
}

/// Whether one of our ancestors, a shell, has the terminal for itself: we are in its background.
fn shell_has(tty: &File, ours: Pid) -> bool {
    let Ok(foreground) = tcgetpgrp(tty) else { return false };
    let mut descendant = std::process::id();
    // The first process of all is no shell, and may be of a group that cannot be named from here.
    while let Some(pid) = process::parent(descendant).filter(|pid| *pid > 1 && foreground != ours) {
        let pid_of = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if pid_of.and_then(|pid| getpgid(Some(pid)).ok()) == Some(foreground) {
            return true;
        }
        descendant = pid;
    }
    false
}

/// Settings in which lines are read, echoed and Ctrl-C works: a program that was killed together
/// with its driver may have left them off.
fn sane(mut settings: Termios) -> Termios {
    if !settings.local_modes.contains(LocalModes::ICANON) {
        settings.local_modes |= LocalModes::ICANON
            | LocalModes::ECHO
            | LocalModes::ECHOE
            | LocalModes::ECHOK
            | LocalModes::ISIG
            | LocalModes::IEXTEN;
        settings.input_modes |= InputModes::ICRNL | InputModes::IXON;
        settings.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    }
    settings
}

/// Waits until this process' own group has the terminal, five seconds at most; whatever takes its
/// place then begins with no signal blocked.
///
/// # Errors
/// There is no terminal, or it did not come.
pub fn wait_for_it() -> Result<()> {
    let tty = File::open("/dev/tty")?;
    for _ in 0..5000 {
        if tcgetpgrp(&tty)? == getpgrp() {
            return Ok(ttou().thread_unblock()?);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    anyhow::bail!("the terminal was not given to us")
}

/// What a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Nothing in the time given, or a signal came.
    Nothing,
    /// The end of input.
    End,
}

/// Waits for a line on standard input, at most `patience`.
pub fn typed(patience: Duration) -> Typed {
    let stdin = rustix::stdio::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: patience.as_secs().cast_signed(),
        tv_nsec: patience.subsec_nanos().into(),
    };
    match poll(&mut watched, Some(&timeout)) {
        Ok(0) | Err(_) => return Typed::Nothing,
        Ok(_) => {}
    }
    let mut line = [0; 4096];
    match rustix::io::read(stdin, &mut line) {
        Ok(0) => Typed::End,
        Ok(count) => Typed::Line(String::from_utf8_lossy(&line[..count]).trim().to_owned()),
        Err(Errno::INTR | Errno::AGAIN) => Typed::Nothing,
        Err(_) => Typed::End,
    }
}
