//! What is proven here: every kind is found as it stands, in JSON at two depths and broken over
//! lines; what is no secret is left alone; redacting twice changes nothing; nothing panics.

mod samples;

use super::*;
use proptest::prelude::*;
use samples::{Sample, hex, mixed, samples, upper, uuid};

fn suffix(kind: &str) -> &'static str {
    if kind.starts_with("url-") { "@db.example.org/x" } else { "" }
}

/// Whether any run of the secret longer than 11 bytes is left.
fn leaks(text: &str, secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let len = bytes.len().min(12);
    bytes.windows(len).any(|part| memchr::memmem::find(text.as_bytes(), part).is_some())
}

fn as_json(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

#[test]
fn there_are_at_least_sixty_kinds_and_a_sample_for_each() {
    let kinds = kinds();
    assert!(kinds.len() >= 60, "{}", kinds.len());
    let sampled: BTreeSet<_> = samples().iter().map(|sample| sample.kind).collect();
    let by_blocks = ["private-key", "putty-private-key"];
    let missing: Vec<_> =
        kinds.iter().filter(|kind| !sampled.contains(*kind) && !by_blocks.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_kind_is_found_in_plain_text_and_in_json() {
    let mut failed = vec![];
    let (mut found, mut asked) = (0, 0);
    for sample in samples() {
        let Sample { kind, before, secret } = &sample;
        let close = match before.chars().last() {
            Some(quote @ ('"' | '\'')) => String::from(quote),
            _ => suffix(kind).into(),
        };
        let plain = format!("{before}{secret}{close}");
        let forms = [
            ("plain", plain.clone()),
            ("mid-text", format!("über\n$ {plain}\nand so on")),
            ("json", as_json(&format!("a line\n{plain}\n"))),
            ("json in json", as_json(&as_json(&format!("a line\n\t{plain}\nnext")))),
            ("diff", format!("@@ -1 +1 @@\n+{plain}\n")),
            ("unicode escapes", {
                let first = secret.chars().next().expect("not empty");
                format!(
                    "\"{}\\u{:04x}{}{}\"",
                    before.replace('"', "\\\""),
                    u32::from(first),
                    &secret[1..],
                    close.replace('"', "\\\"")
                )
            }),
        ];
        for (form, text) in forms {
            asked += 1;
            let out = redact(&text);
            if leaks(&out.text, secret) || (form == "plain" && !out.found.contains_key(*kind)) {
                failed.push(format!("{kind} ({form}): {:?} in {:?}", out.found, out.text));
                continue;
            }
            found += 1;
            assert_eq!(redact(&out.text).text, out.text, "{kind} ({form})");
        }
    }
    println!("{} kinds, recall {found} of {asked}", kinds().len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_token_broken_over_lines_is_found() {
    let mut failed = vec![];
    let (mut found, mut asked) = (0, 0);
    for sample in samples() {
        let Sample { kind, before, secret } = &sample;
        if before != "use " || secret.len() < 20 {
            continue;
        }
        let (a, b) = secret.split_at(secret.len() / 2);
        let forms = [
            format!("run it with {a}\n    {b}\nnext words"),
            format!("run it with {a}\\\n{b} next words"),
            format!("+run it with {a}\n+  {b}\n+next words"),
            format!("> run it with {a}\n> {b}\n> next words"),
            format!("  11→run it with {a}\n  12→    {b}\n  13→next words"),
            as_json(&format!("run it with {a}\n    {b}\nnext words")),
        ];
        for text in forms {
            asked += 1;
            let out = redact(&text);
            let spared = out.text.contains("next words") && out.text.contains("run it with");
            if leaks(&out.text, a) || leaks(&out.text, b) || !spared {
                failed.push(format!("{kind}: {:?} in {:?}", out.found, out.text));
            } else {
                found += 1;
            }
        }
    }
    println!("broken over lines: recall {found} of {asked}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn block(kind: &str, lines: usize) -> String {
    let body: Vec<_> = (0..lines).map(|n| mixed(64 + n).split_off(n)).collect();
    format!(
        "-----{} {kind}-----\n{}\n{}=\n-----{} {kind}-----",
        "BEGIN",
        body.join("\n"),
        mixed(19),
        "END"
    )
}

fn has_body(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.len() >= 19)
}

#[test]
fn private_keys_are_found_whole_torn_and_decorated() {
    for kind in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let key = block(kind, 6);
        let prefixed =
            |prefix: &str| key.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
        let numbered: String =
            key.lines().enumerate().map(|(n, line)| format!("{:6}→{line}\n", n + 7)).collect();
        let lines: Vec<_> = key.lines().collect();
        let forms = [
            key.clone(),
            key.replace('\n', "\r\n"),
            prefixed("+"),
            prefixed("-"),
            prefixed("> "),
            prefixed("    "),
            numbered,
            as_json(&key),
            as_json(&as_json(&key)),
            key.replace('\n', " "),
            key.lines().map(|line| format!("    \"{line}\\n\"\n")).collect(),
            lines[..5].join("\n"),
            lines[3..].join("\n"),
            as_json(&lines[..5].join("\n")),
        ];
        for (n, form) in forms.iter().enumerate() {
            let text = format!("before it\n{form}\nand after it");
            let out = redact(&text);
            assert!(!has_body(&out.text), "{kind}, form {n}: {}", out.text);
            assert!(
                out.text.contains("before it") && out.text.contains("after it"),
                "{kind}, form {n}: {}",
                out.text
            );
            assert_eq!(redact(&out.text).text, out.text);
        }
        assert_eq!(redact(&key).text, "[redacted:private-key]");
    }
    let putty = format!(
        "Encryption: none\nPrivate-Lines: 2\n{}\n{}=\nPrivate-MAC: x",
        mixed(64),
        mixed(23)
    );
    let out = redact(&putty);
    assert!(!has_body(&out.text) && out.found.contains_key("putty-private-key"), "{}", out.text);
}

#[test]
fn what_is_no_secret_is_left_alone() {
    let texts = [
        format!("commit {}", hex(40)),
        format!("checksum = \"{}\"", hex(64)),
        format!("\"integrity\": \"sha512-{}==\"", mixed(86)),
        format!("\"sessionId\": \"{}\"", uuid()),
        format!("id: {}", uuid()),
        format!("golang.org/x/net v0.1.0 h1:{}=", mixed(43)),
        "password = os.environ[\"DB_PASSWORD\"]".into(),
        "DB_PASSWORD=${DB_PASSWORD}".into(),
        "DB_PASSWORD=$DB_PASSWORD".into(),
        "token: process.env.API_TOKEN_2024,".into(),
        "API_KEY=<your key>".into(),
        "API_KEY=xxxxxxxxxxxxxxxx".into(),
        "PASSWORD=changeme".into(),
        "PASSWORD=".into(),
        "password: None".into(),
        "\"token\": null".into(),
        "let token = parser.next_token();".into(),
        "fn login(password: String, token: Option<Token2022>) {}".into(),
        "secret: SecretString,".into(),
        "password=password, token=token".into(),
        "max_tokens=4096 input_tokens: 128000".into(),
        "const SECRET_FLAG: u32 = 0x80550004;".into(),
        "Authorization: Bearer $TOKEN".into(),
        "Authorization: Bearer <token>".into(),
        "a bearer of good news, basic authentication".into(),
        "https://user:password@example.org and ssh://git@example.org/x.git".into(),
        "postgres://$USER:$PASS@localhost/db".into(),
        "docker run -u 1000:1000 image".into(),
        "sk-learn task-force risk-free-and-very-long-kebab-case-name".into(),
        format!("ghp_{}", "x".repeat(36)),
        format!("-----{} PRIVATE KEY-----\\n...", "BEGIN"),
        "the private key, the password and the token are kept elsewhere".into(),
        "\"password\": \"Password must have at least 8 characters\"".into(),
        "['x', 'pass', 'return_2nd'], ['pwd', 're_syntax9'], ['CURLOPT_PASSWORD', 'CURLOPT_READDATA']"
            .into(),
        "public_key: ed25519.Ed25519PublicKey, nid_key = self._lib.NID_aes_256_cbc".into(),
        "socat -u TCP4-LISTEN:3334,reuseaddr,fork".into(),
        "author: \"someone\" authors = [\"a\"] authority".into(),
        "src/auth/token_store_v2.rs:120: fn token_store_v2()".into(),
        "[redacted:github-token] password=[redacted:password]".into(),
    ];
    for text in texts {
        assert_eq!(find(&text), [], "{text}");
    }
}

#[test]
fn lists_of_tokens_are_counted_each() {
    let text =
        format!("ghp_{}\nghp_{}\nAKIA{}\nAKIA{}\n", mixed(36), mixed(40), upper(16), upper(16));
    let out = redact(&text);
    let expected = "[redacted:github-token]\n[redacted:github-token]\n[redacted:aws-access-key-id]\n[redacted:aws-access-key-id]\n";
    assert_eq!(out.text, expected);
    assert_eq!(out.found["github-token"], 2);
    assert_eq!(out.found["aws-access-key-id"], 2);
}

#[test]
fn files_are_read_by_line_and_binary_ones_not_at_all() {
    let text = format!("a\nb\nKEY=ghp_{}\n\nDB_PASSWORD=swordfish\n", mixed(36));
    assert_eq!(find_in_bytes(text.as_bytes()), [("github-token", 3), ("password", 5)]);
    let mut bytes = text.into_bytes();
    bytes.insert(0, 0xff);
    assert_eq!(find_in_bytes(&bytes).len(), 2);
    bytes.insert(0, 0);
    assert_eq!(find_in_bytes(&bytes), []);
}

#[test]
fn every_pattern_compiles() {
    for index in 0..RULES.len() {
        pattern(index);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~\\n\\\\\"é→]{0,12}",
        proptest::sample::select(
            samples().into_iter().map(|s| s.before + &s.secret).collect::<Vec<_>>()
        ),
        proptest::sample::select(
            RULES.iter().flat_map(|rule| rule.words).map(|w| (*w).to_owned()).collect::<Vec<_>>()
        ),
        proptest::sample::select(vec![
            block("PRIVATE KEY", 2),
            "[redacted:jwt]".into(),
            "[redacted:".into(),
            "://".into(),
            "\\u00".into(),
            "password".into(),
            "=\"".into()
        ]),
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let once = redact(&text);
        let twice = redact(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.found.is_empty());
        let hits = find(&text);
        prop_assert!(hits.iter().all(|hit| hit.start < hit.end && hit.end <= text.len()));
        prop_assert!(hits.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
        find_in_bytes(&bytes);
        redact(&text);
        redact(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn what_is_not_seen_parts_no_token() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    for unseen in [
        "\0",
        "\u{7}",
        "\u{8}",
        "\u{7f}",
        "\u{200b}",
        "\u{ad}",
        "\u{feff}",
        "\u{202e}",
        "\u{2060}",
        "\u{1b}[31m",
        "\u{1b}]8;;http://a\u{7}",
        "\u{1b}]0;t\u{1b}\\",
        "\u{1b}(B",
        "<U+200B>",
        "\\u200b",
        "\0\0\u{1b}[0m\u{ad}",
    ] {
        for at in [2, 4, 20, 39] {
            let (head, rest) = token.split_at(at);
            let text = format!("with {head}{unseen}{rest} done");
            let clean = redact(&text).text;
            assert_eq!(clean, "with [redacted:github-token] done", "{text:?}");
        }
        let (head, rest) = token.split_at(20);
        let (middle, last) = rest.split_at(9);
        let text = format!("{head}{unseen}{middle}\n{last}\n");
        assert!(!redact(&text).text.contains(middle), "{text:?}");
        // It stands between two things, too; what follows a password's name is taken for one.
        for text in [format!("A=b{unseen}USER={unseen}HOME=/root"), format!("a{unseen}b")] {
            assert_eq!(redact(&text).text, text);
        }
    }
}
