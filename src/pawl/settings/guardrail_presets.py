"""Guardrail presets: named TOML files that become `Guardrails`, checked against the examples they carry."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from pawl.core.errors import ConfigError
from pawl.core.guardrails import Guardrails

DEFAULT = "standard"


def presets() -> tuple[str, ...]:
    """The names of the presets that come with Pawl."""
    folder = resources.files("pawl.settings") / "guardrails"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def preset(name: str = DEFAULT) -> Guardrails:
    """The preset of that name."""
    return parse(name, _text(name))


def parse(name: str, text: str) -> Guardrails:
    """A preset from its TOML; `extends` names one that comes with Pawl, whose values stand where this has none."""
    sections = _sections(text)
    paths: dict[str, Any] = {key: tuple(patterns) for key, patterns in sections["paths"].items()}
    guardrails = Guardrails(name=name, **sections["limits"], **paths)
    _check_examples(guardrails, sections["examples"])
    return guardrails


def _text(name: str) -> str:
    if name not in presets():
        raise ConfigError(f"no guardrail preset {name!r}", advice=f"use one of {', '.join(presets())}")
    return (resources.files("pawl.settings") / "guardrails" / f"{name}.toml").read_text("utf-8")


def _sections(text: str) -> dict[str, dict[str, Any]]:
    """The tables of a preset, laid over those it extends."""
    table = tomllib.loads(text)
    extended = table.pop("extends", None)
    below = _sections(_text(extended)) if extended else {}
    return {
        section: {**below.get(section, {}), **table.get(section, {})} for section in ("limits", "paths", "examples")
    }


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
