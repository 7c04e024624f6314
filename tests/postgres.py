"""A PostgreSQL server of its own, in a temporary folder, on a unix socket, run by an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
QUICK = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
}


def missing() -> str:
    """Why there is no server here; empty where there is."""
    if not PROGRAMS and not shutil.which("initdb"):
        return "no PostgreSQL: install Debian's package postgresql"
    return ""


@dataclass
class Postgres:
    folder: Path
    port: int = 5432
    fsync: bool = True

    @property
    def url(self) -> str:
        return f"postgres://pawl@/pawl?host={self.folder / 'socket'}&port={self.port}"

    def run(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """A program of the server's, as a user that is not root: it refuses to run as that."""
        place = PROGRAMS[0] / program if PROGRAMS else Path(shutil.which(program) or program)
        other = {} if os.geteuid() else {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        return subprocess.run(
            [place, *words], check=check, capture_output=True, cwd=self.folder, env={"PATH": "/usr/bin:/bin"}, **other
        )

    def make(self) -> None:
        for name in ("data", "socket"):
            (self.folder / name).mkdir(mode=0o700)
            if not os.geteuid():
                shutil.chown(self.folder / name, "nobody")
        (self.folder / "socket").chmod(0o755)
        quick = [] if self.fsync else ["--no-sync"]
        self.run("initdb", "-D", "data", "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale", "C", *quick)
        settings = QUICK if self.fsync else {**QUICK, "fsync": "off"}
        settings = {**settings, "unix_socket_directories": str(self.folder / "socket"), "port": str(self.port)}
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        self.start()
        self.run("createdb", "-h", str(self.folder / "socket"), "-p", str(self.port), "-U", "pawl", "pawl")

    def start(self) -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-l", "data/log", "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop", check=False)

    def restart(self, mode: str = "fast") -> None:
        """`immediate` is as if it had crashed."""
        self.stop(mode)
        self.start()

    @property
    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def fresh(self, name: str) -> str:
        """The address of an empty database."""
        words = ("-h", str(self.folder / "socket"), "-p", str(self.port), "-U", "pawl")
        self.run("createdb", *words, name)
        return self.url.replace("/pawl?", f"/{name}?")


@contextmanager
def server(*, fsync: bool = False) -> Iterator[Postgres]:
    # A socket's name is short: not below pytest's folders.
    with tempfile.TemporaryDirectory(prefix="pawl-pg-") as folder:
        os.chmod(folder, 0o755)
        made = Postgres(Path(folder), fsync=fsync)
        made.make()
        try:
            yield made
        finally:
            made.stop("immediate")
