//! The driver: load, see what is due, do it, save. Resuming after a crash is the same code, since
//! what is due is a function of the stored session alone.
//!
//! Only a holder of the session's kernel lock gets a [`Driver`], and only a driver stops agents,
//! snapshots, signs contracts and starts agents.

pub mod abort;
pub mod adopt;
pub mod ask;
mod circle;
mod clean;
pub mod detect;
mod dispatch;
pub mod dry_run;
pub mod finish;
mod ground;
mod ground_up;
pub mod hooks;
mod inbox;
pub mod last_note;
mod leg;
mod lost;
mod mend;
mod pause;
mod seal;
pub mod start;
mod terminal;
mod watch;
mod wip;

pub use dispatch::render;

use crate::agents::Seat;
use crate::error::{Fault, Kind, kind_of};
use crate::git::Repository;
use crate::host::config::Settings;
use crate::host::terminal::Terminal;
use crate::host::{clock, lock, process};
use crate::model::fsm::{self, Effect, Event};
use crate::model::names::{AgentName, SessionId};
use crate::model::session::{
    Breach, BreachReason, LegEnd, NotCaptured, Outcome, Request, Session, State,
};
use crate::model::shell::shell_word;
use crate::model::sign::{GIT_NAMESPACE, SigningKey};
use crate::model::time::Timestamp;
use crate::model::trust::Trust;
use crate::store::{self, Sealed, Stored};
use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The name of the file in a session's folder whose presence tells our hooks that a pause is
/// wanted; it holds the reason.
pub fn pause_file() -> &'static str {
    pause::PAUSE_FILE
}

/// The variable every process of a leg carries; its value is the dispatch nonce.
pub const LEG_VARIABLE: &str = "GIT_RELAY_LEG";

/// What the driver tells whoever started it, as it happens.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A step was saved.
    Step { event: String, session: Box<Session> },
    /// Something the user should know, in one line.
    Notice(String),
    /// The screen is an agent's from now on: nothing may be written to it.
    Lent,
    /// The screen is ours again.
    Back,
}

/// How driving ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent says it is done, and its plan has no open item.
    Done,
    /// It asks, or left open items.
    Asks { detail: Option<String>, open_items: Vec<String> },
    /// The user ended the agent.
    Killed,
    /// The work is saved and signed, and nobody is to be started.
    NotStarted,
    /// Nobody is left, and none of them for a limit: what was wrong with the last.
    Failed { detail: Option<String> },
    /// Nobody is left, and somebody is at a limit; the earliest known reset.
    Exhausted { resets_at: Option<Timestamp> },
    /// At a terminal: this agent is to be started next, once the person has seen that.
    Next { agent: AgentName },
    /// The session is over.
    Over(State),
}

impl End {
    /// What a script compares.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Asks { .. } => "asks",
            Self::Killed => "killed",
            Self::NotStarted => "notStarted",
            Self::Next { .. } => "next",
            Self::Exhausted { .. } => "exhausted",
            Self::Failed { .. } => "failed",
            Self::Over(_) => "over",
        }
    }
}

/// Everything a repository brings to a relay.
pub struct Hub {
    /// Opened at the main worktree, since a session's own may go away under a command.
    pub repo: Repository,
    /// The session in whose worktree the command was started, if it was in one.
    pub here: Option<SessionId>,
    pub settings: Settings,
    pub trust: Trust,
}

impl Hub {
    /// Where the private files of a session lie: streams, prompts, settings.
    pub fn folder(&self, session: &SessionId) -> PathBuf {
        self.repo.common_dir().join("relay/sessions").join(session.as_str())
    }

    pub fn lock_path(&self, session: &SessionId) -> PathBuf {
        self.repo.common_dir().join("relay").join(format!("{session}.lock"))
    }

    pub fn load(&self, session: &SessionId) -> Result<Stored> {
        store::load(&self.repo, &self.trust, session)
    }

    /// This repository's own key, which is believed.
    pub fn own_key(&self) -> Result<SigningKey> {
        let key = store::keys::load_key(&self.repo)?;
        let public = key.public();
        if let Err(error) = self.trust.check(&public, GIT_NAMESPACE, clock::now()) {
            let file = store::keys::key_path(&self.repo)?.with_extension("pub");
            return Err(Fault::integrity(format!(
                "this repository's own key {} is not believed: {error}",
                public.fingerprint()
            ))
            .hint(format!(
                "see who is: git relay trust; to believe it: git relay trust --add {}",
                shell_word(&file)
            ))
            .into());
        }
        Ok(key)
    }

    /// The agent called `name`, or an error that says how to describe it.
    pub fn seat(&self, name: &AgentName) -> Result<Seat> {
        Seat::find(&self.settings, name).ok_or_else(|| {
            Fault::usage(format!("no agent is called '{name}'")).hint("git relay agents").into()
        })
    }
}

/// Choices of the person for this drive.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub unsandboxed_shell: bool,
    pub accept_config: bool,
    /// Save, sign, and start nobody.
    pub no_launch: bool,
}

/// The one command that may move a session on.
pub struct Driver<'a> {
    pub hub: &'a Hub,
    pub options: Options,
    key: SigningKey,
    stored: Stored,
    actor: &'static str,
    report: &'a mut dyn FnMut(Progress),
    /// The agent we started ourselves, so that its end can be reaped.
    child: Option<Child>,
    /// Agents whose start failed during this drive.
    tried: Vec<AgentName>,
    /// Agents whose leg ended badly during this drive: by a failure, or at a limit whose reset is
    /// not known. They are not asked again before a person says so.
    spent: Vec<AgentName>,
    /// What the user has been told and need not be told again.
    told: Vec<String>,
    /// Hand-overs in a row that agents asked for and that changed nothing.
    circle: circle::Circle,
    wip: wip::Wip,
    /// What of the session's was lost in this drive: for the next contract.
    lost: Vec<NotCaptured>,
    /// An agent was started in this drive, so its end is seen.
    launched: bool,
    /// Branch and index were looked at in this drive.
    is_sound: bool,
    /// Until when a hand-over is put off for want of a receiver.
    put_off_until: Option<Instant>,
    /// Set by SIGINT, SIGTERM and SIGHUP: the user wants the agent ended.
    interrupted: Arc<AtomicBool>,
    /// Set by SIGHUP: the terminal is gone.
    hung_up: Arc<AtomicBool>,
    /// The person's terminal, in an interactive session.
    terminal: Option<Terminal>,
    /// The next start needs no announcement.
    announced: bool,
    /// The person left an agent before it had taken over.
    left_by_hand: bool,
    _lock: lock::Lock,
}

impl<'a> Driver<'a> {
    /// Takes the session's lock and loads it.
    ///
    /// # Errors
    /// Raced: another command drives it.
    pub fn take(
        hub: &'a Hub,
        session: &SessionId,
        actor: &'static str,
        options: Options,
        report: &'a mut dyn FnMut(Progress),
    ) -> Result<Self> {
        not_in_a_leg()?;
        let held = lock::take(&hub.lock_path(session), Duration::from_millis(200))?;
        let held = held.ok_or_else(|| {
            let holder = lock::holder(&hub.lock_path(session));
            let by = holder.map_or("another command".to_owned(), |pid| format!("process {pid}"));
            // Only an agent at work can be taken the work from.
            let is_at_work = hub.load(session).is_ok_and(|stored| {
                let agent = stored.session.dispatch.and_then(|dispatch| dispatch.process);
                stored.session.finishing.is_none() && agent.is_some_and(process::is_alive)
            });
            let hint = match (is_at_work, actor) {
                (true, "abort") => &*format!("to end its agent too: git relay abort {session}"),
                (true, _) => "press Ctrl-C where it runs, or: git relay handoff",
                (false, _) => "wait for it to end, or press Ctrl-C where it runs",
            };
            Fault::raced(format!("session '{session}' is being driven by {by}")).hint(hint)
        })?;
        hub.repo.settle_refs()?;
        // After the lock: what is loaded now cannot be moved by anybody else.
        let stored = hub.load(session)?;
        if ask::is_inside(&stored.session) {
            return Err(agent_may_not());
        }
        store::audit::chain(&hub.repo, &hub.trust, &stored)?;
        let driver = Self::with(hub, stored, held, actor, options, report)?;
        driver.let_go_of_kept()?;
        Ok(driver)
    }

    fn with(
        hub: &'a Hub,
        stored: Stored,
        held: lock::Lock,
        actor: &'static str,
        options: Options,
        report: &'a mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let key = hub.own_key()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let hung_up = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&hung_up))?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self {
            hub,
            options,
            key,
            stored,
            actor,
            report,
            child: None,
            tried: Vec::new(),
            spent: Vec::new(),
            told: Vec::new(),
            circle: circle::Circle::default(),
            wip: wip::Wip::default(),
            lost: Vec::new(),
            launched: false,
            is_sound: false,
            put_off_until: None,
            interrupted,
            hung_up,
            terminal: None,
            announced: false,
            left_by_hand: false,
            _lock: held,
        })
    }

    pub fn session(&self) -> &Session {
        &self.stored.session
    }

    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Goes on until nothing is due that a command can do by itself.
    pub fn drive(&mut self) -> Result<End> {
        finish::must_not_be_finishing(self.session())?;
        self.make_ground()?;
        self.fold_inbox()?;
        loop {
            match fsm::due(self.session()) {
                Effect::Adopt => {
                    if let Some(end) = self.adopt()? {
                        return Ok(end);
                    }
                }
                Effect::Watch => self.watch()?,
                Effect::Pause => self.pause()?,
                Effect::Contract => self.seal()?,
                Effect::Dispatch => {
                    if let Some(end) = self.dispatch()? {
                        return Ok(end);
                    }
                }
                Effect::Rest => {
                    if let Some(end) = self.rest()? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// A person wants to go on: an agent that waits for one, or was ended by one, is asked for again.
    pub fn go_on(&mut self) -> Result<()> {
        let session = self.session();
        let waits = session.leg_end.as_ref().is_some_and(|end| match end.outcome {
            Outcome::Asks | Outcome::Killed => true,
            // At a terminal the person goes on with it as long as they like.
            Outcome::Done => session.is_interactive(),
            _ => false,
        });
        if session.state != State::Running || !waits {
            return Ok(());
        }
        let to = session.agent().cloned();
        self.request(to, "to go on")
    }

    /// A request of the person's for a hand-over.
    fn request(&mut self, to: Option<AgentName>, reason: &str) -> Result<()> {
        let request = Request {
            to,
            reason: Some(reason.to_owned()),
            by: "user".to_owned(),
            at: clock::now(),
            force: false,
            no_launch: false,
        };
        let offset = self.session().inbox_offset;
        let facts = Vec::new();
        self.step(
            &Event::Folded { offset, facts, request: Some(request), hooks_fired: false },
            None,
        )
    }

    /// No agent runs: hand over if the leg's end or a person calls for it, else rest.
    fn rest(&mut self) -> Result<Option<End>> {
        let session = self.session();
        if session.state.is_end() {
            return Ok(Some(End::Over(session.state)));
        }
        // Also where nothing is handed over: the user's own git is the next to run here.
        self.check_guard()?;
        let Some(end) = self.session().leg_end.clone() else { return Ok(Some(End::Killed)) };
        let request = self.session().request.clone();
        self.circle.asked(request.as_ref());
        self.options.no_launch |= request.as_ref().is_some_and(|request| request.no_launch);
        let session = self.session();
        let breach = match (&request, breach_of(&end)) {
            (Some(request), _) => Breach {
                reason: BreachReason::Request,
                text: request.reason.clone(),
                reading: None,
                target: request.to.clone(),
                at: clock::now(),
            },
            (None, Some(reason)) => Breach {
                reason,
                text: end.detail.clone(),
                reading: session.readings.iter().max_by_key(|r| r.used_permille).cloned(),
                target: None,
                at: clock::now(),
            },
            (None, None) => {
                return Ok(Some(match end.outcome {
                    Outcome::Done => End::Done,
                    Outcome::Killed => End::Killed,
                    _ => End::Asks { detail: end.detail, open_items: end.open_items },
                }));
            }
        };
        self.step(&Event::Breached(breach), None)?;
        Ok(None)
    }

    /// Takes one step and saves it: the compare-and-swap is the step.
    pub fn step(&mut self, event: &Event, sealed: Option<&Sealed>) -> Result<()> {
        let next = fsm::step(&self.stored.session, event, clock::now())
            .map_err(|refused| Fault::refused(refused.to_string()))?;
        let expected = Some(&self.stored.tip);
        let saved = store::save(
            &self.hub.repo,
            &self.key,
            &next,
            event.word(),
            self.actor,
            expected,
            sealed,
        );
        let tip = match saved {
            Err(error) if kind_of(&error) == Kind::Raced => return Err(self.of_lost_ref(error)),
            saved => saved?,
        };
        self.stored = Stored { session: next, tip };
        self.remember(event);
        let session = Box::new(self.stored.session.clone());
        (self.report)(Progress::Step { event: event.word().to_owned(), session });
        Ok(())
    }

    /// Keeps what the next candidates depend on and the session does not hold.
    fn remember(&mut self, event: &Event) {
        match event {
            Event::Received => self.tried.clear(),
            Event::Snapshotted { .. } => self.lost.clear(),
            // A receipt clears `tried`, so an agent that fails after it would be started for ever.
            Event::Breached(breach) if breach.reason != BreachReason::Request => {
                let session = self.session();
                let end = session.leg_end.as_ref();
                let known = end
                    .and_then(|end| end.resets_at)
                    .or(breach.reading.as_ref().and_then(|reading| reading.resets_at));
                // A window opens again when it is due: the session itself knows. Of one whose end
                // nobody saw, the machine may have stopped: nothing is against it.
                let unseen =
                    !self.launched && end.is_some_and(|end| end.outcome == Outcome::Unknown);
                if known.is_none() && !unseen {
                    self.spent.extend(session.agent().cloned());
                }
            }
            _ => {}
        }
    }

    fn notice(&mut self, text: impl Into<String>) {
        (self.report)(Progress::Notice(text.into()));
    }

    /// A notice that is given once in a drive.
    fn notice_once(&mut self, text: String) {
        if !self.told.contains(&text) {
            self.notice(text.clone());
            self.told.push(text);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// An agent may ask, and never drives: agents it started would be out of its own driver's reach.
pub fn not_in_a_leg() -> Result<()> {
    match ask::own_leg() {
        Some(_) => Err(agent_may_not()),
        None => Ok(()),
    }
}

fn agent_may_not() -> anyhow::Error {
    Fault::refused("an agent of a relay may not do this")
        .hint("git relay record, or git relay handoff")
        .into()
}

/// Why a leg that ended this way is handed over, if it is.
fn breach_of(end: &LegEnd) -> Option<BreachReason> {
    match end.outcome {
        Outcome::Limit => Some(BreachReason::Limit),
        Outcome::Failed => Some(BreachReason::Failed),
        Outcome::Unknown => Some(BreachReason::Unknown),
        // Stopped for a hand-over whose breach was lost with its request: it is one all the same.
        Outcome::Paused => Some(BreachReason::Request),
        Outcome::Done | Outcome::Asks | Outcome::Killed => None,
    }
}
