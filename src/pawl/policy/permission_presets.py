"""Permission presets: named TOML files of defaults and rules, with examples of what they say."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from pawl.core.errors import ConfigError
from pawl.core.permission import Ruling
from pawl.policy.permission_rules import Rule, parse_rule

DEFAULT = "caged"
"""Whoever works on a confined bench need not be asked at each step: nothing there is the user's yet."""

Table = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What is said where no rule says anything, by kind of tool."""

    reads: Ruling
    writes: Ruling
    runs: Ruling
    caged: Ruling
    """Of a shell command in the sandbox without a network."""
    doubtful: Ruling
    """Of one that cannot be read for certain, there, where no rule of the user's could be broken."""
    delegates: Ruling
    other: Ruling
    """Of a tool that is not Pawl's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    name: str
    defaults: Defaults
    deny: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    allow: tuple[Rule, ...]
    examples: Mapping[Ruling, tuple[str, ...]]
    """Commands, and what must be said of them."""


def presets() -> tuple[str, ...]:
    """The names of the presets that come with Pawl."""
    folder = resources.files("pawl.policy") / "permissions"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


@functools.cache
def preset(name: str = DEFAULT) -> Preset:
    """The preset of that name."""
    return parse(name, _table(name))


def parse(name: str, table: Table) -> Preset:
    rules = table["rules"]
    try:
        defaults = Defaults(**{key: Ruling(str(value)) for key, value in table["defaults"].items()})
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the permission preset {name!r} is wrong: {error}", advice="each default is deny, ask or allow"
        ) from error
    source = f"the preset {name}"
    return Preset(
        name=name,
        defaults=defaults,
        deny=_rules(rules.get("deny", []), source),
        ask=_rules(rules.get("ask", []), source),
        allow=_rules(rules.get("allow", []), source),
        examples={ruling: _strings(table["examples"].get(ruling, [])) for ruling in Ruling},
    )


def _rules(texts: object, source: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, source) for text in _strings(texts))


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"a permission preset has {value!r} in the place of texts", advice="write a list of texts")
    return tuple(value)


def _table(name: str) -> Table:
    if name not in presets():
        raise ConfigError(f"there is no permission preset {name!r}", advice=f"use one of {', '.join(presets())}")
    file = tomllib.loads((resources.files("pawl.policy") / "permissions" / f"{name}.toml").read_text("utf-8"))
    extended = file.pop("extends", None)
    below: Table = _table(extended) if extended else {}
    merged = {section: {**below.get(section, {}), **file.get(section, {})} for section in ("defaults", "rules")}
    return {**merged, "examples": file.get("examples", {})}
