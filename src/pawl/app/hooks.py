"""Runs hooks at the events of a run, and puts what they say together.

They run in the sandbox, on a bench, as commands do: an agent may have written what they start. Only a hook of the
user's own settings may ask for this machine. Those of a repository are run only where the user trusts it. A hook
tightens what the rules say; only one on this machine, which no agent can rewrite, lifts what no rule has said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from pawl.app.config import Config
from pawl.app.hook_process import Ended, host_environment, host_words, run_on_bench, run_on_host
from pawl.app.hook_settings import HookCommand, HookEvent, hook_commands
from pawl.app.project_settings import FOLDER, hooks_of, joined_hooks, project_settings
from pawl.app.trust import trusted_files
from pawl.core import bounded
from pawl.core.errors import ConfigError, PawlError, SandboxUnavailable
from pawl.core.execution import Limits
from pawl.core.permission import Permission, Ruling
from pawl.core.ports import Cancel
from pawl.policy.permission_rules import Place, names_of
from pawl.workspace.bench import Bench

MOST_CHARACTERS = 10_000
BLOCKS = 2
"""The exit code that says no."""
_NO_PROGRAM = (126, 127)
CAN_BLOCK = frozenset(HookEvent) - {
    HookEvent.SESSION_START,
    HookEvent.SESSION_END,
    HookEvent.NOTIFICATION,
    HookEvent.POST_COMPACT,
    HookEvent.SUBAGENT_START,
}
SAYS_CONTEXT = frozenset({HookEvent.SESSION_START, HookEvent.USER_PROMPT_SUBMIT})
"""Events at which plain output is told to the model."""

IN_SANDBOX = (
    "hooks run in the sandbox, on a bench: without a network, your home and your variables; one that needs them takes "
    "host = true and a program by its absolute path"
)

Benches = Callable[[], AbstractContextManager[Bench]]
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
    remarks: tuple[str, ...] = ()
    """For the user, once in a run."""

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
            remarks=(*self.remarks, *other.remarks),
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
    """The user's, of which a hook on this machine is given a part."""
    limits: Callable[[float], Limits] = lambda seconds: Limits(seconds=seconds)
    """What a hook may use up in that many seconds."""
    common: Mapping[str, object] = field(default_factory=dict)
    """What every event says: session_id, transcript_path, permission_mode."""
    notices: tuple[str, ...] = ()
    """What of the repository's hooks does not count, and why."""

    def run(
        self,
        event: HookEvent | str,
        payload: Mapping[str, object] | None = None,
        *,
        bench: Benches,
        cancel: Cancel | None = None,
    ) -> HookOutcome:
        """Runs every hook that is meant, one after the other: they share the bench, which is opened for the first."""
        event = HookEvent(event)
        body = {**self.common, **(payload or {}), "cwd": self.workspace, "hook_event_name": str(event)}
        if "tool_name" in body:
            body["tool_names"] = list(names_of(str(body["tool_name"])))
        place = Place(self.workspace, self.home)
        given = json.dumps(body, default=str).encode()
        outcome = HookOutcome()
        with ExitStack() as opened:
            stands: Bench | None = None
            for command in self.commands:
                if command.event is not event or not command.is_meant(body, place):
                    continue
                try:
                    if stands is None and not command.host:
                        stands = opened.enter_context(bench())
                    ended = self._ended(command, given, stands, cancel)
                except PawlError as error:
                    if isinstance(error, SandboxUnavailable) and event in CAN_BLOCK:
                        # What nobody could say no to does not happen.
                        raise
                    ended = Ended(code=None, stopped=f"it cannot be started: {error.message}; {error.advice}")
                outcome = outcome.and_then(said(command, ended))
        return outcome

    def about(self, **common: object) -> Hooks:
        """The same hooks, told this with every event."""
        return replace(self, common={**self.common, **common})

    def _ended(self, command: HookCommand, given: bytes, bench: Bench | None, cancel: Cancel | None) -> Ended:
        if bench is not None and not command.host:
            return run_on_bench(bench, command.argv, given, self.limits(command.seconds), cancel)
        words = host_words(command.argv, workspace=self.workspace, home=self.home)
        environment = host_environment(self.environment, self.workspace)
        return run_on_host(words, given, seconds=command.seconds, environment=environment, cancel=cancel)


def hooks_for(config: Config, workspace: str) -> Hooks:
    """The user's hooks, and the repository's if the user trusts it."""
    shared = config.file.parent / "hooks.json"
    text = bounded.read_bytes(shared).decode("utf-8", "replace") if shared.is_file() else ""
    own = joined_hooks(config.tables.hooks, hooks_of(text, str(shared)))
    commands = hook_commands(own, str(config.file), own=True)
    notices: tuple[str, ...] = ()
    trusted = trusted_files(config, workspace)
    if trusted is not None:
        commands += hook_commands(project_settings(workspace, trusted).hooks, FOLDER)
    elif _has_hooks(workspace):
        notices = (f"the hooks in {FOLDER} are not run, because the folder is not trusted ('pawl trust')",)
    return Hooks(
        commands=commands,
        workspace=workspace,
        home=str(config.home),
        environment=config.environment,
        limits=config.settings.limits,
        notices=notices,
    )


def _has_hooks(workspace: str) -> bool:
    try:
        return bool(project_settings(workspace).hooks)
    except ConfigError:
        return True


def said(command: HookCommand, ended: Ended) -> HookOutcome:
    """What one hook says by how it ended and what it wrote."""
    name = _cut(command.command, 80)
    if command.host:
        told = f"the hook {name!r} of your settings runs on this machine, outside of the sandbox (host = true)"
        return replace(_said(command, ended, name), remarks=(told,))
    return _said(command, ended, name)


def _said(command: HookCommand, ended: Ended, name: str) -> HookOutcome:
    if ended.code == 0:
        return _answer(command, ended.stdout)
    if ended.code == BLOCKS:
        reason = _cut(ended.stderr.strip()) or f"the hook {name!r} says no"
        if command.event not in CAN_BLOCK:
            return HookOutcome(messages=(reason,))
        asked = command.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST)
        return HookOutcome(blocked=True, reason=reason, permission=Ruling.DENY if asked else None)
    why = ended.stopped or f"it ended with {ended.code}: {_cut(ended.stderr.strip(), 400)}"
    more = f"; {IN_SANDBOX}" if ended.code in _NO_PROGRAM and command.is_own and not command.host else ""
    return HookOutcome(notices=(f"the hook {name!r} at {command.event} failed: {why}{more}",))


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
    # An agent may have written what ran on the bench: it cannot give itself what the user would be asked about.
    counts = command.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST) and (
        command.host or ruling is not Ruling.ALLOW
    )
    return HookOutcome(
        blocked=ruling is Ruling.DENY and command.event in CAN_BLOCK,
        reason=reason if counts or ruling is not Ruling.ALLOW else "",
        permission=ruling if counts else None,
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


def hooks_notice(config: Config, workspace: str) -> str:
    """That hooks have their say too, which only a real call would tell; empty without such hooks."""
    if not any(
        one.event in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST)
        for one in hooks_for(config, workspace).commands
    ):
        return ""
    return "hooks are asked about each call as well, and may refuse it, allow it or change it"
