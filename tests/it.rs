//! All integration tests, in one binary: one link, shared helpers.
