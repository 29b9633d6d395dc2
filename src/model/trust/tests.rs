//! The file is read as `ssh-keygen` and git read it.

use super::pattern::{any_matches, matches};
use super::*;
use crate::model::sign::SigningKey;
use proptest::prelude::*;
use std::fs;
use std::process::{Command, Stdio};

const NOON: Timestamp = Timestamp(1_796_040_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

/// The line of key 1 with these principals and options.
fn line(before: &str) -> String {
    format!("{before} {}", key(1).public().to_openssh_line("a comment"))
}

fn check(text: &str) -> Result<(), Untrusted> {
    Trust::parse(text).check(&key(1).public(), "git", NOON).map(drop)
}

#[test]
fn our_own_line_is_read_back() {
    let line = signer_line("relay@host", &key(1).public(), "made by init");
    assert!(line.starts_with(
        "relay@host namespaces=\"git,git-relay-contract@v1\" ssh-ed25519 AAAAC3NzaC1lZDI1"
    ));
    let trust = Trust::parse(&line);
    assert_eq!(trust.warnings, Vec::<String>::new());
    let signer = trust.check(&key(1).public(), CONTRACT_NAMESPACE, NOON).unwrap();
    assert_eq!(
        *signer,
        Signer {
            principals: vec!["relay@host".to_owned()],
            namespaces: Some(vec!["git".to_owned(), CONTRACT_NAMESPACE.to_owned()]),
            valid_after: None,
            valid_before: None,
            cert_authority: false,
            key: key(1).public(),
            comment: "made by init".to_owned(),
        }
    );
    let trusted = |seed, namespace| trust.check(&key(seed).public(), namespace, NOON);
    assert_eq!(trusted(1, "file"), Err(Untrusted::WrongNamespace));
    assert_eq!(trusted(2, "git"), Err(Untrusted::UnknownKey));
}

#[test]
fn a_line_of_ours_stays_one_line_with_one_name() {
    let public = key(1).public();
    for (principal, name) in
        [("a b\n* c", "a-b---c"), ("*", "-"), ("!x,\"y", "-x--y"), ("", "relay"), ("#", "-")]
    {
        let trust = Trust::parse(&signer_line(principal, &public, "x\n* ssh-ed25519 y"));
        assert_eq!(trust.warnings, Vec::<String>::new());
        assert_eq!(trust.signers.len(), 1);
        assert_eq!(trust.signers[0].principals, [name]);
        assert_eq!(trust.signers[0].comment, "x * ssh-ed25519 y");
    }
}

#[test]
fn a_line_that_cannot_be_read_grants_nothing_and_hides_nothing() {
    for (bad, why) in [
        ("a", "has no key"),
        ("a ssh-rsa AAAAB3NzaC1yc2E= x", "\"ssh-rsa\" is not supported"),
        ("a sk-ssh-ed25519@openssh.com AAAA x", "is not supported"),
        ("a ssh-ed25519", "cut short"),
        ("a ssh-ed25519 AAAA", "malformed"),
        (&line("!root@host"), "about nobody"),
        (&line("\"\""), "about nobody"),
        ("a ssh-ed25519 !!!!", "not base64"),
        (&line("a restrict"), "neither an option"),
        (&line("a namespaces=git"), "neither an option"),
        (&line("a namespaces=\"git"), "not closed"),
        (&line("a namespaces=\"git\",namespaces=\"file\""), "twice"),
        (&line("a namespaces=\"git\"valid-after=\"20260101Z\""), "commas"),
        (&line("a cert-authorit"), "neither an option"),
        (&line("a valid-before=\"tomorrow\""), "not a time"),
        (&line("a valid-before=\"20261301Z\""), "not a time"),
        (&line("a valid-before=\"20260230Z\""), "not a time"),
        (&line("a valid-before=\"2026+101Z\""), "not a time"),
        (&line("a valid-before=\"é0260101Z\""), "not a time"),
        (&line("a").replacen("ssh", "\0ssh", 1), "control"),
        (&line("\"a"), "not closed"),
        (&line("a\"b\""), "not closed"),
    ] {
        let trust = Trust::parse(&format!("# one\n{bad}\n\n{}\r\n", line("b")));
        assert_eq!(trust.signers.len(), 1, "{bad}");
        assert_eq!(trust.signers[0].principals, ["b"], "{bad}");
        let [warning] = &*trust.warnings else { panic!("{bad}: {:?}", trust.warnings) };
        assert!(warning.starts_with("line 2: ") && warning.contains(why), "{bad}: {warning}");
    }
    assert_eq!(Trust::parse("\n \t\n# x\n  # y\n\r\n"), Trust::default());
}

#[test]
fn options_are_read_as_ssh_keygen_reads_them() {
    let one = |before: &str| {
        let trust = Trust::parse(&line(before));
        assert_eq!(trust.signers.len(), 1, "{before}: {:?}", trust.warnings);
        (trust.signers[0].clone(), trust.warnings)
    };
    let (signer, warnings) =
        one("\"a b,*@c\"\tNameSpaces=\"git,f\\\"x y\",valid-after=\"20260102Z\",\
         valid-before=\"202612312359Z\",cert-authority");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(signer.principals, ["a b", "*@c"]);
    assert_eq!(signer.namespaces.unwrap(), ["git", "f\"x y"]);
    assert_eq!(signer.valid_after, Timestamp::parse("2026-01-02T00:00:00Z"));
    assert_eq!(signer.valid_before, Timestamp::parse("2026-12-31T23:59:00Z"));
    assert!(signer.cert_authority);
    assert_eq!(signer.comment, "a comment");

    let (signer, warnings) = one("a valid-after=\"20260102030405\"");
    assert_eq!(signer.valid_after, Timestamp::parse("2026-01-02T03:04:05Z"));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("no Z"));
}

#[test]
fn each_refusal_has_its_name_and_any_line_can_grant() {
    let expired = line("a valid-before=\"20251231Z\"");
    let future = line("b valid-after=\"20300101Z\"");
    let file = line("c namespaces=\"file\"");
    let authority = line("d cert-authority");
    assert_eq!(check(""), Err(Untrusted::UnknownKey));
    assert_eq!(check(&expired), Err(Untrusted::Expired));
    assert_eq!(check(&future), Err(Untrusted::NotYetValid));
    assert_eq!(check(&file), Err(Untrusted::WrongNamespace));
    assert_eq!(check(&authority), Err(Untrusted::UnknownKey));
    let all = [&*authority, &*expired, &*future, &*file].join("\n");
    assert_eq!(check(&all), Err(Untrusted::Expired));
    let trust = Trust::parse(&format!("{all}\n{}", line("e")));
    assert_eq!(trust.check(&key(1).public(), "git", NOON).unwrap().principals, ["e"]);

    // Both ends count.
    let both = Trust::parse(&line("a valid-after=\"20260101Z\",valid-before=\"20260102Z\""));
    let first = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let at = |seconds| both.check(&key(1).public(), "git", first.plus_seconds(seconds)).map(drop);
    assert_eq!(at(-1), Err(Untrusted::NotYetValid));
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(86_400), Ok(()));
    assert_eq!(at(86_401), Err(Untrusted::Expired));
}

#[test]
fn patterns() {
    for (text, pattern, fits) in [
        ("", "", true),
        ("", "*", true),
        ("a", "", false),
        ("relay@host", "*", true),
        ("relay@host", "relay@host", true),
        ("relay@host", "*@host", true),
        ("relay@host", "*@hos", false),
        ("relay@host", "r*y@*t", true),
        ("relay@host", "Relay@host", false),
        ("aab", "*ab", true),
        ("abab", "a*b?", false),
        ("abc", "a?c", true),
        ("ac", "a?c", false),
        ("ac", "a**c", true),
    ] {
        assert_eq!(matches(text, pattern), fits, "{text} {pattern}");
    }
    assert!(!matches(&"a".repeat(2000), &"a*".repeat(500).replace("a*a", "a*ab")));
    let patterns = ["*@host".to_owned(), "!root@host".to_owned()];
    assert!(any_matches("relay@host", &patterns));
    assert!(!any_matches("root@host", &patterns) && !any_matches("x", &patterns));
}

/// For each file: ssh-keygen's verdict on a signature by key 1, and ours.
#[test]
fn ssh_keygen_agrees_on_who_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let message = b"message";
    let public = key(1).public();
    fs::write(folder.join("message"), message).unwrap();
    let other = signer_line("relay@host", &key(2).public(), "other");
    for (file, namespace, trusted) in [
        (signer_line("relay@host", &public, ""), "git", Ok(())),
        (signer_line("relay@host", &public, "x y"), CONTRACT_NAMESPACE, Ok(())),
        (signer_line("relay@host", &public, ""), "file", Err(Untrusted::WrongNamespace)),
        (other.clone(), "git", Err(Untrusted::UnknownKey)),
        (format!("# x\n\n{other}\n{}", line("*")), "git", Ok(())),
        (line("\"x y,*@host\""), "git", Ok(())),
        (line("* namespaces=\"g?t\""), "git", Ok(())),
        (line("* namespaces=\"*,!git\""), "git", Err(Untrusted::WrongNamespace)),
        (line("* Namespaces=\"git\""), "git", Ok(())),
        (line("* valid-before=\"20251231Z\""), "git", Err(Untrusted::Expired)),
        (line("* valid-after=\"20300101Z\""), "git", Err(Untrusted::NotYetValid)),
        (line("* valid-after=\"20261130115959Z\",valid-before=\"20261130120000Z\""), "git", Ok(())),
        (line("* valid-before=\"202611301159Z\""), "git", Err(Untrusted::Expired)),
        (line("* valid-before=\"20251231Z\"") + "\n" + &line("*"), "git", Ok(())),
        (line("* cert-authority"), "git", Err(Untrusted::UnknownKey)),
        (line("* namespaces=\"git\",restrict"), "git", Err(Untrusted::UnknownKey)),
        (line("* namespaces=\"git\",namespaces=\"git\""), "git", Err(Untrusted::UnknownKey)),
        (line("* \t namespaces=\"git\"\t"), "git", Ok(())),
    ] {
        fs::write(folder.join("signers"), &file).unwrap();
        fs::write(folder.join("sig"), key(1).sign(namespace, message)).unwrap();
        let output = Command::new("ssh-keygen")
            .args(["-Y", "verify", "-f", "signers", "-I", "relay@host", "-n", namespace])
            .args(["-s", "sig", "-O", "verify-time=20261130120000Z"])
            .current_dir(folder)
            .stdin(Stdio::from(fs::File::open(folder.join("message")).unwrap()))
            .output()
            .expect("these tests need ssh-keygen");
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), trusted.is_ok(), "{file}\n{talk}");
        let ours = Trust::parse(&file).check(&public, namespace, NOON).map(drop);
        assert_eq!(ours, trusted, "{file}");
    }
    assert_eq!(NOON.to_string(), "2026-11-30T12:00:00Z");
}

/// Our signatures and `signer_line` are what stock git wants for a signed commit.
#[test]
fn git_believes_our_commits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let git = |arguments: &[&str], input: &str| {
        fs::write(folder.join("input"), input).unwrap();
        let output = Command::new("git")
            .args(["-c", "gpg.ssh.allowedSignersFile=signers"])
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .stdin(Stdio::from(fs::File::open(folder.join("input")).unwrap()))
            .output()
            .expect("these tests need git");
        (output.status.success(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    assert!(git(&["init", "-q"], "").0);
    fs::write(folder.join("signers"), signer_line("relay@host", &key(1).public(), "")).unwrap();
    let (_, tree) = git(&["mktree"], "");
    let who = "Relay <relay@host> 1796040000 +0000";
    let head = format!("tree {tree}\nauthor {who}\ncommitter {who}\n");
    for (signer, message, verdict) in
        [(1, "\nstep\n", "G"), (2, "\nstep\n", "U"), (1, "\nstep \n", "B")]
    {
        let armored = key(signer).sign(GIT_NAMESPACE, format!("{head}\nstep\n").as_bytes());
        let header = armored.trim_end().replace('\n', "\n ");
        let commit = format!("{head}gpgsig {header}\n{message}");
        let (_, id) = git(&["hash-object", "-t", "commit", "-w", "--stdin"], &commit);
        assert_eq!(git(&["log", "-1", "--format=%G?", &id], "").1, verdict);
        assert_eq!(git(&["verify-commit", &id], "").0, verdict == "G");
        assert!(git(&["fsck", "--strict"], "").0);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(
        text: String, near in "[a\"\\\\, =#*!\t\nZ0-9é\u{0}-]{0,60}",
    ) {
        Trust::parse(&text);
        Trust::parse(&near);
        Trust::parse(&line(&near));
        Trust::parse(&line(&format!("a namespaces={near}")));
        Trust::parse(&line(&format!("a valid-after=\"{near}\"")));
    }

    #[test]
    fn a_pattern_of_stars_and_parts_fits_what_it_was_cut_from(
        parts in prop::collection::vec("[ab]{0,3}", 1..6), between in "[abc]{0,4}",
    ) {
        prop_assert!(matches(&parts.join(&between), &parts.join("*")));
    }
}
