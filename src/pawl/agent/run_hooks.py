"""The hooks of a run, called at its events. Where none are configured nothing is loaded for them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pawl.agent.compression import is_summary
from pawl.agent.context import ToolReply, TurnInput
from pawl.agent.replay import ReplayLog
from pawl.core.dialogue import Message
from pawl.core.display import MARK, Shown, head_and_tail, shown_text
from pawl.core.errors import Cancelled, HookRefused
from pawl.core.events import HookSaid
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_body
from pawl.core.run import Approval, ApprovalRequest, Mode, RunRequest
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings.permission_rules import COMMAND_TOOL
from pawl.settings.shell import Doubt, ShellCommand
from pawl.settings.shell_permissions import script_of, unfolded
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.workspace.bench import Bench
    from pawl.workspace.bench_files import GatedFiles
    from pawl.workspace.hook_runner import HookOutcome, Hooks


ABOUT_WORK = frozenset({"PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"})
"""Events whose hooks work on the bench of the run. Others run on a fresh one, where no agent could rewrite them."""
TOLD = "hooks-in-sandbox"
"""A file of the state folder that says that the user knows where hooks run."""
MOST_STOPS = 3
"""How often hooks may send a role back to work that says it is done."""


@dataclass(slots=True, kw_only=True)
class Hooking:
    """The hooks of the workspace, called for one run."""

    shop: Project
    order: RunRequest
    run: str
    conversation: str
    tell: Callable[[HookSaid], object]
    cancel: CancelToken | None = None
    bench: Callable[[], Bench] | None = None
    """The bench of the run, where there is one to work on."""
    gated: GatedFiles | None = None
    """Its files as the model may see them."""
    agent: Mapping[str, str] = field(default_factory=dict)
    """Names the sub-agent whose calls they hear of."""
    _hooks: Hooks | None = None
    _looked: bool = False
    _remarks: set[str] = field(default_factory=set)
    """Remarks that were shown once."""

    def on(self, bench: Callable[[], Bench], gated: GatedFiles) -> Hooking:
        """The same hooks over the bench that a role works on."""
        return replace(self, bench=bench, gated=gated)

    def about(self, line: TurnInput) -> Hooking:
        """The same hooks, told who works where it is somebody that was sent."""
        return replace(self, agent={"agent_id": line.talk, "agent_type": line.role}) if line.sent else self

    @property
    def exist(self) -> bool:
        return self._known is not None

    def begin(self, source: str, *, model: str) -> tuple[str, ...]:
        """A session starts, new or again; what hooks want the model to know."""
        for notice in self._known.notices if self._known is not None else ():
            self.tell(HookSaid(event="SessionStart", text=notice))
        self._tell_where_they_run()
        return self._context(self._called("SessionStart", source=source, model=model))

    def end(self, reason: str) -> None:
        self._called("SessionEnd", reason=reason)

    def submit(self, prompt: str) -> tuple[str, ...]:
        """The user's request, before anything is done about it; what hooks want the model to know beside it."""
        outcome = self._called("UserPromptSubmit", prompt=prompt)
        if outcome is not None and outcome.blocked:
            raise HookRefused(
                f"a hook does not take the request: {outcome.reason}", advice="see [hooks] in settings.md"
            )
        return self._context(outcome)

    def before_tool(self, name: str, arguments: Mapping[str, object], call: str) -> HookOutcome | None:
        return self._called("PreToolUse", tool_name=name, tool_input=dict(arguments), tool_use_id=call)

    def before_asking(self, name: str, arguments: Mapping[str, object], call: str) -> HookOutcome | None:
        return self._called("PermissionRequest", tool_name=name, tool_input=dict(arguments), tool_use_id=call)

    def after_tool(self, name: str, arguments: Mapping[str, object], text: str, *, failed: bool, call: str) -> str:
        """Told to the model beside the answer of the tool."""
        told = {"tool_name": name, "tool_input": dict(arguments), "tool_use_id": call}
        if failed:
            outcome = self._called("PostToolUseFailure", **told, error=text, is_interrupt=False)
        else:
            outcome = self._called("PostToolUse", **told, tool_response={"text": text})
        if outcome is None:
            return ""
        said = (*((outcome.reason,) if outcome.blocked else ()), *outcome.context)
        return "".join(f"\n[a hook of the user's says: {one}]" for one in said)

    def answered(self, talk: str, step: int, name: str, arguments: Mapping[str, object], reply: ToolReply) -> ToolReply:
        """The answer of a tool with what hooks say of it."""
        more = self.after_tool(name, arguments, reply.text, failed=reply.failed, call=f"{talk}.{step}")
        return replace(reply, text=f"{reply.text}{more}") if more else reply

    def sending_back(self, tape: ReplayLog, line: TurnInput, text: str) -> tuple[str, ...]:
        before = sum(step.get("by") == "hook" for step in tape.steps)
        return tape.heard(lambda: self.stopping(line, text, before=before), by="hook")

    def stopping(self, line: TurnInput, text: str, *, before: int) -> tuple[str, ...]:
        """Why a role that says it is done is to go on; `before` is how often it was sent back already."""
        if before >= MOST_STOPS:
            return ()
        told = {"stop_hook_active": before > 0, "last_assistant_message": text}
        if line.sent:
            outcome = self._stopped(line.role, line.talk, **told)
        else:
            outcome = self._called("Stop", **told)
        return (outcome.reason or "a hook wants you to go on",) if outcome is not None and outcome.blocked else ()

    def compressing(
        self, messages: Sequence[Message], made: Sequence[Message], *, forced: bool = False, asked: str | None = None
    ) -> Sequence[Message]:
        """Which of the two dialogues goes on. What the model cannot read is shortened whatever a hook says.

        `asked` is what the user said beside asking for it; None where nobody did.
        """
        if made is messages or self._known is None:
            return made
        trigger = "auto" if asked is None else "manual"
        outcome = self._called("PreCompact", trigger=trigger, custom_instructions=asked or "")
        if outcome is not None and outcome.blocked and not forced:
            self._remark("PreCompact", f"not shortened: {outcome.reason}")
            return messages
        summary = next((one.text for one in made if is_summary(one)), "")
        self._called("PostCompact", trigger=trigger, compact_summary=summary)
        return made

    def role_begins(self, role: str, talk: str) -> None:
        self._called("SubagentStart", agent_type=role, agent_id=talk)

    def role_ends(self, role: str, talk: str, text: str) -> None:
        self._stopped(role, talk, last_assistant_message=text)

    def _stopped(self, role: str, talk: str, **told: object) -> HookOutcome | None:
        """There are no files of transcripts, of a sub-agent as of the run."""
        return self._called("SubagentStop", agent_type=role, agent_id=talk, agent_transcript_path="", **told)

    def waits(self, question: ApprovalRequest) -> None:
        """The run stands still until the user answers."""
        what = f"may {question.tool} be called?" if question.tool else "a change waits for approval"
        self._called("Notification", notification_type="permission_prompt", title="Pawl", message=what)

    @property
    def _known(self) -> Hooks | None:
        if not self._looked:
            self._looked = True
            config, workspace = self.shop.config, self.shop.workspace
            places = (str(config.file.parent / "hooks.json"), os.path.join(workspace, ".pawl"))
            if config.tables.hooks or any(os.path.exists(place) for place in places):
                from pawl.workspace.hook_runner import hooks_for

                found = hooks_for(config, workspace)
                if found.commands or found.notices:
                    self._hooks = found.about(
                        session_id=self.conversation,
                        prompt_id=self.run,
                        transcript_path="",
                        permission_mode=_permission_mode(self.order),
                    )
        return self._hooks

    def _called(self, event: str, **payload: object) -> HookOutcome | None:
        hooks = self._known
        if hooks is None:
            return None
        hides, payload = self._hides(event), {**self.agent, **payload}
        outcome = hooks.run(event, payload, bench=lambda: self._bench(event), cancel=self.cancel, hides=hides)
        for text in outcome.remarks:
            self._remark(event, text)
        for text in (*outcome.messages, *outcome.notices):
            self.tell(HookSaid(event=event, text=text))
        raise_if_stopped(self.cancel)
        if outcome.stop and event not in ("SessionEnd", "Notification"):
            raise Cancelled(f"a hook at {event} stopped the run: {outcome.stop_reason or 'no reason was given'}")
        return outcome

    def _remark(self, event: str, text: str) -> None:
        """Said once."""
        if text not in self._remarks:
            self._remarks.add(text)
            self.tell(HookSaid(event=event, text=text))

    def _hides(self, event: str) -> Callable[[str], bool] | None:
        """Says which files hooks are not shown: a rule keeps them from the model, which is told what hooks print."""
        if self.gated is not None and event in ABOUT_WORK:
            self.gated.was_hidden |= self.gated.hides is not None
            return self.gated.hides
        gate = self.shop.read_gate()
        return None if gate.is_open else lambda path: gate.judge(path) is not None

    @contextmanager
    def _bench(self, event: str) -> Iterator[Bench]:
        if self.bench is not None and event in ABOUT_WORK:
            yield self.bench()
            return
        from pawl.workspace.benches import open_bench

        with open_bench(self.shop) as fresh:
            yield fresh

    def _tell_where_they_run(self) -> None:
        """Once for all: hooks that were written for this machine may find less in the sandbox."""
        hooks = self._known
        if hooks is None or not any(one.is_own and not one.host for one in hooks.commands):
            return
        from pawl.workspace.hook_runner import IN_SANDBOX

        try:
            os.close(os.open(self.shop.config.state / TOLD, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError:
            return
        self.tell(HookSaid(event="SessionStart", text=f"{IN_SANDBOX} (said once; see docs/settings.md#hooks)"))

    def _context(self, outcome: HookOutcome | None) -> tuple[str, ...]:
        return () if outcome is None else tuple(f"[from a hook of the user's]\n{one}" for one in outcome.context)


def _permission_mode(order: RunRequest) -> str:
    """In the words that agents share."""
    if order.mode is Mode.CHAT:
        return "plan"
    return "default" if order.approval is Approval.EACH else "acceptEdits"


CANNOT_BE_SHOWN = "the user is asked about it, and part of it looks like a secret, which is never shown"


def can_be_shown(arguments: Mapping[str, object]) -> bool:
    """Whether no part would be hidden as a secret: the user approves what runs, not what is left of it."""
    exact: object = json.loads(json.dumps(dict(arguments), default=str))
    return redacted_body(arguments) == exact


def call_question(call: str, tool: str, arguments: Mapping[str, object], why: tuple[str, ...]) -> ApprovalRequest:
    """The question about that call of a run; its digest is of the exact arguments."""
    exact = json.dumps([call, tool, arguments], sort_keys=True, default=str)
    digest = hashlib.sha256(exact.encode("utf-8", "surrogatepass")).hexdigest()
    shown = shown_call(tool, arguments)
    return ApprovalRequest(
        kind="call",
        digest=digest,
        why=why,
        tool=tool,
        arguments=dict(arguments),
        shown=shown.lines,
        flags=shown.flags,
    )


def whole_call(question: ApprovalRequest) -> Shown:
    """Every line of it."""
    return shown_call(question.tool, question.arguments, whole=True)


_COMMANDS_HEAD, _COMMANDS_TAIL = 40, 20


def shown_call(tool: str, arguments: Mapping[str, object], *, whole: bool = False) -> Shown:
    """Lines that name each argument and each separate command, with what in them may deceive."""
    flags: dict[str, None] = {}
    lines = [line for name, value in arguments.items() for line in _argument(name, value, flags, whole=whole)]
    if tool == COMMAND_TOOL:
        lines += _commands(arguments, flags, whole=whole)
    return Shown(tuple(lines), tuple(flags))


def _argument(name: str, value: object, flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    label = _on_one_line(str(name), flags)
    inner: list[str] = []
    match value:
        case Mapping():
            inner = [row for key, one in value.items() for row in _argument(str(key), one, flags, whole=whole)]
        case list() | tuple() if not all(isinstance(one, int | float) for one in value):
            inner = [row for at, one in enumerate(value, 1) for row in _argument(f"[{at}]", one, flags, whole=whole)]
        case _:
            inner = _text(str(value), flags, whole=whole)
            if len(inner) == 1:
                yield f"{label}: {inner[0]}"
                return
    yield f"{label}:"
    yield from (f"  {row}" for row in inner)


def _commands(arguments: Mapping[str, object], flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    script = script_of(arguments)
    if script is None:
        return
    commands, readable = unfolded(script)
    flags |= dict.fromkeys(str(doubt) for doubt in script.doubts if doubt is not Doubt.HIDDEN)
    if not readable:
        flags["more than can be read"] = None
    if len(commands) < 2:
        return
    yield f"{len(commands):,} commands:"
    rows = [f"{at}  {_written(one)}" for at, one in enumerate(commands, 1)]
    shown = rows if whole else head_and_tail(rows, "commands", _COMMANDS_HEAD, _COMMANDS_TAIL)
    yield from (f"  {row if row[0] == MARK else _on_one_line(row, flags)}" for row in shown)


def _written(command: ShellCommand) -> str:
    """The command in one way of writing it, its redirections after its words."""
    return " ".join((*(word.shown for word in (*command.assignments, *command.words)), *command.signs))


def _on_one_line(text: str, flags: dict[str, None]) -> str:
    return " \\n ".join(_text(text, flags, whole=False))


def _text(text: str, flags: dict[str, None], *, whole: bool) -> list[str]:
    shown = shown_text(text, whole=whole)
    flags |= dict.fromkeys(shown.flags)
    return list(shown.lines)
