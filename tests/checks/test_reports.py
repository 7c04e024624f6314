"""What the parsers read out of reports that the real tools printed."""

import json

import pytest

from pawl.checks import report_readers as registry
from pawl.checks.catalog import detect
from pawl.checks.catalog import read as read_report
from pawl.checks.output import Origin

ORIGIN = Origin(workspace="/project")

# passed, failed, errors, skipped, complete
EXPECTED = {
    "pytest/shapes_default": (5, 11, 3, 2, True),
    "pytest/shapes_verbose": (5, 11, 3, 2, True),
    "pytest/shapes_quiet": (5, 11, 3, 2, True),
    "pytest/shapes_quieter": (5, 11, 3, 2, True),
    "pytest/shapes_short": (5, 11, 3, 2, True),
    "pytest/shapes_native": (5, 11, 3, 2, True),
    "pytest/shapes_line": (5, 11, 3, 2, True),
    "pytest/shapes_all_reasons": (5, 11, 3, 2, True),
    "pytest/shapes_showlocals": (5, 11, 3, 2, True),
    "pytest/shapes_xdist": (5, 11, 3, 2, True),
    "pytest/shapes_xdist_verbose": (5, 11, 3, 2, True),
    "pytest/shapes_bare": (5, 11, 3, 2, False),
    "pytest/shapes_first": (0, 1, 0, 0, False),
    "pytest/collection_default": (0, 0, 3, 0, False),
    "pytest/collection_verbose": (0, 0, 3, 0, False),
    "pytest/collection_quiet": (0, 0, 3, 0, False),
    "pytest/collection_short": (0, 0, 3, 0, False),
    "pytest/collection_continued": (1, 0, 3, 0, True),
    "pytest/collection_xdist": (1, 0, 3, 0, True),
    "pytest/subtests_default": (1, 5, 0, 0, True),
    "pytest/subtests_quiet": (1, 5, 0, 0, True),
    "pytest/subtests_verbose": (1, 5, 0, 0, True),
    "pytest/green_default": (2, 0, 0, 1, True),
    "pytest/green_quiet": (2, 0, 0, 1, True),
    "pytest/green_quieter": (2, 0, 0, 1, True),
    "pytest/green_verbose": (2, 0, 0, 1, True),
    "pytest/green_selected": (1, 0, 0, 0, True),
    "pytest/green_none": (0, 0, 0, 0, True),
    "pytest/crash_empty": (0, 0, 0, 0, True),
    "pytest/crash_interrupt": (0, 1, 0, 0, False),
    "pytest/crash_worker": (1, 1, 0, 0, True),
    "unittest/shapes_default": (1, 6, 3, 2, True),
    "unittest/shapes_verbose": (1, 6, 3, 2, True),
    "unittest/shapes_buffered": (1, 6, 3, 2, True),
    "unittest/shapes_old_python": (1, 6, 3, 2, True),
    "unittest/shapes_new_python": (1, 6, 3, 2, True),
    "unittest/shapes_one": (0, 1, 0, 0, True),
    "unittest/green_default": (1, 0, 0, 1, True),
    "unittest/green_verbose": (1, 0, 0, 1, True),
    "unittest/green_none": (0, 0, 0, 0, True),
    "vitest/shapes_default": (3, 5, 3, 3, True),
    "vitest/shapes_verbose": (3, 5, 3, 3, True),
    "vitest/shapes_dot": (3, 5, 3, 3, True),
    "vitest/shapes_json": (3, 5, 2, 3, True),
    "vitest/unhandled_default": (1, 0, 1, 0, True),
    "vitest/green_default": (1, 0, 0, 1, True),
    "vitest/green_none": (0, 0, 0, 0, True),
    "jest/shapes_default": (3, 6, 2, 2, True),
    "jest/shapes_verbose": (3, 6, 2, 2, True),
    "jest/shapes_silent": (3, 6, 2, 2, True),
    "jest/shapes_json": (3, 6, 2, 2, True),
    "jest/shapes_serial": (2, 6, 0, 2, True),
    "jest/green_default": (1, 0, 0, 1, True),
    "jest/green_none": (0, 0, 0, 0, True),
    "mocha/shapes_default": (1, 5, 0, 1, True),
    "mocha/shapes_dot": (1, 5, 0, 1, True),
    "mocha/shapes_min": (1, 5, 0, 1, True),
    "mocha/shapes_json": (1, 5, 0, 1, True),
    "mocha/shapes_bail": (1, 1, 0, 0, True),
    "mocha/green_default": (1, 0, 0, 1, True),
    "mocha/green_dot": (1, 0, 0, 1, True),
    "node/shapes_default": (1, 3, 0, 1, True),
    "node/shapes_spec": (1, 3, 0, 1, True),
    "rspec/shapes_default": (1, 6, 0, 2, True),
    "rspec/shapes_documentation": (1, 6, 0, 2, True),
    "rspec/shapes_backtrace": (1, 6, 0, 2, True),
    "rspec/shapes_json": (1, 6, 0, 2, True),
    "rspec/shapes_first": (0, 1, 0, 0, True),
    "rspec/shapes_missing": (0, 0, 1, 0, True),
    "rspec/shapes_green": (1, 0, 0, 1, True),
    "rspec/shapes_none": (0, 0, 0, 0, True),
    "cargo/shapes_default": (1, 7, 0, 1, True),
    "cargo/shapes_keep_going": (2, 9, 0, 1, True),
    "cargo/shapes_quiet": (2, 9, 0, 1, True),
    "cargo/shapes_terse": (1, 7, 0, 1, True),
    "cargo/shapes_backtrace": (1, 7, 0, 1, True),
    "cargo/broken_default": (0, 0, 2, 0, True),
    "cargo/green_default": (1, 0, 0, 1, True),
    "cargo/green_quiet": (1, 0, 0, 1, True),
    "go/shapes_verbose": (4, 5, 2, 1, True),
    "go/shapes_json": (4, 5, 2, 1, True),
    "go/timeout_verbose": (1, 1, 0, 0, True),
    "go/timeout_default": (0, 1, 0, 0, True),
    "go/green_verbose": (1, 0, 0, 1, True),
    "go/green_json": (1, 0, 0, 1, True),
}


@pytest.fixture
def read(captured):
    def parse(name, parser=None):
        return registry.parse(parser or name.partition("/")[0], captured(name), ORIGIN)

    return parse


@pytest.mark.spec("E8")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_counts_of_a_real_report_are_right(read, name):
    report = read(name)
    counts = report.counts
    assert (counts.passed, counts.failed, counts.errors, counts.skipped, report.complete) == EXPECTED[name]


@pytest.mark.spec("E8", "B9")
@pytest.mark.parametrize(
    ("name", "passed", "skipped"),
    [
        ("jest/shapes_json", "test/prices.test.js > passes", "test/prices.test.js > total > is skipped"),
        ("vitest/shapes_verbose", "test/green.test.js > is fine", "test/prices.test.js > total > is to be written"),
        ("vitest/shapes_json", "test/green.test.js > is fine", "test/prices.test.js > total > is to be written"),
        ("mocha/shapes_default", "passes", "total is skipped"),
        ("mocha/shapes_json", "passes", "total is skipped"),
        ("go/shapes_verbose", "TestTable/two", "TestSkipped"),
        ("go/shapes_json", "TestTable/two", "TestSkipped"),
        ("cargo/shapes_default", "tests::passes", "tests::is_ignored"),
    ],
)
def test_a_report_names_the_tests_that_it_counts(read, name, passed, skipped):
    report = read(name)
    outcomes = {one.id: str(one.outcome) for one in report.ran}
    assert (outcomes.get(passed), outcomes.get(skipped)) == ("passed", "skipped"), outcomes
    failed = {test for test, outcome in outcomes.items() if outcome == "failed"}
    of_files = {test for test in failed ^ {one.test for one in report.findings if one.test} if not test.endswith(".js")}
    assert not of_files


@pytest.mark.parametrize("shown", ["test_a (m.A.test_a) ... ok\ntest_b (m.B.test_b) ... skipped 'no'\n" * 2, "s.s.s\n"])
def test_tests_that_are_skipped_with_their_class_take_nothing_from_those_that_passed(shown):
    ended = f"{'-' * 70}\nRan 2 tests in 0.1s\n\nOK (skipped=3)\n"
    counts = registry.read_unittest(f"{shown}\n{ended}").counts
    assert (counts.passed, counts.skipped) == (2, 3)


def test_a_line_about_a_file_of_one_test_is_not_its_test(folder):
    printed = (
        " RUN  v4.1.12 /project\n\n ✓ src/a.test.ts (1 test) 35ms\n ✓ src/b.test.ts (1 test) 8ms\n\n"
        " Test Files  2 passed (2)\n      Tests  2 passed (2)\n   Start at  06:43:59\n   Duration  5.44s\n"
    )
    report = read_report(printed, detect(folder({}), "vitest run"))
    assert (report.counts.passed, report.ran) == (2, ())


def go_events(package: str, *events: tuple[str, str, str]) -> str:
    made = [{"Action": action, "Package": package, "Test": test, "Output": said} for action, test, said in events]
    kept = [{key: value for key, value in one.items() if value} for one in made]
    return "".join(json.dumps(one) + "\n" for one in kept)


def test_tests_of_one_name_in_two_packages_of_go_are_two():
    origin = Origin(workspace="/project", files=frozenset({"go.mod", "a/a_test.go", "b/b_test.go"}))
    passes = [
        ("run", "TestX", ""),
        ("output", "TestX", "=== RUN   TestX\n--- PASS: TestX (0.00s)\n"),
        ("pass", "TestX", ""),
    ]
    fails = [
        ("run", "TestX", ""),
        ("output", "TestX", "=== RUN   TestX\n--- FAIL: TestX (0.00s)\n"),
        ("fail", "TestX", ""),
    ]
    printed = go_events("shop/a", *passes, ("output", "", "ok  \tshop/a\t0.1s\n"), ("pass", "", ""))
    printed += go_events("shop/b", *fails, ("output", "", "FAIL\tshop/b\t0.1s\n"), ("fail", "", ""))
    report = registry.parse("go", printed, origin)
    assert {one.id: str(one.outcome) for one in report.ran} == {"a::TestX": "passed", "b::TestX": "failed"}
    assert [one.test for one in report.findings] == ["b::TestX"]


def test_a_line_that_looks_like_the_end_of_a_test_of_go_takes_no_failure_away():
    fails = [
        ("run", "TestX", ""),
        ("output", "TestX", "=== RUN   TestX\n--- FAIL: TestX (0.00s)\n"),
        ("fail", "TestX", ""),
        ("output", "", "--- PASS: TestX (0.00s)\n--- PASS: TestY (0.00s)\n"),
        ("pass", "TestX", ""),
        ("pass", "TestY", ""),
    ]
    printed = go_events("shop", *fails, ("output", "", "ok  \tshop\t0.1s\n"), ("pass", "", ""))
    report = registry.parse("go", printed, Origin(workspace="/project", files=frozenset({"go.mod", "x_test.go"})))
    assert (report.counts.passed, report.counts.failed) == (0, 1)


def test_ids_that_do_not_agree_with_the_counts_are_not_believed(read):
    assert read("cargo/shapes_quiet").ran == ()
    assert read("mocha/shapes_dot").ran == ()
    assert read("go/shapes_default").ran == ()


def by_test(report):
    return {finding.test: finding for finding in report.findings}


@pytest.mark.spec("E8", "B6")
@pytest.mark.parametrize("style", ["default", "verbose", "quiet", "quieter", "short", "native", "xdist", "showlocals"])
def test_pytest_failures_have_id_place_message_and_traceback(read, style):
    found = by_test(read(f"pytest/shapes_{style}"))
    raised = found["tests/test_prices.py::test_a_bad_price_is_named"]
    assert (raised.path, raised.line, raised.code) == ("shop/prices.py", 14, "RuntimeError")
    assert raised.message == "RuntimeError: bad row: {'price': 'seven'}"
    assert [(frame.path, frame.line) for frame in raised.frames] == [
        ("tests/test_prices.py", 25),
        ("shop/prices.py", 14),
    ]
    assert found["tests/test_prices.py::test_totals[two - prices::odd/[id]]"].line == 30
    assert (
        found["tests/test_prices.py::TestBasket::TestNested::test_deep"].message == "Failed: DID NOT RAISE ValueError"
    )
    assert found["tests/test_prices.py::test_with_a_broken_fixture"].line == 40
    assert found["tests/test_prices.py::test_with_a_broken_teardown"].code == "OSError"
    assert "nothing_like_it" in found["tests/test_prices.py::test_with_an_unknown_fixture"].message
    assert not any("invented" in test for test in found)


@pytest.mark.spec("E8")
def test_a_traceback_of_one_line_still_gives_the_place(read):
    found = by_test(read("pytest/shapes_line"))
    raised = found["tests/test_prices.py::test_a_bad_price_is_named"]
    assert (raised.path, raised.line) == ("shop/prices.py", 14)
    assert found["tests/test_prices.py::test_values[2]"].line == 35


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "quiet", "short", "xdist", "continued"])
def test_pytest_modules_that_cannot_be_imported_are_findings(read, style):
    found = by_test(read(f"pytest/collection_{style}"))
    missing = found["tests/test_missing.py"]
    assert (missing.path, missing.line, missing.code) == ("lib.py", 1, "ModuleNotFoundError")
    broken = found["tests/test_syntax.py"]
    assert (broken.path, broken.line, broken.message) == ("tests/test_syntax.py", 1, "SyntaxError: invalid syntax")


@pytest.mark.spec("E8")
@pytest.mark.parametrize(
    ("name", "code", "path"),
    [
        ("collection_unknown_option", "usage", ""),
        ("collection_unknown_test", "usage", ""),
        ("crash_conftest", "ModuleNotFoundError", "broken/conftest.py"),
        ("crash_dead", "Fatal Python error", "test_dies.py"),
    ],
)
def test_what_keeps_pytest_from_running_is_a_finding(read, name, code, path):
    report = read(f"pytest/{name}")
    assert [(finding.code, finding.path) for finding in report.findings] == [(code, path)]


@pytest.mark.spec("E8")
def test_a_test_that_kills_the_interpreter_is_named(read):
    (finding,) = read("pytest/crash_dead").findings
    assert finding.test == "test_dies.py::test_dies"
    assert finding.line == 9


SUBTESTS = """\
test_each (tests.Prices.test_each) ...
  test_each (tests.Prices.test_each) [<object object at 0x7f00aa>] (number=1) ... FAIL
  test_each (tests.Prices.test_each) [<object object at 0x7f00aa>] (number=2) ... FAIL
test_one (tests.Prices.test_one) ... ok
test_two (tests.Prices.test_two) ... skipped 'later'

======================================================================
FAIL: test_each (tests.Prices.test_each) [<object object at 0x7f00aa>] (number=1)
----------------------------------------------------------------------
AssertionError: 2 != 3

======================================================================
FAIL: test_each (tests.Prices.test_each) [<object object at 0x7f00aa>] (number=2)
----------------------------------------------------------------------
AssertionError: 4 != 5

----------------------------------------------------------------------
Ran 3 tests in 0.010s

FAILED (failures=2, skipped=1)
"""


def test_subtests_of_unittest_that_fail_are_one_test_that_fails():
    found = registry.parse("unittest", SUBTESTS, ORIGIN)
    assert (found.counts.passed, found.counts.failed, found.counts.skipped) == (1, 1, 1)
    assert found.complete and len(found.findings) == 2
    assert {one.id: str(one.outcome) for one in found.ran} == {
        "tests.Prices.test_each": "failed",
        "tests.Prices.test_one": "passed",
        "tests.Prices.test_two": "skipped",
    }
    assert not any("object at" in one.message for one in found.findings)


def test_failures_of_subtests_that_are_not_shown_are_missing():
    cut = SUBTESTS.replace("failures=2", "failures=3")
    assert not registry.parse("unittest", cut, ORIGIN).complete


@pytest.mark.spec("E8")
def test_subtests_are_told_apart_by_their_message(read):
    findings = [
        finding for finding in read("pytest/subtests_default").findings if finding.test == "test_sub.py::test_numbers"
    ]
    assert [finding.message.partition(":")[0] for finding in findings[:2]] == ["[odd] (number=1)", "[odd] (number=3)"]


@pytest.mark.spec("E8")
def test_a_junit_report_between_other_lines_is_read(captured):
    origin = Origin(workspace="/project", files=frozenset({"tests/test_prices.py"}))
    report = registry.parse("junit", captured("pytest/shapes_junit"), origin)
    assert (report.counts.failed, report.counts.errors) == (11, 3)
    found = by_test(report)
    assert found["tests/test_prices.py::test_a_bad_price_is_named"].line == 14
    assert found["tests/test_prices.py::TestBasket::TestNested::test_deep"].code == "Failed"


@pytest.mark.spec("E8")
def test_a_junit_report_that_defines_entities_is_not_read():
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aa">]><testsuites><testcase name="&a;"/></testsuites>'
    assert not registry.PARSERS["junit"](bomb, None).complete


@pytest.mark.spec("E8", "B6")
@pytest.mark.parametrize("style", ["default", "verbose", "buffered", "old_python", "new_python"])
def test_unittest_failures_have_id_place_message_and_traceback(read, style):
    found = by_test(read(f"unittest/shapes_{style}"))
    raised = found["tests.test_prices.Prices.test_chain"]
    assert (raised.path, raised.line, raised.message) == ("shop.py", 9, "RuntimeError: bad row")
    assert [frame.line for frame in raised.frames] == [18, 9]
    assert found["tests.test_prices.Prices.test_sum"].message == "AssertionError: 1 != 0 : a message of our own"
    assert found["tests.test_prices.Prices.test_each"].message.startswith("[odd ones] (number=1): AssertionError")
    assert found["tests.test_prices.Broken"].code == "OSError"
    assert found["tests.test_missing"].path == "tests/test_missing.py"
    assert found["tests.test_prices.Prices.test_unexpected"].message == "unexpected success"
    assert len(found) == 9


@pytest.mark.spec("E8", "B6")
@pytest.mark.parametrize("tool", ["vitest", "jest"])
@pytest.mark.parametrize("style", ["default", "verbose", "json"])
def test_nested_javascript_suites_have_id_place_message_and_stack(read, tool, style):
    found = by_test(read(f"{tool}/shapes_{style}"))
    raised = found["test/prices.test.js > total > with a row > odd name > throws for what is no list"]
    assert (raised.path, raised.line, raised.column) == ("src/prices.js", 3, 11)
    assert raised.message == "TypeError: prices must be a list"
    assert [frame.path for frame in raised.frames] == ["test/prices.test.js", "src/prices.js", "src/prices.js"]
    assert found["test/prices.test.js > total > adds 1 to get 1"].path == "test/prices.test.js"
    assert found["test/missing.test.js"].path == "test/missing.test.js"
    assert found["test/syntax.test.js"].path == "test/syntax.test.js"
    assert not any("invented" in test for test in found)


@pytest.mark.spec("E8")
def test_a_rejection_that_nobody_handled_is_a_finding(read):
    (finding,) = read("vitest/unhandled_default").findings
    assert (finding.path, finding.line, finding.message) == ("late.test.js", 3, "Error: nobody looks")


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "dot", "min", "json"])
def test_mocha_failures_have_title_place_and_message(read, style):
    found = by_test(read(f"mocha/shapes_{style}"))
    raised = found["total with a row throws for what is no list"]
    assert (raised.path, raised.line) == ("src/prices.js", 3)
    assert found["total of nothing is nothing"].code == "AssertionError"
    assert found["total is too slow"].path == "test/prices.spec.js"
    assert 'with a broken hook "before all" hook for "never runs"' in found
    assert len(found) == 5


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "spec"])
def test_failures_of_nodes_own_runner_have_title_place_and_message(read, style):
    found = {finding.test.split(" > ")[-1]: finding for finding in read(f"node/shapes_{style}").findings}
    assert set(found) == {"of nothing is nothing", "needs prices", "test/broken.test.js"}
    raised = found["needs prices"]
    assert (raised.path, raised.line) == ("src/prices.js", 3)
    assert "prices must be a list" in raised.message
    assert found["of nothing is nothing"].code == "AssertionError"
    assert found["of nothing is nothing"].path == "test/prices.test.js"


@pytest.mark.spec("E8")
def test_mocha_files_that_cannot_be_loaded_are_findings(read):
    (finding,) = read("mocha/shapes_missing").findings
    assert (finding.path, finding.line) == ("test/missing.spec.js", 1)
    (finding,) = read("mocha/shapes_none").findings
    assert finding.code == "usage"


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "documentation", "backtrace", "json"])
def test_rspec_failures_have_description_place_and_message(read, style):
    found = by_test(read(f"rspec/shapes_{style}"))
    raised = found["Prices.total with a row throws for what is no list"]
    assert (raised.path, raised.line, raised.code) == ("lib/prices.rb", 3, "ArgumentError")
    assert [frame.line for frame in raised.frames] == [11, 9, 3]
    assert "Prices.total was pending" in found
    assert "Prices.total is pending" not in found


@pytest.mark.spec("E8")
def test_rspec_files_that_cannot_be_loaded_are_findings(read):
    (finding,) = read("rspec/shapes_missing").findings
    assert (finding.path, finding.line, finding.code) == ("spec/missing_spec.rb", 1, "LoadError")


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "keep_going", "quiet", "terse", "backtrace"])
def test_cargo_panics_have_file_and_line(read, style):
    found = by_test(read(f"cargo/shapes_{style}"))
    raised = found["tests::panics_in_the_source"]
    assert (raised.path, raised.line, raised.column) == ("src/lib.rs", 11, 18)
    assert raised.message == "a number: ParseIntError { kind: InvalidDigit }"
    assert found["tests::should_have_panicked"].line == 43
    assert found["tests::returns_an_error"].message == 'Error: "no service"'
    assert not any("invented" in test for test in found)


@pytest.mark.spec("E8")
def test_an_old_cargo_panic_has_file_and_line():
    text = (
        "\nrunning 1 test\ntest tests::adds ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\n"
        "thread 'tests::adds' panicked at 'assertion failed: `(left == right)`', src/lib.rs:9:5\n\n\n"
        "failures:\n    tests::adds\n\n"
        "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    )
    (finding,) = registry.parse("cargo", text, ORIGIN).findings
    assert (finding.path, finding.line, finding.message) == ("src/lib.rs", 9, "assertion failed: `(left == right)`")


@pytest.mark.spec("E8")
def test_rust_that_does_not_compile_is_a_finding_per_error(read):
    codes = [(finding.code, finding.line) for finding in read("cargo/broken_default").findings]
    assert codes == [("E0277", 3), ("E0425", 7)]


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "verbose", "json"])
def test_go_failures_have_name_place_and_message(read, style):
    found = by_test(read(f"go/shapes_{style}"))
    assert (found["TestSum"].path, found["TestSum"].line) == ("prices/prices_test.go", 10)
    assert found["TestTable/one_price"].message.startswith("got 2")
    assert "TestTable" not in found
    boom = found["TestBoom"]
    assert (boom.path, boom.line, boom.code) == ("prices/prices.go", 12, "panic")
    builds = [finding for finding in read(f"go/shapes_{style}").findings if finding.code == "build"]
    assert [(finding.path, finding.line) for finding in builds] == [
        ("broken/broken_test.go", 6),
        ("broken/broken_test.go", 7),
    ]


@pytest.mark.spec("E8")
def test_a_go_package_is_found_by_the_files_of_the_workspace(captured):
    origin = Origin(workspace="/project", files=frozenset({"go.mod", "prices/prices_test.go"}))
    (finding,) = registry.parse("go", captured("go/shapes_one"), origin).findings
    assert finding.path == "prices/prices_test.go"


@pytest.mark.spec("E8")
@pytest.mark.parametrize("style", ["default", "verbose"])
def test_a_go_test_that_hangs_is_named(read, style):
    (finding,) = read(f"go/timeout_{style}").findings
    assert (finding.test, finding.path, finding.line) == ("TestHangs", "hang/hang_test.go", 8)


@pytest.mark.spec("E8")
def test_a_run_that_dies_before_its_framework_starts_is_told_by_its_traceback(captured):
    report = registry.parse("unittest", captured("trace/scripts_python"), ORIGIN)
    (finding,) = report.findings
    assert (finding.path, finding.line, finding.message) == ("lib/inner.py", 5, "KeyError: 'x'")
    assert not report.complete


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("pytest", "FAILED a.py::b - at "),
        ("pytest", "a::b FAILED (x) "),
        ("jest", '{"a":\n'),
        ("mocha", '{"stats":[\n'),
        ("vitest", "0"),
        ("rspec", " "),
        ("junit", "<testsuite>"),
    ],
)
@pytest.mark.timeout(60)
def test_no_output_of_a_test_holds_a_reader_up(name: str, unit: str):
    assert registry.parse(name, unit * (1_000_000 // len(unit)), ORIGIN).findings == ()


def test_a_report_whose_numbers_are_none_is_read_all_the_same():
    case = '<testcase name="a" classname="b" file="c.py" line="{}"><failure message="m">said</failure></testcase>'
    for line in ("x", "-1", "9" * 5000, "\u0663"):
        found = registry.parse("junit", f"<testsuite>{case.format(line)}</testsuite>", ORIGIN).findings
        assert [one.message for one in found] == ["m"]
