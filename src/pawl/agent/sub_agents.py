"""Sub-agents: Markdown files that describe an agent for one kind of work, which the artisan may send.

Their form is that of `.claude/agents`: `name`, `description` and `tools` in the front matter, the prompt as the text.
Those of a repository count only where it is trusted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName
from pawl.core.text import one_line
from pawl.core.typed import front_matter
from pawl.settings.config import Config
from pawl.settings.permission_rules import MCP, aliases, allowances
from pawl.settings.trust import AGENTS, Folder, files_of, trusted_files

MOST_AGENTS = 50
LONGEST_TEXT = 20_000
LONGEST_DESCRIPTION = 300
"""Characters that whoever may send one is told."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_MODES = re.compile(r"^# (?:Mode|Reasoning): ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgent:
    name: str
    description: str
    text: str
    """Its prompt."""
    tools: frozenset[str] | None
    """Pawl's tools that it names, and words for those of MCP servers; None for all that the artisan has."""
    source: str
    denied: frozenset[str] = frozenset()
    """Those that it is not to have."""
    unknown: tuple[str, ...] = ()
    """Tools that it names and that are not here."""

    @property
    def prompt(self) -> str:
        """The name of its prompt."""
        return f"roles/{self.name}"


@dataclass(frozen=True, slots=True)
class AgentFault:
    path: str
    what: str


def sub_agents(config: Config, workspace: str) -> dict[str, SubAgent]:
    """The user's own, and those of the workspace if it is trusted, which go before them."""
    return {one.name: one for one in _found(config, workspace) if isinstance(one, SubAgent)}


def agent_faults(config: Config, workspace: str) -> tuple[AgentFault, ...]:
    found = tuple(_found(config, workspace))
    unknown = (
        AgentFault(one.source, f"there is no tool {name!r} here; it works without it")
        for one in found
        if isinstance(one, SubAgent)
        for name in one.unknown
    )
    return (*(one for one in found if isinstance(one, AgentFault)), *unknown)


def _found(config: Config, workspace: str) -> Iterator[SubAgent | AgentFault]:
    """Later ones replace earlier ones of the same name."""
    own: list[Folder] = [config.home / ".claude/agents", config.file.parent / "agents"]
    for folder in own:
        yield from _read(folder)
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        for name in reversed(AGENTS):
            yield from _read(trusted.folder(name))


def _read(folder: Folder) -> Iterator[SubAgent | AgentFault]:
    for path, source, read in itertools.islice(files_of(folder, ".md"), MOST_AGENTS):
        try:
            yield _agent(path.rpartition("/")[2].removesuffix(".md"), read(), source)
        except (OSError, UnicodeDecodeError) as error:
            yield AgentFault(source, f"it cannot be read: {error}")


def _agent(name: str, text: str, source: str) -> SubAgent | AgentFault:
    head, body = front_matter(text)
    fields = {key: value.strip("\"' ") for key, value in head.items()}
    name = fields.get("name") or name
    wrong = ""
    if not _NAME.fullmatch(name):
        wrong = f"the name {name!r} is not made of small letters, digits and hyphens"
    elif name in set(RoleName):
        wrong = f"{name!r} is a role of Pawl's own"
    elif not fields.get("description") or not body.strip():
        wrong = "it needs a description and a text"
    elif len(body) > LONGEST_TEXT:
        wrong = f"its text has {len(body):,} characters, and {LONGEST_TEXT:,} is the limit"
    elif _MODES.search(body) or "{{" in body:
        wrong = "its text has a line of Pawl's own prompts, or {{"
    if wrong:
        return AgentFault(source, wrong)
    tools, unknown = _tools(fields.get("tools", ""))
    denied, _ = _tools(fields.get("disallowedTools", ""))
    return SubAgent(
        name=name,
        description=one_line(fields["description"], LONGEST_DESCRIPTION),
        text=body.strip(),
        tools=tools,
        source=source,
        denied=denied or frozenset(),
        unknown=unknown,
    )


def _tools(words: str) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    named = [word for word in re.split(r"[\s,\[\]\"']+", words) if word]
    if not named or "*" in named:
        return None, ()
    known: dict[str, frozenset[str]] = {**aliases(), **{tool: frozenset({tool}) for tool in allowances().tools}}
    known |= {word: frozenset({word}) for word in named if word.startswith(MCP)}
    given = frozenset(tool for word in named for tool in known.get(word.partition("(")[0], ()))
    return given, tuple(word for word in named if word.partition("(")[0] not in known)


def names_tool(words: frozenset[str], tool: str) -> bool:
    """Whether one of the words is that tool of an MCP server, or the server that has it."""
    return any(tool == word or tool.startswith(f"{word.removesuffix('*').rstrip('_')}__") for word in words)
