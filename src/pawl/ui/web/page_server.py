"""Puts the server together, serves until it is ended, and leaves nothing behind."""

from __future__ import annotations

import secrets
import signal
import socket
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from pawl.settings.config import Config
from pawl.ui.cli.call import ENDING
from pawl.ui.web.api import Api, application
from pawl.ui.web.event_feed import EventFeed
from pawl.ui.web.guard import Guard
from pawl.ui.web.page_files import page_files
from pawl.ui.web.threads import ProjectThread
from pawl.ui.web.web_session import WebSession

ENDING_SECONDS = 5


def serve(
    config: Config, workspace: Path, listening: socket.socket, options: Namespace, ready: Callable[[str], object]
) -> None:
    """Serve the page of a workspace; `ready` is told the address with its token."""
    page = page_files(options.page)
    port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
    reader, commands = (ProjectThread(config, workspace, name) for name in ("reader", "commands"))
    feed = EventFeed(reader)
    session = WebSession(config, workspace, feed.changed)
    session.choices.model = options.model
    try:
        session.start()
        app = Guard(application(Api(session, feed, reader, commands), page), port, token)
        ready(f"http://127.0.0.1:{port}/#token={token}")
        _PageServer(app, feed).run([listening])
    finally:
        session.close()
        commands.close()
        reader.close()


class _PageServer(uvicorn.Server):
    def __init__(self, app: Guard, feed: EventFeed) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="error",  # A stranger's odd request is no news; a defect is.
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=ENDING_SECONDS,
            )
        )
        self._feed = feed

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the server as a person wants it to end, so that it is no error."""
        heard = [one for one in ENDING if signal.getsignal(one) is not signal.SIG_IGN]
        before = {one: signal.signal(one, self.handle_exit) for one in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Answers that never end would hold it up.
        self._feed.close()
        super().handle_exit(sig, frame)
