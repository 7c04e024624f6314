"""The models of a configuration: read and checked once, opened by their names, and asked within the budget.

A model that nobody listed is never asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pawl.core import errors
from pawl.core.dialogue import Answered, FellBack, ModelEvent, ModelResponse, Request, Sampling, Usage
from pawl.core.errors import ConfigError, PawlError, UnknownModel
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import MODEL_SLOTS, Budget, RoleName
from pawl.core.typed import raise_mistakes, read_json, read_settings, read_table
from pawl.models import Model
from pawl.models.ledger import Charge, Ledger, Prices, Rates, overrides
from pawl.models.providers import (
    Capabilities,
    Endpoint,
    ModelName,
    Provider,
    Rules,
    builtin,
    capabilities,
    endpoint_for,
    local_settings,
    measured_rules,
    merged,
    quirks_of,
    rules,
)
from pawl.models.wire import address, own_headers
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings, loaded, wrong_extension

if TYPE_CHECKING:
    import httpx2

    from pawl.models.exchange import Transport
    from pawl.models.failures import Strategy
    from pawl.models.scripted import ScriptedModel


T = TypeVar("T")


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
                advice="find and save one with: pawl setup; or name one with --model provider/name",
            )
        return model


def routes(table: Mapping[str, object], providers: Mapping[str, Provider]) -> Routes:
    """Routes from a configuration (`default`, `slots`, `fallbacks`); every mistake at once."""
    mistakes: list[str] = []
    read = read_table(Routes, table, where="", mistakes=mistakes) or Routes()
    places = [("default", read.default), *((f"slots.{slot}", model) for slot, model in read.slots.items())]
    places += [(f"fallbacks.{one}", model) for one, others in read.fallbacks.items() for model in (one, *others)]
    for place, model in places:
        try:
            if model:
                ModelName.parse(model, providers)
        except UnknownModel as error:
            mistakes.append(f"{place}: {error.message} ({error.advice})")
    known = {*RoleName, *MODEL_SLOTS}
    if unknown := sorted(set(read.slots) - known):
        slots = ", ".join(sorted(known))
        mistakes.append(f"models.slots has no {', '.join(map(repr, unknown))}; the slots are {slots}")
    raise_mistakes("the models are wrong", mistakes, advice="a model is provider/name, local:FILE or scripted:FILE")
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """The table [retries]: how requests that failed for a passing reason are sent again."""

    seconds: float = 120.0
    base: float = 0.5
    longest_asked: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    providers: Mapping[str, Provider]
    routes: Routes
    rules: Rules
    prices: Prices
    budget: Budget
    sampling: Sampling
    retries: int
    retry_limits: RetryLimits
    retry_strategy: str
    """The name of one of the user's own; empty for Pawl's."""
    local: Mapping[str, object]
    """How models that are files are run; read when one is opened."""
    environment: Mapping[str, str] = field(repr=False)

    def with_model(self, model: str) -> ModelConfig:
        """The same with the model that the user names for this call; it then answers for every slot."""
        try:
            ModelName.parse(model, self.providers)
        except UnknownModel as error:
            raise UnknownModel(f"--model: {error.message}", advice=error.advice) from error
        return replace(self, routes=replace(self.routes, default=model, slots={}))


def model_config(config: Config, environment: Mapping[str, str] | None = None) -> ModelConfig:
    """Reads the tables of the configuration; a mistake names the table and the field."""
    environment = config.environment if environment is None else environment
    tables = config.tables
    errors: list[ConfigError] = []

    def tried(read: Callable[[], T], otherwise: T) -> T:
        """Goes on after a mistake, so that those of all tables are told together."""
        try:
            return read()
        except ConfigError as error:
            errors.append(error)
            return otherwise

    # A provider whose table is wrong is a provider all the same: that its models are unknown would be no news.
    stand_ins: Mapping[str, Provider] = {**dict.fromkeys(tables.providers, builtin()["openai"]), **builtin()}
    providers = tried(lambda: merged(tables.providers), stand_ins)
    names = {one.name for one in fields(Routes)}
    routed = {name: value for name, value in tables.models.items() if name in names}
    if named := environment.get("PAWL_MODEL", "").strip():
        routed["default"] = named
    patterns = {name: value for name, value in tables.models.items() if name not in names}
    no_prices: Mapping[str, Rates] = {}
    no_rules: Rules = {}
    limits = RetryLimits()
    read = ModelConfig(
        providers=providers,
        routes=tried(lambda: routes(routed, providers), Routes()),
        rules={**measured_rules(config.state), **tried(lambda: rules(patterns), no_rules)},
        prices=Prices(providers, tried(lambda: overrides(tables.prices), no_prices)),
        budget=tried(lambda: budget(tables.budget), Budget()),
        sampling=tried(
            lambda: read_settings(Sampling(), "sampling", tables.sampling),
            Sampling(),
        ),
        retries=config.settings.model_retries,
        retry_limits=tried(lambda: read_settings(limits, "retries", tables.retries), limits),
        retry_strategy=tried(lambda: extension_settings(config).retries, ""),
        local=tables.local,
        environment=environment,
    )
    if errors:
        message = "; ".join(error.message for error in errors)
        raise ConfigError(f"{str(config.file)!r}: {message}", advice="; ".join(error.advice for error in errors))
    return read


def budget(table: Mapping[str, object], base: Budget | None = None) -> Budget:
    """The limits of a run; `money` in US dollars, `tokens` in and out, whatever they cost."""
    return read_settings(base or Budget(), "budget", table)


SECONDS = 5.0
"""For all of it: a server that drips a letter at a time is not waited for."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The answer of a provider. `serves` is None where it did not list its models."""

    works: bool
    detail: str
    advice: str = ""
    serves: bool | None = None
    names: tuple[str, ...] = ()
    """The models that it lists."""


def reach(endpoint: Endpoint, transport: Transport) -> Reached:
    """Asks for the list of models; the key goes nowhere but to the endpoint."""

    async def produce(emit: Callable[[Reached], None]) -> None:
        emit(await _asked(endpoint, transport))

    return next(iter(transport.drive(produce)))


async def _asked(endpoint: Endpoint, transport: Transport) -> Reached:
    import asyncio

    import httpx2

    url = address(endpoint, endpoint.format.listing)
    try:
        async with (
            asyncio.timeout(SECONDS),
            transport.client(url).stream("GET", url, headers=own_headers(endpoint), timeout=None) as answer,
        ):
            return await _read(endpoint, answer)
    except TimeoutError:
        return Reached(works=False, detail=f"{endpoint.host} did not answer in {SECONDS:g} s")
    except httpx2.RequestError as error:
        return Reached(works=False, detail=f"{endpoint.host} cannot be reached ({type(error).__name__})")


async def _read(endpoint: Endpoint, answer: httpx2.Response) -> Reached:
    status = answer.status_code
    if status in (401, 403):
        detail = f"{endpoint.host} does not accept the key ({status})"
        return Reached(works=False, detail=detail, advice=endpoint.key_advice)
    if status == 404:
        # There may be no list, or nothing at all at this address: that is not known before a model is asked.
        detail = f"{endpoint.host} answers, and has no list of models at this address (404)"
        return Reached(works=False, detail=detail, advice="check base_url; a server without a list works all the same")
    if status != 200:
        return Reached(works=status == 405, detail=f"{endpoint.host} answers (no list of models: {status})")
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > _MOST_BYTES:
            return Reached(works=True, detail="reachable")
    serves = endpoint.name.encode() in body
    detail = "reachable" if serves else "reachable, and does not list this model"
    return Reached(works=True, detail=detail, serves=serves, names=_listed_names(bytes(body)))


def _listed_names(body: bytes) -> tuple[str, ...]:
    """The ids of a list of models in any of the three formats; none where it is something else."""
    try:
        read = read_json(body.decode("utf-8", "replace"))
    except ValueError:
        return ()
    rows = (read.get("data") or read.get("models") or ()) if isinstance(read, dict) else ()
    found = [one.get("id") or one.get("name") for one in rows if isinstance(one, dict)]
    return tuple(one.removeprefix("models/") for one in found if isinstance(one, str))[:_MOST_NAMES]


_MOST_NAMES = 500
_SMALL = 1000
"""Tokens of a request that no provider charges more for because of its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One model that the configuration names."""

    model: str
    used_for: tuple[str, ...]
    """`default`, slots, and `instead of MODEL` for a fallback."""
    ready: bool | None
    """None when nobody looked."""
    detail: str
    advice: str
    """How to make it ready."""
    input_price: Decimal | None
    """US dollars for a million tokens; None when unknown."""
    output_price: Decimal | None
    context: int
    tools: str
    """`native`, or `text` where they are asked for in words."""
    once: bool
    """It gets the context in one request, and answers in one."""


def listed(config: ModelConfig, *, look: bool, only: str = "") -> tuple[Listed, ...]:
    """Every model of the configuration, or only one; with `look`, each is looked for."""
    local_settings(config.local)
    uses: dict[str, list[str]] = {}
    routes = config.routes
    if routes.default:
        uses.setdefault(routes.default, []).append("default")
    for slot, model in routes.slots.items():
        uses.setdefault(model, []).append(slot)
    for model, others in routes.fallbacks.items():
        for other in others:
            uses.setdefault(other, []).append(f"instead of {model}")
    return tuple(_listed(config, model, tuple(used), look=look) for model, used in uses.items() if only in ("", model))


def _listed(config: ModelConfig, model: str, used: tuple[str, ...], *, look: bool) -> Listed:
    found = looked_for(config, model) if look else None
    can = capabilities(model, config.rules)
    return Listed(
        model=model,
        used_for=used,
        ready=None if found is None else found.works and found.serves is not False,
        detail=found.detail if found else "",
        advice=found.advice if found else "",
        input_price=_per_million(config, model, Usage(input=_SMALL)),
        output_price=_per_million(config, model, Usage(output=_SMALL)),
        context=can.context,
        tools=can.tools,
        once=can.once,
    )


def _per_million(config: ModelConfig, model: str, usage: Usage) -> Decimal | None:
    cost = config.prices.cost(model, usage)
    return None if cost is None else cost * (1_000_000 // _SMALL)


def looked_for(config: ModelConfig, model: str) -> Reached:
    from pawl.models.exchange import Transport  # loads the HTTP library, which costs 60 ms

    try:
        name = ModelName.parse(model, config.providers)
        if name.is_file:
            there = Path(name.name).expanduser().is_file()
            return Reached(works=there, detail="the file is there" if there else "there is no such file")
        with Transport() as transport:
            return reach(endpoint_for(name, config.providers, config.environment, config.rules), transport)
    except PawlError as error:
        return Reached(works=False, detail=error.message, advice=error.advice)


OpenModel = Callable[[ModelName], Model]

_FALLS_BACK = (errors.Overloaded, errors.RateLimited, errors.Unreachable, errors.ModelTimedOut, errors.UnknownModel)


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
        with self._router.ledger.reserve(request) as account:
            request = account.request
            ended = "closed"
            events = model.stream(request, cancel=cancel)
            try:
                for event in events:
                    if isinstance(event, Answered):
                        self.answer = account.answered(event.answer)
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
            from pawl.models.recorder import AnswerRecorder

            model = AnswerRecorder(model, self._record)
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
        from pawl.models.exchange import Transport, WireModel
        from pawl.models.failures import Retries
        from pawl.models.providers import Timeouts
        from pawl.models.text_protocol import EditTools, fitted

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
        silent = config.providers[name.provider].first_word_seconds
        timeouts = Timeouts(first_byte=silent, whole=min(max(Timeouts().whole, silent), config.budget.seconds))
        return fitted(WireModel(endpoint, transport, timeouts=timeouts, retries=retries), self.can(str(name)), edits)

    def _local(self, name: ModelName) -> Model:
        from pawl.models.local_form import ConstrainedTools
        from pawl.models.local_gguf import LocalModel
        from pawl.models.providers import local_settings

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
