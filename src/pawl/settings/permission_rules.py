"""The kinds of tools that each stage and mode allows, as a table, and permission rules, read from text such as
`Bash(git diff *)`, `Read(./.env)`, `Edit(src/**)` or `mcp__docs__*`.

A rule that cannot mean what it says is refused, because a misspelt prohibition would forbid nothing.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Mode, ReasoningFormat, Stage
from pawl.settings.guardrails import Decision, OtherNames, Permission, folded
from pawl.settings.shell import Doubt, Word, read_shell

ROLE_CONTRACT = "role"
"""In the table: the answer fits the contract of the role."""


class ToolKind(StrEnum):
    """The effect of a tool, by which stages allow it."""

    READS = "reads"
    WRITES = "writes"
    RUNS = "runs"
    DELEGATES = "delegates"


CHANGES = frozenset({ToolKind.WRITES, ToolKind.RUNS})
STANDS_FOR = {ToolKind.READS: "file_read", ToolKind.WRITES: "file_write", ToolKind.RUNS: "run_command"}
"""The tool of Pawl's own that decides who has one of the user's own of that kind, and what rules forbid it."""
NEVER: Mapping[tuple[Stage, Mode], frozenset[ToolKind]] = {
    **{(stage, Mode.CHAT): CHANGES | {ToolKind.DELEGATES} for stage in Stage},
    **{(stage, mode): frozenset(ToolKind) for stage in (Stage.DELIVERY, Stage.FINAL) for mode in Mode},
    **{(stage, mode): frozenset(ToolKind) for stage in (Stage.INTENT, Stage.EVALUATE) for mode in Mode},
    (Stage.QA, Mode.AGENT): CHANGES | {ToolKind.DELEGATES},
}
"""Kinds that no table may allow, whatever its file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAllowance:
    """One stage in one mode."""

    kinds: frozenset[ToolKind]
    prompt: str
    reasoning: ReasoningFormat
    """Where the user has reasoning on."""
    contract: str


@dataclass(frozen=True, slots=True)
class Allowances:
    """The whole table; it has a row for every stage and mode."""

    tools: Mapping[str, ToolKind]
    rows: Mapping[tuple[Stage, Mode], StageAllowance]


@functools.cache
def allowances() -> Allowances:
    """The table that comes with Pawl."""
    return parse_allowances((resources.files("pawl.settings") / "table.toml").read_text("utf-8"))


def parse_allowances(text: str) -> Allowances:
    """A table from its TOML. One that has a gap, or that allows what no table may, is not loaded."""
    try:
        file = tomllib.loads(text)
        tools = {tool: ToolKind(kind) for kind, names in file["kinds"].items() for tool in names}
        rows = {(stage, mode): _allowance(file["stages"][stage], mode) for stage in Stage for mode in Mode}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"the policy table cannot be read: {type(error).__name__}: {error}",
            advice="every stage needs prompt, chat, agent, reasoning and contract",
        ) from error
    for (stage, mode), row in rows.items():
        forbidden = row.kinds & NEVER.get((stage, mode), frozenset())
        if forbidden:
            raise ConfigError(
                f"the policy table allows what {mode} mode never has at {stage}: {', '.join(sorted(forbidden))}",
                advice="take it out",
            )
    return Allowances(tools, rows)


def _allowance(row: Mapping[str, Any], mode: Mode) -> StageAllowance:
    return StageAllowance(
        kinds=frozenset(ToolKind(kind) for kind in row[mode]),
        prompt=row["prompt"][mode],
        reasoning=ReasoningFormat(row["reasoning"]),
        contract=row["contract"],
    )


COMMAND_TOOL = "run_command"
MCP = "mcp__"
WEB_FETCH, WEB_SEARCH = "web_fetch", "web_search"
MCP_SEARCH, MCP_CALL = "tool_search", "tool_call"
"""The tools that find and call those of MCP servers that are too many to be told."""
LONGEST_RULE = 4_096

_RULE = re.compile(r"(?P<tool>[A-Za-z][A-Za-z0-9_-]*\*?)(?:\((?P<what>.*)\))?", re.DOTALL)
_BRACKETS = re.compile(r"\[[^\]/]*\]")
_GROUPS = re.compile(r"\[[^\]]*\]|\{[^}]*\}")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_BODIES = re.compile(r"\[[!^]?(\]?[^\]]*)\]")
_MOST_CHOICES = 64
_LONGEST_NAME = 255
_STAR = "*"
_ANY = "**"


@dataclass(frozen=True, slots=True)
class PathBase:
    """The folders that paths are seen from."""

    workspace: str = "/workspace"
    home: str = "/home/user"
    others: OtherNames | None = field(default=None, compare=False, repr=False)
    """The further names of the workspace's files, under which rules that tighten hold as well."""

    def names(self, path: str) -> Iterable[str]:
        """The full path, and what else leads to the same place."""
        inside = path.removeprefix(f"{self.workspace.rstrip('/')}/")
        if self.others is None or inside == path:
            return (path,)
        return (path, *(posixpath.join(self.workspace, name) for name in self.others.of(inside)))

    def of(self, path: str, directory: str = "") -> str:
        """The path in full, without following anything."""
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        return posixpath.normpath(posixpath.join(self.workspace, directory, path)).replace("//", "/")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """The text of a command; between the parts anything may stand."""

    parts: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        return len(self.parts) == 1

    @property
    def is_everything(self) -> bool:
        return self.parts == ("", "")

    def fits(self, text: str, start: int = 0) -> bool:
        """Whether the text from there on fits; texts end with a space, as those of `command_text` do."""
        if not text.startswith(self.parts[0], start):
            return False
        at = start + len(self.parts[0])
        if self.is_exact:
            return at == len(text)
        for part in self.parts[1:-1]:
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return len(text) - at >= len(self.parts[-1]) and text.endswith(self.parts[-1])


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Names of a path, where `*` and `?` stay within a name and `**` is any number of names; what is below fits too.

    `[0-9]` and `{a,b}` mean themselves, and in a rule that tightens what they mean to a shell as well.
    """

    names: tuple[str, ...]
    root: str
    """The start of the names: `workspace`, `home`, `/`, or `anywhere`."""

    def fits(self, path: str, place: PathBase, *, tightens: bool) -> bool:
        """Whether the full path fits. A rule that tightens is read as widely as any file system compares names."""
        if tightens:
            fits = self.tightened(place)
            return any(fits([folded(name) for name in one.split("/") if name]) for one in place.names(path))
        base = [name for name in self._start(place).split("/") if name]
        given = [name for name in path.split("/") if name]
        return given[: len(base)] == base and _fits(self._wanted, given[len(base) :], _fits_as_written)

    def tightened(self, place: PathBase) -> Callable[[Sequence[str]], bool]:
        """Says of the folded names of a full path whether they fit."""
        start = "" if self.root == "anywhere" else self._start(place)
        base = [folded(name) for name in start.split("/") if name]
        wanted = [folded(name) for name in self._wanted]
        plain = frozenset(name for name in wanted if not has_wildcards(name))

        def fits(given: Sequence[str]) -> bool:
            names = given[len(base) :]
            return plain.issubset(names) and given[: len(base)] == base and _fits(wanted, names, _fits_widely)

        return fits

    @property
    def _wanted(self) -> list[str]:
        return [*([_ANY] if self.root == "anywhere" else []), *self.names, _ANY]

    def may_lie_below(self, given: Sequence[str], place: PathBase) -> bool:
        """Whether a link at the path of these folded names could show something under a name that fits.

        Behind stars that begin at the workspace or above it, what the link shows is named by the pattern anyway.
        """
        wanted = [] if self.root == "anywhere" else [*self._start(place).split("/"), *self.names]
        wanted = [folded(name) for name in wanted if name]
        inside = sum(1 for name in place.workspace.split("/") if name)
        for at, name in enumerate(given):
            if at >= len(wanted) or wanted[at] == _ANY:
                return inside < at < len(wanted)
            if not _fits_widely(wanted[at], name):
                return False
        return len(wanted) > len(given) and (wanted[len(given)] != _ANY or len(given) > inside)

    def _start(self, place: PathBase) -> str:
        return {"home": place.home, "/": "/"}.get(self.root, place.workspace)

    def may_meet(self, pattern: str) -> bool:
        """Whether a pattern of the shell's could stand for a path that fits; it says yes in doubt."""
        last = _GROUPS.sub(_STAR, next((name for name in reversed(self.names) if name != _ANY), _ANY))
        return any(_meet(_BRACKETS.sub(_STAR, name), last) for name in pattern.casefold().split("/"))


DELETE = "Delete"
PROMOTED = ("Change", DELETE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Without a pattern it is about every call of its tools."""

    text: str
    tools: frozenset[str]
    prefix: str = ""
    """Instead of tools: what their names start with."""
    command: CommandPattern | None = None
    path: PathPattern | None = None
    host: str = ""
    """Of a page of the web; a star stands for any part of the name."""
    source: str = ""
    promoted: str = ""
    """`Change` or `Delete`: about what is promoted, whoever made it, and not about calls of tools."""

    def is_about(self, tool: str) -> bool:
        return tool in self.tools or bool(self.prefix and tool.startswith(self.prefix))

    def permission(self, ruling: Decision, reason: str = "") -> Permission:
        """The rule's decision on a call that it is about."""
        says = {Decision.DENY: "denies", Decision.ASK: "asks about", Decision.ALLOW: "allows"}[ruling]
        reason, firm = reason or f"{self.text} {says} it", ruling is not Decision.ALLOW
        return Permission(ruling=ruling, reason=reason, rule=self.text, source=self.source, firm=firm)

    @property
    def is_about_changes(self) -> bool:
        """Whether it speaks of what is changed, not only of one tool that changes it."""
        writes = aliases()["Edit"]
        if self.promoted:
            return True
        return not writes.isdisjoint(self.tools) if self.path is not None else writes <= self.tools

    @property
    def is_general(self) -> bool:
        return self.path is None and not self.host and (self.command is None or self.command.is_everything)


def command_text(words: Iterable[Word]) -> str:
    """A command in one way of writing it, with a space behind every word."""
    return "".join(f"{word.shown} " for word in words)


def aliases() -> Mapping[str, frozenset[str]]:
    """The names under which other agents know Pawl's tools."""
    kinds = allowances().tools
    reads = frozenset(tool for tool, kind in kinds.items() if kind is ToolKind.READS) - {WEB_FETCH, WEB_SEARCH}
    writes = frozenset(tool for tool, kind in kinds.items() if kind is ToolKind.WRITES)
    return {
        **dict.fromkeys(("Bash", "Shell"), frozenset({COMMAND_TOOL})),
        "Read": reads,
        **dict.fromkeys(("Grep", "Glob"), frozenset({"file_search"})),
        **dict.fromkeys(("Edit", "Write", "MultiEdit"), writes),
        **dict.fromkeys(("Task", "Agent"), frozenset({"delegate"})),
        "WebFetch": frozenset({WEB_FETCH}),
        "WebSearch": frozenset({WEB_SEARCH}),
    }


def names_of(tool: str) -> tuple[str, ...]:
    """The tool's own name, and those under which others know it."""
    return (tool, *(name for name, tools in aliases().items() if tool in tools))


def parse_rule(text: str, source: str = "", *, known: Iterable[str] = ()) -> Rule:
    """The rule that the text says; `known` are tools besides Pawl's own."""
    text = text.strip()
    found = _RULE.fullmatch(text) if len(text) <= LONGEST_RULE else None
    if found is None:
        raise _wrong(text, source, "it is not of the form Tool or Tool(what)", "write it as Bash(git diff *)")
    tool, what = found["tool"], found["what"]
    rule = replace(_about(tool, text, source, known), source=source)
    if what is None or what.strip() in ("", _STAR):
        return rule
    kinds = {allowances().tools.get(name) for name in rule.tools}
    if rule.tools == {COMMAND_TOOL}:
        return replace(rule, command=_command_pattern(what, text, source))
    if rule.tools == {WEB_FETCH}:
        return replace(rule, host=_host_pattern(what, text, source))
    if rule.promoted or (rule.tools and kinds <= {ToolKind.READS, ToolKind.WRITES}):
        return replace(rule, path=_path(what, text, source))
    raise _wrong(text, source, f"a rule for {tool} says nothing in brackets", f"write {tool}")


def web_host(url: object) -> str:
    """The host of an address, in small letters; empty where there is none."""
    try:
        return (urlsplit(str(url)).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def _host_pattern(what: str, text: str, source: str) -> str:
    host = what.strip().removeprefix("domain:").strip().lower()
    if not re.fullmatch(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*", host):
        raise _wrong(
            text, source, f"{host!r} is not a host", "write WebFetch(domain:docs.python.org) or domain:*.python.org"
        )
    return host


def _about(tool: str, text: str, source: str, known: Iterable[str]) -> Rule:
    own = allowances().tools
    if tool.startswith(MCP):
        name = tool.removesuffix(_STAR)
        whole_server = "__" not in name[len(MCP) :]
        if tool.endswith(_STAR):
            return Rule(text, frozenset(), prefix=name)
        return Rule(text, frozenset({name}), prefix=f"{name}__" if whole_server else "")
    if tool in PROMOTED:
        return Rule(text, frozenset(), promoted=tool)
    if tool in aliases():
        return Rule(text, aliases()[tool])
    if tool in own or tool in known:
        return Rule(text, frozenset({tool}))
    names = sorted({*own, *known, *aliases(), *PROMOTED})
    near = difflib.get_close_matches(tool, names, 1)
    raise _wrong(
        text,
        source,
        f"there is no tool {tool!r}",
        f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}",
    )


def _command_pattern(what: str, text: str, source: str) -> CommandPattern:
    what = what.strip()
    if what.endswith(":*"):
        what = f"{what[:-2]} *"
    script = read_shell(what)
    if len(script.commands) > 1 or Doubt.SUBSTITUTION in script.doubts:
        raise _wrong(text, source, "it names several commands", "write one rule for each")
    if not script.commands or script.doubts or script.commands[0].redirections:
        raise _wrong(text, source, "it cannot be read as one command", "quote what the shell would read otherwise")
    words = (*script.commands[0].assignments, *script.commands[0].words)
    return CommandPattern(tuple(_pattern_parts(words)))


def _pattern_parts(words: Sequence[Word]) -> list[str]:
    """The texts between the stars that are not quoted, written as `command_text` writes commands."""
    marked = "".join(Word(_marked(word), word.bare, word.known).shown + " " for word in words)
    parts = marked.split("\0")
    if parts[-1] == " " and len(parts) > 1:
        parts[-1] = ""
    return parts


def _marked(word: Word) -> str:
    return "".join("\0" if bare == _STAR else text for text, bare in zip(word.text, word.bare, strict=True))


def _path(what: str, text: str, source: str) -> PathPattern:
    what = what.strip()
    root = "workspace"
    if what.startswith("//"):
        root, rest = "/", what[2:]
    elif what == "~" or what.startswith("~/"):
        root, rest = "home", what[2:]
    elif what.startswith(("/", "./")):
        rest = what.lstrip("./") if what.strip("./") == "" else what.partition("/")[2]
    else:
        rest = what
        root = "workspace" if "/" in what.rstrip("/") else "anywhere"
    names = tuple(name for name in rest.split("/") if name not in ("", "."))
    if ".." in names or "\0" in what:
        raise _wrong(text, source, "its path leads upwards", "write it from the workspace, from / as //, or from ~")
    for name in names:
        if not _is_readable(name):
            raise _wrong(text, source, f"{name!r} cannot be read as a pattern", "write one rule for each, or ? for it")
    return PathPattern(names, root)


def has_wildcards(name: str) -> bool:
    return not {_STAR, "?", "[", "{"}.isdisjoint(name)


def _is_readable(name: str) -> bool:
    """Whether its brackets and braces are closed, not nested, and not too many."""
    try:
        for body in _BODIES.findall(name):
            re.compile("[" + re.sub(r"([^-\w])", r"\\\1", body) + "]")
    except re.error:
        return False
    closed = "[:" not in name and not {"[", "{", "}"} & set(_GROUPS.sub("", name))
    return closed and len(_readings(name)) <= _MOST_CHOICES + 1


@functools.lru_cache(maxsize=4096)
def _readings(pattern: str) -> tuple[str, ...]:
    """The pattern as it is written, with brackets that mean themselves, then as a shell reads it: each choice."""
    parts = _CHOICE.split(pattern)
    choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    texts = map("".join, itertools.islice(itertools.product(*choices), _MOST_CHOICES + 1))
    return (pattern.replace("[", "[[]"), *(text.replace("[^", "[!") for text in texts))


def _fits_widely(pattern: str, name: str) -> bool:
    """Whether the name fits as the pattern is written, or as a shell reads it."""
    return any(fnmatchcase(name, one) for one in _readings(pattern)) if has_wildcards(pattern) else pattern == name


def _fits_as_written(pattern: str, name: str) -> bool:
    return fnmatchcase(name, _readings(pattern)[0])


def _meet(shell: str, rule: str) -> bool:
    """Whether one name could fit both patterns. The shell's own leaves out names that start with a dot."""
    if rule == _ANY or (shell[:1] in ("*", "?") and rule.startswith(".")):
        return rule == _ANY
    one, other = shell[:_LONGEST_NAME], rule.casefold()[:_LONGEST_NAME]
    row = [True, *(other[: at + 1].strip(_STAR) == "" for at in range(len(other)))]
    for wanted in one:
        before, row = row, [row[0] and wanted == _STAR]
        for at, given in enumerate(other):
            if _STAR in (wanted, given):
                fits = before[at + 1] or row[at] or before[at]
            else:
                fits = before[at] and (wanted == given or "?" in (wanted, given))
            row.append(fits)
    return row[-1]


def _fits(pattern: Sequence[str], names: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """Whether the names fit a pattern in which two stars stand for any number of them."""
    at = here = 0
    star_at, tried = -1, 0
    while here < len(names):
        if at < len(pattern) and pattern[at] == _ANY:
            star_at, tried = at, here
            at += 1
        elif at < len(pattern) and same(pattern[at], names[here]):
            at, here = at + 1, here + 1
        elif star_at >= 0:
            tried += 1
            at, here = star_at + 1, tried
        else:
            return False
    return all(left == _ANY for left in pattern[at:])


def _wrong(text: str, source: str, why: str, advice: str) -> ConfigError:
    where = f"{source}: " if source else ""
    return ConfigError(f"{where}the permission rule {text[:200]!r} cannot be used: {why}", advice=advice)
