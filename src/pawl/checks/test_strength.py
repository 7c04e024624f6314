"""How much a test file tests: its tests, their assertions, what it skips and what it decides about other tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pawl.code.languages import is_test
from pawl.core.typed import Unreadable, read_python

_SKIPS = frozenset({"skip", "skipif", "skipunless", "xfail", "expectedfailure", "skiptest", "importorskip"})
_DECIDING = re.compile(
    r"^(?:pytest_(?:pyfunc_call|runtest_(?:protocol|call|makereport|logreport)|runtestloop|collect\w*|ignore_collect|"
    r"pycollect\w*|itemcollected|generate_tests|deselected|report_teststatus|sessionfinish|exception_interact)|"
    r"collect_ignore(?:_glob)?|load_tests)$"
)
"""Definitions by which a test file decides which tests there are and how they end."""
_NONE: Mapping[str, int] = {}
_ASSERTING = re.compile(r"^(?:assert|fail|raises|warns|expect|approx)", re.IGNORECASE)

# Other languages, by their usual words: a test with its name, an assertion, a skip.
_TEST = re.compile(
    r"""(?:\b(?:it|test|specify|scenario)\s*(?:\(\s*)?(?P<quote>['"`])(?P<title>.*?)(?P=quote)"""
    r"""|\bfunc\s+(?P<go>Test\w+)\s*\(|\#\[(?:\w+::)?test\][\s\S]{0,200}?\bfn\s+(?P<rust>\w+))"""
)
_ASSERTION = re.compile(r"\b(?:expect\s*\(|expect\s*\{|assert\w*!?\s*[(.]|t\.(?:Error|Fatal)|should\b)")
_SKIP = re.compile(
    r"\b(?:it|test|describe)\.(?:skip|todo|failing)\b|\bx(?:it|test|describe)\s*\(|\bt\.Skip\w*\(|\#\[ignore|"
    r"^[ \t]*(?:skip|pending)\b",
    re.MULTILINE,
)


def tests_in(path: str, text: str | None) -> Mapping[str, int]:
    """The tests of a file, each with the number of its assertions."""
    seen = (_python if path.endswith(".py") else _words)(text or "") if is_test(path) else None
    return seen.asserts if seen else {}


def weakened(path: str, before: str | None, after: str | None, moved: Mapping[str, int] = _NONE) -> tuple[str, ...]:
    """Every way in which the file tests less than it did, as one line each; none for a file that is no test, and of
    the tests that moved to another one."""
    if not is_test(path):
        return ()
    if before is None:
        return tuple(f"{path}: {line}" for line in _decides(_Seen(), _python(after or "") or _Seen()))
    if after is None:
        stays = (name for name, count in tests_in(path, before).items() if moved.get(name, -1) < count)
        return (f"{path}: the test file is deleted",) if not moved or any(stays) else ()
    if path.endswith(".py"):
        sides = (_python(before), _python(after))
        if None not in sides:
            found = (*_compared(*sides, moved), *_decides(*sides))  # type: ignore[arg-type]
            return tuple(f"{path}: {line}" for line in found)
    return tuple(f"{path}: {line}" for line in _compared(_words(before), _words(after), moved))


def is_same_code(before: str | None, after: str | None) -> bool:
    """Whether two texts of Python differ in nothing that runs."""
    try:
        return None not in (before, after) and ast.dump(read_python(before or "")) == ast.dump(read_python(after or ""))
    except Unreadable:
        return False


def has_fewer_types(before: str, after: str) -> bool:
    """Whether a function of Python has lost annotations, or a new one has none where others have."""

    def annotated(text: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for one in ast.walk(read_python(text)):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                given = one.args
                parts = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
                found[one.name] += sum(part is not None and part.annotation is not None for part in parts)
                found[one.name] += one.returns is not None
        return found

    try:
        then, now = annotated(before), annotated(after)
        bare = then.total() > 0 and any(number == 0 and name not in then for name, number in now.items())
        return bare or any(now[name] < number for name, number in then.items() if name in now)
    except Unreadable:
        return False


def is_made_of_tests(path: str, before: str | None) -> bool:
    """Whether a file in which tests ran holds little else: other texts than code do, and Python with more tests than
    other functions."""
    if not path.endswith(".py"):
        return True
    try:
        body = read_python(before or "").body
    except Unreadable:
        return False
    names = [one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return 2 * sum(name.lower().startswith("test") for name in names) > len(names)


def changed_examples(path: str, before: str | None, after: str | None, ran: Iterable[str]) -> tuple[str, ...]:
    """The ids, of tests that ran, of docstrings whose examples do not all stand there as they did."""
    ids = [test for test in ran if test.startswith(f"{path}::")]
    if not ids or before is None or is_test(path):
        return ()
    then, now = _examples(before), _examples(after or "")
    edited = [name for name, examples in then.items() if examples - now.get(name, Counter())]
    module = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    ends = tuple(f".{name}" if name else module for name in edited)
    return tuple(test for test in ids if test.endswith(ends)) if ends else ()


def _examples(text: str) -> dict[str, Counter[tuple[str, str]]]:
    """The examples of each docstring, by the name of what it describes."""
    import doctest  # a debugger and a test runner come with it

    found: dict[str, Counter[tuple[str, str]]] = {}

    def look(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
        try:
            examples = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
        except ValueError:
            examples = []
        found[name] = Counter((one.source, one.want) for one in examples)
        for inner in node.body:
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                look(inner, f"{name}.{inner.name}".lstrip("."))

    try:
        look(read_python(text), "")
    except Unreadable:
        return {}
    return found


class _Seen:
    """The tests of a file, by name."""

    def __init__(self) -> None:
        self.asserts: Counter[str] = Counter()
        """By test; a test without assertions has a count of 0."""
        self.skips: Counter[str] = Counter()
        self.deciding: set[str] = set()
        """Names with which the file decides about tests of other files too."""


def _compared(before: _Seen, after: _Seen, moved: Mapping[str, int]) -> Iterator[str]:
    counts = before.asserts.items()
    gone = [test for test, count in counts if test not in after.asserts and moved.get(test, -1) < count]
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
    # A new test may be one for some platforms only; beside one that is gone it may be that one, renamed and skipped.
    new = frozenset() if gone else after.asserts.keys() - before.asserts.keys()
    for place, count in after.skips.items():
        if count > before.skips[place] and place not in new:
            yield f"{place} is skipped now"


def _decides(before: _Seen, after: _Seen) -> Iterator[str]:
    for name in sorted(after.deciding - before.deciding):
        yield f"{name} is new, and decides which tests exist or how they end"


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
