"""What a model can do, looked up by patterns of its name; the user's own tables come last."""

from __future__ import annotations

import fnmatch
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from importlib import resources

from pawl.core.errors import ConfigError
from pawl.models.endpoint import quirks_of
from pawl.settings.tables import Fields, raise_mistakes


class CallStyle(StrEnum):
    """How something that a model is asked for is said."""

    NATIVE = "native"
    TEXT = "text"


class EditBlock(StrEnum):
    """A block of text that stands for an edit."""

    PATCH = "patch"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    tools: CallStyle = CallStyle.NATIVE
    schema: CallStyle = CallStyle.NATIVE
    context: int = 128_000
    """Tokens that it reads and writes together."""
    max_output: int = 8192
    quirks: Mapping[str, object] = field(default_factory=dict)
    """Fields of `endpoint.Quirks` in which the model departs from its provider."""
    edits: tuple[EditBlock, ...] = (EditBlock.PATCH, EditBlock.FILE)
    """Which blocks it is shown, where tools are text."""


@dataclass(frozen=True, slots=True)
class CapabilityRule:
    """What a pattern of names says; None where it says nothing."""

    pattern: str
    tools: CallStyle | None = None
    schema: CallStyle | None = None
    context: int | None = None
    max_output: int | None = None
    quirks: Mapping[str, object] | None = None
    edits: tuple[EditBlock, ...] | None = None

    def over(self, found: Capabilities) -> Capabilities:
        said = {one.name: getattr(self, one.name) for one in fields(Capabilities)}
        said["quirks"] = {**found.quirks, **(self.quirks or {})}
        return replace(found, **{name: value for name, value in said.items() if value is not None})


def capabilities(name: str, overrides: tuple[CapabilityRule, ...] = ()) -> Capabilities:
    """What the model of that name can do, as far as is known; later rules go over earlier ones."""
    found = Capabilities()
    for rule in (*_builtin(), *overrides):
        if fnmatch.fnmatchcase(name, rule.pattern):
            found = rule.over(found)
    return found


def rules(tables: Mapping[str, object]) -> tuple[CapabilityRule, ...]:
    """The user's [models."PATTERN"] tables; every mistake at once."""
    mistakes: list[str] = []
    read = tuple(_rule(pattern, table, mistakes) for pattern, table in tables.items())
    raise_mistakes(
        "what is said of models is wrong",
        mistakes,
        advice='a table [models."PATTERN"] takes tools, schema, context, max_output, quirks, edits',
    )
    return read


@functools.cache
def _builtin() -> tuple[CapabilityRule, ...]:
    return rules(tomllib.loads((resources.files("pawl.models") / "capabilities.toml").read_text("utf-8")))


def _rule(pattern: str, table: object, mistakes: list[str]) -> CapabilityRule:
    given = Fields(f"models.{pattern!r}", table, mistakes)
    ways = tuple(CallStyle)
    tools, schema = given.text("tools", choices=ways), given.text("schema", choices=ways)
    edits = given.texts("edits")
    if unknown := [edit for edit in edits if edit not in tuple(EditBlock)]:
        given.wrong("edits", f"may have {' and '.join(EditBlock)}, not {', '.join(unknown)}")
        edits = ()
    rule = CapabilityRule(
        pattern,
        tools=CallStyle(tools) if tools else None,
        schema=CallStyle(schema) if schema else None,
        context=given.whole("context", least=1),
        max_output=given.whole("max_output", least=1),
        quirks=given.table("quirks"),
        edits=tuple(EditBlock(edit) for edit in edits) if given.has("edits") else None,
    )
    try:
        quirks_of(rule.quirks or {})
    except ConfigError as error:
        given.wrong("quirks", error.message)
    given.close()
    return rule
