"""All tools of one bench, wired to the ports they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pawl.core.guardrails import Guardrails
from pawl.core.ports import Cancel, Checker, CommandRunner, DependencyMap, Editor, Files, Outliner
from pawl.tools.limits import ToolLimits
from pawl.tools.page import Page, page
from pawl.tools.registry import Build, Registry
from pawl.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the tools work on. `files`, and those under `editor`, are `TimedFiles`: each operation has its limit."""

    files: Files
    editor: Editor
    runner: CommandRunner
    dependencies: Callable[[], DependencyMap]
    guardrails: Guardrails
    outliner: Outliner | None = None
    checker: Checker | None = None
    """Without these two there is no such tool."""
    limits: ToolLimits = field(default_factory=ToolLimits)
    cancel: Cancel | None = None
    """Ends what takes long; commands have the runner's."""


def toolbox(ports: Ports, own: Mapping[str, Build] | None = None) -> Registry:
    """Each tool's module is loaded when the tool is first offered or called; `own` are the user's."""
    variables = _variables(ports)
    builders = dict(_BUILDERS)
    if ports.outliner is None:
        del builders["outline"]
    if ports.checker is None:
        del builders["check"], builders["lsp_diagnostics"]

    def build(name: str) -> Build:
        return lambda: builders[name](ports, page(name, variables))

    return Registry({**{name: build(name) for name in builders}, **(own or {})}, ports.limits)


def _file_search(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.file_search import file_search

    return file_search(ports.files, ports.guardrails, ports.limits, text, cancel=ports.cancel)


def _file_read(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.file_read import file_read

    return file_read(ports.editor, ports.limits, text)


def _file_write(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.file_write import file_write

    return file_write(ports.editor, text)


def _strict_patch(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.strict_patch import strict_patch

    return strict_patch(ports.editor, text)


def _line_edit(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.line_edit import line_edit

    return line_edit(ports.editor, text)


def _modify(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.modify import modify

    return modify(ports.editor, text)


def _change_files(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.change_files import change_files

    return change_files(ports.editor, ports.dependencies, text)


def _run_command(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.run_command import run_command

    return run_command(ports.runner, ports.limits, text)


def _outline(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.outline import outline

    assert ports.outliner is not None
    return outline(ports.outliner, ports.files, text)


def _check(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.check import check

    assert ports.checker is not None
    return check(ports.checker, ports.limits, text)


def _lsp_diagnostics(ports: Ports, text: Page) -> Tool[Any]:
    from pawl.tools.lsp_diagnostics import lsp_diagnostics

    assert ports.checker is not None
    return lsp_diagnostics(ports.checker, ports.files, ports.limits, text)


_BUILDERS: Mapping[str, Callable[[Ports, Page], Tool[Any]]] = {
    "file_search": _file_search,
    "file_read": _file_read,
    "file_write": _file_write,
    "strict_patch": _strict_patch,
    "line_edit": _line_edit,
    "modify": _modify,
    "change_files": _change_files,
    "run_command": _run_command,
    "outline": _outline,
    "check": _check,
    "lsp_diagnostics": _lsp_diagnostics,
}


def _variables(ports: Ports) -> dict[str, object]:
    guardrails, limits = ports.guardrails, ports.limits
    return {
        "file_bytes": f"{guardrails.file_bytes:,}",
        "patch_lines": guardrails.patch_lines,
        "line_edits": guardrails.line_edits,
        "matches": limits.matches,
        "read_lines": f"{limits.read_lines:,}",
        "tool_seconds": f"{limits.tool_seconds:g}",
        "check_seconds": f"{limits.check_seconds:g}",
        "lsp_seconds": f"{limits.lsp_seconds:g}",
        "most_command_seconds": f"{limits.most_command_seconds:g}",
    }
