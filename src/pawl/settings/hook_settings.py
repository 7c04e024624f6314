"""Hooks as they are configured: which command is run at which event, for which tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated, Literal

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Above, Reader, near
from pawl.settings.permission_rules import PathBase, Rule, names_of, parse_rule
from pawl.settings.permissions import applies

DEFAULT_SECONDS = 600.0
MOST_HOOKS = 64

_EXACT = re.compile(r"[A-Za-z0-9_|, -]*")


class HookEvent(StrEnum):
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    PERMISSION_REQUEST = "PermissionRequest"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    STOP = "Stop"
    NOTIFICATION = "Notification"


MATCHED = {
    HookEvent.SESSION_START: "source",
    HookEvent.SESSION_END: "reason",
    HookEvent.PRE_TOOL_USE: "tool_name",
    HookEvent.PERMISSION_REQUEST: "tool_name",
    HookEvent.POST_TOOL_USE: "tool_name",
    HookEvent.POST_TOOL_USE_FAILURE: "tool_name",
    HookEvent.PRE_COMPACT: "trigger",
    HookEvent.POST_COMPACT: "trigger",
    HookEvent.SUBAGENT_START: "agent_type",
    HookEvent.SUBAGENT_STOP: "agent_type",
    HookEvent.NOTIFICATION: "notification_type",
}
"""The field of an event that a matcher looks at; it says nothing at the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCommand:
    """One command for one event."""

    event: HookEvent
    command: str
    args: tuple[str, ...] | None = None
    """With them the command is a program that no shell starts."""
    matcher: str = ""
    seconds: float = DEFAULT_SECONDS
    condition: Rule | None = None
    source: str = ""
    host: bool = False
    """It runs on this machine, outside of the sandbox; `command` is then an absolute path that no shell reads."""
    is_own: bool = False
    """It stands in the user's own settings."""

    @property
    def argv(self) -> tuple[str, ...]:
        if self.host:
            return (self.command, *(self.args or ()))
        return ("/bin/sh", "-c", self.command) if self.args is None else (self.command, *self.args)

    def is_meant(self, payload: Mapping[str, object], place: PathBase) -> bool:
        looked_at = MATCHED.get(self.event)
        value = str(payload.get(looked_at, "")) if looked_at else ""
        names = names_of(value) if looked_at == "tool_name" else (value,)
        if looked_at and not any(_matches(self.matcher, name) for name in names):
            return False
        arguments = payload.get("tool_input", {})
        if self.condition is None or looked_at != "tool_name":
            return True
        return isinstance(arguments, Mapping) and applies(self.condition, value, arguments, place)


def _matches(matcher: str, name: str) -> bool:
    """A list of names is exact; anything else is searched for; nothing and a star are all."""
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return name in (one.strip() for one in re.split(r"[|,]", matcher))
    return re.search(matcher, name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hook:
    """A command as it is written, in the form that agents share."""

    command: str
    type: Literal["command"] = "command"
    args: tuple[str, ...] | None = None
    timeout: Annotated[float, Above(0)] = DEFAULT_SECONDS
    condition: str = field(default="", metadata={"key": "if"})
    host: bool = False

    def mistakes(self) -> Iterator[str]:
        if not self.command.strip() or "\0" in self.command:
            yield "command must not be empty"
        if self.host and not self.command.startswith(("/", "~/")):
            yield f"host = true needs an absolute program, with its words in args, not {self.command!r:.80}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    matcher: str = ""
    hooks: tuple[_Hook, ...] = ()

    def mistakes(self) -> Iterator[str]:
        try:
            re.compile(self.matcher if self.matcher != "*" else "")
        except re.error as error:
            yield f"matcher {self.matcher!r} is wrong, write names as Edit|Write: {error}"
        yield from (mistake for hook in self.hooks for mistake in hook.mistakes())


def hook_commands(table: Mapping[str, object], source: str, *, own: bool = False) -> tuple[HookCommand, ...]:
    """The commands of a table of events; every mistake at once. Only the user's own may ask for the host."""
    reader = Reader()
    found: list[HookCommand] = []
    for name, given in table.items():
        if name not in set(HookEvent):
            reader.mistakes.append(f"hooks has no event {name!r}{near(name, HookEvent)}")
            continue
        for group in reader.value(tuple[_Group, ...], given, f"hooks.{name}") or ():
            for mistake in group.mistakes():
                reader.wrong(f"hooks.{name}:", mistake)
            found += (_command(HookEvent(name), group.matcher, hook, source, reader) for hook in group.hooks)
    if not own and any(one.host for one in found):
        reader.wrong("hooks:", "host = true is not a repository's to say; put that hook into your own settings")
    if len(found) > MOST_HOOKS:
        reader.wrong("hooks:", f"{len(found)} hooks are too many; at most {MOST_HOOKS}")
    reader.check(source)
    return tuple(replace(one, is_own=True) for one in found) if own else tuple(found)


def _command(event: HookEvent, matcher: str, hook: _Hook, source: str, reader: Reader) -> HookCommand:
    condition = None
    try:
        condition = parse_rule(hook.condition, source) if hook.condition else None
    except ConfigError as error:
        reader.mistakes.append(f"hooks.{event}: if: {error.message}; {error.advice}")
    return HookCommand(
        event=event,
        command=hook.command,
        args=hook.args,
        matcher=matcher,
        seconds=hook.timeout,
        condition=condition,
        source=source,
        host=hook.host,
    )
