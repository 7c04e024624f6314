"""Using Pawl as a person or a program does: in processes, with pipes or with a terminal of their own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nursery
from nursery import PATIENCE

PAWL = (sys.executable, "-m", "pawl")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Said:
    """How a call ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


_MANY = """
import io, json, sys
from pawl import __main__
ended = []
for words in json.load(sys.stdin):
    sys.argv = ["pawl", *words]
    sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(3))
    code = __main__.main()
    ended.append([code, *(stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))])
json.dump(ended, sys.__stdout__)
"""


class Pawl:
    """Calls Pawl in a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def __call__(self, *words: str | bytes, stdin: bytes = b"", cwd: Path | None = None) -> Said:
        done = self.raw(*words, stdin=stdin, cwd=cwd)
        return Said(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def raw(self, *words: str | bytes, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.CompletedProcess(words, *nursery.run(words, cwd or self.workspace, stdin))

    def json(self, *words: str, stdin: bytes = b"", code: int = 0) -> dict:
        """The one JSON object that the call writes; nothing else may stand on stdout."""
        said = self(*words, "--json", stdin=stdin) if "--" not in words else self("--json", *words, stdin=stdin)
        assert said.code == code, said
        assert said.out.count("\n") == 1 and said.out.endswith("\n"), said.out
        body = json.loads(said.out)
        json.dumps(body, ensure_ascii=False).encode()  # no half characters
        return body

    def many(self, calls: Sequence[Sequence[str]]) -> list[Said]:
        """Many calls one after the other in one process, because most of a call is the start of Python."""
        done = subprocess.run(
            [sys.executable, "-c", _MANY],
            input=json.dumps([list(words) for words in calls]),
            capture_output=True,
            text=True,
            cwd=self.workspace,
            timeout=PATIENCE,
            check=False,
        )
        assert done.stderr == ""
        return [Said(*ended) for ended in json.loads(done.stdout)]

    def applied(self, script: str) -> int:
        """Runs a shell script and promotes what it changed; the entry's number."""
        return self.json("run", "--apply", "--", "sh", "-c", script)["promoted"]

    @contextmanager
    def started(self, *words: str, until: str) -> Iterator[subprocess.Popen]:
        """Pawl under way, started as a shell starts it, after the command's output held `until`."""
        process = subprocess.Popen(
            [*PAWL, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.workspace,
            bufsize=0,
        )
        try:
            seen = b""
            while until.encode() not in seen:
                more = process.stdout.read(4096)
                assert more, (seen, process.stderr.read())
                seen += more
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def terminal(self, *words: str, columns: int = 80, stdout: int | None = None) -> Iterator[Terminal]:
        """Pawl in a terminal of its own; its output may go elsewhere."""
        made = Terminal(words, self.workspace, columns, stdout)
        try:
            yield made
        finally:
            made.close()


class Terminal:
    """A terminal with Pawl in it."""

    def __init__(self, words: Sequence[str], cwd: Path, columns: int, stdout: int | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = nursery.started(words, cwd, (slave, slave if stdout is None else stdout, slave), leads=True)
        os.close(slave)
        self._seen = b""
        self._read_to = 0

    @property
    def text(self) -> str:
        """All that was shown, without colours and with plain line ends."""
        return _COLOUR.sub("", self.raw).replace("\r\n", "\n")

    @property
    def raw(self) -> str:
        return self._seen.decode("utf-8", "replace")

    def expect(self, text: str) -> None:
        """Waits until the text is shown, after what was waited for before."""
        deadline = time.monotonic() + PATIENCE
        while (found := self._seen.find(text.encode(), self._read_to)) < 0:
            assert time.monotonic() < deadline, f"{text!r} never came: {self.text}"
            assert self._more(deadline), f"{text!r} did not come: {self.text}"
        self._read_to = found + len(text.encode())

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def finish(self) -> int:
        """Waits for the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._more(deadline):
            assert time.monotonic() < deadline, self.text
        return self.process.wait(PATIENCE)

    def hang_up(self) -> int:
        """Closes the terminal under Pawl."""
        os.close(self._master)
        self._master = -1
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a terminal says that nobody has it open any more
            return False
        self._seen += data
        return bool(data)
