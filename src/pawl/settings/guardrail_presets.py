"""Presets: named TOML files that may extend one another. Guardrails are checked against the examples they carry."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from pawl.core.errors import ConfigError
from pawl.core.guardrails import Guardrails

DEFAULT = "standard"
GUARDRAILS = "guardrails"


def presets(kind: str = GUARDRAILS) -> tuple[str, ...]:
    """The names of the presets that come with Pawl; a kind is a folder."""
    folder = resources.files("pawl.settings") / kind
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def preset_text(name: str, kind: str = GUARDRAILS) -> str:
    if name not in presets(kind):
        raise ConfigError(
            f"no {kind.removesuffix('s')} preset {name!r}", advice=f"use one of {', '.join(presets(kind))}"
        )
    return (resources.files("pawl.settings") / kind / f"{name}.toml").read_text("utf-8")


def preset_tables(text: str, kind: str = GUARDRAILS) -> dict[str, dict[str, Any]]:
    """The tables of a preset, laid over those it extends."""
    own = tomllib.loads(text)
    extended = own.pop("extends", None)
    below = preset_tables(preset_text(extended, kind), kind) if extended else {}
    return {name: {**below.get(name, {}), **own.get(name, {})} for name in {**below, **own}}


def preset(name: str = DEFAULT) -> Guardrails:
    """The guardrails of that name."""
    return parse(name, preset_text(name))


def parse(name: str, text: str) -> Guardrails:
    """Guardrails from their TOML; `extends` names a preset whose values stand where this has none."""
    sections = preset_tables(text)
    paths: dict[str, Any] = {key: tuple(patterns) for key, patterns in sections["paths"].items()}
    guardrails = Guardrails(name=name, **sections["limits"], **paths)
    _check_examples(guardrails, sections["examples"])
    return guardrails


def _check_examples(guardrails: Guardrails, examples: Mapping[str, list[str]]) -> None:
    questions: Mapping[str, Callable[[str], bool]] = {
        "secret": guardrails.is_secret,
        "protected": guardrails.is_protected,
        "forbidden": guardrails.never,
        "own": guardrails.is_own,
    }
    wrong = []
    for key, paths in examples.items():
        word = key.removeprefix("not_")
        is_one = word == key
        wrong += [
            f"{path!r} should{'' if is_one else ' not'} be {word}" for path in paths if questions[word](path) != is_one
        ]
    if wrong:
        raise ConfigError(
            f"the guardrail preset {guardrails.name!r} disagrees with its examples: " + "; ".join(wrong),
            advice="mend the patterns in [paths] or the examples",
        )
