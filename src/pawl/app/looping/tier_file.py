"""Tiers from a YAML file (E4): every mistake at once with its line and column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.app.looping.yaml_places import Reader
from pawl.core import bounded
from pawl.core.errors import ConfigError
from pawl.core.run import RoleName
from pawl.core.tiers import Ladder, Tier, TierMode

if TYPE_CHECKING:
    import yaml

SUMMARY = 4_000
"""Characters of the failure history that accumulates from tier to tier."""
MOST_TIERS = 20
MOST_ITERATIONS = 1_000
MOST_SAMPLES = 32
MOST_PARALLEL = 8
LONGEST_NAME = 40
_FIELDS = ("tiers", "models", "max_cost", "max_iterations", "max_minutes")
_TIER_FIELDS = (
    "name",
    "mode",
    "model",
    "models",
    "temperatures",
    "max_iterations",
    "max_cost",
    "max_minutes",
    "samples",
    "parallel",
    "draft",
    "chaos",
)
_OF_MODELS = frozenset(_TIER_FIELDS) - {"name", "mode", "max_minutes"}
ROLES: Mapping[TierMode, tuple[RoleName, ...]] = {
    TierMode.REFLEX: (),
    TierMode.SIMPLE: (RoleName.ARTISAN, RoleName.CHAOS),
    TierMode.FULL: (RoleName.LIBRARIAN, RoleName.ARTISAN, RoleName.CRITIC, RoleName.CHAOS),
    TierMode.TEAM: (RoleName.LEAD, RoleName.PLANNER, RoleName.WORKER, RoleName.FIXER, RoleName.CHAOS),
}
"""Who takes part in a tier of each mode."""
ITERATIONS: Mapping[TierMode, int] = {TierMode.REFLEX: 1, TierMode.SIMPLE: 5, TierMode.FULL: 3, TierMode.TEAM: 2}
"""Where the file does not say."""
_CENT, _RICH = Decimal(0), Decimal(1_000_000)
_LONG = Decimal(7 * 24 * 60)

KnownModel = Callable[[str], str]
"""From the name of a model to what is wrong with it; empty when it can be asked."""


def read_tiers(path: Path, known_model: KnownModel = lambda model: "") -> Ladder:
    """The ladder of a file."""
    try:
        text = bounded.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the tier file {str(path)!r} cannot be read: {error}", advice="name a YAML file with a list of tiers"
        ) from error
    return parsed_tiers(text, str(path), known_model)


def parsed_tiers(text: str, name: str, known_model: KnownModel = lambda model: "") -> Ladder:
    reader = Reader(name)
    document = reader.parsed(text)
    ladder = Ladder(tiers=())
    if document is not None:
        ladder = _File(reader, known_model).ladder(document)
    elif not reader.mistakes:
        raise ConfigError(f"{name}:1:1: the file is empty", advice="see examples/tiers.yaml")
    reader.finish("see examples/tiers.yaml and the page on loops")
    return ladder


@dataclass(frozen=True, slots=True)
class _File:
    reader: Reader
    known_model: KnownModel

    def ladder(self, document: yaml.Node) -> Ladder:
        reader = self.reader
        fields = reader.table(document, "the file")
        reader.unknown(fields, _FIELDS, "the file")
        shared = self._models(fields.get("models"), "models", tuple(RoleName))
        if "tiers" not in fields:
            if fields or not reader.mistakes:
                reader.wrong(document, "there are no tiers: 'tiers' is missing")
            return Ladder(tiers=())
        nodes = list(reader.items(fields["tiers"], "'tiers'"))
        if not nodes and not reader.mistakes:
            reader.wrong(fields["tiers"], "'tiers' is empty")
        if len(nodes) > MOST_TIERS:
            reader.wrong(nodes[MOST_TIERS], f"there are {len(nodes)} tiers, and {MOST_TIERS} is the limit")
        names: dict[str, int] = {}
        tiers = tuple(self._tier(number, node, shared, names) for number, node in enumerate(nodes, 1))
        minutes = reader.number(fields.get("max_minutes"), "'max_minutes'", least=Decimal("0.1"), most=_LONG)
        return Ladder(
            tiers=tiers,
            max_cost=reader.number(fields.get("max_cost"), "'max_cost'", least=_CENT, most=_RICH),
            max_iterations=reader.whole(
                fields.get("max_iterations"), "'max_iterations'", least=1, most=MOST_ITERATIONS
            ),
            max_minutes=None if minutes is None else float(minutes),
            summary=SUMMARY,
        )

    def _tier(self, number: int, node: yaml.Node, shared: Mapping[str, str], names: dict[str, int]) -> Tier:
        reader, what = self.reader, f"tier {number}"
        fields = reader.table(node, what)
        reader.unknown(fields, _TIER_FIELDS, what)
        word = reader.word(fields.get("mode"), f"{what}: 'mode'", tuple(TierMode))
        if fields and "mode" not in fields:
            reader.wrong(node, f"{what} has no 'mode': one of {', '.join(TierMode)}")
        mode = TierMode(word) if word else TierMode.SIMPLE
        if mode is TierMode.REFLEX:
            for name in sorted(_OF_MODELS & fields.keys()):
                reader.wrong(fields[name], f"{what}: the reflex asks no model and runs once; it has no {name!r}")
        minutes = reader.number(fields.get("max_minutes"), f"{what}: 'max_minutes'", least=Decimal("0.1"), most=_LONG)
        iterations = reader.whole(
            fields.get("max_iterations"), f"{what}: 'max_iterations'", least=1, most=MOST_ITERATIONS
        )
        parallel = reader.whole(fields.get("parallel"), f"{what}: 'parallel'", least=1, most=MOST_PARALLEL)
        samples = reader.whole(fields.get("samples"), f"{what}: 'samples'", least=1, most=MOST_SAMPLES)
        return Tier(
            name=self._name(number, fields, mode, names),
            mode=mode,
            iterations=ITERATIONS[mode] if iterations is None else iterations,
            max_cost=reader.number(fields.get("max_cost"), f"{what}: 'max_cost'", least=_CENT, most=_RICH),
            max_minutes=None if minutes is None else float(minutes),
            models=self._models_of(what, fields, mode, shared),
            temperatures=self._temperatures(what, fields, mode),
            samples=samples or 0,
            parallel=parallel or 1,
            draft=None if "draft" not in fields else reader.truth(fields["draft"], f"{what}: 'draft'"),
            chaos=reader.truth(fields.get("chaos"), f"{what}: 'chaos'"),
        )

    def _name(self, number: int, fields: Mapping[str, yaml.Node], mode: TierMode, names: dict[str, int]) -> str:
        node = fields.get("name")
        name = self.reader.text(node, f"tier {number}: 'name'") or f"{mode}-{number}"
        if node is not None:
            if len(name) > LONGEST_NAME or not name.isprintable():
                self.reader.wrong(node, f"tier {number}: a name is one line of at most {LONGEST_NAME} characters")
            if name in names:
                self.reader.wrong(node, f"tier {number}: tier {names[name]} has the name {name!r} too")
        names.setdefault(name, number)
        return name

    def _models_of(
        self, what: str, fields: Mapping[str, yaml.Node], mode: TierMode, shared: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        roles = ROLES[mode]
        chosen = {role: model for role, model in shared.items() if role in (*roles, "*")} if roles else {}
        if "model" in fields and roles:
            model = self._model(fields["model"], f"{what}: 'model'")
            # The tier's own model stands for every role, over what the file says for all tiers.
            chosen = {"*": model} if model else chosen
        own = self._models(fields.get("models"), f"{what}: 'models'", roles) if roles else {}
        return tuple(sorted((chosen | own).items()))

    def _models(self, node: yaml.Node | None, what: str, roles: tuple[RoleName, ...]) -> dict[str, str]:
        if node is None:
            return {}
        fields = self.reader.table(node, what)
        self._check_roles(fields, what, roles)
        known = {role: self._model(one, f"{what}: {role!r}") for role, one in fields.items() if role in roles}
        return {role: model for role, model in known.items() if model}

    def _model(self, node: yaml.Node, what: str) -> str:
        model = self.reader.text(node, what)
        mistake = self.known_model(model) if model else ""
        if mistake:
            self.reader.wrong(node, f"{what}: {mistake}")
        return model

    def _temperatures(
        self, what: str, fields: Mapping[str, yaml.Node], mode: TierMode
    ) -> tuple[tuple[str, float], ...]:
        node = fields.get("temperatures")
        if node is None or mode is TierMode.REFLEX:
            return ()
        found = self.reader.table(node, f"{what}: 'temperatures'")
        self._check_roles(found, f"{what}: 'temperatures'", ROLES[mode])
        read = {
            role: self.reader.number(one, f"{what}: the temperature of {role!r}", least=Decimal(0), most=Decimal(2))
            for role, one in found.items()
            if role in ROLES[mode]
        }
        return tuple(sorted((role, float(warmth)) for role, warmth in read.items() if warmth is not None))

    def _check_roles(self, fields: Mapping[str, yaml.Node], what: str, roles: tuple[RoleName, ...]) -> None:
        for role, node in fields.items():
            if role not in roles:
                self.reader.wrong(node, f"{what}: no role {role!r} takes part here; it is one of {', '.join(roles)}")
