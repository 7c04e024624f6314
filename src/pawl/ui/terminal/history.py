"""What was typed in a workspace, for the arrow keys: in a file of the user's own, without secrets, bounded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

from pawl.core.formats import read_json
from pawl.core.redact import redacted

MOST = 1_000
LONGEST = 20_000
"""Characters of one input; what is longer was pasted and is not typed again."""


def history_path(state: Path, workspace: str) -> Path:
    return state / "input" / f"{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]}.jsonl"


class PrivateHistory(History):
    """Fits prompt_toolkit. A file that cannot be read or written is no reason to fail: there is no history then."""

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
