"""Carrying out what a model asked for: only what the policy gave, each call answered once, repetition noticed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pawl.core.dialogue import ToolAnswer, ToolCall
from pawl.core.errors import Cancelled, PolicyViolation
from pawl.core.run import Decision
from pawl.core.run_event import ToolEnded, ToolStarted
from pawl.policy.allowances import Kind, allowances
from pawl.policy.invariants import may_call
from pawl.workflow.seat import Seat

MOST_CALLS = 32
"""In one answer; the rest is answered with a request to go in steps."""
NUDGE_AFTER = 3
STUCK_AFTER = 6
MOST_MALFORMED = 3
SUMMARY_CHARACTERS = 160

_AGAIN = "\n[this is what the same call brought before; do something else, or say what is in the way]"
_NOT_AGAIN = "not executed: the same call failed before, and nothing has changed since. It said:\n"


@dataclass(slots=True)
class Calls:
    """Executes calls for one talk and remembers what they brought."""

    seat: Seat
    brought: dict[str, str] = field(default_factory=dict)
    """By call: its latest text."""
    failed: dict[str, str] = field(default_factory=dict)
    """Calls that failed, since something was last changed."""
    summary: list[str] = field(default_factory=list)
    """A line for each call that was executed."""
    read: dict[str, None] = field(default_factory=dict)
    """Files that were read, in their order."""
    nothing_new: int = 0
    malformed: int = 0

    @property
    def stuck(self) -> bool:
        return self.nothing_new >= STUCK_AFTER or self.malformed >= MOST_MALFORMED

    def execute(self, calls: Sequence[ToolCall], decision: Decision) -> tuple[ToolAnswer, ...]:
        """One answer for each call, in their order."""
        return tuple(self._one(call, decision, place) for place, call in enumerate(calls))

    def _one(self, call: ToolCall, decision: Decision, place: int) -> ToolAnswer:
        if self.seat.cancel is not None and self.seat.cancel.requested:
            raise Cancelled("stopped by the user")
        self.seat.listen(ToolStarted(call))
        started = self.seat.clock()
        key = f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}"
        self.malformed = self.malformed + 1 if call.arguments is None else 0
        repeated = call.arguments is not None and key in self.failed
        text, failed = self._reply(call, decision, place, key)
        if not repeated:
            self._remember(call, key, text, failed=failed)
        else:
            self.nothing_new += 1
        if self.nothing_new >= NUDGE_AFTER and not failed:
            text += _AGAIN
        self.summary.append(f"- {key[:SUMMARY_CHARACTERS]}{' (failed)' if failed else ''}")
        answer = ToolAnswer(call=call.id, name=call.name, text=text, failed=failed)
        seconds = self.seat.clock() - started
        self.seat.listen(ToolEnded(call=call, answer=answer, seconds=seconds, repeated=repeated))
        return answer

    def _reply(self, call: ToolCall, decision: Decision, place: int, key: str) -> tuple[str, bool]:
        if place >= MOST_CALLS:
            return f"not executed: at most {MOST_CALLS} calls in one answer; go on in the next", True
        if call.arguments is None:
            return f"bad_arguments: {call.mistake}\nnext: send the arguments as one JSON object", True
        if key in self.failed:
            return _NOT_AGAIN + self.failed[key], True
        try:
            may_call(decision, call.name)
        except PolicyViolation as error:
            return f"{error.code}: {error.message}\nnext: {error.advice}", True
        reply = self.seat.tools.call(call.name, call.arguments)
        return reply.text, reply.failed

    def _remember(self, call: ToolCall, key: str, text: str, *, failed: bool) -> None:
        self.nothing_new = self.nothing_new + 1 if self.brought.get(key) == text else 0
        self.brought[key] = text
        if call.name == "file_read" and not failed and call.arguments is not None:
            self.read[str(call.arguments.get("path", "")).removeprefix("./")] = None
        if failed:
            self.failed[key] = text
        elif allowances().tools.get(call.name) is not Kind.READS:
            # Something may be different now, so that what failed is worth another try.
            self.failed.clear()
