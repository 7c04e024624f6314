"""A workspace with its bench, somebody's home beside it, and a Pawl that runs commands in between."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from users import User

HERE = Path(__file__).parent
DRIVER = (HERE / "driver.py").read_text()
PROBE = (HERE / "probe.py").read_text()
PYTHON = "/usr/bin/python3"


@dataclass(slots=True)
class Site:
    user: User
    folder: Path
    kind: str = "namespaces"
    """Which sandbox: namespaces, landlock, or the one that Pawl chooses."""
    view_kind: str = "overlay"
    minimum: str = "landlock"
    programs: dict = field(default_factory=dict)
    extra_readonly: tuple[str, ...] = ()
    path: str = "/usr/local/bin:/usr/bin:/bin"
    prelude: str = ""
    """Python that the driver runs first, to make the machine worse than it is."""

    def __post_init__(self) -> None:
        for name in ("workspace", "upper", "work", "merged", "home", "outside", "temporary"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.workspace / "kept.txt").write_text("kept\n")
        self.user.own(self.folder)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def upper(self) -> Path:
        return self.folder / ("upper" if self.view_kind == "overlay" else "copy")

    def view(self) -> dict[str, str]:
        if self.view_kind == "overlay":
            names = ("workspace", "upper", "work", "merged")
            return {name: str(self.folder / name) for name in names}
        copy = self.folder / "copy"
        if not copy.exists():
            subprocess.run(["cp", "-a", str(self.workspace), str(copy)], check=True)
        return {"workspace": str(self.workspace), "copy": str(copy)}

    def order(self, *argv: str, **execution) -> dict:
        options = {name: execution.pop(name, "") for name in ("cancel_on", "announce", "word")}
        return {
            "kind": self.kind,
            "minimum": self.minimum,
            "programs": self.programs,
            "view": self.view(),
            "surroundings": {"home": str(self.home), "path": self.path},
            "extra_readonly": list(self.extra_readonly),
            "execution": {"argv": argv, **execution},
            **options,
        }

    @contextlib.contextmanager
    def started(self, *orders: dict, env: dict | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A Pawl that runs these commands; its own standard error shows their output live when `announce` is set."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        env = {"TMPDIR": str(self.folder / "temporary"), **(env or {})}
        process = self.user.start_python(self.prelude + DRIVER, home=self.folder, env=env, **pipes)
        try:
            process.stdin.write(json.dumps(orders).encode() + b"\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()

    def run_all(self, *orders: dict, env: dict | None = None) -> list[dict]:
        """One Pawl runs one command after the other."""
        with self.started(*orders, env=env) as process:
            out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err.decode()
        return json.loads(out)

    def run(self, *argv: str, env: dict | None = None, **execution) -> dict:
        return self.run_all(self.order(*argv, **execution), env=env)[0]

    def shell_all(self, *scripts: str, **execution) -> list[dict]:
        return self.run_all(*[self.order("sh", "-c", script, **execution) for script in scripts])

    def shell(self, script: str, **execution) -> dict:
        return self.run("sh", "-c", script, **execution)

    def probe(self, *attempts: tuple, env: dict | None = None, **execution) -> list:
        """What each attempt met inside."""
        answer = self.run(PYTHON, "-I", "-c", PROBE, json.dumps(attempts), env=env, **execution)
        assert answer.get("code") == 0, answer
        return json.loads(answer["stdout"]["text"])

    def probe_bare(self, *attempts: tuple, env: dict | None = None) -> list:
        """The same attempts without a sandbox: what shows that a probe can tell."""
        words = self.user.words([PYTHON, "-I", "-c", PROBE, json.dumps(attempts)])
        environment = self.user.environment(self.home, env)
        answer = subprocess.run(words, env=environment, cwd=self.workspace, capture_output=True, check=True)
        return json.loads(answer.stdout)


def denied(answers: list) -> bool:
    return all(isinstance(answer, str) and answer.startswith("denied") for answer in answers)


def until(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Waits for a condition; whether it came true."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        if condition():
            return True
        pause.wait(0.01)
    return bool(condition())


def processes_with(word: str) -> list[int]:
    """The processes of the whole machine whose command line holds the word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
    return found
