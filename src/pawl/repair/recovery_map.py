"""The recovery map: which recovery a finding's message calls for. Entries are data and prove themselves when loaded."""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated

from pawl.core.diagnostic import Diagnostic
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import OneOf, Reader
from pawl.repair import recovery_names as names
from pawl.repair import recovery_texts as texts
from pawl.repair.sources import RecoveryCandidate, RecoverySituation, Symbols, symbols_of, table

SAY = "say"
"""The recovery that has no edit to propose, only advice."""
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
    "indent": texts.indent,
    "expand-tabs": texts.expand_tabs,
    "add-colon": texts.add_colon,
    "balance-brackets": texts.balance_brackets,
    "close-string": texts.close_string,
    "compare": texts.compare,
    "add-comma": texts.add_comma,
    "call-with-parentheses": texts.call_with_parentheses,
    "parenthesize-exceptions": texts.parenthesize_exceptions,
    "plain-characters": texts.plain_characters,
    "other-languages": texts.other_languages,
    "rename-suggested": texts.rename_suggested,
    "import-from-project": texts.import_from_project,
    "relative-module": texts.relative_module,
    "type-arguments": texts.type_arguments,
    "insert-expected": texts.insert_expected,
    "make-function-async": texts.make_async,
    "code-fix": lambda situation: iter(()),
    SAY: lambda situation: iter((RecoveryCandidate(why=situation.advice),)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEntry:
    id: str
    patterns: tuple[re.Pattern[str], ...]
    recovery: Annotated[str, OneOf(tuple(RECOVERIES))]
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

    def mistakes(self) -> Iterator[str]:
        """Reasons why its examples do not prove it."""
        if self.recovery == SAY and not self.advice:
            yield "has nothing to say: add an advice"
        for example in self.examples:
            groups = self.match(example)
            if groups is None:
                yield f"has no pattern that finds its example {example!r}"
                continue
            try:
                self.advice.format(**groups)
            except (KeyError, IndexError) as error:
                yield f"has an advice that names {error}, which no pattern does"
        for pattern in self.patterns:
            if not any(pattern.search(example) for example in self.examples):
                yield f"has no example that shows its pattern {pattern.pattern!r}"


def entries_of(tables: object, source: str) -> tuple[RecoveryEntry, ...]:
    """Entries from tables, refused as a whole when one does not hold."""
    reader = Reader()
    entries: tuple[RecoveryEntry, ...] = reader.value(tuple[RecoveryEntry, ...], tables, "recovery") or ()
    names = Counter(entry.id for entry in entries)
    for entry in entries:
        for mistake in entry.mistakes():
            reader.wrong(entry.id, mistake)
        if names[entry.id] > 1:
            reader.wrong(entry.id, "is used twice")
    reader.check(source, advice="correct the [[recovery]] tables")
    return entries


@functools.cache
def built_in(name: str) -> tuple[RecoveryEntry, ...]:
    """A map that comes with Pawl."""
    return entries_of(table(name)["recovery"], name)


def python_map() -> tuple[RecoveryEntry, ...]:
    return built_in("python")


def javascript_map() -> tuple[RecoveryEntry, ...]:
    return built_in("javascript")


def with_users(
    entries: tuple[RecoveryEntry, ...], tables: object, source: str = "[verify]"
) -> tuple[RecoveryEntry, ...]:
    """A map with a user's entries first; one with a known id takes the place of that."""
    own = entries_of(tables, source)
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
