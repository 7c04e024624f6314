"""Focused context as values: what goes into a pack, and the pack that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pawl.core.locating import Hit
    from pawl.core.outline import Definition

CHARACTERS_PER_TOKEN = 4
LEAST_BUDGET = 200
"""Tokens below which there is no room for anything of use."""


def tokens_of(text: str) -> int:
    """A rough count, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFile:
    """A file as it may be shown: without secrets, with what it defines."""

    path: str
    lines: tuple[str, ...]
    definitions: tuple[Definition, ...] = ()
    """In the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRequest:
    """What a pack is made from. The same request gives the same bytes."""

    budget: int
    """Tokens."""
    hits: tuple[Hit, ...]
    """The files that matter, the likeliest first."""
    files: tuple[PackFile, ...]
    """Those of the hits that could be read, in any order."""
    attempts: tuple[str, ...] = ()
    """What was tried before and how it failed, the most useful first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    path: str
    start: int
    end: int
    """The last line, from 1 as the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    text: str
    excerpts: tuple[Excerpt, ...] = ()
    """Whose bodies are shown, in the order of the text."""
    listed: tuple[str, ...] = ()
    """Files that are named with some of their signatures."""
    left_out: int = 0
    """Files of the request that are not named at all."""

    @property
    def tokens(self) -> int:
        return tokens_of(self.text)
