"""YAML as plain values with the place of each, so that a mistake can be named by its line and column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pawl.core.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MOST_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Mistake:
    line: int
    column: int
    text: str


class Reader:
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
