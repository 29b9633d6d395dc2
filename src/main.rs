//! Parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The hook entry must cost next to nothing: it goes before everything else.
    if arguments.next().is_some_and(|first| first == "hook") {
        return git_relay::commands::hook::run(arguments);
    }
    git_relay::commands::main()
}
