"""The configuration of models, read and checked once: providers, routes, prices, budget; and who of them answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pawl.core.dialogue import Sampling, Usage
from pawl.core.errors import ConfigError, PawlError, UnknownModel
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import MODEL_SLOTS, Budget, RoleName
from pawl.core.typed import AtLeast
from pawl.models.endpoint import Endpoint
from pawl.models.ledger import Prices, Rates, overrides
from pawl.models.providers import ModelName, Provider, Rules, builtin, capabilities, endpoint_for, merged, rules
from pawl.models.wire.request_body import address, own_headers
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings
from pawl.settings.tables import raise_mistakes, read_settings, read_table

if TYPE_CHECKING:
    import httpx2

    from pawl.models.exchange import Transport

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
                advice='name one with --model provider/name, or with `default = "provider/name"` under [models] '
                "in the settings",
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
class LocalSettings:
    context: Annotated[int | None, AtLeast(1)] = None
    """Tokens that it reads and writes together; None for 8192, or less when the model was made for less."""
    threads: Annotated[int | None, AtLeast(1)] = None
    """None for the cores that are not in use when it is loaded."""
    idle_seconds: float = 300.0
    """The memory is given back when nothing was asked for so long."""
    load_seconds: float = 600.0
    answer_seconds: float = 3600.0
    """For one answer; a slow machine reads a long prompt for minutes."""
    kept_prompts: int = 512 * 1024**2
    """Bytes in which the prompts of other conversations stay ready, so that roles can take turns."""


def local_settings(table: Mapping[str, object]) -> LocalSettings:
    """Settings from a configuration; `ConfigError` names every mistake."""
    return read_settings(LocalSettings(), "local", table)


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
        rules=tried(lambda: rules(patterns), no_rules),
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
    return Reached(
        works=True, detail="reachable" if serves else "reachable, and does not list this model", serves=serves
    )


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
    found = _looked_for(config, model) if look else None
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
    )


def _per_million(config: ModelConfig, model: str, usage: Usage) -> Decimal | None:
    cost = config.prices.cost(model, usage)
    return None if cost is None else cost * (1_000_000 // _SMALL)


def _looked_for(config: ModelConfig, model: str) -> Reached:
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
