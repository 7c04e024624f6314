"""The configuration of models, read and checked once: providers, routes, prices, budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from pawl.core.dialogue import Sampling
from pawl.core.errors import ConfigError, UnknownModel
from pawl.core.run import MODEL_SLOTS, Budget, RoleName
from pawl.models.prices import Prices, Rates, overrides
from pawl.models.providers import ModelName, Provider, Rules, builtin, merged, rules
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings
from pawl.settings.tables import raise_mistakes, read_settings, read_table

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
