"""Runs the user's hooks at the events of a run, and puts what they say together.

They are the user's own programs and run with the user's rights, outside of the sandbox. Those of a repository are run
only where the user trusts it. What a hook allows, rules that deny or ask still hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from pawl.app.config import Config
from pawl.app.hook_process import Ended, run_hook
from pawl.app.hook_settings import HookCommand, HookEvent, hook_commands
from pawl.app.project_settings import FOLDER, hooks_of, joined_hooks, project_settings
from pawl.app.trust import is_trusted
from pawl.core import bounded
from pawl.core.errors import ConfigError
from pawl.core.permission import Permission, Ruling
from pawl.core.ports import Cancel
from pawl.policy.permission_rules import Place, names_of

MOST_CHARACTERS = 10_000
BLOCKS = 2
"""The exit code that says no."""
CAN_BLOCK = frozenset(HookEvent) - {
    HookEvent.SESSION_START,
    HookEvent.SESSION_END,
    HookEvent.NOTIFICATION,
    HookEvent.POST_COMPACT,
    HookEvent.SUBAGENT_START,
}
SAYS_CONTEXT = frozenset({HookEvent.SESSION_START, HookEvent.USER_PROMPT_SUBMIT})
"""Events at which plain output is told to the model."""

_AT_ONCE = 16
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_DECISIONS = {
    "allow": Ruling.ALLOW,
    "approve": Ruling.ALLOW,
    "ask": Ruling.ASK,
    "deny": Ruling.DENY,
    "block": Ruling.DENY,
}
_STRENGTH = (None, Ruling.ALLOW, Ruling.ASK, Ruling.DENY)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """What all hooks of an event came to."""

    blocked: bool = False
    """What was about to happen must not; after a tool: the model is told the reason."""
    reason: str = ""
    permission: Ruling | None = None
    """What the strictest hook says of the call; None when none says anything."""
    updated_input: Mapping[str, object] | None = None
    """Other arguments for the call, to be judged by the rules again."""
    context: tuple[str, ...] = ()
    """For the model."""
    messages: tuple[str, ...] = ()
    """For the user."""
    stop: bool = False
    """The run is to end."""
    stop_reason: str = ""
    notices: tuple[str, ...] = ()
    """Hooks that failed, which stops nothing."""

    def and_then(self, other: HookOutcome) -> HookOutcome:
        """Both; what is stricter counts, and of two other arguments the later."""
        strictest = max(self.permission, other.permission, key=_STRENGTH.index)
        return HookOutcome(
            blocked=self.blocked or other.blocked,
            reason=_cut("\n".join(one for one in (self.reason, other.reason) if one)),
            permission=strictest,
            updated_input=other.updated_input or self.updated_input,
            context=(*self.context, *other.context),
            messages=(*self.messages, *other.messages),
            stop=self.stop or other.stop,
            stop_reason=self.stop_reason or other.stop_reason,
            notices=(*self.notices, *other.notices),
        )

    def over(self, permission: Permission) -> Permission:
        """The permission with what the hooks say: they tighten it, and lift only what no rule has said."""
        if self.blocked or self.permission is Ruling.DENY:
            return replace(permission, ruling=Ruling.DENY, reason=self.reason or "a hook denies it", firm=True)
        if self.permission is Ruling.ASK and permission.allowed:
            return replace(permission, ruling=Ruling.ASK, reason=self.reason or "a hook asks about it", firm=True)
        if self.permission is Ruling.ALLOW and permission.ruling is Ruling.ASK and not permission.firm:
            return replace(permission, ruling=Ruling.ALLOW, reason=self.reason or "a hook allows it")
        return permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of a workspace."""

    commands: tuple[HookCommand, ...] = ()
    workspace: str = ""
    home: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    common: Mapping[str, object] = field(default_factory=dict)
    """What every event says: session_id, transcript_path, permission_mode."""
    notices: tuple[str, ...] = ()
    """What of the repository's hooks does not count, and why."""

    def run(
        self, event: HookEvent | str, payload: Mapping[str, object] | None = None, *, cancel: Cancel | None = None
    ) -> HookOutcome:
        """Runs every hook that is meant, at the same time, and waits for all."""
        event = HookEvent(event)
        body = {**self.common, **(payload or {}), "cwd": self.workspace, "hook_event_name": str(event)}
        if "tool_name" in body:
            body["tool_names"] = list(names_of(str(body["tool_name"])))
        place = Place(self.workspace, self.home)
        meant = [one for one in self.commands if one.event is event and one.is_meant(body, place)]
        if not meant:
            return HookOutcome()
        given = json.dumps(body, default=str).encode()
        with ThreadPoolExecutor(max_workers=min(len(meant), _AT_ONCE)) as pool:
            ended = list(pool.map(lambda one: self._ended(one, given, cancel), meant))
        outcome = HookOutcome()
        for command, end in zip(meant, ended, strict=True):
            outcome = outcome.and_then(said(command, end))
        return outcome

    def about(self, **common: object) -> Hooks:
        """The same hooks, told this with every event."""
        return replace(self, common={**self.common, **common})

    def _ended(self, command: HookCommand, given: bytes, cancel: Cancel | None) -> Ended:
        return run_hook(
            command.argv,
            given,
            seconds=command.seconds,
            directory=self.workspace,
            environment=self.environment,
            cancel=cancel,
        )


def hooks_for(config: Config, workspace: str) -> Hooks:
    """The user's hooks, and the repository's if the user trusts it."""
    shared = config.file.parent / "hooks.json"
    text = bounded.read_bytes(shared).decode("utf-8", "replace") if shared.is_file() else ""
    commands = hook_commands(joined_hooks(config.tables.hooks, hooks_of(text, str(shared))), str(config.file))
    notices: tuple[str, ...] = ()
    if is_trusted(config, workspace):
        commands += hook_commands(project_settings(workspace).hooks, FOLDER)
    elif _has_hooks(workspace):
        notices = (f"the hooks in {FOLDER} are not run, because the folder is not trusted ('pawl trust')",)
    return Hooks(
        commands=commands,
        workspace=workspace,
        home=str(config.home),
        environment=hook_environment(config.environment, workspace),
        notices=notices,
    )


def hook_environment(environment: Mapping[str, str], workspace: str) -> dict[str, str]:
    """The user's variables without keys, and without folders that a repository could put programs into."""
    kept = {
        name: value for name, value in environment.items() if not any(word in name.upper() for word in _SECRET_WORDS)
    }
    path = [folder for folder in environment.get("PATH", os.defpath).split(":") if os.path.isabs(folder)]
    return {**kept, "PATH": ":".join(path), "PAWL_PROJECT_DIR": workspace, "CLAUDE_PROJECT_DIR": workspace}


def _has_hooks(workspace: str) -> bool:
    try:
        return bool(project_settings(workspace).hooks)
    except ConfigError:
        return True


def said(command: HookCommand, ended: Ended) -> HookOutcome:
    """What one hook says by how it ended and what it wrote."""
    name = _cut(command.command, 80)
    if ended.code == 0:
        return _answer(command, ended.stdout)
    if ended.code == BLOCKS:
        reason = _cut(ended.stderr.strip()) or f"the hook {name!r} says no"
        if command.event not in CAN_BLOCK:
            return HookOutcome(messages=(reason,))
        asked = command.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST)
        return HookOutcome(blocked=True, reason=reason, permission=Ruling.DENY if asked else None)
    why = ended.stopped or f"it ended with {ended.code}: {_cut(ended.stderr.strip(), 400)}"
    return HookOutcome(notices=(f"the hook {name!r} at {command.event} failed: {why}",))


def _answer(command: HookCommand, text: str) -> HookOutcome:
    """What is written to stdout: JSON, or at some events plain text for the model."""
    plain = text.strip()
    try:
        body = json.loads(plain) if plain.startswith("{") else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return HookOutcome(context=(_cut(plain),) if plain and command.event in SAYS_CONTEXT else ())
    specific = body.get("hookSpecificOutput")
    specific = specific if isinstance(specific, dict) else {}
    ruling, reason, updated = _decision(command.event, body, specific)
    goes_on = body.get("continue", True) is not False
    return HookOutcome(
        blocked=ruling is Ruling.DENY and command.event in CAN_BLOCK,
        reason=reason,
        permission=ruling if command.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST) else None,
        updated_input=updated,
        context=tuple(_texts(specific, body, key="additionalContext")),
        messages=tuple(_texts(body, key="systemMessage")),
        stop=not goes_on,
        stop_reason="" if goes_on else next(_texts(body, key="stopReason"), ""),
    )


def _decision(
    event: HookEvent, body: Mapping[str, Any], specific: Mapping[str, Any]
) -> tuple[Ruling | None, str, Mapping[str, object] | None]:
    """The ruling, why, and other arguments; from any of the places where hooks write it."""
    inner = specific.get("decision")
    inner = inner if isinstance(inner, dict) else {}
    words = (specific.get("permissionDecision"), inner.get("behavior"), body.get("decision"))
    ruling = next((_DECISIONS[word] for word in words if isinstance(word, str) and word in _DECISIONS), None)
    reasons = (specific.get("permissionDecisionReason"), inner.get("message"), body.get("reason"))
    reason = next((_cut(one) for one in reasons if isinstance(one, str) and one), "")
    updated = next(
        (one for one in (specific.get("updatedInput"), inner.get("updatedInput")) if isinstance(one, dict)), None
    )
    takes = event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST) and ruling is not Ruling.DENY
    return ruling, reason, updated if takes else None


def _texts(*tables: Mapping[str, Any], key: str) -> Iterator[str]:
    for table in tables:
        value = table.get(key)
        if isinstance(value, str) and value.strip():
            yield _cut(value)


def _cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
