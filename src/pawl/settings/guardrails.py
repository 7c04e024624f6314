"""Guardrail presets: named TOML files that become `Guardrails`, checked against the examples they carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources

from pawl.core.errors import ConfigError
from pawl.core.formats import Unreadable, read_toml
from pawl.core.guardrails import Guardrails

DEFAULT = "standard"

_LIMITS = ("files", "lines", "file_bytes", "patch_lines", "line_edits")
_PATHS = ("secret", "not_secret", "copies", "protected", "forbidden", "own")
_EXAMPLES = ("secret", "not_secret", "protected", "not_protected", "forbidden", "not_forbidden", "own", "not_own")
_SECTIONS: Mapping[str, tuple[str, ...]] = {"limits": _LIMITS, "paths": _PATHS, "examples": _EXAMPLES}

Table = Mapping[str, object]


def presets() -> tuple[str, ...]:
    """The names of the presets that come with Pawl."""
    folder = resources.files("pawl.settings") / "guardrails"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def preset(name: str = DEFAULT) -> Guardrails:
    """The preset of that name."""
    return parse(name, _text(name))


def parse(name: str, text: str) -> Guardrails:
    """A preset from its TOML; `extends` names one that comes with Pawl, whose values stand where this has none.

    Every mistake is reported at once.
    """
    sections = _sections(name, text)
    mistakes = list(_mistakes(sections))
    if mistakes:
        raise ConfigError(f"the guardrail preset {name!r} is wrong: " + "; ".join(mistakes), advice=_spelling())
    limits = {key: _number(sections["limits"][key]) for key in _LIMITS}
    paths = {key: _strings(sections["paths"].get(key, [])) for key in _PATHS}
    guardrails = Guardrails(
        name=name,
        files=limits["files"],
        lines=limits["lines"],
        file_bytes=limits["file_bytes"],
        patch_lines=limits["patch_lines"],
        line_edits=limits["line_edits"],
        secret=paths["secret"],
        not_secret=paths["not_secret"],
        copies=paths["copies"],
        protected=paths["protected"],
        forbidden=paths["forbidden"],
        own=paths["own"],
    )
    _check_examples(guardrails, sections["examples"])
    return guardrails


def _text(name: str) -> str:
    if name not in presets():
        raise ConfigError(f"no guardrail preset {name!r}", advice=f"use one of {', '.join(presets())}")
    return (resources.files("pawl.settings") / "guardrails" / f"{name}.toml").read_text("utf-8")


def _sections(name: str, text: str) -> dict[str, dict[str, object]]:
    """The three tables of a preset, laid over those it extends."""
    try:
        table = read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"the guardrail preset {name!r} is not TOML: {error}", advice="mend that line") from error
    extended = table.pop("extends", None)
    merged: dict[str, dict[str, object]] = {section: {} for section in _SECTIONS}
    if extended is not None:
        if extended == name or not isinstance(extended, str):
            raise ConfigError(f"the guardrail preset {name!r} extends {extended!r}", advice="name another preset")
        merged = _sections(extended, _text(extended))
    for section, values in table.items():
        if section not in _SECTIONS or not isinstance(values, dict):
            raise ConfigError(f"the guardrail preset {name!r} has no section {section!r}", advice=_spelling())
        merged[section] = {**merged[section], **values}
    return merged


def _mistakes(sections: Mapping[str, Table]) -> list[str]:
    found = [
        f"{section}.{key} is not a setting"
        for section, known in _SECTIONS.items()
        for key in sections[section]
        if key not in known
    ]
    for key in _LIMITS:
        value = sections["limits"].get(key)
        if type(value) is not int or value < 1:
            found.append(f"limits.{key} must be a whole number above 0, not {value!r}")
    for section in ("paths", "examples"):
        for key, value in sections[section].items():
            if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
                found.append(f"{section}.{key} must be a list of strings, not {value!r}")
    return found


def _check_examples(guardrails: Guardrails, examples: Table) -> None:
    questions: Mapping[str, Callable[[str], bool]] = {
        "secret": guardrails.is_secret,
        "protected": guardrails.is_protected,
        "forbidden": guardrails.never,
        "own": guardrails.is_own,
    }
    wrong = []
    for key in _EXAMPLES:
        word = key.removeprefix("not_")
        for path in _strings(examples.get(key, [])):
            if questions[word](path) == key.startswith("not_"):
                wrong.append(f"{path!r} should{' not' if key.startswith('not_') else ''} be {word}")
    if wrong:
        raise ConfigError(
            f"the guardrail preset {guardrails.name!r} disagrees with its examples: " + "; ".join(wrong),
            advice="mend the patterns in [paths] or the examples",
        )


def _spelling() -> str:
    return "; ".join(f"[{section}] takes {', '.join(keys)}" for section, keys in _SECTIONS.items())


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(value)
