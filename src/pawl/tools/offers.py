"""The tools that a model is offered: exactly those named, in the order of the registry, so that prompt caches hold."""

from __future__ import annotations

from collections.abc import Iterable

from pawl.core.dialogue import ToolOffer
from pawl.core.errors import UnknownTool
from pawl.tools.registry import Registry


def offers(registry: Registry, names: Iterable[str]) -> tuple[ToolOffer, ...]:
    """`UnknownTool` when a name is not in the registry: what is offered is what was decided, never less."""
    wanted = frozenset(names)
    missing = sorted(wanted - set(registry.names))
    if missing:
        raise UnknownTool(
            f"there is no tool {', '.join(map(repr, missing))}", advice=f"the tools are {', '.join(registry.names)}"
        )
    return tuple(
        ToolOffer(name=tool.name, description=tool.page.text, input_schema=tool.input_schema)
        for tool in (registry.tool(name) for name in registry.names if name in wanted)
    )
