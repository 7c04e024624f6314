"""Commands that are typed into the page as requests: `/undo 3`, `/plan`, `/NAME` of a skill. They are those of a
session in the terminal, as far as a page has a meaning for them."""

from __future__ import annotations

from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.ui.cli.encoder import Json
from pawl.ui.terminal.commands import OWN, SessionCommand, commands_of, split
from pawl.ui.terminal.terminal_session import words_of
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
HERE = (*CHOICES, "clear", "new", "plan", "queue")
"""Commands that the page carries out itself; others that are no command of the command line are parts of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """The meaning of a command: one of these is given."""

    line: tuple[str, ...] = ()
    """A command of the command line."""
    request: str = ""
    own: SessionCommand | None = None
    """One of the user's, or a skill; the request is its words."""
    choice: tuple[str, str] | None = None
    anew: bool = False
    """A new conversation."""
    queued: bool = False
    """The request waits for the end of the present one."""


def listed(shop: Project) -> list[Json]:
    """The commands that may be typed, with what they do."""
    found = commands_of(shop.config, shop.workspace).every
    return [{"usage": one.usage, "help": one.help} for one in found if _is_meant(one)]


def typed(shop: Project, text: str) -> TypedCommand | None:
    """The meaning of a text that is a command; None for a request."""
    found = split(text)
    if found is None:
        return None
    name, words = found
    command = commands_of(shop.config, shop.workspace).find(name)
    if not _is_meant(command):
        raise UsageError(
            f"/{command.name} is not a command of the page", advice="the page has a pane or a button for it"
        )
    if command.prompt:
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
    if not words:
        raise UsageError(f"/{command.name} needs a word", advice=command.usage)
    if command.name == "queue":
        return TypedCommand(request=words, queued=True)
    return TypedCommand(choice=(command.name, words))


def _is_meant(command: SessionCommand) -> bool:
    if command.group == OWN:
        return bool(command.prompt)
    return command.name in HERE or not COMMANDS.isdisjoint(command.line[:1])
