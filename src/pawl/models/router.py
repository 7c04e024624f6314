"""Finds the model for a name, opens it and asks it: within the budget, priced, and never one that nobody listed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pawl.core import errors
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
from pawl.models import Model
from pawl.models.configuration import ModelConfig, Routes
from pawl.models.endpoint import Endpoint, quirks_of
from pawl.models.ledger import Ledger, Reservation
from pawl.models.prices import Prices, estimated_usage
from pawl.models.providers import Capabilities, ModelName, Provider, Rules, capabilities
from pawl.sandbox.cancel import CancelToken
from pawl.settings.extensions import loaded, wrong_extension

if TYPE_CHECKING:
    from pawl.models.failures import Strategy
    from pawl.models.scripted import ScriptedModel

OpenModel = Callable[[ModelName], Model]

_FALLS_BACK = (errors.Overloaded, errors.RateLimited, errors.Unreachable, errors.ModelTimedOut, errors.UnknownModel)
_HAD_BEGUN = (errors.AnswerInterrupted, errors.AnswerUnusable)
"""Errors of an answer that had begun, so that it is paid for even if nothing of it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Usage and cost of asking one model, with the attempts that failed after they had begun."""

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
        return self.conversation().stream(request, cancel=cancel)

    def conversation(self) -> RoutedModel:
        return RoutedModel(self)

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


class RoutedModel:
    """Fits `Model`, for one conversation at a time."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._given_up: set[str] = set()
        """Models that another took over from; they are not waited for again at each request."""
        self.charged: tuple[Charge, ...] = ()
        """Those of the latest request, one for each model that was asked, however it ended."""
        self.request: Request | None = None
        self.answer: ModelResponse | None = None
        """The answer to it, once there is one."""

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self.charged, self.request, self.answer = (), request, None
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
        with self._router.ledger.reserve(request) as hold:
            request = hold.request
            account = _Account(request, self._router.ledger.prices, hold)
            ended = "closed"
            events = model.stream(request, cancel=cancel)
            try:
                for event in events:
                    if isinstance(event, Answered):
                        self.answer = account.settled(event.answer)
                        ended = self.answer.stop
                        yield Answered(self.answer)
                        return
                    account.hears(event)
                    yield event
                raise errors.AnswerInterrupted(f"{request.model!r} ended without an answer", advice="try again")
            except errors.PawlError as error:
                ended = error.code
                account.fails(error)
                raise
            finally:
                events.close()
                self.charged = (*self.charged, account.closed(ended))


class _Account:
    """Keeps account of one request to one model while it is under way."""

    def __init__(self, request: Request, prices: Prices, hold: Reservation) -> None:
        self._request = request
        self._prices = prices
        self._hold = hold
        self._said: list[str] = []
        self._attempts = 1

    def hears(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text) | ThoughtDelta(text=text):
                self._said.append(text)
            case Retrying(begun=begun):
                self._attempts += 1
                if begun or self._said:
                    # It is paid for, though nobody counts it for us.
                    said, self._said = self._said, []
                    self._hold.lost(*self._estimate("".join(said)))

    def settled(self, answer: ModelResponse) -> ModelResponse:
        """The answer with its price; a provider that counted nothing is counted for."""
        usage = answer.usage
        if usage.input <= 0 and usage.output <= 0:
            thoughts = "".join(one.text for one in answer.thoughts)
            usage = estimated_usage(self._request, answer.text + thoughts, answer.calls)
        cost = answer.cost if answer.cost is not None else self._prices.cost(self._request.model, usage)
        self._hold.settle(usage, cost)
        return replace(answer, model=self._request.model, usage=usage, cost=self._hold.cost)

    def fails(self, error: errors.PawlError) -> None:
        if self._hold.is_open and (isinstance(error, _HAD_BEGUN) or getattr(error, "begun", False)):
            said = max("".join(self._said), getattr(error, "text", ""), key=len)
            self._hold.settle(*self._estimate(said))

    def closed(self, ended: str) -> Charge:
        if self._hold.is_open and self._said:
            self._hold.settle(*self._estimate("".join(self._said)))
        hold = self._hold
        return Charge(model=self._request.model, usage=hold.usage, cost=hold.cost, attempts=self._attempts, ended=ended)

    def _estimate(self, said: str) -> tuple[Usage, Decimal | None]:
        usage = estimated_usage(self._request, said)
        return usage, self._prices.cost(self._request.model, usage)


def endpoint_for(
    name: ModelName,
    providers: Mapping[str, Provider],
    environment: Mapping[str, str],
    overrides: Rules = MappingProxyType({}),
) -> Endpoint:
    """Where a provider's model is asked; `NotAuthorized` when the key is missing."""
    provider = providers[name.provider]
    return Endpoint(
        wire=provider.wire,
        base_url=provider.address(environment),
        key=provider.key(environment),
        key_name=provider.key_name(environment),
        name=name.name,
        provider=name.provider,
        quirks=quirks_of({**provider.quirks, **capabilities(str(name), overrides).quirks}),
    )


class Models:
    """The models of one process: opened when first asked, closed together."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        record: Path | None = None,
        base: Path | None = None,
        used: Mapping[str, Sequence[int]] | None = None,
        warn: Callable[[str], object] = lambda text: None,
    ) -> None:
        """`used` are the turns of scripts that a run has taken before it was resumed, by the name of the model."""
        self.config = config
        self._used = used or {}
        self._warn = warn
        self._scripts: dict[str, ScriptedModel] = {}
        self._record = record
        self._base = base or Path.cwd()
        """Where a model's file is looked for when its path is relative."""
        self._closing = ExitStack()
        ledger = Ledger(config.budget, config.prices, reasoning_tokens=self._reasoning_tokens)
        self.router = Router(
            self._open,
            routes=config.routes,
            ledger=ledger,
            providers=config.providers,
            most_output=self.most_output,
        )

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    @property
    def used(self) -> dict[str, tuple[int, ...]]:
        """The turns that each script has taken."""
        return {name: script.consumed for name, script in self._scripts.items()}

    def can(self, name: str) -> Capabilities:
        return capabilities(name, self.config.rules)

    def most_output(self, name: str) -> int:
        """Tokens that a model may be asked to write; most of its context is for what it reads."""
        can = self.can(name)
        return min(can.max_output, max(1, can.context // 4))

    def reads(self, name: str) -> int:
        """Tokens that a model can be sent beside the longest answer that it is asked for."""
        return self.can(name).context - min(self.config.sampling.max_output, self.most_output(name))

    def _reasoning_tokens(self, model: str) -> int:
        """The most that a model may write on top of its answer when it reasons."""
        name = ModelName.parse(model, self.config.providers)
        own = {} if name.is_file else self.config.providers[name.provider].quirks
        return quirks_of({**own, **self.can(model).quirks}).reasoning_budget

    def _open(self, name: ModelName) -> Model:
        model = self._plain(name)
        if self._record is not None:
            from pawl.models.recorder import Recorder

            model = Recorder(model, self._record)
        return model

    def _plain(self, name: ModelName) -> Model:
        if name.is_script:
            from pawl.models.scripted import ScriptedModel

            path = self._base / Path(name.name).expanduser()
            return self._scripts.setdefault(str(name), ScriptedModel(path, used=self._used.get(str(name), ())))
        if name.is_local_file:
            return self._local(name)
        return self._served(name)

    def _served(self, name: ModelName) -> Model:
        from pawl.models.endpoint import Timeouts
        from pawl.models.exchange import WireModel
        from pawl.models.failures import Retries
        from pawl.models.text_protocol import EditTools, fitted
        from pawl.models.transport import Transport

        config = self.config
        endpoint = endpoint_for(name, config.providers, config.environment, config.rules)
        if endpoint.is_in_the_clear:
            self._warn(f"the key for {name.provider!r} goes to {endpoint.host} over http, where others can read it")
        transport = self._closing.enter_context(Transport())
        edits = EditTools(patch="strict_patch", file="file_write")
        limits = config.retry_limits
        retries = Retries(
            tries=config.retries + 1,
            seconds=limits.seconds,
            base=limits.base,
            longest_asked=limits.longest_asked,
            strategy=own_strategy(config.retry_strategy) if config.retry_strategy else None,
        )
        # No request takes longer than all of the run may.
        timeouts = Timeouts(whole=min(Timeouts().whole, config.budget.seconds))
        return fitted(WireModel(endpoint, transport, timeouts=timeouts, retries=retries), self.can(str(name)), edits)

    def _local(self, name: ModelName) -> Model:
        from pawl.models.local.form import ConstrainedTools
        from pawl.models.local.header import local_settings
        from pawl.models.local.model import LocalModel

        path = self._base / Path(name.name).expanduser()
        return ConstrainedTools(self._closing.enter_context(LocalModel(path, local_settings(self.config.local))))


def own_strategy(name: str) -> Strategy:
    """How long to wait before another attempt at asking a model."""
    found = loaded("pawl.retries", name)

    def strategy(failed: Any) -> float | None:
        with found.guarded():
            match found.value(failed):
                case None:
                    return None
                case int() | float() as seconds if 0 <= seconds < float("inf"):
                    return float(seconds)
                case other:
                    raise wrong_extension(found, f"it must give back seconds or None, not {other!r:.100}")

    return strategy
