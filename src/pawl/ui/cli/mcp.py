"""`pawl mcp`: the MCP servers whose tools agents may call here, agreeing to them, and Pawl as a server for others."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pawl.core.errors import NotFound, UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.parser import Command, mixed
from pawl.ui.screen.screen import agreed, counted

if TYPE_CHECKING:
    from pawl.agent.mcp_pins import Pin
    from pawl.workspace.mcp_settings import KnownServer, McpServer
    from pawl.workspace.project import Project

ACTIONS = ("list", "add", "remove", "test", "trust", "serve")
NEEDS_NAME = ("add", "remove", "test", "trust")
WAITS = 4


def mcp_words(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("name", nargs="?", metavar="NAME", help="the server")
    parser.add_argument("words", nargs="*", metavar="WORD", help="for add, after --: the command that starts it")
    parser.add_argument("--url", metavar="URL", help="for add: the address of a server that runs elsewhere")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for add: a variable for it")
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="for add: an HTTP header")
    parser.add_argument(
        "--reads", action="append", default=[], metavar="DIR", help="for add: a folder that it may read"
    )
    parser.add_argument("--network", action="store_true", help="for add: it may use the network")
    parser.add_argument("--host", action="store_true", help="for add: it runs outside the sandbox")
    parser.add_argument("--timeout", type=float, metavar="MS", help="for add: milliseconds for one answer")
    parser.add_argument("--hands", choices=["files", "commands"], help="for serve: the files or commands of a bench")
    parser.add_argument("--bench", default="", metavar="DIR", help="for serve with --hands: the folder of the bench")
    parser.add_argument("-y", "--yes", action="store_true", help="for add and trust: agree without being asked")


DECLARED = {
    "mcp": Command(
        words=mcp_words,
        example="pawl mcp add notes -- npx my-notes-server\n  pawl mcp trust notes",
        reads=True,
        read=mixed,
    )
}


def mcp(shop: Project, call: Call) -> int:
    action, name = call.options.action, call.options.name
    if (name is None) is (action in NEEDS_NAME):
        need = "needs the name of a server" if name is None else "takes no name"
        raise UsageError(f"'pawl mcp {action}' {need}", advice="'pawl mcp list' lists them")
    if call.options.words and action != "add":
        raise UsageError(f"'pawl mcp {action}' takes no command", advice="only 'pawl mcp add' takes one")
    actions = {"list": _list, "add": _add, "remove": _remove, "test": _test, "trust": _trust, "serve": _serve}
    return actions[action](shop, call)


def _serve(shop: Project, call: Call) -> int:
    """Offers Pawl's commands to other agents, on the standard streams."""
    from pawl.agent.intents import understood
    from pawl.agent.mcp_server import CommandCaller, ToolServer, command_tools
    from pawl.agent.own_extensions import own_phrases_of
    from pawl.core.run import Intent
    from pawl.workspace.mcp_settings import mcp_settings

    if call.options.hands:
        from pawl.agent.tools.mcp_hands import serve_hands

        serve_hands(shop, call.options.hands, Path(call.options.bench), sys.stdin.buffer, sys.stdout.buffer)
        return 0
    own = own_phrases_of(shop.config, shop.workspace)

    def takes_back(request: str) -> bool:
        guess = understood(request, own)
        return guess is not None and guess.intent is Intent.UNDO

    may_promote = mcp_settings(shop.config).promote == "allow"
    caller = CommandCaller(shop.workspace, may_promote, takes_back)
    ToolServer(command_tools(), caller, sys.stdout.buffer).serve(sys.stdin.buffer)
    return 0


def _list(shop: Project, call: Call) -> int:
    from pawl.settings.trust import MCP_FILE, is_trusted
    from pawl.workspace.mcp_settings import known_servers

    rows = []
    for known in known_servers(shop.config, shop.workspace).values():
        standing, tools = _standing(shop, known)
        rows.append({"name": known.name, "standing": standing, "tools": tools, "runs": _runs(known.server)})
        rows[-1] |= {"source": known.source}
    unheard = os.path.lexists(os.path.join(shop.workspace, MCP_FILE)) and not is_trusted(shop.config, shop.workspace)
    if unheard:
        call.aside.say(
            f"servers in {MCP_FILE} are not used, because this folder is not trusted; trust it with: pawl trust"
        )
    if call.options.json:
        return call.emit({"servers": rows})
    if not rows:
        if not unheard:
            call.out.hint("no MCP server is configured; add one with: pawl mcp add NAME -- COMMAND")
        return 0
    shown = [tuple(str(one[key]) for key in ("name", "standing", "tools", "runs")) for one in rows]
    call.out.table(("server", "stands", "tools", "runs"), shown, flexible=3)
    return 0


def _standing(shop: Project, known: KnownServer) -> tuple[str, int]:
    from pawl.agent.mcp_pins import pin_of

    if known.mistake:
        return f"unusable: {known.mistake}", 0
    pin = pin_of(shop.config, shop.workspace, known)
    if pin is None:
        return "not agreed", 0
    return f"suspended ({pin.suspended})" if pin.suspended else "agreed", len(pin.tools)


def _runs(server: McpServer) -> str:
    from pawl.core.redact import redacted_command

    reads = f", reading {', '.join(server.reads)}" if server.reads else ""
    inside = f"in the sandbox{' with a network' if server.network else ''}{reads}"
    where = "on this machine" if server.host else inside
    return server.url or f"{redacted_command((server.command, *server.args))} ({where})"


def _found(shop: Project, name: str) -> KnownServer:
    from pawl.core.typed import near
    from pawl.workspace.mcp_settings import known_servers

    servers = known_servers(shop.config, shop.workspace)
    if name not in servers:
        advice = "'pawl mcp list' lists them; those of .mcp.json count after 'pawl trust'"
        raise NotFound(f"there is no MCP server {name!r}{near(name, servers)}", advice=advice)
    if servers[name].mistake:
        raise UsageError(f"the MCP server {name!r} {servers[name].mistake}", advice=f"correct {servers[name].source!r}")
    return servers[name]


def _add(shop: Project, call: Call) -> int:
    from pawl.core.typed import typed
    from pawl.settings.config import load
    from pawl.settings.settings_writer import save_server
    from pawl.workspace.mcp_settings import McpServer, server_mistake

    options = call.options
    given: dict[str, object] = {"url": options.url} if options.url else {"command": " ".join(options.words[:1])}
    if options.words[1:]:
        given["args"] = options.words[1:]
    pairs = {key: dict(_pair(one) for one in getattr(options, key)) for key in ("env", "header")}
    given |= {"env": pairs["env"]} if pairs["env"] else {}
    given |= {"headers": pairs["header"]} if pairs["header"] else {}
    given |= {key: getattr(options, key) for key in ("reads", "network", "host", "timeout") if getattr(options, key)}
    if mistake := server_mistake(options.name, typed(McpServer, given)):
        raise UsageError(f"{options.name!r} {mistake}", advice="give --url URL, or -- and the command that starts it")
    path = save_server(shop.config, options.name, given)
    call.aside.say(f"pawl: written to {str(path)!r}")
    return _trust(replace(shop, config=load(shop.config.environment)), call)


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise UsageError(f"{text!r} is not NAME=VALUE", advice="write it as TOKEN=${TOKEN}")
    return name, value


def _remove(shop: Project, call: Call) -> int:
    from pawl.agent.mcp_pins import pin_place
    from pawl.settings.settings_writer import remove_server

    known = _found(shop, call.options.name)
    if not known.is_own:
        raise UsageError(f"{known.name!r} is in {known.source!r} of the workspace", advice="take it out there")
    path = remove_server(shop.config, known.name)
    pin_place(shop.config, shop.workspace, known).unlink(missing_ok=True)
    return call.answer({"removed": known.name, "file": str(path)}, f"removed from {str(path)!r}: {known.name}")


def _asked(shop: Project, call: Call, known: KnownServer) -> tuple[Pin, dict[str, object]]:
    """The definitions of the server as it gives them now; it is started and ended for it."""
    from pawl.agent.tools.served_tools import RunningServer, definitions

    started = time.monotonic()
    with call.interruptions.stopping() as cancel, closing(RunningServer(shop, known, cancel)) as running:
        client = running.client()
        pin = definitions(client, known)
        told = {
            "server": known.name,
            "protocol": client.version,
            "info": dict(client.info),
            "seconds": round(time.monotonic() - started, 3),
            "tools": [_brief(one) for one in pin.tools],
            "prompts": [_brief(one) for one in pin.prompts],
            "resources": pin.resources,
        }
    return pin, told


def _brief(one: Mapping[str, Any]) -> dict[str, object]:
    schema = {"arguments": one["inputSchema"]} if "inputSchema" in one else {}
    return {"name": one["name"], "description": str(one.get("description", "")), **schema}


def _test(shop: Project, call: Call) -> int:
    known = _found(shop, call.options.name)
    if not _may_start(shop, known):
        raise UsageError(f"{known.name!r} is given {_more(known)}", advice=f"agree first: pawl mcp trust {known.name}")
    pin, told = _asked(shop, call, known)
    if call.options.json:
        return call.emit(told)
    call.out.say(f"{told['server']}: protocol {told['protocol']}, answered in {told['seconds']} s")
    _show(call, pin)
    return 0


def _show(call: Call, pin: Pin) -> None:
    for kind, every in (("tools", pin.tools), ("prompts", pin.prompts)):
        rows = [(kind, "for"), *((one["name"], line) for one in every for line in described(one))]
        width = max(len(name) for name, _ in rows)
        for name, line in rows if every else ():
            call.out.paragraph(f"{name:<{width}}  {line}")


def described(one: Mapping[str, Any]) -> Iterator[str]:
    """All that a model reads of a definition, for whoever is to agree to it; no arguments that are names alone."""
    yield str(one.get("description") or one.get("title") or "")
    if re.search(r"[ \\]", json.dumps(one.get("inputSchema"), separators=(",", ":"))):
        yield f"its arguments: {json.dumps(one['inputSchema'], ensure_ascii=False)}"


def _trust(shop: Project, call: Call) -> int:
    """Shows what the server is and says of itself, and pins exactly that when the user agrees."""
    from pawl.agent.mcp_pins import keep_pin, pin_of
    from pawl.agent.tools.served_tools import changed_definitions

    known = _found(shop, call.options.name)
    before = pin_of(shop.config, shop.workspace, known)
    if not call.options.json:
        call.out.say(f"{known.name}: {_runs(known.server)}; from {known.source}")
        if known.server.variables:
            call.out.say(f"  it is given: {', '.join(known.server.variables)}")
    if not (
        call.options.yes or _may_start(shop, known) or _says_yes(call, "start it like this to see its definitions?")
    ):
        why = f"not started, because it is given {_more(known)}; --yes agrees"
        body = {"server": known.name, "agreed": False, "why": why}
        return call.answer(body, f"{why}; nothing of {known.name} is offered to a model", WAITS)
    pin, told = _asked(shop, call, known)
    changed = changed_definitions(before, pin) if before is not None else ""
    if not call.options.json:
        _show(call, pin)
        if changed:
            call.out.say(f"since you agreed: {changed}", "yellow")
    agrees = call.options.yes or _says_yes(call, "agree to these?")
    if agrees:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        keep_pin(shop.config, shop.workspace, known, replace(pin, at=at))
        shop.note("mcp agreed", {"server": known.name, "tools": len(pin.tools)})
    if call.options.json:
        return call.emit({**told, "changed": changed, "agreed": agrees}, 0 if agrees else WAITS)
    if not agrees:
        call.out.say(f"not agreed; nothing of {known.name} is offered to a model (--yes agrees)")
        return WAITS
    call.out.say(
        f"agreed: {counted(len(pin.tools), 'tool')}; calls need your yes unless a rule allows mcp__{known.name}__*"
    )
    return 0


def _may_start(shop: Project, known: KnownServer) -> bool:
    """A repository's server that has more than a command is started only as the user agreed to it."""
    from pawl.agent.mcp_pins import pin_of

    return known.is_own or not known.server.has_more or pin_of(shop.config, shop.workspace, known) is not None


def _more(known: KnownServer) -> str:
    server = known.server
    given = ("a network" if server.network or server.url else "", *server.variables, *server.env, *server.reads)
    return ", ".join(dict.fromkeys(one for one in given if one))


def _says_yes(call: Call, question: str) -> bool:
    return call.can_ask and agreed(call, question)
