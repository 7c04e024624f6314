"""Help while a line is typed: completion of commands and files, and earlier inputs for the arrow keys."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from pawl.core.redact import redacted
from pawl.core.typed import read_json
from pawl.ui.screen.screen import one_line
from pawl.ui.terminal.commands import SessionCommand

MOST = 1_000
LONGEST = 20_000
"""Characters of one input; what is longer was pasted and is not typed again."""


def history_path(state: Path, workspace: str) -> Path:
    return state / "input" / f"{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]}.jsonl"


class PrivateHistory(History):
    """The inputs of a workspace, without secrets and bounded, in a file of the user's own.

    A file that cannot be read or written is no reason to fail: there is no history then.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        lines = self._lines()
        if len(lines) > 2 * MOST:
            self._replace(lines[-MOST:])
        return reversed(lines[-MOST:])

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST or not string.strip():
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(redacted(string)) + "\n")

    def _lines(self) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(OSError):
            for line in self._path.read_text("utf-8", "replace").splitlines():
                # A torn last line is left out, the others stand.
                with contextlib.suppress(ValueError):
                    one = read_json(line)
                    if isinstance(one, str) and (not found or found[-1] != one):
                        found.append(one)
        return found

    def _replace(self, lines: list[str]) -> None:
        made = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(one) + "\n" for one in lines)
            made.replace(self._path)


MOST_SUGGESTED = 40
_BACKGROUND = re.compile(r"(?:^|/)(?:\.|(?:site-packages|node_modules)/)")
"""Hidden files and installed packages come after the project's own."""
_FILE = re.compile(r"(?:^|(?<=\s))@(?P<part>[^\s@]*)$")


class Suggestions(Completer):
    """Commands with what they do, and files by any part of their path; names before folders, short before long."""

    def __init__(self, commands: Callable[[], Sequence[SessionCommand]], paths: Callable[[], Sequence[str]]) -> None:
        self._commands = commands
        self._paths = paths

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and not any(one.isspace() for one in before):
            yield from self._for_command(before[1:].lower())
        elif (found := _FILE.search(before)) is not None:
            yield from self._for_file(found["part"])

    def _for_command(self, part: str) -> Iterable[Completion]:
        for one in self._commands():
            if any(name.startswith(part) for name in (one.name, *one.others)):
                gap = " " if one.arguments else ""
                yield Completion(f"/{one.name}{gap}", -len(part) - 1, display=one.usage, display_meta=one.help)

    def _for_file(self, part: str) -> Iterable[Completion]:
        wanted = part.lower()
        found = [path for path in self._paths() if wanted in path.lower()]
        found.sort(key=lambda path: (bool(_BACKGROUND.search(path)), _rank(path, wanted), len(path), path))
        for path in found[:MOST_SUGGESTED]:
            yield Completion(f"@{path} ", -len(part) - 1, display=one_line(path))


def _rank(path: str, part: str) -> int:
    name = path.rpartition("/")[2].lower()
    return 0 if name.startswith(part) else 1 if path.lower().startswith(part) else 2 if part in name else 3


def completes(text: str) -> bool:
    """Whether something is offered while this is typed."""
    return (text.startswith("/") and not any(one.isspace() for one in text)) or _FILE.search(text) is not None
