"""What a session remembers while it lasts: a value, of which each helper returns a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

MOST_EXCHANGES = 10
MOST_FILES = 500
MOST_ACCESSES = 200
MOST_EDITS = 200

_One = TypeVar("_One")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What the user said and what was answered."""

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

    def changed(self, digests: Mapping[str, str]) -> tuple[str, ...]:
        """Files that were seen and are otherwise now, or gone; `digests` is how the files stand."""
        return tuple(one.path for one in self.seen if digests.get(one.path) != one.digest)

    def to_json(self) -> dict[str, Any]:
        return {
            "seen": [[one.path, one.digest] for one in self.seen],
            "exchanges": [[one.question, one.answer] for one in self.exchanges],
            "accessed": [[one.path, one.kind.value] for one in self.accessed],
            "edits": [[one.path, one.what, one.entry] for one in self.edits],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SessionMemory:
        """The memory of such values; `ValueError` when they are not."""
        try:
            return cls(
                seen=_last([SeenFile(path=path, digest=digest) for path, digest in body["seen"]], MOST_FILES),
                exchanges=_last(
                    [Exchange(question=question, answer=answer) for question, answer in body["exchanges"]],
                    MOST_EXCHANGES,
                ),
                accessed=_last(
                    [Access(path=path, kind=AccessKind(kind)) for path, kind in body["accessed"]], MOST_ACCESSES
                ),
                edits=_last(
                    [EditNote(path=path, what=what, entry=int(entry)) for path, what, entry in body["edits"]],
                    MOST_EDITS,
                ),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no session's memory: {error}") from error


def _last(values: Sequence[_One], most: int) -> tuple[_One, ...]:
    return tuple(values[-most:])
