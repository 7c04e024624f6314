"""Puts the server together, serves until it is ended, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.responses import JSONResponse
from starlette.routing import Mount
from uvicorn.protocols.http.h11_impl import H11Protocol

from pawl.core.errors import PawlError
from pawl.settings.config import Config
from pawl.ui.cli.call import ENDING
from pawl.ui.web.api import Api, OwnApi, application
from pawl.ui.web.guard import LARGEST_HEAD, App, Guard, Receive, Scope, Send
from pawl.ui.web.own_page import OwnPage
from pawl.ui.web.page_files import PageFile
from pawl.ui.web.page_sides import Pages, WorkspaceSide
from pawl.ui.web.preview_frame import PreviewFrame
from pawl.ui.web.web_session import error_json

ENDING_SECONDS = 5
MOST_CONNECTIONS = 256
ASKING_SECONDS = 10.0
"""In which a connection must have asked for something."""


def serve(
    config: Config,
    workspace: Path,
    listening: socket.socket,
    options: Namespace,
    ready: Callable[[str], Callable[[], object]],
) -> None:
    """Serve the page of a workspace; `ready` is told the address with its token, and returns what is to be done once a
    page has come with it.

    A second port shows previews of the page, so that what nobody has approved yet is of another origin.
    """
    own = OwnPage(config, options.page, factory=options.factory)
    user = WorkspaceSide(config, workspace, options.model)
    with socket.create_server(("127.0.0.1", 0)) as second:
        (port, token), (other, key) = ((one.getsockname()[1], secrets.token_urlsafe(32)) for one in (listening, second))
        pages = Pages(own, user, PreviewFrame(port), f"http://127.0.0.1:{other}/#token={key}")
        shown_by = f"http://127.0.0.1:{port} http://localhost:{port}"
        mount = Mount("/own", _OwnSide(pages, pages.files))
        guards = {
            port: Guard(application(Api(user, pages), pages.files, "'none'", mount), port, token),
            other: Guard(_OwnSide(pages, pages.preview_file, shown_by), other, key, shown_by),
        }

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await guards[scope["server"][1]](scope, receive, send)

        try:
            user.session.start()
            pages.bring_up()
            guards[port].entered = ready(f"http://127.0.0.1:{port}/#token={token}")
            _PageServer(app, pages).run([listening, second])
        finally:
            pages.close()
            user.close()


class _OwnSide:
    """The application of the page's own sources, which are opened for the first request."""

    def __init__(self, pages: Pages, files: Callable[[str], PageFile | None], shown_by: str = "'none'") -> None:
        self._pages, self._files, self._shown_by = pages, files, shown_by
        self._app: App | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._app is None:
                side = await asyncio.to_thread(self._pages.opened)
                self._app = application(OwnApi(side, self._pages), self._files, self._shown_by)
        except PawlError as error:
            await JSONResponse(error_json(error), 400)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Connection(H11Protocol):
    """One that asks for nothing takes no place for long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(ASKING_SECONDS, self._end_if_silent)

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


class _PageServer(uvicorn.Server):
    def __init__(self, app: App, pages: Pages) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="error",  # A stranger's odd request is no news; a defect is.
                access_log=False,
                server_header=False,
                lifespan="off",
                http=_Connection,
                ws="none",
                limit_concurrency=MOST_CONNECTIONS,
                h11_max_incomplete_event_size=LARGEST_HEAD,
                timeout_graceful_shutdown=ENDING_SECONDS,
            )
        )
        self._pages = pages

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
        # They would hold it up.
        self._pages.end_answers()
        super().handle_exit(sig, frame)
