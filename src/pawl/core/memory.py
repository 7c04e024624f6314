"""Memories of a workspace between runs, in tiers, and answers with the files they rest on."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pawl.core.lazy_dataclass import dataclass

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
        """One name for all that the answer rests on."""
        body = json.dumps(sorted((str(rest.kind), rest.path, rest.digest) for rest in self.rests))
        return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
