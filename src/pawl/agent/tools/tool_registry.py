"""A tool as data: its name, its page, the type of its input and what does the work."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from importlib import resources
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pawl.agent.tools.tool_schema import decode, schema
from pawl.core.dialogue import ToolOffer
from pawl.core.errors import (
    AlreadyThere,
    ConfigError,
    DiskFull,
    NotAFile,
    NotFound,
    PathRefused,
    PawlError,
    PermissionDenied,
    TimedOut,
    ToolError,
    UnknownTool,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import front_matter
from pawl.sandbox.cancel import CancelToken
from pawl.settings.guardrails import Guardrails
from pawl.workspace.bench_files import Files

if TYPE_CHECKING:
    from pawl.agent.skill_library import Skill
    from pawl.checks.bench_checker import BenchChecker
    from pawl.checks.bench_server import BenchServer
    from pawl.code.editor import BenchEditor
    from pawl.code.import_map import ImportMap
    from pawl.code.outline import Outliner
    from pawl.workspace.git import CommandRunner

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class ToolPage:
    purpose: str
    """One line for a list of tools."""
    text: str


def page(name: str, variables: Mapping[str, object]) -> ToolPage:
    """The page beside the tool's module, with its variables filled in."""
    source = (resources.files("pawl.agent.tools") / f"{name}.md").read_text("utf-8")
    return rendered(name, source, variables)


def rendered(name: str, source: str, variables: Mapping[str, object]) -> ToolPage:
    head, body = front_matter(source)
    purpose, words = head.get("purpose", ""), head.get("words", "")
    if not purpose or not words.isdecimal():
        raise ConfigError(f"the page of {name!r} does not begin with its purpose and words", advice="add the two lines")
    unknown = sorted(set(_VARIABLE.findall(source)) - set(variables))
    if unknown:
        raise ConfigError(
            f"the page of {name!r} uses unknown variables: {', '.join(unknown)}",
            advice=f"known are {', '.join(sorted(variables))}",
        )
    text = _VARIABLE.sub(lambda match: str(variables[match[1]]), body).strip()
    if len(text.split()) > int(words):
        raise ConfigError(f"the page of {name!r} has over {words} words", advice="shorten it")
    return ToolPage(purpose, text)


RESULT_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    tool_seconds: float = 30.0
    most_command_seconds: float = 120.0
    """The most that a command gets when it asks for more than `tool_seconds`."""
    file_seconds: float = 5.0
    read_lines: int = 2_000
    read_characters: int = 15_000
    """With the numbers of the lines; a little less than `result_characters`, so that a read ends with a whole line."""
    line_characters: int = 2_000
    matches: int = 200
    output_characters: int = 7_500
    """Kept of each stream of a command."""
    result_characters: int = RESULT_CHARACTERS
    """The most that any call hands to a model, a failure too; the middle of more is left out."""
    check_seconds: float = 60.0
    lsp_seconds: float = 10.0
    findings: int = 40
    """Shown of one check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The means of the tools. `files`, and those under `editor`, are `TimedFiles`: each operation has its limit."""

    files: Files
    editor: Callable[[], BenchEditor]
    runner: CommandRunner
    dependencies: Callable[[], ImportMap]
    guardrails: Guardrails
    outliner: Callable[[], Outliner] | None = None
    checker: Callable[[], BenchChecker] | None = None
    server: Callable[[], BenchServer] | None = None
    """Without one of these three there is no such tool."""
    skills: Mapping[str, Skill] = field(default_factory=dict)
    take_back: Callable[[str], Iterable[str]] = lambda path: ()
    """Undoes the changes of a path, or all, on the bench, and names them."""
    shows: Callable[[str], bool] = lambda path: True
    """Whether a model may be told what is found in this file."""
    limits: ToolLimits = field(default_factory=ToolLimits)
    cancel: CancelToken | None = None
    """Ends what takes long; commands have the runner's."""


def bounded(text: str, most: int, hint: str) -> str:
    """The text in at most `most` characters, cut between lines where it can be; `hint` says how to see the rest."""
    if len(text) <= most:
        return text
    mark = f"\n[… {len(text):,} characters in all, the middle left out; {hint} …]\n"
    room = max(0, most - len(mark))
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    # A cut within the last tenth is moved to a line break, so that no half of a line is taken for a whole one.
    at = head.rfind("\n", len(head) - len(head) // 10)
    head = head[:at] if at > 0 else head
    at = tail.find("\n", 0, len(tail) // 10)
    tail = tail[at + 1 :] if at >= 0 else tail
    return head + mark + tail


Given = TypeVar("Given")

_SHORTER = "the rest says the same at length"


class ToolOutput(Protocol):
    """The result of a tool: typed fields for programs, `text` for the model."""

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ToolText:
    """A result that is nothing but text."""

    text: str


class Effect(StrEnum):
    """The effect of a tool on the bench, which decides whether it is called again after a time-out."""

    READS = "reads"
    WRITES = "writes"
    RUNS = "runs"


_REST = {
    Effect.READS: "ask for less at once to see it",
    Effect.WRITES: "read the files to see it",
    Effect.RUNS: "run something narrower to see it, such as one part or a filter on the output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[Given]):
    name: str
    page: ToolPage
    input: type[Given]
    handler: Callable[[Given], ToolOutput]
    effect: Effect
    raw_schema: Mapping[str, object] | None = None
    """Of a tool whose server checks the arguments itself; they are passed on as they are."""

    @property
    def input_schema(self) -> Mapping[str, object]:
        return schema(self.input) if self.raw_schema is None else self.raw_schema

    def read(self, arguments: Mapping[str, object]) -> Any:
        return decode(self.input, arguments) if self.raw_schema is None else arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    tool: str
    output: ToolOutput
    effect: Effect = field(default=Effect.READS, compare=False)
    most: int = field(default=RESULT_CHARACTERS, compare=False)

    @property
    def text(self) -> str:
        """For the model: as much as it is given at once."""
        return bounded(self.output.text, self.most, _REST[self.effect])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A call that failed, as a value for the model: which way it failed, why, and what to try next."""

    tool: str
    code: str
    message: str
    advice: str
    most: int = field(default=RESULT_CHARACTERS, compare=False)

    @classmethod
    def of(cls, tool: str, error: PawlError, most: int = RESULT_CHARACTERS) -> ToolFailure:
        return cls(tool=tool, code=error.code, message=error.message, advice=error.advice, most=most)

    @property
    def text(self) -> str:
        advice = bounded(f"\nnext: {self.advice}", self.most // 2, _SHORTER) if self.advice else ""
        return bounded(f"{self.code}: {self.message}", self.most - len(advice), _SHORTER) + advice


_NO_SPACE = (DiskFull, "there is no room to write", "free some space, then try again")
_DENIED = (PermissionDenied, "permission is denied", "choose another file, or ask the user to change its permissions")
_ODD_PATH = (PathRefused, "the path cannot be followed", "give a plain path relative to the workspace")
_ODD_FILE = (NotAFile, "it is not a regular file", "name a file, not a folder or a device")

_MEANING: Mapping[int, tuple[type[PawlError], str, str]] = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _NO_SPACE,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOENT: (NotFound, "there is no such file", "check the spelling, or search for it"),
    errno.EEXIST: (AlreadyThere, "it already exists", "edit it, or choose another name"),
    errno.EISDIR: _ODD_FILE,
    errno.ENOTDIR: _ODD_FILE,
    errno.ENXIO: _ODD_FILE,
    errno.ENODEV: _ODD_FILE,
    errno.ELOOP: _ODD_PATH,
    errno.ENAMETOOLONG: _ODD_PATH,
    errno.ETIMEDOUT: (TimedOut, "the file system did not answer in time", "try again, or ask the user to look at it"),
}


def from_os_error(error: OSError) -> PawlError:
    """The error of the tree that says the same."""
    known = _MEANING.get(error.errno or 0)
    kind, meaning, advice = known or (ToolError, error.strerror or str(error), "ask the user to look at it")
    if error.filename is None:
        return kind(meaning, advice=advice)
    # A descriptor stands where a name is unknown, and a name of bytes is shown as the file system spells it.
    name = error.filename if isinstance(error.filename, int) else os.fsdecode(error.filename)
    return kind(f"{name!r}: {meaning}", advice=advice)


Build = Callable[[], Tool[Any]]


class ToolRegistry:
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
        """Call a tool; return its result or its failure. A wrong name or argument is never guessed right."""
        try:
            tool = self.tool(name)
            output = _run(tool, tool.read(arguments))
            return ToolResult(tool=name, output=output, effect=tool.effect, most=self._most)
        except PawlError as error:
            return ToolFailure.of(name, error, self._most)
        except OSError as error:
            return ToolFailure.of(name, from_os_error(error), self._most)


def _run(tool: Tool[Any], given: object) -> ToolOutput:
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


def offers(registry: ToolRegistry, names: Iterable[str]) -> tuple[ToolOffer, ...]:
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
