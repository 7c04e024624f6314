"""A team on one bench: a role sends another by a tool, one works at a time, each answers by its contract (D1, D6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pawl.agent.context import ToolReply, Toolset
from pawl.agent.roles import Role, may_delegate
from pawl.core.dialogue import ToolOffer
from pawl.core.errors import PolicyViolation, SchemaUnmet
from pawl.core.run import RoleName

DELEGATE = "delegate"
MOST_SENT = 10
"""How often one role may send others in one talk: a plan has at most so many changes."""


@dataclass(frozen=True, slots=True)
class TeamReply:
    """Fits `ToolReply`."""

    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDesk:
    """Fits `Toolset`: a desk with a tool that sends another role to it."""

    desk: Toolset
    role: Role
    sent: Callable[[], int]
    """How often this talk has sent someone, also before it was interrupted."""
    send: Callable[[RoleName, str], str]
    """Lets the role work on the task and returns its answer."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.desk.names, DELEGATE)

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        plain = self.desk.offers([name for name in names if name != DELEGATE])
        return (*plain, self._offer()) if DELEGATE in names else plain

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        return self._delegated(arguments) if name == DELEGATE else self.desk.call(name, arguments)

    def _offer(self) -> ToolOffer:
        roles = sorted(self.role.delegates)
        fields = {
            "role": {"type": "string", "enum": roles},
            "task": {"type": "string", "description": "all that it needs to know; it sees nothing of this dialogue"},
        }
        return ToolOffer(
            name=DELEGATE,
            description=f"Sends {' or '.join(roles)} with a task and waits for its answer in JSON.",
            input_schema={
                "type": "object",
                "properties": fields,
                "required": ["role", "task"],
                "additionalProperties": False,
            },
        )

    def _delegated(self, arguments: Mapping[str, object]) -> TeamReply:
        to, task = str(arguments.get("role", "")), str(arguments.get("task", "")).strip()
        if not task:
            return TeamReply("bad_arguments: there is no task\nnext: say what is to be done", failed=True)
        try:
            may_delegate(self.role, to)
            if self.sent() >= MOST_SENT:
                raise PolicyViolation(f"{MOST_SENT} were sent", advice="end with what is there")
            return TeamReply(self.send(RoleName(to), task), failed=False)
        except PolicyViolation as error:
            return TeamReply(f"{error.code}: {error.message}\nnext: {error.advice}", failed=True)
        except SchemaUnmet as error:
            return TeamReply(f"{error.code}: {to} gave no usable answer: {error.message}", failed=True)
