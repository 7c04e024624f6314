"""What was said in conversations, so that it can be shown and taken up again; retention drops old ones whole."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from pawl.core.dialogue import Conversation, Message, TranscriptLine, from_json, to_json
from pawl.core.errors import StoreCorrupt
from pawl.core.redact import redacted, redacted_message
from pawl.store.database import Clock, Database, Row, iso, readable

_LONGEST_TITLE = 80


class Transcripts:
    """The conversations of all workspaces."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

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
        values = (
            iso(self._clock()),
            os.fsencode(workspace),
            readable(conversation),
            readable(run),
            message.speaker.value,
            json.dumps(to_json(redacted_message(message))),
            json.dumps(redacted(reasoning)),
            sent_again,
        )
        with self._database.transaction():
            cursor = self._database.run(
                "INSERT INTO said (time, workspace, conversation, run, speaker, body, reasoning, sent_again)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
        return int(cursor.lastrowid or 0)

    def messages(self, conversation: str) -> Sequence[TranscriptLine]:
        """All that was said in a conversation, oldest first; empty when there is none of that name."""
        rows = self._database.rows(
            "SELECT id, time, run, body, reasoning, sent_again FROM said WHERE conversation = ? ORDER BY id",
            (readable(conversation),),
        )
        return [_said(row) for row in rows]

    def fork(self, conversation: str, other: str) -> int:
        """Copies what was said into another conversation, and returns how many messages that were."""
        with self._database.transaction():
            return self._database.run(
                "INSERT INTO said (time, workspace, conversation, run, speaker, body, reasoning, sent_again)"
                " SELECT time, workspace, ?, run, speaker, body, reasoning, sent_again"
                " FROM said WHERE conversation = ? ORDER BY id",
                (readable(other), readable(conversation)),
            ).rowcount

    def last(self, conversation: str) -> int:
        """The number of its last message; 0 without one."""
        return int(
            self._database.one(
                "SELECT coalesce(max(id), 0) FROM said WHERE conversation = ?", (readable(conversation),)
            )[0]
        )

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


def _said(row: Row) -> TranscriptLine:
    number, time, run, body, reasoning, sent_again = row
    return TranscriptLine(
        number=number,
        time=time,
        run=run,
        message=_message(f"message {number}", body),
        reasoning=json.loads(reasoning),
        sent_again=bool(sent_again),
    )


def _message(what: str, body: str) -> Message:
    try:
        return from_json(json.loads(body))
    except ValueError as error:
        raise StoreCorrupt(f"{what} cannot be read: {error}", advice="start a new conversation") from error


def _title(conversation: str, body: str | None) -> str:
    """The first words of the user, in one line."""
    if body is None:
        return ""
    words = " ".join(_message(f"the first message of {conversation!r}", body).text.split())
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1].rstrip()}…"
