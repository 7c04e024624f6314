"""`lsp_diagnostics`: what the language servers find in some files as they stand on the bench."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.errors import NotFound
from pawl.core.ports import Checker, Files
from pawl.tools.check import Checked
from pawl.tools.limits import ToolLimits
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool

_NONE = "[no language server knows these files]"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsOf:
    paths: tuple[str, ...]


def lsp_diagnostics(checker: Checker, files: Files, limits: ToolLimits, page: Page) -> Tool[DiagnosticsOf]:
    def run(given: DiagnosticsOf) -> Checked:
        for path in given.paths:
            if not files.exists(path):
                raise NotFound(f"there is no file {path!r}", advice="check the spelling, or search for it")
        verdicts = checker.diagnose(given.paths, seconds=limits.lsp_seconds)
        return Checked(
            verdicts=tuple(verdicts), findings=limits.findings, none="[no language server knows these files]"
        )

    return Tool(name="lsp_diagnostics", page=page, input=DiagnosticsOf, handler=run, effect=Effect.RUNS)
