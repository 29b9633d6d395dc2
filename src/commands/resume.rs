//! `git relay resume`

use super::run::{someone_can_start, tell_json};
use super::{open_hub, terminal};
use crate::cli::Resume;
use crate::error::Fault;
use crate::host::config;
use crate::host::stand_by::stand_by;
use crate::model::fsm::Event;
use crate::model::inbox::Says;
use crate::model::names::AgentName;
use crate::model::session::{DeclaredKind, PermissionLevel, Session};
use crate::relay::{Driver, Hub, Options, ask};
use crate::ui::terminal::Teller;
use anyhow::Result;

pub(super) fn run(args: &Resume) -> Result<u8> {
    if let Some(code) = stand_by()? {
        return Ok(code);
    }
    let hub = open_hub()?;
    let id = ask::session_meant(&hub, args.session.as_deref(), "git relay resume NAME")?;
    let agents = config::names(args.agents.clone())?;
    for agent in &agents {
        hub.seat(agent)?;
    }
    if let Some(answer) = &args.answer
        && answer.trim().is_empty()
    {
        return Err(Fault::usage("the answer is empty")
            .hint(format!("git relay resume {id} --answer TEXT"))
            .into());
    }
    let options = Options {
        unsandboxed_shell: args.unsandboxed_shell,
        accept_config: args.accept_config,
        no_launch: false,
    };
    let mut teller = Teller::default();
    let mut report = |progress| teller.tell(progress);
    let mut driver = Driver::take(&hub, &id, "resume", options, &mut report)?;
    ask::must_not_be_over(driver.session())?;
    if agents.is_empty() {
        someone_is_known(&hub, driver.session())?;
    }
    // What is not as it was left stops us before anything is written down.
    driver.make_ground()?;
    if !agents.is_empty() {
        driver.step(&Event::Consented { agents: agents.clone() }, None)?;
    }
    if args.headless {
        let session = driver.session();
        if session.is_interactive() && !session.state.is_end() {
            let level = PermissionLevel::Edit;
            someone_can_start(&hub, &session.agents, level, args.unsandboxed_shell)?;
        }
        driver.leave_terminal()?;
    }
    if let Some(answer) = &args.answer {
        let said = Says::Record {
            fact: DeclaredKind::Decision,
            text: format!("the answer to what was asked: {answer}"),
            nonce: None,
        };
        ask::append(&ask::inbox_path(&hub, driver.session()), said)?;
    }
    driver.go_on()?;
    driver.ask_all_the_same(&agents)?;
    driver.announced();
    terminal::drive(driver, |driver, end| tell_json(driver, end, args.json))
}

/// Refuses where none of the session's agents is configured any more.
fn someone_is_known(hub: &Hub, session: &Session) -> Result<()> {
    if session.agents.iter().any(|agent| hub.seat(agent).is_ok()) {
        return Ok(());
    }
    let joined =
        |agents: &[AgentName]| agents.iter().map(AgentName::as_str).collect::<Vec<_>>().join(",");
    let (id, names) = (&session.session_id, joined(&session.agents));
    let known = hub.settings.agents.iter().filter(|agent| hub.seat(agent).is_ok());
    let known: Vec<_> = known.cloned().collect();
    let hint = match known.is_empty() {
        true => {
            format!("see who there is: git relay agents; then: git relay resume {id} --agents A,B")
        }
        false => format!("git relay resume {id} --agents {}", joined(&known)),
    };
    Err(Fault::usage(format!("no agent of session '{id}' is configured any more ({names})"))
        .hint(hint)
        .into())
}
