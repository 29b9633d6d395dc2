//! The ports that a session's agents may use.

use super::names::SessionId;

/// Ports below those that systems give out by themselves (from 32768 on Linux), in ranges.
const PORT_FIRST: u16 = 20_000;
pub const PORTS_EACH: u16 = 50;
const PORT_RANGES: u16 = 250;

/// A range of ports for a new session: the one its name leads to, or the next that none of
/// `taken` has. Sessions of other clones are told apart by chance only.
pub fn port_base(id: &SessionId, taken: &[u16]) -> u16 {
    // FNV-1a: the same for a name everywhere.
    let hash = id
        .as_str()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let first = (hash % u32::from(PORT_RANGES)) as u16;
    let base = |step: u16| PORT_FIRST + (first + step) % PORT_RANGES * PORTS_EACH;
    (0..PORT_RANGES).map(base).find(|base| !taken.contains(base)).unwrap_or(base(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_gets_ports_that_no_other_has_and_the_same_each_time() {
        let id = SessionId::new("add-a-login-page-3f2a").unwrap();
        let mut taken = Vec::new();
        for _ in 0..PORT_RANGES {
            let base = port_base(&id, &taken);
            assert_eq!(base, port_base(&id, &taken));
            assert!((PORT_FIRST..32_768 - PORTS_EACH).contains(&base), "{base}");
            assert!(taken.iter().all(|other: &u16| other.abs_diff(base) >= PORTS_EACH));
            taken.push(base);
        }
        // When all are taken there is none but a shared one.
        assert_eq!(port_base(&id, &taken), taken[0]);
    }
}
