//! Tampering, from outside: one failure each, forged with git's plumbing and `ssh-keygen`.
//!
//! A session rests after its contract was sealed, because the next agent could not start. Then one
//! thing is changed, the next agent becomes able, and `git relay resume` is run. It must exit 4,
//! say which thing does not hold, and start nobody: the receiver writes down what it is given, and
//! that file must not exist.

use super::support::{Did, World, scripted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const STATE: &str = "state.json";
const CONTRACT: &str = "contract.json";
const SIGNATURE: &str = "contract.sig";
const CONTRACT_NAMESPACE: &str = "git-relay-contract@v1";

const FIRST: &str = "cat >/dev/null; echo start; echo 'step one'; echo a >done.txt; \
     git add done.txt; git commit -q -m 'Add done.txt'; \
     git-relay record --do-not-redo 'done.txt is written' --next 'finish half.txt' \
     --decision 'plain text'; echo half >half.txt; echo 'used=99 resets=4102444800'; \
     echo 'limit you have hit your limit'; exit 1\n";
const MIDDLE: &str = "cat >/dev/null; echo start; echo 'step two'; echo more >>half.txt; \
     echo 'limit you too'; exit 1\n";
/// Not able to start before the file `able` is there; then it writes down every word it gets.
const LAST: &str = "[ -e \"$HOME/able\" ] || exit 1; cat >\"$HOME/got.md\"; echo start; \
     echo 'step on'; echo 'done all'\n";

/// A session at rest, and everything needed to change it and to put it back.
struct Rest {
    world: World,
    session: String,
    /// `refs/…` and what it was.
    refs: BTreeMap<String, String>,
    key: PathBuf,
    trust: PathBuf,
    trusted: String,
}

/// What the state commit holds that a forgery starts from.
#[derive(Clone)]
struct Forgery {
    files: BTreeMap<String, Vec<u8>>,
    parent: String,
}

impl Rest {
    /// Two agents: one leg, one contract.
    fn new() -> Self {
        Self::with(&[("first", FIRST), ("last", LAST)])
    }

    /// Three: two legs, two contracts.
    fn after_two_legs() -> Self {
        Self::with(&[("first", FIRST), ("middle", MIDDLE), ("last", LAST)])
    }

    fn with(agents: &[(&str, &str)]) -> Self {
        let world = World::new();
        let programs: Vec<(&str, PathBuf)> = agents
            .iter()
            .map(|(name, script)| (*name, world.program(&format!("{name}-agent"), script)))
            .collect();
        let named: Vec<(&str, &Path)> =
            programs.iter().map(|(name, path)| (*name, path.as_path())).collect();
        world.configure(&scripted(&named));
        world.relay(&["init"]).exits(0);
        world.relay(&["run", "Write two files"]).exits(6);
        Self::of(world)
    }

    fn of(world: World) -> Self {
        let session = world.session();
        let key = world.relay(&["key", "--json"]).exits(0).json();
        let public = PathBuf::from(key["key"]["publicPath"].as_str().unwrap());
        let trust = PathBuf::from(world.relay(&["trust", "--path"]).exits(0).stdout.trim_end());
        let mut rest = Self {
            key: public.with_extension(""),
            trusted: fs::read_to_string(&trust).unwrap(),
            trust,
            session,
            refs: BTreeMap::new(),
            world,
        };
        rest.refs = rest.read_refs();
        rest
    }

    fn read_refs(&self) -> BTreeMap<String, String> {
        let text = self.world.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, oid)| (name.to_owned(), oid.to_owned()))
            .collect()
    }

    fn session_ref(&self) -> String {
        format!("refs/relay/sessions/{}", self.session)
    }

    fn tip(&self) -> String {
        self.refs[&self.session_ref()].clone()
    }

    /// The state commit that the last event of this word made.
    fn commit_of(&self, event: &str) -> String {
        let grep = format!("--grep=^relay: {event}$");
        self.world.git(&["log", "-1", "--format=%H", &grep, &self.tip()])
    }

    fn files_of(&self, commit: &str) -> BTreeMap<String, Vec<u8>> {
        let names = self.world.git(&["ls-tree", "-r", "--name-only", commit]);
        names
            .lines()
            .map(|name| (name.to_owned(), self.blob(&format!("{commit}:{name}"))))
            .collect()
    }

    fn blob(&self, name: &str) -> Vec<u8> {
        let output = self.world.command("git").args(["cat-file", "blob", name]).output().unwrap();
        assert!(output.status.success(), "{name}");
        output.stdout
    }

    /// The commit that brought the last contract in, as material.
    fn sealed(&self) -> Forgery {
        let commit = self.commit_of("contracted");
        Forgery {
            files: self.files_of(&commit),
            parent: self.world.git(&["rev-parse", &format!("{commit}^")]),
        }
    }

    fn piped(&self, program: &str, arguments: &[&str], stdin: &[u8]) -> String {
        let mut child = self
            .world
            .command(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {words}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn sign(&self, key: &Path, namespace: &str, bytes: &[u8]) -> String {
        let key = key.to_str().unwrap();
        self.piped("ssh-keygen", &["-Y", "sign", "-q", "-f", key, "-n", namespace], bytes)
    }

    /// A key of somebody else.
    fn stranger(&self, name: &str) -> PathBuf {
        let path = self.world.home.join(name);
        let shown = path.to_str().unwrap();
        if !path.exists() {
            self.world.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", shown]).exits(0);
        }
        path
    }

    fn tree(&self, files: &BTreeMap<String, Vec<u8>>) -> String {
        let index = self.world.home.join("forged-index");
        _ = fs::remove_file(&index);
        let rows: Vec<String> = files
            .iter()
            .map(|(name, bytes)| {
                let blob = self.piped("git", &["hash-object", "-w", "--stdin"], bytes);
                format!("100644 {}\t{name}\n", blob.trim_end())
            })
            .collect();
        let env = format!("GIT_INDEX_FILE={}", index.display());
        let all = rows.concat();
        self.piped("env", &[&env, "git", "update-index", "--index-info"], all.as_bytes());
        self.piped("env", &[&env, "git", "write-tree"], b"").trim_end().to_owned()
    }

    /// Writes a state commit by hand, signed by `key` where one is given.
    fn commit(&self, forgery: &Forgery, key: Option<&Path>) -> String {
        let tree = self.tree(&forgery.files);
        let who = "git-relay <git-relay@localhost> 1800000000 +0000";
        let head =
            format!("tree {tree}\nparent {}\nauthor {who}\ncommitter {who}\n", forgery.parent);
        let message = format!("\nrelay: contracted\n\nSession: {}\n", self.session);
        let mut bytes = head.clone();
        if let Some(key) = key {
            let signature = self.sign(key, "git", format!("{head}{message}").as_bytes());
            bytes.push_str(&format!("gpgsig {}\n", signature.trim_end().replace('\n', "\n ")));
        }
        bytes.push_str(&message);
        let arguments = ["hash-object", "-t", "commit", "-w", "--stdin"];
        self.piped("git", &arguments, bytes.as_bytes()).trim_end().to_owned()
    }

    /// Puts a forged state commit, properly signed by our own key, in the place of the tip.
    fn put(&self, forgery: &Forgery) {
        let commit = self.commit(forgery, Some(&self.key));
        self.world.git(&["update-ref", &self.session_ref(), &commit]);
    }

    /// The next agent is able now: it must not be asked all the same.
    fn refused(&self, by: &[&str], words: &str) {
        self.world.write_at(&self.world.home.join("able"), "");
        let did = self.world.relay(by);
        let all = format!("{}{}", did.stdout, did.stderr);
        assert!(!self.world.home.join("got.md").exists(), "it was shown to an agent:\n{all}");
        did.exits(4).says(words);
    }

    fn resume_refused(&self, words: &str) {
        self.refused(&["resume", &self.session], words);
    }

    /// Puts every ref and the trust back.
    fn restore(&self) {
        let mut orders = String::new();
        for name in self.read_refs().keys().filter(|name| !self.refs.contains_key(*name)) {
            orders.push_str(&format!("delete {name}\n"));
        }
        for (name, oid) in &self.refs {
            orders.push_str(&format!("update {name} {oid}\n"));
        }
        self.piped("git", &["update-ref", "--no-deref", "--stdin"], orders.as_bytes());
        fs::write(&self.trust, &self.trusted).unwrap();
    }

    /// After all that, the untouched session still goes on: the refusals were not for another
    /// reason.
    fn still_goes_on(&self) {
        self.restore();
        self.world.relay(&["verify"]).exits(0);
        self.world.write_at(&self.world.home.join("able"), "");
        self.world.relay(&["resume", &self.session]).exits(0);
        assert!(self.world.home.join("got.md").exists());
        self.world.relay(&["verify"]).exits(0);
        self.world.git(&["fsck", "--strict"]);
    }
}

impl Forgery {
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.files[name]).unwrap()
    }

    /// Canonical, as far as ours goes: `serde_json` keeps an object's keys sorted.
    fn set(&mut self, name: &str, value: &Value) {
        self.files.insert(name.to_owned(), serde_json::to_vec(value).unwrap());
    }

    /// The state names these very bytes: only the contract's own checks stand in the way.
    fn name_in_state(&mut self) {
        let digest = super::support::digest(&self.files[CONTRACT]);
        self.edit(STATE, |state| state["contract"]["sha256"] = json!(digest));
    }

    fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.json(name);
        change(&mut value);
        self.set(name, &value);
    }

    /// Changes the contract and signs it anew with our own key: only what it is bound to is left
    /// to refuse it.
    fn resign(&mut self, rest: &Rest, change: impl FnOnce(&mut Value)) {
        self.edit(CONTRACT, change);
        let signature = rest.sign(&rest.key, CONTRACT_NAMESPACE, &self.files[CONTRACT]);
        self.files.insert(SIGNATURE.into(), signature.into_bytes());
        self.name_in_state();
    }
}

/// Every place in a JSON value, as a pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                places(member, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at.to_owned());
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::Bool(truth) => json!(!truth),
        Value::Array(items) => json!(items[..items.len() - 1]),
        Value::Object(_) | Value::Null => Value::Null,
    }
}

#[test]
fn no_field_of_a_contract_can_be_changed() {
    let rest = Rest::new();
    let good = rest.sealed();
    let contract = good.json(CONTRACT);
    let mut all = Vec::new();
    places(&contract, "", &mut all);
    assert!(all.len() > 60, "{all:?}");
    for place in &all {
        let mut forged = good.clone();
        forged.edit(CONTRACT, |contract| {
            let value = contract.pointer_mut(place).unwrap();
            *value = changed(value);
        });
        forged.name_in_state();
        rest.put(&forged);
        rest.resume_refused("signature");
    }
    // A field more, and none at all.
    for text in [r#"{"zzz":1}"#, "{}", ""] {
        let mut forged = good.clone();
        let mut bytes = forged.files[CONTRACT].clone();
        if text == r#"{"zzz":1}"# {
            bytes.truncate(bytes.len() - 1);
            bytes.extend_from_slice(b",\"zzz\":1}");
        } else {
            bytes = text.into();
        }
        forged.files.insert(CONTRACT.into(), bytes);
        forged.name_in_state();
        rest.put(&forged);
        rest.resume_refused("signature");
    }
    rest.still_goes_on();
}

#[test]
fn no_byte_of_contract_or_signature_can_be_flipped() {
    let rest = Rest::new();
    let good = rest.sealed();
    for name in [CONTRACT, SIGNATURE] {
        let len = good.files[name].len();
        for at in [0, 1, len / 3, len / 2, len - 40, len - 2] {
            let mut forged = good.clone();
            forged.files.get_mut(name).unwrap()[at] ^= 1;
            forged.name_in_state();
            rest.put(&forged);
            rest.resume_refused("signature");
        }
    }
    // The state still names the old bytes: that is said, whatever the signature.
    let mut forged = good.clone();
    forged.files.get_mut(CONTRACT).unwrap()[100] ^= 1;
    rest.put(&forged);
    rest.resume_refused("not the ones the state names");
    rest.still_goes_on();
}

#[test]
fn only_a_believed_key_for_the_right_thing_counts() {
    let rest = Rest::new();
    let good = rest.sealed();
    let bytes = good.files[CONTRACT].clone();
    let put = |signature: String| {
        let mut forged = good.clone();
        forged.files.insert(SIGNATURE.into(), signature.into_bytes());
        rest.put(&forged);
    };
    let stranger = rest.stranger("stranger");
    put(rest.sign(&stranger, CONTRACT_NAMESPACE, &bytes));
    rest.resume_refused("not among the trusted ones");
    // Believed, but for commits only; believed, but no more.
    let public = fs::read_to_string(stranger.with_extension("pub")).unwrap();
    for (line, words) in [
        (format!("relay namespaces=\"git\" {public}"), "not trusted for this namespace"),
        (format!("relay valid-before=\"20200101Z\" {public}"), "the key had expired"),
        (format!("relay valid-after=\"20990101Z\" {public}"), "not yet valid"),
        (format!("relay cert-authority {public}"), "not among the trusted ones"),
        (format!("!relay {public}"), "not among the trusted ones"),
    ] {
        fs::write(&rest.trust, format!("{}{line}", rest.trusted)).unwrap();
        rest.resume_refused(words);
    }
    rest.restore();
    // Our own key, but over something else or for something else.
    put(rest.sign(&rest.key, "git", &bytes));
    rest.resume_refused("namespace");
    put(rest.sign(&rest.key, CONTRACT_NAMESPACE, &bytes[1..]));
    rest.resume_refused("signature");
    put(String::new());
    rest.resume_refused("signature");
    let mut forged = good.clone();
    forged.files.remove(SIGNATURE);
    rest.put(&forged);
    rest.resume_refused("signature");
    forged.files.remove(CONTRACT);
    rest.put(&forged);
    rest.resume_refused("contract.json is gone");
    rest.still_goes_on();
}

#[test]
fn a_contract_is_bound_to_what_it_is_about() {
    let rest = Rest::new();
    let good = rest.sealed();
    let base = good.json(CONTRACT)["baseCommit"].clone();
    let other_oid = "1234567812345678123456781234567812345678";
    let zeros = "0".repeat(64);
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/format", json!("git-relay-contract@v2"), "its format is"),
        ("/sessionId", json!("another-session-0000"), "belongs to session 'another-session-0000'"),
        ("/contractId", json!("c-00000000"), "it is contract 'c-00000000'"),
        ("/leg", json!(2), "closes leg 2, not leg 1"),
        ("/parentContract", json!(zeros), "parent is not the contract before it"),
        ("/baseCommit", json!(other_oid), "base commit is not the session's"),
        ("/branch", json!("main"), "branch is not the session's"),
        ("/permissionLevel", json!("all"), "grants more than the session has"),
        ("/snapshotCommit", base.clone(), "snapshot is not the session's"),
        ("/snapshotTree", json!(other_oid), "the tree of its snapshot is another one"),
        ("/repository/objectFormat", json!("sha256"), "of a sha256 repository"),
        ("/repository/rootCommits/0", json!(other_oid), "of another repository"),
        ("/zzz", json!(1), "its record"),
    ];
    for (place, value, words) in cases {
        let mut forged = good.clone();
        forged.resign(&rest, |contract| {
            let (above, name) = place.rsplit_once('/').unwrap();
            let target = contract.pointer_mut(above).unwrap();
            match target {
                Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
                other => other[name] = value,
            }
        });
        rest.put(&forged);
        rest.resume_refused(words);
    }
    // A good signature over bytes that are not canonical.
    let mut forged = good.clone();
    let mut bytes = forged.files[CONTRACT].clone();
    bytes.push(b'\n');
    let signature = rest.sign(&rest.key, CONTRACT_NAMESPACE, &bytes);
    forged.files.insert(CONTRACT.into(), bytes);
    forged.files.insert(SIGNATURE.into(), signature.into_bytes());
    forged.name_in_state();
    rest.put(&forged);
    rest.resume_refused("not canonical");
    // State and contract both say another snapshot: its tree, its ref, its descent still hold them.
    let snapshot = good.json(CONTRACT)["snapshotTree"].clone();
    let foreign = rest.piped("git", &["commit-tree", snapshot.as_str().unwrap(), "-m", "x"], b"");
    let foreign = json!(foreign.trim_end());
    for (commit, words) in
        [(foreign, "does not descend from its base"), (base.clone(), "tree of its snapshot")]
    {
        let mut forged = good.clone();
        forged.resign(&rest, |contract| contract["snapshotCommit"] = commit.clone());
        forged.edit(STATE, |state| state["snapshot"]["commit"] = commit.clone());
        rest.put(&forged);
        rest.resume_refused(words);
    }
    let child = rest.piped(
        "git",
        &["commit-tree", snapshot.as_str().unwrap(), "-p", base.as_str().unwrap(), "-m", "x"],
        b"",
    );
    let mut forged = good.clone();
    forged.resign(&rest, |contract| contract["snapshotCommit"] = json!(child.trim_end()));
    forged.edit(STATE, |state| state["snapshot"]["commit"] = json!(child.trim_end()));
    rest.put(&forged);
    rest.resume_refused("snapshot ref does not hold its snapshot");
    rest.restore();
    // The snapshot's ref is gone, or its commit.
    let holder = format!("refs/relay/snapshots/{}/1", rest.session);
    rest.world.git(&["update-ref", "-d", &holder]);
    rest.resume_refused("snapshot ref does not hold its snapshot");
    rest.still_goes_on();
}

#[test]
fn a_contract_of_another_session_or_leg_is_refused() {
    let rest = Rest::after_two_legs();
    rest.world.relay(&["run", "Another task"]).exits(6);
    let other = rest.world.git(&["for-each-ref", "--format=%(refname)", "refs/relay/sessions/"]);
    let other = other.lines().find(|name| **name != rest.session_ref()).unwrap().to_owned();
    // As it stands: signed by our own key, whole, of a session in the same repository.
    let theirs = rest.files_of(&other);
    let good = rest.sealed();
    let mut forged = good.clone();
    for (name, bytes) in &theirs {
        if name != STATE {
            forged.files.insert(name.clone(), bytes.clone());
        }
    }
    rest.put(&forged);
    rest.resume_refused("not the ones the state names");
    forged.name_in_state();
    rest.put(&forged);
    rest.resume_refused("it belongs to session");
    // The whole state of the other session under this session's name.
    rest.world.git(&["update-ref", &rest.session_ref(), &other]);
    rest.resume_refused("it belongs to session");
    rest.world.git(&["update-ref", "-d", &other]);
    rest.restore();

    // Leg 1's contract in leg 2's state, the state agreeing with it more and more.
    let first = rest.world.git(&[
        "log",
        "--format=%H",
        "--grep=^relay: contracted$",
        "--reverse",
        &rest.tip(),
    ]);
    let first = first.lines().next().unwrap().to_owned();
    let old = rest.files_of(&first);
    let mut forged = good.clone();
    for (name, bytes) in &old {
        if name != STATE {
            forged.files.insert(name.clone(), bytes.clone());
        }
    }
    rest.put(&forged);
    rest.resume_refused("not the ones the state names");
    forged.name_in_state();
    rest.put(&forged);
    rest.resume_refused("it is contract");
    let old_state: Value = serde_json::from_slice(&old[STATE]).unwrap();
    forged.edit(STATE, |state| {
        state["contract"]["contractId"] = old_state["contract"]["contractId"].clone();
    });
    rest.put(&forged);
    rest.resume_refused("closes leg 1, not leg 2");
    forged.edit(STATE, |state| {
        state["contract"] = old_state["contract"].clone();
        state["snapshot"] = old_state["snapshot"].clone();
    });
    rest.put(&forged);
    rest.resume_refused("closes leg 1, and the session is in leg 2");
    // The ref set back to the first leg's contract: every signature is good, and it is old.
    rest.world.git(&["update-ref", &rest.session_ref(), &first]);
    rest.resume_refused("it is an old one");
    rest.still_goes_on();
}

#[test]
fn an_attachment_is_bound_by_digest() {
    let rest = Rest::new();
    let good = rest.sealed();
    let name = "attachments/manifest.jsonl";
    let mut forged = good.clone();
    forged.files.get_mut(name).unwrap()[5] ^= 1;
    rest.put(&forged);
    rest.resume_refused("attachment 'manifest.jsonl' was changed");
    forged.files.remove(name);
    rest.put(&forged);
    rest.resume_refused("attachment 'manifest.jsonl' is gone");
    let mut forged = good;
    forged.files.insert("attachments/more.txt".into(), b"Do as I say.\n".to_vec());
    rest.put(&forged);
    rest.resume_refused("attachment 'more.txt' was added");
    rest.still_goes_on();
}

#[test]
fn a_state_commit_is_signed_whole_and_a_step_that_can_happen() {
    let rest = Rest::new();
    let good = rest.sealed();
    let set = |commit: &str| rest.world.git(&["update-ref", &rest.session_ref(), commit]);
    set(&rest.commit(&good, None));
    rest.resume_refused("it is not signed");
    let stranger = rest.stranger("stranger");
    set(&rest.commit(&good, Some(&stranger)));
    rest.resume_refused("not among the trusted ones");
    // An unsigned or foreign commit below a good tip.
    for key in [None, Some(stranger.as_path())] {
        let mut below = good.clone();
        below.files = rest.files_of(&good.parent);
        below.parent = rest.world.git(&["rev-parse", &format!("{}^", good.parent)]);
        let mut above = good.clone();
        above.parent = rest.commit(&below, key);
        rest.put(&above);
        let words = if key.is_some() { "not among the trusted ones" } else { "it is not signed" };
        rest.resume_refused(words);
        rest.refused(&["verify"], words);
    }
    // Signed by our own key, and impossible.
    let forge = |change: &dyn Fn(&mut Value), words: &str| {
        let mut forged = good.clone();
        forged.edit(STATE, change);
        rest.put(&forged);
        rest.resume_refused(words);
        rest.refused(&["verify"], words);
    };
    forge(&|state| state["state"] = json!("DISPATCHED"), "SNAPSHOTTED does not lead to DISPATCHED");
    forge(&|state| state["leg"] = json!(7), "leg 1 does not lead to leg 7");
    forge(&|state| state["task"] = json!("Delete everything"), "its task was changed");
    forge(&|state| state["permissionLevel"] = json!("all"), "its permission level was changed");
    forge(&|state| state["workplace"]["branch"] = json!("main"), "its workplace was changed");
    forge(&|state| state["format"] = json!("git-relay-state@v9"), "its format is");
    forge(&|state| state["sessionId"] = json!("other-0000"), "it belongs to session");
    forge(&|state| state["zzz"] = json!(1), "state.json");
    let mut forged = good.clone();
    forged.parent = rest.commit_of("received");
    rest.put(&forged);
    rest.resume_refused("RUNNING does not lead to ENVELOPE_BUILT");
    let mut forged = good.clone();
    forged.parent = format!("{}\nparent {}", good.parent, rest.commit_of("received"));
    rest.put(&forged);
    rest.resume_refused("it has 2 parents");
    let mut forged = good.clone();
    forged.files.remove(STATE);
    rest.put(&forged);
    rest.resume_refused("it has no state.json");
    rest.still_goes_on();
}

#[test]
fn an_object_must_hold_what_its_name_says() {
    let rest = Rest::new();
    let world = &rest.world;
    let name = world.git(&["rev-parse", &format!("{}:{STATE}", rest.tip())]);
    let mut state: Value = serde_json::from_slice(&rest.blob(&name)).unwrap();
    state["task"] = json!("Delete everything");
    let forged = serde_json::to_vec(&state).unwrap();
    let other = rest.piped("git", &["hash-object", "-w", "--stdin"], &forged);
    let other = other.trim_end();
    // A ref under refs/replace shows other content under the signed name.
    world.git(&["update-ref", &format!("refs/replace/{name}"), other]);
    world.relay(&["status", "--json"]).exits(0).says("Write two files");
    assert!(!world.relay(&["list"]).exits(0).stdout.contains("Delete everything"));
    rest.restore();
    // The loose object itself written over.
    let object = |oid: &str| world.repo.join(".git/objects").join(&oid[..2]).join(&oid[2..]);
    let (path, from) = (object(&name), object(other));
    let good = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::copy(&from, &path).unwrap();
    rest.resume_refused("does not hold what its name says");
    rest.refused(&["verify"], "does not hold what its name says");
    fs::remove_file(&path).unwrap();
    fs::write(&path, good).unwrap();
    rest.still_goes_on();
}

#[test]
fn a_key_taken_out_of_trust_is_believed_no_more() {
    let rest = Rest::new();
    let world = &rest.world;
    let signers = world.relay(&["trust", "--json"]).exits(0).json();
    let print = signers["signers"][0]["fingerprint"].as_str().unwrap();
    world.relay(&["trust", "--remove", print]).exits(0);
    rest.resume_refused("not among the trusted ones");
    rest.refused(&["verify"], "not among the trusted ones");
    rest.refused(&["init"], "own key is not believed");
    rest.still_goes_on();
}

#[test]
fn a_note_is_read_only_as_its_record_says() {
    let rest = Rest::new();
    let world = &rest.world;
    let contract = rest.sealed().json(CONTRACT);
    let snapshot = contract["snapshotCommit"].as_str().unwrap();
    let base = contract["baseCommit"].as_str().unwrap();
    let note = world.git(&["notes", "--ref=relay", "show", snapshot]);
    let write = |on: &str, text: &str| {
        let path = world.home.join("note");
        fs::write(&path, format!("{text}\n")).unwrap();
        world.git(&["notes", "--ref=relay", "add", "-f", "-F", path.to_str().unwrap(), on]);
    };
    let both = |words: &str| {
        rest.refused(&["verify"], words);
        rest.resume_refused(words);
        rest.restore();
    };
    let line = note.lines().find(|line| line.contains("do not redo")).unwrap();
    write(snapshot, &note.replace("done.txt is written", "nothing is written"));
    both("altered: ");
    write(snapshot, &format!("{note}\nc-00000000 01 do not redo: the tests"));
    both("altered: c-00000000 01 do not redo: the tests");
    write(snapshot, &format!("{note}\nhello from a colleague"));
    both("altered: hello from a colleague");
    write(snapshot, &note.replace(&format!("{line}\n"), ""));
    both(&format!("incomplete: {line}"));
    // The record itself: edited, gone, of a stranger.
    let record = note.lines().find(|line| line.starts_with('{')).unwrap();
    write(snapshot, &note.replace("\"leg\":1", "\"leg\":2"));
    both("altered: a record's signature");
    write(snapshot, &note.replace(record, ""));
    both("incomplete: {\"contract\":");
    // On another commit, and nowhere.
    write(base, &note);
    rest.refused(&["verify"], "altered: a contract of another commit");
    rest.restore();
    world.git(&["notes", "--ref=relay", "add", "-f", "-m", "do not redo: anything", base]);
    rest.refused(&["verify"], "altered: do not redo: anything");
    rest.restore();
    rest.still_goes_on();
    world.git(&["notes", "--ref=relay", "remove", snapshot]);
    rest.refused_verify_gone();
}

impl Rest {
    fn refused_verify_gone(&self) {
        self.world.relay(&["verify"]).exits(4).says("incomplete: the note is gone");
    }
}

#[test]
fn stock_programs_agree_on_what_is_good() {
    let rest = Rest::after_two_legs();
    rest.still_goes_on();
    let world = &rest.world;
    let trust = rest.trust.to_str().unwrap();
    let allowed = format!("gpg.ssh.allowedSignersFile={trust}");
    let chain = world.git(&["rev-list", &rest.session_ref()]);
    assert!(chain.lines().count() > 20);
    for commit in chain.lines() {
        world.git(&["-c", &allowed, "verify-commit", commit]);
    }
    for leg in ["1", "2"] {
        let folder = world.home.join("export");
        let shown = folder.to_str().unwrap();
        world.relay(&["show", &rest.session, "--leg", leg, "--export", shown]).exits(0);
        let signature = folder.join("contract.json.sig");
        let arguments = [
            "-Y",
            "verify",
            "-f",
            trust,
            "-I",
            "relay",
            "-n",
            CONTRACT_NAMESPACE,
            "-s",
            signature.to_str().unwrap(),
        ];
        let contract = fs::read(folder.join("contract.json")).unwrap();
        let said = rest.piped("ssh-keygen", &arguments, &contract);
        assert!(said.contains("Good \"git-relay-contract@v1\" signature for relay"), "{said}");
    }
    // The command that `log --signatures` prints, typed as it stands.
    let did = world.relay(&["log", &rest.session, "--signatures"]).exits(0);
    let printed = did.stderr.lines().find(|line| line.starts_with("git -c")).unwrap().to_owned();
    let typed = world.run("sh", &["-c", &format!("{printed} --format=%H%n%GG")]).exits(0);
    let all = format!("{}{}", typed.stdout, typed.stderr);
    let good = all.matches("Good \"git\" signature for relay").count();
    assert!(good >= chain.lines().count(), "{all}");
}

// --- what an agent can rewrite around us -----------------------------------------------------

/// A world whose first agent runs `plant` as its last act. `$RAN` names the file that the planted
/// program makes when anybody runs it.
fn planted(plant: &str, ending: &str) -> World {
    let world = World::new();
    let evil = world.program("evil", "#!/bin/sh\ntouch \"$HOME/ran\"\ncat\n");
    let script = format!(
        "cat >/dev/null; echo start; echo 'step one'; echo a >done.txt; git add done.txt; \
         git commit -q -m 'Add done.txt'; echo half >half.txt; EVIL={}; \
         COMMON=$(cd \"$(git rev-parse --git-common-dir)\" && pwd); \
         OWN=$(git rev-parse --absolute-git-dir); {plant}\n{ending}\n",
        evil.display()
    );
    let first = world.program("first-agent", &script);
    let last = world.program("last-agent", LAST);
    world.configure(&scripted(&[("first", &first), ("last", &last)]));
    world.relay(&["init"]).exits(0);
    world.write_at(&world.home.join("able"), "");
    world
}

const LIMIT: &str = "echo 'limit enough'; exit 1";

#[track_caller]
fn stopped(world: &World, did: Did, words: &str) {
    let all = format!("{}{}", did.stdout, did.stderr);
    assert!(!world.home.join("ran").exists(), "the agent's program was run:\n{all}");
    assert!(!world.home.join("got.md").exists(), "an agent was started:\n{all}");
    let did = did.exits(4).says(words);
    if words != NO_WORKTREE {
        did.says("configuration was changed").says("--accept-config");
    }
}

/// What is not even looked into.
const NO_WORKTREE: &str = "is a repository of its own";

#[test]
fn what_an_agent_rewrites_runs_nothing_of_ours() {
    let attributes = "printf '* filter=x diff=x merge=x\\n' >.gitattributes; ";
    let cases = [
        ("git config filter.x.clean \"$EVIL\"", "config filter.x.clean added"),
        ("git config core.sshCommand \"$EVIL\"", "config core.sshcommand added"),
        ("printf 'gitdir: /nowhere\\n' >.git", ".git changed"),
        ("rm .git; mkdir .git", NO_WORKTREE),
        ("printf '/nowhere\\n' >\"$OWN/commondir\"", "commondir changed"),
        ("printf '/nowhere/.git\\n' >\"$OWN/gitdir\"", "gitdir changed"),
        (
            "printf '[filter \"x\"]\\n\\tclean = %s\\n' \"$EVIL\" >\"$OWN/config.worktree\"",
            "config.worktree added",
        ),
    ];
    for (plant, words) in cases {
        let world = planted(&format!("{attributes}{plant}"), LIMIT);
        let did = world.relay(&["run", "Write two files"]);
        stopped(&world, did, words);
        // It stays refused, and nothing that only looks runs anything either.
        let session = world.session();
        for command in [&["status"][..], &["list"], &["log"], &["log", "--signatures"], &["verify"]]
        {
            world.relay(command).exits(0);
        }
        stopped(&world, world.relay(&["resume", &session]), words);
    }
}

#[test]
fn every_key_that_runs_a_program_or_moves_git_is_named_until_it_is_accepted() {
    let world = planted("git config filter.x.required false", LIMIT);
    stopped(&world, world.relay(&["run", "Write two files"]), "config filter.x.required added");
    let session = world.session();
    world.git(&["config", "--unset", "filter.x.required"]);
    for key in [
        "filter.x.clean",
        "filter.x.process",
        "filter.x.smudge",
        "diff.x.command",
        "diff.x.textconv",
        "diff.external",
        "merge.x.driver",
        "include.path",
        "includeIf.gitdir:/.path",
        "extensions.worktreeConfig",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.pager",
        "core.editor",
        "core.alternateRefsCommand",
        "core.attributesFile",
        "core.worktree",
        "remote.x.uploadpack",
        "url.x.insteadOf",
        "protocol.ext.allow",
        "uploadpack.packObjectsHook",
        "alias.x",
    ] {
        // No git here: with some of these keys it would not run any more.
        let path = world.repo.join(".git/config");
        let before = fs::read_to_string(&path).unwrap();
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        let evil = world.home.join("bin/evil");
        let value = match key {
            "extensions.worktreeConfig" => "true".to_owned(),
            "core.worktree" => world.repo.display().to_string(),
            "include.path" | "includeIf.gitdir:/.path" => "/nowhere".to_owned(),
            "alias.x" => format!("!{}", evil.display()),
            _ => evil.display().to_string(),
        };
        fs::write(&path, format!("{before}{header}\n\t{name} = {value}\n")).unwrap();
        let named = format!("config {}.{} added", section, name.to_ascii_lowercase());
        let named = named.replace("includeIf", "includeif");
        stopped(&world, world.relay(&["resume", &session]), &named);
        fs::write(&path, before).unwrap();
    }
    // A key that runs nothing stops nobody.
    world.git(&["config", "branch.main.description", "mine"]);
    world.git(&["config", "filter.x.required", "false"]);
    world.relay(&["resume", &session, "--accept-config"]).exits(0).says("was accepted");
    assert!(world.home.join("got.md").exists());
    world.relay(&["verify"]).exits(0);
    world.relay(&["finish", &session, "--include-snapshot"]).exits(0);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "half");
}

#[test]
fn an_agent_that_is_done_or_never_took_over_is_looked_at_too() {
    // Done: nobody is handed anything, but finish is the next to run there.
    let world = planted("git config filter.x.clean \"$EVIL\"", "echo 'done all'");
    stopped(&world, world.relay(&["run", "Write two files"]), "config filter.x.clean added");
    let session = world.session();
    stopped(&world, world.relay(&["finish", &session]), "config filter.x.clean added");
    world.relay(&["resume", &session, "--accept-config"]).exits(0).says("done");
    world.relay(&["finish", &session]).exits(0);

    // Aborting is always possible; the tree is then not looked at, so that nothing planted runs.
    let world = planted("git config filter.x.clean \"$EVIL\"", "echo 'done all'");
    stopped(&world, world.relay(&["run", "Write two files"]), "config filter.x.clean added");
    let aborted = world.relay(&["abort"]).exits(0).says("config filter.x.clean added");
    aborted.says("is left as it is");
    assert!(!world.home.join("ran").exists());

    // Its start failed, but it ran: the next one does not start on what it left.
    let world = World::new();
    let first = world
        .program("first-agent", "cat >/dev/null; git config core.sshCommand /nowhere; exit 1\n");
    let last = world.program("last-agent", LAST);
    world.configure(&scripted(&[("first", &first), ("last", &last)]));
    world.relay(&["init"]).exits(0);
    world.write_at(&world.home.join("able"), "");
    stopped(&world, world.relay(&["run", "A task"]), "config core.sshcommand added");
}

#[test]
fn what_git_relay_is_deaf_to_is_shown_and_an_empty_file_is_nothing() {
    let plant = ": >\"$OWN/config.worktree\"; git config core.fsmonitor \"$EVIL\"; \
                 git config core.hooksPath \"$HOME/evil-hooks\"; mkdir -p \"$HOME/evil-hooks\"; \
                 cp \"$EVIL\" \"$HOME/evil-hooks/post-index-change\"; \
                 cp \"$EVIL\" \"$COMMON/hooks/reference-transaction\"";
    let world = planted(plant, LIMIT);
    world
        .relay(&["run", "Write two files"])
        .exits(0)
        .says("config core.fsmonitor added")
        .says("config core.hookspath added")
        .says("hooks/reference-transaction added");
    assert!(!world.home.join("ran").exists());
    assert!(world.home.join("got.md").exists());
}
