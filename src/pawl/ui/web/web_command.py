"""`pawl web`: the page in the browser, served on loopback for the user alone."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.settings.config import host_variables
from pawl.settings.installation import with_extra
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.settings.config import Config
    from pawl.ui.cli.call import Call

LOOPBACK = "127.0.0.1"
_SHOWN = "import sys, webbrowser; webbrowser.open(sys.argv[1])"
LEADING = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Pawl</title>
<meta http-equiv="refresh" content="0; url={address}"><p>Pawl is <a href="{address}">here</a>.
"""


def words(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port (default: one that is free)")
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--model", default="", metavar="M", help="the model to ask (default: the configured one)")
    parser.add_argument("--page", default="", metavar="DIR", help="a built page of your own instead of Pawl's")
    parser.add_argument("--factory", action="store_true", help="show Pawl's own page, without your changes")


DECLARED = {"web": Command(words=words, example="pawl web\n  pawl web --port 8080 --no-open")}


def web(config: Config, workspace: Path, call: Call) -> int:
    try:
        from pawl.ui.web.page_server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UsageError(
            "'pawl web' needs starlette and uvicorn", advice=f"install them with: {with_extra('web')}"
        ) from error

    with ExitStack() as stack, _socket(call.options.port) as listening:

        def ready(address: str) -> Callable[[], object]:
            call.answer({"url": address}, f"{workspace.name} is open at {address}\nCtrl-C ends it")
            if not call.options.no_open:
                words = (sys.executable, "-I", "-c", _SHOWN, _leading(address, stack))
                subprocess.run(words, check=False, cwd="/", env=host_variables(config.environment))
            return stack.close

        serve(config, workspace, listening, call.options, ready)
    return 0


def _leading(address: str, stack: ExitStack) -> str:
    """The address of a file of the user's alone that leads on to `address`: the arguments of a browser can be read by
    every user of the machine, and must not hold the token. The file goes with the stack."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pawl-web-"))) / "open.html"
    path.touch(0o600)
    path.write_text(LEADING.format(address=address), "utf-8")
    return path.as_uri()


def _socket(port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port {port} is not a port", advice="give one from 1024 to 65535")
    listening = socket.socket()
    # The port of a server that was killed can be had at once; one that somebody listens on cannot.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        # Whoever is told the address can connect at once.
        listening.listen()
    except OSError as error:
        listening.close()
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", advice="give another one, or none for one that is free"
        ) from error
    return listening
