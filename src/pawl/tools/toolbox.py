"""All tools of one bench, wired to the ports they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pawl.core.guardrails import Guardrails
from pawl.core.ports import Checker, CommandRunner, DependencyMap, Editor, Files, Outliner
from pawl.tools.change_files import change_files
from pawl.tools.check import check
from pawl.tools.file_read import file_read
from pawl.tools.file_search import file_search
from pawl.tools.file_write import file_write
from pawl.tools.limits import ToolLimits
from pawl.tools.line_edit import line_edit
from pawl.tools.modify import modify
from pawl.tools.outline import outline
from pawl.tools.page import page
from pawl.tools.registry import Registry
from pawl.tools.run_command import run_command
from pawl.tools.strict_patch import strict_patch
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


def toolbox(ports: Ports) -> Registry:
    editor, limits = ports.editor, ports.limits
    variables = _variables(ports)
    tools: list[Tool[Any]] = [
        file_search(ports.files, ports.guardrails, limits, page("file_search", variables)),
        file_read(editor, limits, page("file_read", variables)),
        file_write(editor, page("file_write", variables)),
        strict_patch(editor, page("strict_patch", variables)),
        line_edit(editor, page("line_edit", variables)),
        modify(editor, page("modify", variables)),
        change_files(editor, ports.dependencies, page("change_files", variables)),
        run_command(ports.runner, limits, page("run_command", variables)),
    ]
    if ports.outliner is not None:
        tools.append(outline(ports.outliner, ports.files, page("outline", variables)))
    if ports.checker is not None:
        tools.append(check(ports.checker, limits, page("check", variables)))
    return Registry(tools, limits)


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
        "most_command_seconds": f"{limits.most_command_seconds:g}",
    }
