"""From a finding to candidate edits by the recovery map. Candidates are guesses: only verification makes one true."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from pawl.core.finding import Finding
from pawl.verify.recoveries import coroutines, imports, layout, modules, names, scripts
from pawl.verify.recoveries.edit import Candidate, Situation
from pawl.verify.recoveries.symbols import Symbols, symbols_of
from pawl.verify.recovery_map import SAY, Entry, built_in, entries_of, load, merged

Recovery = Callable[[Situation], Iterator[Candidate]]

RECOVERIES: Mapping[str, Recovery] = {
    "define-name": names.define_name,
    "find-module": modules.find_module,
    "import-another": imports.import_another,
    "import-inside": imports.import_inside,
    "move-future-import": imports.move_future_import,
    "rename-attribute": names.rename_attribute,
    "rename-keyword": names.rename_keyword,
    "add-self": names.add_self,
    "make-instance": names.make_instance,
    "declare-outer": names.declare_outer,
    "add-await": coroutines.add_await,
    "make-async": coroutines.make_async,
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
def python_map() -> tuple[Entry, ...]:
    return load(built_in("python"), "python", RECOVERIES.keys())


@functools.cache
def javascript_map() -> tuple[Entry, ...]:
    return load(built_in("javascript"), "javascript", RECOVERIES.keys())


def with_users(entries: tuple[Entry, ...], tables: object, source: str) -> tuple[Entry, ...]:
    """A map with the entries of a user's tables."""
    return merged(entries, entries_of(tables, source, RECOVERIES.keys()))


def undefined_name(finding: Finding) -> str:
    """The name that a finding says is not defined; empty when it says something else."""
    return next(
        (groups["name"] for entry, groups in _matching(finding, python_map()) if entry.recovery == "define-name"), ""
    )


def beyond(finding: Finding, entries: Iterable[Entry]) -> tuple[Entry, Mapping[str, str]] | None:
    """The entry that says that the code is not to blame, and what the message names."""
    return next((pair for pair in _matching(finding, entries) if pair[0].outside), None)


def _matching(finding: Finding, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Mapping[str, str]]]:
    for entry in entries:
        groups = entry.match(finding.message)
        if groups is not None:
            yield entry, groups


def recover(
    finding: Finding,
    sources: Mapping[str, str],
    symbols: Symbols | None = None,
    entries: Iterable[Entry] | None = None,
    *,
    declared: Collection[str] = (),
) -> tuple[Candidate, ...]:
    """Candidates, first those after which the files compile. None breaks a file that compiles.

    `declared` are the packages that the project says it needs.
    """
    known = symbols if symbols is not None else symbols_of(sources)
    found: dict[Candidate, bool] = {}
    for entry in entries if entries is not None else python_map():
        groups = entry.match(finding.message)
        if groups is None:
            continue
        advice = entry.advice.format(**groups)
        if entry.recovery == SAY:
            found[Candidate(why=advice, recovery=entry.id)] = True
            continue
        situation = Situation(
            finding=finding, groups=groups, sources=sources, symbols=known, advice=advice, declared=frozenset(declared)
        )
        for candidate in RECOVERIES[entry.recovery](situation):
            fits = _fits(candidate, sources)
            if fits is not None:
                found.setdefault(dataclasses.replace(candidate, recovery=entry.id), fits)
    return tuple(sorted(found, key=lambda candidate: not found[candidate]))


def _fits(candidate: Candidate, sources: Mapping[str, str]) -> bool | None:
    """Whether every changed file compiles; None for a candidate that changes nothing or leads no further."""
    whole = True
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


def own_entries(tables: object) -> tuple[Entry, ...]:
    """The user's entries of the map; one with a known id takes the place of that."""
    return entries_of(tables, "[verify]", RECOVERIES.keys())
