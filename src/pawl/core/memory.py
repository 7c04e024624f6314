"""What Pawl remembers of a workspace between runs: memories in tiers, and answers with the files they rest on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

LONGEST_MEMORY = 400
"""Characters: a memory is a sentence or two."""


class MemoryTier(StrEnum):
    FACT = "fact"
    """What holds of the project: how it is built, tested, laid out."""
    DECISION = "decision"
    """What was settled about its architecture."""
    OUTCOME = "outcome"
    """What a recent run came to."""


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
    """What an answer can rest on."""

    FILE = "file"
    """The content of a file, or that it could not be read."""
    LISTING = "listing"
    """Which files there are below a folder."""
    TREE = "tree"
    """All contents below a folder."""
    PRESENCE = "presence"
    """Whether there is something at a path."""


@dataclass(frozen=True, slots=True, order=True)
class Rest:
    """One thing that an answer rests on, and how it stood when the answer was given."""

    kind: RestKind
    path: str
    digest: str


def code_hash(rests: Iterable[Rest]) -> str:
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
    rests: tuple[Rest, ...]
    id: int = 0
    """0 for one that is not kept yet."""
    created: str = ""

    @property
    def code(self) -> str:
        return code_hash(self.rests)
