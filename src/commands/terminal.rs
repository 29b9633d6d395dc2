//! Driving on behalf of a command: to its end where nobody is asked, in rounds where a person sits
//! at the terminal.

use super::{code_of, finish};
use crate::cli::Finish;
use crate::relay::{Driver, End};
use crate::ui::terminal::{self, Meant};
use crate::ui::{out, progress};
use anyhow::Result;

/// Drives and tells the end, in JSON as `tell` does it; its exit code.
pub(super) fn drive(
    mut driver: Driver<'_>,
    tell: impl Fn(&Driver<'_>, &End) -> Result<()>,
) -> Result<u8> {
    if !driver.session().is_interactive() {
        let end = driver.drive()?;
        return told(&driver, &end, tell);
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
            End::NotStarted | End::Failed { .. } | End::Exhausted { .. } | End::Over(_) => {
                return told(&driver, &end, tell);
            }
        }
    }
}

fn told(
    driver: &Driver<'_>,
    end: &End,
    tell: impl Fn(&Driver<'_>, &End) -> Result<()>,
) -> Result<u8> {
    progress::tell_end(end, driver.session());
    tell(driver, end)?;
    Ok(code_of(end))
}
