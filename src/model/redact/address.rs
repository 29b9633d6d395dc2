//! The password in an address: `postgres://user:password@host`.

use super::code::{is_pattern, is_template};
use super::looks::looks_random;
use super::placeholder::is_placeholder;

/// The password, or the lone token, of an address whose `://` is at `at`.
pub fn in_address(view: &[u8], at: usize) -> Option<(&'static str, usize, usize)> {
    let scheme = at.checked_sub(1).is_some_and(|before| view[before].is_ascii_alphanumeric());
    let start = at + 3;
    let rest = &view[start.min(view.len())..view.len().min(start + 512)];
    let stop = |b: &u8| b.is_ascii_whitespace() || b"/?#\"'<>`\\,".contains(b);
    let authority = &rest[..rest.iter().position(stop).unwrap_or(rest.len())];
    let host = authority.iter().rposition(|b| *b == b'@')?;
    let known =
        authority.get(host + 1).is_some_and(|b| b.is_ascii_alphanumeric() || b"[_{$".contains(b));
    if !scheme || !known {
        return None;
    }
    let login = &authority[..host];
    let Some(colon) = login.iter().position(|b| *b == b':') else {
        let token = login.len() >= 20 && looks_random(login) && !login.contains(&b'.');
        return token.then_some(("url-token", start, start + host));
    };
    let (user, password) = (&login[..colon], &login[colon + 1..]);
    let oauth = [&b"x-oauth-basic"[..], b"x-access-token", b""].contains(&password);
    if oauth {
        return (user.len() >= 20 && looks_random(user)).then_some((
            "url-token",
            start,
            start + colon,
        ));
    }
    const USUAL: [&str; 13] = [
        "pass",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "pswd",
        "passw0rd",
        "bar",
        "foo",
        "pass_word",
        "p",
    ];
    let usual = USUAL.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    let odd = password.len() < 3
        || is_placeholder(password)
        || is_template(password)
        || is_pattern(password)
        || password == user;
    (!usual && !odd).then_some(("url-password", start + colon + 1, start + host))
}
