"""Sub-agents: Markdown files that describe an agent for one kind of work, which the artisan may send.

Their form is that of `.claude/agents`: `name`, `description` and `tools` in the front matter, the prompt as the text.
Those of a repository count only where it is trusted. A field that narrows one and cannot be read leaves it out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from pawl.agent.skill_library import listed_words, parted, skills_of
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName
from pawl.core.text import one_line
from pawl.settings.config import Config
from pawl.settings.permission_rules import MCP, aliases, allowances
from pawl.settings.trust import AGENTS, Folder, files_of, trusted_files

MOST_AGENTS = 50
LONGEST_TEXT = 20_000
LONGEST_DESCRIPTION = 300
"""Characters that whoever may send one is told."""
WITHOUT_EFFECT = ("background", "effort", "hooks", "isolation", "mcpServers", "memory")
"""Fields that others honour and that change nothing here."""
READ_ONLY = "plan"
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
    reads_only: bool = False
    turns: int = 0
    """The most that it has; 0 for its share."""
    skills: tuple[str, ...] = ()
    """Whose texts it is given as it begins."""
    notes: tuple[str, ...] = ()
    """What its file says and has no effect here."""

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
    skills = {name for name, skill in skills_of(config, workspace).items() if skill.is_offered}
    notes = (
        AgentFault(one.source, what)
        for one in found
        if isinstance(one, SubAgent)
        for what in (
            *one.notes,
            *(f"there is no skill {name!r} for agents here" for name in one.skills if name not in skills),
        )
    )
    return (*(one for one in found if isinstance(one, AgentFault)), *notes)


def _found(config: Config, workspace: str) -> Iterator[SubAgent | AgentFault]:
    """Later ones replace earlier ones of the same name."""
    own: list[Folder] = [config.home / ".claude/agents", config.home / ".agents/agents", config.file.parent / "agents"]
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
    faults = list[str]()
    fields, body = parted(text, faults)
    name = _text(fields, "name") or name
    description = one_line(_text(fields, "description"), LONGEST_DESCRIPTION)
    turns = str(fields.get("maxTurns", "1"))
    wrong = ""
    if not _NAME.fullmatch(name):
        wrong = f"the name {name!r} must be lowercase letters, digits and hyphens"
    elif name in set(RoleName):
        wrong = f"{name!r} is a role of Pawl's own"
    elif not description or not body.strip():
        wrong = "it needs a description and a text"
    elif len(body) > LONGEST_TEXT:
        wrong = f"its text has {len(body):,} characters, and {LONGEST_TEXT:,} is the limit"
    elif _MODES.search(body) or "{{" in body:
        wrong = "its text has a line of Pawl's own prompts, or {{"
    elif not re.fullmatch("[1-9][0-9]{0,5}", turns):
        wrong = f"maxTurns must be a number from 1 on, not {turns!r}"
    words = {field: listed_words(fields.get(field, ())) for field in ("tools", "disallowedTools", "skills")}
    for field in (field for field, given in words.items() if given is None):
        wrong = wrong or f"{field} must be a text or a list of texts; it is left out: it could otherwise do too much"
    if wrong:
        return AgentFault(source, "; ".join((wrong, *faults)))
    named, denied, skills = (words[field] or () for field in words)
    known: dict[str, frozenset[str]] = {**aliases(), **{tool: frozenset({tool}) for tool in allowances().tools}}
    tools = (
        None if "tools" not in fields or "*" in named else _tools([word for word in named if not _bound(word)], known)
    )
    mode = _text(fields, "permissionMode")
    return SubAgent(
        name=name,
        description=description,
        text=body.strip(),
        tools=tools,
        source=source,
        denied=_tools(denied, known),
        reads_only=mode == READ_ONLY,
        turns=int(turns) if "maxTurns" in fields else 0,
        skills=skills,
        notes=(*faults, *_notes(fields, named, known)),
    )


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value.strip("\"' \n") if isinstance(value, str) else ""


def _notes(fields: Mapping[str, object], named: tuple[str, ...], known: Mapping[str, object]) -> Iterator[str]:
    for word in named:
        name = word.partition("(")[0]
        if name not in known and not name.startswith(MCP) and name != "*":
            yield f"there is no tool {name!r} here; it works without it"
        elif bound := _bound(word):
            yield f"it works without {name}, which cannot be kept to {bound!r} here: write {name} and a permission rule"
    mode = _text(fields, "permissionMode")
    if mode not in ("", "default", READ_ONLY):
        yield f"permissionMode {mode!r} has no effect here: what may be done without asking is set by your permissions"
    for name in WITHOUT_EFFECT:
        if name in fields:
            yield f"{name!r} has no effect here"


def _bound(word: str) -> str:
    """To what a word keeps its tool; such a tool is not given, as it would be given whole."""
    bound = word.partition("(")[2].removesuffix(")")
    return bound if bound.strip("*:") else ""


def _tools(words: Iterable[str], known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Those that the words name; a word for tools of an MCP server stands for itself."""
    names = (word.partition("(")[0] for word in words)
    return frozenset(tool for name in names for tool in ({name} if name.startswith(MCP) else known.get(name, ())))


def names_tool(words: frozenset[str], tool: str) -> bool:
    """Whether one of the words is that tool of an MCP server, or the server that has it."""
    return any(tool == word or tool.startswith(f"{word.removesuffix('*').rstrip('_')}__") for word in words)
