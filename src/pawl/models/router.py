"""Finds the model for a name and asks it: within the budget, priced, and never another one that nobody listed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BudgetExceeded,
    ModelTimedOut,
    Overloaded,
    PawlError,
    RateLimited,
    UnknownModel,
    Unreachable,
)
from pawl.models import Model
from pawl.models.ledger import Ledger, Reservation
from pawl.models.prices import estimated_usage
from pawl.models.providers import ModelName, Provider
from pawl.sandbox.cancel import CancelToken
from pawl.settings.tables import Fields, raise_mistakes

OpenModel = Callable[[ModelName], Model]

_FALLS_BACK = (Overloaded, RateLimited, Unreachable, ModelTimedOut, UnknownModel)
_HAD_BEGUN = (AnswerInterrupted, AnswerUnusable)
"""Errors of an answer that had begun, so that it is paid for even if nothing of it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Which model answers for which slot, and what the user allows in its place."""

    default: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def model_for(self, slot: str) -> str:
        """The model of a slot; one that is not set has the default."""
        model = self.slots.get(slot) or self.default
        if not model:
            raise UnknownModel(
                "no model is configured",
                advice='name one with --model provider/name, or with `default = "provider/name"` under [models] '
                "in the settings",
            )
        return model


def routes(table: Mapping[str, object], providers: Mapping[str, Provider]) -> Routes:
    """Routes from a configuration (`default`, `slots`, `fallbacks`); every mistake at once."""
    mistakes: list[str] = []
    given = Fields("", table, mistakes)
    slots = Fields("slots", given.table("slots"), mistakes)
    fallbacks = Fields("fallbacks", given.table("fallbacks"), mistakes)
    read = Routes(
        default=given.text("default"),
        slots={slot: slots.text(slot) for slot in given.table("slots")},
        fallbacks={model: fallbacks.texts(model) for model in given.table("fallbacks")},
    )
    given.close()
    lists = (("default", (read.default,)), *((f"slots.{slot}", (model,)) for slot, model in read.slots.items()))
    for place, models in (*lists, *((f"fallbacks.{one}", (one, *to)) for one, to in read.fallbacks.items())):
        mistakes += (f"{place}: {mistake}" for mistake in _unknown(models, providers))
    raise_mistakes("the models are wrong", mistakes, advice="a model is provider/name, local:FILE or scripted:FILE")
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What asking one model came to, with the attempts that failed after they had begun."""

    model: str
    usage: Usage
    cost: Decimal | None
    """None when the price is unknown."""
    attempts: int
    ended: str
    """How it ended: a `Stop`, or the code of the error."""


class Router:
    """Fits `Model`. Safe to use from several threads, each with its own request."""

    def __init__(
        self,
        open_model: OpenModel,
        *,
        routes: Routes,
        ledger: Ledger,
        providers: Mapping[str, Provider],
        most_output: Callable[[str], int] | None = None,
    ) -> None:
        """`most_output` is what a model may be asked to write; a fallback may write less than the first model."""
        self._most_output = most_output
        self._open_model = open_model
        self.routes = routes
        self.ledger = ledger
        self._providers = providers
        self._models: dict[ModelName, Model] = {}
        self._lock = threading.Lock()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        return self.for_role("").stream(request, cancel=cancel)

    def for_role(self, role: str) -> RoleModel:
        """The router as one role uses it, so that the ledger knows who spends."""
        return RoleModel(self, role)

    def fitted(self, request: Request, name: str) -> Request:
        """The request as this model is asked it."""
        sampling = request.sampling
        if self._most_output is not None:
            sampling = replace(sampling, max_output=min(sampling.max_output, self._most_output(name)))
        return replace(request, model=name, sampling=sampling)

    def opened(self, name: str) -> Model:
        """The model of that name, opened once."""
        parsed = ModelName.parse(name, self._providers)
        with self._lock:
            if parsed not in self._models:
                self._models[parsed] = self._open_model(parsed)
            return self._models[parsed]


class RoleModel:
    """Fits `Model`, for one conversation at a time."""

    def __init__(self, router: Router, role: str) -> None:
        self._router = router
        self._role = role
        self._given_up: set[str] = set()
        """Models that another took over from; they are not waited for again at each request."""
        self.charged: tuple[Charge, ...] = ()
        """What the latest request came to, one charge for each model that was asked, however it ended."""

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self.charged = ()
        listed = (request.model, *self._router.routes.fallbacks.get(request.model, ()))
        names = tuple(name for name in listed[:-1] if name not in self._given_up) + listed[-1:]
        for name, following in zip(names, (*names[1:], None), strict=True):
            try:
                yield from self._asked(self._router.fitted(request, name), cancel)
                return
            except _FALLS_BACK as error:
                if following is None:
                    raise
                self._given_up.add(name)
                yield FellBack(model=name, to=following, why=error.message)

    def _asked(self, request: Request, cancel: CancelToken | None) -> Generator[ModelEvent, None, None]:
        model = self._router.opened(request.model)
        with self._router.ledger.reserve(request, role=self._role) as hold:
            account = _Account(request, self._router.ledger, hold)
            ended = "closed"
            events = model.stream(request, cancel=cancel)
            try:
                for event in events:
                    if isinstance(event, Answered):
                        answer = account.settled(event.answer)
                        ended = answer.stop
                        yield Answered(answer)
                        return
                    account.hears(event)
                    yield event
                raise AnswerInterrupted(f"{request.model!r} ended without an answer", advice="try again")
            except PawlError as error:
                ended = error.code
                account.fails(error)
                raise
            finally:
                events.close()
                self.charged = (*self.charged, account.closed(ended))


class _Account:
    """What one request to one model comes to while it is under way."""

    def __init__(self, request: Request, ledger: Ledger, hold: Reservation) -> None:
        self._request = request
        self._ledger = ledger
        self._hold = hold
        self._said: list[str] = []
        self._is_open = True
        self._usage = Usage()
        self._cost: Decimal | None = Decimal(0)
        self._attempts = 1

    def hears(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text) | ThoughtDelta(text=text):
                self._said.append(text)
            case Retrying(begun=begun):
                self._attempts += 1
                if begun or self._said:
                    self._lose()

    def settled(self, answer: ModelResponse) -> ModelResponse:
        """The answer with its price; a provider that counted nothing is counted for."""
        usage = answer.usage
        if usage.input <= 0 and usage.output <= 0:
            usage = estimated_usage(
                self._request, answer.text + "".join(one.text for one in answer.thoughts), answer.calls
            )
        cost = answer.cost if answer.cost is not None else self._ledger.prices.cost(self._request.model, usage)
        self._settle(usage, cost)
        return replace(answer, model=self._request.model, usage=usage, cost=self._cost)

    def fails(self, error: PawlError) -> None:
        if self._is_open and (isinstance(error, _HAD_BEGUN) or getattr(error, "begun", False)):
            text = getattr(error, "text", "")
            self._settle_estimate(max("".join(self._said), text, key=len))

    def closed(self, ended: str) -> Charge:
        if self._is_open and self._said:
            self._settle_estimate("".join(self._said))
        return Charge(
            model=self._request.model, usage=self._usage, cost=self._cost, attempts=self._attempts, ended=ended
        )

    def _lose(self) -> None:
        """A failed attempt that had begun to answer is paid for, though nobody counts it for us."""
        usage = estimated_usage(self._request, "".join(self._said))
        self._said.clear()
        cost = self._ledger.prices.cost(self._request.model, usage)
        self._add(usage, cost)
        try:
            self._hold.lost(usage, cost)
        except BudgetExceeded:
            self._is_open = False
            raise

    def _settle_estimate(self, said: str) -> None:
        usage = estimated_usage(self._request, said)
        self._settle(usage, self._ledger.prices.cost(self._request.model, usage))

    def _settle(self, usage: Usage, cost: Decimal | None) -> None:
        self._is_open = False
        self._said.clear()
        self._add(usage, cost)
        self._hold.settle(usage, cost)

    def _add(self, usage: Usage, cost: Decimal | None) -> None:
        self._usage += usage
        self._cost = None if cost is None or self._cost is None else self._cost + cost


def _unknown(models: tuple[str, ...], providers: Mapping[str, Provider]) -> list[str]:
    found = []
    for model in models:
        try:
            if model:
                ModelName.parse(model, providers)
        except UnknownModel as error:
            found.append(f"{error.message} ({error.advice})")
    return found
