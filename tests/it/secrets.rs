//! No secret leaves: from outside, with secrets planted in everything that reaches a relay. They are
//! put together at run time, so that no key-like string stands here.

use super::support::{Did, World, scripted};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Output;

/// The secrets planted in one channel: each channel has its own, so that one that is found says
/// where it came from.
struct Planted {
    channel: &'static str,
    aws_id: String,
    aws_secret: String,
    github: String,
    anthropic: String,
    value: String,
    password: String,
    key: String,
}

impl Planted {
    fn new(channel: &'static str) -> Self {
        let random = |kind: &str, alphabet: &str, len: usize| -> String {
            let letters: Vec<char> = alphabet.chars().collect();
            let mut out = String::new();
            let mut round = 0;
            while out.len() < len {
                let digest = super::support::digest(format!("{channel} {kind} {round}").as_bytes());
                for pair in digest.as_bytes().chunks(2) {
                    let text = std::str::from_utf8(pair).unwrap();
                    let number = usize::from_str_radix(text, 16).unwrap();
                    out.push(letters[number % letters.len()]);
                }
                round += 1;
            }
            out.truncate(len);
            out
        };
        let letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
        let lines: Vec<String> = (0..5).map(|n| random(&format!("key {n}"), letters, 64)).collect();
        Self {
            channel,
            aws_id: format!("{}{}", "AK", "IA")
                + &random("id", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
            aws_secret: random("aws", letters, 40),
            github: format!("gh{}", "p_") + &random("github", letters, 36),
            anthropic: format!("sk-{}-api03-", "ant") + &random("anthropic", letters, 93) + "AA",
            value: random("value", letters, 18),
            password: random("password", letters, 16),
            key: lines.join("\n"),
        }
    }

    fn armored(&self) -> String {
        let rule = "-".repeat(5);
        let kind = format!("OPENSSH {} KEY", "PRIVATE");
        format!("{rule}BEGIN {kind}{rule}\n{}\n{rule}END {kind}{rule}", self.key)
    }

    /// On one line: without the private key.
    fn line(&self) -> String {
        format!(
            "id {} aws_secret_access_key={} token {} and {} with DATABASE_PASSWORD={} at \
             postgres://app:{}@db.internal:5432/app",
            self.aws_id, self.aws_secret, self.github, self.anthropic, self.value, self.password
        )
    }

    fn plain(&self) -> String {
        format!("{}\n{}\n", self.line().replace(" and ", "\n"), self.armored())
    }

    /// As a value in JSON, in JSON.
    fn in_json(&self) -> String {
        let inner = json!({"env": {"DATABASE_PASSWORD": self.value}, "output": self.plain()});
        json!({"result": inner.to_string()}).to_string()
    }

    /// Tokens that a terminal or a diff broke in two.
    fn split(&self) -> String {
        let broken = |token: &str| {
            let (head, tail) = token.split_at(token.len() / 2);
            format!("{head}\n{tail}")
        };
        format!("{}\n{}\n", broken(&self.github), broken(&self.anthropic))
    }

    fn all(&self) -> String {
        format!("{}\n{}\n{}", self.plain(), self.in_json(), self.split())
    }

    /// Whatever must not be found: the secret part of each.
    fn needles(&self) -> Vec<(String, String)> {
        let mut needles = vec![
            ("AWS id", self.aws_id.clone()),
            ("AWS secret", self.aws_secret.clone()),
            ("GitHub token", self.github[4..].to_owned()),
            ("half a GitHub token", self.github[self.github.len() / 2..].to_owned()),
            ("Anthropic key", self.anthropic[13..].to_owned()),
            ("half an Anthropic key", self.anthropic[self.anthropic.len() / 2..].to_owned()),
            ("value", self.value.clone()),
            ("URL password", self.password.clone()),
        ];
        let lines: Vec<String> = self.key.lines().map(str::to_owned).collect();
        needles.extend(lines.into_iter().map(|line| ("private key", line)));
        needles
            .into_iter()
            .map(|(kind, needle)| (format!("{kind} of {}", self.channel), needle))
            .collect()
    }
}

/// Where planted secrets are looked for, and what was found.
struct Search {
    needles: Vec<(String, String)>,
    found: BTreeSet<String>,
}

impl Search {
    fn new(planted: &[Planted]) -> Self {
        let needles = planted.iter().flat_map(Planted::needles).collect();
        Self { needles, found: BTreeSet::new() }
    }

    fn look(&mut self, place: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for (kind, needle) in &self.needles {
            if text.contains(needle.as_str()) {
                self.found.insert(format!("{kind} in {place}"));
            }
        }
    }

    fn look_at(&mut self, place: &str, did: &Did) {
        self.look(&format!("the output of {place}"), did.stdout.as_bytes());
        self.look(&format!("the messages of {place}"), did.stderr.as_bytes());
    }

    /// Every object that we wrote: all of them but the user's own files, and commits by others.
    fn look_through_objects(&mut self, world: &World) {
        let mut theirs = BTreeSet::new();
        let refs = ["--branches", "--glob=refs/relay/snapshots/*", "--glob=refs/relay/kept/*"];
        let mut arguments = vec!["rev-list", "--objects", "--no-object-names"];
        arguments.extend(refs);
        theirs.extend(world.git(&arguments).lines().map(str::to_owned));
        let output =
            bytes_of(world, &["cat-file", "--batch-all-objects", "--batch", "--unordered"]);
        let mut rest = output.stdout.as_slice();
        let mut seen = 0;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
            let head = String::from_utf8(rest[..end].to_vec()).unwrap();
            let mut words = head.split(' ');
            let (oid, kind) = (words.next().unwrap(), words.next().unwrap());
            let len: usize = words.next().unwrap().parse().unwrap();
            let body = &rest[end + 1..end + 1 + len];
            rest = &rest[end + 2 + len..];
            let is_ours = if kind == "commit" {
                body.windows(17).any(|part| part == b"author git-relay ")
            } else {
                !theirs.contains(oid)
            };
            if is_ours {
                seen += 1;
                self.look(&format!("{kind} {oid}"), body);
            }
        }
        assert!(seen > 20, "{seen}");
    }

    fn look_through_files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                self.look_through_files(&entry.path());
            } else {
                let place = entry.path().display().to_string();
                self.look(&format!("the name {place}"), place.as_bytes());
                self.look(&place, &fs::read(entry.path()).unwrap());
            }
        }
    }

    fn look_everywhere(&mut self, world: &World, session: &str) {
        self.look_through_objects(world);
        self.look_through_files(&world.repo.join(".git/relay"));
        let inbox = world.repo.join(".git/worktrees").join(session).join("relay-inbox");
        self.look("the inbox", &fs::read(inbox).unwrap_or_default());
        self.look("the envelope", &fs::read(world.home.join("got.md")).unwrap_or_default());
        for words in [
            &["status", session][..],
            &["status", session, "--json"],
            &["list", "--json"],
            &["log", session, "--json"],
            &["show", session],
            &["show", session, "--json"],
            &["show", session, "--envelope"],
            &["verify"],
        ] {
            let did = world.relay(words);
            self.look_at(&words.join(" "), &did);
        }
        let notes = bytes_of(world, &["log", "--all", "--notes=relay", "--format=%N"]);
        self.look("the notes", &notes.stdout);
    }

    #[track_caller]
    fn finds_nothing(&self) {
        let list: Vec<&str> = self.found.iter().map(String::as_str).collect();
        assert!(list.is_empty(), "{} leaks:\n{}", list.len(), list.join("\n"));
    }
}

fn bytes_of(world: &World, arguments: &[&str]) -> Output {
    let output = world.command("git").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Puts a text where a script can read it: `$HOME/plant/NAME`.
pub(super) fn plant(world: &World, name: &str, text: &str) {
    world.write_at(&world.home.join("plant").join(name), text);
}

pub(super) const RECEIVER: &str =
    "cat >\"$HOME/got.md\"; echo start; echo 'step on'; echo 'done all'\n";

#[test]
fn no_secret_that_is_said_or_recorded_leaves() {
    let channels = [
        "task", "stdout", "limit", "stderr", "record", "reason", "next", "trailer", "files", "name",
    ];
    let planted: Vec<Planted> = channels.into_iter().map(Planted::new).collect();
    let of = |channel: &str| planted.iter().find(|p| p.channel == channel).unwrap();
    let world = World::new();
    for channel in ["stdout", "stderr", "record", "reason", "next", "files"] {
        plant(&world, channel, &of(channel).all());
    }
    plant(&world, "limit", &of("limit").line());
    plant(&world, "trailer", &of("trailer").line());
    plant(&world, "json", &of("record").in_json());
    let first = world.program(
        "first-agent",
        &format!(
            "cd \"$PWD\"; P=$HOME/plant; cat >/dev/null; echo start; cat $P/stdout; echo 'step one'; \
             cat $P/stderr >&2; echo a >done.txt; git add done.txt; \
             git commit -q -m 'Add done.txt' -m \"Relay-Decision: $(cat $P/trailer)\"; \
             for kind in decision constraint do-not-redo done next plan assert; do \
             git-relay record --$kind \"$(cat $P/record)\" --$kind \"$(cat $P/json)\"; done; \
             cp $P/files changed.env; cp $P/files staged.env; git add staged.env; \
             mkdir -p 'a folder'; cp $P/files 'a folder/more.txt'; : >'{name}.txt'; \
             git-relay handoff --reason \"$(cat $P/reason)\" --next \"$(cat $P/next)\"; \
             printf 'limit '; cat $P/limit; echo; exit 1\n",
            name = of("name").github
        ),
    );
    let second = world.program("second-agent", RECEIVER);
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    let did = world.relay(&["run", &format!("Mend it.\n{}", of("task").all())]).exits(0);
    let mut search = Search::new(&planted);
    search.look_at("run", &did);
    // The user's own files are the user's: named by file and line, in the snapshot as they are.
    for file in ["changed.env", "staged.env", "a folder/more.txt"] {
        let named = format!("'{file}': aws-access-key-id in line 1");
        assert!(did.stderr.contains(&named), "{}", did.stderr);
    }
    let session = world.session();
    let snapshot = format!("refs/relay/snapshots/{session}/1:changed.env");
    assert_eq!(world.git(&["cat-file", "blob", &snapshot]), of("files").all().trim_end());
    search.look_everywhere(&world, &session);
    let finished = world.relay(&["finish", &session, "--include-snapshot"]).exits(0);
    search.look_at("finish", &finished);
    search.look_everywhere(&world, &session);
    search.finds_nothing();
}

/// How an agent's last words go into the session: by each of the ways that it can end.
#[test]
fn no_secret_in_how_an_agent_ends_leaves() {
    for (word, code) in [("limit", 6), ("failed", 1), ("asks", 1), ("start-fails", 1)] {
        let planted = [Planted::new("end")];
        let world = World::new();
        plant(&world, "end", &planted[0].line());
        let script = match word {
            "start-fails" => "cat >/dev/null; printf 'failed '; cat $HOME/plant/end; \
                              cat $HOME/plant/end >&2; exit 1\n"
                .to_owned(),
            _ => format!(
                "[ -e $HOME/once ] && exit 1; : >$HOME/once; cat >/dev/null; echo start; \
                 echo 'step on'; printf '{word} '; \
                 cat $HOME/plant/end; echo; exit 1\n"
            ),
        };
        let first = world.program("first-agent", &script);
        let second = world.program("second-agent", "cat $HOME/plant/end >&2; exit 1\n");
        world.configure(&scripted(&[("first", &first), ("second", &second)]));
        world.relay(&["init"]).exits(0);
        let did = world.relay(&["run", "A task"]).exits(code);
        let mut search = Search::new(&planted);
        search.look_at("run", &did);
        let session = world.session();
        let json = world.relay(&["resume", &session, "--json"]);
        search.look_at("resume --json", &json);
        if word == "asks" {
            // The leg is not sealed: its output is still needed, and goes at the end.
            search.look_at("abort", &world.relay(&["abort", &session]).exits(0));
        }
        search.look_everywhere(&world, &session);
        search.finds_nothing();
    }
}

/// Records of the real Claude Code, with secrets in prompts, tool inputs and tool outputs.
#[test]
fn no_secret_in_a_transcript_leaves() {
    let channels = ["prompt", "input", "output", "words", "ending", "written"];
    let planted: Vec<Planted> = channels.into_iter().map(Planted::new).collect();
    let of = |channel: &str| planted.iter().find(|p| p.channel == channel).unwrap();
    let mut world = World::new();
    let id = "7943843d-5bc6-4c0b-8038-52a3335dbcc0";
    let swaps = [
        ("Write greeting.txt and commit it\n", of("prompt").all()),
        ("Write greeting.txt and commit it", of("prompt").all()),
        ("e78d079 Add greeting", of("output").all()),
        ("Now an edit.", of("words").all()),
        ("hello\nworld\n", of("written").all()),
    ];
    let mut swapped: BTreeMap<&str, usize> = BTreeMap::new();
    for name in ["stream", "transcript"] {
        let path = format!("tests/agents/claude/limit.{name}.jsonl");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let mut out = String::new();
        for line in text.lines() {
            let mut record: Value = serde_json::from_str(line).unwrap();
            each_text(&mut record, &mut |text| {
                for (old, new) in &swaps {
                    if text == old {
                        *swapped.entry(*old).or_default() += 1;
                        *text = new.clone();
                        return;
                    }
                }
                if text.starts_with("git add greeting.txt") {
                    *text = format!("{text} # {}", of("input").all());
                } else if text.starts_with("You've hit your") {
                    *text = format!("{text} {}", of("ending").line());
                }
            });
            let line = record.to_string().replace("17960107", "41024448");
            writeln!(out, "{line}").unwrap();
        }
        world.write_at(&world.home.join("plant").join(name), &out);
    }
    assert!(swapped.len() >= 4, "{swapped:?}");
    world.program(
        "claude",
        &format!(
            "#!/bin/sh\ncat >/dev/null; mkdir -p ~/.claude/projects/x; \
             cp ~/plant/transcript ~/.claude/projects/x/{id}.jsonl; echo hello >greeting.txt; \
             cat ~/plant/stream; exit 1\n"
        ),
    );
    let second = world.program("second-agent", RECEIVER);
    let config = scripted(&[("second", &second)]);
    world.configure(&config.replace("agents = [", "agents = [\"claude\", "));
    world.set("CLAUDE_CODE_OAUTH_TOKEN", "none");
    world.relay(&["init"]).exits(0);
    let did = world.relay(&["run", "Greet", "--unsandboxed-shell"]).exits(0);
    let mut search = Search::new(&planted);
    search.look_at("run", &did);
    let session = world.session();
    search.look_everywhere(&world, &session);
    search.finds_nothing();
    // It was read, and it was redacted.
    let contract = world.relay(&["show", &session, "--json"]).exits(0).stdout;
    assert!(contract.contains("git add greeting.txt"), "{contract}");
    assert!(contract.contains("[redacted:"), "{contract}");
    let contract: Value = serde_json::from_str(&contract).unwrap();
    let counts = contract["redactions"].as_object().unwrap();
    assert!(counts.len() >= 5, "{counts:?}");
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| each_text(member, change));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn where_secrets_are_refused_none_gets_onto_the_branch() {
    let planted = Planted::new("files");
    let world = World::new();
    plant(&world, "files", &planted.all());
    let first = world.program(
        "first-agent",
        "cat >/dev/null; echo start; echo 'step one'; cp $HOME/plant/files hidden.env; \
         echo half >half.txt; echo 'limit enough'; exit 1\n",
    );
    let second = world.program("second-agent", RECEIVER);
    let config = scripted(&[("first", &first), ("second", &second)]);
    world.configure(&format!("secrets = \"refuse\"\n{config}"));
    world.relay(&["init"]).exits(0);
    let base = world.git(&["rev-parse", "HEAD"]);
    let did =
        world.relay(&["run", "A task"]).exits(1).says("'hidden.env': aws-access-key-id in line 1");
    assert!(!world.home.join("got.md").exists());
    let session = world.session();
    assert_eq!(world.git(&["rev-parse", &format!("relay/{session}")]), base);
    assert_eq!(world.git(&["for-each-ref", "refs/relay/snapshots"]), "");
    let mut search = Search::new(std::slice::from_ref(&planted));
    search.look_at("run", &did);
    world.relay(&["resume", &session]).exits(1).says("secrets");
    fs::remove_file(world.worktree().join("hidden.env")).unwrap();
    world.relay(&["resume", &session]).exits(0);
    let files = world.git(&["log", "--all", "--name-only", "--format="]);
    assert!(!files.contains("hidden.env") && files.contains("half.txt"), "{files}");
    search.look_everywhere(&world, &session);
    // The unreferenced blob of the file that was refused: the search does find what is there.
    assert!(!search.found.is_empty());
    assert!(search.found.iter().all(|found| found.contains("blob")), "{:?}", search.found);
}

/// The raw output stays while it is needed and no longer.
#[test]
fn what_agents_printed_is_removed_when_its_contract_is_sealed() {
    let world = World::new();
    let first = world.program(
        "first-agent",
        "cat >/dev/null; echo start; echo 'step one'; echo oops >&2; echo 'limit enough'; exit 1\n",
    );
    let second = world.program(
        "second-agent",
        "[ -e \"$HOME/able\" ] || exit 1; cat >\"$HOME/got.md\"; echo start; echo 'step on'; \
         echo 'done all'\n",
    );
    world.configure(&scripted(&[("first", &first), ("second", &second)]));
    world.relay(&["init"]).exits(0);
    world.relay(&["run", "A task"]).exits(6);
    let session = world.session();
    let folder = world.repo.join(".git/relay/sessions").join(&session);
    let raw = || -> Vec<String> {
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| name.ends_with(".stream") || name.ends_with(".errors")).collect()
    };
    assert_eq!(raw(), Vec::<String>::new(), "sealed, and a start that failed");
    world.write_at(&world.home.join("able"), "");
    world.relay(&["resume", &session]).exits(0);
    assert_eq!(raw().len(), 2, "{:?}", raw());
    world.relay(&["finish", &session]).exits(0);
    assert_eq!(raw(), Vec::<String>::new());
}
