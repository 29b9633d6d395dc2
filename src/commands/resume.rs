//! `git relay resume`

use super::run::{someone_can_start, tell_json};
use super::{open_hub, terminal};
use crate::cli::Resume;
use crate::host::config;
use crate::host::stand_by::stand_by;
use crate::model::fsm::Event;
use crate::model::inbox::Says;
use crate::model::session::{DeclaredKind, PermissionLevel};
use crate::relay::{Driver, Options, ask};
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
    let options = Options {
        unsandboxed_shell: args.unsandboxed_shell,
        accept_config: args.accept_config,
        no_launch: false,
    };
    let mut teller = Teller::default();
    let mut report = |progress| teller.tell(progress);
    let mut driver = Driver::take(&hub, &id, "resume", options, &mut report)?;
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
