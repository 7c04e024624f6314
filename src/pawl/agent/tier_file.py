"""Tiers from a YAML file (E4): every mistake at once with its line and column."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pawl.core.errors import ConfigError, why
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName
from pawl.core.tiers import Escalation, Tier, TierMode
from pawl.settings import files as bounded

if TYPE_CHECKING:
    import yaml


MOST_CHARACTERS = 200_000
SUMMARY = 4_000
"""Characters of the failure history that accumulates from tier to tier."""
MOST_TIERS = 20
MOST_ITERATIONS = 1_000
MOST_SAMPLES = 32
MOST_PARALLEL = 8
LONGEST_NAME = 40


class _Bounds(NamedTuple):
    kind: Callable[[Decimal], object]
    least: Decimal
    most: Decimal


_LIMITS: Mapping[str, _Bounds] = {
    "max_cost": _Bounds(Decimal, Decimal(0), Decimal(1_000_000)),
    "max_iterations": _Bounds(int, Decimal(1), Decimal(MOST_ITERATIONS)),
    "max_minutes": _Bounds(float, Decimal("0.1"), Decimal(7 * 24 * 60)),
}
"""Of a tier and of the whole ladder."""
_NUMBERS: Mapping[str, _Bounds] = {
    **_LIMITS,
    "samples": _Bounds(int, Decimal(1), Decimal(MOST_SAMPLES)),
    "parallel": _Bounds(int, Decimal(1), Decimal(MOST_PARALLEL)),
}
_TEMPERATURE = _Bounds(float, Decimal(0), Decimal(2))
_FIELDS = ("tiers", "models", "max_cost", "max_iterations", "max_minutes")
_OF_MODELS = ("model", "models", "temperatures", "max_iterations", "max_cost", "samples", "parallel", "draft", "chaos")
_TIER_FIELDS = ("name", "mode", "max_minutes", *_OF_MODELS)
ROLES: Mapping[TierMode, tuple[RoleName, ...]] = {
    TierMode.REFLEX: (),
    TierMode.SIMPLE: (RoleName.ARTISAN, RoleName.CHAOS),
    TierMode.FULL: (RoleName.LIBRARIAN, RoleName.ARTISAN, RoleName.CRITIC, RoleName.CHAOS),
    TierMode.TEAM: (
        RoleName.SUPERVISOR,
        RoleName.LEAD,
        RoleName.PLANNER,
        RoleName.WORKER,
        RoleName.FIXER,
        RoleName.CHAOS,
    ),
}
"""Who takes part in a tier of each mode."""
ITERATIONS: Mapping[TierMode, int] = {TierMode.REFLEX: 1, TierMode.SIMPLE: 5, TierMode.FULL: 3, TierMode.TEAM: 2}
"""Where the file does not say."""

KnownModel = Callable[[str], str]
"""From the name of a model to what is wrong with it; empty when it can be asked."""


def read_tiers(path: Path, known_model: KnownModel = lambda model: "") -> Escalation:
    """The ladder of a file."""
    try:
        text = bounded.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the tier file {str(path)!r} cannot be read: {why(error)}", advice="name a YAML file with a list of tiers"
        ) from error
    return parsed_tiers(text, str(path), known_model)


def parsed_tiers(text: str, name: str, known_model: KnownModel = lambda model: "") -> Escalation:
    reader = _Reader(known_model)
    document = reader.parsed(text)
    if document is None and not reader.mistakes:
        raise ConfigError(f"{name}:1:1: the file is empty", advice="see examples/tiers.yaml")
    ladder = reader.ladder(document) if document is not None else Escalation(tiers=())
    if reader.mistakes:
        ordered = sorted(reader.mistakes, key=lambda one: one[:2])
        lines = [f"{name}:{line}:{column}: {what}" for line, column, what in ordered]
        raise ConfigError("\n".join(lines), advice="see examples/tiers.yaml and the page on loops")
    return ladder


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the nodes of one file and gathers every mistake."""

    known_model: KnownModel
    mistakes: list[tuple[int, int, str]] = field(default_factory=list)
    """With line and column, from 1."""

    def parsed(self, text: str) -> yaml.Node | None:
        """The document; None when it is empty or cannot be read, which is then a mistake."""
        import yaml

        at, what = (1, 1), ""
        try:
            if len(text) <= MOST_CHARACTERS:
                document: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
                return document
            what = f"{len(text):,} characters, and {MOST_CHARACTERS:,} is the limit"
        except (RecursionError, MemoryError):
            what = "this is nested too deeply"
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = (mark.line + 1, mark.column + 1) if mark is not None else at
            what = f"this is not YAML: {error.problem or error.context}"
        except yaml.YAMLError as error:
            what = f"this is not YAML: {str(error).splitlines()[0]}"
        self.mistakes.append((*at, what))
        return None

    def ladder(self, document: yaml.Node) -> Escalation:
        fields = self._table(document, "the file", _FIELDS)
        shared = self._by_role(fields.get("models"), "models", tuple(RoleName), self._model)
        if "tiers" not in fields:
            if fields or not self.mistakes:
                self._wrong(document, "there are no tiers: 'tiers' is missing")
            return Escalation(tiers=())
        nodes = self._items(fields["tiers"], "'tiers'")
        if not nodes and not self.mistakes:
            self._wrong(fields["tiers"], "'tiers' is empty")
        if len(nodes) > MOST_TIERS:
            self._wrong(nodes[MOST_TIERS], f"there are {len(nodes)} tiers, and {MOST_TIERS} is the limit")
        names: dict[str, int] = {}
        tiers = tuple(self._tier(number, node, shared, names) for number, node in enumerate(nodes, 1))
        return Escalation(tiers=tiers, summary=SUMMARY, **self._numbers(fields, _LIMITS, ""))

    def _tier(self, number: int, node: yaml.Node, shared: Mapping[str, str], names: dict[str, int]) -> Tier:
        what = f"tier {number}"
        fields = self._table(node, what, _TIER_FIELDS)
        word = self._word(fields.get("mode"), f"{what}: 'mode'", tuple(TierMode))
        if fields and "mode" not in fields:
            self._wrong(node, f"{what} has no 'mode': one of {', '.join(TierMode)}")
        mode = TierMode(word) if word else TierMode.SIMPLE
        if mode is TierMode.REFLEX:
            for name in sorted(fields.keys() & set(_OF_MODELS)):
                self._wrong(fields[name], f"{what}: the reflex asks no model and runs once; it has no {name!r}")
        numbers = self._numbers(fields, _NUMBERS, f"{what}: ")
        return Tier(
            name=self._name(number, fields.get("name"), mode, names),
            mode=mode,
            iterations=numbers["max_iterations"] or ITERATIONS[mode],
            max_cost=numbers["max_cost"],
            max_minutes=numbers["max_minutes"],
            models=self._models(what, fields, mode, shared),
            temperatures=self._temperatures(f"{what}: 'temperatures'", fields.get("temperatures"), mode),
            samples=numbers["samples"] or 0,
            parallel=numbers["parallel"] or 1,
            draft=self._truth(fields.get("draft"), f"{what}: 'draft'") if "draft" in fields else None,
            chaos=self._truth(fields.get("chaos"), f"{what}: 'chaos'"),
        )

    def _name(self, number: int, node: yaml.Node | None, mode: TierMode, names: dict[str, int]) -> str:
        name = self._text(node, f"tier {number}: 'name'") or f"{mode}-{number}"
        if node is not None:
            if len(name) > LONGEST_NAME or not name.isprintable():
                self._wrong(node, f"tier {number}: a name is one line of at most {LONGEST_NAME} characters")
            if name in names:
                self._wrong(node, f"tier {number}: tier {names[name]} has the name {name!r} too")
        names.setdefault(name, number)
        return name

    def _models(
        self, what: str, fields: Mapping[str, yaml.Node], mode: TierMode, shared: Mapping[str, str]
    ) -> tuple[tuple[str, str], ...]:
        roles = ROLES[mode]
        if not roles:
            return ()
        chosen = {role: model for role, model in shared.items() if role in roles}
        if "model" in fields:
            model = self._model(fields["model"], f"{what}: 'model'")
            # The tier's own model stands for every role, over what the file says for all tiers.
            chosen = {"*": model} if model else chosen
        own = self._by_role(fields.get("models"), f"{what}: 'models'", roles, self._model)
        return tuple(sorted((chosen | own).items()))

    def _model(self, node: yaml.Node, what: str) -> str | None:
        model = self._text(node, what)
        mistake = self.known_model(model) if model else ""
        if mistake:
            self._wrong(node, f"{what}: {mistake}")
        return model or None

    def _temperatures(self, what: str, node: yaml.Node | None, mode: TierMode) -> tuple[tuple[str, float], ...]:
        def warmth(one: yaml.Node, role: str) -> Any:
            return self._number(one, f"the temperature of {role}", _TEMPERATURE)

        found = self._by_role(node, what, ROLES[mode], warmth) if mode is not TierMode.REFLEX else {}
        return tuple(sorted(found.items()))

    def _by_role(
        self, node: yaml.Node | None, what: str, roles: Sequence[str], read: Callable[[yaml.Node, str], Any]
    ) -> dict[str, Any]:
        """A mapping's value for each role that takes part."""
        found = {}
        for role, one in (self._table(node, what) if node is not None else {}).items():
            if role not in roles:
                self._wrong(one, f"{what}: no role {role!r} takes part here; it is one of {', '.join(roles)}")
            elif (value := read(one, f"{what}: {role!r}")) is not None:
                found[role] = value
        return found

    def _wrong(self, node: yaml.Node, text: str) -> None:
        self.mistakes.append((node.start_mark.line + 1, node.start_mark.column + 1, text))

    def _table(self, node: yaml.Node, what: str, known: Sequence[str] = ()) -> dict[str, yaml.Node]:
        """The fields of a mapping, each once and, where they are given, of the known ones."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, f"{what} must be a mapping, such as 'name: value'")
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if not name:
                self._wrong(key, f"{what} has a key that is not a word")
            elif name in found:
                self._wrong(key, f"{name!r} occurs twice in {what}")
            else:
                found[name] = value
                if known and name not in known:
                    near = difflib.get_close_matches(name, known, 1)
                    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
                    self._wrong(value, f"{what} has no field {name!r}{hint}")
        return found

    def _items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        import yaml

        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self._wrong(node, f"{what} must be a list, each item with a dash")
        return []

    def _text(self, node: yaml.Node | None, what: str) -> str:
        import yaml

        if node is None:
            return ""
        if not isinstance(node, yaml.ScalarNode) or not str(node.value).strip():
            self._wrong(node, f"{what} must be a word or a text")
            return ""
        return str(node.value).strip()

    def _word(self, node: yaml.Node | None, what: str, known: Sequence[str]) -> str:
        value = self._text(node, what)
        if node is not None and value and value not in known:
            self._wrong(node, f"{what} must be one of {', '.join(known)}, not {value!r}")
            return ""
        return value

    def _truth(self, node: yaml.Node | None, what: str) -> bool:
        return self._word(node, what, ("true", "false")) == "true"

    def _numbers(self, fields: Mapping[str, yaml.Node], bounds: Mapping[str, _Bounds], what: str) -> dict[str, Any]:
        return {
            name: self._number(fields[name], f"{what}{name!r}", bound) if name in fields else None
            for name, bound in bounds.items()
        }

    def _number(self, node: yaml.Node, what: str, bounds: _Bounds) -> object:
        import yaml

        try:
            value = Decimal(str(node.value)) if isinstance(node, yaml.ScalarNode) else None
        except InvalidOperation:
            value = None
        if value is None or not value.is_finite():
            self._wrong(node, f"{what} must be a number")
        elif not bounds.least <= value <= bounds.most:
            self._wrong(node, f"{what} must be between {bounds.least} and {bounds.most}, not {value}")
        elif bounds.kind is int and value != value.to_integral_value():
            self._wrong(node, f"{what} must be a whole number, not {node.value!r}")
        else:
            return bounds.kind(value)
        return None
