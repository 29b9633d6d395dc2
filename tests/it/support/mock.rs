//! A model server for one agent or account: `tests/mockllm/mockllm.py`, started for one test and
//! ended with it.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mockllm/mockllm.py");

/// A running model server. It ends when this is dropped, and, should the test be killed, when its
/// standard input closes.
pub(crate) struct Mock {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Mock {
    /// Starts one that plays `steps` (or a whole script, with what it does at certain words); its files are `folder/NAME.*`. Usage stays where the knobs
    /// put it: nothing is refused unless a test says so.
    pub(crate) fn start(folder: &Path, name: &str, steps: &Value) -> Self {
        fs::create_dir_all(folder).unwrap();
        let script = folder.join(format!("{name}.script.json"));
        let log = folder.join(format!("{name}.requests.jsonl"));
        // A whole script, or its steps only.
        let whole = if steps.is_object() { steps.clone() } else { json!({ "steps": steps }) };
        fs::write(&script, whole.to_string()).unwrap();
        let mut child = Command::new("python3")
            .arg(PROGRAM)
            .args(["--port", "0", "--stdin", "--used", "0.5", "--used-step", "0", "--script"])
            .arg(&script)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join(format!("{name}.errors"))).unwrap())
            .spawn()
            .expect("python3 runs the model server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        assert!(address.starts_with("127.0.0.1:"), "the model server said: {line}");
        Self { child, address, log }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Turns knobs, see `tests/mockllm/README.md`.
    pub(crate) fn set(&self, knobs: &Value) {
        self.ask("POST", "/__mock/set", &knobs.to_string());
    }

    /// A knob or counter as it stands.
    pub(crate) fn state(&self, name: &str) -> Value {
        self.ask("GET", "/__mock/state", "")[name].clone()
    }

    /// How many requests were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.state("refused").as_u64().expect("a counter")
    }

    /// The text of every turn of the job so far, refused ones too: all that the agent sent.
    pub(crate) fn turns(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|entry| entry["main"] == true)
            .map(|entry| entry["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The text of the last turn: every answer of every tool stands in it.
    #[track_caller]
    pub(crate) fn last(&self) -> String {
        self.turns().pop().expect("the agent asked its model at least once")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: mock\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        serde_json::from_str(body).unwrap_or(Value::Null)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
