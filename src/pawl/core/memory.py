"""Memories of a workspace between runs, in tiers, and answers with the files they rest on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from pawl.core.typed import plain, typed

LONGEST_MEMORY = 400
"""Characters: a memory is a sentence or two."""


class MemoryTier(StrEnum):
    FACT = "fact"
    """A fact of the project: how it is built, tested, laid out."""
    DECISION = "decision"
    """A decision about its architecture."""
    OUTCOME = "outcome"
    """The outcome of a recent run."""


class MemorySource(StrEnum):
    USER = "user"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory that is to be kept."""

    tier: MemoryTier
    text: str
    source: MemorySource = MemorySource.RUN
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: int
    tier: MemoryTier
    text: str
    source: MemorySource
    run: str
    """The run that it comes from; empty for the user's own."""
    created: str


class RestKind(StrEnum):
    """The kinds of things that an answer can rest on."""

    FILE = "file"
    """The content of a file, or that it could not be read."""
    LISTING = "listing"
    """Which files there are below a folder."""
    TREE = "tree"
    """All contents below a folder."""
    PRESENCE = "presence"
    """Whether there is something at a path."""


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """One thing that an answer rests on, and how it stood when the answer was given."""

    kind: RestKind
    path: str
    digest: str


def code_hash(rests: Iterable[Dependency]) -> str:
    """One name for all that an answer rests on."""
    body = json.dumps(sorted((str(rest.kind), rest.path, rest.digest) for rest in rests))
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer that holds for as long as all that it rests on stands as it stood."""

    query: str
    """Normalised."""
    asked_of: str
    """The model, and how it was asked: another one may answer otherwise."""
    text: str
    rests: tuple[Dependency, ...]
    id: int = 0
    """0 for one that is not kept yet."""
    created: str = ""

    @property
    def code(self) -> str:
        return code_hash(self.rests)


MOST_EXCHANGES = 10
MOST_FILES = 500
MOST_ACCESSES = 200
MOST_EDITS = 200

_One = TypeVar("_One")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question of the user's and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """A file whose content was seen, and which content that was."""

    path: str
    digest: str


class AccessKind(StrEnum):
    READ = "read"
    SEARCHED = "searched"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    path: str
    kind: AccessKind


@dataclass(frozen=True, slots=True, kw_only=True)
class EditNote:
    """One edit of the session, in words, and the entry of the history that holds it."""

    path: str
    what: str
    entry: int = 0
    """0 until it is promoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemory:
    """Bounded; the oldest of each kind go first."""

    seen: tuple[SeenFile, ...] = ()
    """One for each path, the last seen at the end."""
    exchanges: tuple[Exchange, ...] = ()
    accessed: tuple[Access, ...] = ()
    """One for each path and kind, the latest at the end."""
    edits: tuple[EditNote, ...] = ()

    def with_seen(self, path: str, digest: str) -> SessionMemory:
        others = tuple(one for one in self.seen if one.path != path)
        return replace(self, seen=_last((*others, SeenFile(path=path, digest=digest)), MOST_FILES))

    def with_exchange(self, question: str, answer: str) -> SessionMemory:
        return replace(
            self, exchanges=_last((*self.exchanges, Exchange(question=question, answer=answer)), MOST_EXCHANGES)
        )

    def with_access(self, path: str, kind: AccessKind) -> SessionMemory:
        new = Access(path=path, kind=kind)
        return replace(self, accessed=_last((*(one for one in self.accessed if one != new), new), MOST_ACCESSES))

    def with_edit(self, path: str, what: str, entry: int = 0) -> SessionMemory:
        note = EditNote(path=path, what=what, entry=entry)
        return replace(self, edits=_last((*self.edits, note), MOST_EDITS)).with_access(path, AccessKind.WRITTEN)

    def to_json(self) -> dict[str, Any]:
        return plain(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SessionMemory:
        """The memory of such values; `ValueError` when they are not."""
        return typed(cls, body)


def _last(values: Sequence[_One], most: int) -> tuple[_One, ...]:
    return tuple(values[-most:])


MOST_LINES = 200
LONGEST_LINE = 300
MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Worksheet:
    """A value; each helper returns a new one. Lines are single lines, in the order in which they came."""

    task: str = ""
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """Paths, each once, in the order of the first look."""

    def with_done(self, what: str) -> Worksheet:
        """Adds a line to what is done; it is no longer next."""
        line = _line(what)
        return replace(self, done=_added(self.done, [line]), next=tuple(one for one in self.next if one != line))

    def with_task(self, text: str) -> Worksheet:
        return replace(self, task=_line(text))

    def with_next(self, steps: Iterable[str]) -> Worksheet:
        """Replaces what is next; a plan is written anew as a whole."""
        return replace(self, next=_added((), [_line(step) for step in steps]))

    def with_read(self, *paths: str) -> Worksheet:
        return replace(self, read=_added(self.read, [_line(path) for path in paths]))

    @property
    def text(self) -> str:
        """For the model; the latest of what is done, the first of what is next. Empty for an empty one."""
        lines = [f"Task: {self.task}"] if self.task else []
        lines += _shown("Done", self.done[-MOST_SHOWN:], len(self.done), "earlier")
        lines += _shown("Next", self.next[:MOST_SHOWN], len(self.next), "later")
        if self.read:
            more = len(self.read) - 2 * MOST_SHOWN
            names = ", ".join(self.read[-2 * MOST_SHOWN :])
            lines.append(f"Read: {names}" + (f" and {more} more" if more > 0 else ""))
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return plain(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Worksheet:
        """The worksheet of such values; `ValueError` when they are not."""
        return typed(cls, body)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def _added(known: tuple[str, ...], lines: Iterable[str]) -> tuple[str, ...]:
    every = dict.fromkeys((*known, *(line for line in lines if line)))
    return tuple(every)[-MOST_LINES:]


def _shown(head: str, lines: tuple[str, ...], total: int, where: str) -> list[str]:
    if not lines:
        return []
    more = [f"- [{total - len(lines)} {where}]"] if total > len(lines) else []
    shown = [f"- {line}" for line in lines]
    return [f"{head}:", *(more + shown if where == "earlier" else shown + more)]
