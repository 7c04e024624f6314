"""The tool calls of a role's answers, carried out and remembered: what each brought, what failed, what is repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from pawl.agent.context import AgentContext
from pawl.agent.policy import found_call, may_call
from pawl.agent.tools.toolbox import DELEGATE
from pawl.core.dialogue import ToolAnswer, ToolCall
from pawl.core.errors import PolicyViolation
from pawl.core.events import ToolEnded, ToolStarted
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_answer, redacted_call
from pawl.core.run import PolicyDecision
from pawl.sandbox.cancel import raise_if_stopped
from pawl.settings.permission_rules import ToolKind, allowances

MOST_CALLS = 32
"""In one answer; the rest is answered with a request to go in steps."""
TOLD_AT = 2
ENDED_AT = 4
"""So many identical calls with identical answers; what the model is told, and where its talk ends."""
MOST_MALFORMED = 3
SUMMARY_CHARACTERS = 160

_REFUSALS = ("permission_denied:", "refused_by_user:")
_AGAIN = "\n[this is what the same call brought before; do something else, or say what is in the way]"
_UNCHANGED = "[unchanged: the same call gave these lines above ({lines}); ask once more to be given them again]"
_NOT_AGAIN = "not executed: the same call failed before, and nothing has changed since. It said:\n"


@dataclass(slots=True)
class Calls:
    """Executes calls for one talk and remembers what they brought."""

    seat: AgentContext
    brought: dict[str, str] = field(default_factory=dict)
    """By call: its latest text."""
    failed: dict[str, str] = field(default_factory=dict)
    """Calls that failed, since something was last changed."""
    summary: list[str] = field(default_factory=list)
    """A line for each call that was executed."""
    read: dict[str, None] = field(default_factory=dict)
    """Files that were read, in their order."""
    standing: set[str] = field(default_factory=set)
    """Reads whose text stands in the dialogue: content that the model has is not sent twice."""
    same: Counter[str] = field(default_factory=Counter)
    """How often each call brought the same, since something else was changed."""
    malformed: int = 0
    changed: bool = False
    """Something other than reading was done."""
    refused: bool = False
    """The rules, a hook or the user refused a call: what follows from that is for the model to say."""

    @property
    def stuck(self) -> bool:
        return max(self.same.values(), default=0) >= ENDED_AT or self.malformed >= MOST_MALFORMED

    def execute(self, calls: Sequence[ToolCall], decision: PolicyDecision) -> tuple[ToolAnswer, ...]:
        """One answer for each call, in their order."""
        answers: list[ToolAnswer] = []
        begun = 0
        for place, call in enumerate(calls):
            if place >= begun:
                together = self._together(calls[place:MOST_CALLS], decision)
                begun = place + max(1, len(together))
                if len(together) > 1:
                    self.seat.together(together)
            answers.append(self._one(call, decision, place))
        return tuple(answers)

    def _together(self, calls: Sequence[ToolCall], decision: PolicyDecision) -> list[Mapping[str, object]]:
        """The arguments of those whom the next calls send, one after the other and each with another task."""
        found: dict[str, Mapping[str, object]] = {}
        for call in map(found_call, calls):
            key = _key(call)
            wanted = call.name == DELEGATE in decision.tools and key not in (*found, *self.failed)
            if not wanted or call.arguments is None:
                break
            found[key] = call.arguments
        return list(found.values())

    def _one(self, call: ToolCall, decision: PolicyDecision, place: int) -> ToolAnswer:
        raise_if_stopped(self.seat.cancel)
        asked, call = call, found_call(call)
        shown = redacted_call(call)
        self.seat.listen(ToolStarted(shown))
        started = self.seat.clock()
        key = _key(call)
        self.malformed = self.malformed + 1 if call.arguments is None else 0
        repeated = call.arguments is not None and key in self.failed
        text, failed = self._reply(call, decision, place, key)
        unchanged = not failed and self._is_standing(call, key, text)
        if not repeated:
            self._remember(call, key, text, failed=failed)
        else:
            self.same[key] += 1
        if unchanged:
            text = _UNCHANGED.format(lines=text.count("\n") + 1)
        elif self.same[key] >= TOLD_AT and not failed:
            text += _AGAIN
        self.summary.append(f"- {key[:SUMMARY_CHARACTERS]}{' (failed)' if failed else ''}")
        answer = ToolAnswer(call=call.id, name=asked.name, text=text, failed=failed)
        seconds = self.seat.clock() - started
        told = redacted_answer(answer)
        self.seat.listen(ToolEnded(call=shown, answer=told, seconds=seconds, repeated=repeated))
        return answer

    def _reply(self, call: ToolCall, decision: PolicyDecision, place: int, key: str) -> tuple[str, bool]:
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

    def _is_standing(self, call: ToolCall, key: str, text: str) -> bool:
        """Whether the model has this text of a file already; where it insists, it is given it again."""
        if key in self.standing and self.brought.get(key) == text and len(text) > len(_UNCHANGED):
            self.standing.discard(key)
            return True
        if call.name == "file_read":
            self.standing.add(key)
        return False

    def _remember(self, call: ToolCall, key: str, text: str, *, failed: bool) -> None:
        self.same[key] = self.same[key] + 1 if self.brought.get(key) == text else 1
        self.brought[key] = text
        if call.name == "file_read" and not failed and call.arguments is not None:
            self.read[str(call.arguments.get("path", "")).removeprefix("./")] = None
        if failed:
            self.failed[key] = text
            self.refused |= text.startswith(_REFUSALS)
        elif allowances().tools.get(call.name) is not ToolKind.READS:
            # Something may be different now, so that what failed is worth another try.
            self.failed.clear()
            self.same = Counter({key: self.same[key]})
            self.changed = True


def _key(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}"
