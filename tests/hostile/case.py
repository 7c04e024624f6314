"""One hostile workspace under watch: Pawl is called on it in forked processes, and what must not happen is noted."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import heapq
import json
import os
import random
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nursery
from hostile import commands
from hostile.defects import DEFECTS
from hostile.partners import Other, Partner
from hostile.patience import PATIENCE, Clock, tell_where
from hostile.site import CANARY, KEY, Site, begin, shared_folder

CODES = frozenset({0, 1, 2, 3, 4, 5, 6, 41, 42, 44, 52, 53, 54, 75, 124, 127, 130, 141})
"""The exit codes that docs/commands.md has; `run` passes on those of its command."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]")
PASSED_ON = {"run": "", "diff": "err"}
"""Commands of which only this is Pawl's own: the rest is, where it is no terminal, what a program or a file said."""
PATH = "/usr/local/bin:/usr/bin:/bin"
_SUBREAPER = 36
COMPUTED: Counter[str] = Counter()
"""Seconds of a processor that each command has had in all."""
SECONDS: Counter[str] = Counter()
"""Seconds that each has taken in all."""
WAITS: list[tuple[float, float, str]] = []
"""The longest waits: seconds of a command's own until it ended or answered, those of the whole call, and its words."""

Tree = dict[bytes, tuple[int, ...] | bytes]


@dataclass(frozen=True)
class Said:
    code: int | None
    """None: it hung and was ended."""
    out: str
    err: str
    left: tuple[str, ...]
    """Processes that outlived it."""


class Ears:
    """Servers of the machine on loopback that no command may reach."""

    def __init__(self) -> None:
        self.tcp, self.udp = socket.create_server(("", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("", 0))
        self.abstract, self.named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.folder = str(shared_folder())
        self.named.bind(f"{self.folder}/socket")
        self.abstract.bind(f"\0{self.folder}")
        for each in (self.abstract, self.named):
            each.listen()
        for each in (self.tcp, self.udp, self.abstract, self.named):
            each.setblocking(False)

    @property
    def names(self) -> Mapping[str, str]:
        return {"tcp": str(self.tcp.getsockname()[1]), "udp": str(self.udp.getsockname()[1]), "ears": self.folder}

    def heard(self) -> list[str]:
        found = []
        for name, each in (("tcp", self.tcp), ("abstract", self.abstract), ("unix", self.named)):
            with contextlib.suppress(BlockingIOError):
                each.accept()[0].close()
                found.append(name)
        with contextlib.suppress(BlockingIOError):
            self.udp.recv(100)
            found.append("udp")
        return found


TELL = [False]
"""Whether all is shown that commands say."""
EARS: list[Ears] = []
"""Made once, before the first call."""


@dataclass
class Case:
    """One hostile workspace with all that is watched while commands run on it."""

    site: Site
    defect: Callable[[], None] = lambda: None
    """Puts an old defect back, in the process that is about to be Pawl."""
    problems: list[str] = field(default_factory=list)
    cwd: Path | None = None
    ears: Ears = field(default_factory=lambda: EARS[0])
    sent: str = ""
    """The requests of the last call."""
    ordinary: tuple[bytes, ...] = commands.ORDINARY
    """What may change begins with one of these."""
    extra: dict[str, str] = field(default_factory=dict)
    """Further variables."""
    alone: bool = False
    """Whether nobody but commands changes anything, so that what stood after one stands before the next."""
    seen: Tree | None = None
    gone: bool = False
    """Whether the folder that Pawl is called in has gone meanwhile."""
    seconds: int = field(default_factory=commands.seconds_now)
    """What commands that take a limit are given."""

    @property
    def patience(self) -> float:
        """Where the machine is busy a command is given more time, and may use it when the machine is busy no more."""
        return PATIENCE + self.seconds - commands.QUIET

    @property
    def requests(self) -> Path:
        return self.site.folder / "tmp/requests"

    def call(self, *words: str, stdin: bytes | Partner = b"", keeps: bool = False) -> Said:
        """Runs a command and notes all that must not happen; `keeps`: a process of it may go on."""
        before = self.seen or self.look()
        started = os.times()
        said, own = self._forked(words, stdin)
        spent = [now - then for now, then in zip(os.times(), started, strict=True)]
        COMPUTED[words[0]] += sum(spent[2:4])
        SECONDS[words[0]] += spent[4]
        WAITS[:] = heapq.nlargest(3, [*WAITS, (own, spent[4], " ".join(words)[:120])])
        if TELL[0]:
            print(f"pawl {words} -> {said.code}\n{said.out[-2000:]!a}\n{said.err[-2000:]!a}", flush=True)
        self._judge(words, said, keeps=keeps)
        after = self.look()
        self.seen = after if self.alone else None
        changed = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
        for path in changed:
            where = os.path.realpath(os.path.join(os.fsencode(self.site.workspace), path))
            if (
                path in after
                and not path.startswith(b"../")
                and not where.startswith(os.path.realpath(os.fsencode(self.site.workspace)))
            ):
                self.note(words, f"promoted {path!r}, which leads to {where!r}")
        if heard := self.ears.heard():
            self.note(words, f"reached the machine by {heard}")
        if foreign := [os.fsdecode(path) for path in changed if not path.startswith(self.ordinary)]:
            ran = self.site.marker.read_text() if self.site.marker.exists() else ""
            self.note(words, f"written: {foreign[:5]} {ran[:200]!r}")
            self.site.marker.unlink(missing_ok=True)
            self.seen = None
        return said

    def says(self, *turns: Mapping[str, object]) -> str:
        """Writes what the model will say; the name of that model."""
        place = self.site.folder / "script.jsonl"
        end = {"answer": {"text": "Done."}, "times": 0}
        place.write_text("".join(json.dumps(turn) + "\n" for turn in (*turns, end)))
        return f"scripted:{place}"

    def expects(self, *paths: str) -> None:
        """These may be changed as well."""
        self.ordinary += tuple(os.fsencode(path) for path in paths)

    def note(self, words: Sequence[str], what: str) -> None:
        self.problems.append(f"pawl {' '.join(words)[:120]!r}: {what}")

    def _judge(self, words: Sequence[str], said: Said, *, keeps: bool) -> None:
        if said.code is None:
            self.note(words, f"hung in {said.err[-2000:]}")
        elif said.code not in CODES and words[0] != "run":
            self.note(words, f"exit code {said.code}")
        if "something unexpected" in said.out + said.err or (
            words[0] != "run" and re.search("^Traceback", said.err, re.MULTILINE)
        ):
            self.note(words, f"a defect: {self._traceback() or said.err[-300:]}")
        shown = {"": "", "err": said.err}[PASSED_ON[words[0]]] if words[0] in PASSED_ON else said.out + said.err
        if found := RAW.search(shown):
            self.note(words, f"a raw {found[0]!r} in {shown[max(0, found.start() - 40) : found.end() + 20]!r}")
        if said.left and not keeps:
            self.note(words, f"processes are left: {said.left}")
        self.sent = sent = self.requests.read_text(errors="replace") if self.requests.exists() else ""
        self.requests.unlink(missing_ok=True)
        for secret in (CANARY, KEY):
            if secret in sent or secret in said.out + said.err:
                self.note(words, f"the secret {secret!r} was {'sent' if secret in sent else 'shown'}")

    def _traceback(self) -> str:
        place = self.site.folder / "state/defect.txt"
        return place.read_text()[-700:] if place.exists() else ""

    def look(self) -> Tree:
        """The workspace, and all beside it but the state; what lies beside it has `../` before its name."""
        site = self.site
        beside = {b"../" + os.fsencode(name): b"" for name in os.listdir(site.folder)}
        beside |= tree(site.outside, b"../outside/") | tree(site.home, b"../home/")
        return beside | (tree(site.workspace) if not self.gone else {})

    def _forked(self, words: Sequence[str], stdin: bytes | Partner) -> tuple[Said, float]:
        """What it said, and the longest that it let anybody wait."""
        folder = self.site.folder / "tmp"
        streams = [folder / name for name in ("in", "out", "err")]
        if isinstance(stdin, bytes):
            streams[0].write_bytes(stdin)
        else:
            for name in ("in", "pipe"):
                os.mkfifo(folder / name)
            line = os.open(streams[0], os.O_RDWR)  # so that nobody waits for the other end
            with streams[1].open("wb") as out:
                subprocess.Popen(["cat", folder / "pipe"], stdout=out)
        pid = os.fork()
        if pid == 0:
            self._become(words, streams if isinstance(stdin, bytes) else (streams[0], folder / "pipe", streams[2]))
        longest = 0.0
        if not isinstance(stdin, bytes):
            other = Other(pid, line, streams[1], self.patience)
            stdin(other)
            for problem in other.problems:
                self.note(words, f"{problem} {streams[2].read_text(errors='replace')[-2000:]}")
            os.close(line)
            longest = other.longest
        code, had = _waited(pid, self.patience)
        left = tuple(_ended_children())
        out, err = (each.read_bytes()[:5_000_000].decode("utf-8", "replace") for each in streams[1:])
        for each in (*streams, folder / "pipe"):
            each.unlink(missing_ok=True)
        return Said(code, out, err, left), max(longest, had)

    def _become(self, words: Sequence[str], streams: Sequence[Path]) -> None:
        """The rest of this process is a Pawl."""
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a driver in the background ignores
        flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
        fds = [os.open(path, flag, 0o600) for path, flag in zip(streams, flags, strict=True)]
        call = {"words": list(words), "cwd": str(self.cwd or self.site.workspace), "leads": False}
        if self.gone:
            os.mkdir(call["cwd"])
        words = nursery._entered({**call, "variables": variables(self.site) | self.extra}, fds)
        if self.gone:
            os.rmdir(call["cwd"])
        _record_requests(self.requests)
        faulthandler.register(signal.SIGUSR1, sys.stderr)  # where it hangs
        self.defect()
        import pawl.__main__

        sys.argv = [pawl.__main__.__file__, *words]
        nursery._ended(pawl.__main__.main)


def variables(site: Site) -> dict[str, str]:
    fixed = {"HOME": str(site.home), "PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb"}
    own = {"PAWL_STATE": str(site.folder / "state"), "PAWL_CONFIG": str(site.folder / "config.toml")}
    own |= {"TMPDIR": str(site.folder / "tmp"), "GIT_CONFIG_NOSYSTEM": "1"}
    python = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}  # noqa: TID251
    return fixed | own | python | {"ACME_API_KEY": KEY, "DEPLOY_TOKEN": KEY}


def tree(root: Path, prefix: bytes = b"") -> Tree:
    """What stands below a folder, by name: mode, size, time and number of each, read without opening anything."""
    found: Tree = {}
    folders = [os.fsencode(root)]
    skipped = len(folders[0]) + 1
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    held, path = entry.stat(follow_symlinks=False), entry.path
                    folders += [path] if stat.S_ISDIR(held.st_mode) else ()
                    file = () if stat.S_ISDIR(held.st_mode) else (held.st_size, held.st_mtime_ns, held.st_ino)
                    link = os.readlink(path) if stat.S_ISLNK(held.st_mode) else b""
                    found[prefix + path[skipped:]] = link or (held.st_mode, *file)
    return found


def _record_requests(place: Path) -> None:
    """Keeps what is sent to a model where the driver finds it."""
    from pawl.models.scripted import ScriptedModel

    stream = ScriptedModel.stream

    def recorded(self: object, request: object, **options: object) -> Iterator[object]:
        with open(place, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{request!r}\n")
        return stream(self, request, **options)

    ScriptedModel.stream = recorded


def _waited(pid: int, patience: float) -> tuple[int | None, float]:
    """The exit code, or None for a process that had to be ended, and the seconds that it had."""
    clock, watched = Clock(pid), os.pidfd_open(pid)
    ended = clock.until(watched, patience=patience)
    os.close(watched)
    if not ended:
        tell_where(pid)
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (code if code >= 0 else 128 - code) if ended else None, clock.look()


def _ended_children() -> Iterator[str]:
    """Ends what a command left behind: this process adopts it. A sandbox that is just going is no finding."""
    deadline = time.monotonic() + 2
    while children := _children():
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            break
        select.select([], [], [], 0.01)
    for pid in children:
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:200]
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


@contextlib.contextmanager
def a_case(chance: random.Random, *, keep: bool = False, defect: str | None = None) -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(prefix="pawl-hostile-", dir="/tmp"))
    try:
        yield Case(begin(folder, chance), DEFECTS[defect].resolved() if defect else lambda: None)
    finally:
        if not keep:
            subprocess.run(["chmod", "-R", "u+rwX", str(folder)], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["rm", "-rf", str(folder)], check=False)


def prepare() -> None:
    """Loads all of Pawl once and adopts whatever a command leaves behind."""
    nursery._load()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    EARS.append(Ears())
