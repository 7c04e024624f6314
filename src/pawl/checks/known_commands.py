"""The commands that are known to run a workspace's tests: those that ran on a bench and reported some."""

from __future__ import annotations

import dataclasses
import itertools
import json
import posixpath
import shlex
from collections.abc import Sequence
from pathlib import Path

from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.typed import typed
from pawl.settings.config import Config
from pawl.settings.files import workspace_key, write_private


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """A command that may run the tests of a project."""

    __test__ = False

    words: tuple[str, ...]
    variables: tuple[str, ...] = ()
    """Those that it is started with, each as `NAME=value`."""
    source: str = ""
    """The file that names it."""
    tests: int = 0
    """How many it reported on a bench; none for one that was not tried yet."""

    @classmethod
    def of(cls, given: Sequence[str]) -> TestCommand:
        """The command as it is written, with the assignments before its program."""
        words = tuple(itertools.dropwhile(lambda one: "=" in one and one.partition("=")[0].isidentifier(), given))
        return cls(words=words, variables=tuple(given[: len(given) - len(words)])) if words else cls(words=tuple(given))

    @property
    def given(self) -> tuple[str, ...]:
        return (*self.variables, *self.words)

    def with_python(self, python: str) -> tuple[str, ...]:
        """The words with the project's interpreter, where a file of the project's names the command."""
        first, *rest = self.words
        if not self.source:
            return self.words
        if first == "pytest":
            return (python, "-m", "pytest", *rest)
        return (python, *rest) if first == "python" else self.words

    def with_labels(self, tests: Sequence[str]) -> TestCommand | None:
        """The command for these tests, files or ids, where it takes modules as labels; None where it does not."""
        for at, word in enumerate(self.words):
            if posixpath.basename(word) == "runtests.py" or (word.endswith("manage.py") and "test" in self.words[at:]):
                folder = posixpath.dirname(word)
                labels = [label for test in tests if (label := _label(test, folder))]
                return dataclasses.replace(self, words=(*self.words, *labels)) if labels else None
        return None

    @property
    def shown(self) -> str:
        assigned = (f"{name}={shlex.quote(value)}" for name, _, value in (one.partition("=") for one in self.variables))
        return " ".join((*assigned, shlex.join(self.words)))


def _label(test: str, folder: str) -> str:
    """The test as a module, class and method below that folder; empty for what lies elsewhere."""
    path, *names = test.split("::")
    if "/" in path or path.endswith(".py"):
        inside = posixpath.relpath(path, folder or ".")
        path = "" if inside.startswith("..") else inside.removesuffix(".py").replace("/", ".")
    elif folder:
        path = path.removeprefix(f"{folder.replace('/', '.')}.")
    return ".".join((path, *names)) if path else ""


@dataclass(frozen=True, slots=True)
class KnownCommands:
    """The commands that ran and reported tests, by workspace."""

    folder: Path

    def save(self, workspace: str, command: TestCommand) -> None:
        line = json.dumps(dataclasses.asdict(command))
        if redacted(line) == line:
            write_private(self._path(workspace), line)

    def load(self, workspace: str) -> TestCommand | None:
        try:
            return typed(TestCommand, json.loads(self._path(workspace).read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.json"


def known_commands(config: Config) -> KnownCommands:
    return KnownCommands(config.state / "runners")
