//! Patterns of names and of namespaces.

/// Whether `text` matches one of the patterns and none of those that `!` excludes
/// (ssh_config(5), PATTERNS).
pub(super) fn any_matches(text: &str, patterns: &[String]) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(excluded) if matches(text, excluded) => return false,
            Some(_) => {}
            None => found |= matches(text, pattern),
        }
    }
    found
}

/// `*` for any bytes, `?` for one; in time |text| × |pattern| at most.
pub(super) fn matches(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut at, mut next) = (0, 0);
    // Where to go on after the last star, if what follows it does not fit where it was tried.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((at, next + 1));
                next += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[at] => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((tried, after)) = star else {
                    return false;
                };
                star = Some((tried + 1, after));
                (at, next) = (tried + 1, after);
            }
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}
