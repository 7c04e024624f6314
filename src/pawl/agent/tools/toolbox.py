"""The tools of a talk, on a bench that is opened when the first of them is called."""

from __future__ import annotations

import queue
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pawl.agent.answers import WatchedFiles
from pawl.agent.context import ToolReply, Toolset
from pawl.agent.roles import Role, may_delegate
from pawl.agent.tools import command_tools, file_search, file_tools
from pawl.agent.tools.tool_registry import (
    Build,
    Effect,
    Ports,
    Tool,
    ToolFailure,
    ToolLimits,
    ToolOutput,
    ToolRegistry,
    offers,
    page,
)
from pawl.code.code_model import Modification
from pawl.code.import_map import ImportMap
from pawl.core.dialogue import ToolOffer
from pawl.core.errors import Conflicted, PawlError, PolicyViolation, SchemaUnmet, TimedOut
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.settings.trust import may_have_servers
from pawl.workspace.bench_files import Files, GatedFiles, UnopenedSurface
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent.skill_library import Skill
    from pawl.agent.tools.mcp_hands import McpHands
    from pawl.checks.bench_checker import BenchChecker
    from pawl.checks.bench_server import BenchServer
    from pawl.code.editor import BenchEditor
    from pawl.code.outline import SourceOutliner
    from pawl.core.execution import Completed, Execution
    from pawl.workspace.bench import Bench
    from pawl.workspace.git import CommandRunner


Work = Callable[[Ports, Any], ToolOutput]

TOOLS: Mapping[str, tuple[type, Effect, Work]] = {
    "file_search": (file_search.FileSearch, Effect.READS, file_search.file_search),
    "list_files": (file_tools.ListFiles, Effect.READS, file_tools.list_files),
    "file_read": (file_tools.FileRead, Effect.READS, file_tools.file_read),
    "file_write": (file_tools.FileWrite, Effect.WRITES, file_tools.file_write),
    "strict_patch": (file_tools.StrictPatch, Effect.WRITES, file_tools.strict_patch),
    "line_edit": (file_tools.LineEdits, Effect.WRITES, file_tools.line_edit),
    "modify": (Modification, Effect.WRITES, file_tools.modify),
    "change_files": (file_tools.ChangeFiles, Effect.WRITES, file_tools.change_files),
    "revert": (file_tools.Revert, Effect.WRITES, file_tools.revert),
    "run_command": (command_tools.RunCommand, Effect.RUNS, command_tools.run_command),
    "outline": (file_tools.OutlineOf, Effect.READS, file_tools.outline),
    "read_skill": (file_tools.ReadSkill, Effect.READS, file_tools.read_skill),
    "check": (command_tools.CheckOf, Effect.RUNS, command_tools.check),
    "lsp_diagnostics": (command_tools.DiagnosticsOf, Effect.RUNS, command_tools.lsp_diagnostics),
    "dev_server": (command_tools.DevServerOf, Effect.RUNS, command_tools.dev_server),
}
"""The input of each tool, what it does to the bench, and what does the work."""


def toolbox(ports: Ports, own: Mapping[str, Build] | None = None) -> ToolRegistry:
    """Pawl's tools over the ports, each with its page, and the user's own."""
    missing = {"outline"} if ports.outliner is None else set()
    if ports.checker is None:
        missing |= {"check", "lsp_diagnostics"}
    if ports.server is None:
        missing |= {"dev_server"}
    if not ports.skills:
        missing |= {"read_skill"}
    variables = _variables(ports)

    def build(name: str) -> Tool[Any]:
        kind, effect, work = TOOLS[name]
        return Tool(name=name, page=page(name, variables), input=kind, handler=partial(work, ports), effect=effect)

    builds: dict[str, Build] = {name: partial(build, name) for name in TOOLS if name not in missing}
    return ToolRegistry({**builds, **(own or {})}, ports.limits)


def _variables(ports: Ports) -> dict[str, object]:
    guardrails, limits = ports.guardrails, ports.limits
    return {
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
_Operation = tuple[Future[Any], Callable[[], Any]]
_PART = 1000
MOST_WAYS = 20
"""Steps of one call of a tool, for the log."""


class TimedWorker:
    """One thread that does operations in the order they come.

    It is one, so that nothing begins before an operation that was given up has really ended: a late write cannot undo
    a later one. It is a daemon, so that a file system that never answers does not keep the process from ending.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._jobs.put, None)

    def run(self, work: Callable[[], T], seconds: float, what: str) -> T:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="pawl-files", daemon=True)
            self._thread.start()
        done: Future[T] = Future()
        self._jobs.put((done, work))
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():
                return done.result()
        if done.cancel():
            raise TimedOut(
                f"{what} was cancelled: an earlier file operation has not ended within {seconds:g} s",
                advice="wait a little and try again; tell the user when it stays so",
            )
        raise TimedOut(
            f"{what} took longer than {seconds:g} s; it was given up and may still take effect",
            advice="read the file before you go on, and try again only if it is as it was",
        )


def _serve(jobs: queue.SimpleQueue[_Operation | None]) -> None:
    """The operations until their worker is gone; between them nothing of the last one is held."""
    while (operation := jobs.get()) is not None:
        done, work = operation
        if done.set_running_or_notify_cancel():
            try:
                done.set_result(work())
            except (OSError, PawlError) as error:
                done.set_exception(error)
            finally:
                if not done.done():
                    done.set_exception(sys.exception())  # a defect belongs to whoever waits
        del operation, done, work


class TimedFiles:
    """Fits `Files`: those that are there when an operation begins, each operation with its own deadline.

    They are opened before it counts, in the caller's thread: of a large workspace that takes a while.
    """

    def __init__(self, files: Callable[[], Files], seconds: float, read: Callable[[], Files] | None = None) -> None:
        """`read` are those that a look at one file needs."""
        self._files = files
        self._read = read or files
        self._seconds = seconds
        self._worker = TimedWorker()

    def read(self, path: str) -> bytes:
        files = self._read()
        return self._worker.run(lambda: files.read(path), self._seconds, f"reading {path!r}")

    def write(self, path: str, data: bytes) -> None:
        files = self._files()
        self._worker.run(lambda: files.write(path, data), self._seconds, f"writing {path!r}")

    def delete(self, path: str) -> None:
        files = self._files()
        self._worker.run(lambda: files.delete(path), self._seconds, f"deleting {path!r}")

    def exists(self, path: str) -> bool:
        files = self._read()
        return self._worker.run(lambda: files.exists(path), self._seconds, f"looking for {path!r}")

    def walk(self, under: str = "") -> Iterable[str]:
        """The deadline is that of each part, so that a large folder is no fault; whoever reads it may stop."""
        what = f"listing {under or '.'!r}"
        files = self._files()
        found = self._worker.run(lambda: iter(files.walk(under)), self._seconds, what)
        return self._parts(found, what)

    def _parts(self, found: Iterator[str], what: str) -> Iterator[str]:
        while part := self._worker.run(lambda: tuple(islice(found, _PART)), self._seconds, what):
            yield from part


class LateBench:
    """Fits `CommandRunner`; there is no bench before something is done on it."""

    def __init__(self, shop: Project, opened: Callable[[Project], Bench] | None = None) -> None:
        """`opened` opens another bench than a plain one."""
        self._shop = shop
        self._opened = opened
        self._bench: Bench | None = None
        self.printed: Callable[[str], object] = lambda line: None
        """Told each line that a command of the model's prints, as it comes."""

    @property
    def is_open(self) -> bool:
        return self._bench is not None

    @property
    def bench(self) -> Bench:
        if self._bench is None:
            # Loaded here, because most of what a bench needs would delay the first request for nothing.
            from pawl.workspace.benches import open_bench

            self._bench = (self._opened or open_bench)(self._shop)
        return self._bench

    @property
    def read_files(self) -> Files:
        """To look at a file there need not be a bench, which takes a third of the time until the first request."""
        if self._bench is None:
            return UnopenedSurface(self._shop.tree).files(self._shop.guardrails)
        return self._bench.files

    def close(self) -> None:
        if self._bench is not None:
            self._bench.discard()
            self._bench = None

    def run(self, execution: Execution) -> Completed:
        return self.bench.run(execution)


MOST_LINE = 2_000

LONGEST_HELD = 1 << 16
"""Bytes kept of a line that does not end, of which the beginning is shown."""


class OutputLines:
    """Puts the output of a command together into lines without secrets, which are known in whole lines only."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._rest: dict[object, bytes] = {}

    def feed(self, stream: object, data: bytes) -> None:
        *lines, rest = (self._rest.get(stream, b"") + data).split(b"\n")
        self._rest[stream] = rest[:LONGEST_HELD]
        for line in lines:
            self._line(line)

    def close(self) -> None:
        for line in self._rest.values():
            self._line(line)

    def _line(self, line: bytes) -> None:
        # A line that is written over and over is what it was last.
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        if text.strip():
            self._tell(redacted(text)[:MOST_LINE])


COMMITTER = {
    f"GIT_{who}_{part}": value
    for who in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}
"""Who commits on a bench, where the user's own configuration is not seen."""


@dataclass(frozen=True, slots=True)
class GatedRunner:
    """Fits `CommandRunner`: commands that a model starts. What a rule keeps from it is shown empty, as secrets are.

    Commits and stashes are written to the bench's own layer of `.git`, of which nothing is captured.
    """

    bench: LateBench
    files: GatedFiles
    hands: McpHands | None = None

    def run(self, execution: Execution) -> Completed:
        hides = self.files.hides
        execution = replace(execution, writable_git=True, environment={**COMMITTER, **execution.environment})
        self.files.was_hidden |= hides is not None
        lines = OutputLines(self.bench.printed)
        direct = partial(self.bench.bench.run, execution, on_output=lines.feed, hides=hides)
        try:
            if self.hands is None:
                return direct()
            return self.hands.run(
                execution, direct, feed=lines.feed, shown=self.files.written, asked=self.files.granted
            )
        finally:
            lines.close()


class ToolSession:
    """Fits `Toolset`: the tools over one bench. What a role may use of them is the policy's business."""

    def __init__(
        self,
        shop: Project,
        *,
        bench: LateBench | None = None,
        checker: Callable[[Files, CommandRunner], BenchChecker] | None = None,
        server: Callable[[GatedFiles], BenchServer] | None = None,
        skills: Mapping[str, Skill] | None = None,
    ) -> None:
        """`checker` and `server` make what checks and serves the work on the bench; without them, or skills, there is
        no such tool."""
        settings = shop.config.settings
        self.skills = skills or {}
        self.bench = bench or LateBench(shop)
        self.hands = _mcp_hands(shop, self.bench)
        whole = TimedFiles(
            lambda: self.bench.bench.files if self.hands is None else self.hands.ready(),
            settings.file_seconds,
            lambda: self.bench.read_files if self.hands is None else self.hands.ready(),
        )
        gate = shop.read_gate()
        self.gated = GatedFiles(whole, gate)
        self.files = WatchedFiles(self.gated)
        """The way of tools, packs and prompts to the bench's files. An answer rests on what is read here."""
        self._shop = shop
        self._guardrails = shop.guardrails
        self._blobs = shop.store.blobs
        self._closing = ExitStack()
        self._closing.callback(self.bench.close)
        self._server: BenchServer | None = None
        if self.hands is not None:
            self._closing.callback(self.hands.close)
        self._ports = ports = Ports(
            files=self.files,
            editor=lambda: self.editor,
            runner=GatedRunner(self.bench, self.gated, self.hands),
            dependencies=self.dependencies,
            guardrails=shop.guardrails,
            outliner=lambda: self.outliner,
            # Checks see every file; what a model is told of their findings is judged by file.
            checker=partial(checker, whole, self.bench) if checker else None,
            server=partial(self._served_by, server) if server else None,
            take_back=self._take_back,
            shows=gate.lists,
            skills=self.skills,
            limits=ToolLimits(tool_seconds=settings.tool_seconds, file_seconds=settings.file_seconds),
            cancel=shop.stop,
        )
        own = _own_tools(shop, ports) if shop.config.tables.extensions else {}
        self.found: frozenset[str] = frozenset()
        """Tools that are not told with a request; they are found by a search."""
        if shop.config.tables.web:
            from pawl.agent.tools.web_tools import web_tools

            own = {**own, **web_tools(shop.config)}
        if may_have_servers(shop.config, shop.workspace):
            own = {**own, **self._served()}
        self._registry = toolbox(ports, own)

    def __enter__(self) -> ToolSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _served(self) -> Mapping[str, Build]:
        """The tools of MCP servers, none of which is started for it."""
        from pawl.agent.tools.served_tools import McpServers

        servers = McpServers(self._shop, lambda line: self.bench.printed(line))
        self._closing.callback(servers.close)
        self.found = servers.found
        return servers.builds()

    def _served_by(self, server: Callable[[GatedFiles], BenchServer]) -> BenchServer:
        if self._server is None:
            self._server = server(self.gated)
            self._closing.callback(self._server.stop)
        return self._server

    # Loaded when something is read, edited or parsed: both would delay the first request by some milliseconds.
    @cached_property
    def editor(self) -> BenchEditor:
        from pawl.code.editor import BenchEditor

        return BenchEditor(self.files, self._guardrails)

    @cached_property
    def outliner(self) -> SourceOutliner:
        from pawl.code.outline import SourceOutliner

        outliner = SourceOutliner(self._guardrails)
        self._closing.callback(outliner.close)
        return outliner

    def _take_back(self, path: str) -> tuple[str, ...]:
        """Make what tools and commands changed there as the workspace has it."""
        if not self.bench.is_open:
            return ()
        changes = self.bench.bench.capture().changes
        chosen = [one for one in changes.paths if not path or one == path or one.startswith(f"{path}/")]
        self.bench.bench.apply(changes.only(chosen).inverted(), self._blobs)
        return tuple(sorted(chosen))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self._registry.names if name not in self.found)

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        return offers(self._registry, names)

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        ended = self._registry.call(name, arguments)
        if self.hands is not None and self.hands.ways:
            self._shop.note_if_possible("hands", {"tool": name, "ways": self.hands.ways[:MOST_WAYS]})
            self.hands.ways.clear()
        return ToolReply(ended.text, isinstance(ended, ToolFailure))

    def patch_of(self, name: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """The edit as lines of a patch; empty for other calls. Nothing is written."""
        from pawl.code.trial import EDITS, TrialFiles, patch_of

        def call(files: TrialFiles) -> None:
            editor = self.editor.over(files)
            toolbox(replace(self._ports, files=files, editor=lambda: editor)).call(name, arguments)

        return patch_of(self.gated, call) if name in EDITS else ()

    def dependencies(self) -> ImportMap:
        sources: dict[str, bytes] = {}
        for path in self.files.walk():
            if path.endswith(".py"):
                # One that is too large, or may not be read, links nothing.
                with suppress(PawlError):
                    sources[path] = self.files.read(path)
        return ImportMap.of(sources)


def _mcp_hands(shop: Project, bench: LateBench) -> McpHands | None:
    """The way to files and commands through MCP servers, where the settings say so (B2)."""
    if shop.config.tables.mcp.get("hands", "direct") == "direct":
        return None
    from pawl.agent.tools.mcp_hands import McpHands
    from pawl.workspace.mcp_settings import mcp_settings

    mcp_settings(shop.config)
    return McpHands(shop, lambda: bench.bench)


def _own_tools(shop: Project, ports: Ports) -> Mapping[str, Callable[[], Tool[Any]]]:
    """How the tools of the user's own are built; what they use of the bench is judged by the rules of the workspace."""
    from pawl.agent.tools.custom import built, own_tool, tool_guard
    from pawl.settings.extensions import extension_settings
    from pawl.settings.permissions import permissions_of, permit_of

    def build(name: str) -> Tool[Any]:
        permit = permit_of(permissions_of(shop.config, shop.workspace), shop.guardrails)
        return built(name, own_tool(name), ports, permit=permit, guard=tool_guard(name))

    return {name: partial(build, name) for name in extension_settings(shop.config).tools}


DELEGATE = "delegate"
MOST_SENT = 10
"""How often one role may send others in one talk: a plan has at most so many changes."""


class Others(Protocol):
    """Those whom a talk may send."""

    def sent(self, to: str = "") -> int:
        """How often this talk has sent someone, or that role, also before it was interrupted."""
        ...

    def expect(self, calls: Mapping[int, tuple[str, str]]) -> None:
        """Told who is about to be sent by the next steps, with which tasks, so that they can work at the same time."""
        ...

    def send(self, to: str, task: str) -> str:
        """Lets the role work on the task and returns its answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDesk:
    """Fits `Toolset`: a desk with a tool that sends another role to it, which answers by its contract (D1, D6)."""

    desk: Toolset
    role: Role
    others: Others
    about: Mapping[str, str] = field(default_factory=dict)
    """The purpose of each whom the user described."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.desk.names, DELEGATE)

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        plain = self.desk.offers([name for name in names if name != DELEGATE])
        return (*plain, self._offer()) if DELEGATE in names else plain

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        return self._delegated(arguments) if name == DELEGATE else self.desk.call(name, arguments)

    def expect(self, calls: Mapping[int, Mapping[str, object]]) -> None:
        wanted = {step: _sending(arguments) for step, arguments in calls.items()}
        left = MOST_SENT - self.others.sent()
        able = [step for step, (to, task) in wanted.items() if task and to in self.role.delegates]
        self.others.expect({step: wanted[step] for step in able[:left]})

    def _offer(self) -> ToolOffer:
        roles = sorted(self.role.delegates)
        fields = {
            "role": {"type": "string", "enum": roles},
            "task": {"type": "string", "description": "all that it needs to know; it sees nothing of this dialogue"},
        }
        return ToolOffer(
            name=DELEGATE,
            description="\n".join(
                (
                    f"Sends {' or '.join(roles)} with a task and waits for its answer. Those that one answer sends one "
                    "after the other work at the same time and do not see each other's changes: send who needs the "
                    "work of another in a later answer, and let no two change the same lines. Send one for each change "
                    "of a plan, and report what it reports: what failed is failed, not done.",
                    *(f"- {name}: {what}" for name, what in sorted(self.about.items())),
                )
            ),
            input_schema={
                "type": "object",
                "properties": fields,
                "required": ["role", "task"],
                "additionalProperties": False,
            },
        )

    def _delegated(self, arguments: Mapping[str, object]) -> ToolReply:
        to, task = _sending(arguments)
        if not task:
            return ToolReply("bad_arguments: there is no task\nnext: say what is to be done", failed=True)
        try:
            may_delegate(self.role, to)
            if self.others.sent() >= MOST_SENT:
                raise PolicyViolation(f"{MOST_SENT} were sent", advice="end with what is there")
            if self.others.sent(to) >= self.role.most.get(to, MOST_SENT):
                raise PolicyViolation(f"{to} was sent {self.role.most[to]} times", advice="report what is left")
            return ToolReply(self.others.send(to, task), failed=False)
        except (PolicyViolation, Conflicted) as error:
            return ToolReply(f"{error.code}: {error.message}\nnext: {error.advice}", failed=True)
        except SchemaUnmet as error:
            return ToolReply(f"{error.code}: {to} gave no usable answer: {error.message}", failed=True)


def _sending(arguments: Mapping[str, object]) -> tuple[str, str]:
    return str(arguments.get("role", "")), str(arguments.get("task", "")).strip()
