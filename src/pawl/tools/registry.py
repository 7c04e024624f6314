"""Calling a tool by its name: arguments are validated, every failure comes back as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pawl.core.errors import PawlError, TimedOut, UnknownTool
from pawl.tools.failures import from_os_error
from pawl.tools.limits import ToolLimits
from pawl.tools.schema import decode
from pawl.tools.tool import Effect, Output, Tool, ToolFailure, ToolResult

Build = Callable[[], Tool[Any]]


class Registry:
    """The tools of one bench. One that is given as a way to build it is built when it is first asked for."""

    def __init__(self, tools: Iterable[Tool[Any]] | Mapping[str, Build], limits: ToolLimits | None = None) -> None:
        self._built: dict[str, Tool[Any]] = {}
        self._builds: dict[str, Build] = {}
        if isinstance(tools, Mapping):
            self._builds.update(tools)
        else:
            self._built.update((tool.name, tool) for tool in tools)
        self._names = tuple(self._builds or self._built)
        self._most = (limits or ToolLimits()).result_characters

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def tools(self) -> tuple[Tool[Any], ...]:
        return tuple(self.tool(name) for name in self._names)

    def tool(self, name: str) -> Tool[Any]:
        """`UnknownTool` when there is none of that name."""
        if name not in self._names:
            raise UnknownTool(f"there is no tool {name!r}", advice=f"the tools are {', '.join(self._names)}")
        if name not in self._built:
            self._built[name] = self._builds[name]()
        return self._built[name]

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult | ToolFailure:
        """What the tool hands back, or how it failed. A name or an argument that is wrong is never guessed right."""
        try:
            tool = self.tool(name)
            output = _run(tool, decode(tool.input, arguments))
            return ToolResult(tool=name, output=output, effect=tool.effect, most=self._most)
        except PawlError as error:
            return ToolFailure.of(name, error, self._most)
        except OSError as error:
            return ToolFailure.of(name, from_os_error(error), self._most)


def _run(tool: Tool[Any], given: object) -> Output:
    """One call, and one more after a time-out if the tool only reads.

    A tool that writes may have taken effect all the same, and a command may have done half of its work: to do either
    again without a look could do it twice. These are reported, and the model decides.
    """
    try:
        return tool.handler(given)
    except TimedOut:
        if tool.effect is not Effect.READS:
            raise
        return tool.handler(given)
