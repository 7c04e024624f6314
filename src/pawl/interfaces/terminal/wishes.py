"""What the user has chosen for the next requests of a session, and what the session has come to so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from pawl.core.run import Approval, Mode
from pawl.core.run_event import Metered, RequestAnswered
from pawl.core.runs import Order

PLAN = (
    "[Plan only; nothing can be changed now. Read what you need, then answer with a numbered plan: which files change"
    " and how, in which order, how each step is verified, what is risky, and what you need to know from me.]"
)


@dataclass(slots=True)
class Wishes:
    """Each request takes them with it when it begins; a run that works keeps those it began with."""

    model: str = ""
    """Empty for the configured one."""
    mode: Mode = Mode.AGENT
    planning: bool = False
    approval: Approval = Approval.FINAL
    reasoning: str = ""
    conversation: str = ""
    """Empty for a new one."""

    @property
    def mode_word(self) -> str:
        return "plan" if self.planning else str(self.mode)

    def order(self, text: str, *, model: str = "") -> Order:
        return Order(
            text=f"{text}\n\n{PLAN}" if self.planning else text,
            mode=Mode.CHAT if self.planning else self.mode,
            approval=self.approval,
            model=model or self.model,
            reasoning=self.reasoning,
            conversation=self.conversation,
        )


@dataclass(slots=True)
class Spent:
    """What one model came to."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: Decimal | None = Decimal(0)

    def add(self, answered: RequestAnswered) -> None:
        self.requests += 1
        self.input += answered.usage.input
        self.output += answered.usage.output
        self.cached += answered.usage.cached
        self.cost = None if self.cost is None or answered.cost is None else self.cost + answered.cost


@dataclass(slots=True)
class Meter:
    """What the session has spent, by model, and how full the context was last."""

    by_model: dict[str, Spent] = field(default_factory=dict)
    context_tokens: int = 0
    context_window: int = 0

    def hear(self, event: object) -> None:
        if isinstance(event, RequestAnswered):
            self.by_model.setdefault(event.model, Spent()).add(event)
        elif isinstance(event, Metered):
            self.context_tokens, self.context_window = event.context_tokens, event.context_window

    @property
    def cost(self) -> Decimal | None:
        every = [one.cost for one in self.by_model.values()]
        return None if None in every else sum((one for one in every if one is not None), Decimal(0))

    @property
    def fill(self) -> int | None:
        """Percent of the context; None before anything is known."""
        return round(100 * self.context_tokens / self.context_window) if self.context_window else None
