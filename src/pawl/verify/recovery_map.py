"""The recovery map: which recovery a finding's message calls for. Entries are data and prove themselves when loaded."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.core.errors import ConfigError

SAY = "say"
"""The recovery that has no edit to propose, only advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    id: str
    patterns: tuple[re.Pattern[str], ...]
    recovery: str
    examples: tuple[str, ...]
    advice: str = ""
    outside: bool = False
    """What is missing lies outside of the code; where no recovery helps, no search for a patch will."""
    without_test: bool = False
    """What a type checker says is enough: it is mended also where no test fails."""
    fixes: tuple[str, ...] = ()
    """The TypeScript compiler's code fixes that may be tried."""

    def match(self, message: str) -> Mapping[str, str] | None:
        """What the message names, by the first pattern that finds something; None when none does."""
        for pattern in self.patterns:
            found = pattern.search(message)
            if found:
                return {name: value for name, value in found.groupdict().items() if value is not None}
        return None


def load(text: str, source: str, recoveries: Collection[str]) -> tuple[Entry, ...]:
    """Entries from a TOML text. Refused as a whole when one does not hold: its examples are its proof."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the recovery map {source!r} is not TOML: {error}", advice="correct the file") from error
    return entries_of(data.get("recovery", []), source, recoveries)


def entries_of(tables: Any, source: str, recoveries: Collection[str]) -> tuple[Entry, ...]:
    """Entries from tables, each of which proves itself by its examples."""
    if not isinstance(tables, list) or not all(isinstance(one, Mapping) for one in tables):
        raise ConfigError(f"the recovery map {source!r} is no array of tables", advice="write [[recovery]] tables")
    entries = tuple(_entry(entry, source, recoveries) for entry in tables)
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise _wrong(source, entry.id, "the id is used twice", "give each entry an id of its own")
        seen.add(entry.id)
    return entries


def _entry(data: Mapping[str, Any], source: str, recoveries: Collection[str]) -> Entry:
    name = str(data.get("id", "without an id"))
    missing = [key for key in ("id", "patterns", "recovery", "examples") if not data.get(key)]
    if missing:
        raise _wrong(source, name, f"it lacks {', '.join(missing)}", "add what is missing")
    try:
        patterns = tuple(re.compile(pattern, re.MULTILINE) for pattern in data["patterns"])
    except re.error as error:
        raise _wrong(source, name, f"a pattern is not a regular expression: {error}", "correct it") from error
    entry = Entry(
        id=name,
        patterns=patterns,
        recovery=str(data["recovery"]),
        examples=tuple(data["examples"]),
        advice=str(data.get("advice", "")),
        outside=bool(data.get("outside", False)),
        without_test=bool(data.get("without_test", False)),
        fixes=tuple(data.get("fixes", ())),
    )
    if entry.recovery not in (*recoveries, SAY):
        known = ", ".join(sorted((*recoveries, SAY)))
        raise _wrong(source, name, f"there is no recovery {entry.recovery!r}", f"known are {known}")
    if entry.recovery == SAY and not entry.advice:
        raise _wrong(source, name, "it has nothing to say", "add an advice")
    _check_examples(entry, source)
    return entry


def _check_examples(entry: Entry, source: str) -> None:
    for example in entry.examples:
        groups = entry.match(example)
        if groups is None:
            raise _wrong(source, entry.id, f"no pattern finds its example {example!r}", "correct one of the two")
        try:
            entry.advice.format(**groups)
        except (KeyError, IndexError) as error:
            raise _wrong(source, entry.id, f"its advice names {error}, which no pattern does", "correct it") from error
    for pattern in entry.patterns:
        if not any(pattern.search(example) for example in entry.examples):
            raise _wrong(source, entry.id, f"no example shows its pattern {pattern.pattern!r}", "add an example")


def _wrong(source: str, entry: str, what: str, advice: str) -> ConfigError:
    return ConfigError(f"the recovery map {source!r}, entry {entry!r}: {what}", advice=advice)


def merged(entries: Iterable[Entry], users: Iterable[Entry]) -> tuple[Entry, ...]:
    """The user's entries first; those with a known id take its place."""
    own = tuple(users)
    replaced = {entry.id for entry in own}
    return (*own, *(entry for entry in entries if entry.id not in replaced))


@functools.cache
def built_in(name: str) -> str:
    """The text of a map that comes with Pawl."""
    return (resources.files("pawl.verify.recovery") / f"{name}.toml").read_text(encoding="utf-8")
