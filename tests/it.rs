//! All integration tests, in one binary: one link, shared helpers.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "long loops say how far they are")]

mod it {
    mod adopt;
    mod ask;
    mod complete;
    mod config;
    mod crash;
    mod detect;
    mod docs;
    mod doctor;
    mod elsewhere;
    mod finish;
    mod git;
    mod ground;
    mod guard;
    mod hints;
    mod hooks;
    mod hostile;
    mod keys;
    mod moved;
    mod real;
    mod real_terminal;
    mod relay;
    mod secrets;
    mod shapes;
    mod support;
    mod taken;
    mod tamper;
    mod terminal;
    mod tidy;
    mod vectors;
    mod wip;
}
