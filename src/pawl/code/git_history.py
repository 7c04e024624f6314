"""What the commits that HEAD reaches tell about files: which change often or lately, and what was said of them.

It is read once for each HEAD and kept in the index; a commit that HEAD does not reach never counts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from pawl.code.indexing import transaction
from pawl.code.tokens import Tokens
from pawl.core.code import Commit
from pawl.workspace.git import GitLog

MOST_COMMITS = 4000
_MOST_PATHS = 30
"""A commit that changes more says nothing about any of them."""
_LONGEST_MESSAGE = 1000


class Past(NamedTuple):
    """A commit as the index keeps it."""

    at: int
    words: str
    """The tokens of its message."""
    paths: tuple[str, ...]


def take_in(connection: sqlite3.Connection, log: GitLog) -> bool:
    """Brings the commits up to date with HEAD; returns whether there was anything to do."""
    head = log.head()
    row = connection.execute("SELECT value FROM fact WHERE name = 'head'").fetchone()
    if head == (row[0] if row else ""):
        return False
    commits = log.commits(MOST_COMMITS) if head else ()
    if head and not commits:
        return False
    with transaction(connection):
        connection.execute("DELETE FROM past")
        connection.executemany("INSERT INTO past (name, at, words, paths) VALUES (?, ?, ?, ?)", _rows(commits))
        connection.execute("INSERT OR REPLACE INTO fact VALUES ('head', ?)", (head,))
    return True


def _rows(commits: Iterable[Commit]) -> Iterable[tuple[str, int, str, str]]:
    tokens = Tokens()
    for commit in commits:
        if 0 < len(commit.paths) <= _MOST_PATHS:
            words = tokens.of(commit.message[:_LONGEST_MESSAGE])
            yield commit.name, commit.at, words, "\n".join(commit.paths)


def past(connection: sqlite3.Connection) -> list[Past]:
    """Newest first."""
    rows = connection.execute("SELECT at, words, paths FROM past ORDER BY id")
    return [Past(at, words, tuple(paths.split("\n"))) for at, words, paths in rows]
