"""Tiers from a YAML file (E4): every mistake at once with its line and column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import ConfigError
from pawl.core.run import RoleName
from pawl.core.tiers import Escalation, Tier, TierMode
from pawl.settings import files as bounded

if TYPE_CHECKING:
    import yaml


MOST_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Mistake:
    line: int
    column: int
    text: str


class YamlReader:
    """Reads the nodes of one file and gathers every mistake."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mistakes: list[Mistake] = []

    def parsed(self, text: str) -> yaml.Node | None:
        """The document; None when it is empty or cannot be read, which is then a mistake."""
        import yaml

        if len(text) > MOST_CHARACTERS:
            self.mistakes.append(Mistake(1, 1, f"{len(text):,} characters, and {MOST_CHARACTERS:,} is the limit"))
            return None
        try:
            document: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
            return document
        except (RecursionError, MemoryError):
            self.mistakes.append(Mistake(1, 1, "this is nested too deeply"))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
            self.mistakes.append(Mistake(line, column, f"this is not YAML: {error.problem or error.context}"))
        except yaml.YAMLError as error:
            self.mistakes.append(Mistake(1, 1, f"this is not YAML: {str(error).splitlines()[0]}"))
        return None

    def wrong(self, node: yaml.Node, text: str) -> None:
        mark = node.start_mark
        self.mistakes.append(Mistake(mark.line + 1, mark.column + 1, text))

    def finish(self, advice: str) -> None:
        if self.mistakes:
            ordered = sorted(self.mistakes, key=lambda one: (one.line, one.column))
            lines = [f"{self.name}:{one.line}:{one.column}: {one.text}" for one in ordered]
            raise ConfigError("\n".join(lines), advice=advice)

    def table(self, node: yaml.Node, what: str) -> dict[str, yaml.Node]:
        """The fields of a mapping, each once."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{what} must be a mapping, such as 'name: value'")
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if not name:
                self.wrong(key, f"{what} has a key that is no word")
            elif name in found:
                self.wrong(key, f"{name!r} occurs twice in {what}")
            else:
                found[name] = value
        return found

    def items(self, node: yaml.Node, what: str) -> Iterator[yaml.Node]:
        import yaml

        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        else:
            self.wrong(node, f"{what} must be a list, each item with a dash")

    def unknown(self, fields: dict[str, yaml.Node], known: tuple[str, ...], what: str) -> None:
        import difflib

        for name, node in fields.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
                self.wrong(node, f"{what} has no field {name!r}{hint}")

    def text(self, node: yaml.Node | None, what: str) -> str:
        import yaml

        if node is None:
            return ""
        if not isinstance(node, yaml.ScalarNode) or not str(node.value).strip():
            self.wrong(node, f"{what} must be a word or a text")
            return ""
        return str(node.value).strip()

    def word(self, node: yaml.Node | None, what: str, known: tuple[str, ...]) -> str:
        if node is None:
            return ""
        value = self.text(node, what)
        if value and value not in known:
            self.wrong(node, f"{what} must be one of {', '.join(known)}, not {value!r}")
            return ""
        return value

    def whole(self, node: yaml.Node | None, what: str, *, least: int, most: int) -> int | None:
        number = self.number(node, what, least=Decimal(least), most=Decimal(most))
        if number is None or node is None:
            return None
        if number != number.to_integral_value():
            self.wrong(node, f"{what} must be a whole number, not {node.value!r}")
            return None
        return int(number)

    def number(self, node: yaml.Node | None, what: str, *, least: Decimal, most: Decimal) -> Decimal | None:
        import yaml

        if node is None:
            return None
        try:
            value = Decimal(str(node.value)) if isinstance(node, yaml.ScalarNode) else None
        except InvalidOperation:
            value = None
        if value is None or not value.is_finite():
            self.wrong(node, f"{what} must be a number")
            return None
        if not least <= value <= most:
            self.wrong(node, f"{what} must be between {least} and {most}, not {value}")
            return None
        return value

    def truth(self, node: yaml.Node | None, what: str) -> bool:
        return self.word(node, what, ("true", "false")) == "true"


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


def read_tiers(path: Path, known_model: KnownModel = lambda model: "") -> Escalation:
    """The ladder of a file."""
    try:
        text = bounded.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the tier file {str(path)!r} cannot be read: {error}", advice="name a YAML file with a list of tiers"
        ) from error
    return parsed_tiers(text, str(path), known_model)


def parsed_tiers(text: str, name: str, known_model: KnownModel = lambda model: "") -> Escalation:
    reader = YamlReader(name)
    document = reader.parsed(text)
    ladder = Escalation(tiers=())
    if document is not None:
        ladder = _File(reader, known_model).ladder(document)
    elif not reader.mistakes:
        raise ConfigError(f"{name}:1:1: the file is empty", advice="see examples/tiers.yaml")
    reader.finish("see examples/tiers.yaml and the page on loops")
    return ladder


@dataclass(frozen=True, slots=True)
class _File:
    reader: YamlReader
    known_model: KnownModel

    def ladder(self, document: yaml.Node) -> Escalation:
        reader = self.reader
        fields = reader.table(document, "the file")
        reader.unknown(fields, _FIELDS, "the file")
        shared = self._models(fields.get("models"), "models", tuple(RoleName))
        if "tiers" not in fields:
            if fields or not reader.mistakes:
                reader.wrong(document, "there are no tiers: 'tiers' is missing")
            return Escalation(tiers=())
        nodes = list(reader.items(fields["tiers"], "'tiers'"))
        if not nodes and not reader.mistakes:
            reader.wrong(fields["tiers"], "'tiers' is empty")
        if len(nodes) > MOST_TIERS:
            reader.wrong(nodes[MOST_TIERS], f"there are {len(nodes)} tiers, and {MOST_TIERS} is the limit")
        names: dict[str, int] = {}
        tiers = tuple(self._tier(number, node, shared, names) for number, node in enumerate(nodes, 1))
        minutes = reader.number(fields.get("max_minutes"), "'max_minutes'", least=Decimal("0.1"), most=_LONG)
        return Escalation(
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
