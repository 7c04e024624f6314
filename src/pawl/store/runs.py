"""The records of runs: where each stands, what it found out and changed, and the logs of events, requests and messages,
which the file itself forbids to change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

from pawl.core.change import ChangeSet
from pawl.core.dialogue import Conversation, Message, TranscriptLine, from_json, to_json, typed_words
from pawl.core.errors import StoreCorrupt, UnknownEntry
from pawl.core.redact import redacted, redacted_body, redacted_message, redacted_value
from pawl.core.run import DeliveryState, RequestRecord, RunCursor, RunRequest, RunRow, RunState
from pawl.core.text import one_line
from pawl.core.typed import plain, typed
from pawl.store.database import CHANGE_COLUMNS, Row, StorePart, change_set, insert_changes, iso, readable

_RUN = "SELECT id, workspace, created, state, node, task, attempt, request, coalesce(delivered, delivery) FROM run"


class Runs(StorePart):
    def begin(self, workspace: str, place: RunCursor, order: RunRequest) -> None:
        """Records a new run, without secrets."""
        self._database.insert(
            "run",
            id=place.run,
            workspace=os.fsencode(workspace),
            created=iso(self._clock()),
            state=RunState.WORKING,
            node=place.at,
            task=place.task,
            attempt=place.attempt,
            request=json.dumps(redacted_body(plain(order, sparse=True))),
        )

    def get(self, workspace: str, run: str) -> RunRow:
        row = self._database.first(f"{_RUN} WHERE workspace = ? AND id = ?", (os.fsencode(workspace), readable(run)))
        if row is None:
            known = [one.id for one in self.list(workspace, limit=3)]
            raise UnknownEntry(
                f"there is no run {run!r} in this workspace",
                advice=f"the latest are {', '.join(known)}" if known else "start one with 'pawl do'",
            )
        return _row(row)

    def state(self, run: str) -> RunState | None:
        """In whichever workspace; None where there is no such run."""
        row = self._database.first("SELECT state FROM run WHERE id = ?", (readable(run),))
        return None if row is None else RunState(row[0])

    def list(self, workspace: str, *, state: RunState | None = None, limit: int | None = None) -> Sequence[RunRow]:
        """Newest first."""
        where = "workspace = :workspace" if state is None else "workspace = :workspace AND state = :state"
        rows = self._database.rows(
            f"{_RUN} WHERE {where} ORDER BY created DESC, id LIMIT :limit",
            {"workspace": os.fsencode(workspace), "state": state, "limit": -1 if limit is None else limit},
        )
        return [_row(row) for row in rows]

    def stand(self, place: RunCursor, state: RunState) -> None:
        """Writes where the run stands."""
        self._database.run(
            "UPDATE run SET node = ?, task = ?, attempt = ?, state = ? WHERE id = ?",
            (place.at, place.task, place.attempt, state, place.run),
        )

    def deliver(self, run: str, state: DeliveryState) -> DeliveryState:
        """Writes the delivery once; what was written first is what counts, and is returned."""
        coarse = DeliveryState.DONE if state is DeliveryState.DONE else DeliveryState.NEEDS_WORK
        self._database.run(
            "UPDATE run SET delivery = ?, delivered = ? WHERE id = ? AND delivery IS NULL", (coarse, state, run)
        )
        found = self._database.one("SELECT coalesce(delivered, delivery) FROM run WHERE id = ?", (run,))[0]
        return DeliveryState(found)

    def put(self, run: str, name: str, body: object) -> None:
        """Keeps a value that `json.dumps` takes, in the place of the one before."""
        self.put_all(run, {name: body})

    def put_all(self, run: str, values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
        """Keeps the values as one, under names that begin with the prefix; returns what was kept, without secrets."""
        kept = {name: redacted_value(body) for name, body in values.items()}
        with self._database.transaction():
            for name, body in kept.items():
                update = "(run, name) DO UPDATE SET body = excluded.body"
                self._database.insert(
                    "run_value", conflict=update, run=run, name=f"{prefix}{name}", body=json.dumps(body)
                )
        return kept

    def value(self, run: str, name: str) -> object:
        """The value, or None when there is none."""
        row = self._database.first("SELECT body FROM run_value WHERE run = ? AND name = ?", (run, name))
        return None if row is None else _decoded(f"{name!r} of the run {run!r}", row[0])

    def values(self, run: str, prefix: str = "", *, every: bool = False) -> dict[str, object]:
        """The values whose names begin with the prefix, by the rest of the name: those of one word, or every one."""
        rows = self._database.rows(
            "SELECT substr(name, :start), body FROM run_value WHERE run = :run AND substr(name, 1, :length) = :prefix"
            " AND (:every OR instr(substr(name, :start), ' ') = 0)",
            {"run": run, "prefix": prefix, "length": len(prefix), "start": len(prefix) + 1, "every": every},
        )
        return {name: _decoded(f"{name!r} of the run {run!r}", body) for name, body in rows}

    def add_step(self, run: str, talk: str, number: int, body: Mapping[str, object]) -> None:
        """Add the step of that number; a step is written once."""
        columns = {"run": run, "talk": talk, "number": number, "body": json.dumps(dict(body))}
        self._database.insert("run_step", conflict="(run, talk, number) DO NOTHING", **columns)

    def steps(self, run: str, talk: str) -> Sequence[Mapping[str, object]]:
        """In their order."""
        rows = self._database.rows(
            "SELECT number, body FROM run_step WHERE run = ? AND talk = ? ORDER BY number", (run, talk)
        )
        found = [_decoded(f"step {number} of the run {run!r}", body) for number, body in rows]
        return [step for step in found if isinstance(step, dict)]

    def keep_work(self, run: str, name: str, changes: ChangeSet) -> None:
        """Keep the run's changes by now, in place of those under that name."""
        with self._database.transaction():
            self._drop("run = ? AND name = ?", (run, name))
            insert_changes(self._database, "work", self._database.insert("work", run=run, name=name), changes)

    def work(self, run: str, name: str) -> ChangeSet | None:
        row = self._database.first("SELECT id FROM work WHERE run = ? AND name = ?", (run, name))
        if row is None:
            return None
        return change_set(self._database.rows(f"SELECT {CHANGE_COLUMNS} FROM work_change WHERE work = ?", row))

    def bench(self, run: str) -> ChangeSet | None:
        """What stood on a bench of the run last, that of an attempt included."""
        sql = "SELECT name FROM work WHERE run = ? AND (name = 'bench' OR name LIKE '% bench') ORDER BY id DESC"
        row = self._database.first(sql, (run,))
        return None if row is None else self.work(run, row[0])

    def progress(self, run: str) -> Row:
        """Something that differs when a step has become durable."""
        sql = "SELECT node, task, attempt, (SELECT count(*) FROM run_step WHERE run = run.id) FROM run WHERE id = ?"
        return self._database.first(sql, (run,)) or ()

    def exported(self, run: str) -> dict[str, Any]:
        """All that is needed to go on with the run elsewhere, but the contents that its changes name."""
        with self._database.reading():
            row = self._database.records("SELECT * FROM run WHERE id = ?", (run,))[0]
            works = self._database.rows("SELECT id, name FROM work WHERE run = ?", (run,))
            changes = f"SELECT {CHANGE_COLUMNS} FROM work_change WHERE work = ?"
            requests = self._database.records(
                "SELECT * FROM request WHERE workspace = ? AND run = ? ORDER BY id", (row["workspace"], run)
            )
            return {
                "run": {name: row[name] for name in row if name not in ("id", "workspace")},
                "values": self._database.rows("SELECT name, body FROM run_value WHERE run = ?", (run,)),
                "steps": self._database.rows("SELECT talk, number, body FROM run_step WHERE run = ?", (run,)),
                "work": {
                    name: [(os.fsdecode(one[0]), *one[1:]) for one in self._database.rows(changes, (work,))]
                    for work, name in works
                },
                "requests": [{name: one[name] for name in one if name not in ("id", "workspace")} for one in requests],
            }

    def imported(self, workspace: str, place: RunCursor, order: RunRequest, record: Mapping[str, Any]) -> None:
        """A run as another machine has left it, in the place of what was known of it here. Where it stands and what it
        is to do are not its word."""
        run = place.run
        with self._database.transaction():
            if self.state(run) is None:
                self.begin(workspace, place, order)
            self.stand(place, RunState.WORKING)
            self._drop("run = ?", (run,))
            for table in ("run_value", "run_step"):
                self._database.run(f"DELETE FROM {table} WHERE run = ?", (run,))
            values = [(run, *one) for one in record["values"]]
            self._database.run_many("INSERT INTO run_value (run, name, body) VALUES (?, ?, ?)", values)
            steps = [(run, *one) for one in record["steps"]]
            self._database.run_many("INSERT INTO run_step (run, talk, number, body) VALUES (?, ?, ?, ?)", steps)
            for name, rows in record["work"].items():
                self.keep_work(run, name, change_set([(os.fsencode(one[0]), *one[1:]) for one in rows]))
            sql = "SELECT count(*) FROM request WHERE workspace = ? AND run = ?"
            known = self._database.one(sql, (os.fsencode(workspace), run))[0]
            for one in record["requests"][known:]:
                columns = {name: one[name] for name in ("time", *_NAMES)}
                self._database.insert("request", workspace=os.fsencode(workspace), **columns)

    def end(self, place: RunCursor) -> None:
        """The run has ended: its record stays, what was only needed to resume it goes."""
        with self._database.transaction():
            self.stand(place, RunState.ENDED)
            self._drop("run = ?", (place.run,))
            self._database.run("DELETE FROM run_step WHERE run = ?", (place.run,))
            self._database.run("DELETE FROM run_value WHERE run = ? AND name LIKE 'evidence %'", (place.run,))

    def evaluate(self, workspace: str, run: str, score: int, *, reason: str, judge: str) -> None:
        """Appends to the evaluation log, once for each run."""
        self._database.insert(
            "evaluation",
            conflict="(run) DO NOTHING",
            time=iso(self._clock()),
            workspace=os.fsencode(workspace),
            run=run,
            score=score,
            reason=readable(redacted(reason)),
            judge=judge,
        )

    def evaluations(self, workspace: str) -> Sequence[Mapping[str, object]]:
        """Oldest first."""
        sql = "SELECT time, run, score, reason, judge FROM evaluation WHERE workspace = ? ORDER BY id"
        return self._database.records(sql, (os.fsencode(workspace),))

    def _drop(self, where: str, values: tuple[str, ...]) -> None:
        self._database.run(f"DELETE FROM work_change WHERE work IN (SELECT id FROM work WHERE {where})", values)
        self._database.run(f"DELETE FROM work WHERE {where}", values)


def _decoded(what: str, body: str, kind: Any = object) -> Any:
    try:
        return typed(kind, json.loads(body))
    except ValueError as error:
        raise StoreCorrupt(f"{what} cannot be read: {error}", advice="start the request again") from error


def _row(row: Row) -> RunRow:
    run, workspace, created, state, node, task, attempt, request, delivery = row
    return RunRow(
        id=run,
        workspace=os.fsdecode(workspace),
        created=created,
        state=RunState(state),
        place=RunCursor(run, node, task, attempt),
        order=_decoded(f"the request of the run {run!r}", request, RunRequest),
        delivery=None if delivery is None else DeliveryState(delivery),
    )


class Snapshots(StorePart):
    """One value of each kind for each conversation; an empty name stands for the workspace itself."""

    def put(self, workspace: str, conversation: str, kind: str, body: Mapping[str, object]) -> None:
        """Keeps the value, without secrets, in the place of the one before; durable when it returns."""
        self._database.insert(
            "snapshot",
            conflict="(workspace, conversation, kind) DO UPDATE SET body = excluded.body, time = excluded.time",
            workspace=os.fsencode(workspace),
            conversation=readable(conversation),
            kind=kind,
            body=json.dumps(redacted_body(body)),
            time=iso(self._clock()),
        )

    def fork(self, workspace: str, conversation: str, other: str) -> None:
        """Copies the values of a conversation for another one."""
        self._database.run(
            "INSERT INTO snapshot (workspace, conversation, kind, body, time)"
            " SELECT workspace, ?, kind, body, time FROM snapshot WHERE workspace = ? AND conversation = ?",
            (readable(other), os.fsencode(workspace), readable(conversation)),
        )

    def get(self, workspace: str, conversation: str, kind: str) -> Mapping[str, object] | None:
        """The value, or None when there is none that can be read: it is only ever a help."""
        row = self._database.first(
            "SELECT body FROM snapshot WHERE workspace = ? AND conversation = ? AND kind = ?",
            (os.fsencode(workspace), readable(conversation), kind),
        )
        try:
            body = json.loads(row[0]) if row is not None else None
        except ValueError:
            return None
        return body if isinstance(body, dict) else None


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

    def costs(self, run: str) -> Sequence[Decimal | None]:
        """Of each request of a run, in whichever workspace; None where the price is unknown."""
        of_run = "(workspace, run) IN (SELECT workspace, id FROM run WHERE id = ?)"
        rows = self._database.rows(f"SELECT cost FROM request WHERE {of_run}", (run,))
        return [None if cost is None else Decimal(cost) for (cost,) in rows]

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
            speaker="pawl" if message.automatic else message.speaker.value,
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

    def fork(self, conversation: str, other: str, *, before: int | None = None) -> int:
        """Copies what was said, before that message or all, into another conversation; how many messages that were."""
        return self._database.run(
            "INSERT INTO said (time, workspace, conversation, run, speaker, body, reasoning, sent_again)"
            " SELECT time, workspace, ?, run, speaker, body, reasoning, sent_again"
            " FROM said WHERE conversation = ? AND id < ? ORDER BY id",
            (readable(other), readable(conversation), (1 << 62) if before is None else before),
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
    return one_line(typed_words(_message(f"the first message of {conversation!r}", body).text), _LONGEST_TITLE)
