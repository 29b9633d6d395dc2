//! What stands in a text until somebody puts the secret there.

/// A stand-in for a value.
pub fn is_placeholder(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let filler = |b: &u8| b"x*._-0?#".contains(b);
    if lower.iter().filter(|b| !filler(b)).count() < 3
        || lower.windows(2).all(|pair| pair[0] == pair[1])
    {
        return true;
    }
    if matches!(lower[0], b'$' | b'<' | b'{' | b'[' | b'(')
        || lower.starts_with(b"%(")
        || lower.starts_with(b"%{")
    {
        return true;
    }
    if lower[0] == b'%' && lower.ends_with(b"%") {
        return true;
    }
    const WHOLE: [&str; 23] = [
        "changeme",
        "change-me",
        "change_me",
        "changeit",
        "password",
        "passwd",
        "secret",
        "undefined",
        "required",
        "optional",
        "redacted",
        "[redacted]",
        "hidden",
        "removed",
        "string",
        "boolean",
        "disabled",
        "enabled",
        "default",
        "unknown",
        "nullptr",
        "self.password",
        "example",
    ];
    const WITHIN: [&str; 12] = [
        "your-",
        "your_",
        "yourpass",
        "yourtoken",
        "yoursecret",
        "yourapi",
        "xxxx",
        "****",
        "placeholder",
        "insert-",
        "insert_",
        "replace_",
    ];
    let has = |word: &str| memchr::memmem::find(&lower, word.as_bytes()).is_some();
    WHOLE.iter().any(|word| word.as_bytes() == lower)
        || WITHIN.iter().any(|word| has(word))
        || has("redacted:")
}
