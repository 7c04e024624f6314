"""What the librarian is asked, and what it answers: the files and definitions that must change, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.outline import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """How much failing tests speak against a place, from 0 to 1."""

    path: str
    line: int = 0
    """0 for the file as a whole."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    text: str
    """An issue with its title as the first line, a question, the output of failing tests."""
    suspicions: tuple[Suspicion, ...] = ()
    tests: bool = True
    """Whether files of tests may be among the answers."""
    history: bool = True
    """Whether the commits that HEAD reaches may be asked, where there is git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    path: str
    score: float
    """Above 0; comparable only within one answer."""
    reasons: tuple[str, ...] = ()
    """In words, the weightiest first."""
    symbols: tuple[Definition, ...] = ()
    """The definitions of the file that are likeliest to change, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells, without reading it, whether a file has changed."""

    path: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    name: str
    """Its hash."""
    at: int
    """Seconds since 1970."""
    message: str
    paths: tuple[str, ...]
    """What it changed."""
