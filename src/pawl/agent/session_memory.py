"""The memory of a conversation: files that were seen, touched and edited, exchanges, and the worksheet of the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line

MOST_EXCHANGES = 10
MOST_SEEN = 500
MOST_ACCESSES = 200
MOST_EDITS = 200


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
        others = (one for one in self.seen if one.path != path)
        return replace(self, seen=(*others, SeenFile(path=path, digest=digest))[-MOST_SEEN:])

    def with_exchange(self, question: str, answer: str) -> SessionMemory:
        new = Exchange(question=question, answer=answer)
        return replace(self, exchanges=(*self.exchanges, new)[-MOST_EXCHANGES:])

    def with_access(self, path: str, kind: AccessKind) -> SessionMemory:
        new = Access(path=path, kind=kind)
        return replace(self, accessed=(*(one for one in self.accessed if one != new), new)[-MOST_ACCESSES:])

    def with_edit(self, path: str, what: str, entry: int = 0) -> SessionMemory:
        edits = (*self.edits, EditNote(path=path, what=what, entry=entry))[-MOST_EDITS:]
        return replace(self, edits=edits).with_access(path, AccessKind.WRITTEN)


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
        line = one_line(what, LONGEST_LINE)
        return replace(self, done=_added(self.done, [line]), next=tuple(one for one in self.next if one != line))

    def with_task(self, text: str) -> Worksheet:
        return replace(self, task=one_line(text, LONGEST_LINE))

    def with_next(self, steps: Iterable[str]) -> Worksheet:
        """Replaces what is next; a plan is written anew as a whole."""
        return replace(self, next=_added((), steps))

    def with_read(self, *paths: str) -> Worksheet:
        return replace(self, read=_added(self.read, paths))

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


def _added(known: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    lines = (one_line(text, LONGEST_LINE) for text in texts)
    return tuple(dict.fromkeys((*known, *filter(None, lines))))[-MOST_LINES:]


def _shown(head: str, lines: Sequence[str], total: int, where: str) -> list[str]:
    if not lines:
        return []
    more = [f"- [{total - len(lines)} {where}]"] if total > len(lines) else []
    shown = [f"- {line}" for line in lines]
    return [f"{head}:", *(more + shown if where == "earlier" else shown + more)]
