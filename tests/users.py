"""Being another user: runs the product as root or as an ordinary user from one and the same test run.

The interpreter of the developer often lies in a folder that only they may enter. As root, an ordinary user is played by
another interpreter of this machine on a copy of the source that everybody can read.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("root", "ordinary")
ORDINARY = 61002
"""Neither the number of a person nor of a service on an ordinary machine."""
SOURCE = Path(__file__).resolve().parent.parent / "src"
_PACKAGES = ("pathspec", "pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions")
"""What a run loads; compiled ones are for interpreters of the same version."""
_INTERPRETERS = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
_OLD_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: int
    gid: int
    python: str
    source: str
    """Where `import pawl` finds the product."""
    becoming: tuple[str, ...] = ()
    """The words in front of a command that make it this user's."""

    def words(self, words: Sequence[str]) -> list[str]:
        return [*self.becoming, *words]

    def environment(self, home: Path | str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        clean = {"HOME": str(home), "PATH": _PATH, "LANG": "C.UTF-8", "PYTHONPATH": self.source}
        return {**clean, **(extra or {})}

    def start_python(self, code: str, *arguments: str, home: Path, **options) -> subprocess.Popen[bytes]:
        """Starts Python code that can import the product; `options` are those of Popen."""
        environment = self.environment(home, options.pop("env", None))
        words = self.words([self.python, "-B", "-c", code, *arguments])
        return subprocess.Popen(words, env=environment, cwd=home, **options)

    def own(self, folder: Path) -> None:
        """Gives a folder and all that is in it to this user."""
        for parent, folders, files in os.walk(folder):
            os.lchown(parent, self.uid, self.gid)
            for name in (*folders, *files):
                os.lchown(os.path.join(parent, name), self.uid, self.gid)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A temporary folder that belongs to this user and that this user can reach."""
        path = Path(tempfile.mkdtemp(prefix="pawl-user-", dir="/tmp")).resolve()
        os.chown(path, self.uid, self.gid)
        try:
            yield path
        finally:
            remove(path)


def become(name: str) -> User:
    """That user, or a skipped test with the reason."""
    if os.geteuid() != 0:
        if name == "root":
            pytest.skip("not running as root")
        return User(name, os.getuid(), os.getgid(), sys.executable, str(SOURCE))
    if name == "root":
        return User(name, 0, 0, sys.executable, str(SOURCE))
    user = _ordinary()
    if user is None:
        pytest.skip("no Python 3.11 that an ordinary user can run, or no setpriv")
    return user


def remove(folder: Path) -> None:
    """Removes a folder whatever modes its parts have; an overlay leaves one that nobody may enter."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(path, 0o700)
    # A launcher whose agent was killed clears its own folder away at the same time.
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)


@functools.cache
def _ordinary() -> User | None:
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if setpriv is None:
        return None
    becoming = (setpriv, f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", "--")
    for python in _INTERPRETERS:
        try:
            # Through a shell: setpriv itself still has the right to enter any folder when it starts its command.
            words = [*becoming, "/bin/sh", "-c", 'exec "$0" -I -c "$1"', python, _OLD_ENOUGH]
            answer = subprocess.run(words, cwd="/", capture_output=True, check=False)
        except OSError:
            continue
        if answer.returncode == 0:
            return User("ordinary", ORDINARY, ORDINARY, python, _readable_source(python), becoming)
    return None


@functools.cache
def _readable_source(python: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="pawl-source-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(SOURCE / "pawl", folder / "pawl", ignore=shutil.ignore_patterns("__pycache__"))
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            shutil.copytree(spec.submodule_search_locations[0], folder / name)
        elif spec is not None and spec.origin is not None:
            shutil.copy(spec.origin, folder)
    # Compiled once, because that user cannot write it down and would do it at every start.
    subprocess.run([python, "-I", "-m", "compileall", "-q", str(folder)], check=True)
    for parent, _, files in os.walk(folder):
        os.chmod(parent, 0o755)
        for each in files:
            os.chmod(os.path.join(parent, each), 0o644)
    return str(folder)
