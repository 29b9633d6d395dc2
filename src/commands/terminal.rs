//! Driving on behalf of a command: to its end where nobody is asked, in rounds where a person sits
//! at the terminal.

use super::run::tell_end;
use super::{code_of, finish};
use crate::cli::Finish;
use crate::relay::{Driver, End};
use crate::ui::terminal::{self, Meant};
use crate::ui::{out, progress};
use anyhow::Result;

/// Drives and tells the end; its exit code.
pub(super) fn drive(mut driver: Driver<'_>, as_json: bool) -> Result<u8> {
    if !driver.session().is_interactive() {
        let end = driver.drive()?;
        return tell_end(&driver, &end, as_json);
    }
    driver.sit_down()?;
    loop {
        let end = driver.drive()?;
        match &end {
            End::Next { agent } => {
                if !terminal::announce(driver.session(), agent, || driver.is_to_stop()) {
                    let id = &driver.session().session_id;
                    out::say(format!("relay: stopped here. Go on: git relay resume {id}"));
                    return Ok(code_of(&end));
                }
                driver.announced();
            }
            End::Done | End::Asks { .. } | End::Killed => {
                match terminal::what_is_meant(driver.session(), &end, || driver.is_to_stop()) {
                    Meant::HandOver => {
                        driver.hand_over()?;
                        driver.announced();
                    }
                    Meant::Finish => {
                        let session = Some(driver.session().session_id.to_string());
                        drop(driver);
                        return finish::run(&Finish { session, ..Finish::default() });
                    }
                    Meant::Leave => {
                        progress::tell_end(&End::Killed, driver.session());
                        return Ok(if end == End::Done { 0 } else { code_of(&end) });
                    }
                }
            }
            End::Exhausted { .. } | End::Over(_) => return tell_end(&driver, &end, as_json),
        }
    }
}
