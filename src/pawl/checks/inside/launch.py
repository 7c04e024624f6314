"""Runs on a bench, in the workspace's interpreter: starts a test runner that nothing of the workspace can shadow.

`python -c THIS MODULES OWN SOURCES SIGN -m MODULE WORD...` does what `python -m MODULE WORD...` does; `-c CODE` and
`FILE` are taken as Python takes them. But where the runner, a library or the standard library imports a module of the
standard library or one of MODULES, it gets the installed one, never one of the workspace. Code of the workspace imports
as ever. OWN are modules that the project itself is, such as `pluggy` in its own repository. SOURCES are folders with
the names of the project's packages in them, as JSON: they go first on the import path where a package is found
elsewhere or nowhere. With a SIGN the last line printed begins with it and tells which tests ran, so that a run that was
broken off, or only printed a summary, is known.
"""

# Before anything is imported that the workspace could hold; `__future__` would be looked for there, too.
import sys

if sys.path[:1] == [""]:
    del sys.path[0]

import os


def _is_inside(path: str, workspace: str = os.getcwd()) -> bool:
    """Whether it lies in the workspace where this was started, and not in an environment there."""
    inner = [folder + os.sep for folder in (sys.prefix, sys.base_prefix) if folder.startswith(workspace + os.sep)]
    return (path + os.sep).startswith(workspace + os.sep) and not path.startswith(tuple(inner) or "\0")


_GIVEN = [place for place in sys.path if _is_inside(place)]
"""Of the user's PYTHONPATH; they come back when what is below stands."""
sys.path[:] = [place for place in sys.path if place not in _GIVEN]

import runpy  # noqa: E402
from importlib.machinery import ModuleSpec, PathFinder  # noqa: E402
from types import FrameType  # noqa: E402
from typing import Any, Iterator  # noqa: E402, UP035

_IMPORTING = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "runpy")
_TOOL = 4
"""A tool id of `sys.monitoring` that no known tool takes."""
_MOST_CALLS, _ALL_CALLS = 5_000, 200_000
"""Calls in a test and in all that are looked at where a Python has no `sys.monitoring`: each costs microseconds."""
_UNITTEST = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "failed",
    "addSkip": "skipped",
    "addExpectedFailure": "skipped",
    "addUnexpectedSuccess": "failed",
    "addSubTest": "subtest",
}


class InstalledFirst:
    """A finder for `sys.meta_path`."""

    def __init__(self, names: "set[str]") -> None:
        self._names = names
        self._installed = list(sys.path)

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if path is not None or name not in self._names or self._asked_by_workspace(sys._getframe(1)):
            return None
        found = PathFinder.find_spec(name, self._installed)
        if found is None and PathFinder.find_spec(name) is not None:
            raise ModuleNotFoundError(f"No module named {name!r} outside the workspace", name=name)
        return found

    def _asked_by_workspace(self, frame: "FrameType | None") -> bool:
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _IMPORTING:
            frame = frame.f_back
        file = "<" if frame is None else frame.f_code.co_filename
        return _is_inside(file) if os.path.isabs(file) else not file.startswith("<")


class OwnSources:
    """The project's own packages: found in the workspace, not where another copy of them is installed."""

    def __init__(self, given: str, workspace: str) -> None:
        import json

        self._folders: dict[str, list[str]] = json.loads(given)
        self._workspace = workspace
        self.moved: list[list[str]] = []
        """Folders that were put first, each with the package and where it was found."""

    def put_first(self) -> None:
        from importlib.util import find_spec

        sys.path[1:1] = _GIVEN
        for folder, names in self._folders.items():
            place = os.path.join(self._workspace, folder) if folder else self._workspace
            for name in names:
                if name in sys.modules:
                    continue
                spec = find_spec(name)
                found = (spec.origin or next(iter(spec.submodule_search_locations or ()), "")) if spec else ""
                if not found or not _is_inside(os.path.realpath(found)):
                    self._put(place)
                    self.moved.append([folder, name, found])
                    break

    def _put(self, place: str) -> None:
        """Also for the processes that tests start."""
        sys.path.insert(0, place)
        variables = os.environ  # noqa: TID251
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (place, variables.get("PYTHONPATH", ""))))

    def elsewhere(self) -> "list[list[str]]":
        """The packages that were imported from somewhere else, with where."""
        loaded = ((name, sys.modules.get(name)) for names in self._folders.values() for name in names)
        files = ((name, getattr(module, "__file__", None)) for name, module in loaded if module is not None)
        return [[name, file] for name, file in files if file and not _is_inside(os.path.realpath(file))]


class TestWatch:
    """Writes down which tests there are and how they end, beside what the runner prints.

    A plugin of pytest; `unittest` is watched by the methods of its results.
    """

    __test__ = False

    def __init__(self) -> None:
        self.ran: dict[str, list[object]] = {}
        self.left_out: list[str] = []
        """Tests that code of the project took out of the run; those that options deselect are only counted."""
        self.deselected = 0
        self._collected: dict[str, bool] = {}
        """The tests that were found, and whether they were deselected openly."""
        self._lines: dict[object, set[int]] = {}
        """The lines that were executed of the functions that are tests."""
        self._own: dict[str, object] = {}
        """The code of a test's function by the test's id."""
        self._unseen: set[str] = set()
        """Tests that were not watched to their end."""
        self._raised: set[str] = set()
        """Tests whose last call ended with an exception."""
        self.forged: list[str] = []
        """Tests that were reported as passed although they raised something."""
        self._calls = _ALL_CALLS
        self._tool = self._monitored()

    def _monitored(self) -> "int | None":
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None or monitoring.get_tool(_TOOL) is not None:
            return None
        monitoring.use_tool_id(_TOOL, "pawl")
        monitoring.register_callback(_TOOL, monitoring.events.LINE, self._executed)
        monitoring.register_callback(_TOOL, monitoring.events.RAISE, self._failed)
        monitoring.set_events(_TOOL, monitoring.events.RAISE)
        return _TOOL

    def _executed(self, code: object, line: int) -> object:
        self._lines.setdefault(code, set()).add(line)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]

    def _failed(self, code: object, _: int, error: BaseException) -> None:
        if isinstance(error, AssertionError):
            self._lines.setdefault(code, set()).add(_CAUGHT)

    def pytest_configure(self, config: "Any") -> None:
        """No file that cannot be loaded, no memory of an earlier run (`--lf`), no failure keeps a test from running."""
        config.option.continue_on_collection_errors = True
        config.option.lf = config.option.stepwise = config.option.stepwise_skip = False
        if not any(word.startswith(("-x", "--exitfirst", "--maxfail")) for word in sys.argv[1:]):
            config.option.maxfail = 0

    def pytest_itemcollected(self, item: "Any") -> None:
        self._collected.setdefault(item.nodeid, False)
        self._found(item.nodeid, getattr(item, "function", None))

    def _found(self, name: str, function: object) -> None:
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        if code is not None:
            self._own[name] = code
        for one in _with_inner(code) if self._tool is not None and code is not None else ():
            sys.monitoring.set_local_events(self._tool, one, sys.monitoring.events.LINE)  # type: ignore[attr-defined]

    def pytest_runtest_call(self, item: "Any") -> None:
        self._begin(item.nodeid)

    def _begin(self, name: str) -> None:
        code = self._own.get(name)
        if self._tool is None and code is not None:
            if sys.gettrace() is None and self._calls > 0:
                sys.settrace(self._tracing(name, code))
            else:
                self._unseen.add(name)

    def _end(self) -> None:
        if hasattr(sys.gettrace(), "__pawl__"):
            sys.settrace(None)

    def _tracing(self, name: str, code: object) -> "Any":
        """Traces the lines of one function and those in it; every other call is only counted."""
        codes, left = set(_with_inner(code)), _MOST_CALLS

        def line(frame: FrameType, event: str, arg: "Any") -> "Any":
            self._lines.setdefault(frame.f_code, set()).add(frame.f_lineno)
            if event == "exception":
                self._failed(frame.f_code, 0, arg[1])
            return line

        def call(frame: FrameType, event: str, arg: object) -> "Any":
            nonlocal left
            if frame.f_code in codes:
                return line
            left -= 1
            self._calls -= 1
            if left < 0:
                self._unseen.add(name)
                sys.settrace(None)
            return None

        call.__pawl__ = True  # type: ignore[attr-defined]
        return call

    def pytest_deselected(self, items: "Any") -> None:
        by_project, frame = False, sys._getframe(1)
        while frame is not None and not by_project:
            by_project, frame = _is_inside(frame.f_code.co_filename), frame.f_back  # type: ignore[assignment]
        if not by_project:
            self.deselected += len(items)
            self._collected.update((item.nodeid, True) for item in items)

    def pytest_collection_finish(self, session: "Any") -> None:
        kept = {item.nodeid for item in session.items}
        self.left_out = [name for name, openly in self._collected.items() if not openly and name not in kept]

    def pytest_runtest_makereport(self, item: "Any", call: "Any") -> "Iterator[None]":
        """What the test itself did, before hooks of the project make a report of it."""
        if call.when == "call":
            (self._raised.discard if call.excinfo is None else self._raised.add)(item.nodeid)
        yield

    def pytest_runtest_logreport(self, report: "Any") -> None:
        self._end()
        if report.when == "call" or report.outcome != "passed":
            self.ran[report.nodeid] = [report.outcome, round(report.duration, 4)]
        if report.when == "call" and report.outcome == "passed" and report.nodeid in self._raised:
            self.forged.append(report.nodeid)

    def unexecuted(self) -> "list[str]":
        """The tests that passed, where no line of any of them was executed."""
        passed = [name for name, end in self.ran.items() if end[0] == "passed" and name not in self._unseen]
        watched = [name for name in passed if name in self._own]
        return [] if any(self._lines.get(self._own[name]) for name in watched) else watched

    def watch_pytest(self) -> None:
        """Takes part in the first session, however it is started."""
        try:
            from _pytest import config
        except ModuleNotFoundError as error:
            raise SystemExit(f"{sys.executable}: No module named pytest") from error
        mark = config.hookimpl(hookwrapper=True, tryfirst=True)
        mark(TestWatch.pytest_runtest_makereport)
        config.hookimpl(tryfirst=True)(TestWatch.pytest_configure)
        plain = config._prepareconfig

        def prepare(args: "Any" = None, plugins: "Any" = None, **more: "Any") -> "Any":
            config._prepareconfig = plain
            return plain(args, [*(plugins or ()), self], **more)

        config._prepareconfig = prepare

    def watch_unittest(self) -> None:
        from time import perf_counter
        from unittest import TestResult

        for name, outcome in _UNITTEST.items():
            setattr(TestResult, name, self._noting(getattr(TestResult, name), outcome))
        begin, end, begun = TestResult.startTest, TestResult.stopTest, dict[int, float]()

        def started(result: "Any", test: "Any") -> None:
            begin(result, test)
            self._found(test.id(), getattr(test, getattr(test, "_testMethodName", ""), None))
            begun[id(test)] = perf_counter()
            self._begin(test.id())

        def stopped(result: "Any", test: "Any") -> None:
            self._end()
            known = self.ran.get(test.id())
            if known is not None:
                known[1] = round(perf_counter() - begun.pop(id(test), perf_counter()), 4)
            end(result, test)

        setattr(TestResult, "startTest", started)  # noqa: B010
        setattr(TestResult, "stopTest", stopped)  # noqa: B010

    def _noting(self, method: "Any", outcome: str) -> "Any":
        def note(result: "Any", test: "Any", *rest: "Any") -> "Any":
            # Of a subtest that fails the whole test has failed.
            if outcome != "subtest":
                self.ran[test.id()] = [outcome, 0.0]
            elif rest[-1] is not None:
                self.ran[test.id()] = ["failed", 0.0]
            return method(result, test, *rest)

        return note

    def told(self, sources: OwnSources) -> str:
        """All of it as one word of a line."""
        import base64
        import json
        import zlib

        rows = [[name, *end, self._checked(name)] for name, end in self.ran.items()]
        found = {"moved": sources.moved, "elsewhere": sources.elsewhere()}
        forged = {"forged": self.forged[:1], "unexecuted": self.unexecuted()[:1]}
        body = json.dumps({"ran": rows, "left_out": self.left_out, "deselected": self.deselected, **found, **forged})
        return base64.b64encode(zlib.compress(body.encode("utf-8", "replace"))).decode()

    def _checked(self, name: str) -> "bool | None":
        """Whether a check that stands in the test's own function was executed; None where none stands there."""
        code = self._own.get(name)
        if code is None:
            return None
        checks = _checks(code.co_filename, code.co_firstlineno)  # type: ignore[attr-defined]
        executed = not checks.isdisjoint(self._lines.get(code, ()))
        if not checks:
            # What stands in functions inside of it is to be called, and what it raises is not to be caught.
            checks = _checks(code.co_filename, code.co_firstlineno, inner=True)  # type: ignore[attr-defined]
            lines: set[int] = set().union(*(self._lines.get(one, ()) for one in _with_inner(code)))
            executed = not checks.isdisjoint(lines) and _CAUGHT not in lines
        return None if not checks or (name in self._unseen and not executed) else executed


_CAUGHT = -1
"""Stands among the lines of a function that a failed assertion left."""


def _with_inner(code: "Any") -> "Iterator[Any]":
    """The code of a function, and of those inside of it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, type(code)):
            yield from _with_inner(one)


_CHECKS: "dict[str, dict[int, tuple[set[int], set[int]]]]" = {}
"""By file and first line of a function. A file is read once: of thousands of tests most stand in few files."""


def _checks(path: str, first: int, *, inner: bool = False) -> "set[int]":
    """The lines of a function on which something is checked: assert, raises, assertEqual, assert_called_once.

    Those of functions inside of it are not its own; what says that it is not to be reached is none of these.
    """
    import ast

    if path not in _CHECKS:
        found = _CHECKS[path] = {}
        try:
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            tree = ast.Module([], [])
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                for within, lines in enumerate(found.setdefault(start, (set(), set()))):
                    lines.update(_checking(node, inner=bool(within)))
    return _CHECKS[path].get(first, (set(), set()))[inner]


def _checking(node: "Any", *, inner: bool) -> "Iterator[int]":
    import ast

    for one in ast.iter_child_nodes(node):
        if _checks_something(one) and not (inner and type(getattr(one, "test", None)).__name__ == "Constant"):
            first = one.lineno  # type: ignore[attr-defined]
            yield from range(first, (getattr(one, "end_lineno", None) or first) + 1)
        if inner or not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _checking(one, inner=inner)


def _checks_something(node: "Any") -> bool:
    if type(node).__name__ == "Assert":
        return True
    function = getattr(node, "func", None)
    name = getattr(function, "attr", getattr(function, "id", ""))
    return isinstance(name, str) and name.lower().startswith(("assert", "raises", "warns", "fail", "expect"))


def main() -> None:
    _, runner, own, given, sign, first, *words = sys.argv
    listed = (name.partition(".")[0] for name in os.listdir(os.path.dirname(os.__file__)))
    names = set(getattr(sys, "stdlib_module_names", listed)) - set(sys.builtin_module_names) - {"test"}
    sys.meta_path.insert(0, InstalledFirst((names | set(runner.split(","))) - set(own.split(","))))
    sources = OwnSources(given, os.getcwd())
    watch = TestWatch() if first == "-m" and words[0] in ("pytest", "unittest") else None
    code: object = 1
    try:
        code = _run(first, words, sources, watch)
    except SystemExit as end:
        code = end.code
        if code is not None and not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    finally:
        sys.stdout.flush()
        if watch is not None and sign:
            sys.stdout.write(f"\n{sign} {watch.told(sources)}\n")
            sys.stdout.flush()
    sys.exit(code)  # type: ignore[arg-type]


def _run(first: str, words: "list[str]", sources: OwnSources, watch: "TestWatch | None") -> object:
    if first == "-m":
        sys.path.insert(0, os.getcwd())
        sources.put_first()
        sys.argv = words
        if watch is not None and words[0] == "pytest":
            watch.watch_pytest()
        elif watch is not None:
            watch.watch_unittest()
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path.insert(0, "")
        sources.put_first()
        sys.argv = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        sources.put_first()
        sys.argv = [first, *words]
        runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    main()
