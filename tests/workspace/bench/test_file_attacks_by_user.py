"""The attacks on files and paths, made by root and by an ordinary user through a bench's own files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from users import NAMES, become
from world import lay, snapshot

pytestmark = pytest.mark.hostile

DRIVER = """
import json, os, sys
from pathlib import Path
from pawl.core.errors import PawlError
from pawl.settings.guardrails import preset
from pawl.sandbox.visibility import Surroundings
from pawl.sandbox.choice import ChosenSandbox
from pawl.store import Store
from pawl.workspace.bench import Bench

folder = Path(sys.argv[1])
sandbox = ChosenSandbox(Surroundings(home=str(folder / "home")))
blobs = Store.open(folder / "state").blobs
said = {}
with Bench.create(folder / "workspace", folder / "benches", sandbox, blobs, preset("standard")) as bench:
    for action, path in json.loads(sys.argv[2]):
        try:
            bench.files.write(path, b"PWN") if action == "write" else bench.files.read(path)
            said[action + " " + path] = "done"
        except (PawlError, OSError) as error:
            said[action + " " + path] = type(error).__name__
print(json.dumps(said))
"""

REFUSED = [
    ("write", "../outside/new.txt"),
    ("write", "/etc/cron.d/x"),
    ("write", "~/.bashrc"),
    ("write", "file:///etc/passwd"),
    ("write", "notes"),
    ("write", "build/new"),
    ("read", "shadow"),
    ("read", "pipe"),
    ("read", "a/../../outside/secret.txt"),
    ("write", ""),
    ("write", "."),
    ("write", "nul\x00name"),
    ("write", "x" * 5000),
    ("write", ".git/hooks/pre-commit"),
    ("write", ".GIT/config"),
    ("write", ".env"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.attack("A01", "A02", "A04", "A05", "A06", "A08", "A09", "A10", "A11", "A12")
@pytest.mark.spec("A5", "A15", "F4")
def test_no_path_leads_out_whoever_asks(name: str):
    user = become(name)
    with user.folder() as folder:
        lay(folder, {"workspace/plain.txt": b"plain\n", "outside/secret.txt": b"secret\n", "home/": None})
        lay(folder, {"workspace/notes": "../outside/secret.txt", "workspace/build": str(folder / "outside")})
        lay(folder, {"workspace/shadow": "/etc/shadow", "workspace/.git/": None})
        os.mkfifo(folder / "workspace" / "pipe")
        os.link(folder / "outside" / "secret.txt", folder / "workspace" / "linked.txt")
        user.own(folder)
        before = {part: snapshot(folder / part) for part in ("workspace", "outside", "home")}
        orders = json.dumps([*REFUSED, ("write", "linked.txt"), ("write", "fine.txt")])
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        process = user.start_python(DRIVER, str(folder), orders, home=folder, **pipes)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err.decode()
        said = json.loads(out)
        assert {key for key, outcome in said.items() if outcome == "done"} <= {"write linked.txt", "write fine.txt"}
        assert said["write fine.txt"] == "done"
        assert {part: snapshot(folder / part) for part in before} == before
        assert Path("/etc/cron.d/x").exists() is False
