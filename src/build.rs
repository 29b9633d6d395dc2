//! How the program is linked.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    let is = |what, word: &str| {
        let target = env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
        target.split(',').any(|found| found == word)
    };
    // At a fixed address nothing of it has to be relocated at each start: twenty thousand pointers,
    // half of what a hook cost. (What is `unsafe` is forbidden here, so little is lost by it.)
    if is("OS", "linux") && is("ENV", "gnu") && !is("FEATURE", "crt-static") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
