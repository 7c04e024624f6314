"""What a session needs of whatever shows it, and what that tells the session; nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from pawl.core.events import Metered, RequestAnswered
from pawl.core.run import Approval, Mode, RunRequest
from pawl.ui.screen.screen import Screen


class SessionScreen(Protocol):
    """Where a session is seen. Its methods may be called from any thread, and from the one of the runs above all."""

    @property
    def out(self) -> Screen: ...

    @property
    def aside(self) -> Screen: ...

    def command(self, words: str) -> str:
        """How a command is written here."""
        ...

    def line(self, question: str) -> str | None:
        """Asks for a line and waits for it; None when there is nobody to answer, or for later."""
        ...

    def edited(self, text: str, suffix: str) -> str:
        """The text after the user has changed it in an editor."""
        ...

    def activity(self, text: str) -> None:
        """What is being done; empty for nothing."""
        ...

    def preview(self, text: str) -> None:
        """The end of what is being said and is not finished."""
        ...

    def clear(self) -> None: ...

    def leave(self) -> None: ...


class Listener(Protocol):
    """Who is told what the user does; called in the thread of the input."""

    def entered(self, text: str) -> None:
        """A request or a command."""
        ...

    def queued(self, text: str) -> None:
        """A request for afterwards."""
        ...

    def stop(self) -> bool:
        """Stops what works; False when there is nothing to stop."""
        ...

    @property
    def is_working(self) -> bool: ...

    def status(self, width: int, *, asked: bool) -> str: ...


class InputLine(Protocol):
    """What the keys do things to."""

    @property
    def out(self) -> Screen: ...

    @property
    def asks(self) -> bool:
        """A question waits for its answer."""
        ...

    def submit(self) -> None: ...

    def put_aside(self) -> bool:
        """Gives up the question that is asked; whether there was one."""
        ...

    def clear(self) -> None: ...

    def leave(self) -> None: ...


PLAN = (
    "[Plan only; nothing can be changed now. Read what you need, then answer with a numbered plan: which files change"
    " and how, in which order, how each step is verified, what is risky, and what you need to know from me.]"
)


@dataclass(slots=True)
class SessionChoices:
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

    def order(self, text: str, *, model: str = "") -> RunRequest:
        return RunRequest(
            text=f"{text}\n\n{PLAN}" if self.planning else text,
            mode=Mode.CHAT if self.planning else self.mode,
            approval=self.approval,
            model=model or self.model,
            reasoning=self.reasoning,
            conversation=self.conversation,
        )


@dataclass(slots=True)
class ModelSpending:
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

    by_model: dict[str, ModelSpending] = field(default_factory=dict)
    context_tokens: int = 0
    context_window: int = 0

    def hear(self, event: object) -> None:
        if isinstance(event, RequestAnswered):
            self.by_model.setdefault(event.model, ModelSpending()).add(event)
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
