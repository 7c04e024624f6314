"""Where tests come from: pytest's own loop, kept warm, unittest's loader, or a script of the project's."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import os
import runpy
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from reflex_inside.processes import Catch
from reflex_inside.suite import EngineRequest, Problem, Skipped, Suite, Work, frames_of


def pass_on(error: BaseException | None) -> None:
    """Raises it again; a test that skips itself is told apart, whatever framework it is of."""
    if isinstance(error, unittest.SkipTest) or type(error).__name__ == "Skipped":
        raise Skipped from error
    if error is not None:
        raise error


class FirstError(unittest.TestResult):
    """Keeps the first error of a test as it was raised; after it the test still takes down what it set up."""

    error: BaseException | None = None

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.error = self.error or err[1]

    addFailure = addError  # noqa: N815

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self.error = self.error or unittest.SkipTest(reason)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.addError(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.error = self.error or AssertionError("unexpected success")


class UnittestCase:
    """A test of the standard library's framework, run outside any runner."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.test = test
        self.name = test.id()
        self.path = getattr(sys.modules.get(type(test).__module__), "__file__", None) or ""

    @property
    def function(self) -> Callable[..., object] | None:
        return getattr(type(self.test), self.test._testMethodName, None)

    def run(self) -> None:
        test, result = copy.copy(self.test), FirstError()
        with Catch() as caught:
            type(test).setUpClass()
            test(result)
        for ends in (type(test).tearDownClass, type(test).doClassCleanups):
            with Catch():
                ends()
        pass_on(caught.error or result.error)


REPORTED = frozenset({"xfail"})
"""Marks whose meaning pytest works out when it writes its report."""
MARKED = frozenset({"xfail", "skip", "skipif", "usefixtures", "asyncio"})
"""Marks that need more than a call of the test."""


class PytestCase:
    """A test that pytest collected. Plain functions are called; everything else goes through pytest's hooks."""

    def __init__(self, item: Any, host: PytestHost) -> None:
        self.item = item
        self.host = host
        self.name: str = item.nodeid
        self.path = str(getattr(item, "path", ""))
        self.plain = _plain_arguments(item)
        owner: Any = getattr(item, "cls", None)
        is_unittest = isinstance(owner, type) and issubclass(owner, unittest.TestCase)
        self.judged_by_reports = is_unittest or any(mark.name in REPORTED for mark in item.iter_markers())
        alone = all(
            name.startswith(("_unittest_", "unittest_")) or name == "request"
            for name in getattr(item, "fixturenames", ())
        )
        marked = any(mark.name in MARKED for mark in item.iter_markers())
        self.standard = UnittestCase(owner(item.name)) if is_unittest and alone and not marked else None

    @property
    def function(self) -> Callable[..., object] | None:
        return getattr(self.item, "function", None) or getattr(self.item, "obj", None)

    def run(self) -> None:
        if self.standard is not None:
            self.standard.run()
            return
        if self.plain is None:
            if self.judged_by_reports:
                self._run_reported()
            else:
                self._run_hooks()
            return
        with Catch() as caught, self.host.warnings_of(self.item, always=False):
            self.item.obj(**{name: copied(value) for name, value in self.plain.items()})
        pass_on(caught.error)

    def _run_hooks(self) -> None:
        """The three phases as pytest's hooks define them. Reports are left out: to write one takes most of the time."""
        item = self.item
        if hasattr(item, "_initrequest"):
            item._initrequest()
        with Catch() as caught, self.host.warnings_of(item, always=True):
            item.ihook.pytest_runtest_setup(item=item)
            item.ihook.pytest_runtest_call(item=item)
        with Catch() as after:
            item.ihook.pytest_runtest_teardown(item=item, nextitem=None)
        if hasattr(item, "_request"):
            item._request, item.funcargs = False, None
        pass_on(caught.error or after.error)

    def _run_reported(self) -> None:
        from _pytest.runner import runtestprotocol

        if hasattr(self.item, "_initrequest"):
            self.item._initrequest()
        self.host.raised = None
        reports = runtestprotocol(self.item, log=False, nextitem=None)
        if any(report.failed for report in reports):
            raise self.host.raised or AssertionError(str(reports[-1].longrepr))


def copied(value: Any) -> Any:
    """A parameter of a test as if it were new; what cannot be copied, such as a module, is shared as pytest does."""
    with Catch() as caught:
        if isinstance(value, contextlib._GeneratorContextManager):
            # It can be entered once only, and a test is run many times.
            return value._recreate_cm()
        return copy.deepcopy(value)
    assert caught.error is not None
    return value


def _plain_arguments(item: Any) -> dict[str, Any] | None:
    """The parameters of a test that needs nothing from pytest, or None for any other."""
    import pytest

    if not isinstance(item, pytest.Function) or getattr(item, "cls", None) is not None:
        return None
    if any(mark.name in MARKED for mark in item.iter_markers()):
        return None
    specification = getattr(item, "callspec", None)
    given = dict(specification.params) if specification else {}
    function = item.obj
    if hasattr(function, "hypothesis") or hasattr(function, "is_hypothesis_test"):
        return None
    if set(item.fixturenames) - set(given) or function.__code__.co_flags & 0x80:
        return None
    return given


class Unheard:
    """Takes the place of the hooks that hear of a warning: they would keep each one of every run."""

    @property
    def pytest_warning_recorded(self) -> Unheard:
        return self

    def call_historic(self, kwargs: dict[str, Any]) -> None:
        """Forgets it."""


Pause = Callable[[Any], None]
"""Is called on the way to the tests with pytest's session, if there is one by then."""


class PytestHost:
    """A pytest plugin that takes over the loop once everything is collected."""

    def __init__(self, work: Work, pauses: tuple[Pause, Pause]) -> None:
        self.work = work
        self.before_conftests, self.before_collection = pauses
        self.raised: BaseException | None = None
        self.suite = Suite()
        self.entered = False

    def pytest_cmdline_parse(self) -> None:
        self.before_conftests(None)

    def pytest_collection(self, session: Any) -> None:
        self.before_collection(session)

    @contextlib.contextmanager
    def warnings_of(self, item: Any, *, always: bool) -> Iterator[None]:
        """Keeps warnings out of what the test prints, and makes errors of those that the project wants so."""
        config = item.config
        if not config.pluginmanager.hasplugin("warnings") or not (always or config.getini("filterwarnings")):
            yield
            return
        from _pytest.warnings import catch_warnings_for_item

        with catch_warnings_for_item(config=config, ihook=Unheard(), when="runtest", item=item):
            yield

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not any(problem.place == report.nodeid for problem in self.suite.problems):
            crash = getattr(report.longrepr, "reprcrash", None)
            text = getattr(crash, "message", None) or str(report.longrepr)
            kind, _, message = _error_words(text)
            self.suite.problems.append(Problem(report.nodeid, kind, message))

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if getattr(report, "when", None) == "collect" and call.excinfo is not None:
            error = call.excinfo.value
            cause = error.__cause__ or error
            self.suite.problems.append(
                Problem(report.nodeid, type(cause).__name__, str(cause)[:400], frames_of(cause.__traceback__))
            )

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None:
            self.raised = call.excinfo.value

    def pytest_runtestloop(self, session: Any) -> bool:
        self.entered = True
        self.suite.cases = [PytestCase(item, self) for item in session.items]
        self.work(self.suite)
        return True


def _error_words(text: str) -> tuple[str, str, str]:
    """Kind and message from the last line of a collection error that looks like an exception."""
    for line in reversed(text.strip().splitlines()):
        kind, colon, message = line.removeprefix("E").strip().partition(": ")
        if colon and kind.replace(".", "").replace("_", "").isalnum() and kind[:1].isalpha():
            return kind, colon, message
    return "Error", ": ", text[:400]


def go_on(session: Any) -> None:
    """Pauses nowhere."""


def run_pytest(request: EngineRequest, work: Work, pauses: tuple[Pause, Pause] = (go_on, go_on)) -> Suite:
    """Collects with pytest; pauses before any conftest is imported, and before anything else is."""
    import pytest

    host = PytestHost(work, pauses)
    words = ["-q", "--no-header", "--capture=no", "--tb=native", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    plugins = {"xdist": ("-n", "0"), "pytest_cov": ("--no-cov",)}
    loads = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")  # noqa: TID251
    for name, switched_off in plugins.items():
        words += switched_off if loads and importlib.util.find_spec(name) else ()
    with Catch() as caught:
        pytest.main([*words, *request.tests], plugins=[host])
    if not host.entered and not host.suite.problems:
        error = caught.error
        message = "pytest did not get as far as its tests" if error is None else str(error)
        host.suite.problems.append(Problem("", type(error).__name__ if error else "UsageError", message))
    return host.suite


def run_unittest(request: EngineRequest, work: Work) -> Suite:
    loader = unittest.TestLoader()
    places = [word for word in request.tests if not word.startswith("-")]
    found = [_load(loader, place, request.root) for place in places] if places else [loader.discover(request.root)]
    if not places and not any(True for tests in found for _ in _flat(tests)):
        found = [loader.discover(request.root, pattern="*test*.py")]
    suite = _suite_of(found)
    work(suite)
    return suite


def run_script(request: EngineRequest, work: Work) -> Suite:
    """The project's own script sets everything up (settings, databases); its suite is taken where it would be run."""
    taken: list[Suite] = []

    def take(_: unittest.TextTestRunner, tests: Any) -> unittest.TestResult:
        if not taken:
            taken.append(_suite_of([tests]))
            work(taken[0])
        return unittest.TestResult()

    runs, unittest.TextTestRunner.run = unittest.TextTestRunner.run, take  # type: ignore[assignment,method-assign]
    sys.argv = list(request.script)
    sys.path.insert(0, os.path.dirname(os.path.abspath(request.script[0])))
    try:
        with Catch() as caught:
            runpy.run_path(request.script[0], run_name="__main__")
    finally:
        unittest.TextTestRunner.run = runs  # type: ignore[method-assign]
    if not taken:
        error = caught.error or "it ended before it ran a test"
        taken.append(Suite(problems=[Problem(request.script[0], type(error).__name__, str(error))]))
    return taken[0]


def _suite_of(found: list[unittest.TestSuite]) -> Suite:
    suite = Suite()
    for test in (test for tests in found for test in _flat(tests)):
        if type(test).__module__ == "unittest.loader":
            error = getattr(test, "_exception", None)
            cause = error if isinstance(error, BaseException) else None
            kind, _, message = _error_words(str(error))
            trace = cause.__traceback__ if cause is not None else None
            suite.problems.append(Problem(test.id(), kind, message, frames_of(trace)))
        else:
            suite.cases.append(UnittestCase(test))
    return suite


def _load(loader: unittest.TestLoader, place: str, root: str) -> unittest.TestSuite:
    if os.path.isdir(place):
        package = os.path.exists(os.path.join(place, "__init__.py"))
        return loader.discover(place, top_level_dir=root if package else None)
    if place.endswith(".py"):
        place = os.path.relpath(place, root)[:-3].replace(os.sep, ".")
    return loader.loadTestsFromName(place)


def _flat(tests: Any) -> Iterator[unittest.TestCase]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def machinery(suite: Suite) -> set[str]:
    """The files of the classes that tests inherit from: an edit there changes what a test is."""
    cases = [getattr(case, "standard", None) or case for case in suite.cases]
    tests = {type(case.test) for case in cases if isinstance(case, UnittestCase)}
    modules = {above.__module__ for test in tests for above in test.__mro__}
    return {getattr(sys.modules.get(name), "__file__", None) or "" for name in modules}


def run_host(request: EngineRequest, work: Work) -> Suite:
    """Collects the suite and gives it to `work` while the framework is still set up."""
    if request.framework == "pytest" and importlib.util.find_spec("pytest"):
        return run_pytest(request, work)
    return run_script(request, work) if request.script else run_unittest(request, work)
