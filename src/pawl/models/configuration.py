"""What the user configured about models, read and checked once: providers, routes, prices, budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pawl.core.dialogue import Sampling
from pawl.core.errors import ConfigError, UnknownModel
from pawl.core.run import MODEL_SLOTS, Budget, RoleName
from pawl.models.capabilities import CapabilityRule, rules
from pawl.models.prices import Prices, Rates, overrides
from pawl.models.providers import ModelName, Provider, builtin, merged
from pawl.models.router import Routes, routes
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings
from pawl.settings.tables import Fields, raise_mistakes

T = TypeVar("T")
_ROUTES = ("default", "slots", "fallbacks")


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
    rules: tuple[CapabilityRule, ...]
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
        chosen = routes({**_table(self.routes), "default": model, "slots": {}}, self.providers)
        return replace(self, routes=chosen)


def model_config(config: Config, environment: Mapping[str, str] | None = None) -> ModelConfig:
    """Reads the tables of the configuration; a mistake names the table and the field."""
    environment = config.environment if environment is None else environment
    tables = config.tables
    reading = _Reading(str(config.file))
    # A provider whose table is wrong is a provider all the same: that its models are unknown would be no news.
    stand_ins: Mapping[str, Provider] = {**dict.fromkeys(tables.providers, builtin()["openai"]), **builtin()}
    providers = reading.of(lambda: merged(tables.providers), stand_ins)
    routed = {name: value for name, value in tables.models.items() if name in _ROUTES}
    if named := environment.get("PAWL_MODEL", "").strip():
        routed["default"] = named
    patterns = {name: value for name, value in tables.models.items() if name not in _ROUTES}
    no_prices: Mapping[str, Rates] = {}
    read = ModelConfig(
        providers=providers,
        routes=reading.of(lambda: _known_slots(routes(routed, providers)), Routes()),
        rules=reading.of(lambda: rules(patterns), ()),
        prices=Prices(providers, reading.of(lambda: overrides(tables.prices), no_prices)),
        budget=reading.of(lambda: budget(tables.budget), Budget()),
        sampling=reading.of(lambda: sampling(tables.sampling), Sampling()),
        retries=config.settings.model_retries,
        retry_limits=reading.of(lambda: retry_limits(tables.retries), RetryLimits()),
        retry_strategy=reading.of(lambda: extension_settings(config).retries, ""),
        local=tables.local,
        environment=environment,
    )
    reading.finish()
    return read


class _Reading:
    """Reads tables one by one and reports the mistakes of all of them together."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._errors: list[ConfigError] = []

    def of(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except ConfigError as error:
            self._errors.append(error)
            return otherwise

    def finish(self) -> None:
        if self._errors:
            raise ConfigError(
                f"{self._file!r}: " + "; ".join(error.message for error in self._errors),
                advice="; ".join(error.advice for error in self._errors),
            )


def _known_slots(read: Routes) -> Routes:
    known = {*RoleName, *MODEL_SLOTS}
    unknown = sorted(set(read.slots) - known)
    if unknown:
        raise ConfigError(
            f"models.slots has no {', '.join(map(repr, unknown))}", advice=f"the slots are {', '.join(sorted(known))}"
        )
    return read


def budget(table: Mapping[str, object], base: Budget | None = None) -> Budget:
    """What a run may spend; `money` in US dollars, `tokens` in and out, whatever they cost."""
    mistakes: list[str] = []
    given = Fields("budget", table, mistakes)
    base = base or Budget()
    money, tokens = given.money("money"), given.whole("tokens", least=1)
    turns, seconds = given.whole("turns", least=1), given.seconds("seconds")
    given.close()
    raise_mistakes("the budget is wrong", mistakes, advice="[budget] takes money, tokens, turns, seconds")
    return Budget(
        money=base.money if money is None else money,
        tokens=base.tokens if tokens is None else tokens,
        turns=base.turns if turns is None else turns,
        seconds=base.seconds if seconds is None else seconds,
    )


def retry_limits(table: Mapping[str, object]) -> RetryLimits:
    """How long it is tried again, how long the first wait is, and which wait of a provider is too long to wait for."""
    mistakes: list[str] = []
    given, names = Fields("retries", table, mistakes), ("seconds", "base", "longest_asked")
    values = {name: value for name in names if (value := given.seconds(name)) is not None}
    given.close()
    raise_mistakes("the retries are wrong", mistakes, advice=f"[retries] takes {', '.join(names)}")
    return RetryLimits(**values)


def sampling(table: Mapping[str, object]) -> Sampling:
    """How answers are drawn; what the user does not set is as cautious as it comes."""
    mistakes: list[str] = []
    given, plain = Fields("sampling", table, mistakes), Sampling()
    temperature, top_p = given.seconds("temperature"), given.seconds("top_p")
    max_output, seed = given.whole("max_output", least=1), given.whole("seed")
    stop = given.texts("stop")
    given.close()
    if top_p is not None and top_p > 1:
        given.wrong("top_p", f"must not be above 1, but is {top_p:g}")
    raise_mistakes(
        "the sampling is wrong", mistakes, advice="[sampling] takes temperature, top_p, max_output, seed, stop"
    )
    return Sampling(
        temperature=plain.temperature if temperature is None else temperature,
        top_p=plain.top_p if top_p is None else top_p,
        max_output=plain.max_output if max_output is None else max_output,
        stop=stop,
        seed=seed,
    )


def _table(known: Routes) -> dict[str, object]:
    return {"fallbacks": {model: list(to) for model, to in known.fallbacks.items()}}
