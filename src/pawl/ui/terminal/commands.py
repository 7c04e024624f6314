"""The commands of a session as data: those of `commands.toml`, and the user's own."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from pawl.core.errors import UsageError
from pawl.ui.screen.screen import one_line

IDLE, MODEL = "idle", "model"
OWN = "yours"
"""The group of the commands that are Markdown files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommand:
    name: str
    help: str
    group: str
    arguments: str = ""
    others: tuple[str, ...] = ()
    """Other names for it."""
    line: tuple[str, ...] = ()
    """The command of the command line that carries it out."""
    needs: frozenset[str] = frozenset()
    prompt: str = ""
    """The request that it stands for, for one that is a file."""
    model: str = ""
    """The model that such a one wants."""
    source: str = ""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()


@lru_cache(maxsize=1)
def built_in() -> tuple[SessionCommand, ...]:
    table = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))
    return tuple(
        SessionCommand(
            name=one["name"],
            help=one["help"],
            group=one["group"],
            arguments=one.get("arguments", ""),
            others=tuple(one.get("others", ())),
            line=tuple(one.get("line", ())),
            needs=frozenset(one.get("needs", ())),
        )
        for one in table["command"]
    )


@dataclass(frozen=True, slots=True)
class Commands:
    """Those that come with Pawl, and the user's own, which cannot take the name of one of them."""

    own: tuple[SessionCommand, ...] = ()

    @property
    def every(self) -> tuple[SessionCommand, ...]:
        taken = {name for one in built_in() for name in (one.name, *one.others)}
        return (*built_in(), *(one for one in self.own if one.name not in taken))

    def find(self, name: str) -> SessionCommand:
        names = self._names()
        if name in names:
            return names[name]
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        starts = [one for one in names if name and one.startswith(name)]
        advice = f"did you mean /{(starts or close)[0]}?" if starts or close else "/help lists them"
        raise UsageError(f"there is no command {'/' + name!r}", advice=advice)

    def _names(self) -> Mapping[str, SessionCommand]:
        return {name: one for one in self.every for name in (one.name, *one.others)}


def split(line: str) -> tuple[str, str] | None:
    """The name and the words of a command; None for what is a request. A path such as /etc/hosts is a request."""
    text = line.strip()
    if not text.startswith("/"):
        return None
    name, _, rest = text[1:].partition(" ")
    if "/" in name or "\n" in name:
        return None
    return name.lower(), rest.strip()


def spoken_here(text: str) -> str:
    """A hint of the command line in the words of a session; commands that it has not stay as they are."""
    names = "|".join(one.name for one in built_in())
    return re.sub(rf"\bpawl (?=(?:{names})\b)", "/", text)


def command(words: str) -> str:
    """How a session writes what the command line calls `pawl WORDS`."""
    return f"/{words.replace('do --resume', 'resume').partition(' [')[0]}"


MOST = 40
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
        found.sort(key=lambda path: (_rank(path, wanted), len(path), path))
        for path in found[:MOST]:
            yield Completion(f"@{path} ", -len(part) - 1, display=one_line(path))


def _rank(path: str, part: str) -> int:
    name = path.rpartition("/")[2].lower()
    return 0 if name.startswith(part) else 1 if path.lower().startswith(part) else 2 if part in name else 3


def completes(text: str) -> bool:
    """Whether something is offered while this is typed."""
    return (text.startswith("/") and not any(one.isspace() for one in text)) or _FILE.search(text) is not None
