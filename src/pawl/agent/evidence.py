"""The evidence for a change and whether it is enough: the checks count, the words of a model do not.

A change that takes away from tests proves nothing: a test that is gone, fewer assertions in one, a new skip.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pawl.core.change import EMPTY, BlobReader, Change, ChangeSet, Node, NodeKind
from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestCounts
from pawl.core.formats import Unreadable, read_python
from pawl.core.tiers import EscalationEnd

if TYPE_CHECKING:
    from pawl.checks.verifier import Verifier


MOST_TOLD = 20
MOST_CHARACTERS = 6_000
"""Of what a model is told about a failed verification."""
_MESSAGE_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """One verification: the ladder's verdicts with and without the change, and what became of the tests themselves."""

    digest: str
    """Of the change set that was verified."""
    before: CheckResult
    """Of the tests, without the change."""
    verdicts: tuple[CheckResult, ...]
    weakened: tuple[str, ...] = ()
    shadowing: tuple[str, ...] = ()
    """Changes that take the place of what runs the tests: whatever these then say, it proves nothing."""

    @property
    def tests(self) -> CheckResult | None:
        return next((verdict for verdict in self.verdicts if verdict.step == "tests"), None)


def evidence_for(changes: ChangeSet, verifier: Verifier, before: CheckResult) -> Verification:
    """Verifies the change; `before` are the tests without it."""
    report, blobs = verifier.verify(changes, (before,)), verifier.shop.store.blobs
    return Verification(
        digest=report.digest,
        before=before,
        verdicts=report.verdicts,
        weakened=tuple(line for change in changes for line in _weakened_by(change, blobs)),
        shadowing=report.shadowing,
    )


def _weakened_by(change: Change, blobs: BlobReader) -> tuple[str, ...]:
    def text(node: Node | None) -> str | None:
        return None if node is None or node.blob is None else blobs.get(node.blob).decode("utf-8", "replace")

    if any(node is not None and node.kind is NodeKind.DIRECTORY for node in (change.before, change.after)):
        return ()
    return weakened(change.path, text(change.before), text(change.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What the request wants of the checks, beyond that nothing gets worse."""

    all_tests: bool = False
    """Every test is to pass, also those that failed before."""
    tests: tuple[str, ...] = ()
    """Tests that are to pass, by name or id as the request has them: each means that test, not its file."""
    files: tuple[str, ...] = ()
    """Files of tests whose tests are all to pass."""
    left_out: tuple[str, ...] = ()
    """Tests that the request lets fail."""
    named: str = ""
    """The words of the request: a failing test whose title they hold is to pass."""
    tests_may_change: bool = False
    tests_must_run: bool = False
    """The user named the command that runs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVerdict:
    refused: tuple[str, ...]
    """Why it is not accepted; empty when it is."""
    notes: tuple[str, ...] = ()
    """What the user should know all the same."""
    findings: tuple[Diagnostic, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        return not self.refused


def judged(checked: Verification, wanted: Requirements) -> ChangeVerdict:
    """Whether the change may be delivered."""
    refused: list[str] = list(checked.shadowing)
    notes: list[str] = []
    findings: list[Diagnostic] = []
    for verdict in checked.verdicts:
        if verdict.standing is Status.FAIL:
            refused.append(f"{verdict.step}: {verdict.reason}")
            findings += verdict.findings
    tests = checked.tests
    if tests is not None:
        left = to_pass(tests.old, wanted)
        if left and tests.standing is not Status.FAIL:
            refused.append(
                f"tests: {_amount(len(left), 'test')} that failed before {'fail' if left[1:] else 'fails'} still"
            )
            findings += left
        elif tests.old:
            notes.append(
                f"{_amount(len(tests.old), 'test')} failed before and {'fail' if tests.old[1:] else 'fails'} still"
            )
    fewer = [*_fewer(checked.before.counts, tests.counts if tests else None), *checked.weakened]
    (notes if wanted.tests_may_change else refused).extend(fewer)
    if tests is None or tests.standing is Status.SKIPPED:
        unrun = f"no test was run: {tests.reason if tests else 'there is none'}"
        (refused if wanted.tests_must_run else notes).append(unrun)
    return ChangeVerdict(refused=tuple(refused), notes=tuple(notes), findings=tuple(findings))


def told(judgement: ChangeVerdict) -> str:
    """What a model is told, so that it mends it: the reasons, then the findings, bounded and in whole lines."""
    lines = ["The checks refuse this work:", *(f"- {reason}" for reason in judgement.refused), ""]
    for finding in judgement.findings[:MOST_TOLD]:
        lines += _finding(finding)
    if len(judgement.findings) > MOST_TOLD:
        lines.append(f"[{len(judgement.findings) - MOST_TOLD} more findings]")
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append("[the rest is left out]")
            break
        kept.append(line)
    return "\n".join((*kept, "", "Mend the cause. Do not remove, skip or weaken tests."))


def failing(findings: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.test for finding in findings if finding.test))


def to_pass(findings: Iterable[Diagnostic], wanted: Requirements) -> Sequence[Diagnostic]:
    """Those of failing tests that the request is about."""
    failed = [one for one in findings if one.test and not any(_is_meant(one.test, name) for name in wanted.left_out)]
    if wanted.all_tests:
        return failed
    return [one for one in failed if _is_named(one.test, wanted)]


_SEPARATORS = re.compile(r"::|\.py\b|[./#]|\s[>›]\s")
_TITLE = re.compile(r"\s[>›]\s|::")


def _is_named(test: str, wanted: Requirements) -> bool:
    """Whether a test is meant by its id, its name, its file or its title."""
    path = test.partition("::")[0].partition(" > ")[0]
    if any(_is_meant(test, name) for name in wanted.tests):
        return True
    if any(path == file or path.endswith(f"/{file}") for file in wanted.files):
        return True
    title = re.escape(_TITLE.split(test)[-1])
    # A title of one word is also a word of prose: it counts in quotes, or beside the word test.
    one_word = rf"[\"']{title}[\"']|\btests?\s+{title}\b|\b{title}\s+tests?\b"
    return re.search(rf"(?<!\w){title}(?!\w)" if " " in title else one_word, wanted.named) is not None


def _is_meant(test: str, name: str) -> bool:
    """`test_a`, `TestX::test_a` and `tests/test_x.py::test_a` are each a name of the test with the longest id."""
    whole = test if "[" in name else test.partition("[")[0]
    parts, said = ([part for part in _SEPARATORS.split(one) if part] for one in (whole, name))
    rest = iter(parts)
    in_order = bool(said) and all(part in rest for part in said)
    return in_order and (said[-1] == parts[-1] or said[-1][:1].isupper())


def _fewer(before: TestCounts | None, after: TestCounts | None) -> list[str]:
    if before is None or not before.total:
        return []
    if after is None or not after.total:
        return [f"tests: {before.total} before, none is run now"]
    found = []
    # Where a file cannot be loaded its tests are one error, and a test whose clean-up fails counts twice: the rest is
    # what certainly stood there. New errors are told as such.
    sure = before.total - before.errors
    if after.total < sure and after.errors <= before.errors:
        found.append(f"tests: {before.total} before, {after.total} now; {sure - after.total} are gone")
    if after.skipped > before.skipped:
        found.append(f"tests: {after.skipped} skipped, {before.skipped} before")
    return found


def _finding(finding: Diagnostic) -> list[str]:
    place = f"({finding.place})" if finding.test and finding.place else finding.place
    head = " ".join(part for part in (finding.test, place, finding.label) if part)
    lines = finding.message.strip().splitlines()[:_MESSAGE_LINES]
    return [f"{finding.tool}: {head}", *(f"    {line}" for line in lines)]


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """The end of a climb through the tiers."""

    why: EscalationEnd | None
    """None when there was nothing to climb for."""
    reason: str
    changes: ChangeSet = EMPTY
    """What the checks accepted; else the best that stands, which may be nothing."""
    checked: Verification | None = None
    """The verification of what was accepted."""
    notes: tuple[str, ...] = ()
    answer: str = ""

    @property
    def accepted(self) -> bool:
        return self.why is EscalationEnd.VERIFIED


_TEST_NAME = re.compile(
    r"(?:^test_.*\.py$|_test\.(?:py|go)$|^conftest\.py$|\.(?:test|spec)\.[cm]?[jt]sx?$|_spec\.rb$)", re.IGNORECASE
)
_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__"})
_SKIPS = frozenset({"skip", "skipif", "skipunless", "xfail", "expectedfailure", "skiptest", "importorskip"})
_DECIDING = re.compile(
    r"^(?:pytest_(?:pyfunc_call|runtest_(?:protocol|call|makereport|logreport)|runtestloop|collect\w*|ignore_collect|"
    r"pycollect\w*|itemcollected|generate_tests|deselected|report_teststatus|sessionfinish|exception_interact)|"
    r"collect_ignore(?:_glob)?|load_tests)$"
)
"""What a file of tests defines to decide which tests there are and how they end."""
_ASSERTING = re.compile(r"^(?:assert|fail|raises|warns|expect|approx)", re.IGNORECASE)

# Other languages, by their usual words: a test with its name, an assertion, a skip.
_TEST = re.compile(
    r"""(?:\b(?:it|test|specify|scenario)\s*\(?\s*(?P<quote>['"`])(?P<title>.*?)(?P=quote)"""
    r"""|\bfunc\s+(?P<go>Test\w+)\s*\(|\#\[(?:\w+::)?test\][\s\S]{0,200}?\bfn\s+(?P<rust>\w+))"""
)
_ASSERTION = re.compile(r"\b(?:expect\s*\(|expect\s*\{|assert\w*!?\s*[(.]|t\.(?:Error|Fatal)|should\b)")
_SKIP = re.compile(
    r"\b(?:it|test|describe)\.(?:skip|todo|failing)\b|\bx(?:it|test|describe)\s*\(|\bt\.Skip\w*\(|\#\[ignore|"
    r"^\s*(?:skip|pending)\b",
    re.MULTILINE,
)


def is_test(path: str) -> bool:
    """Whether the file belongs to the tests."""
    place = PurePosixPath(path)
    return _TEST_NAME.search(place.name) is not None or not _TEST_FOLDERS.isdisjoint(place.parts[:-1])


def weakened(path: str, before: str | None, after: str | None) -> tuple[str, ...]:
    """Every way in which the file tests less than it did, as one line each; none for a file that is no test."""
    if not is_test(path):
        return ()
    if before is None:
        return tuple(f"{path}: {line}" for line in _decides(_Seen(), _python(after or "") or _Seen()))
    if after is None:
        return (f"{path}: the test file is deleted",)
    if path.endswith(".py"):
        sides = (_python(before), _python(after))
        if None not in sides:
            found = (*_compared(*sides), *_decides(*sides))  # type: ignore[arg-type]
            return tuple(f"{path}: {line}" for line in found)
    return tuple(f"{path}: {line}" for line in _compared(_words(before), _words(after)))


class _Seen:
    """What a test file tests."""

    def __init__(self) -> None:
        self.asserts: Counter[str] = Counter()
        """By test; a test without assertions has a count of 0."""
        self.skips: Counter[str] = Counter()
        self.deciding: set[str] = set()
        """Names with which the file decides about tests of other files too."""


def _compared(before: _Seen, after: _Seen) -> Iterator[str]:
    gone = [test for test in before.asserts if test not in after.asserts]
    # A test that was renamed tests as much under its new name.
    fresh = Counter(after.asserts[test] for test in after.asserts if test not in before.asserts)
    for test in gone:
        if fresh[before.asserts[test]] > 0:
            fresh[before.asserts[test]] -= 1
        else:
            yield f"the test {test} is removed"
    for test, count in before.asserts.items():
        if test in after.asserts and after.asserts[test] < count:
            yield f"{test} asserts less: {count} assertions before, {after.asserts[test]} now"
    for place, count in after.skips.items():
        if count > before.skips[place]:
            yield f"{place} is skipped now"


def _decides(before: _Seen, after: _Seen) -> Iterator[str]:
    for name in sorted(after.deciding - before.deciding):
        yield f"{name} is new, which decides what tests there are or how they end"


def _python(text: str) -> _Seen | None:
    try:
        tree = read_python(text)
    except Unreadable:
        return None
    seen = _Seen()
    seen.deciding = {name for node in tree.body for name in _names(node) if _DECIDING.match(name)}
    _look(tree, "", seen)
    return seen


def _look(node: ast.AST, above: str, seen: _Seen) -> None:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{above}::{inner.name}" if above else inner.name
            for decorator in inner.decorator_list:
                if _skips(decorator):
                    seen.skips[name] += 1
            if isinstance(inner, ast.ClassDef):
                _look(inner, name, seen)
            elif inner.name.startswith("test"):
                seen.asserts[name] += sum(_asserts(one) for one in ast.walk(inner))
                seen.skips[name] += sum(_skips(one) for one in ast.walk(inner) if isinstance(one, ast.Call | ast.Raise))
        elif isinstance(inner, ast.Assign | ast.Expr) and any(_skips(one) for one in ast.walk(inner)):
            seen.skips["the whole file"] += 1


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Import() | ast.ImportFrom():
            for one in ast.walk(node):
                if isinstance(one, ast.Name):
                    yield one.id
                elif isinstance(one, ast.alias):
                    yield one.asname or one.name


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        # `assert True` asserts nothing.
        return not (isinstance(node.test, ast.Constant) and bool(node.test.value))
    return isinstance(node, ast.Call) and _ASSERTING.match(_last(node)) is not None


def _skips(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return node.exc is not None and _last(node.exc).lower() in _SKIPS
    return isinstance(node, ast.Call | ast.Attribute) and _last(node).lower() in _SKIPS


def _last(node: ast.AST) -> str:
    match node:
        case ast.Call(func=function):
            return _last(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _words(text: str) -> _Seen:
    seen = _Seen()
    found = list(_TEST.finditer(text))
    for place, match in enumerate(found):
        name = match["title"] or match["go"] or match["rust"] or ""
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        seen.asserts[repr(name)] += len(_ASSERTION.findall(text[match.end() : end]))
    seen.skips["a test"] = len(_SKIP.findall(text))
    return seen
