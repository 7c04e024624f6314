"""The recovery map: which recovery a finding's message calls for. Entries are data and prove themselves when loaded."""

from __future__ import annotations

import dataclasses
import functools
import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import ConfigError
from pawl.repair.recoveries import layout, names, scripts
from pawl.repair.recoveries.source import RecoveryCandidate, RecoverySituation, Symbols, symbols_of, table

SAY = "say"
"""The recovery that has no edit to propose, only advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEntry:
    id: str
    patterns: tuple[re.Pattern[str], ...]
    recovery: str
    examples: tuple[str, ...]
    advice: str = ""
    outside: bool = False
    """The missing thing lies outside of the code; where no recovery helps, no search for a patch will."""
    without_test: bool = False
    """The word of a type checker is enough: mended also where no test fails."""
    fixes: tuple[str, ...] = ()
    """The TypeScript compiler's code fixes that may be tried."""

    def match(self, message: str) -> Mapping[str, str] | None:
        """The names in the message, by the first pattern that finds something; None when none does."""
        for pattern in self.patterns:
            found = pattern.search(message)
            if found:
                return {name: value for name, value in found.groupdict().items() if value is not None}
        return None


def load(text: str, source: str, recoveries: Collection[str]) -> tuple[RecoveryEntry, ...]:
    """Entries from a TOML text. Refused as a whole when one does not hold: its examples are its proof."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the recovery map {source!r} is not TOML: {error}", advice="correct the file") from error
    return entries_of(data.get("recovery", []), source, recoveries)


def entries_of(tables: Any, source: str, recoveries: Collection[str]) -> tuple[RecoveryEntry, ...]:
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


def _entry(data: Mapping[str, Any], source: str, recoveries: Collection[str]) -> RecoveryEntry:
    name = str(data.get("id", "without an id"))
    missing = [key for key in ("id", "patterns", "recovery", "examples") if not data.get(key)]
    if missing:
        raise _wrong(source, name, f"it lacks {', '.join(missing)}", "add what is missing")
    try:
        patterns = tuple(re.compile(pattern, re.MULTILINE) for pattern in data["patterns"])
    except re.error as error:
        raise _wrong(source, name, f"a pattern is not a regular expression: {error}", "correct it") from error
    entry = RecoveryEntry(
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


def _check_examples(entry: RecoveryEntry, source: str) -> None:
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


Recovery = Callable[[RecoverySituation], Iterator[RecoveryCandidate]]

RECOVERIES: Mapping[str, Recovery] = {
    "define-name": names.define_name,
    "find-module": names.find_module,
    "import-another": names.import_another,
    "import-inside": names.import_inside,
    "move-future-import": names.move_future_import,
    "rename-attribute": names.rename_attribute,
    "rename-keyword": names.rename_keyword,
    "add-self": names.add_self,
    "make-instance": names.make_instance,
    "declare-outer": names.declare_outer,
    "add-await": names.add_await,
    "make-async": names.make_async,
    "indent": layout.indent,
    "expand-tabs": layout.expand_tabs,
    "add-colon": layout.add_colon,
    "balance-brackets": layout.balance_brackets,
    "close-string": layout.close_string,
    "compare": layout.compare,
    "add-comma": layout.add_comma,
    "call-with-parentheses": layout.call_with_parentheses,
    "parenthesize-exceptions": layout.parenthesize_exceptions,
    "plain-characters": layout.plain_characters,
    "other-languages": layout.other_languages,
    "rename-suggested": scripts.rename_suggested,
    "import-from-project": scripts.import_from_project,
    "relative-module": scripts.relative_module,
    "type-arguments": scripts.type_arguments,
    "insert-expected": scripts.insert_expected,
    "make-function-async": scripts.make_async,
    "code-fix": lambda situation: iter(()),
}


@functools.cache
def built_in(name: str) -> tuple[RecoveryEntry, ...]:
    """A map that comes with Pawl."""
    return entries_of(table(name)["recovery"], name, RECOVERIES.keys())


def python_map() -> tuple[RecoveryEntry, ...]:
    return built_in("python")


def javascript_map() -> tuple[RecoveryEntry, ...]:
    return built_in("javascript")


def with_users(
    entries: tuple[RecoveryEntry, ...], tables: object, source: str = "[verify]"
) -> tuple[RecoveryEntry, ...]:
    """A map with a user's entries first; one with a known id takes the place of that."""
    own = entries_of(tables, source, RECOVERIES.keys())
    replaced = {entry.id for entry in own}
    return (*own, *(entry for entry in entries if entry.id not in replaced))


def undefined_name(finding: Diagnostic) -> str:
    """The name that a finding says is not defined; empty when it says something else."""
    return next(
        (groups["name"] for entry, groups in _matching(finding, python_map()) if entry.recovery == "define-name"), ""
    )


def beyond(finding: Diagnostic, entries: Iterable[RecoveryEntry]) -> tuple[RecoveryEntry, Mapping[str, str]] | None:
    """The entry that says that the code is not to blame, and what the message names."""
    return next((pair for pair in _matching(finding, entries) if pair[0].outside), None)


def _matching(
    finding: Diagnostic, entries: Iterable[RecoveryEntry]
) -> Iterator[tuple[RecoveryEntry, Mapping[str, str]]]:
    for entry in entries:
        groups = entry.match(finding.message)
        if groups is not None:
            yield entry, groups


def recover(
    finding: Diagnostic,
    sources: Mapping[str, str],
    symbols: Symbols | None = None,
    entries: Iterable[RecoveryEntry] | None = None,
    *,
    declared: Collection[str] = (),
) -> tuple[RecoveryCandidate, ...]:
    """Candidates, first those after which the files compile. None breaks a file that compiles.

    `declared` are the packages that the project says it needs.
    """
    known = symbols if symbols is not None else symbols_of(sources)
    found: dict[RecoveryCandidate, bool] = {}
    for entry in entries if entries is not None else python_map():
        groups = entry.match(finding.message)
        if groups is None:
            continue
        advice = entry.advice.format(**groups)
        if entry.recovery == SAY:
            found[RecoveryCandidate(why=advice, recovery=entry.id)] = True
            continue
        situation = RecoverySituation(
            finding=finding, groups=groups, sources=sources, symbols=known, advice=advice, declared=frozenset(declared)
        )
        for candidate in RECOVERIES[entry.recovery](situation):
            fits = _fits(candidate, sources)
            if fits is not None:
                found.setdefault(dataclasses.replace(candidate, recovery=entry.id), fits)
    return tuple(sorted(found, key=lambda candidate: not found[candidate]))


def _fits(candidate: RecoveryCandidate, sources: Mapping[str, str]) -> bool | None:
    """Whether every changed file compiles; None for one that changes nothing, or leads no further."""
    whole = True
    if any(edit.path not in sources for edit in candidate.edits):
        return None
    for path, text in candidate.applied(sources).items():
        if text == sources[path]:
            return None
        if not path.endswith((".py", ".pyi")):
            continue
        before, after = _error_line(sources[path]), _error_line(text)
        if after is not None and (before is None or after <= before):
            return None
        whole = whole and after is None
    return whole


def _error_line(text: str) -> int | None:
    """The line of the first error that compiling finds, such as a `return` outside a function; None without one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "candidate", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError):
        return 0
    return None
