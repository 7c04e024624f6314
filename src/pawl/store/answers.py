"""Answers that were given, with what they rest on, and the contents of files as they were last seen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from pawl.core.errors import StoreCorrupt
from pawl.core.memory import KeptAnswer, Rest, RestKind
from pawl.core.redact import redacted
from pawl.store.database import Database, Row
from pawl.store.rows import Clock, iso, readable

MOST_ANSWERS = 500
MOST_FILES = 20_000
"""Files of one workspace whose contents are known."""

Similar = Callable[[str, str], bool]

_COLUMNS = "id, asked_of, query, text, rests, created"


class Answers:
    """Whether an answer still holds is for the caller to find out; here it is only kept."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def find(self, workspace: str, asked_of: str, query: str) -> Sequence[KeptAnswer]:
        """The answers to this very query, the last used first: one for each state of the code."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM answer WHERE workspace = ? AND asked_of = ? AND query = ?"
            " ORDER BY used DESC, id DESC",
            (os.fsencode(workspace), readable(asked_of), readable(query)),
        )
        return [_answer(row) for row in rows]

    def use(self, number: int) -> None:
        """Counts as a use, which keeps it from making room for others."""
        with self._database.transaction():
            self._database.run("UPDATE answer SET used = (SELECT max(used) + 1 FROM answer) WHERE id = ?", (number,))

    def keep(self, workspace: str, answer: KeptAnswer, similar: Similar) -> int | None:
        """Keeps it, or renews the one to a similar query on the same code; returns its number.

        Nothing is kept of a query, or an answer, that holds a secret.
        """
        if redacted(answer.query) != answer.query or redacted(answer.text) != answer.text:
            return None
        owner = (os.fsencode(workspace), readable(answer.asked_of), answer.code)
        values = (
            readable(answer.query),
            readable(answer.text),
            json.dumps([[rest.kind, rest.path, rest.digest] for rest in answer.rests]),
            iso(self._clock()),
        )
        with self._database.transaction():
            known = self._database.rows(
                "SELECT id, query FROM answer WHERE workspace = ? AND asked_of = ? AND code = ? ORDER BY id", owner
            )
            same = [number for number, query in known if query == values[0]]
            number = next(iter(same + [number for number, query in known if similar(query, answer.query)]), None)
            if number is None:
                cursor = self._database.run(
                    "INSERT INTO answer (workspace, asked_of, code, query, text, rests, created, used)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                    (*owner, *values),
                )
                number = int(cursor.lastrowid or 0)
            else:
                self._database.run(
                    "UPDATE answer SET query = ?, text = ?, rests = ?, created = ? WHERE id = ?", (*values, number)
                )
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
        stood = tuple(Rest(RestKind(kind), path, digest) for kind, path, digest in json.loads(rests))
    except (TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"the kept answer {number} cannot be read: {error}", advice="'pawl memory forget --all' drops it"
        ) from error
    return KeptAnswer(query=query, asked_of=asked_of, text=text, rests=stood, id=number, created=created)
