"""The checks decide: what is refused, what is only told, and what a test loses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from folder import FolderFiles
from memory_blobs import MemoryBlobs

from pawl.checks.evidence import (
    data_of_tests,
    deciding_files,
    edited_tests,
    is_inert,
    is_text_only,
    of_tests,
    reaching_for_tests,
    renamed_in,
    silencing,
    taken_away,
    weaker_tests,
)
from pawl.checks.leaned_on import changed_definitions, leaned_on
from pawl.checks.special_cases import literals_of, special_cases
from pawl.checks.test_strength import weakened
from pawl.checks.verdict import (
    MOST_CHARACTERS,
    ChangeVerdict,
    Requirements,
    Verification,
    decide,
    told,
)
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestOutcome, TestRun, Verdict
from pawl.core.diagnostic import TestCounts as Counts

BEFORE = """
import pytest

def test_a():
    assert one() == 1
    assert two() == 2

class TestB:
    def test_b(self):
        with pytest.raises(ValueError):
            three()
"""


def failing(*tests: str) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(tool="pytest", message="assert 1 == 2", test=test) for test in tests)


def suite(
    standing: Status, counts: Counts, new: tuple[Diagnostic, ...] = (), old: tuple[Diagnostic, ...] = ()
) -> CheckResult:
    return CheckResult(step="tests", standing=standing, reason="said", counts=counts, findings=new, old=old)


def checked(before: Counts, after: CheckResult, *weak: str) -> Verification:
    return Verification(digest="d", before=suite(Status.PASS, before), verdicts=(after,), weakened=weak)


@pytest.mark.spec("B8")
def test_a_new_failure_is_refused_and_told_with_its_message():
    after = suite(Status.FAIL, Counts(failed=2), failing("t.py::test_x"), old=failing("t.py::test_y"))
    judgement = decide(checked(Counts(passed=1, failed=1), after), Requirements())
    assert judgement.refused == ("tests: said; 1 of them failed before",)
    assert "t.py::test_x" in told(judgement) and "assert 1 == 2" in told(judgement)


def test_what_failed_before_is_told_and_does_not_stand_in_the_way():
    after = suite(Status.PASS, Counts(passed=1, failed=1), old=failing("t.py::test_x"))
    judgement = decide(checked(Counts(passed=1, failed=1), after), Requirements(named="add an option"))
    assert judgement.accepted and judgement.notes == ("1 test failed before and still fails",)


@pytest.mark.parametrize(
    "wanted", [Requirements(all_tests=True), Requirements(tests=("test_x",)), Requirements(tests=("t.py::test_x",))]
)
def test_a_test_that_the_request_is_about_must_pass(wanted: Requirements):
    after = suite(Status.PASS, Counts(passed=1, failed=1), old=failing("t.py::test_x"))
    assert not decide(checked(Counts(passed=1, failed=1), after), wanted).accepted


@pytest.mark.parametrize(
    "after",
    [Counts(passed=1), Counts(passed=1, skipped=1)],
    ids=["a test is gone", "a test is skipped"],
)
def test_fewer_or_skipped_tests_are_refused_unless_the_request_asks_for_it(after: Counts):
    made = checked(Counts(passed=2), suite(Status.PASS, after))
    assert not decide(made, Requirements()).accepted
    allowed = decide(made, Requirements(tests_may_change=True))
    assert allowed.accepted and allowed.notes


@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    "after",
    [
        CheckResult(step="tests", standing=Status.SKIPPED, reason="no tests ran"),
        suite(Status.SKIPPED, Counts()),
    ],
    ids=["not counted", "counted as none"],
)
def test_a_change_after_which_no_test_runs_any_more_is_refused(after: CheckResult):
    judgement = decide(checked(Counts(passed=2, failed=1), after), Requirements(named="fix dasherize"))
    assert "tests: 3 before, none is run now" in judgement.refused
    allowed = decide(checked(Counts(passed=3), after), Requirements(tests_may_change=True))
    assert allowed.verdict is Verdict.UNVERIFIED


@pytest.mark.attack("A15")
def test_tests_that_are_gone_are_not_hidden_by_an_error_that_was_there_before():
    gone = suite(Status.PASS, Counts(passed=2, errors=1), old=failing("t.py::test_e"))
    refused = decide(checked(Counts(passed=9, errors=1), gone), Requirements()).refused
    assert refused == ("tests: 10 before, 3 now; 6 are gone",)
    mended = suite(Status.PASS, Counts(passed=9))
    assert decide(checked(Counts(passed=9, errors=1), mended), Requirements()).accepted


def test_weaker_tests_are_refused_with_each_line():
    made = checked(Counts(passed=2), suite(Status.PASS, Counts(passed=2)), "t.py: test_a asserts less")
    assert decide(made, Requirements()).refused == ("t.py: test_a asserts less",)


def test_a_test_command_of_the_users_that_does_not_run_is_no_success():
    after = CheckResult(step="tests", standing=Status.SKIPPED, reason="'nosuch' is not installed")
    judgement = decide(checked(Counts(), after), Requirements())
    assert not judgement.accepted
    assert judgement.unproved == ("no test was run: 'nosuch' is not installed",)


def test_no_test_at_all_is_said():
    after = CheckResult(step="tests", standing=Status.SKIPPED, reason="no tests ran")
    judgement = decide(checked(Counts(), after), Requirements())
    assert (judgement.verdict, judgement.unproved) == (Verdict.UNVERIFIED, ("no test was run: no tests ran",))


def test_what_a_model_is_told_is_bounded_and_ends_with_a_whole_line():
    many = tuple(Diagnostic(tool="t", message="long " * 200, test=f"t::{number}") for number in range(50))
    text = told(ChangeVerdict(verdict=Verdict.FAILED, refused=("tests: many",), findings=many))
    assert len(text) < MOST_CHARACTERS + 200
    assert "[the rest is left out]" in text and text.endswith("weaken tests.")


WEAKER = [
    ("assert two() == 2", "pass", "test_a asserts less: 2 assertions before, 1 now"),
    ("assert two() == 2", "assert True", "test_a asserts less"),
    ("def test_a():", "def check_a():", "the test test_a is removed"),
    ("def test_a():", "@pytest.mark.skip\ndef test_a():", "test_a is skipped now"),
    ("def test_a():", "@pytest.mark.xfail(strict=False)\ndef test_a():", "test_a is skipped now"),
    ("def test_a():", "@pytest.mark.skip\ndef test_c():", "test_c is skipped now"),
    ("    assert one() == 1", "    pytest.skip('later')\n    assert one() == 1", "test_a is skipped now"),
    ("class TestB:", "@unittest.skip('x')\nclass TestB:", "TestB is skipped now"),
    ("import pytest", "import pytest\npytestmark = pytest.mark.skip", "the whole file is skipped now"),
]


@pytest.mark.attack("A15")
@pytest.mark.parametrize(("old", "new", "says"), WEAKER, ids=[says for _, _, says in WEAKER])
def test_a_weaker_python_test_is_noticed(old: str, new: str, says: str):
    found = weakened("tests/test_x.py", BEFORE, BEFORE.replace(old, new, 1))
    assert any(says in line for line in found), found


@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    "text",
    [
        "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
        "def pytest_runtest_makereport(item, call): ...\n",
        "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n",
        "collect_ignore = ['test_x.py']\n",
        "collect_ignore: list = ['test_x.py']\n",
        "from sly import pytest_runtest_call\n",
    ],
)
def test_a_file_that_begins_to_decide_how_tests_end_is_noticed(text: str):
    assert weakened("conftest.py", None, text) != ()
    assert weakened("tests/conftest.py", "import pytest\n", text) != ()
    assert weakened("conftest.py", text, f"{text}\nNUMBER = 1\n") == ()
    assert weakened("conftest.py", None, "import pytest\n\n@pytest.fixture\ndef shop():\n    return 1\n") == ()


SAME = [
    ("def test_a():", "def test_renamed():"),
    ("assert two() == 2", "assert two() == 2\n    assert four() == 4"),
    ("one()", "uno()"),
    ("class TestB:", "class TestB:\n    '''Says more.'''"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_a_test_that_tests_as_much_is_let_pass(old: str, new: str):
    assert weakened("tests/test_x.py", BEFORE, BEFORE.replace(old, new)) == ()


@pytest.mark.spec("G1")
def test_tests_that_move_to_another_file_and_pass_there_are_not_gone():
    blobs = MemoryBlobs()
    whole = BEFORE.partition("class TestB")[0]
    rest, weaker = whole.partition("def test_a")[0], whole.replace("    assert two() == 2\n", "")

    def told(there: str, *ran: str, left: str | None = rest) -> tuple[str, ...]:
        before, after, moved = (blobs.put((one or "").encode()) for one in (whole, left, there))
        at = None if left is None else Node.file(after)
        changes = [Change("tests/test_x.py", Node.file(before), at), Change("tests/test_y.py", None, Node.file(moved))]
        return weaker_tests(ChangeSet.of(changes), blobs, ran)

    removed, deleted = ("tests/test_x.py: the test test_a is removed",), ("tests/test_x.py: the test file is deleted",)
    assert told(whole, "tests/test_y.py::test_a") == told(whole, "tests/test_y.py::test_a", left=None) == ()
    assert told(whole) == told(whole, "tests/test_x.py::test_a") == told(weaker, "tests/test_y.py::test_a") == removed
    assert told(whole, left=None) == told(weaker, "tests/test_y.py::test_a", left=None) == deleted


def test_a_deleted_test_file_is_noticed_and_a_deleted_source_is_no_business_of_tests():
    assert weakened("tests/test_x.py", BEFORE, None) == ("tests/test_x.py: the test file is deleted",)
    assert weakened("src/x.py", BEFORE, None) == ()


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.test.ts", "it('adds', () => { expect(a).toBe(1) })", "it.skip('adds', () => { expect(a).toBe(1) })"),
        ("a.test.ts", "it('adds', () => { expect(a).toBe(1) })", ""),
        ("a_test.go", "func TestA(t *testing.T) { if x { t.Fatal(1) } }", "func TestA(t *testing.T) { }"),
        (
            "tests/a.rs",
            "#[test]\nfn adds() { assert_eq!(1, 1); }",
            "#[test]\n#[ignore]\nfn adds() { assert_eq!(1, 1); }",
        ),
        ("a_spec.rb", "it 'adds' do\n expect(1).to eq 1\nend", "it 'adds' do\n skip\n expect(1).to eq 1\nend"),
    ],
)
def test_weaker_tests_of_other_languages_are_noticed(path: str, before: str, after: str):
    assert weakened(path, before, after) != ()
    assert weakened(path, before, before) == ()


def test_the_name_of_an_error_is_said_once():
    said = Diagnostic(
        tool="pytest", message="AssertionError: assert 1 == 2", code="AssertionError", test="t.py::test_x"
    )
    unsaid = Diagnostic(tool="ruff", message="undefined name", code="F821", path="a.py", line=1)
    text = told(ChangeVerdict(verdict=Verdict.FAILED, refused=("tests: said",), findings=(said, unsaid)))
    assert text.count("AssertionError") == 1 and "a.py:1 F821" in text


def ran(**outcomes: str) -> tuple[TestRun, ...]:
    return tuple(TestRun(id=f"t.py::{name}", outcome=TestOutcome(outcome)) for name, outcome in outcomes.items())


BROKEN = suite(Status.FAIL, Counts(passed=1, failed=1), failing("t.py::test_x"))
GREEN = suite(Status.PASS, Counts(passed=2))


def fixed(**more: object) -> Verification:
    return Verification(digest="d", before=BROKEN, verdicts=(GREEN,), **more)  # type: ignore[arg-type]


@pytest.mark.spec("B9")
def test_a_fix_has_a_witness_that_was_not_edited():
    assert fixed().witnesses == ("t.py::test_x",)
    assert decide(fixed(), Requirements(fixes=True)).verdict is Verdict.VERIFIED
    edited = fixed(as_they_were=(BROKEN,))
    assert edited.witnesses == () and edited.changed_expectations == ("t.py::test_x",)
    refused = decide(edited, Requirements(fixes=True))
    assert refused.verdict is Verdict.FAILED and "changed expectation" in refused.refused[0]
    listed = decide(edited, Requirements())
    assert listed.verdict is Verdict.UNVERIFIED and "t.py::test_x: changed expectation" in listed.unproved[0]
    named = decide(edited, Requirements(tests_may_change=True, tests=("test_x",)))
    assert named.verdict is Verdict.VERIFIED, "the request itself wants this test changed"


CUT = replace(
    suite(Status.FAIL, Counts(passed=3), (Diagnostic(tool="tests", message="cut", code="incomplete"),)),
    incomplete="timed out",
)


@pytest.mark.spec("B9")
@pytest.mark.parametrize("before", [GREEN, BROKEN, CUT], ids=["whole", "failing", "cut off too"])
def test_a_run_that_was_cut_off_is_never_compared(before: CheckResult):
    judgement = decide(Verification(digest="d", before=before, verdicts=(CUT,)), Requirements())
    assert judgement.verdict is Verdict.UNVERIFIED, judgement
    assert not judgement.refused


def test_a_failure_before_the_cut_is_none_where_nothing_tells_that_it_is_new():
    cut = replace(CUT, findings=(*CUT.findings, *failing("test_mail")))
    before = CheckResult(step="tests", standing=Status.SKIPPED, reason="there is no earlier run to compare with")
    for known, verdict in ((before, Verdict.UNVERIFIED), (GREEN, Verdict.FAILED)):
        checked = Verification(digest="d", before=known, verdicts=(cut,))
        assert decide(checked, Requirements()).verdict is verdict


def test_failures_after_a_baseline_that_was_cut_off_are_no_proof_that_they_are_new():
    after = replace(BROKEN, incomplete="the run before the change is no basis for comparison: timed out")
    checked = Verification(digest="d", before=CUT, verdicts=(after,))
    assert decide(checked, Requirements()).verdict is Verdict.UNVERIFIED
    assert decide(checked, Requirements(all_tests=True)).verdict is Verdict.FAILED, "they are to pass, old or new"


def test_tests_that_ran_before_and_do_not_now_are_named():
    before = replace(GREEN, ran=ran(test_x="passed", test_y="passed", test_z="passed"))
    after = replace(GREEN, ran=ran(test_x="passed", test_y="skipped", test_new="passed"))
    refused = decide(Verification(digest="d", before=before, verdicts=(after,)), Requirements()).refused
    assert refused == ("tests: t.py::test_z ran before and is not run now", "tests: t.py::test_y is skipped now")


@pytest.mark.parametrize(("alone", "verdict"), [(BROKEN, Verdict.VERIFIED), (GREEN, Verdict.UNVERIFIED)])
def test_tests_of_the_run_count_when_they_fail_without_the_change(alone: CheckResult, verdict: Verdict):
    none = CheckResult(step="tests", standing=Status.SKIPPED, reason="no tests ran")
    checked = Verification(digest="d", before=none, verdicts=(GREEN,), alone=(alone,))
    judgement = decide(checked, Requirements())
    assert judgement.verdict is verdict
    assert bool(judgement.notes) is (verdict is Verdict.VERIFIED), "labelled as the run's own"


def test_where_no_test_passes_none_is_called_the_runs_own():
    before = replace(BROKEN, counts=Counts(failed=1))
    red = replace(before, standing=Status.PASS, findings=(), old=before.findings)
    unproved = decide(
        Verification(digest="d", before=before, verdicts=(red,), alone=(before,)), Requirements()
    ).unproved
    assert unproved and not [reason for reason in unproved if "written in the run" in reason]


@pytest.mark.parametrize(
    ("paths", "verdict"),
    [(("app.py",), Verdict.VERIFIED), (("web/a.js",), Verdict.UNVERIFIED), ((), Verdict.UNVERIFIED)],
)
def test_a_suite_that_could_not_run_counts_where_it_is_about_the_change(paths: tuple[str, ...], verdict: Verdict):
    missing = CheckResult(
        step="tests in web", standing=Status.SKIPPED, reason="x", incomplete="'vitest' is not installed"
    )
    checked = Verification(digest="d", before=GREEN, verdicts=(GREEN, missing), paths=paths)
    assert decide(checked, Requirements()).verdict is verdict


def test_all_tests_are_those_of_every_suite():
    nested = replace(suite(Status.PASS, Counts(passed=1, failed=1), old=failing("double")), step="tests in web")
    checked = Verification(digest="d", before=GREEN, verdicts=(GREEN, nested))
    assert decide(checked, Requirements(all_tests=True)).refused == (
        "tests in web: 1 test that failed before still fails",
    )


def test_a_witness_that_executes_none_of_its_own_checks_proves_nothing():
    idle = replace(GREEN, ran=(TestRun(id="t.py::test_x", outcome=TestOutcome.PASSED, checked=False),))
    judgement = decide(Verification(digest="d", before=BROKEN, verdicts=(idle,)), Requirements(fixes=True))
    assert judgement.unproved == ("t.py::test_x passes, but none of its assertions ran",)


REACHING = {
    "app.py": [
        "import pytest\n",
        "import sys\nsys.modules['a'] = None\n",
        "import builtins\n",
        "sys.meta_path.insert(0, x)\n",
        "import os\nos._exit(0)\n",
        "class A:\n    def __eq__(self, other):\n        return True\n",
        "class A:\n    __eq__ = lambda self, other: True\n",
        "if 'PYTEST_CURRENT_TEST' in os.environ: ...\n",
        "A = type('A', (int,), {'__eq__': lambda *both: True})\n",
        "from os import _exit\n_exit(0)\n",
        "import os as system\n",
        "getattr(os, '_ex' + 'it')(0)\n",
        "here = any('test_' in one.name for one in traceback.extract_stack())\n",
        "from inspect import stack\n",
        "if os.environ.get('CI'): ...\n",
        "if sys.argv[0].endswith('pytest'): ...\n",
        "eval(text)\n",
        "importlib.import_module('unit' + 'test.mock')\n",
        "class A:\n    def __eq__(self, other):\n        same = True\n        return same\n",
        "import pytest\n\n\n@pytest.fixture\ndef shop():\n    return 1\n",
        "class A:\n    def __eq__(self, other):\n        return other == other\n",
        "class A:\n    def __eq__(self, other):\n        self.value = other\n        return self.value == other\n",
        "tested = any(name.startswith('PYTEST') for name in os.environ)\n",
        "words = open('/proc/self/cmdline').read()\n",
        "if 'test' in ' '.join(sys.argv): ...\n",
        "who = logging.getLogger().findCaller()\n",
    ],
    "app.js": [
        "process.exit(0)\n",
        "globalThis.expect = () => {}\n",
        "import { test } from 'node:test'\n",
        "assert['equal'] = f\n",
        "process['exit'](0)\n",
        "if (process.env.NODE_ENV === 'test') go()\n",
        "const who = new Error().stack\n",
        "if (error.stack.includes('.test.')) go()\n",
        "expect.extend({ toEqual: () => ({ pass: true }) })\n",
        "const any = { asymmetricMatch: () => true }\n",
        "global['it'] = () => {}\n",
        "if (process.argv.some((word) => word.includes('test'))) go()\n",
        "const on = import.meta.env.MODE === 'test'\n",
        "const on = '__vitest_worker__' in globalThis\n",
        "const on = 'expect' in globalThis\n",
    ],
    "app.go": [
        'import "testing"\n',
        "func f() { os.Exit(0) }\n",
        "var _, at, _, _ = runtime.Caller(1)\n",
        'var on = flag.Lookup("test.v") != nil\n',
        'var on = filepath.Ext(os.Args[0]) == ".t"\n',
        'func init() {\n\tfmt.Println("ok")\n\tos.Exit(code)\n}\n',
    ],
}


@pytest.mark.attack("A15")
@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in REACHING.items() for text in texts])
def test_code_that_reaches_for_what_tests_it_is_named_where_it_is_new(path: str, text: str):
    blobs = MemoryBlobs()
    before, after = (Node.file(blobs.put(one.encode())) for one in ("x = 1\n", f"x = 1\n{text}"))
    assert reaching_for_tests(ChangeSet.of([Change(path, before, after)]), blobs)[0].startswith(f"{path}:")
    assert reaching_for_tests(ChangeSet.of([Change(path, after, after.file(after.blob, 0o755))]), blobs) == ()
    assert reaching_for_tests(ChangeSet.of([Change("README.md", before, after)]), blobs) == ()


@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    "text",
    [
        "frozen = getattr(sys, 'frozen', False)\n",
        "class A:\n    def __eq__(self, other):\n        return self.x == other.x\n",
        "class A:\n    def eval(self, x):\n        return self.b.eval(x)\n",
        "import_module('shop.parts')\n",
        "home = os.environ.get('HOME')\n",
        "class A:\n    def __eq__(self, other: object) -> bool:\n        return self.x == other.x\n",
        "memory = open('/proc/self/status').read()\n",
        "class A:\n    __eq__ = None\n",
        "compare = False\n",
        "PriceError = make_error('price')\n",
        "try:\n    go()\nexcept BaseException:\n    stop()\n    raise\n",
    ],
)
def test_code_that_only_looks_like_it_is_not_named(text: str):
    blobs = MemoryBlobs()
    before, after = (Node.file(blobs.put(one.encode())) for one in ("x = 1\n", f"x = 1\n{text}"))
    assert reaching_for_tests(ChangeSet.of([Change("app.py", before, after)]), blobs) == ()


@pytest.mark.attack("A15")
def test_what_turns_code_into_what_tests_run_decides_unless_the_request_names_it():
    changes = ChangeSet.of([Change("web/vite.config.ts", None, Node.file(MemoryBlobs().put(b"export default {}")))])
    (told,) = deciding_files(changes, ())
    assert told.startswith("web/vite.config.ts transforms code and tests")
    assert deciding_files(changes, (), words="add an alias to vite.config.ts") == ()


@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    ("path", "before", "after", "silences"),
    [
        ("app.py", "import os\n", "import os  # noqa: F401\n", True),
        ("app.py", "x: int = ''\n", "x: int = 0\n", False),
        ("app.ts", "f(1)\n", "// @ts-ignore\nf(1)\n", True),
        ("tsconfig.json", "{}", '{"strict": false}', True),
        ("pyproject.toml", "[tool.ruff]\n", "[tool.ruff.lint]\nselect = []\n", True),
        ("pyproject.toml", "[project]\n", "[project]\nname = 'a'\n", False),
        ("package.json", '{"scripts": {"build": "tsc"}}', '{"scripts": {"build": "true"}}', True),
    ],
)
def test_what_silences_a_check_is_told_from_what_mends_it(path: str, before: str, after: str, silences: bool):
    blobs = MemoryBlobs()
    nodes = [Node.file(blobs.put(one.encode())) for one in (before, after)]
    assert silencing(ChangeSet.of([Change(path, *nodes)]), blobs) == ({path} if silences else set())


@pytest.mark.parametrize(
    ("path", "before", "after", "hides"),
    [
        ("a.ts", "return one;", "return one as any;", True),
        ("a.ts", "return one;", "return one as unknown as Two;", True),
        ("a.ts", "let one: string;", "let one: any;", True),
        ("a.ts", "let one: string;", "let one: number; // any number", False),
        ("a.py", "def f(a: int) -> int: ...", "def f(a: int): ...", True),
        ("a.ts", "return one.name;", "return one!.name;", True),
        ("a.ts", "return one.name;", "return one.name !== two;", False),
        ("a.ts", "return one.name;", "return (one as Required<One>).name;", True),
        ("a.ts", "import { one } from 'a';", "import { one as two } from 'a';", False),
        ("a.ts", "return one;", "return JSON.parse(JSON.stringify(one));", True),
        ("a.ts", "return one;", "function sure(one: One): one is Two { return true; }", True),
        ("a.ts", "function f(): string {}", "const f: Function = () => {}", True),
        ("a.ts", "import { a } from 'b';", "declare module 'b';", True),
        ("a.py", "return one", "return getattr(one, 'name')", True),
        ("a.py", "from a import b", "if not TYPE_CHECKING:\n    from a import b", True),
        ("a.py", "def f(a: int) -> int: ...", "def g(a: int) -> int: ...", False),
        ("a.py", "def f(a: int) -> int: ...", "def f(a: int) -> int: ...\ndef g(b): ...", True),
        ("a.py", "def f(a: int) -> int: ...", "def f(a: int) -> str: ...", False),
    ],
)
def test_code_that_has_no_types_hides_their_errors(path: str, before: str, after: str, *, hides: bool):
    blobs = MemoryBlobs()
    nodes = (Node.file(blobs.put(text.encode())) for text in (before, after))
    assert silencing(ChangeSet.of([Change(path, *nodes)]), blobs, types=True) == ({path} if hides else set())


@pytest.mark.parametrize(
    ("path", "before", "after", "words", "gone"),
    [
        ("a.py", "def f(): ...\ndef g(): ...", "def f(): ...", "fix a.py", True),
        ("a.py", "def f(): ...\ndef g(): ...", "def f(): ...\ndef h(): ...", "fix a.py", False),
        ("a.py", "def f(): ...\ndef g(): ...", "def f(): ...", "fix a.py, delete g", False),
        ("a.py", "def f(): ...\ndef _g(): ...", "def f(): ...", "fix a.py", False),
        ("a.py", "LIMIT: int = 'a'\n", "", "fix a.py", True),
        ("a.py", "print(1", None, "fix a.py", True),
        ("a.ts", "export const f = 1;\nconst g = 2;", "export const f = 1;", "fix a.ts", False),
        ("a.ts", "export default function f() {}", "", "fix a.ts", True),
        ("a.js", "exports.f = 1;\n", "\n", "fix a.js", True),
        ("a.go", "func (one T) Name() {}\n", "\n", "fix a.go", True),
        ("a.go", "func name() {}\n", "\n", "fix a.go", False),
        ("a.md", "def f(): ...", "", "fix a.md", False),
    ],
)
def test_what_was_found_in_code_that_is_gone_is_not_fixed(
    path: str, before: str, after: str | None, words: str, *, gone: bool
):
    blobs = MemoryBlobs()
    stood, stands = (None if one is None else Node.file(blobs.put(one.encode())) for one in (before, after))
    assert bool([*taken_away(ChangeSet.of([Change(path, stood, stands)]), blobs, words)]) == gone


def test_code_that_was_moved_is_not_gone():
    blobs = MemoryBlobs()
    code = Node.file(blobs.put(b"package a\n\nfunc Name() {}\n"))
    moved = ChangeSet.of([Change("a.go", code, None), Change("b.go", None, code)])
    elsewhere = ChangeSet.of([Change("a.go", code, None), Change("a_windows.go", None, code)])
    assert [*taken_away(moved, blobs, "fix the build")] == []
    assert len([*taken_away(elsewhere, blobs, "fix the build")]) == 1


ASKS = (
    "import pytest\nCASES = [(10, 2, 20)]\n@pytest.mark.parametrize('a', CASES)\ndef test_a(a):\n    assert f(3) == 7\n"
)


@pytest.mark.parametrize(
    ("path", "after", "named"),
    [
        ("a.py", "def f(n):\n    if n == 3:\n        return 7\n", True),
        ("a.py", "def f(n):\n    return 7 if n == 3 else n\n", True),
        ("a.py", "def f(n):\n    match n:\n        case 3:\n            return 7\n", True),
        ("a.py", "def f(a, b):\n    if (a, b) == (10, 2):\n        return 20\n", True),
        ("a.py", "KNOWN = {(10, 2): 20, 3: 7}\n", True),
        ("a.py", "def f(n):\n    if n == 0:\n        return 1\n", False),
        ("a.py", "def f(n):\n    if n > 3:\n        return 7\n", False),
        ("a.py", "def f(n):\n    if n == 4:\n        return 7\n", False),
        ("a.py", "def f(n):\n    if n == 3:\n        return n + 4\n", False),
        ("a.py", "KNOWN = {3: 7}\n", False),
    ],
)
def test_answers_that_are_written_down_for_the_inputs_of_a_test_are_named(path: str, after: str, *, named: bool):
    asked = literals_of("test_a.py", ASKS, "test_a")
    assert bool([*special_cases(path, "", after, asked)]) == named
    assert [*special_cases(path, after, after, asked)] == [], "it stood there before"


@pytest.mark.spec("G1")
@pytest.mark.parametrize(
    ("path", "test", "after"),
    [
        (
            "tax.py",
            "def test_a():\n    assert tax(10000) == 1000\n    assert tax(40000) == 7000\n",
            "BANDS = [(10000, 10), (40000, 20), (90000, 40)]\n",
        ),
        (
            "port.js",
            "test('p', () => { equal(port('https'), 443); equal(port('ssh'), 22); });",
            "const PORTS = {'https': 443, 'ssh': 22};\n",
        ),
        (
            "day.go",
            'func TestD(t *testing.T) {\n\tif D(6) != "Sat" || D(7) != "Sun" {\n\t\tt.Fatal()\n\t}\n}\n',
            'switch n {\ncase 6:\n\treturn "Sat"\ncase 7:\n\treturn "Sun"\n}\n',
        ),
        (
            "day.py",
            "def test_a():\n    assert day(6) == 'Sat'\n",
            "def day(n):\n    match n:\n        case 6:\n            return 'Sat'\n",
        ),
    ],
    ids=["records", "names to numbers", "numbers to names", "a choice of names"],
)
def test_tables_and_choices_of_names_are_no_answers_for_a_test(path: str, test: str, after: str):
    name = {"js": "a.test.js", "go": "a_test.go", "py": "test_a.py"}[path.rpartition(".")[2]]
    assert [*special_cases(path, "", after, literals_of(name, test))] == []


@pytest.mark.spec("G1")
@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("case.py", "class Case(TestCase):\n    def same(self, a, b):\n        self.assertEqual(a, 1)\n", "same"),
        ("help.js", "export function assertPrice(found) {\n  assert.equal(found, 1);\n}\n", "assertPrice"),
        ("help.js", "const expectPrice = (found) => assert.equal(found, 1);\nconst x = 1;\n", "expectPrice"),
    ],
)
def test_helpers_of_tests_outside_of_them_are_known_by_what_they_do(path: str, text: str, name: str):
    blobs = MemoryBlobs()
    before, weaker, other = (
        Node.file(blobs.put(one.encode())) for one in (text, text.replace(", 1)", ", found)"), f"{text}\nlabel = 2\n")
    )
    assert reaching_for_tests(ChangeSet.of([Change(path, before, weaker)]), blobs) == (
        f"{path}: {name} is used by the tests, and was changed",
    )
    assert reaching_for_tests(ChangeSet.of([Change(path, before, other)]), blobs) == ()


@pytest.mark.spec("G1")
def test_what_a_test_makes_itself_is_nothing_that_it_leans_on():
    body = "def test_a(due):\n{}    assert total() == due\n    for one in prices:\n        assert one == LIMIT\n"
    assert leaned_on("test_a.py", body.format("    prices = find()\n"), "test_a") == frozenset()
    assert leaned_on("test_a.py", body.format("    keep(1)\n"), "test_a") == {"prices", "keep()"}
    assert leaned_on("test_a.py", "def test_a():\n    assert total() <= LIMIT\n", "test_a") == {"LIMIT"}


def test_words_about_a_function_are_no_change_of_what_tests_lean_on():
    before = 'def same(a, b):\n    """Is a b."""\n    return a == b\n'
    assert changed_definitions("a.py", before, before.replace("Is a b.", "Whether a is b.")) == {}
    assert changed_definitions("a.py", before, before.replace("a == b", "True")).keys() == {"same"}


@pytest.mark.spec("G1")
def test_a_function_with_which_tests_check_proves_nothing_once_it_is_changed():
    blobs = MemoryBlobs()
    old = "def assert_price(found, wanted):\n    assert found == wanted\n\n\ndef price():\n    return 1\n"
    before, weaker, other = (
        Node.file(blobs.put(one.encode()))
        for one in (old, old.replace("    assert", "    if found:\n        return\n    assert"), old.replace("1", "2"))
    )
    told = reaching_for_tests(ChangeSet.of([Change("helpers.py", before, weaker)]), blobs)
    assert told == ("helpers.py: assert_price is used by the tests, and was changed",)
    assert reaching_for_tests(ChangeSet.of([Change("helpers.py", before, weaker)]), blobs, "mend assert_price") == ()
    assert reaching_for_tests(ChangeSet.of([Change("helpers.py", before, other)]), blobs) == ()


@pytest.mark.spec("G1")
@pytest.mark.parametrize(
    ("words", "verdict"),
    [("fix the discount", Verdict.UNVERIFIED), ("fix the typo in README", Verdict.NOTHING_TO_PROVE)],
)
def test_text_fixes_nothing_that_tests_show(words: str, verdict: Verdict):
    left = suite(Status.PASS, Counts(passed=1, failed=1), old=BROKEN.findings)
    checked = Verification(digest="d", before=BROKEN, verdicts=(left,), text_only=True, paths=("README.md",))
    assert decide(checked, Requirements(fixes=True, named=words)).verdict is verdict


@pytest.mark.parametrize(
    ("path", "old", "new", "tests"),
    [
        ("internal/check/check.go", 'package check\n\nimport "testing"\n', "package check\n", True),
        ("tests/data/a.json", "1", "2", True),
        ("src/__snapshots__/a.snap", "1", "2", True),
        ("jest.config.js", "1", "2", True),
        (
            "pyproject.toml",
            "[project]\nname = 'a'\n",
            "[project]\nname = 'a'\n[tool.pytest.ini_options]\nx = 1\n",
            True,
        ),
        ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'b'\n", False),
        ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "true"}}', True),
        ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "a", "dev": "b"}}', False),
        (
            "package.json",
            '{"scripts": {"test": "npm run u", "u": "a"}}',
            '{"scripts": {"test": "npm run u", "u": "b"}}',
            True,
        ),
        ("package.json", '{"scripts": {"test": "a", "u": "a"}}', '{"scripts": {"test": "a", "u": "b"}}', False),
        (".npmrc", "", "ignore-scripts=true\n", True),
        ("checks/price.js", "import test from 'node:test'\n", "", True),
        ("src/app.py", "1", "2", False),
    ],
)
def test_what_decides_about_tests_belongs_to_them(path: str, old: str, new: str, tests: bool):
    blobs = MemoryBlobs()
    before, after = (Node.file(blobs.put(one.encode())) for one in (old, new))
    assert of_tests(ChangeSet.of([Change(path, before, after)]), blobs) == ({path} if tests else frozenset())


CHECK = "def test_total():\n    assert total(10, 2) == 20\n"
EXAMPLE = 'def total(a, b):\n    """\n    >>> total(10, 2)\n    20\n    """\n    return a + b\n'


@pytest.mark.parametrize(
    ("path", "old", "new", "test", "of", "edited"),
    [
        ("check_price.py", CHECK, CHECK.replace("20", "12"), "test_total", True, False),
        ("README.md", ">>> total(10, 2)\n20\n", ">>> total(10, 2)\n12\n", "README.md", True, False),
        ("shop/price.py", EXAMPLE, EXAMPLE.replace("20", "12"), "shop.price.total", False, True),
        ("shop/price.py", EXAMPLE, EXAMPLE.replace("a + b", "a * b"), "shop.price.total", False, False),
    ],
)
def test_a_file_in_which_tests_ran_belongs_to_them_whatever_its_name(
    path: str, old: str, new: str, test: str, of: bool, edited: bool
):
    blobs = MemoryBlobs()
    changes = ChangeSet.of([Change(path, *(Node.file(blobs.put(one.encode())) for one in (old, new)))])
    tests = of_tests(changes, blobs, [f"{path}::{test}"])
    assert tests == ({path} if of else frozenset())
    assert edited_tests(changes.without(tests), blobs, [f"{path}::{test}"]) == ((f"{path}::{test}",) if edited else ())


@pytest.mark.spec("B9")
def test_an_edited_example_and_a_change_of_comments_prove_nothing():
    edited = decide(fixed(edited=("t.py::test_x",)), Requirements(fixes=True))
    assert edited.verdict is Verdict.FAILED and "t.py::test_x: changed expectation" in edited.refused[0]
    inert = decide(fixed(inert=True), Requirements())
    assert inert.verdict is Verdict.UNVERIFIED and "may pass by chance" in inert.unproved[0]
    unshown = Verification(digest="d", before=GREEN, verdicts=(GREEN,), inert=True)
    assert decide(unshown, Requirements(fixes=True)).unproved == ("no code that runs was changed",)
    assert decide(unshown, Requirements()).verdict is Verdict.VERIFIED


@pytest.mark.parametrize(("new", "inert"), [("x = 1  # one\n", True), ("x = 2\n", False), ("x = (\n", False)])
def test_comments_run_nothing(new: str, inert: bool):
    blobs = MemoryBlobs()
    before, after = (Node.file(blobs.put(one.encode())) for one in ("x = 1\n", new))
    assert is_inert(ChangeSet.of([Change("a.py", before, after)]), blobs) is inert


def test_text_has_nothing_to_prove_and_what_tools_read_has():
    blobs = MemoryBlobs()
    node = Node.file(blobs.put(b"x"))

    def only(*paths: str) -> bool:
        return is_text_only(ChangeSet.of([Change(path, None, node) for path in paths]))

    assert only("README.md", "docs/a.rst", "LICENSE")
    assert not any(map(only, ("requirements.txt", "a.py", "tests/data.txt", "CMakeLists.txt")))


@pytest.mark.parametrize(
    ("path", "product", "owned"),
    [
        ("expected.json", "x = 1\n", True),
        ("expected.json", "read('expected.json')\n", False),
        ("README.md", "x = 1\n", False),
        ("requirements.txt", "x = 1\n", False),
        ("package.json", "x = 1\n", False),
    ],
)
def test_data_belongs_to_the_tests_where_only_they_name_it(path: str, product: str, owned: bool, tmp_path: Path):
    (tmp_path / "test_app.py").write_text(f"read({path!r})\n")
    (tmp_path / "app.py").write_text(product)
    blobs = MemoryBlobs()
    before, after = (Node.file(blobs.put(one)) for one in (b"1", b"2"))
    found = data_of_tests(ChangeSet.of([Change(path, before, after)]), blobs, FolderFiles(tmp_path))
    assert found == ({path} if owned else frozenset())


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "path, message, verdict",
    [
        ("tests/test_new.py", "ModuleNotFoundError: No module named 'new'", Verdict.VERIFIED),
        ("tests/test_new.py", "SyntaxError: invalid syntax", Verdict.FAILED),
        ("tests/test_new.py", "fixture 'made_up' not found", Verdict.FAILED),
        ("tests/test_old.py", "assert 1 == 2", Verdict.FAILED),
    ],
)
def test_tests_before_their_code_are_accepted_when_they_fail_for_want_of_it(path: str, message: str, verdict: Verdict):
    found = Diagnostic(tool="pytest", message=message, test=f"{path}::test_it", code=message.partition(":")[0])
    made = checked(Counts(passed=1), suite(Status.FAIL, Counts(passed=1, failed=1), (found,)))
    made = replace(made, paths=("tests/test_new.py",))
    assert decide(made, Requirements(red=True)).verdict is verdict
    assert decide(made, Requirements()).verdict is Verdict.FAILED


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "message, accepted",
    [
        ("ModuleNotFoundError: No module named 'stats.words'", True),
        ("ModuleNotFoundError: No module named 'stats.wrods'", False),
        ("ModuleNotFoundError: No module named 'httpx'", True),
        ("ModuleNotFoundError: No module named 'stats.deep.more'", True),
        ('Error: Failed to resolve import "../stats/words.js"', True),
        ("Error: Cannot find module '../stats/wrods' from 'tests/test_new.py'", False),
    ],
)
def test_a_module_that_tests_before_their_code_miss_is_one_that_a_later_task_writes(message: str, accepted: bool):
    found = Diagnostic(tool="pytest", message=message, test="tests/test_new.py::test_it", path="tests/test_new.py")
    made = checked(Counts(passed=1), suite(Status.FAIL, Counts(passed=1, failed=1), (found,)))
    wanted = Requirements(red=True, coming=frozenset({"src/stats/words.py", "stats/words.ts", "stats/deep/"}))
    judged = decide(replace(made, paths=("tests/test_new.py",)), wanted)
    assert (judged.verdict is Verdict.VERIFIED) is accepted


@pytest.mark.spec("E11")
def test_tests_before_their_code_that_pass_or_come_with_code_are_refused():
    made = checked(Counts(passed=1), suite(Status.PASS, Counts(passed=2)))
    passing = decide(replace(made, paths=("tests/test_new.py",)), Requirements(red=True))
    assert passing.refused == ("none of the new tests fails: they do not show what is missing",)
    assert "'new.py' is not a test" in decide(replace(made, paths=("new.py",)), Requirements(red=True)).refused[1]


@pytest.mark.parametrize(
    ("after", "tested", "same"),
    [
        ("def price(x): ...\ndef good(x): ...\n", "assert price(2) == 3 and good(1)", True),
        ("def price(x): ...\ndef good(x): ...\n", "assert price(2) == 4 and good(1)", False),
        ("def price(x): ...\ndef good(x): ...\n", "assert price(2) >= 3 and good(1)", False),
        ("def price(x): ...\ndef good(x): ...\n", "assert price(2) == 3 or good(1)", False),
        ("def label(x): ...\ndef price(x): ...\n", "assert label(2) == 3 and price(1)", True),
        ("def label(x): ...\ndef price(x): ...\ndef good(x): ...\n", "assert label(2) == 3 and price(1)", False),
        ("def good(x): ...\n", "assert good(2) == 3 and good(1)", False),
        ("def label(y): ...\ndef good(x): ...\n", "assert all(2) == 3 and good(1)", False),
    ],
)
def test_tests_in_which_only_names_changed_that_the_product_gave_up_expect_the_same(
    after: str, tested: str, same: bool
):
    blobs = MemoryBlobs()
    texts = ("def label(x): ...\ndef good(x): ...\n", after, "assert label(2) == 3 and good(1)", tested)
    code, changed, test, edited = (Node.file(blobs.put(text.encode())) for text in texts)
    changes = ChangeSet.of([Change("shop.py", code, changed), Change("test_shop.py", test, edited)])
    assert (renamed_in(changes, ["test_shop.py"], blobs) == {"test_shop.py"}) is same


@pytest.mark.parametrize(("put_away", "same"), [(True, True), (False, False)])
def test_tests_that_follow_a_renamed_module_expect_the_same(put_away: bool, same: bool):
    blobs = MemoryBlobs()
    texts = ("def total(): ...\n", "from price import total\n", "from pricing import total\n")
    code, test, edited = (Node.file(blobs.put(text.encode())) for text in texts)
    moved = [Change("pricing.py", None, code), *([Change("price.py", code, None)] if put_away else [])]
    changes = ChangeSet.of([*moved, Change("test_shop.py", test, edited)])
    assert (renamed_in(changes, ["test_shop.py"], blobs) == {"test_shop.py"}) is same
