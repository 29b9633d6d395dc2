#!/usr/bin/env python3
"""mockllm: a loopback stand-in for the model APIs that coding agents call.

It lets a *real* agent CLI (Claude Code, Codex, Gemini CLI, OpenCode, ...) run a
tiny scripted job offline: write a plan, write a file, commit it, say goodbye.
It sends the quota headers of the real services and, when told to, the error a
real service sends once a usage limit is reached.  Standard library only.

Wire formats served on one port:

    POST /v1/messages                      Anthropic Messages   (SSE or JSON)
    POST /v1/messages/count_tokens
    POST [/v1]/responses                   OpenAI Responses     (SSE or JSON)
    POST [/v1]/chat/completions            OpenAI Chat          (SSE or JSON)
    POST /v1beta/models/M:generateContent, :streamGenerateContent, :countTokens
    POST /api/chat, /api/generate, /api/show; GET /api/tags, /api/version   Ollama
    GET  [/v1]/models
    GET  /api/oauth/usage, /wham/usage, /api/codex/usage   usage endpoints

Control (same port):

    GET  /__mock/state          knobs and counters
    POST /__mock/set            JSON object of knobs, e.g. {"used": 0.97}
    GET  /__mock/requests       everything received so far (secrets removed)
    GET  /__mock/main           the same, only the requests that offer tools
    POST /__mock/stop           end the server

What is logged for each request (`--log`, one JSON object a line, before it is
answered): n, time, method, path, headers (secrets removed), account, main (it
offers tools: a turn of the job, not a title or a probe), text (all text the
agent sent, whole, newline-joined), body (the whole body).

A script is {"steps": [...], "when": [{"has": "words", "steps": [...]}]}: the first
entry of "when" whose words stand in the request's text wins, else "steps".  Steps:

    {"plan": [{"text": T, "status": "pending|in_progress|completed"}]}
                                 with "why": R, the reason for it, where the tool takes one
    {"write": {"path": P, "content": C}}
    {"edit": {"path": P, "old": A, "new": B}}
    {"shell": COMMAND}           with "background": true it is left running
    {"call": {"tool": N, "input": {…}}}   a tool by its name, with just these arguments
    {"calls": [STEP, STEP]}      several tool calls in one answer
    {"text": T}                  an answer without a tool call: ends the turn
    any of them with             "say": T (words before the call), "delay": seconds,
                                 "set": {knob: value} (changed once it is served)

The place in the script is counted from the tool results and the text-only answers
in the request, so the server keeps no session.  A step whose tool the agent does
not offer is left out.  See README.md beside this file.
"""

import argparse
import json
import os
import re
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

DEFAULT_STEPS = [
    {
        "say": "I will plan the work, write the file and commit it.",
        "plan": [
            {"text": "Write greeting.txt", "status": "in_progress"},
            {"text": "Commit it", "status": "pending"},
        ],
    },
    {"write": {"path": "greeting.txt", "content": "hello from the mock model\n"}},
    {"shell": "git add greeting.txt && git commit -q -m 'Add greeting' && git log --oneline -1"},
    {
        "plan": [
            {"text": "Write greeting.txt", "status": "completed"},
            {"text": "Commit it", "status": "completed"},
        ]
    },
    {"text": "Done: greeting.txt is written and committed."},
]

# Tool names by purpose, over the agents seen so far.  First match wins.
SHELL_TOOLS = [
    "Bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command",
    "bash", "execute_command", "run_commands", "developer__shell", "run_terminal_cmd",
]
WRITE_TOOLS = [
    "Write", "apply_patch", "write_file", "write", "create", "create_file",
    "write_to_file", "editor", "developer__text_editor", "Create",
]
EDIT_TOOLS = ["Edit", "edit", "replace", "str_replace", "replace_in_file", "editor"]
PLAN_TOOLS = ["TodoWrite", "update_plan", "write_todos", "todowrite", "todo_write", "TaskCreate", "Checklist"]


class Knobs:
    """Everything a test may change while the server runs."""

    def __init__(self, args):
        self.used = args.used                # share of the 5 h window used, 0..1
        self.used_step = args.used_step      # added after each main turn
        self.weekly = args.weekly            # share of the 7 d window used
        self.resets_in = args.resets_in      # seconds until the short window resets
        self.limit_after = args.limit_after  # serve N main turns, then refuse (-1: never)
        self.limit_kind = args.limit_kind    # quota | rate | overload | auth | context
        self.limit = False                   # refuse right now
        self.headers = True                  # send quota headers at all
        self.delay = args.delay              # seconds before each answer
        self.text_agent = args.text_agent    # the agent offers no tools (Aider): text steps, one a turn
        self.root = args.root                # makes relative paths absolute
        self.plan_type = "plus"
        self.accounts = dict(pair.split("=", 1) for pair in args.account)   # name -> token
        self.exhausted = []                  # names of accounts that are refused
        self.steps = DEFAULT_STEPS
        self.when = []
        if args.script:
            with open(args.script, encoding="utf-8") as handle:
                script = json.load(handle)
            self.steps = script.get("steps", DEFAULT_STEPS)
            self.when = script.get("when", [])
        self.turns = 0                       # main turns served (counter)
        self.refused = 0                     # requests refused (counter)


class Mock:
    def __init__(self, args):
        self.knobs = Knobs(args)
        self.lock = threading.Lock()
        self.requests = []
        self.log = open(args.log, "a", encoding="utf-8") if args.log else None

    def record(self, entry):
        with self.lock:
            entry["n"] = len(self.requests)
            self.requests.append(entry)
            if self.log:
                self.log.write(json.dumps(entry) + "\n")
                self.log.flush()

    def refusing(self, account=None):
        k = self.knobs
        return (k.limit or (k.limit_after >= 0 and k.turns >= k.limit_after) or k.used >= 1.0
                or account in k.exhausted)

    def account(self, headers):
        sent = " ".join(headers.get(h) or "" for h in ("authorization", "x-api-key")).split()
        return next((name for name, token in self.knobs.accounts.items() if token in sent), None)

    def served(self):
        with self.lock:
            self.knobs.turns += 1
            self.knobs.used = round(self.knobs.used + self.knobs.used_step, 6)


# --------------------------------------------------------------------------
# The scripted conversation, independent of wire format
# --------------------------------------------------------------------------

class Tools:
    """The tools one request offers: name -> JSON schema (None for free-form)."""

    def __init__(self, schemas, freeform=()):
        self.schemas = schemas
        self.freeform = set(freeform)

    def pick(self, names):
        for name in names:
            for offered in list(self.schemas) + list(self.freeform):
                if offered == name or offered.endswith("__" + name):
                    return offered
        return None

    def fill(self, name, wanted):
        """Arguments for tool `name`: the wanted ones it knows, plus stand-ins
        for anything else its schema requires."""
        schema = self.schemas.get(name) or {}
        props = schema.get("properties") or {}
        args = {k: v for k, v in wanted.items() if not props or k in props}
        for key in schema.get("required") or []:
            if key not in args:
                args[key] = sample(props.get(key) or {}, key)
        return args


def sample(schema, key=""):
    """A small value that fits a JSON schema (enough for the schemas agents use)."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for combo in ("anyOf", "oneOf", "allOf"):
        if schema.get(combo):
            return sample(schema[combo][0], key)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "string")
    kind = (kind or ("object" if "properties" in schema else "string")).lower()
    if kind == "object":
        props = schema.get("properties") or {}
        return {k: sample(props.get(k) or {}, k) for k in schema.get("required") or props}
    if kind == "array":
        return []
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "boolean":
        return False
    if key == "next_speaker":
        return "user"
    return "mock"


def absolute(path, root):
    return path if path.startswith("/") or not root else root.rstrip("/") + "/" + path


def shell_call(tools, command, background=False):
    name = tools.pick(SHELL_TOOLS)
    if not name:
        return None
    props = (tools.schemas.get(name) or {}).get("properties") or {}
    wanted = {"description": "scripted step", "is_background": background, "requires_approval": False}
    if background:
        wanted.update(run_in_background=True, yield_time_ms=300)
    for key in ("command", "cmd", "commands"):
        if key in props:
            is_list = (props[key].get("type") or "") == "array"
            if key == "commands":
                wanted[key] = [command]
            else:
                wanted[key] = ["bash", "-lc", command] if is_list else command
    if "command" not in wanted and "cmd" not in wanted and "commands" not in wanted:
        wanted["command"] = command
    return name, tools.fill(name, wanted)


def write_call(tools, path, content, root):
    name = tools.pick(WRITE_TOOLS)
    if not name:
        quoted = content.replace("'", "'\\''")
        return shell_call(tools, f"printf '%s' '{quoted}' > {path}")
    if name.endswith("apply_patch"):
        body = "".join("+" + line + "\n" for line in content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"
        if name in tools.freeform:
            return name, patch
        props = (tools.schemas.get(name) or {}).get("properties") or {}
        key = next((k for k in ("input", "patch", "patchText", "patch_text") if k in props), "input")
        return name, tools.fill(name, {key: patch})
    full = absolute(path, root)
    wanted = {
        "file_path": full, "filePath": full, "filepath": full, "path": full, "absolutePath": full,
        "content": content, "file_text": content, "contents": content, "new_text": content,
        "command": "create",
    }
    return name, tools.fill(name, wanted)


def plan_calls(tools, items, first, why=None):
    """The calls that show this plan: one for a list tool, several for Claude's task tools."""
    name = tools.pick(PLAN_TOOLS)
    if not name:
        return []
    if name == "TaskCreate":
        calls = []
        for number, item in enumerate(items, 1):
            if first:
                calls.append((name, tools.fill(name, {
                    "subject": item["text"], "description": item["text"], "activeForm": item["text"]})))
            if item["status"] != "pending" and tools.pick(["TaskUpdate"]):
                calls.append(("TaskUpdate", {"taskId": str(number), "status": item["status"]}))
        return calls
    props = (tools.schemas.get(name) or {}).get("properties") or {}
    if "plan" in props:
        plan = {"plan": [{"step": i["text"], "status": i["status"]} for i in items]}
        return [(name, tools.fill(name, {**plan, "explanation": why} if why else plan))]
    key = "checklist" if "checklist" in props else "todos"
    item_schema = ((props.get(key) or {}).get("items") or {}).get("properties") or {}
    todos = []
    for number, item in enumerate(items, 1):
        full = {
            "content": item["text"], "description": item["text"], "status": item["status"],
            "activeForm": item["text"], "id": str(number), "priority": "medium", "title": item["text"],
        }
        todos.append({k: v for k, v in full.items() if not item_schema or k in item_schema})
    if (props.get(key) or {}).get("type") == "string":   # a markdown list
        marks = {"completed": "x", "in_progress": "-", "pending": " "}
        return [(name, tools.fill(
            name, {key: "\n".join(f"- [{marks[i['status']]}] {i['text']}" for i in items)}))]
    return [(name, tools.fill(name, {key: todos}))]


def edit_call(tools, edit, root):
    """A change to a file that is there: apply_patch, an edit tool, or sed."""
    if (tools.pick(WRITE_TOOLS) or "").endswith("apply_patch"):
        name = tools.pick(WRITE_TOOLS)
        minus = "".join("-" + line + "\n" for line in edit["old"].splitlines())
        plus = "".join("+" + line + "\n" for line in edit["new"].splitlines())
        patch = f"*** Begin Patch\n*** Update File: {edit['path']}\n@@\n{minus}{plus}*** End Patch\n"
        return (name, patch) if name in tools.freeform else (name, tools.fill(name, {"input": patch}))
    name = tools.pick(EDIT_TOOLS)
    if not name:
        return None
    full = absolute(edit["path"], root)
    return name, tools.fill(name, {
        "file_path": full, "filePath": full, "path": full, "old_string": edit["old"], "oldString": edit["old"],
        "new_string": edit["new"], "newString": edit["new"], "old_str": edit["old"], "new_str": edit["new"],
        "command": "str_replace", "replace_all": False})


def calls_of(step, tools, root, first_plan):
    """The tool calls of one step, as a list of turns (each a list of calls)."""
    if "plan" in step:
        return [[c] for c in plan_calls(tools, step["plan"], first_plan, step.get("why"))]
    if "write" in step:
        calls = [write_call(tools, step["write"]["path"], step["write"]["content"], root)]
    elif "edit" in step:
        calls = [edit_call(tools, step["edit"], root)]
    elif "shell" in step:
        calls = [shell_call(tools, step["shell"], step.get("background", False))]
    elif "call" in step:
        name = tools.pick([step["call"]["tool"]])
        calls = [(name, step["call"]["input"])] if name else []
    elif "calls" in step:
        calls = [call for one in step["calls"] for turn in calls_of(one, tools, root, first_plan) for call in turn]
    else:
        calls = []
    calls = [c for c in calls if c]
    return [calls] if calls else []


def plan_turn(mock, tools, results, said, root_hint, text):
    """The next turn: (text or None, [(tool name, arguments)], step).

    `results` is the number of tool results in the request, `said` the texts of the
    assistant's earlier messages."""
    k = mock.knobs
    root = k.root or root_hint
    steps = next((w["steps"] for w in k.when if w["has"] in text), k.steps)
    turns, planned = [], False
    for step in steps:
        groups = calls_of(step, tools, root, not planned)
        planned = planned or "plan" in step
        words = step.get("text") or step.get("say")
        for number, calls in enumerate(groups):
            turns.append((words if number == 0 else None, calls, step))
        if not groups and "text" in step:
            turns.append((words, [], step))
    if not turns:
        return "mock: nothing scripted", [], {}
    said = list(said)
    for words, calls, step in turns:
        if calls and results >= len(calls):
            results -= len(calls)
        elif not calls and words in said:
            said.remove(words)
        else:
            return words, calls, step
    return turns[-1]


ROOT_PATTERNS = [
    re.compile(r"(?:[Pp]rimary working directory|[Ww]orking directory|working directory is|<cwd>|"
               r"workspace is|Current working directory|currently working in the directory)"
               r"[^/\n<.]{0,20}(/[^\s<>\"'`,\\]+)"),
]


def find_root(text):
    for pattern in ROOT_PATTERNS:
        found = pattern.search(text)
        if found:
            return found.group(1).rstrip(".")
    return None


# --------------------------------------------------------------------------
# Quota headers and refusals
# --------------------------------------------------------------------------

def resets_at(mock):
    return int(time.time()) + mock.knobs.resets_in


def quota_headers(mock, family, refused=False):
    k = mock.knobs
    if not k.headers:
        return {}
    now = int(time.time())
    week = now + 4 * 86400
    used = 1.0 if refused and k.limit_kind == "quota" else min(k.used, 1.0)
    if family == "anthropic" and refused and k.limit_kind != "quota":
        return {"request-id": "req_mock_" + uuid.uuid4().hex[:12]}
    if family == "anthropic":
        status = "rejected" if used >= 1 else "allowed_warning" if used >= 0.75 else "allowed"
        head = {
            "anthropic-ratelimit-unified-status": status,
            "anthropic-ratelimit-unified-reset": str(resets_at(mock)),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": status,
            "anthropic-ratelimit-unified-5h-reset": str(resets_at(mock)),
            "anthropic-ratelimit-unified-5h-utilization": f"{used:.4f}",
            "anthropic-ratelimit-unified-7d-status": "allowed",
            "anthropic-ratelimit-unified-7d-reset": str(week),
            "anthropic-ratelimit-unified-7d-utilization": f"{k.weekly:.4f}",
            "anthropic-ratelimit-unified-fallback-percentage": "0.5",
            "anthropic-ratelimit-unified-overage-status": "rejected",
            "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": str(max(0, int(50 * (1 - used)))),
            "anthropic-ratelimit-requests-reset": iso(resets_at(mock)),
            "anthropic-ratelimit-tokens-limit": "80000",
            "anthropic-ratelimit-tokens-remaining": str(max(0, int(80000 * (1 - used)))),
            "anthropic-ratelimit-tokens-reset": iso(resets_at(mock)),
            "request-id": "req_mock_" + uuid.uuid4().hex[:12],
        }
        if used >= 0.75:
            head["anthropic-ratelimit-unified-5h-surpassed-threshold"] = "0.75" if used < 0.9 else "0.9"
        return head
    if family == "responses":
        return {
            "x-codex-primary-used-percent": f"{used * 100:.1f}",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(resets_at(mock)),
            "x-codex-secondary-used-percent": f"{k.weekly * 100:.1f}",
            "x-codex-secondary-window-minutes": "10080",
            "x-codex-secondary-reset-at": str(week),
            "x-codex-credits-has-credits": "false",
            "x-codex-credits-unlimited": "false",
            "x-codex-plan-type": k.plan_type,
            **openai_headers(used),
        }
    if family == "chat":
        return openai_headers(used)
    return {}


def openai_headers(used):
    return {
        "x-ratelimit-limit-requests": "1000",
        "x-ratelimit-remaining-requests": str(max(0, int(1000 * (1 - used)))),
        "x-ratelimit-reset-requests": "3m0s",
        "x-ratelimit-limit-tokens": "100000",
        "x-ratelimit-remaining-tokens": str(max(0, int(100000 * (1 - used)))),
        "x-ratelimit-reset-tokens": "6m0s",
        "x-request-id": "req_mock_" + uuid.uuid4().hex[:12],
    }


def iso(epoch):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def refusal(mock, family):
    """(status, extra headers, body) of the error a real service sends."""
    k = mock.knobs
    kind = k.limit_kind
    retry = {"quota": k.resets_in, "rate": 2, "overload": 2}.get(kind)
    head = quota_headers(mock, family, refused=True)
    if retry is not None:
        head["retry-after"] = str(retry)
    if family == "anthropic":
        table = {
            "quota": (429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
            "rate": (429, "rate_limit_error", "This request would exceed the rate limit for your organization of 50 requests per minute."),
            "overload": (529, "overloaded_error", "Overloaded"),
            "auth": (401, "authentication_error", "invalid x-api-key"),
            "context": (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        }
        status, name, text = table[kind]
        head["x-should-retry"] = "false" if kind in ("quota", "auth", "context") else "true"
        return status, head, {"type": "error", "error": {"type": name, "message": text},
                              "request_id": "req_mock_" + uuid.uuid4().hex[:12]}
    if family == "responses" and kind == "quota":
        head["x-codex-active-limit"] = "codex"
        return 429, head, {"error": {
            "type": "usage_limit_reached", "message": "The usage limit has been reached",
            "plan_type": k.plan_type, "resets_at": resets_at(mock), "resets_in_seconds": k.resets_in}}
    if family in ("responses", "chat"):
        table = {
            "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."),
            "rate": (429, "rate_limit_exceeded", "rate_limit_exceeded", "Rate limit reached for requests. Please try again in 2s."),
            "overload": (503, "server_error", "server_is_overloaded", "The server is currently overloaded."),
            "auth": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
            "context": (400, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model."),
        }
        status, name, code, text = table[kind]
        return status, head, {"error": {"message": text, "type": name, "param": None, "code": code}}
    if family == "gemini":
        table = {
            "quota": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
            "rate": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
            "overload": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            "auth": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "context": (400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed."),
        }
        status, name, text = table[kind]
        details = []
        if status == 429:
            period = "PerDay" if kind == "quota" else "PerMinute"
            details = [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": f"GenerateRequests{period}PerProjectPerModel-FreeTier",
                    "quotaDimensions": {"location": "global", "model": "gemini-2.5-pro"},
                    "quotaValue": "100"}]},
                {"@type": "type.googleapis.com/google.rpc.Help", "links": [{
                    "description": "Learn more about Gemini API quotas",
                    "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry}s"},
            ]
        return status, head, {"error": {"code": status, "message": text, "status": name, "details": details}}
    return 429, head, {"error": "you have reached your hourly usage limit, please upgrade to continue"}


# --------------------------------------------------------------------------
# HTTP
# --------------------------------------------------------------------------

def all_text(body):
    """Every text in a request that a person or a model wrote (not the tool catalogue)."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, list):
        for item in body:
            yield from all_text(item)
    elif isinstance(body, dict):
        for key in ("system", "instructions", "messages", "input", "contents", "content", "parts", "text",
                    "output", "request", "prompt"):
            if isinstance(body.get(key), (str, list, dict)):
                yield from all_text(body[key])


SECRET = {"authorization", "x-api-key", "x-goog-api-key", "cookie", "api-key", "proxy-authorization"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mock = None

    def log_message(self, *_):
        pass

    # -- plumbing ----------------------------------------------------------

    def send_json(self, status, body, headers=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def send_lines(self, chunks, headers=None, kind="text/event-stream"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        for chunk in chunks:
            data = chunk.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def body(self):
        if (self.headers.get("transfer-encoding") or "").lower() == "chunked":
            raw = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
                if size == 0:
                    self.rfile.readline()
                    break
                raw += self.rfile.read(size)
                self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        encoding = (self.headers.get("content-encoding") or "").lower()
        if encoding == "gzip":
            import gzip
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw) if raw else {}
        except ValueError:
            return {"_raw_bytes": len(raw), "_encoding": encoding}

    def note(self, body):
        self.mock.record({
            "time": round(time.time(), 3), "method": self.command, "path": self.path,
            "headers": {k.lower(): ("<removed>" if k.lower() in SECRET else v) for k, v in self.headers.items()},
            "account": self.mock.account(self.headers),
            "main": bool(isinstance(body, dict) and body.get("tools")),
            "text": "\n".join(all_text(body)) if body else "",
            "body": body,
        })

    # -- routing -----------------------------------------------------------

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        path = urlsplit(self.path).path
        mock = self.mock
        if path == "/__mock/state":
            k = dict(vars(mock.knobs))
            return self.send_json(200, k)
        if path == "/__mock/requests":
            return self.send_json(200, mock.requests)
        if path == "/__mock/main":
            return self.send_json(200, [r for r in mock.requests if r["main"]])
        self.note(None)
        if path.endswith("/models") or path == "/models":
            names = ["mock-model", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro"]
            return self.send_json(200, {"object": "list", "data": [
                {"id": n, "object": "model", "type": "model", "display_name": n, "created": 0, "owned_by": "mock"}
                for n in names]})
        if path.endswith("/responses"):
            # Codex tries a WebSocket first; 426 makes it fall back to plain HTTPS at once.
            return self.send_json(426, {"error": {"type": "upgrade_required", "message": "mock: no WebSocket here"}})
        if path == "/api/oauth/usage":
            return self.send_json(200, {
                "five_hour": {"utilization": round(mock.knobs.used * 100, 1), "resets_at": iso(resets_at(mock))},
                "seven_day": {"utilization": round(mock.knobs.weekly * 100, 1), "resets_at": iso(int(time.time()) + 4 * 86400)},
                "seven_day_opus": None, "seven_day_sonnet": None})
        if path.endswith("/wham/usage") or path.endswith("/api/codex/usage"):
            window = {"used_percent": int(mock.knobs.used * 100), "limit_window_seconds": 18000,
                      "reset_after_seconds": mock.knobs.resets_in, "reset_at": resets_at(mock)}
            return self.send_json(200, {"plan_type": mock.knobs.plan_type, "rate_limit": {
                "allowed": not mock.refusing(), "limit_reached": mock.refusing(),
                "primary_window": window, "secondary_window": None}})
        if path == "/api/tags":
            return self.send_json(200, {"models": [{"name": "mock-model:latest", "model": "mock-model:latest",
                                                    "size": 1, "digest": "0" * 64, "details": {}}]})
        if path == "/api/version":
            return self.send_json(200, {"version": "0.0.0-mock"})
        return self.send_json(404, {"error": {"type": "not_found_error", "message": "mock: no such path"}})

    def do_POST(self):
        path = urlsplit(self.path).path
        body = self.body()
        if path == "/__mock/set":
            for key, value in body.items():
                setattr(self.mock.knobs, key, value)
            return self.send_json(200, {"ok": True})
        if path == "/__mock/stop":
            self.send_json(200, {"ok": True})
            os._exit(0)
        self.note(body)
        if self.mock.knobs.delay:
            time.sleep(self.mock.knobs.delay)
        try:
            if path.endswith("/count_tokens"):
                return self.send_json(200, {"input_tokens": 100})
            if path.endswith("/messages"):
                return self.serve_anthropic(body)
            if path.endswith("/chat/completions"):
                return self.serve_chat(body)
            if path.endswith("/responses"):
                return self.serve_responses(body)
            if ":countTokens" in path:
                return self.send_json(200, {"totalTokens": 100})
            if ":generateContent" in path or ":streamGenerateContent" in path:
                return self.serve_gemini(body, "stream" in path)
            if path in ("/api/chat", "/api/generate"):
                return self.serve_ollama(body, path)
            if path == "/api/show":
                return self.send_json(200, {"capabilities": ["completion", "tools"], "model_info": {}, "details": {}})
        except BrokenPipeError:
            return None
        return self.send_json(404, {"error": {"type": "not_found_error", "message": "mock: no such path"}})

    def turn(self, tools, results, text, schema=None, said=(), whole=None):
        """Decide this turn.  Requests that offer no tools are side errands
        (titles, routing, quota probes) and never move the script on."""
        mock = self.mock
        main = bool(tools.schemas or tools.freeform)
        if not main and mock.knobs.text_agent:
            texts = [s["text"] for s in mock.knobs.steps if "text" in s] or ["mock"]
            say = texts[min(mock.knobs.turns, len(texts) - 1)]
            mock.served()
            return say, []
        if not main:
            say = json.dumps(sample(schema)) if schema else "Mock title"
            return say, []
        words, calls, step = plan_turn(mock, tools, results, said, find_root(text), whole or text)
        if step.get("delay"):
            time.sleep(step["delay"])
        mock.served()
        for key, value in (step.get("set") or {}).items():
            setattr(mock.knobs, key, value)
        return words, calls

    def refuse(self, family, main=True):
        if not (main and self.mock.refusing(self.mock.account(self.headers))):
            return False
        self.mock.knobs.refused += 1
        status, headers, body = refusal(self.mock, family)
        self.send_json(status, body, headers)
        return True

    # -- Anthropic Messages --------------------------------------------------

    def serve_anthropic(self, req):
        tools = Tools({t["name"]: t.get("input_schema") for t in req.get("tools") or [] if t.get("name")})
        if self.refuse("anthropic"):
            return
        results = sum(
            1 for m in req.get("messages") or [] if isinstance(m.get("content"), list)
            for block in m["content"] if block.get("type") == "tool_result")
        schema = ((req.get("output_config") or {}).get("format") or req.get("output_format") or {}).get("schema")
        said = [block["text"] for m in req.get("messages") or [] if m.get("role") == "assistant"
                for block in (m["content"] if isinstance(m.get("content"), list) else [{"type": "text", "text": m.get("content")}])
                if block.get("type") == "text"]
        text, calls = self.turn(tools, results, json.dumps([req.get("system"), (req.get("messages") or [])[:2]]), schema,
                                said, "\n".join(all_text(req)))
        blocks = []
        if text:
            blocks.append({"type": "text", "text": text})
        for call in calls:
            blocks.append({"type": "tool_use", "id": "toolu_mock_" + uuid.uuid4().hex[:16], "name": call[0], "input": call[1]})
        usage = {"input_tokens": 1200, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 4000, "output_tokens": 1}
        message = {"id": "msg_mock_" + uuid.uuid4().hex[:16], "type": "message", "role": "assistant",
                   "model": req.get("model") or "mock-model", "content": [], "stop_reason": None,
                   "stop_sequence": None, "usage": usage}
        stop = "tool_use" if calls else "end_turn"
        headers = quota_headers(self.mock, "anthropic")
        if not req.get("stream"):
            return self.send_json(200, {**message, "content": blocks, "stop_reason": stop,
                                        "usage": {**usage, "output_tokens": 40}}, headers)

        def events():
            yield sse("message_start", {"type": "message_start", "message": message})
            for index, block in enumerate(blocks):
                if block["type"] == "text":
                    start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
                else:
                    start = {**block, "input": {}}
                    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                yield sse("content_block_start", {"type": "content_block_start", "index": index, "content_block": start})
                yield sse("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
                yield sse("content_block_stop", {"type": "content_block_stop", "index": index})
            yield sse("message_delta", {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                                        "usage": {"output_tokens": 40}})
            yield sse("message_stop", {"type": "message_stop"})
        self.send_lines(events(), headers)

    # -- OpenAI Responses ----------------------------------------------------

    def serve_responses(self, req):
        schemas, free = {}, []
        for tool in req.get("tools") or []:
            if tool.get("type") == "function":
                schemas[tool.get("name")] = tool.get("parameters")
            elif tool.get("type") == "custom":
                free.append(tool.get("name"))
            elif tool.get("type") == "local_shell":
                schemas["local_shell"] = {"properties": {"command": {"type": "array"}}}
        tools = Tools(schemas, free)
        if self.refuse("responses"):
            return
        items = req.get("input") if isinstance(req.get("input"), list) else []
        results = sum(1 for i in items if str(i.get("type", "")).endswith("_output"))
        schema = ((req.get("text") or {}).get("format") or {}).get("schema")
        said = [part.get("text") for i in items if i.get("role") == "assistant" and isinstance(i.get("content"), list)
                for part in i["content"]]
        text, calls = self.turn(tools, results, json.dumps([req.get("instructions"), items[:4]]), schema,
                                said, "\n".join(all_text(req)))
        out = []
        if text:
            out.append({"type": "message", "id": "msg_mock_" + uuid.uuid4().hex[:12], "role": "assistant",
                        "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})
        for name, args in calls:
            common = {"id": "item_mock_" + uuid.uuid4().hex[:12], "call_id": "call_mock_" + uuid.uuid4().hex[:12], "status": "completed"}
            if name in tools.freeform:
                out.append({**common, "type": "custom_tool_call", "name": name, "input": args})
            elif name == "local_shell":
                out.append({**common, "type": "local_shell_call", "action": {"type": "exec", "command": args["command"], "env": {}}})
            else:
                out.append({**common, "type": "function_call", "name": name, "arguments": json.dumps(args)})
        response = {
            "id": "resp_mock_" + uuid.uuid4().hex[:16], "object": "response", "created_at": int(time.time()),
            "model": req.get("model") or "mock-model", "status": "in_progress", "output": [], "usage": None}
        usage = {"input_tokens": 5500, "input_tokens_details": {"cached_tokens": 4000},
                 "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 5540}
        done = {**response, "status": "completed", "output": out, "usage": usage}
        headers = quota_headers(self.mock, "responses")
        if not req.get("stream"):
            return self.send_json(200, done, headers)

        def events():
            seq = 0

            def ev(kind, **fields):
                nonlocal seq
                seq += 1
                return sse(kind, {"type": kind, "sequence_number": seq, **fields})
            yield ev("response.created", response=response)
            for index, item in enumerate(out):
                opening = {**item, "status": "in_progress"}
                if item["type"] == "message":
                    opening["content"] = []
                yield ev("response.output_item.added", output_index=index, item=opening)
                if item["type"] == "message":
                    part = item["content"][0]
                    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
                    yield ev("response.content_part.added", **where, part={**part, "text": ""})
                    yield ev("response.output_text.delta", **where, delta=part["text"])
                    yield ev("response.output_text.done", **where, text=part["text"])
                    yield ev("response.content_part.done", **where, part=part)
                elif item["type"] == "function_call":
                    where = {"item_id": item["id"], "output_index": index}
                    yield ev("response.function_call_arguments.delta", **where, delta=item["arguments"])
                    yield ev("response.function_call_arguments.done", **where, arguments=item["arguments"])
                yield ev("response.output_item.done", output_index=index, item=item)
            yield ev("response.completed", response=done)
        self.send_lines(events(), headers)

    # -- OpenAI Chat Completions ---------------------------------------------

    def serve_chat(self, req):
        tools = Tools({t["function"]["name"]: t["function"].get("parameters")
                       for t in req.get("tools") or [] if t.get("function")})
        if self.refuse("chat"):
            return
        messages = req.get("messages") or []
        results = sum(1 for m in messages if m.get("role") == "tool")
        schema = ((req.get("response_format") or {}).get("json_schema") or {}).get("schema")
        said = [m.get("content") for m in messages if m.get("role") == "assistant"]
        text, made = self.turn(tools, results, json.dumps(messages[:3]), schema, said, "\n".join(all_text(req)))
        base = {"id": "chatcmpl-mock-" + uuid.uuid4().hex[:12], "created": int(time.time()), "model": req.get("model") or "mock-model"}
        usage = {"prompt_tokens": 5500, "completion_tokens": 40, "total_tokens": 5540,
                 "prompt_tokens_details": {"cached_tokens": 4000}}
        calls = [{"id": "call_mock_" + uuid.uuid4().hex[:12], "type": "function",
                  "function": {"name": name, "arguments": json.dumps(args)}} for name, args in made]
        finish = "tool_calls" if calls else "stop"
        headers = quota_headers(self.mock, "chat")
        if not req.get("stream"):
            message = {"role": "assistant", "content": text}
            if calls:
                message["tool_calls"] = calls
            return self.send_json(200, {**base, "object": "chat.completion", "usage": usage,
                                        "choices": [{"index": 0, "message": message, "finish_reason": finish}]}, headers)

        def events():
            def chunk(delta, reason=None, **extra):
                return "data: " + json.dumps({**base, "object": "chat.completion.chunk", "choices": [
                    {"index": 0, "delta": delta, "finish_reason": reason}], **extra}) + "\n\n"
            yield chunk({"role": "assistant", "content": ""})
            if text:
                yield chunk({"content": text})
            if calls:
                yield chunk({"tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]})
            yield chunk({}, finish)
            yield "data: " + json.dumps({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}) + "\n\n"
            yield "data: [DONE]\n\n"
        self.send_lines(events(), headers)

    # -- Gemini generateContent ------------------------------------------------

    def serve_gemini(self, req, stream):
        inner = req.get("request") if "request" in req else req   # Code Assist wraps it
        wrapped = inner is not req
        schemas = {}
        for group in inner.get("tools") or []:
            for fn in group.get("functionDeclarations") or group.get("function_declarations") or []:
                schemas[fn["name"]] = fn.get("parametersJsonSchema") or fn.get("parameters")
        tools = Tools(schemas)
        config = inner.get("generationConfig") or {}
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        if self.refuse("gemini"):
            return
        contents = inner.get("contents") or []
        results = sum(1 for c in contents for p in c.get("parts") or [] if "functionResponse" in p)
        said = [p.get("text") for c in contents if c.get("role") == "model" for p in c.get("parts") or []]
        text, calls = self.turn(Tools({}) if schema else tools, results, json.dumps(contents[:2]), schema,
                                said, "\n".join(all_text(req)))
        parts = []
        if text:
            parts.append({"text": text})
        for call in calls:
            parts.append({"functionCall": {"id": "call_mock_" + uuid.uuid4().hex[:12], "name": call[0], "args": call[1]}})
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 5500, "candidatesTokenCount": 40, "totalTokenCount": 5540,
                              "cachedContentTokenCount": 4000},
            "modelVersion": "gemini-mock", "responseId": "resp-mock-" + uuid.uuid4().hex[:12]}
        if wrapped:
            answer = {"response": answer}
        if not stream:
            return self.send_json(200, answer)
        self.send_lines(["data: " + json.dumps(answer) + "\r\n\r\n"])

    # -- Ollama ------------------------------------------------------------------

    def serve_ollama(self, req, path):
        if self.refuse("ollama"):
            return
        tools = Tools({t["function"]["name"]: t["function"].get("parameters")
                       for t in req.get("tools") or [] if t.get("function")})
        results = sum(1 for m in req.get("messages") or [] if m.get("role") == "tool")
        schema = req.get("format") if isinstance(req.get("format"), dict) else None
        said = [m.get("content") for m in req.get("messages") or [] if m.get("role") == "assistant"]
        text, calls = self.turn(tools, results, json.dumps(req.get("messages") or []), schema, said)
        stats = {"done": True, "done_reason": "stop", "total_duration": 1, "prompt_eval_count": 100, "eval_count": 20}
        base = {"model": req.get("model"), "created_at": iso(int(time.time()))}
        if path == "/api/generate":
            body = {**base, "response": text or "", **stats}
        else:
            message = {"role": "assistant", "content": text or ""}
            if calls:
                message["tool_calls"] = [{"function": {"name": name, "arguments": args}} for name, args in calls]
            body = {**base, "message": message, **stats}
        if req.get("stream") is False:
            return self.send_json(200, body)
        self.send_lines([json.dumps(body) + "\n"], kind="application/x-ndjson")


def sse(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--port", type=int, default=8787, help="0 picks a free port and prints it")
    parser.add_argument("--log", help="append each request to this JSONL file")
    parser.add_argument("--script", help="JSON file with a 'steps' list (default: the built-in job)")
    parser.add_argument("--root", help="working tree of the agent, for tools that want absolute paths")
    parser.add_argument("--used", type=float, default=0.42)
    parser.add_argument("--used-step", type=float, default=0.02)
    parser.add_argument("--weekly", type=float, default=0.31)
    parser.add_argument("--resets-in", type=int, default=7200)
    parser.add_argument("--limit-after", type=int, default=-1)
    parser.add_argument("--limit-kind", default="quota", choices=["quota", "rate", "overload", "auth", "context"])
    parser.add_argument("--account", action="append", default=[], metavar="NAME=TOKEN",
                        help="name an account by its token; knob `exhausted` lists names to refuse")
    parser.add_argument("--stdin", action="store_true", help="end when stdin is closed (no server outlives its test)")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--text-agent", action="store_true", help="for agents that edit through plain text (Aider)")
    args = parser.parse_args()
    Handler.mock = Mock(args)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    print(f"mockllm listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    if args.stdin:
        def watch():
            while sys.stdin.buffer.read1(4096):
                pass
            os._exit(0)
        threading.Thread(target=watch, daemon=True).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
