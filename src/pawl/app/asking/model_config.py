"""What the user configured about models, read and checked once: providers, routes, prices, budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pawl.app.config import Config
from pawl.core.dialogue import Sampling
from pawl.core.run import Budget
from pawl.models.capabilities import Rule, rules
from pawl.models.prices import Prices, overrides
from pawl.models.providers import Provider, merged
from pawl.models.router import Routes, routes
from pawl.models.tables import Fields, raise_mistakes

_ROUTES = ("default", "slots", "fallbacks")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    providers: Mapping[str, Provider]
    routes: Routes
    rules: tuple[Rule, ...]
    prices: Prices
    budget: Budget
    sampling: Sampling
    retries: int
    local: Mapping[str, object]
    """How models that are files are run; read when one is opened."""
    environment: Mapping[str, str] = field(repr=False)

    def with_model(self, model: str) -> ModelConfig:
        """The same with another default model; it then answers for every slot."""
        chosen = routes({**_table(self.routes), "default": model, "slots": {}}, self.providers)
        return replace(self, routes=chosen)


def model_config(config: Config, environment: Mapping[str, str] | None = None) -> ModelConfig:
    """Reads the tables of the configuration; a mistake names the table and the field."""
    environment = config.environment if environment is None else environment
    tables = config.tables
    providers = merged(tables.providers)
    routed = {name: value for name, value in tables.models.items() if name in _ROUTES}
    if not routed.get("default") and (named := environment.get("PAWL_MODEL", "").strip()):
        routed["default"] = named
    return ModelConfig(
        providers=providers,
        routes=routes(routed, providers),
        rules=rules({name: value for name, value in tables.models.items() if name not in _ROUTES}),
        prices=Prices(providers, overrides(tables.prices)),
        budget=budget(tables.budget),
        sampling=sampling(tables.sampling),
        retries=config.settings.model_retries,
        local=tables.local,
        environment=environment,
    )


def budget(table: Mapping[str, object], base: Budget | None = None) -> Budget:
    """What a run may spend; `money` in US dollars, `tokens` for models whose price is unknown."""
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
