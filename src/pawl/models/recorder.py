"""Writes down what a model answers as a script, so that the conversation can be played again without it.

Secrets are taken out before anything is written. Text that comes in pieces is looked at as a whole, because a secret
can lie across two of them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Speaker,
    TextDelta,
    ThoughtDelta,
    ToolCall,
)
from pawl.core.errors import ConfigError, ModelError, RateLimited
from pawl.core.redact import redacted, redacted_body
from pawl.core.typed import plain
from pawl.models import Model
from pawl.models.calls import scrubbed
from pawl.models.scripted import ERRORS, VERSION
from pawl.sandbox.cancel import CancelToken

_MATCHED = 80
_LONGEST_START = 4096
_KINDS = {error: kind for kind, error in ERRORS.items()}

Table = dict[str, object]


class AnswerRecorder:
    """Fits `Model`. The file (`.jsonl`) is made at once, readable by its owner only; turns are added to it."""

    def __init__(self, model: Model, path: Path) -> None:
        if path.suffix != ".jsonl":
            raise ConfigError(
                f"a recording is JSON lines, and {str(path)!r} does not say so", advice="end it in .jsonl"
            )
        self._model = model
        self._path = path
        self._lock = threading.Lock()
        if self._is_new():
            self._append({"version": VERSION})

    def _is_new(self) -> bool:
        """A recording is gone on with; a file that is something else is left as it is."""
        try:
            with open(self._path, "rb", opener=_private) as file:
                start = file.readline(_LONGEST_START)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise self._unusable(str(error)) from error
        try:
            is_recording = not start or "version" in json.loads(start)
        except (ValueError, TypeError, RecursionError):
            is_recording = False
        if not is_recording:
            raise self._unusable("it exists and is not a recording")
        return not start

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"the recording {str(self._path)!r} cannot be written: {why}", advice="name another file")

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        events: list[ModelEvent] = []
        stream = self._model.stream(request, cancel=cancel)
        try:
            for event in stream:
                if isinstance(event, Answered):
                    self._append({**_asked(request), **_streamed(events), "answer": _answer(event.answer)})
                else:
                    events.append(event)
                yield event
        except ModelError as error:
            if fault := _fault(error):
                self._append({**_asked(request), **_streamed(events), "fault": fault})
            raise
        finally:
            stream.close()

    def _append(self, table: Table) -> None:
        line = scrubbed(json.dumps(table, ensure_ascii=False)) + "\n"
        try:
            with self._lock, open(self._path, "ab", opener=_private) as file:
                file.write(line.encode())
        except OSError as error:
            raise self._unusable(str(error)) from error


def _private(path: str, flags: int) -> int:
    """For its owner only, without waiting for the other end of a pipe, and where no link leads."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o600)


def _asked(request: Request) -> Table:
    """The mark by which the request is known when it comes again: its last words, or the tools whose answers end it."""
    match: Table = {}
    last = request.messages[-1] if request.messages else None
    if last is not None and last.answers:
        match["answered"] = [redacted(answer.name) for answer in last.answers]
    elif last is not None and last.speaker is Speaker.USER and last.text:
        match["user"] = redacted(last.text)[:_MATCHED]
    if request.answer_schema is not None:
        match["schema"] = True
    return {"match": match} if match else {}


def _streamed(events: Sequence[ModelEvent]) -> Table:
    """The events as chunks. Those before each retry are looked at by themselves."""
    chunks: list[object] = []
    attempt: list[ModelEvent] = []
    for event in events:
        match event:
            case Retrying(why=why, wait_seconds=wait, attempt=number, begun=begun):
                chunks += _pieces(attempt)
                chunks.append({"retrying": redacted(why), "wait_seconds": wait, "attempt": number, "begun": begun})
                attempt = []
            case FellBack(model=model, to=to, why=why):
                chunks += _pieces(attempt)
                chunks.append({"fell_back_to": to, "model": model, "why": redacted(why)})
                attempt = []
            case _:
                attempt.append(event)
    return {"chunks": chunks + _pieces(attempt)}


def _pieces(attempt: Sequence[ModelEvent]) -> list[object]:
    texts = _clean([event.text for event in attempt if isinstance(event, TextDelta)])
    thoughts = _clean([event.text for event in attempt if isinstance(event, ThoughtDelta)])
    pieces: list[object] = []
    for event in attempt:
        if isinstance(event, TextDelta) and (text := next(texts)) is not None:
            pieces.append(text)
        elif isinstance(event, ThoughtDelta) and (text := next(thoughts)) is not None:
            pieces.append({"thought": text})
    return pieces


def _clean(pieces: Sequence[str]) -> Generator[str | None, None, None]:
    """The pieces; if there is a secret in all of them together, the first is the whole and the others are None."""
    whole = "".join(pieces)
    hidden = redacted(whole)
    if hidden == whole:
        yield from pieces
    else:
        yield hidden
        yield from (None for _ in pieces[1:])


def _answer(answer: ModelResponse) -> Table:
    told = replace(answer, model="", cost=None, calls=(), served_by=answer.served_by or answer.model)
    table = redacted_body(plain(told, sparse=True))
    return {**table, "calls": [_call(call) for call in answer.calls]} if answer.calls else table


def _call(call: ToolCall) -> Table:
    """With the arguments as they were sent, unless a secret had to be taken out of them."""
    table = plain(call, sparse=True)
    hidden = redacted_body(table)
    is_as_sent = call.arguments is None or (hidden == table and bool(call.raw))
    hidden.pop("arguments" if is_as_sent else "raw", None)
    return hidden


def _fault(error: ModelError) -> Table:
    kind = _KINDS.get(type(error))
    if kind is None:
        return {}
    fault: Table = {"kind": kind, "message": redacted(error.message)}
    if isinstance(error, RateLimited) and error.wait_seconds is not None:
        fault["wait_seconds"] = error.wait_seconds
    return fault
