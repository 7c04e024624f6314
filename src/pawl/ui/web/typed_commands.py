"""Commands that are typed into the page as requests: `/undo 3`, `/plan`, `/NAME` of a skill. They are those of a
session in the terminal, as far as a page has a meaning for them."""

from __future__ import annotations

from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.ui.cli.encoder import Json
from pawl.ui.terminal.commands import (
    IDLE,
    MODEL,
    OWN,
    SessionCommand,
    commands_of,
    is_note,
    is_shell,
    split,
    words_of,
)
from pawl.ui.terminal.terminal_session import NO_MODEL
from pawl.workspace.project import Project

_LISTS = ("agents", "doctor", "memory", "models", "permissions", "policy", "prompts", "skills")
_RECORDS = ("audit", "diff", "history", "requests", "scores")
CHANGING = ("checkpoint", "memory", "promote", "redo", "restore", "undo")
COMMANDS = frozenset({*_LISTS, *_RECORDS, *CHANGING, "locate", "queue", "verify"})
"""Commands of the command line that the page may call."""
READ_ONLY = (["mcp", "list"], ["spec", "status"])
"""Others that it may call with this word first."""
CHOICES = ("approval", "mode", "model", "reasoning")
"""Commands that are choices of the page."""
LOOKING = ("", "list", "test")
"""What the page takes of a command that is for the terminal otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """The meaning of a command: one of these is given."""

    line: tuple[str, ...] = ()
    """A command of the command line."""
    request: str = ""
    own: SessionCommand | None = None
    """One of the user's, or a skill; the request is its words."""
    act: str = ""
    """The name of an action of the session; the request is its words."""
    waits: bool = False
    """It is carried out after what works now."""
    choice: tuple[str, str] | None = None
    anew: bool = False
    """A new conversation."""
    queued: bool = False
    """The request waits for the end of the present one."""


def listed(shop: Project) -> list[Json]:
    """The commands that may be typed, with what they do."""
    found = commands_of(shop.config, shop.workspace).every
    return [{"usage": one.usage, "help": one.help} for one in found if not one.page or one.name == "mcp"]


def typed(shop: Project, text: str, *, model: bool) -> TypedCommand | None:
    """The meaning of a text that is a command; None for a request. `model`: whether there is one to ask."""
    if is_shell(text):
        return TypedCommand(act="shell", request=text[1:].strip(), waits=True)
    if is_note(text):
        return TypedCommand(line=("memory", "add", text[1:].strip()))
    found = split(text)
    if found is None:
        return None
    name, words = found
    command = commands_of(shop.config, shop.workspace).find(name)
    if command.page and (command.name != "mcp" or words.partition(" ")[0] not in LOOKING):
        why, where = command.page
        raise UsageError(f"/{command.name} is not for the page: {why}", advice=where)
    if MODEL in command.needs and not model:
        raise UsageError(NO_MODEL, advice="choose one in Settings, or run 'pawl setup' in a terminal")
    if command.group == OWN:
        return TypedCommand(own=command, request=words)
    if command.line:
        return TypedCommand(line=(*command.line, *words_of(words)))
    return _here(command, words)


def _here(command: SessionCommand, words: str) -> TypedCommand:
    if command.name in ("new", "clear"):
        return TypedCommand(anew=True)
    if command.name == "plan":
        switch = words.lower() in ("", "on", "off")
        mode = "agent" if words.lower() == "off" else "plan"
        return TypedCommand(choice=("mode", mode), request="" if switch else words)
    if command.name == "queue" and words.lower() not in ("", "clear"):
        return TypedCommand(request=words, queued=True)
    if command.name in CHOICES and words:
        return TypedCommand(choice=(command.name, words))
    return TypedCommand(act=command.name, request=words, waits=IDLE in command.needs)
