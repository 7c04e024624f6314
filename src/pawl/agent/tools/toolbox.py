"""All tools of one bench, wired to the ports they need."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pawl.agent.tools.registry import Build, Editor, Tool, ToolLimits, ToolPage, ToolRegistry, page
from pawl.code.imports import DependencyMap
from pawl.core.errors import PawlError, TimedOut
from pawl.core.guardrails import Guardrails
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench_files import Files
from pawl.workspace.git import CommandRunner

if TYPE_CHECKING:
    from pawl.checks.verifier import BenchChecker
    from pawl.code.outline import Outliner


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the tools work on. `files`, and those under `editor`, are `TimedFiles`: each operation has its limit."""

    files: Files
    editor: Editor
    runner: CommandRunner
    dependencies: Callable[[], DependencyMap]
    guardrails: Guardrails
    outliner: Outliner | None = None
    checker: BenchChecker | None = None
    """Without these two there is no such tool."""
    limits: ToolLimits = field(default_factory=ToolLimits)
    cancel: CancelToken | None = None
    """Ends what takes long; commands have the runner's."""


def toolbox(ports: Ports, own: Mapping[str, Build] | None = None) -> ToolRegistry:
    """Each tool's module is loaded when the tool is first offered or called; `own` are the user's."""
    variables = _variables(ports)
    builders = dict(_BUILDERS)
    if ports.outliner is None:
        del builders["outline"]
    if ports.checker is None:
        del builders["check"], builders["lsp_diagnostics"]

    def build(name: str) -> Build:
        return lambda: builders[name](ports, page(name, variables))

    return ToolRegistry({**{name: build(name) for name in builders}, **(own or {})}, ports.limits)


def _file_search(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.search import file_search

    return file_search(ports.files, ports.guardrails, ports.limits, text, cancel=ports.cancel)


def _file_read(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.reading import file_read

    return file_read(ports.editor, ports.limits, text)


def _file_write(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.editing import file_write

    return file_write(ports.editor, text)


def _strict_patch(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.editing import strict_patch

    return strict_patch(ports.editor, text)


def _line_edit(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.editing import line_edit

    return line_edit(ports.editor, text)


def _modify(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.editing import modify

    return modify(ports.editor, text)


def _change_files(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.editing import change_files

    return change_files(ports.editor, ports.dependencies, text)


def _run_command(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.commands import run_command

    return run_command(ports.runner, ports.limits, text)


def _outline(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.reading import outline

    assert ports.outliner is not None
    return outline(ports.outliner, ports.files, text)


def _check(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.commands import check

    assert ports.checker is not None
    return check(ports.checker, ports.limits, text)


def _lsp_diagnostics(ports: Ports, text: ToolPage) -> Tool[Any]:
    from pawl.agent.tools.commands import lsp_diagnostics

    assert ports.checker is not None
    return lsp_diagnostics(ports.checker, ports.files, ports.limits, text)


_BUILDERS: Mapping[str, Callable[[Ports, ToolPage], Tool[Any]]] = {
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


T = TypeVar("T")
_PART = 1000


class _Job(Generic[T]):
    """One operation that its worker does, unless it is abandoned before."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._gate = threading.Lock()
        self._taken = False
        self._value: list[T] = []
        self._error: OSError | PawlError | None = None
        self.ended = threading.Event()

    def take(self) -> bool:
        """True for the first who asks: the worker that does it, or the caller who gives it up."""
        with self._gate:
            first, self._taken = not self._taken, True
        return first

    def do(self) -> None:
        try:
            self._value.append(self._work())
        except (OSError, PawlError) as error:
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        if not self._value:
            raise RuntimeError("a file operation ended without a result")
        return self._value[0]


class TimedWorker:
    """One thread that does operations in the order they come.

    It is one, so that nothing begins before an operation that was given up has really ended: a late write cannot undo
    a later one. It is a daemon, so that a file system that never answers does not keep the process from ending.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job[object]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], T], seconds: float, what: str) -> T:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="pawl-files", daemon=True)
            self._thread.start()
        job = _Job(work)
        self._jobs.put(job)  # type: ignore[arg-type]
        if job.ended.wait(seconds):
            return job.result()
        if job.take():
            raise TimedOut(
                f"{what} was cancelled: an earlier file operation has not ended within {seconds:g} s",
                advice="wait a little and try again; tell the user when it stays so",
            )
        raise TimedOut(
            f"{what} took longer than {seconds:g} s; it was given up and may still take effect",
            advice="read the file before you go on, and try again only if it is as it was",
        )

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            if job.take():
                job.do()


class TimedFiles:
    """Fits `Files`: the same files, each operation with its own deadline."""

    def __init__(self, files: Files, seconds: float) -> None:
        self._files = files
        self._seconds = seconds
        self._worker = TimedWorker()

    def read(self, path: str) -> bytes:
        return self._worker.run(lambda: self._files.read(path), self._seconds, f"reading {path!r}")

    def write(self, path: str, data: bytes) -> None:
        self._worker.run(lambda: self._files.write(path, data), self._seconds, f"writing {path!r}")

    def delete(self, path: str) -> None:
        self._worker.run(lambda: self._files.delete(path), self._seconds, f"deleting {path!r}")

    def exists(self, path: str) -> bool:
        return self._worker.run(lambda: self._files.exists(path), self._seconds, f"looking for {path!r}")

    def walk(self, under: str = "") -> Iterable[str]:
        """The deadline is that of each part, so that a large folder is no fault; whoever reads it may stop."""
        what = f"listing {under or '.'!r}"
        found = self._worker.run(lambda: iter(self._files.walk(under)), self._seconds, what)
        return self._parts(found, what)

    def _parts(self, found: Iterator[str], what: str) -> Iterator[str]:
        while part := self._worker.run(lambda: tuple(islice(found, _PART)), self._seconds, what):
            yield from part
