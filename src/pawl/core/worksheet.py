"""What is done, what is next and which files were read: kept by Pawl and not by the model, and told to it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

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
        """What is done is no longer next."""
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
        return {"task": self.task, "done": list(self.done), "next": list(self.next), "read": list(self.read)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Worksheet:
        """The worksheet of such values; `ValueError` when they are not."""
        task, lists = body.get("task", ""), [body.get(name, []) for name in ("done", "next", "read")]
        if not isinstance(task, str) or not all(
            isinstance(one, list) and all(isinstance(line, str) for line in one) for one in lists
        ):
            raise ValueError("this is no worksheet")
        done, following, read = (_added((), map(_line, one)) for one in lists)
        return cls(task=task, done=done, next=following, read=read)


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
