"""Repairs that need no search: the recovery map, and its candidates and those of language servers, tried one at a time.

Entries of the map are data and prove themselves when they are loaded.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Generic, TypeVar

from pawl.checks.climb import separated
from pawl.checks.lsp.client import Span
from pawl.checks.lsp.servers import Server, servers
from pawl.checks.lsp.verdicts import Host, answered
from pawl.checks.project_facts import CheckKind, dependencies
from pawl.checks.settings import verify_settings
from pawl.checks.steps import Subject
from pawl.code.languages import is_test
from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import OneOf, Reader
from pawl.repair import recovery_names as names
from pawl.repair import recovery_texts as texts
from pawl.repair.ground import HANGS, PythonGround, RepairGround, is_uncollected
from pawl.repair.model import Mended, Repair, StageBegun
from pawl.repair.recovery_names import import_line, packages
from pawl.repair.sources import RecoveryCandidate, RecoverySituation, Symbols, symbols_of, table
from pawl.workspace.benches import own_python

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


def with_users(
    entries: tuple[RecoveryEntry, ...], tables: object, source: str = "[verify]"
) -> tuple[RecoveryEntry, ...]:
    """A map with a user's entries first; one with a known id takes the place of that."""
    own = entries_of(tables, source)
    replaced = {entry.id for entry in own}
    return (*own, *(entry for entry in entries if entry.id not in replaced))


def recoveries_for(ground: RepairGround, name: str) -> tuple[RecoveryEntry, ...]:
    """The map of a language with the user's entries."""
    return with_users(built_in(name), verify_settings(ground.shop.config).recovery)


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


MOST_ROUNDS = 12
MOST_CANDIDATES = 6
MOST_QUESTIONS = 4
"""How often a language server is asked; each time it is started anew."""


G = TypeVar("G", bound=RepairGround)
S = TypeVar("S")


@dataclass(slots=True)
class Recoverer(Generic[G]):
    """Mends one finding after the other, as far as the recovery map knows how."""

    ground: G
    repairs: list[Repair] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    """Steps for a person."""
    given_up: set[tuple[str, ...]] = field(default_factory=set)

    def waiting(self, findings: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """Those that are still to be tried, as long as there is time."""
        for finding in findings:
            if finding.key not in self.given_up and self.ground.left > 0:
                yield finding

    def advise(self, found: Iterable[RecoveryCandidate]) -> None:
        self.advice += [one.why for one in found if not one.edits and one.why not in self.advice]

    def note(self, repair: Repair, failing: int) -> None:
        self.repairs.append(repair)
        self.ground.listen(Mended(repair=repair, failing=failing))


def as_long_as_better(state: S, mended: Callable[[S], S | None]) -> S:
    """The state after each round that mends something; the number of rounds has a limit."""
    for _ in range(MOST_ROUNDS):
        better = mended(state)
        if better is None:
            break
        state = better
    return state


def repair_by(candidate: RecoveryCandidate, finding: Diagnostic) -> Repair:
    path = candidate.edits[0].path
    line = finding.line if finding.path == path else 0
    return Repair(path=path, line=line, what=candidate.recovery, why=candidate.why)


def places_of(finding: Diagnostic) -> Iterator[Diagnostic]:
    """The finding itself, then where its traceback leads in files that may be edited, innermost first."""
    if not is_test(finding.path):
        yield finding
    for frame in reversed(finding.frames):
        if not is_test(frame.path) and (frame.path, frame.line) != (finding.path, finding.line):
            yield dataclasses.replace(finding, path=frame.path, line=frame.line, column=frame.column)


@dataclass(slots=True)
class PythonRecoverer(Recoverer[PythonGround]):
    """Goes on as long as a candidate makes the finding it is for disappear and breaks nothing."""

    questions: int = 0

    def run(self, verdict: CheckResult) -> CheckResult:
        """The suite's verdict after everything that the map could mend."""
        return as_long_as_better(verdict, self._round)

    def _round(self, verdict: CheckResult) -> CheckResult | None:
        """Mends one finding; None when none can be."""
        sources = self.ground.sources()
        symbols = symbols_of(sources)
        for finding in self.waiting(verdict.findings):
            if not self.ground.aim.wants(finding):
                continue
            for place in places_of(finding):
                for candidate in self.candidates(place, sources, symbols):
                    changed = candidate.applied(sources)
                    with self.ground.trial(changed):
                        after = self.ground.run_tests()
                    if _is_better(after, finding, verdict):
                        self.ground.write_all(changed)
                        self.note(repair_by(candidate, place), len(after.findings))
                        return after
            self.given_up.add(finding.key)
        return None

    def candidates(
        self, place: Diagnostic, sources: Mapping[str, str], symbols: Symbols, *, without_test: bool = False
    ) -> Sequence[RecoveryCandidate]:
        """Proposals of the map and a language server; `without_test` leaves out those that only a test can decide."""
        entries = [entry for entry in recoveries_for(self.ground, "python") if entry.without_test or not without_test]
        found = recover(place, sources, symbols, entries, declared=dependencies(self.ground.bench.files))
        self.advise(found)
        candidates = [one for one in found if self._is_allowed(one)]
        name = undefined_name(place)
        if candidates or name:
            self.ground.listen(StageBegun(name="recover"))
        # One import that is known is tried at once; where there is none or a choice, a language server knows more.
        if name and place.path in sources and len(imports_of(candidates)) != 1:
            undefined = RecoverySituation(finding=place, groups={"name": name}, sources=sources, symbols=symbols)
            candidates = self._advised(undefined, candidates)
        return candidates[:MOST_CANDIDATES]

    def _advised(self, undefined: RecoverySituation, known: list[RecoveryCandidate]) -> list[RecoveryCandidate]:
        if self.questions >= MOST_QUESTIONS:
            return known
        self.questions += 1
        python, (_, package) = own_python()
        found, skipped = advised(self.ground.subject, Host(python=python, package=package), undefined, known)
        if skipped:
            self.questions = MOST_QUESTIONS
            self.ground.notes.append(f"imports were looked up without a language server: {skipped}")
        return found

    def _is_allowed(self, candidate: RecoveryCandidate) -> bool:
        """Tests are never edited, and only what the user points at, if they do; without edits it is advice."""
        sources = self.ground.aim.sources
        return bool(candidate.edits) and not any(
            is_test(edit.path) or (sources and edit.path not in sources) for edit in candidate.edits
        )


def _is_better(after: CheckResult, finding: Diagnostic, before: CheckResult) -> bool:
    """The finding is gone and nothing new appeared, except in files whose tests could not be seen before."""
    if after.standing is Status.SKIPPED or any(one.key == finding.key for one in after.findings):
        return False
    strays = {one.code for one in after.findings if not one.test} - {one.code for one in before.findings}
    if HANGS in strays or (strays and not any(map(is_uncollected, after.findings))):
        return False
    hidden = {_file(one) for one in before.findings if not one.test or one.test == _file(one)}
    known = {(one.test or one.key) for one in before.findings}
    return all((one.test or one.key) in known or _file(one) in hidden or not one.test for one in after.findings)


def _file(finding: Diagnostic) -> str:
    return finding.test.split("::")[0] if finding.test else finding.path


MOST_FIXES = 3
_IMPORT = re.compile(r"\s*(?P<line>from (?P<source>[\w.]+) import \w+|import (?P<module>[\w.]+))\s*")
_IMPORTED = re.compile(r"^[ \t]*(?:from|import)\s+(\w+)", re.MULTILINE)


def imports_of(candidates: Sequence[RecoveryCandidate]) -> list[RecoveryCandidate]:
    """Those that add one import and change nothing else."""
    return [one for one in candidates if len(one.edits) == 1 and _IMPORT.fullmatch(one.edits[0].new)]


def advised(
    subject: Subject, host: Host, undefined: RecoverySituation, known: Sequence[RecoveryCandidate]
) -> tuple[list[RecoveryCandidate], str]:
    """The map's candidates and a language server's, in the order to try them; or why no server has a say in it."""
    path = undefined.finding.path
    chosen = next((one for one in servers() if one.imports and one.language(path)), None)
    if chosen is None:
        return list(known), f"no language server for {path!r}"
    own = [one for one in known if one.edits and all(edit.path == path for edit in one.edits)]
    question = {
        "path": path,
        "line": undefined.finding.line,
        "name": undefined.groups["name"],
        "trials": [[(edit.start, edit.end, edit.new) for edit in one.edits] for one in own],
    }
    answer = answered(subject, host, chosen, question)
    if "skipped" in answer:
        return list(known), answer["skipped"]
    found = _fixes(chosen, undefined, answer["fixes"], _allowed(subject, undefined))
    imports = imports_of(known)
    mended = [one for one, mends in zip(own, answer["trials"], strict=False) if mends]
    good = [one for one in imports if one in mended]
    others = [one for one in known if one not in imports]
    doubtful = [one for one in imports if one not in mended]
    ordered = [*good, *found, *others, *doubtful]
    return list({one.edits: one for one in reversed(ordered)}.values())[::-1], ""


def _allowed(subject: Subject, undefined: RecoverySituation) -> frozenset[str]:
    """Where a name may come from: the project, the standard library, and packages that the project says it uses."""
    needed = dependencies(subject.files)
    declared = {name.replace("-", "_") for name in needed}
    declared |= {module for module, package in packages().items() if package.lower() in needed}
    imported = {root for text in undefined.sources.values() for root in _IMPORTED.findall(text)}
    return frozenset({*undefined.symbols.modules, *sys.stdlib_module_names, *declared, *imported})


def _fixes(
    chosen: Server, undefined: RecoverySituation, fixes: Sequence[Mapping[str, Any]], allowed: frozenset[str]
) -> list[RecoveryCandidate]:
    """The server's imports from allowed places, those of the project first."""
    source = undefined.source
    found: list[tuple[int, RecoveryCandidate]] = []
    for spans in ([Span(*span) for span in fix["spans"]] for fix in fixes):
        # A quick fix that adds one import; Pawl puts it where the file has its imports.
        match = _IMPORT.fullmatch(spans[0].new) if len(spans) == 1 and spans[0].start == spans[0].end else None
        if match is None:
            continue
        root = (match["source"] or match["module"]).partition(".")[0]
        if root in allowed:
            rank = 0 if root in undefined.symbols.modules else 1 if root in sys.stdlib_module_names else 2
            candidate = import_line(source, match["line"])
            why = f"{candidate.why} ({chosen.name})"
            found.append((rank, dataclasses.replace(candidate, why=why, recovery=f"{chosen.name}.import")))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])][:MOST_FIXES]


Found = Mapping[CheckKind, tuple[Diagnostic, ...]]


@dataclass(slots=True)
class UnseenRecoverer(PythonRecoverer):
    """Takes an edit only where it is the one that makes the finding go away, since no test speaks for it."""

    mended: list[Diagnostic] = field(default_factory=list)
    unmended: list[Diagnostic] = field(default_factory=list)
    """The errors of sources that do not compile."""

    def read_and_mend(self) -> None:
        found = as_long_as_better(self._read(), self._one_mended)
        self.unmended = [one for one in found[CheckKind.SYNTAX] if self._is_editable(one.path)]

    def _read(self) -> Found:
        """Findings from reading the sources, first whether they compile."""
        verifier, bench = self.ground.verifier, self.ground.bench
        return {
            kind: tuple(one for result in verifier.check_bench((kind,), bench.files, bench) for one in result.findings)
            for kind in (CheckKind.SYNTAX, CheckKind.TYPES)
        }

    def _one_mended(self, found: Found) -> Found | None:
        """Mends one finding; None when none can be."""
        sources = self.ground.sources()
        for kind, findings in found.items():
            for finding in self.waiting(findings):
                if not self._is_editable(finding.path):
                    continue
                self.given_up.add(finding.key)
                better = self._mend(kind, finding, sources, found)
                if better is not None:
                    return better
        return None

    def _mend(self, kind: CheckKind, finding: Diagnostic, sources: Mapping[str, str], found: Found) -> Found | None:
        symbols = symbols_of(sources)
        candidates = self.candidates(finding, sources, symbols, without_test=kind is not CheckKind.SYNTAX)
        good: dict[str, tuple[RecoveryCandidate, Found]] = {}
        for candidate in candidates:
            after = self._tried(candidate, kind, finding, found)
            if after is not None:
                # The same for files that differ in layout only.
                texts = sorted(candidate.applied(sources).items())
                good.setdefault(" ".join(path + ast.dump(ast.parse(text)) for path, text in texts), (candidate, after))
        if len(good) != 1:
            if good:
                ways = "; ".join(candidate.why for candidate, _ in good.values())
                place = f"{finding.path}:{finding.line}"
                self.ground.notes.append(f"{place} could be fixed in {len(good)} ways, and no test decides: {ways}")
            return None
        ((candidate, after),) = good.values()
        self.ground.write_all(candidate.applied(sources))
        self.mended.append(finding)
        self.note(Repair(path=finding.path, line=finding.line, what=candidate.recovery, why=candidate.why), 0)
        return after

    def _is_editable(self, path: str) -> bool:
        """Tests are never edited, and only what the user points at, if they do."""
        named = self.ground.aim.sources
        return path.endswith((".py", ".pyi")) and not is_test(path) and (not named or path in named)

    def _tried(self, candidate: RecoveryCandidate, kind: CheckKind, finding: Diagnostic, before: Found) -> Found | None:
        """The findings with it, if they are better; it is taken away again."""
        changed = candidate.applied(self.ground.sources())
        with self.ground.trial(changed):
            after = self._read()
            # What a file that does not compile hides could not be seen before.
            hidden = changed if kind is CheckKind.SYNTAX else ()
            every = [one for findings in after.values() for one in findings]
            new, _ = separated(every, [one for findings in before.values() for one in findings])
            if any(one.path not in hidden for one in new) or len(after[kind]) >= len(before[kind]):
                return None
            if any(one.key == finding.key for one in new) or self.ground.run_tests().standing is not Status.PASS:
                return None
            return after
