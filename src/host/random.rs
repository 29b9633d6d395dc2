//! Randomness from the system.

use anyhow::{Context, Result};

/// `N` random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut buffer = [0; N];
    getrandom::fill(&mut buffer).context("cannot read the system's random source")?;
    Ok(buffer)
}

/// `digits` random lower-case hex digits (an even number, at most 64).
pub fn hex(digits: usize) -> Result<String> {
    let noise = bytes::<32>()?;
    Ok(noise.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..digits].to_owned())
}
