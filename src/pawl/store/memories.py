"""What Pawl remembers of each workspace, as short texts that can be searched, listed and forgotten."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.memory import LONGEST_MEMORY, Memory, MemorySource, MemoryTier, NewMemory
from pawl.core.redact import MARK, redacted
from pawl.store.database import Database, Row
from pawl.store.rows import Clock, iso, readable

MOST = {MemoryTier.FACT: 200, MemoryTier.DECISION: 200, MemoryTier.OUTCOME: 50}
"""For each workspace; the oldest of a tier make room. The user's own never do."""

_COLUMNS = "id, tier, text, source, run, created"
_WORD = re.compile(r"\w+")
_MOST_WORDS = 40
"""Words of a query that are looked for."""


class Memories:
    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(self, workspace: str, new: NewMemory) -> Memory:
        """Keeps a memory, without secrets. One that says the same in the same words is renewed, not kept twice."""
        text = " ".join(readable(redacted(new.text)).split())
        if not text:
            raise UsageError("there is nothing to remember", advice="say it in a sentence")
        if not _WORD.search(text.replace(MARK, "")):
            raise UsageError("a secret is not remembered", advice="say what is to be known of it, and where it is kept")
        if len(text) > LONGEST_MEMORY:
            raise UsageError(
                f"a memory has at most {LONGEST_MEMORY} characters, this one {len(text)}",
                advice="say it shorter, or as several memories",
            )
        owner = (os.fsencode(workspace), _words(text))
        values = (str(new.tier), text, str(new.source), readable(redacted(new.run)), iso(self._clock()))
        with self._database.transaction():
            known = self._database.first("SELECT id FROM memory WHERE workspace = ? AND words = ?", owner)
            if known is None:
                columns = "tier, text, source, run, created, workspace, words"
                sql = f"INSERT INTO memory ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            else:
                sql = (
                    "UPDATE memory SET tier = ?, text = ?, source = CASE source WHEN 'user' THEN source ELSE ? END,"
                    " run = ?, created = ? WHERE workspace = ? AND words = ?"
                )
            row = self._database.one(f"{sql} RETURNING {_COLUMNS}", (*values, *owner))
            self._make_room(workspace, new.tier)
        return _memory(row)

    def all(self, workspace: str, *, tier: MemoryTier | None = None) -> Sequence[Memory]:
        """Newest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM memory WHERE workspace = ? AND (? IS NULL OR tier = ?)"
            " ORDER BY created DESC, id DESC",
            (os.fsencode(workspace), tier, tier),
        )
        return [_memory(row) for row in rows]

    def search(self, workspace: str, words: str, *, limit: int = 20) -> Sequence[Memory]:
        """Those that hold one of the words, the best first; words that are punctuation only find nothing."""
        terms = list(dict.fromkeys(_WORD.findall(readable(words).casefold())))[:_MOST_WORDS]
        if not terms:
            return []
        # Quoted, so that no word of the user is one of the search's own, such as NOT.
        query = " OR ".join(f'"{term}"' for term in terms)
        rows = self._database.rows(
            "SELECT memory.id, tier, memory.text, source, run, created FROM memory_text"
            " JOIN memory ON memory.id = memory_text.rowid"
            " WHERE memory_text MATCH ? AND workspace = ?"
            " ORDER BY bm25(memory_text), memory.id DESC LIMIT ?",
            (query, os.fsencode(workspace), limit),
        )
        return [_memory(row) for row in rows]

    def get(self, workspace: str, number: int) -> Memory:
        row = self._database.first(
            f"SELECT {_COLUMNS} FROM memory WHERE workspace = ? AND id = ?", (os.fsencode(workspace), number)
        )
        if row is None:
            raise UnknownEntry(f"there is no memory {number} of this workspace", advice="'pawl memory list' lists them")
        return _memory(row)

    def forget(self, workspace: str, number: int) -> Memory:
        """Deletes it and returns what it was."""
        with self._database.transaction():
            known = self.get(workspace, number)
            self._database.run("DELETE FROM memory WHERE id = ?", (number,))
        return known

    def forget_all(self, workspace: str) -> int:
        with self._database.transaction():
            return self._database.run("DELETE FROM memory WHERE workspace = ?", (os.fsencode(workspace),)).rowcount

    def _make_room(self, workspace: str, tier: MemoryTier) -> None:
        self._database.run(
            "DELETE FROM memory WHERE id IN (SELECT id FROM memory WHERE workspace = ? AND tier = ? AND source <> ?"
            " ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?)",
            (os.fsencode(workspace), str(tier), str(MemorySource.USER), MOST[tier]),
        )


def _words(text: str) -> str:
    """What makes two memories the same: their words, whatever stands between them."""
    return " ".join(_WORD.findall(text.casefold())) or text


def _memory(row: Row) -> Memory:
    number, tier, text, source, run, created = row
    return Memory(id=number, tier=MemoryTier(tier), text=text, source=MemorySource(source), run=run, created=created)
