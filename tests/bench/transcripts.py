"""Long sessions of both agents, made of records as the real ones write them.

    tests/bench/transcripts.py claude|codex MEGABYTES FILE CWD [SESSION-ID]

Nothing in them is random: the same call gives the same file.
"""

import base64
import hashlib
import json
import random
import sys
import uuid

PROMPTS = [
    "Move the billing code to the new ledger. Do not touch the files below vendor/.",
    "Keep the old endpoints working until the clients are moved.",
    "Use the existing retry helper, never a new dependency.",
]
PLAN = ["Read the old billing code", "Write the ledger", "Move the callers", "Delete the old code"]
SOURCE = '''\
    /// Posts one entry; `amount` is in cents, as "EUR 12.30" is 1230.
    pub fn post(&mut self, account: &str, amount: i64) -> Result<Entry, Error> {
        let entry = Entry { account: account.to_owned(), amount, at: self.clock.now() };
        if self.entries.iter().any(|known| known.id == entry.id) {
\t\treturn Err(Error::Twice { id: entry.id, path: "ledger\\\\entries.db" });
        }
        self.entries.push(entry.clone());
        Ok(entry)
    }
'''


class Writer:
    """Writes records until the file is big enough."""

    def __init__(self, path, megabytes, seed):
        self.file = open(path, "w", encoding="utf-8")
        self.most = megabytes * 10**6
        self.size = 0
        self.random = random.Random(seed)
        self.second = 0

    def time(self):
        self.second += 3
        hour, rest = divmod(self.second, 3600)
        day, hour = divmod(hour, 24)
        return f"2026-11-{1 + day % 28:02}T{hour:02}:{rest // 60:02}:{rest % 60:02}.123Z"

    def line(self, record):
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.file.write(text)
        self.size += len(text.encode())

    def is_full(self):
        return self.size >= self.most

    def id(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def source(self, number, lines):
        many = SOURCE * (lines // 9 + 1)
        return "".join(f"{at:6}\t{line}\n" for at, line in
                       enumerate(many.splitlines()[:lines], number))

    def image(self, size):
        return base64.b64encode(self.random.randbytes(size)).decode()

    def log(self, lines):
        words = ["test ledger::posts_once", "running 12 tests", "warning: unused variable: `größe`",
                 "   Compiling ledger v0.1.0 (/home/dev/shop/ledger)", "\x1b[32mok\x1b[0m"]
        return "\n".join(f"{self.random.choice(words)} {at}" for at in range(lines))


class Claude(Writer):
    def __init__(self, path, megabytes, cwd, session):
        super().__init__(path, megabytes, 1)
        self.common = {"isSidechain": False, "userType": "external", "entrypoint": "cli",
                       "cwd": cwd, "sessionId": session, "version": "2.1.332",
                       "gitBranch": "main"}
        self.last = None

    def message(self, kind, message, parent=None, **more):
        record = {"parentUuid": parent or self.last, "isSidechain": False, "type": kind,
                  "message": message, "uuid": self.id(), "timestamp": self.time(), **more}
        record.update(self.common)
        self.last = record["uuid"]
        self.line(record)
        return self.last

    def prompt(self, text, **more):
        self.message("user", {"role": "user", "content": text}, promptSource="typed", **more)

    def says(self, block, message_id, stop="tool_use"):
        usage = {"input_tokens": 5, "cache_creation_input_tokens": 812, "output_tokens": 214,
                 "cache_read_input_tokens": 91233, "service_tier": "standard"}
        return self.message("assistant", {
            "model": "claude-opus-4-5", "id": message_id, "type": "message", "role": "assistant",
            "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }, requestId="req_" + message_id)

    def calls(self, calls):
        """One answer with calls of tools, each with its result: `(name, input, text, detail)`."""
        answer = f"msg_{self.random.getrandbits(64):016x}"
        made = []
        for name, given, *_ in calls:
            call = f"toolu_{self.random.getrandbits(80):020x}"
            block = {"type": "tool_use", "id": call, "name": name, "input": given}
            made.append((call, self.says(block, answer)))
        for (call, parent), (_, _, content, detail, *code) in zip(made, calls):
            block = {"tool_use_id": call, "type": "tool_result", "content": content,
                     "is_error": bool(code)}
            self.message("user", {"role": "user", "content": [block]}, parent=parent,
                         toolUseResult=detail, sourceToolAssistantUUID=parent)

    def shell(self, command, output, code=0):
        detail = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        if code:
            return ("Bash", {"command": command}, f"Exit code {code}\n{output}",
                    f"Error: Exit code {code}\n{output}", code)
        return ("Bash", {"command": command, "description": "Run it"}, output, detail)

    def read(self, path, lines):
        text = self.source(1, lines)
        return ("Read", {"file_path": path}, text,
                {"type": "text", "file": {"filePath": path, "content": text, "numLines": lines}})

    def write(self, path, lines):
        text = SOURCE * (lines // 9 + 1)
        patch = [{"oldStart": 1, "oldLines": 6, "newStart": 1, "newLines": 8,
                  "lines": [" " + line for line in SOURCE.splitlines()]}]
        return ("Edit", {"file_path": path, "old_string": SOURCE, "new_string": SOURCE + "\n"},
                f"The file {path} has been updated.",
                {"filePath": path, "oldString": SOURCE, "newString": SOURCE, "originalFile": text,
                 "structuredPatch": patch, "userModified": False})

    def plan(self, done):
        todos = [{"content": item, "activeForm": item,
                  "status": "completed" if at < done else "pending"}
                 for at, item in enumerate(PLAN)]
        return ("TodoWrite", {"todos": todos}, "Todos have been modified successfully.",
                {"oldTodos": todos, "newTodos": todos})

    def snapshot(self):
        backups = {f"src/module_{at}.rs": {"backupFileName": f"{at:016x}@v2", "version": 2,
                                           "backupTime": self.time()} for at in range(120)}
        self.line({"type": "file-history-snapshot", "messageId": self.id(),
                   "isSnapshotUpdate": False,
                   "snapshot": {"messageId": self.id(), "trackedFileBackups": backups}})

    def compaction(self):
        before = self.last
        self.last = None
        self.line({"parentUuid": None, "logicalParentUuid": before, "isSidechain": False,
                   "type": "system", "subtype": "compact_boundary", "uuid": (boundary := self.id()),
                   "content": "Conversation compacted", "isMeta": False, "timestamp": self.time(),
                   "compactMetadata": {"trigger": "auto", "preTokens": 155116}, **self.common})
        self.last = boundary
        self.prompt("This session is being continued from a previous conversation. " + "The ledger "
                    "posts once; the callers in src/module_*.rs are half moved. " * 40,
                    isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def write_all(self):
        cwd = self.common["cwd"]
        self.snapshot()
        self.prompt(PROMPTS[0])
        self.calls([self.plan(0)])
        turn = 0
        while not self.is_full():
            turn += 1
            path = f"{cwd}/src/module_{turn % 40}.rs"
            self.says({"type": "text", "text": f"Step {turn}: I look at {path} first."},
                      f"msg_t{turn}")
            self.calls([self.read(path, 20 + turn * 37 % 400), self.read(path + ".md", 20),
                        self.shell(f"grep -rn post {cwd}/src | head -{turn}", self.log(turn * 13 % 120))])
            self.calls([self.write(path, 20 + turn * 53 % 500)])
            failed = turn % 7 == 0
            self.calls([self.shell("cargo test --workspace", self.log(turn * 17 % 200), 101 * failed)])
            if turn % 30 == 0:
                self.calls([("Read", {"file_path": f"{cwd}/shot.png"},
                             [{"type": "image", "source": {"type": "base64", "media_type":
                                                           "image/png", "data": self.image(250_000)}}],
                             {"type": "image", "file": {"base64": self.image(250_000)}})])
            if turn % 12 == 0:
                self.snapshot()
            if turn % 200 == 0:
                self.compaction()
                self.prompt(PROMPTS[1 + turn // 200 % 2])
        self.calls([self.plan(2)])
        self.says({"type": "text", "text": "The callers come next."}, "msg_end", "end_turn")


class Codex(Writer):
    def __init__(self, path, megabytes, cwd, session):
        super().__init__(path, megabytes, 2)
        self.cwd, self.session, self.turn = cwd, session, 0

    def record(self, kind, payload):
        self.line({"timestamp": self.time(), "type": kind, "payload": payload})

    def item(self, kind, **item):
        self.record("event_msg", {"type": "item_completed", "thread_id": self.session,
                                  "turn_id": f"turn-{self.turn}", "item": {"type": kind, **item}})

    def call(self, name, arguments, output, item=None):
        call = f"call_{self.random.getrandbits(96):024x}"
        self.record("response_item", {"type": "function_call", "name": name,
                                      "arguments": json.dumps(arguments), "call_id": call})
        if item is not None:
            self.item("CommandExecution", id=call, **item)
        self.record("response_item", {"type": "function_call_output", "call_id": call,
                                      "output": output})
        self.record("event_msg", {"type": "token_count", "info": {"total_token_usage": {
            "input_tokens": 91233, "cached_input_tokens": 80000, "output_tokens": 214}},
            "rate_limits": {"primary": {"used_percent": 41.0, "window_minutes": 300,
                                        "resets_at": 1796004532}}})

    def shell(self, command, output, code=0):
        text = (f"Chunk ID: a1b2c3\nWall time: 0.1 seconds\nProcess exited with code {code}\n"
                f"Original token count: 99\nOutput:\n{output}")
        self.call("exec_command", {"cmd": command}, text, {
            "command": ["/bin/bash", "-lc", command], "cwd": f"file://{self.cwd}",
            "exit_code": code, "status": "completed" if code == 0 else "failed",
            "aggregated_output": output})

    def patch(self, path):
        call = f"call_{self.random.getrandbits(96):024x}"
        body = "".join(f" {line}\n" for line in SOURCE.splitlines())
        text = f"*** Begin Patch\n*** Update File: {path}\n@@\n{body}+// more\n*** End Patch"
        self.record("response_item", {"type": "custom_tool_call", "status": "completed",
                                      "call_id": call, "name": "apply_patch", "input": text})
        self.item("FileChange", id=call, status="completed", changes={f"{self.cwd}/{path}": {
            "type": "update", "unified_diff": text, "move_path": None}})
        self.record("response_item", {
            "type": "custom_tool_call_output", "call_id": call,
            "output": f"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\nM {path}\n"})

    def plan(self, done):
        plan = [{"step": item, "status": "completed" if at < done else "pending"}
                for at, item in enumerate(PLAN)]
        self.call("update_plan", {"plan": plan}, "Plan updated")

    def says(self, role, text, kind):
        self.record("response_item", {"type": "message", "role": role, "content": [
            {"type": "output_text" if role == "assistant" else "input_text", "text": text}]})
        self.item(kind, id=self.id(), content=[{"type": "Text", "text": text}])

    def write_all(self):
        self.record("session_meta", {"id": self.session, "cwd": self.cwd, "originator": "codex_exec",
                                     "cli_version": "0.171.0", "base_instructions":
                                     {"text": "You are a coding agent. " * 600}})
        self.record("turn_context", {"cwd": self.cwd, "model": "gpt-5.5"})
        self.says("user", PROMPTS[0], "UserMessage")
        self.plan(0)
        while not self.is_full():
            self.turn += 1
            path = f"src/module_{self.turn % 40}.rs"
            self.says("assistant", f"Step {self.turn}: I look at {path} first.", "AgentMessage")
            self.record("response_item", {"type": "reasoning", "summary": [],
                                          "encrypted_content": self.image(3000)})
            self.shell(f"sed -n 1,{20 + self.turn * 37 % 400}p {path}",
                       self.source(1, 20 + self.turn * 37 % 400))
            self.patch(path)
            self.shell("cargo test --workspace", self.log(self.turn * 17 % 200), 101 if self.turn % 7 == 0 else 0)
            if self.turn % 30 == 0:
                self.record("response_item", {"type": "message", "role": "user", "content": [
                    {"type": "input_image",
                     "image_url": "data:image/png;base64," + self.image(250_000)}]})
            if self.turn % 200 == 0:
                history = [{"type": "message", "role": "user",
                            "content": [{"type": "input_text", "text": PROMPTS[0]}]}]
                self.record("compacted", {"message": "", "replacement_history": history * 30 + [
                    {"type": "message", "role": "user", "content": [
                        {"type": "input_text", "text": "The ledger posts once. " * 40}]}]})
                self.says("user", PROMPTS[1 + self.turn // 200 % 2], "UserMessage")
        self.plan(2)
        self.says("assistant", "The callers come next.", "AgentMessage")
        self.record("event_msg", {"type": "task_complete",
                                  "last_agent_message": "The callers come next."})


def make(agent, megabytes, path, cwd, session=None):
    session = session or str(uuid.UUID(bytes=hashlib.sha256(agent.encode()).digest()[:16]))
    writer = {"claude": Claude, "codex": Codex}[agent](path, megabytes, str(cwd), session)
    writer.write_all()
    writer.file.close()
    return session


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), sys.argv[3], *sys.argv[4:])
