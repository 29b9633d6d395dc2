//! What a driver does, told on standard error while it does it.

use super::out;
use crate::host::clock;
use crate::model::quota::Reading;
use crate::model::receivers;
use crate::model::session::{BreachReason, DispatchOutcome, Session};
use crate::model::shell::shell_word;
use crate::model::time::Timestamp;
use crate::relay::{End, Progress};

/// Tells one piece of progress.
pub fn tell(progress: Progress) {
    match progress {
        Progress::Lent | Progress::Back => {}
        Progress::Notice(text) => out::say(format!("relay: {text}")),
        Progress::Step { event, session } => {
            if let Some(text) = of_step(&event, &session) {
                out::say(format!("relay: [{}] {text}", session.state));
            }
        }
    }
}

/// The words for a step; `None` for one that only keeps the books.
fn of_step(event: &str, session: &Session) -> Option<String> {
    let agent = session.agent().map_or("the agent", |agent| agent.as_str());
    Some(match event {
        "begun" => format!("session {} on branch {}", session.session_id, session.workplace.branch),
        "adopted" => {
            let end = session.leg_end.as_ref()?;
            format!(
                "what {agent} left is here; its leg ended: {}{}",
                end.outcome,
                colon(end.detail.as_deref())
            )
        }
        "dispatching" => format!("starting {agent} for leg {}", session.leg + 1),
        "started" => format!("{agent} is up"),
        "received" => format!("{agent} took over (leg {})", session.leg),
        "dispatch-failed" => {
            let last = session.dispatches.last()?;
            let why = match last.outcome? {
                DispatchOutcome::Limit => "is exhausted",
                DispatchOutcome::Auth => "is not logged in",
                DispatchOutcome::Failed | DispatchOutcome::Received => "could not take over",
            };
            format!("{agent} {why}{}", colon(last.detail.as_deref()))
        }
        "leg-ended" => {
            let end = session.leg_end.as_ref()?;
            format!("leg {} ended: {}{}", session.leg, end.outcome, colon(end.detail.as_deref()))
        }
        "breached" => {
            let breach = session.breach.as_ref()?;
            let crossed =
                breach.reading.as_ref().filter(|_| breach.reason == BreachReason::Threshold);
            let used = crossed.map(|reading| format!(" ({})", share(reading)));
            let text = colon(breach.text.as_deref());
            format!("handing over: {}{}{text}", breach.reason.word(), used.unwrap_or_default())
        }
        "snapshotted" => {
            let snapshot = session.snapshot.as_ref()?;
            format!("work saved as {}", &snapshot.commit.as_str()[..10])
        }
        "contracted" => {
            format!("contract {} signed", session.contract.as_ref()?.contract_id)
        }
        "pause-undone" => format!("{agent} finished by itself: nothing to hand over"),
        "finishing" => {
            let finishing = session.finishing.as_ref()?;
            let branch = finishing.branch.trim_start_matches("refs/heads/");
            match finishing.conflicts.is_empty() {
                true => format!("merging the result into {branch}"),
                false => format!("conflicts with {branch}"),
            }
        }
        "finish-undone" => "the merge was taken back".to_owned(),
        "finished" | "aborted" => format!("session {event}"),
        "guard-accepted" => "the changed configuration was accepted".to_owned(),
        _ => return None,
    })
}

fn colon(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default()
}

/// `76.0 % of the 5-hour window`.
pub fn share(reading: &Reading) -> String {
    let window = match reading.window_minutes {
        10080 => "weekly window".to_owned(),
        minutes if minutes % 60 == 0 => format!("{}-hour window", minutes / 60),
        minutes => format!("{minutes}-minute window"),
    };
    format!("{}.{} % of the {window}", reading.used_permille / 10, reading.used_permille % 10)
}

/// How long ago or ahead a moment is, in the largest unit that says enough.
pub fn ago(moment: Timestamp) -> String {
    let seconds = clock::now().0 - moment.0;
    let (amount, unit) = match seconds.unsigned_abs() {
        s if s < 120 => (s, "s"),
        s if s < 7200 => (s / 60, "min"),
        s if s < 172_800 => (s / 3600, "h"),
        s => (s / 86_400, "d"),
    };
    if seconds >= 0 { format!("{amount} {unit} ago") } else { format!("in {amount} {unit}") }
}

/// Says how driving ended and what to do next.
pub fn tell_end(end: &End, session: &Session) {
    let id = &session.session_id;
    let look = format!(
        "git diff {} {}",
        &session.workplace.base_commit.as_str()[..10],
        shell_word(&session.workplace.branch)
    );
    match end {
        End::Done => {
            out::say(format!("relay: done. Look: {look}"));
            out::say(format!("relay:       Take it over: git relay finish {id}"));
        }
        End::Asks { detail, open_items } => {
            out::say(format!(
                "relay: the agent stopped and waits for you{}",
                colon(detail.as_deref())
            ));
            for item in open_items {
                out::say(format!("relay:   open: {item}"));
            }
            out::say(format!("relay: look: {look}"));
            out::say(format!(
                "relay: answer: git relay resume {id} --answer TEXT; or hand on: git relay handoff --session {id}; \
                 or take it as it is: git relay finish {id}"
            ));
        }
        End::Killed | End::Next { .. } => out::say(format!(
            "relay: the agent was ended. Go on: git relay resume {id}; hand on: git relay handoff --session {id}; \
             give up: git relay abort {id}"
        )),
        End::NotStarted => {
            let next = receivers::next(session, clock::now());
            let next = next.map(|agent| format!("; {agent} is next")).unwrap_or_default();
            out::say(format!(
                "relay: the work is saved and nobody is started{next}. Go on, whenever it suits: git relay resume {id}"
            ));
        }
        End::Exhausted { resets_at } => {
            out::say("relay: no agent is left that could go on. The work is safe.");
            match resets_at {
                Some(reset) => {
                    out::say(format!("relay: the first window opens at {reset} ({})", ago(*reset)));
                }
                None => out::say("relay: when a window opens again is not known"),
            }
            let asked = receivers::order(session)
                .into_iter()
                .find(|agent| receivers::exhausted(session, agent, clock::now()).is_some());
            out::say(match (resets_at, asked) {
                // Nobody is asked in vain by `resume` while the limit is fresh.
                (None, Some(agent)) => format!(
                    "relay: to ask one all the same: git relay handoff --session {id} --to {agent} --force"
                ),
                _ => format!("relay: go on then: git relay resume {id}"),
            });
        }
        End::Failed { detail } => {
            out::say(format!(
                "relay: no agent could go on. The work is safe. The last one{}",
                colon(detail.as_deref().or(Some("it is said above")))
            ));
            out::say(format!(
                "relay: once that is mended: git relay resume {id}; or with others: git relay resume {id} --agents A,B"
            ));
        }
        End::Over(state) => out::say(format!("relay: session {id} is {state}")),
    }
}
