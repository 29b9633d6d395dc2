//! What a person at a terminal sees and is asked between two agents.

use super::{out, progress};
use crate::host::terminal::{Typed, typed};
use crate::model::names::AgentName;
use crate::model::session::{BreachReason, Session, State};
use crate::relay::{End, Progress};
use std::time::{Duration, Instant};

/// How long the next agent's start can be stopped.
const COUNTDOWN: Duration = Duration::from_secs(5);
/// How long one wait for the keyboard is, so that a signal is seen.
const TICK: Duration = Duration::from_millis(100);
const RULE: &str = "----------------------------------------------------------------";

/// Tells progress, and keeps it back while an agent has the screen.
#[derive(Debug, Default)]
pub struct Teller {
    lent: bool,
    held: Vec<Progress>,
}

impl Teller {
    pub fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Lent => self.lent = true,
            Progress::Back => {
                self.lent = false;
                self.held.drain(..).for_each(progress::tell);
            }
            progress if self.lent => self.held.push(progress),
            progress => progress::tell(progress),
        }
    }
}

/// Shows what happened and who is next; says whether to go on.
pub fn announce(session: &Session, next: &AgentName, is_to_stop: impl Fn() -> bool) -> bool {
    out::say(RULE);
    out::say(format!("  why    {}", why(session)));
    for line in saved(session) {
        out::say(format!("  saved  {line}"));
    }
    out::say(format!(
        "  next   {next} takes over in this terminal in {} seconds",
        COUNTDOWN.as_secs()
    ));
    out::say("         Enter: now. Ctrl-C: stop here, nothing is lost.");
    out::say(RULE);
    let began = Instant::now();
    while began.elapsed() < COUNTDOWN {
        if is_to_stop() {
            return false;
        }
        match typed(TICK) {
            Typed::Line(_) => return true,
            Typed::Nothing => {}
            Typed::End => return false,
        }
    }
    !is_to_stop()
}

fn why(session: &Session) -> String {
    let last = session.dispatches.last();
    // The last start came to nothing: that is what the person saw last.
    if let Some(failed) = last.filter(|dispatch| dispatch.leg > session.leg) {
        let detail = failed.detail.as_deref().unwrap_or("it did not begin");
        return format!("{} did not take over: {detail}", failed.agent);
    }
    let agent = last.map_or("the agent", |dispatch| dispatch.agent.as_str());
    let Some(breach) = &session.breach else { return format!("{agent} stopped") };
    let what = match breach.reason {
        BreachReason::Limit => format!("{agent} is at its limit"),
        BreachReason::Threshold => format!("{agent} is close to its limit"),
        BreachReason::Request => format!("{agent} was to hand over"),
        BreachReason::Failed | BreachReason::Unknown => format!("{agent} ended badly"),
    };
    match (&breach.text, &breach.reading) {
        (Some(text), _) => format!("{what}: {text}"),
        (None, Some(reading)) => format!("{what}: {}", progress::share(reading)),
        (None, None) => what,
    }
}

fn saved(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(snapshot) = &session.snapshot {
        let commit = &snapshot.commit.as_str()[..10];
        lines.push(format!("every file, as {commit} on {}", session.workplace.branch));
    }
    if let Some(contract) = &session.contract {
        lines.push(format!("what is known, signed, as contract {}", contract.contract_id));
    }
    if lines.is_empty() {
        lines.push("nothing was done yet".to_owned());
    }
    lines
}

/// What a person means who ended an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    HandOver,
    Finish,
    Leave,
}

/// Asks; leaving is what is meant where nobody answers.
pub fn what_is_meant(session: &Session, end: &End, is_to_stop: impl Fn() -> bool) -> Meant {
    if is_to_stop() {
        return Meant::Leave;
    }
    let agent = session.agent().map_or("the agent", |agent| agent.as_str());
    out::say(RULE);
    out::say(match end {
        End::Done => format!("  {agent} was left, with nothing open that it told of."),
        End::Asks { .. } => format!("  {agent} was left with work open."),
        _ => format!("  {agent} was left."),
    });
    out::say("  h  hand over: the next agent goes on in this terminal");
    if session.state == State::Running {
        out::say("  f  finish: bring the result to the branch it started from");
    }
    out::say("  l  leave it as it is; it can be taken up at any time (Enter)");
    out::say(RULE);
    loop {
        match typed(TICK) {
            Typed::Line(answer) => match answer.to_ascii_lowercase().as_str() {
                "h" | "hand over" | "handover" => return Meant::HandOver,
                "f" | "finish" if session.state == State::Running => return Meant::Finish,
                "" | "l" | "leave" => return Meant::Leave,
                _ => out::say("  h, f or l"),
            },
            Typed::End => return Meant::Leave,
            Typed::Nothing if is_to_stop() => return Meant::Leave,
            Typed::Nothing => {}
        }
    }
}

/// Asks for one line; `None` at the end of input.
pub fn ask(question: &str) -> Option<String> {
    out::say(question);
    loop {
        match typed(TICK) {
            Typed::Line(line) => return Some(line),
            Typed::End => return None,
            Typed::Nothing => {}
        }
    }
}
