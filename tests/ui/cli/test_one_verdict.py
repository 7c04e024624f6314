"""Every command that promotes accepts exactly what `pawl verify` accepts of the same tree."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from ui.cli.console import Pawl, Said

pytestmark = [pytest.mark.spec("A8", "B9"), pytest.mark.timeout(180)]

RIGHT = "def after(number):\n    return number + 1\n"
TEST = """import unittest

from app import after


class Numbers(unittest.TestCase):
    def test_after(self):
        self.assertEqual(after(2), 3)
        self.assertEqual(after(5), 6)

    def test_none(self):
        self.assertEqual(after(0), 1)
"""
ALWAYS = "import unittest\n\n\nclass Always(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(1)\n"
PYTHON = {"app.py": RIGHT, "test_app.py": TEST, "test_always.py": ALWAYS, "notes.txt": "one\n"}
DOUBLE = "export const double = (number) => number * 2;\n"
WEB = {
    "web/package.json": '{"name": "web", "type": "module", "scripts": {"test": "node --test"}}\n',
    "web/double.js": DOUBLE,
    "web/double.test.js": (
        'import assert from "node:assert";\nimport test from "node:test";\nimport { double } from "./double.js";\n\n'
        'test("double", () => assert.equal(double(2), 4));\ntest("none", () => assert.equal(double(0), 0));\n'
    ),
}
SERVE = """import http.server
import sys

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
print(f"serving on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
"""
MAKE = {"Makefile": "build:\n\tgrep -q one notes.txt\n"}


@dataclass(frozen=True)
class Case:
    """A project, and what a model makes of it."""

    files: Mapping[str, str]
    path: str
    text: str
    accepted: bool = False
    by_loop: bool = True
    """Whether a loop accepts what others accept: there every test is to pass in the end, nested projects too."""


CASES = {
    "sound": Case(PYTHON, "app.py", RIGHT + "\n\ndef before(number):\n    return number - 1\n", accepted=True),
    "syntax error": Case(PYTHON, "extra.py", "def f(:\n"),
    "type error": Case(
        {**PYTHON, "user.py": "from app import after\n\nafter(1)\n"}, "app.py", f"{RIGHT}\nx: int = ''\n"
    ),
    "type error elsewhere": Case(
        {**PYTHON, "lib.py": "def one():\n    return 1\n", "user.py": "from lib import one\n\none()\n"},
        "lib.py",
        "def two():\n    return 2\n",
    ),
    "failing test": Case(PYTHON, "app.py", "def after(number):\n    return number + 2\n"),
    "test that failed before": Case(
        {**PYTHON, "app.py": "def after(number):\n    return number + 2\n"},
        "extra.py",
        "x = 1\n",
        accepted=True,
        by_loop=False,
    ),
    "failing nested project": Case({**PYTHON, **WEB}, "web/double.js", DOUBLE.replace("* 2", "* 3")),
    "nested project that failed before": Case(
        {**PYTHON, **WEB, "web/double.js": DOUBLE.replace("* 2", "* 3")},
        "extra.py",
        "x = 1\n",
        accepted=True,
        by_loop=False,
    ),
    "failing build": Case({**PYTHON, **MAKE}, "notes.txt", "two\n"),
    "server of the user's that does not start": Case(
        {**PYTHON, "serve.py": SERVE}, "serve.py", "import sys\nsys.exit(3)\n"
    ),
    "server that did not start before": Case(
        {**PYTHON, "serve.py": "import os\nraise SystemExit(os.getpid())\n"}, "extra.py", "x = 1\n", accepted=True
    ),
    "lint error": Case(PYTHON, "extra.py", "def f():\n    return undefined_name\n"),
    "broken package.json": Case({**PYTHON, **WEB}, "web/package.json", '{"name": \n'),
}
SETTINGS = """
[[verify.dev_server]]
name = "toy"
when = { files = ["serve.py"] }
words = ["python3", "-u", "serve.py", "{port}"]
port = 8123
ready = ['serving on http://127.0.0.1:(?P<port>\\d+)']
"""


class Ground:
    """Copies of a case's project, each with a Pawl of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._patched = root, monkeypatch
        settings = root / "settings.toml"
        settings.write_text(SETTINGS)
        monkeypatch.setenv("PAWL_CONFIG", str(settings))
        monkeypatch.setenv("TERM", "xterm-256color")

    def pawl(self, name: str, files: Mapping[str, str]) -> Pawl:
        workspace, state = self.root / name, self.root / f"state of {name}"
        state.mkdir(mode=0o700)
        self._patched.setenv("PAWL_STATE", str(state))
        for path, text in files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        return Pawl(workspace)

    def model(self, path: str, text: str, *, exists: bool) -> str:
        """A model that writes one file, after a look at the one that is there."""
        file = self.root / "script.jsonl"
        calls = [{"name": "file_read", "arguments": {"path": path}}] if exists else []
        calls.append({"name": "file_write", "arguments": {"path": path, "content": text}})
        delivered = json.dumps({"state": "DONE", "evidence": [f"{path} is written"], "remaining": []})
        turns = [{"answer": {"text": "", "calls": [call]}} for call in calls]
        turns += [{"answer": {"text": "Done."}}, {"answer": {"text": delivered}}]
        file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return f"scripted:{file}"


@pytest.fixture
def ground(tmp_path: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return Ground(tmp_path, monkeypatch)


def by_do(pawl: Pawl, case: Case, model: str) -> Said:
    return pawl("do", "change", case.path, "--model", model, "--approve", "never")


def by_print(pawl: Pawl, case: Case, model: str) -> Said:
    return pawl("-p", f"change {case.path}", "--model", model, "--approve", "never")


def by_loop(pawl: Pawl, case: Case, model: str) -> Said:
    tiers = ("--no-reflex", "--no-generate", "--simple", "1", "--max-iterations", "1")
    return pawl("loop", *tiers, "--model", model, f"change {case.path}")


COMMANDS: Mapping[str, Callable[[Pawl, Case, str], Said]] = {"do": by_do, "-p": by_print, "loop": by_loop}
QUICK = ("sound", "failing nested project", "server of the user's that does not start")
"""What every command is tried with in CI; the others with `do`. Of these, `do` and `verify` are in the suite."""
WHOLE = {name: [] if name in QUICK else [pytest.mark.whole] for name in CASES}


def marks(command: str, name: str) -> list[pytest.MarkDecorator]:
    if command == "do":
        return WHOLE[name]
    return [pytest.mark.whole] if name in QUICK else [pytest.mark.slow]


def rows(*commands: str) -> list[object]:
    return [
        pytest.param(command, name, marks=marks(command, name))
        for command in commands
        for name, case in CASES.items()
        if case.by_loop or command != "loop"
    ]


def stands(pawl: Pawl, case: Case) -> bool:
    path = pawl.workspace / case.path
    return path.exists() and path.read_text() == case.text


@pytest.mark.whole
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in WHOLE.items()])
def test_verify_says_what_the_table_says(ground: Ground, name: str):
    """What it found before the change is the baseline."""
    case = CASES[name]
    pawl = ground.pawl("project", case.files)
    if "before" in name:
        pawl("verify", "--set-baseline")
    (pawl.workspace / case.path).write_text(case.text)
    said = pawl("verify")
    assert (said.code == 0) is case.accepted, said


@pytest.mark.whole
@pytest.mark.parametrize(("command", "name"), rows(*COMMANDS))
def test_a_change_is_promoted_exactly_when_verify_accepts_it(ground: Ground, command: str, name: str):
    case = CASES[name]
    pawl = ground.pawl("project", case.files)
    said = COMMANDS[command](pawl, case, ground.model(case.path, case.text, exists=case.path in case.files))
    assert stands(pawl, case) is case.accepted, said
    assert (said.code == 0) is case.accepted, said


@pytest.mark.parametrize(("command", "name"), rows("approve"))
def test_what_a_user_approves_in_the_place_of_what_waits_is_verified_too(ground: Ground, command: str, name: str):
    case = CASES[name]
    pawl = ground.pawl("project", case.files)
    waits = pawl("do", "change", "harmless.txt", "--model", ground.model("harmless.txt", "x\n", exists=False))
    assert waits.code == 4, waits
    (ground.root / "edited.patch").write_text(patch_of(case))
    said = pawl("approve", "--patch", str(ground.root / "edited.patch"))
    assert stands(pawl, case) is case.accepted, said


def patch_of(case: Case) -> str:
    old = case.files.get(case.path, "").splitlines(keepends=True)
    before = f"a/{case.path}" if old else "/dev/null"
    lines = difflib.unified_diff(old, case.text.splitlines(keepends=True), before, f"b/{case.path}")
    head = f"diff --git a/{case.path} b/{case.path}\n" + ("" if old else "new file mode 100644\n")
    return head + "".join(lines)


WRONG = "def after(number):\n    return number + 2\n"
NEEDS_THE_MISTAKE = "from app import after\n\nassert after(2) == 4\n" + SERVE


@pytest.mark.whole
@pytest.mark.parametrize("files", [{}, {"serve.py": NEEDS_THE_MISTAKE}], ids=["accepted", "refused"])
def test_the_reflex_promotes_its_patch_exactly_when_verify_accepts_it(ground: Ground, files: Mapping[str, str]):
    pawl = ground.pawl("project", {**PYTHON, "app.py": WRONG, **files})
    said = pawl("fix")
    promoted = (pawl.workspace / "app.py").read_text() != WRONG
    assert (promoted, said.code == 0) == (not files, not files), said
    (pawl.workspace / "app.py").write_text(RIGHT)
    assert (pawl("verify").code == 0) is promoted
