"""Tools of the user's own: what one is, and the ports that it works through, each use judged by the same rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Generic

from pawl.agent.tools.tool_registry import Effect, Given, Ports, Tool, ToolPage, ToolText
from pawl.agent.tools.tool_schema import schema
from pawl.core.errors import PermissionDenied, PolicyViolation, SecretRefused, ToolError
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.extensions import NOT_A_TOOL, loaded, wrong_extension
from pawl.settings.guardrails import Permission

if TYPE_CHECKING:
    from pawl.code.code_model import Edited, LineEdit, Modification
    from pawl.code.import_map import ImportMap
    from pawl.core.execution import Completed, Execution
    from pawl.core.text import Text


__all__ = ["Effect", "OwnTool", "ToolPorts", "built"]

Permit = Callable[[str, Mapping[str, object]], Permission]
Guard = Callable[[], AbstractContextManager[None]]

_READ, _WRITE, _RUN = "file_read", "file_write", "run_command"
"""Pawl's own tools, by whose rules the uses of ports are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool(Generic[Given]):
    """A tool of an entry point of the group `pawl.tools`, under the entry point's name."""

    purpose: str
    """One line."""
    text: str
    """Told to a model about it."""
    input: type[Given]
    """A dataclass of texts, numbers, flags, lists and further dataclasses."""
    effect: Effect
    run: Callable[[Given, ToolPorts], str]
    """The work. A `ToolError` of its own is a way to fail that the model is told by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPorts:
    """All that a tool of the user's own has of the bench."""

    files: ReadFiles
    editor: JudgedEditor
    """For tools that write or run; others may only read with it."""
    runner: JudgedRunner
    """For tools that run."""


def built(name: str, own: OwnTool[Any], ports: Ports, *, permit: Permit, guard: Guard) -> Tool[Any]:
    """The tool over one bench. `guard` turns whatever its code raises into errors of Pawl's."""
    rules = _Rules(name, own.effect, permit)
    given_ports = ToolPorts(
        files=ReadFiles(ports, rules), editor=JudgedEditor(ports, rules), runner=JudgedRunner(ports, rules)
    )

    def run(given: object) -> ToolText:
        with guard():
            said = own.run(given, given_ports)
        if not isinstance(said, str):
            raise ToolError(
                f"the tool {name!r} gave back {type(said).__name__}, not text",
                advice="do it with another tool, and tell the user that this one is broken",
            )
        return ToolText(said)

    return Tool(name=name, page=ToolPage(own.purpose, own.text), input=own.input, handler=run, effect=own.effect)


@dataclass(frozen=True, slots=True)
class _Rules:
    tool: str
    effect: Effect
    permit: Permit

    def hold(self, use: str, arguments: Mapping[str, object]) -> None:
        """`PermissionDenied` for what a rule forbids or would ask about: inside of a call nobody can be asked."""
        said = self.permit(use, arguments)
        if not said.allowed:
            what = arguments.get("path") or arguments.get("argv")
            raise PermissionDenied(
                f"{self.tool!r} may not use {what!r}: {said.reason}", advice=f"do that part with {use}, or without it"
            )

    def hold_effect(self, *effects: Effect) -> None:
        if self.effect not in effects:
            raise PolicyViolation(
                f"{self.tool!r} says of itself that it {self.effect}, and does more",
                advice="the package that brings it has to declare its effect as it is",
            )


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """The files of the bench, to read."""

    _ports: Ports
    _rules: _Rules

    def read(self, path: str) -> bytes:
        if self._ports.guardrails.is_secret(path):
            raise SecretRefused(f"{path!r} holds secrets", advice="work without its content")
        self._rules.hold(_READ, {"path": path})
        return self._ports.files.read(path)

    def exists(self, path: str) -> bool:
        return self._ports.files.exists(path)

    def walk(self, under: str = "") -> Iterable[str]:
        """Every file that is not ignored and holds no secrets, sorted."""
        return [path for path in self._ports.files.walk(under) if not self._ports.guardrails.is_secret(path)]


@dataclass(frozen=True, slots=True)
class JudgedEditor:
    """Fits `BenchEditor`, each use judged."""

    _ports: Ports
    _rules: _Rules

    def read(self, path: str) -> Text:
        self._rules.hold(_READ, {"path": path})
        return self._ports.editor().read(path)

    def write(self, path: str, content: str) -> Edited:
        self._hold(path)
        return self._ports.editor().write(path, content)

    def patch(self, path: str, old: str, new: str) -> Edited:
        self._hold(path)
        return self._ports.editor().patch(path, old, new)

    def edit_lines(self, path: str, edits: Sequence[LineEdit]) -> Edited:
        self._hold(path)
        return self._ports.editor().edit_lines(path, edits)

    def modify(self, modification: Modification) -> Edited:
        self._hold(modification.path)
        return self._ports.editor().modify(modification)

    def chain(
        self, modifications: Sequence[Modification], *, justification: str, dependencies: ImportMap
    ) -> tuple[Edited, ...]:
        for one in modifications:
            self._hold(one.path)
        return self._ports.editor().chain(modifications, justification=justification, dependencies=dependencies)

    def _hold(self, path: str) -> None:
        self._rules.hold_effect(Effect.WRITES, Effect.RUNS)
        self._rules.hold(_WRITE, {"path": path})


@dataclass(frozen=True, slots=True)
class JudgedRunner:
    """Fits `CommandRunner`."""

    _ports: Ports
    _rules: _Rules

    def run(self, execution: Execution) -> Completed:
        self._rules.hold_effect(Effect.RUNS)
        self._rules.hold(_RUN, {"argv": list(execution.argv), "directory": execution.directory})
        return self._ports.runner.run(execution)


@functools.cache
def own_tool(name: str) -> OwnTool[Any]:
    found = loaded("pawl.tools", name)
    tool = found.value
    if not isinstance(tool, OwnTool) or not is_dataclass(tool.input) or not tool.text.strip():
        raise wrong_extension(found, NOT_A_TOOL)
    with found.guarded():
        schema(tool.input)
    return tool


def tool_guard(name: str) -> Callable[[], Any]:
    """Call the tool; its error is told to the model, which goes on without it."""
    return functools.partial(loaded("pawl.tools", name).guarded, ToolError)
