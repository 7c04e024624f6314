"""The tools of a talk, on a bench that is opened when the first of them is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pawl.agent.answers import WatchedFiles
from pawl.agent.tools.registry import Tool, ToolFailure, ToolLimits, offers
from pawl.agent.tools.toolbox import Ports, TimedFiles, toolbox
from pawl.code.imports import DependencyMap
from pawl.core.dialogue import ToolOffer
from pawl.core.guardrails import Guardrails
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench_files import Files, GatedFiles
from pawl.workspace.git import CommandRunner
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.checks.verifier import BenchChecker
    from pawl.code.editor import BenchEditor
    from pawl.code.outline import SourceOutliner
    from pawl.core.code import Edited, LineEdit, Modification, Outline
    from pawl.core.execution import Completed, Execution
    from pawl.core.text import Text
    from pawl.workspace.bench import Bench


class LateBench:
    """Fits `Files` and `CommandRunner`; there is no bench before something is done on it."""

    def __init__(
        self, shop: Project, cancel: CancelToken | None = None, *, opened: Callable[[Project], Bench] | None = None
    ) -> None:
        """`opened` opens another bench than a plain one."""
        self._shop = shop
        self._cancel = cancel
        self._opened = opened
        self._bench: Bench | None = None

    @property
    def is_open(self) -> bool:
        return self._bench is not None

    @property
    def bench(self) -> Bench:
        if self._bench is None:
            # Loaded here, because most of what a bench needs would delay the first request for nothing.
            from pawl.workspace.commands import open_bench

            self._bench = (self._opened or open_bench)(self._shop)
        return self._bench

    def close(self) -> None:
        if self._bench is not None:
            self._bench.discard()
            self._bench = None

    def read(self, path: str) -> bytes:
        return self.bench.files.read(path)

    def write(self, path: str, data: bytes) -> None:
        self.bench.files.write(path, data)

    def delete(self, path: str) -> None:
        self.bench.files.delete(path)

    def exists(self, path: str) -> bool:
        return self.bench.files.exists(path)

    def walk(self, under: str = "") -> Iterable[str]:
        return self.bench.files.walk(under)

    def run(self, execution: Execution) -> Completed:
        return self.bench.run(execution, cancel=self._cancel)


class LateEditor:
    """Fits `Editor`; what edits is loaded when something is read or edited."""

    def __init__(self, files: Files, guardrails: Guardrails) -> None:
        self._files = files
        self._guardrails = guardrails
        self._editor: BenchEditor | None = None

    @property
    def editor(self) -> BenchEditor:
        if self._editor is None:
            from pawl.code.editor import BenchEditor

            self._editor = BenchEditor(self._files, self._guardrails)
        return self._editor

    def read(self, path: str) -> Text:
        return self.editor.read(path)

    def write(self, path: str, content: str) -> Edited:
        return self.editor.write(path, content)

    def patch(self, path: str, old: str, new: str) -> Edited:
        return self.editor.patch(path, old, new)

    def edit_lines(self, path: str, edits: Sequence[LineEdit]) -> Edited:
        return self.editor.edit_lines(path, edits)

    def modify(self, modification: Modification) -> Edited:
        return self.editor.modify(modification)

    def chain(
        self, modifications: Sequence[Modification], *, justification: str, dependencies: DependencyMap
    ) -> tuple[Edited, ...]:
        return self.editor.chain(modifications, justification=justification, dependencies=dependencies)


class LateOutliner:
    """Fits `Outliner`; the parsers are loaded when there is something to parse."""

    def __init__(self, guardrails: Guardrails) -> None:
        self._guardrails = guardrails
        self._outliner: SourceOutliner | None = None

    def outline(self, files: Files, path: str) -> Outline:
        if self._outliner is None:
            from pawl.code.outline import SourceOutliner

            self._outliner = SourceOutliner(self._guardrails)
        return self._outliner.outline(files, path)

    def close(self) -> None:
        if self._outliner is not None:
            self._outliner.close()


@dataclass(frozen=True, slots=True)
class ToolReplied:
    """Fits `ToolReply`."""

    text: str
    failed: bool


class ToolSession:
    """Fits `Toolset`: the tools over one bench. What a role may use of them is the policy's business."""

    def __init__(
        self,
        shop: Project,
        cancel: CancelToken | None = None,
        *,
        bench: LateBench | None = None,
        checker: Callable[[Files, CommandRunner], BenchChecker] | None = None,
    ) -> None:
        """`checker` makes what checks the work on the bench; without it there is no such tool."""
        settings = shop.config.settings
        self.bench = bench or LateBench(shop, cancel)
        whole = TimedFiles(self.bench, settings.file_seconds)
        self.gated = GatedFiles(whole, shop.read_gate())
        self.files = WatchedFiles(self.gated)
        """The way of tools, packs and prompts to the bench's files. An answer rests on what is read here."""
        self._outliner = LateOutliner(shop.guardrails)
        self.editor = LateEditor(self.files, shop.guardrails)
        ports = Ports(
            files=self.files,
            editor=self.editor,
            runner=self.bench,
            dependencies=self.dependencies,
            guardrails=shop.guardrails,
            outliner=self._outliner,
            # Checks see every file: what they print cannot be judged by file.
            checker=checker(whole, self.bench) if checker else None,
            limits=ToolLimits(tool_seconds=settings.tool_seconds, file_seconds=settings.file_seconds),
            cancel=cancel,
        )
        self._registry = toolbox(ports, _own_tools(shop, ports) if shop.config.tables.extensions else None)

    def __enter__(self) -> ToolSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._outliner.close()
        self.bench.close()

    @property
    def names(self) -> tuple[str, ...]:
        return self._registry.names

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        return offers(self._registry, names)

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReplied:
        ended = self._registry.call(name, arguments)
        return ToolReplied(ended.text, isinstance(ended, ToolFailure))

    def dependencies(self) -> DependencyMap:
        from pawl.code.imports import ImportMap

        return ImportMap.of({path: self.files.read(path) for path in self.files.walk() if path.endswith(".py")})


def _own_tools(shop: Project, ports: Ports) -> Mapping[str, Callable[[], Tool[Any]]]:
    """How the tools of the user's own are built; what they use of the bench is judged by the rules of the workspace."""
    from pawl.agent.extensions import own_tool, tool_guard
    from pawl.agent.tools.custom import built
    from pawl.settings.extensions import extension_settings
    from pawl.settings.permissions import permissions_of, permit_of

    def build(name: str) -> Tool[Any]:
        permit = permit_of(permissions_of(shop.config, shop.workspace), shop.guardrails)
        return built(name, own_tool(name), ports, permit=permit, guard=tool_guard(name))

    return {name: partial(build, name) for name in extension_settings(shop.config).tools}
