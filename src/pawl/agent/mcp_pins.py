"""The definitions of MCP servers that the user agreed to.

What a model is told of a server is the pinned copy: a server is not started for it, and a definition that changed
since is told to nobody before the user has agreed again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import plain, read_json, typed
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.settings.files import workspace_key, write_private
from pawl.settings.permission_rules import MCP, MCP_CALL, MCP_SEARCH, ToolKind
from pawl.workspace.mcp_settings import KnownServer, digest, known_servers

_ODD = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
"""Of a tool, as providers take it."""
LARGEST_PIN = 16 << 20
_ALTERNATIVES = ("anyOf", "oneOf", "allOf", "not", "enum")
"""What providers refuse at the top of a tool's arguments; the server itself holds a call to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The user's agreement: the server as it was written, and its definitions."""

    server: str
    at: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    resources: bool = False
    suspended: str = ""
    """Why nothing of it counts until the user agrees again."""

    @property
    def digest(self) -> str:
        return digest([sorted(map(digest, self.tools)), sorted(map(digest, self.prompts))])


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool as a model knows it, and what its server calls it."""

    name: str
    server: str
    tool: str
    description: str
    schema: Mapping[str, Any]
    kind: ToolKind

    @property
    def size(self) -> int:
        return len(self.name) + len(self.description) + len(json.dumps(self.schema))


RESOURCES = "read_resource"
"""A tool that each server with resources has, unless it has one of that name itself."""
_RESOURCES: Mapping[str, Any] = {
    "name": RESOURCES,
    "description": "Lists the resources of the server, or reads the one with this uri.",
    "inputSchema": {"type": "object", "properties": {"uri": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


def tools_of(name: str, pin: Pin) -> tuple[McpTool, ...]:
    """The tools of a server under names that no tool of Pawl's or of another server can have."""
    found: dict[str, McpTool] = {}
    given = {str(one["name"]): one for one in pin.tools}
    for tool, one in {**({RESOURCES: _RESOURCES} if pin.resources else {}), **given}.items():
        full = f"{MCP}{name}__{_ODD.sub('_', tool)}"
        if len(full) > LONGEST_NAME or full in found:
            full = f"{full[: LONGEST_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"
        notes = one.get("annotations")
        reads = isinstance(notes, Mapping) and notes.get("readOnlyHint") is True
        found[full] = McpTool(
            name=full,
            server=name,
            tool=tool,
            description=str(one.get("description") or one.get("title") or ""),
            schema=_object(one["inputSchema"]),
            kind=ToolKind.READS if reads else ToolKind.RUNS,
        )
    return tuple(found.values())


def _object(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as every provider takes it: one object, with the fields of all alternatives at its top."""
    chosen = [one for key in _ALTERNATIVES if isinstance(given.get(key), list) for one in given[key]]
    every = [part["properties"] for part in (*chosen, given) if isinstance(part, dict) and "properties" in part]
    fields = {name: field for one in every if isinstance(one, dict) for name, field in one.items()}
    required = given.get("required")
    needed = [one for one in required if isinstance(one, str) and one in fields] if isinstance(required, list) else []
    rest = {key: value for key, value in given.items() if key not in (*_ALTERNATIVES, "required")}
    described = {name: field if isinstance(field, dict) else {} for name, field in fields.items()}
    return {**rest, "type": "object", "properties": described, **({"required": needed} if needed else {})}


def pin_place(config: Config, workspace: str, known: KnownServer) -> Path:
    owner = "user" if known.is_own else workspace_key(workspace)
    return config.state / "mcp" / f"{owner}.{known.name}.json"


def pin_of(config: Config, workspace: str, known: KnownServer) -> Pin | None:
    """None where the user has not agreed yet, or to a server that was written differently."""
    try:
        pin = typed(Pin, read_json(bounded.read_text(pin_place(config, workspace, known), LARGEST_PIN)))
    except (OSError, ValueError):
        return None
    return pin if pin.server == known.server.digest else None


def keep_pin(config: Config, workspace: str, known: KnownServer, pin: Pin) -> None:
    write_private(pin_place(config, workspace, known), json.dumps(plain(pin)))


def agreed(config: Config, workspace: str) -> dict[str, tuple[KnownServer, Pin]]:
    """The servers that count, each with its pinned definitions."""
    found = {}
    for name, known in known_servers(config, workspace).items():
        pin = None if known.mistake else pin_of(config, workspace, known)
        if pin is not None and not pin.suspended:
            found[name] = (known, pin)
    return found


def mcp_kinds(config: Config, workspace: str) -> dict[str, ToolKind]:
    """The kind of every tool of the servers that the user agreed to."""
    servers = agreed(config, workspace)
    found = {one.name: one.kind for name, (_, pin) in servers.items() for one in tools_of(name, pin)}
    # The tool that is found is judged by its own kind when it is called.
    return {**found, **dict.fromkeys((MCP_SEARCH, MCP_CALL), ToolKind.READS)} if found else {}
