"""`pawl dev`: the project's dev server on a bench, started, asked about, read and ended."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call, check_range
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import Command, install_option

if TYPE_CHECKING:
    from pawl.checks.dev_process import ServerRecord
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    actions = ["start", "status", "logs", "stop"]
    parser.add_argument("action", choices=actions, metavar="ACTION", help="start, status, logs or stop")
    parser.add_argument("--port", type=int, metavar="N", help="the port to try first (default: the server's usual one)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="time limit for the start (default 60)"
    )
    install_option(parser)
    parser.add_argument("--secrets", action="store_true", help="let the server read .env and key files")
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="how many lines of the log (default 50)")


DECLARED = {"dev": Command(words=words, example="pawl dev start\n  pawl dev stop")}
EXIT_NONE = 3
"""There is no server to tell about."""


def dev(shop: Project, call: Call) -> int:
    from pawl.checks import dev_process as serving

    match call.options.action:
        case "start":
            return _start(shop, call)
        case "logs":
            return _logs(shop, call)
        case "status":
            record = serving.status(shop)
            return _none(call) if record is None else _tell(call, record)
        case _:
            record = serving.stop(shop)
            if record is None:
                return _none(call)
            return call.answer({**_shape(record), "state": "stopped"}, f"stopped {record.name or 'the dev server'}")


def _start(shop: Project, call: Call) -> int:
    from pawl.checks import dev_process as serving
    from pawl.workspace.masks import hidden_note

    options = call.options
    if options.port is not None and not 0 < options.port < 1 << 16:
        raise UsageError(f"--port {options.port} is not a port", advice="give one from 1024 to 65535")
    check_range("--seconds", options.seconds, 1, 3600, "60 suits most servers")
    request = serving.DevRequest(
        port=options.port, seconds=options.seconds, install=options.install, secrets=options.secrets
    )
    hidden = "" if options.secrets else hidden_note(shop.tree, shop.guardrails, "--secrets")
    if hidden and not options.json:
        call.aside.hint(hidden)
    record, started = serving.start(shop, request)
    return _tell(call, record, "" if started else "already running: ")


def _logs(shop: Project, call: Call) -> int:
    from pawl.checks import dev_process as serving

    if call.options.lines < 1:
        raise UsageError(f"--lines {call.options.lines} shows nothing", advice="give a number from 1")
    serving.required(serving.status(shop))
    text = serving.logs(shop, call.options.lines)
    return call.answer({"lines": text.splitlines()}, text)


def _none(call: Call) -> int:
    return call.answer(_shape(None), "no dev server runs for this workspace", EXIT_NONE)


def _tell(call: Call, record: ServerRecord, before: str = "") -> int:
    from pawl.checks.dev_process import ServerState

    runs = record.state in (ServerState.STARTING, ServerState.READY)
    code = 0 if runs else EXIT_NONE
    if call.options.json:
        return call.emit(_shape(record), code)
    where = f" at {record.url}" if record.url else ""
    why = f": {record.reason}" if record.reason else ""
    verb = "is" if runs else "has"
    if record.notice and runs:
        call.out.say(record.notice, "yellow")
    call.out.say(f"{before}{record.name or 'the dev server'} {verb} {record.state}{where}{why}")
    if record.url and record.state is ServerState.READY:
        call.out.hint("stop it with: pawl dev stop")
    if not runs:
        call.out.hint("read its log: pawl dev logs; start it again: pawl dev start")
    return code


def _shape(record: ServerRecord | None) -> Json:
    if record is None:
        return {**dict.fromkeys(("name", "state", "url", "port", "pid")), "reason": "", "notice": ""}
    return picked(record, "name state url port pid reason notice")
