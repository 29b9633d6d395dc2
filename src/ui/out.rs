//! The only `print`. Data goes to standard output, everything else to standard error; nothing
//! depends on colour, so there is none. A reader that went away is no error.

use crate::error::{hint_of, kind_of, of_the_machine};
use crate::model::foreign;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Version of every `--json` output; it rises when a field changes its meaning or goes.
pub const JSON_VERSION: u32 = 1;

/// Text as it may be shown: no secret, nothing that moves a cursor, one line.
fn shown(text: &str) -> String {
    foreign::line(text)
}

/// Writes data as it is.
pub fn data(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// One line of data, made fit for a terminal.
pub fn line(text: impl AsRef<str>) -> anyhow::Result<()> {
    data(format!("{}\n", shown(text.as_ref())).as_bytes())
}

/// Data as JSON: `{"version": 1, NAME: value}`.
pub fn json<T: Serialize>(name: &str, value: &T) -> anyhow::Result<()> {
    let value = serde_json::json!({"version": JSON_VERSION, name: value});
    data(format!("{}\n", serde_json::to_string_pretty(&value)?).as_bytes())
}

/// A path for JSON, which knows no other names than Unicode.
pub fn path(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// One line of talk.
pub fn say(text: impl AsRef<str>) {
    // Not `eprintln!`, which ends the program when the terminal has hung up.
    _ = writeln!(io::stderr(), "{}", shown(text.as_ref()));
}

/// An error with its causes and its hint.
pub fn error(error: &anyhow::Error) {
    let of_the_machine = of_the_machine(error);
    let first = of_the_machine.map(|(words, _)| words.to_owned());
    let words: Vec<String> =
        first.into_iter().chain(error.chain().map(ToString::to_string)).collect();
    for (number, words) in words.iter().enumerate() {
        let head = if number == 0 { "error: " } else { "  because: " };
        // A cause that only repeats what stands above it says nothing.
        if number > 0 && of_the_machine.is_none() && words.as_str() == error.to_string() {
            continue;
        }
        for (row, line) in words.lines().enumerate() {
            say(format!("{}{line}", if row == 0 { head } else { "  " }));
        }
    }
    if let Some(hint) = hint_of(error).or(of_the_machine.map(|(_, hint)| hint)) {
        say(format!("hint: {hint}"));
    } else if kind_of(error) == crate::error::Kind::Internal {
        say("hint: if this looks like a fault of git relay, please report it with the words above");
    }
}

/// A table with aligned columns, as text.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = (0..columns)
            .filter_map(|column| {
                let cell = shown(row.get(column)?);
                let last = column + 1 == row.len();
                let width = width(column).unwrap_or(0);
                Some(if last { cell } else { format!("{cell:<width$}") })
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
