"""A limit given is a limit kept: whatever a run waits for when its time is up, it ends and says so."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from models.provider_socket import Connection, chunk, head, provider
from ui.cli import mcp_servers
from ui.cli.console import Pawl, Said
from ui.cli.projects import SETTINGS, Project

HANGS = "import time\n\ndef test_hangs():\n    time.sleep(900)\n"
GREETS = {"greet.py": "def greet():\n    return 'hi'\n"}
GREETED = "from greet import greet\nimport time\n\ndef test_greet():\n    "
PATCH = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'hi'", "new": "'hello'"}}
SLOW = {"name": "run_command", "arguments": {"command": "sleep 900"}}


def turn(text: str, *calls: dict[str, object], delay_ms: int = 0) -> dict[str, object]:
    return {"answer": {"text": text, "calls": list(calls)}, "delay_ms": delay_ms}


TIMED = os.environ.get("PAWL_TIMED", "")  # noqa: TID251
"""A file for the seconds of each. With it, on a quiet machine, nothing may end later than `LATE` after its limit."""
LATE, LATE_UNDER_LOAD = 2, 90
"""What hangs does so for 900 s: a limit that is not kept is seen on a busy machine too."""


class Timed:
    """Pawl, which is to end soon after its limit; the time of its start counts."""

    def __init__(self, pawl: Pawl, name: str) -> None:
        self.pawl, self.name = pawl, name

    def __call__(self, *words: str, stdin: bytes = b"", limit: float) -> Said:
        # What starts all calls of a process of tests is not waited for.
        self.pawl("--version")
        began = time.monotonic()
        said = self.pawl(*words, stdin=stdin)
        late = time.monotonic() - began - limit
        if TIMED:
            with open(TIMED, "a", encoding="utf-8") as file:
                file.write(f"{late:6.2f} s after {limit:g} s: {self.name}\n")
        assert late < (LATE if TIMED else LATE_UNDER_LOAD), (self.name, late, said)
        return said


MODEL = "MODEL"
CLEAN = ("do", "--seconds", "2", "--approve", "never", "clean up greet.py", MODEL)
LOOP = ("loop", "--max-minutes", "0.034", "--no-generate", "--simple", "1")
COMMANDS = {
    "do": CLEAN,
    "-p": ("-p", *CLEAN[1:]),
    "loop": (*LOOP, "--no-reflex", "greet.py", "clean it up", MODEL),
    "session": ("session", MODEL),
    "ask": ("ask", "--seconds", "2", "what does greet do?", MODEL),
    "fix": ("fix", "--seconds", "2", "--no-escalate"),
    "verify": ("verify", "--seconds", "2"),
    "approve": ("approve", "--seconds", "2", "--yes"),
    "promote": ("promote", "--seconds", "2", "1"),
}
WORKS = ("do", "-p", "loop", "session")
LATER = {"approve": ("do", "clean up greet.py", MODEL), "promote": ("do", "--approve", "never", *CLEAN[-2:])}
"""The run whose change is promoted, before there is anything to wait for."""
PROVED = {"test_greet.py": f"{GREETED}assert greet()\n"}
LOCKED = {
    "package.json": '{"name": "app", "dependencies": {"left": "1.0.0"}, "scripts": {"test": "node --test"}}',
    "package-lock.json": '{"name": "app", "lockfileVersion": 3, "packages": {"": {"dependencies": {"left": "1.0.0"}}, '
    '"node_modules/left": {"version": "1.0.0", "resolved": "https://localhost/left.tgz"}}}',
}
SLOW_SERVER = """
[permissions]
allow = ["mcp__slow__*"]
[mcp.servers.slow]
command = "python3"
args = ["server.py", "hangs"]
timeout = 600000
"""
HOOKS = '[[hooks.{}]]\nhooks = [{{ type = "command", command = "sleep 900" }}]\n'


@dataclass(frozen=True)
class Phase:
    """Something that does not end, and the commands that come to it."""

    commands: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[dict[str, object], ...] = (turn("", PATCH), *[turn("done")] * 6)
    more: tuple[str, ...] = ()
    settings: str = ""
    stub: str = ""
    """A program of the user's that sleeps."""
    agreed: str = ""
    """The MCP server to whose definitions the user has agreed."""


PHASES = {
    "baseline": Phase((*WORKS, "fix", "verify"), {"test_greet.py": HANGS}),
    "model": Phase((*WORKS, "ask"), PROVED, (turn("so", delay_ms=900_000),)),
    "model's command": Phase(WORKS, PROVED, (turn("", PATCH), turn("", SLOW), turn("done"))),
    "check": Phase(
        (*WORKS, "approve", "promote"),
        {"test_greet.py": f"{GREETED}time.sleep(0 if greet() == 'hi' else 900)\n"},
    ),
    "build": Phase(
        (*WORKS, "verify", "approve", "promote"),
        {"package.json": '{"name": "app", "scripts": {"build": "sleep 900"}}', **PROVED},
    ),
    "dev server": Phase(
        (*WORKS, "verify", "approve", "promote"),
        {"manage.py": "import time\n\ntime.sleep(900)\n", "requirements.txt": "django\n"},
    ),
    "installation": Phase(("do", "-p", "fix", "verify"), LOCKED, more=("--install",), stub="npm"),
    "language server": Phase(
        ("do", "-p", "session"),
        {"go.mod": "module greet\n\ngo 1.19\n", "greet.go": "package greet\n"},
        (turn("", {"name": "lsp_diagnostics", "arguments": {"paths": ["greet.go"]}}), turn("done")),
        stub="gopls",
    ),
    "service": Phase(
        ("do", "session", "verify"),
        PROVED,
        settings='[[verify.service]]\nname = "db"\nstart = "sleep 900"\nready = "sleep 900"\nseconds = 600\n',
    ),
    "MCP server": Phase(
        WORKS,
        {**PROVED, "server.py": mcp_servers.SOURCE},
        (turn("", {"name": "mcp__slow__echo", "arguments": {"text": "hello"}}), turn("done")),
        settings=SLOW_SERVER,
        agreed="slow",
    ),
    "test command": Phase(("do", "-p", "fix", "verify"), PROVED, more=("--test", "sleep 900")),
    "hook at the start": Phase((*WORKS, "ask", "approve"), PROVED, settings=HOOKS.format("SessionStart")),
    "hook at a call": Phase(WORKS, PROVED, settings=HOOKS.format("PreToolUse")),
    "hook at the end": Phase(("do", "-p"), PROVED, settings=HOOKS.format("Stop")),
}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("phase", "command"), [(name, one) for name, phase in PHASES.items() for one in phase.commands]
)
@pytest.mark.spec("A11", "G3")
def test_a_command_ends_when_its_time_is_up_whatever_it_waits_for(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, command: str
):
    plays = PHASES[phase]
    pawl = project({**SETTINGS, **GREETS, **({} if command in LATER else plays.files)})
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in plays.turns))
    (tmp_path / "settings.toml").touch()
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))

    def play(words: Sequence[str], stdin: bytes = b"", timed: Timed | None = None) -> Said:
        given = (("--model", f"scripted:{script}") if word is MODEL else (word,) for word in words)
        asked = [word for each in given for word in each]
        return pawl(*asked, stdin=stdin) if timed is None else timed(*asked, stdin=stdin, limit=2)

    if command in LATER:
        assert play(LATER[command]).code in (4, 6)
        for name, text in plays.files.items():
            (pawl.workspace / name).write_text(text)
    (tmp_path / "settings.toml").write_text(f"[budget]\nseconds = 2\n{plays.settings}")
    if plays.stub:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / plays.stub).write_text("#!/bin/sh\nexec sleep 900\n")
        (tmp_path / "bin" / plays.stub).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    if plays.agreed:
        assert pawl("mcp", "trust", plays.agreed, "--yes").code == 0
    stdin = b"clean up greet.py\n/quit\n" if command == "session" else b""
    said = play((*COMMANDS[command], *plays.more), stdin, Timed(pawl, f"{command}, {phase}"))
    assert said.code == (0 if command == "session" else 53), said
    assert re.search("[Tt]he time (is|was) up|time ran out|no time was left|minutes are over", said.out + said.err), (
        said
    )
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


BUGGY = {**SETTINGS, "app.py": "def after(number):\n    return number + 2\n"}
ASKS = "    assert after(2) == 3\n    assert after(5) == 6\n"
AFTER = f"import time\n\nfrom app import after\n\n\ndef test_after():\n{ASKS}"
MENDED_HANGS = AFTER.replace(ASKS, f"    time.sleep(900 if after(0) != 2 else 0)\n{ASKS}")
BUILDS = '{"name": "app", "scripts": {"build": "sleep 900"}}'
MENDS = "make the tests pass"
SEARCHES = "the reflex looks for a patch"
REPAIRS = {
    "the search of do": (
        ("do", "--seconds", "3", "--approve", "never", MENDS),
        {"test_app.py": MENDED_HANGS},
        SEARCHES,
    ),
    "the search of -p": (("-p", "--seconds", "3", "--approve", "never", MENDS), {"test_app.py": MENDED_HANGS}, ""),
    "the search of a session": (("session",), {"test_app.py": MENDED_HANGS}, SEARCHES),
    "the search of fix": (
        ("fix", "--seconds", "3", "--no-escalate"),
        {"test_app.py": MENDED_HANGS},
        "\nsearching for a patch\n",
    ),
    "the build after fix": (
        ("fix", "--seconds", "8", "--no-escalate"),
        {"test_app.py": AFTER, "package.json": BUILDS},
        "\nfixed app.py:2",
    ),
}
"""The words, the files, and what is said once the phase has begun; -p says nothing of it."""


@pytest.mark.whole
@pytest.mark.parametrize("phase", REPAIRS)
@pytest.mark.spec("A11", "B3")
def test_a_repair_ends_when_its_time_is_up(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
):
    words, files, begun = REPAIRS[phase]
    pawl = project({**BUGGY, **files})
    (tmp_path / "settings.toml").write_text("[budget]\nseconds = 3\n" if phase.endswith("session") else "")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    script = tmp_path / "model.jsonl"
    # On a quick machine the share of the search ends before the run's seconds do: then the model is waited for.
    script.write_text(json.dumps({**turn("nobody asks", delay_ms=900_000), "times": 0}) + "\n")
    model = () if words[0] == "fix" else ("--model", f"scripted:{script}")
    stdin = f"{MENDS}\n/quit\n".encode() if phase.endswith("session") else b""
    said = Timed(pawl, phase)(*words, *model, stdin=stdin, limit=8 if "8" in words else 3)
    assert said.code == (0 if phase.endswith("session") else 53), said
    # Where -p has a verdict to tell, only its exit code says why it ended.
    told = said.out + said.err
    assert begun in told, said
    assert re.search("[Tt]he time (is|was) up|time ran out|no time was left", told) or "-p" in phase, said
    assert (pawl.workspace / "app.py").read_text() == BUGGY["app.py"]


OTHERS = {
    "the delivery check": (
        PROVED,
        ("do", "--seconds", "12", "--approve", "never", "greet with hello"),
        [turn("", PATCH), turn("done"), turn("{}", delay_ms=900_000)],
        "whether the request is fulfilled could not be checked",
    ),
    "a command of the user's": (
        {"wait.py": "import time\ntime.sleep(900)\n"},
        ("do", "--seconds", "2", "--approve", "never", "run wait.py"),
        [],
        "no model was asked",
    ),
    **{
        f"the tests before the reflex of {words[0]}": ({"test_greet.py": HANGS}, words, [turn("nobody asks")], begun)
        for words, begun in (
            (("do", "--seconds", "2", "--approve", "never", "make the tests pass"), SEARCHES),
            (("-p", "--seconds", "2", "--approve", "never", "make the tests pass"), ""),
            (LOOP, "no model was asked"),
        )
    },
    "the models after a fix": (
        {"test_greet.py": f"{GREETED}assert greet() == 'a' * 7 + greet.__name__\n"},
        ("fix", "--seconds", "8", "--escalate"),
        [turn("so", delay_ms=900_000)],
        "works on what is left",
    ),
}
"""What stands there, the words, what the model says, and what is said once the phase has begun; -p says nothing."""


@pytest.mark.whole
@pytest.mark.parametrize("phase", OTHERS)
@pytest.mark.spec("A11")
def test_a_run_ends_when_its_time_is_up(project: Project, tmp_path: Path, phase: str):
    files, words, turns, begun = OTHERS[phase]
    pawl = project({**SETTINGS, **GREETS, **files})
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in turns))
    limit = next((float(one) for one in words[2:3] if one.isdigit()), 60 * 0.034)
    said = Timed(pawl, phase)(*words, "--model", f"scripted:{script}", limit=limit)
    assert begun in said.out + said.err, said
    # What was made and could not be compared with the request any more is unverified.
    assert said.code == 53 or (said.code == 6 and phase == "the delivery check"), said
    assert re.search("the time is up|no time was left|minutes", said.out + said.err)
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
@pytest.mark.spec("A11", "G1")
def test_tests_that_are_stopped_by_their_own_limit_leave_a_change_unverified(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({**SETTINGS, **GREETS, "test_greet.py": f"{GREETED}time.sleep(0 if greet() == 'hi' else 900)\n"})
    (tmp_path / "settings.toml").write_text("[verify]\nseconds = 3\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in (turn("", PATCH), *[turn("done")] * 6)))
    said = pawl("do", "--approve", "never", "clean up greet.py", "--model", f"scripted:{script}")
    assert "verdict   failed" not in said.out, said
    assert said.code in (6, 53), said
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
def test_the_word_on_an_earlier_attempt_is_not_said_of_the_last(project: Project, tmp_path: Path):
    slow = f"{GREETED}assert greet() != 'bad'\n    time.sleep(900 if greet() == 'hello' else 0)\n"
    pawl = project({**SETTINGS, **GREETS, "test_greet.py": slow})
    worse = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'hi'", "new": "'bad'"}}
    better = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'bad'", "new": "'hello'"}}
    script = tmp_path / "model.jsonl"
    turns = [turn("", worse), turn("done"), turn("", better), turn("now it is")]
    script.write_text("".join(json.dumps(one) + "\n" for one in turns))
    words = ("do", "--json", "--seconds", "20", "--approve", "never", "clean up greet.py")
    said = pawl(*words, "--model", f"scripted:{script}")
    report = json.loads(said.out)
    assert said.code == 53, said
    assert (report["verdict"], report["refused"], report["after"]) == ("unverified", [], None)
    assert report["unproved"] == ["not verified: the time is up: 20 s"]
    assert [(one["state"], one["entry"]) for one in report["task_states"]] == [("failed", report["kept"])]


def _without_end(connection: Connection) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
    connection.send(chunk(f"data: {json.dumps(piece)}\n\n".encode()))
    # Words would come to the limit of their number first.
    while True:
        connection.send(chunk(b": still there\n\n"))


@pytest.mark.whole
@pytest.mark.spec("A11")
@pytest.mark.parametrize("command", ["do", "ask", "loop", "session"])
def test_an_answer_without_end_is_left_when_the_time_is_up(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    pawl = project({**SETTINGS, **GREETS, **PROVED})
    with provider(*[[head(), _without_end]] * 20) as playing:
        served = f'[providers.here]\nwire = "openai"\nbase_url = "{playing.url}/v1"\n'
        (tmp_path / "settings.toml").write_text(f"[budget]\nseconds = 2\n{served}")
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
        words = [word for one in COMMANDS[command] for word in (("--model", "here/m") if one is MODEL else (one,))]
        stdin = b"clean up greet.py\n/quit\n" if command == "session" else b""
        said = Timed(pawl, f"{command}, an answer without end")(*words, stdin=stdin, limit=2)
    assert said.code == (0 if command == "session" else 53), said
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
@pytest.mark.spec("A11")
@pytest.mark.parametrize("phase", ["baseline", "model", "check", "hook at a call"])
def test_a_job_of_the_queue_ends_when_its_time_is_up(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
):
    plays = PHASES[phase]
    pawl = project({**SETTINGS, **GREETS, **plays.files})
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in plays.turns))
    (tmp_path / "settings.toml").write_text(f"[budget]\nseconds = 2\n{plays.settings}")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    assert pawl("queue", "add", "--approve", "never", "clean up greet.py", "--model", f"scripted:{script}").code == 0
    said = Timed(pawl, f"queue run, {phase}")("queue", "run", limit=2)
    assert said.code != 0, said
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]
