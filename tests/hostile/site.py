"""A hostile workspace in a folder of its own, with somebody's home and a canary folder beside it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import random
import shutil
import socket
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

CANARY = "plum basket under the third lantern"
"""The secret of the user's, in words that no shape gives away: it is kept by where it stands alone."""
KEY = "Vt5mQ2zRk8wYc3NpX7bJ"
"""The value of a variable that is named like a key."""
GIT = ("git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main")


@dataclass(frozen=True)
class Site:
    folder: Path
    chance: random.Random

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def outside(self) -> Path:
        """Nothing of a workspace may write here: every hostile program tries to."""
        return self.folder / "outside"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def marker(self) -> Path:
        return self.outside / "marker"

    def program(self, name: str) -> str:
        """The shell line of a hostile program that tells on itself wherever it runs outside of a sandbox."""
        return f"echo {name} >> {self.marker}; cat"

    def write(self, path: str | bytes, content: str | bytes = "x\n", mode: int = 0o644) -> bytes:
        """Writes a file of the workspace, through nothing that stands in its place already."""
        place = self.cleared(path)
        with open(place, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
        os.chmod(place, mode)
        return place

    def link(self, path: str | bytes, target: str | bytes) -> None:
        os.symlink(os.fsencode(target), self.cleared(path))

    def cleared(self, path: str | bytes) -> bytes:
        """The place of a path, with folders above it and nothing at it."""
        place = os.path.join(os.fsencode(self.workspace), os.fsencode(path))
        parent = os.path.dirname(place)
        while not os.path.isdir(parent):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(parent)
            with contextlib.suppress(FileNotFoundError, FileExistsError, NotADirectoryError):
                os.makedirs(parent)
            if not os.path.isdir(parent):
                os.unlink(_first_file(parent))
        if not os.path.realpath(parent).startswith(os.path.realpath(os.fsencode(self.workspace))):
            raise NotADirectoryError(f"{path!r} leads out of the workspace")
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)
        return place

    def page(self) -> Path:
        """A page of the user's own, so that none has to be built."""
        place = self.folder / "tmp/page"
        place.mkdir(exist_ok=True)
        (place / "index.html").write_text("<!doctype html><title>x</title>")
        return place

    def special(self, path: str, kind: str) -> None:
        """Something in the place of a file that never ends, never begins, is not to be had, or is none."""
        match kind:
            case "fifo":
                os.mkfifo(self.cleared(path))
            case "socket":
                _bind(self.cleared(path))
            case "device":
                with contextlib.suppress(PermissionError):  # only root makes devices
                    os.mknod(self.cleared(path), stat.S_IFCHR | 0o666, os.makedev(1, 5))
            case "folder":
                os.mkdir(self.cleared(path))
            case "unreadable":
                self.write(path, mode=0)
            case "sparse":
                os.truncate(self.write(path, ""), 10 << 30)
            case "setuid":
                self.write(path, "#!/bin/sh\nid\n", 0o6755)
            case "binary":
                self.write(path, bytes(range(256)) * 40)
            case "long line":
                self.write(path, "a" * 4_000_000)
            case "nested":
                self.write(path, "[" * 60_000)
            case "outside fifo":
                os.mkfifo(self.folder / "pipe") if not (self.folder / "pipe").exists() else None
                self.link(path, str(self.folder / "pipe"))
            case target:
                self.link(path, target.format(outside=self.outside, home=self.home, name=os.path.basename(path)))


def _first_file(path: bytes) -> bytes:
    """The nearest thing above a path that is no folder."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _bind(place: bytes) -> None:
    """A socket file; from its folder, because an address holds 107 bytes at most."""
    back = os.open(".", os.O_RDONLY)
    os.chdir(os.path.dirname(place))
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(place))
    finally:
        os.fchdir(back)
        os.close(back)


def shared_folder() -> Path:
    """A folder for all cases, which goes with this process and not with those that are forked off it."""
    folder, owner = tempfile.mkdtemp(prefix="pawl-hostile-shared-", dir="/tmp"), os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder))
    return Path(folder)


@functools.cache
def repository() -> Path:
    """A repository with two commits, to be copied: starting git for each workspace costs more than all the rest."""
    folder = shared_folder()
    for number in (1, 2):
        (folder / "a.txt").write_text(f"{number}\n")
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs/b.txt").write_text("b\n")
        environment = {"PATH": os.defpath, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", f"number {number}")):
            subprocess.run([*GIT, *words], cwd=folder, env=environment, check=True)
    shutil.rmtree(folder / ".git/hooks")
    return folder


def begin(folder: Path, chance: random.Random) -> Site:
    """The folder of a case: a small project, a home with secrets in it, an empty canary folder."""
    site = Site(folder, chance)
    for made in (site.outside, site.home / ".ssh", folder / "tmp", folder / "state"):
        made.mkdir(parents=True, mode=0o700)
    (site.home / ".ssh/id_rsa").write_text(CANARY)
    (site.home / ".gitconfig").write_text("[user]\nname = Kim\nemail = kim@example.org\n")
    (site.outside / "secret.txt").write_text(CANARY)
    (site.outside / "bin").mkdir()
    (site.outside / "bin/python").symlink_to("/usr/bin/python3")  # an environment made in the folder of a project
    (site.outside / "pyvenv.cfg").write_text("home = /usr/bin\n")
    shutil.copytree(repository(), site.workspace)
    site.write("app.py", "def add(a, b):\n    return a + b\n")
    site.write("tools/pwn.sh", f"#!/bin/sh\n{site.program('pwn.sh')}\n", 0o755)
    return site
