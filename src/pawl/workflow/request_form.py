"""A request in the form Task, Scope, Requirements, Constraints, Verification, read without a model (A14)."""

from __future__ import annotations

import re
from dataclasses import dataclass

FIELDS = ("task", "scope", "requirements", "constraints", "verification")

_HEAD = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]*|[-*][ \t]+)?(?:\*\*|__)?(?P<name>" + "|".join(FIELDS) + r")(?:\*\*|__)?[ \t]*:"
    r"(?:\*\*|__)?[ \t]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^[ \t]{0,3}#{1,6}[ \t]*(?P<name>" + "|".join(FIELDS) + r")[ \t]*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(?P<text>.+)$")
_NUMBERED = re.compile(r"^[ \t]*\d+[.)][ \t]+(?P<text>.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestForm:
    task: str
    scope: tuple[str, ...] = ()
    """Files or folders that may change; empty where none are named."""
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    """Commands or checks that decide."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The numbered steps of the task where it has some, else the task as one."""
        steps = [match["text"].strip() for line in self.task.splitlines() if (match := _NUMBERED.match(line))]
        return tuple(steps) or (self.task,)


def request_form(text: str) -> RequestForm | None:
    """The request as its form says; None when it is not in that form: it needs a task and one other field."""
    parts: dict[str, list[str]] = {}
    current = ""
    for line in text.splitlines():
        match = _HEAD.match(line) or _HEADING.match(line)
        if match is not None:
            current = match["name"].lower()
            if current in parts:
                return None
            parts[current] = [rest] if (rest := match.groupdict().get("rest", "").strip()) else []
        elif current:
            parts[current].append(line)
        elif line.strip():
            return None
    task = "\n".join(parts.get("task", ())).strip()
    if not task or len(parts) < 2:
        return None
    return RequestForm(
        task=task,
        scope=tuple(path for item in _items(parts.get("scope", [])) for path in _paths(item)),
        requirements=_items(parts.get("requirements", [])),
        constraints=_items(parts.get("constraints", [])),
        verification=tuple(item.strip("`") for item in _items(parts.get("verification", []))),
    )


def _items(lines: list[str]) -> tuple[str, ...]:
    """Each bullet with the lines that go on with it; a text without bullets is one item a line."""
    items: list[str] = []
    has_bullets = any(_BULLET.match(line) for line in lines)
    for line in lines:
        match = _BULLET.match(line)
        if match is not None:
            items.append(match["text"].strip())
        elif has_bullets and items and line.strip():
            items[-1] += f" {line.strip()}"
        elif line.strip():
            items.append(line.strip())
    return tuple(items)


def _paths(item: str) -> list[str]:
    """`src/a.py, src/b.py` names two files."""
    return [part.strip().strip("`\"'") for part in re.split(r",|\band\b", item) if part.strip().strip("`\"'")]
