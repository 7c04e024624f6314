"""The test frameworks as values, read from their TOML files and checked when loaded."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pawl.app.config import framework_folders
from pawl.core import bounded
from pawl.core.errors import ConfigError
from pawl.verify.parsers.registry import PARSERS

ORDER = ("pytest", "unittest", "vitest", "jest", "node", "mocha", "rspec", "cargo", "go")
"""With equal evidence the earlier one is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What gives a framework away."""

    command: tuple[re.Pattern[str], ...]
    config: tuple[str, ...]
    sections: tuple[tuple[str, re.Pattern[str]], ...]
    dependencies: frozenset[str]
    tests: tuple[str, ...]
    """How test files are named: a file name's pattern, or a path's when it holds a slash."""
    marks: tuple[re.Pattern[str], ...]
    """Lines in test files."""
    output: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How chosen tests become arguments: one by one, or as one pattern."""

    each: tuple[str, ...] = ()
    pattern: str = ""
    join: str = "|"
    separator: str = ""
    """Stands between file, suites and name in an id; the file goes, a blank takes the place of the rest."""
    first_part: str = ""
    """Only what stands before it in an id can be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    name: str
    language: str
    parser: str
    signs: Signs
    all_tests: tuple[str, ...]
    one_file: tuple[str, ...]
    some_tests: tuple[str, ...]
    selection: Selection
    machine_arguments: tuple[str, ...] = ()
    """Makes its report readable for programs; empty when it has no such report built in."""
    machine_parser: str = ""


def framework(text: str, source: str) -> Framework:
    """A framework from its TOML text; `source` names it in errors."""
    try:
        data = tomllib.loads(text)
        return _framework(data)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, re.error) as error:
        raise ConfigError(
            f"the test framework {source!r} cannot be used: {error}",
            advice="compare it with the frameworks that come with Pawl",
        ) from error


def _framework(data: Mapping[str, Any]) -> Framework:
    detect, commands = data["detect"], data["commands"]
    machine = commands.get("machine", {})
    parser = data["parser"]
    machine_parser = machine.get("parser", parser)
    for name in (parser, machine_parser):
        if name not in PARSERS:
            raise ValueError(f"there is no parser {name!r}")
    return Framework(
        name=data["name"],
        language=data["language"],
        parser=parser,
        signs=Signs(
            command=_patterns(detect["command"]),
            config=tuple(detect["config"]),
            sections=tuple((path, re.compile(line, re.MULTILINE)) for path, line in detect["sections"]),
            dependencies=frozenset(detect["dependencies"]),
            tests=tuple(detect["tests"]),
            marks=_patterns(detect["marks"]),
            output=_patterns(detect["output"]),
        ),
        all_tests=tuple(commands["all"]),
        one_file=tuple(commands["file"]),
        some_tests=tuple(commands["some"]),
        selection=Selection(**{name: _frozen(value) for name, value in commands["select"].items()}),
        machine_arguments=tuple(machine.get("arguments", ())),
        machine_parser=machine_parser,
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _patterns(lines: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(line, re.MULTILINE) for line in lines)


def frameworks() -> tuple[Framework, ...]:
    """Every framework, in the order of preference: the user's before Pawl's; one of a known name takes its place."""
    own = {one.name: one for folder in framework_folders for one in _of(folder)}
    return (*own.values(), *(one for one in _built_in() if one.name not in own)) if own else _built_in()


@functools.cache
def _of(folder: Path) -> tuple[Framework, ...]:
    """One in each file."""
    made = []
    for path in sorted(folder.glob("*.toml")):
        try:
            made.append(framework(bounded.read_text(path), str(path)))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{str(path)!r} cannot be read: {error}", advice="mend or remove the file") from error
    return tuple(made)


@functools.cache
def _built_in() -> tuple[Framework, ...]:
    folder = resources.files("pawl.verify.frameworks")
    return tuple(framework((folder / f"{name}.toml").read_text(encoding="utf-8"), name) for name in ORDER)


def named(name: str) -> Framework:
    for known in frameworks():
        if known.name == name:
            return known
    raise ConfigError(
        f"there is no test framework {name!r}", advice=f"known are {', '.join(known.name for known in frameworks())}"
    )
