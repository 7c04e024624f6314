"""The events of the workspace for every tab that looks on, from the stream that all processes write."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

from pawl.agent.session import Session
from pawl.core.errors import PawlError
from pawl.store.run_stream import RunStream
from pawl.ui.cli.encoder import Json, as_json, report_json
from pawl.ui.screen.run_report import changes_of
from pawl.ui.web.threads import ProjectThread
from pawl.workspace.project import Project

LOOK_SECONDS = 0.15
"""How often the stream is looked at while somebody listens; what this server does itself is told at once."""
BEAT_SECONDS = 10.0
MOST_LISTENERS = 64
STATE_CHANGED = 'data: {"id": null, "type": "StateChanged", "body": {}}\n\n'


class EventFeed:
    """One for a server. Belongs to its event loop; reads in the thread of the reader."""

    def __init__(self, reader: ProjectThread) -> None:
        self._reader = reader
        self._stream: RunStream | None = None
        self._listeners: set[asyncio.Event] = set()
        self._state = 0
        """Counts how often the state of the session changed."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    def changed(self) -> None:
        """The state of the session is another one; from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The server has ended.
                self._loop.call_soon_threadsafe(self._tell_state)

    def close(self) -> None:
        """End every answer that is still open."""
        self.closed = True
        self._wake()

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= MOST_LISTENERS

    async def last(self) -> int:
        return await self._reader.run(lambda shop: self._opened(shop).last())

    async def lines(self, after: int, run: str = "") -> AsyncIterator[str]:
        """The stream of one listener, from the event after that number on."""
        self._loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._listeners.add(woken)
        state, silent = self._state, 0.0
        try:
            yield ": welcome\n\n"
            while not self.closed:
                start = after
                events = await self._reader.run(self._reading(after, run))
                for event in events:
                    after = int(str(event["id"]))
                    yield f"id: {after}\ndata: {json.dumps(event)}\n\n"
                if state != self._state:
                    state = self._state
                    yield STATE_CHANGED
                if after != start:
                    silent = 0.0
                    continue
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), LOOK_SECONDS)
                woken.clear()
                silent += LOOK_SECONDS
                if silent >= BEAT_SECONDS:
                    silent = 0.0
                    yield ": beat\n\n"
        finally:
            self._listeners.discard(woken)

    def _tell_state(self) -> None:
        self._state += 1
        self._wake()

    def _wake(self) -> None:
        for one in self._listeners:
            one.set()

    def _reading(self, after: int, run: str) -> Callable[[Project], list[Json]]:
        def read(shop: Project) -> list[Json]:
            events = self._opened(shop).read(shop.workspace, after=after, run=run)
            return [_completed(shop, event) for event in events]

        return read

    def _opened(self, shop: Project) -> RunStream:
        if self._stream is None:
            self._stream = RunStream.open(shop.config.state)
            self._reader.hold(self._stream.close)
        return self._stream


def _completed(shop: Project, event: Json) -> Json:
    """The end of a run comes with its report, as the record has it now."""
    if event["type"] == "RunEnded":
        with contextlib.suppress(PawlError):
            report = Session(shop).report(str(event["run"]))
            body = {"report": json.loads(as_json(report_json(shop, report, changes_of(shop, report))))}
            return {**event, "body": body}
    return event
