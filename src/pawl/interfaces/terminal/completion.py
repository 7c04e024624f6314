"""What may follow what was typed: commands after `/`, files of the workspace after `@`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from pawl.interfaces.screen.screen import one_line
from pawl.interfaces.terminal.commands import Command

MOST = 40
_FILE = re.compile(r"(?:^|(?<=\s))@(?P<part>[^\s@]*)$")


class Suggestions(Completer):
    """Commands with what they do, and files by any part of their path; names before folders, short before long."""

    def __init__(self, commands: Callable[[], Sequence[Command]], paths: Callable[[], Sequence[str]]) -> None:
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
        found.sort(key=lambda path: (_rank(path, wanted), len(path), path))
        for path in found[:MOST]:
            yield Completion(f"@{path} ", -len(part) - 1, display=one_line(path))


def _rank(path: str, part: str) -> int:
    name = path.rpartition("/")[2].lower()
    return 0 if name.startswith(part) else 1 if path.lower().startswith(part) else 2 if part in name else 3


def completes(text: str) -> bool:
    """Whether something is offered while this is typed."""
    return (text.startswith("/") and not any(one.isspace() for one in text)) or _FILE.search(text) is not None
