"""Memories of each workspace between runs, as short texts in tiers, and answers with the files that they rest on."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pawl.core.errors import StoreCorrupt, UnknownEntry, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import MARK, redacted
from pawl.store.database import Row, StorePart, iso, readable

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


MOST = {MemoryTier.FACT: 200, MemoryTier.DECISION: 200, MemoryTier.OUTCOME: 50}
"""For each workspace; the oldest of a tier make room. The user's own never do."""

_COLUMNS = "id, tier, text, source, run, created"
_WORD = re.compile(r"\w+")
_MOST_WORDS = 40
"""Words of a query that are looked for."""


class Memories(StorePart):
    def add(self, workspace: str, new: NewMemory) -> Memory:
        """Keeps a memory, without secrets. One that says the same in the same words is renewed, not kept twice."""
        text = " ".join(readable(redacted(new.text)).split())
        if not text:
            raise UsageError("there is nothing to remember", advice="give it as a sentence")
        if not _WORD.search(text.replace(MARK, "")):
            raise UsageError("a secret cannot be remembered", advice="say what it is for and where it is kept")
        if len(text) > LONGEST_MEMORY:
            raise UsageError(
                f"a memory has at most {LONGEST_MEMORY} characters, this one {len(text)}",
                advice="shorten it, or add several memories",
            )
        owner = (os.fsencode(workspace), _words(text))
        with self._database.transaction():
            self._database.insert(
                "memory",
                conflict="(workspace, words) DO UPDATE SET tier = excluded.tier, text = excluded.text,"
                " source = CASE source WHEN 'user' THEN source ELSE excluded.source END,"
                " run = excluded.run, created = excluded.created",
                workspace=owner[0],
                words=owner[1],
                tier=str(new.tier),
                text=text,
                source=str(new.source),
                run=readable(redacted(new.run)),
                created=iso(self._clock()),
            )
            kept = self._database.one(f"SELECT {_COLUMNS} FROM memory WHERE workspace = ? AND words = ?", owner)
            self._database.run(
                "DELETE FROM memory WHERE id IN (SELECT id FROM memory WHERE workspace = ? AND tier = ? AND source <> ?"
                " ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?)",
                (owner[0], str(new.tier), str(MemorySource.USER), MOST[new.tier]),
            )
        return _memory(kept)

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
        return self._database.run("DELETE FROM memory WHERE workspace = ?", (os.fsencode(workspace),)).rowcount


def _words(text: str) -> str:
    """The words of a memory, by which two are the same, whatever stands between them."""
    return " ".join(_WORD.findall(text.casefold())) or text


def _memory(row: Row) -> Memory:
    number, tier, text, source, run, created = row
    return Memory(id=number, tier=MemoryTier(tier), text=text, source=MemorySource(source), run=run, created=created)


MOST_ANSWERS = 500
MOST_FILES = 20_000
"""Files of one workspace whose contents are known."""

Similar = Callable[[str, str], bool]

_ANSWER_COLUMNS = "id, asked_of, query, text, rests, created"


class Answers(StorePart):
    """Whether an answer still holds is for the caller to find out; here it is only kept."""

    def find(self, workspace: str, asked_of: str, query: str) -> Sequence[KeptAnswer]:
        """The answers to this very query, the last used first: one for each state of the code."""
        rows = self._database.rows(
            f"SELECT {_ANSWER_COLUMNS} FROM answer WHERE workspace = ? AND asked_of = ? AND query = ?"
            " ORDER BY used DESC, id DESC",
            (os.fsencode(workspace), readable(asked_of), readable(query)),
        )
        return [_answer(row) for row in rows]

    def use(self, number: int) -> None:
        """Counts as a use, which keeps it from making room for others."""
        self._database.run("UPDATE answer SET used = (SELECT max(used) + 1 FROM answer) WHERE id = ?", (number,))

    def keep(self, workspace: str, answer: KeptAnswer, similar: Similar) -> int | None:
        """Keeps it, or renews the one to a similar query on the same code; returns its number.

        Nothing is kept of a query, or an answer, that holds a secret.
        """
        if redacted(answer.query) != answer.query or redacted(answer.text) != answer.text:
            return None
        owner: dict[str, Any] = {
            "workspace": os.fsencode(workspace),
            "asked_of": readable(answer.asked_of),
            "code": answer.code,
        }
        values = {
            "query": readable(answer.query),
            "text": readable(answer.text),
            "rests": json.dumps([[rest.kind, rest.path, rest.digest] for rest in answer.rests]),
            "created": iso(self._clock()),
        }
        with self._database.transaction():
            known = self._database.rows(
                "SELECT id, query FROM answer WHERE workspace = :workspace AND asked_of = :asked_of AND code = :code"
                " ORDER BY id",
                owner,
            )
            same = [number for number, query in known if query == values["query"]]
            number = next(iter(same + [number for number, query in known if similar(query, answer.query)]), None)
            if number is None:
                number = self._database.insert("answer", **owner, **values, used=0)
            else:
                renewed = ", ".join(f"{name} = :{name}" for name in values)
                self._database.run(f"UPDATE answer SET {renewed} WHERE id = :id", {**values, "id": number})
            self.use(number)
            self._database.run(
                "DELETE FROM answer WHERE id IN (SELECT id FROM answer ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (MOST_ANSWERS,),
            )
        return number

    def count(self, workspace: str) -> int:
        return int(self._database.one("SELECT count(*) FROM answer WHERE workspace = ?", (os.fsencode(workspace),))[0])

    def forget_all(self, workspace: str) -> int:
        """Drops the answers and what is known of the files; returns how many answers that were."""
        owner = (os.fsencode(workspace),)
        with self._database.transaction():
            self._database.run("DELETE FROM known_file WHERE workspace = ?", owner)
            return self._database.run("DELETE FROM answer WHERE workspace = ?", owner).rowcount

    def note_files(self, workspace: str, digests: Mapping[str, str]) -> None:
        """Remembers how these files were last seen."""
        owner, now = os.fsencode(workspace), iso(self._clock())
        with self._database.transaction():
            self._database.run_many(
                "INSERT INTO known_file (workspace, path, digest, seen) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (workspace, path) DO UPDATE SET digest = excluded.digest, seen = excluded.seen",
                [(owner, os.fsencode(path), digest, now) for path, digest in sorted(digests.items())],
            )
            self._database.run(
                "DELETE FROM known_file WHERE workspace = ? AND path IN (SELECT path FROM known_file"
                " WHERE workspace = ? ORDER BY seen DESC, path LIMIT -1 OFFSET ?)",
                (owner, owner, MOST_FILES),
            )

    def files(self, workspace: str) -> Mapping[str, str]:
        """The digests of files as they were last seen, by path."""
        rows = self._database.rows(
            "SELECT path, digest FROM known_file WHERE workspace = ? ORDER BY path", (os.fsencode(workspace),)
        )
        return {os.fsdecode(path): digest for path, digest in rows}


def _answer(row: Row) -> KeptAnswer:
    number, asked_of, query, text, rests, created = row
    try:
        stood = tuple(Dependency(RestKind(kind), path, digest) for kind, path, digest in json.loads(rests))
    except (TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"the stored answer {number} cannot be read: {error}", advice="'pawl memory forget --all' deletes it"
        ) from error
    return KeptAnswer(query=query, asked_of=asked_of, text=text, rests=stood, id=number, created=created)
