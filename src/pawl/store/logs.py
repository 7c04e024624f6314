"""Logs of events, requests and messages, one row each in its order; the file itself forbids to change one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

from pawl.core.dialogue import Conversation, Message, TranscriptLine, from_json, to_json
from pawl.core.errors import StoreCorrupt
from pawl.core.redact import redacted, redacted_message
from pawl.core.run import RequestRecord
from pawl.core.text import one_line
from pawl.core.typed import typed
from pawl.store.database import StorePart, iso, readable

_PAGE = 500
_LONGEST_TITLE = 80


class Events(StorePart):
    """The events of workspaces, append-only."""

    def append(self, workspace: str, run: str, kind: str, body: Mapping[str, object]) -> int:
        """Adds an event and returns its number; durable when it returns, or with the batch around it."""
        return self._database.insert(
            "event",
            time=iso(self._clock()),
            workspace=os.fsencode(workspace),
            run=readable(run),
            kind=readable(kind),
            body=json.dumps(dict(body)),
        )

    def read(self, workspace: str, *, run: str | None = None, after: int = 0) -> Iterator[Mapping[str, object]]:
        """The events of a workspace, or of one run, that come after that number; oldest first.

        Read page by page, so that a slow reader holds neither the whole log nor a lock.
        """
        # The plus keeps SQLite from sorting all of a workspace's events for each page.
        where = "+workspace = :workspace" if run is None else "workspace = :workspace AND run = :run"
        sql = f"SELECT id, time, run, kind, body FROM event WHERE {where} AND id > :after ORDER BY id LIMIT {_PAGE}"
        values = {"workspace": os.fsencode(workspace), "run": None if run is None else readable(run)}
        while page := self._database.records(sql, {**values, "after": after}):
            for event in page:
                yield {**event, "workspace": workspace, "body": json.loads(event["body"])}
            after = page[-1]["id"]


_NAMES = tuple(one.name for one in fields(RequestRecord))
_LARGEST = (1 << 63) - 1
"""The most that a column holds; a provider may say anything about its tokens."""


class Requests(StorePart):
    """One line for every request to a model."""

    def record(self, workspace: str, record: RequestRecord) -> int:
        """Adds a request, without secrets, and returns its number; durable when it returns, or with the batch."""
        columns: dict[str, Any] = {name: _column(getattr(record, name)) for name in _NAMES}
        return self._database.insert("request", time=iso(self._clock()), workspace=os.fsencode(workspace), **columns)

    def records(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[RequestRecord]:
        """Oldest first; with a limit, the newest of them."""
        return [record for _, record in self.lines(workspace, run=run, limit=limit)]

    def lines(
        self, workspace: str, *, run: str | None = None, limit: int | None = None
    ) -> Sequence[tuple[str, RequestRecord]]:
        """The records, each with when it was written."""
        where = "workspace = :workspace" if run is None else "workspace = :workspace AND run = :run"
        found = self._database.records(
            f"SELECT time, {', '.join(_NAMES)} FROM request WHERE {where} ORDER BY id DESC LIMIT :limit",
            {
                "workspace": os.fsencode(workspace),
                "run": None if run is None else readable(run),
                "limit": -1 if limit is None else limit,
            },
        )
        return [(one.pop("time"), _record(one)) for one in reversed(found)]


def _column(value: object) -> object:
    match value:
        case str():
            return readable(redacted(str(value)))
        case tuple():
            return json.dumps([redacted(str(one)) for one in value])
        case Decimal():
            return str(value)
        case bool() | float() | None:
            return value
        case int():
            return max(-_LARGEST, min(value, _LARGEST))
    raise TypeError(f"a request is not made of {type(value).__name__}")


def _record(found: dict[str, Any]) -> RequestRecord:
    given = {"tools": json.loads(found["tools"]), "estimated": bool(found["estimated"])}
    return typed(RequestRecord, {**found, **given})


class Transcripts(StorePart):
    """The conversations of all workspaces."""

    def append(
        self,
        workspace: str,
        conversation: str,
        message: Message,
        *,
        run: str = "",
        reasoning: str = "",
        sent_again: bool = True,
    ) -> int:
        """Adds a message, without secrets, and returns its number; durable when it returns, or with the batch.

        `reasoning` is the full text behind the message, which is kept to be shown.
        """
        return self._database.insert(
            "said",
            time=iso(self._clock()),
            workspace=os.fsencode(workspace),
            conversation=readable(conversation),
            run=readable(run),
            speaker=message.speaker.value,
            body=json.dumps(to_json(redacted_message(message))),
            reasoning=json.dumps(redacted(reasoning)),
            sent_again=sent_again,
        )

    def messages(self, conversation: str) -> Sequence[TranscriptLine]:
        """All that was said in a conversation, oldest first; empty when there is none of that name."""
        rows = self._database.rows(
            "SELECT id, time, run, body, reasoning, sent_again FROM said WHERE conversation = ? ORDER BY id",
            (readable(conversation),),
        )
        return [
            TranscriptLine(
                number=number,
                time=time,
                run=run,
                message=_message(f"message {number}", body),
                reasoning=json.loads(reasoning),
                sent_again=bool(sent_again),
            )
            for number, time, run, body, reasoning, sent_again in rows
        ]

    def fork(self, conversation: str, other: str) -> int:
        """Copies what was said into another conversation, and returns how many messages that were."""
        return self._database.run(
            "INSERT INTO said (time, workspace, conversation, run, speaker, body, reasoning, sent_again)"
            " SELECT time, workspace, ?, run, speaker, body, reasoning, sent_again"
            " FROM said WHERE conversation = ? ORDER BY id",
            (readable(other), readable(conversation)),
        ).rowcount

    def last(self, conversation: str) -> int:
        """The number of its last message; 0 without one."""
        sql = "SELECT coalesce(max(id), 0) FROM said WHERE conversation = ?"
        return int(self._database.one(sql, (readable(conversation),))[0])

    def conversations(self, workspace: str, *, limit: int | None = None) -> Sequence[Conversation]:
        """The conversations of a workspace; the one in which something was said last comes first."""
        rows = self._database.rows(
            """
            SELECT heads.conversation, started, last, turns, body FROM (
                SELECT
                    conversation,
                    min(time) AS started,
                    max(time) AS last,
                    max(id) AS newest,
                    sum(speaker = 'user') AS turns,
                    min(CASE WHEN speaker = 'user' THEN id END) AS opening
                FROM said WHERE workspace = ? GROUP BY conversation ORDER BY newest DESC LIMIT ?
            ) AS heads LEFT JOIN said ON said.id = opening ORDER BY newest DESC
            """,
            (os.fsencode(workspace), -1 if limit is None else limit),
        )
        return [
            Conversation(id=name, started=started, last=last, title=_title(name, body), turns=turns)
            for name, started, last, turns, body in rows
        ]


def _message(what: str, body: str) -> Message:
    try:
        return from_json(json.loads(body))
    except ValueError as error:
        raise StoreCorrupt(f"{what} cannot be read: {error}", advice="start a new conversation") from error


def _title(conversation: str, body: str | None) -> str:
    """The first words of the user, in one line."""
    if body is None:
        return ""
    return one_line(_message(f"the first message of {conversation!r}", body).text, _LONGEST_TITLE)
