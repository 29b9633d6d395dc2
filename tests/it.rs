//! All integration tests, in one binary: one link, shared helpers.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "long loops say how far they are")]

mod it {
    mod crash;
    mod docs;
    mod finish;
    mod git;
    mod hostile;
    mod real;
    mod relay;
    mod secrets;
    mod support;
    mod tamper;
    mod tidy;
    mod vectors;
}
