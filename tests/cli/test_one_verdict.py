"""Every command that promotes accepts exactly what `pawl verify` accepts of the same tree."""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli.console import Pawl, Said

pytestmark = [pytest.mark.spec("A8", "B9"), pytest.mark.timeout(180)]

RIGHT = "def after(number):\n    return number + 1\n"
TEST = """import unittest

from app import after


class Numbers(unittest.TestCase):
    def test_after(self):
        self.assertEqual(after(2), 3)
"""
PYTHON = {"app.py": RIGHT, "test_app.py": TEST, "notes.txt": "one\n"}
DOUBLE = "export const double = (number) => number * 2;\n"
WEB = {
    "web/package.json": '{"name": "web", "type": "module", "scripts": {"test": "node --test"}}\n',
    "web/double.js": DOUBLE,
    "web/double.test.js": (
        'import assert from "node:assert";\nimport test from "node:test";\nimport { double } from "./double.js";\n\n'
        'test("double", () => assert.equal(double(2), 4));\n'
    ),
}
SERVE = """import http.server
import sys

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
print(f"serving on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
"""
MAKE = {"Makefile": "build:\n\tgrep -q one notes.txt\n"}
FLASK = {
    "requirements.txt": "flask\n",
    "flask/__init__.py": "class Flask:\n    def __init__(self, name):\n        self.name = name\n",
    "flask/__main__.py": (
        "import importlib, sys, http.server\n"
        'importlib.import_module(sys.argv[sys.argv.index("--app") + 1].split(":")[0])\n'
        'port = int(sys.argv[sys.argv.index("--port") + 1])\n'
        'server = http.server.HTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler)\n'
        'print(f" * Running on http://127.0.0.1:{port}", flush=True)\nserver.serve_forever()\n'
    ),
    "site.cfg": "colour=red\n",
    "shop.py": 'from flask import Flask\n\ncolour = open("site.cfg").read().split("=")[1]\napp = Flask(__name__)\n',
}
"""A stand-in for Flask, started as Flask is."""


@dataclass(frozen=True)
class Case:
    """A project, and what a model makes of it."""

    files: Mapping[str, str]
    path: str
    text: str
    accepted: bool = False
    words: tuple[str, ...] = field(default=())
    """Given to every command."""


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
        {**PYTHON, "app.py": "def after(number):\n    return number + 2\n"}, "extra.py", "x = 1\n", accepted=True
    ),
    "failing nested project": Case({**PYTHON, **WEB}, "web/double.js", DOUBLE.replace("* 2", "* 3")),
    "nested project that failed before": Case(
        {**PYTHON, **WEB, "web/double.js": DOUBLE.replace("* 2", "* 3")}, "extra.py", "x = 1\n", accepted=True
    ),
    "failing build": Case({**PYTHON, **MAKE}, "notes.txt", "two\n"),
    "server of the user's that does not start": Case(
        {**PYTHON, "serve.py": SERVE}, "serve.py", "import sys\nsys.exit(3)\n"
    ),
    "flask that does not start": Case({**PYTHON, **FLASK}, "site.cfg", "red\n"),
    "server that did not start before": Case(
        {**PYTHON, "serve.py": "import os\nraise SystemExit(os.getpid())\n"}, "extra.py", "x = 1\n", accepted=True
    ),
    "lint error": Case(PYTHON, "extra.py", "def f():\n    return undefined_name\n"),
    "broken package.json": Case({**PYTHON, **WEB}, "web/package.json", '{"name": \n'),
    "runner missing": Case(
        {
            "package.json": '{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "^3"}}\n',
            "a.js": "let a = 1;\n",
        },
        "a.js",
        "let a = 2;\n",
        accepted=True,
    ),
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

    def __init__(self, case: Case, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case, self.root, self._patched = case, root, monkeypatch
        settings = root / "settings.toml"
        settings.write_text(SETTINGS)
        monkeypatch.setenv("PAWL_CONFIG", str(settings))

    def pawl(self, name: str) -> Pawl:
        workspace, state = self.root / name, self.root / f"{name} state"
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir(mode=0o700)
        self._patched.setenv("PAWL_STATE", str(state))
        for path, text in self.case.files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        return Pawl(workspace)

    def script(self, path: str, text: str) -> str:
        file = self.root / "script.jsonl"
        call = {"name": "file_write", "arguments": {"path": path, "content": text}}
        turns = [{"answer": {"text": "", "calls": [call]}}, {"answer": {"text": "Done."}}]
        file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return f"scripted:{file}"

    def stands(self, pawl: Pawl) -> bool:
        path = pawl.workspace / self.case.path
        return path.exists() and path.read_text() == self.case.text


def verified(ground: Ground) -> bool:
    """What `pawl verify` says of the tree with the change, where what it found before is the baseline."""
    pawl = ground.pawl("verify")
    pawl("verify", "--set-baseline")
    path = pawl.workspace / ground.case.path
    path.write_text(ground.case.text)
    return pawl("verify").code in (0, 3)


def by_do(ground: Ground) -> tuple[bool, Said]:
    pawl = ground.pawl("do")
    model = ground.script(ground.case.path, ground.case.text)
    return_ = pawl("do", "change", ground.case.path, "--model", model, "--approve", "never")
    return ground.stands(pawl), return_


def by_print(ground: Ground) -> tuple[bool, Said]:
    pawl = ground.pawl("print")
    model = ground.script(ground.case.path, ground.case.text)
    said = pawl("-p", f"change {ground.case.path}", "--model", model, "--approve", "never")
    return ground.stands(pawl), said


def by_loop(ground: Ground) -> tuple[bool, Said]:
    pawl = ground.pawl("loop")
    model = ground.script(ground.case.path, ground.case.text)
    said = pawl(
        "loop", "--no-reflex", "--no-generate", "--simple", "1", "--max-iterations", "1", "--model", model, "change it"
    )
    return ground.stands(pawl), said


def by_approval(ground: Ground) -> tuple[bool, Said]:
    """A harmless change waits; what is approved in its place is the user's own edit of it."""
    pawl = ground.pawl("approve")
    model = ground.script("harmless.txt", "x\n")
    waits = pawl("do", "change", "harmless.txt", "--model", model)
    assert waits.code == 4, waits
    old = ground.case.files.get(ground.case.path, "").splitlines(keepends=True)
    lines = difflib.unified_diff(
        old,
        ground.case.text.splitlines(keepends=True),
        f"a/{ground.case.path}" if old else "/dev/null",
        f"b/{ground.case.path}",
    )
    head = f"diff --git a/{ground.case.path} b/{ground.case.path}\n" + ("" if old else "new file mode 100644\n")
    (ground.root / "edited.patch").write_text(head + "".join(lines))
    said = pawl("approve", "--patch", str(ground.root / "edited.patch"))
    return ground.stands(pawl), said


COMMANDS: Mapping[str, Callable[[Ground], tuple[bool, Said]]] = {
    "do": by_do,
    "-p": by_print,
    "loop": by_loop,
    "approve": by_approval,
}


@pytest.fixture
def ground(
    request: pytest.FixtureRequest, tmp_path: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Ground:
    monkeypatch.setenv("TERM", "xterm-256color")
    return Ground(CASES[request.param], tmp_path, monkeypatch)


@pytest.mark.parametrize("ground", CASES, indirect=True)
def test_a_change_is_promoted_exactly_when_verify_accepts_it(ground: Ground):
    assert verified(ground) is ground.case.accepted
    wrong = {
        name: said
        for name, command in COMMANDS.items()
        if (done := command(ground))[0] is not ground.case.accepted
        for said in done[1:]
    }
    assert wrong == {}
