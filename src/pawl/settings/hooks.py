"""Hooks as they are configured: which command is run at which event, for which tools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pawl.core.errors import ConfigError
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
"""What of an event a matcher looks at; it says nothing at the others."""


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
        field = MATCHED.get(self.event)
        value = str(payload.get(field, "")) if field else ""
        names = names_of(value) if field == "tool_name" else (value,)
        if field and not any(_matches(self.matcher, name) for name in names):
            return False
        arguments = payload.get("tool_input", {})
        if self.condition is None or field != "tool_name":
            return True
        return isinstance(arguments, Mapping) and applies(self.condition, value, arguments, place)


def _matches(matcher: str, name: str) -> bool:
    """A list of names is exact; anything else is searched for; nothing and a star are all."""
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return name in (one.strip() for one in re.split(r"[|,]", matcher))
    return re.search(matcher, name) is not None


def hook_commands(table: Mapping[str, object], source: str, *, own: bool = False) -> tuple[HookCommand, ...]:
    """The commands of a table of events, in the form that agents share; only the user's own may ask for the host."""
    found = tuple(one for name, groups in table.items() for one in _of_event(name, groups, source))
    if not own and any(one.host for one in found):
        raise _wrong(source, "host = true is not a repository's to say", "put that hook into your own settings")
    if len(found) > MOST_HOOKS:
        raise ConfigError(f"{source!r}: [hooks]: {len(found)} hooks are too many", advice=f"at most {MOST_HOOKS}")
    return tuple(replace(one, is_own=True) for one in found) if own else found


def _of_event(name: str, groups: object, source: str) -> Iterator[HookCommand]:
    if name not in set(HookEvent):
        raise _wrong(source, f"there is no event {name!r}", f"the events are {', '.join(HookEvent)}")
    for group in _tables(groups, source, name):
        _check_fields(group, {"matcher", "hooks"}, source, name)
        matcher = _text(group.get("matcher", ""), source, f"{name}: matcher")
        try:
            re.compile(matcher if matcher != "*" else "")
        except re.error as error:
            raise _wrong(
                source, f"{name}: the matcher {matcher!r} is wrong: {error}", "write names as Edit|Write"
            ) from error
        for hook in _tables(group.get("hooks", []), source, f"{name}: hooks"):
            yield _hook(HookEvent(name), matcher, hook, source)


def _hook(event: HookEvent, matcher: str, hook: Mapping[str, object], source: str) -> HookCommand:
    _check_fields(hook, {"type", "command", "args", "timeout", "if", "host"}, source, event)
    if hook.get("type", "command") != "command":
        raise _wrong(source, f"{event}: hooks of the type {hook['type']!r} are not known", 'use type = "command"')
    command = _text(hook.get("command"), source, f"{event}: command")
    if not command.strip():
        raise _wrong(source, f"{event}: the command is empty", "name what is to be run")
    args = hook.get("args")
    if args is not None and not (isinstance(args, list) and all(isinstance(one, str) for one in args)):
        raise _wrong(source, f"{event}: args must be a list of texts", 'write args = ["--check"]')
    seconds = hook.get("timeout", DEFAULT_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise _wrong(source, f"{event}: the timeout {seconds!r} is not a number of seconds", "write timeout = 60")
    condition = _text(hook.get("if", ""), source, f"{event}: if")
    host = hook.get("host", False)
    if not isinstance(host, bool):
        raise _wrong(source, f"{event}: host must be true or false, not {host!r:.80}", "write host = true")
    if host and not command.startswith(("/", "~/")):
        raise _wrong(
            source,
            f"{event}: host = true needs an absolute program, not {command!r:.80}",
            "name it by its whole path, with its words in args",
        )
    return HookCommand(
        event=event,
        command=command,
        args=None if args is None else tuple(args),
        matcher=matcher,
        seconds=float(seconds),
        condition=parse_rule(condition, source) if condition else None,
        source=source,
        host=host,
    )


def _check_fields(table: Mapping[str, object], known: set[str], source: str, where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise _wrong(
            source, f"{where}: {unknown[0]!r} is not one of its fields", f"it takes {', '.join(sorted(known))}"
        )


def _tables(value: object, source: str, where: str) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _wrong(source, f"{where} must be a list of tables", "see docs/settings.md")
    return value


def _text(value: object, source: str, where: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _wrong(source, f"{where} must be a text", "see docs/settings.md")
    return value


def _wrong(source: str, what: str, advice: str) -> ConfigError:
    return ConfigError(f"{source!r}: [hooks]: {what}", advice=advice)
