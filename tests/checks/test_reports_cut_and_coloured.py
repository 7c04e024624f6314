"""Whatever part of a report is missing, parsing neither fails nor invents, and says that something is missing."""

from pathlib import Path

import pytest

from pawl.checks.output import Origin, places
from pawl.checks.report_readers import PARSERS
from pawl.core.execution import Captured

FIXTURES = Path(__file__).parent / "fixtures"
ORIGIN = Origin(workspace="/project")
REPORTS = [
    (parser, path)
    for parser in PARSERS
    if parser != "junit"
    for path in sorted((FIXTURES / parser).glob("*.txt"))
]  # fmt: skip
# Without -v `go test` says nothing that would tell a test's own line from one that a test printed.
UNDECIDABLE = {"go/shapes_default"}


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


def cuts(size, many):
    """Pairs of how much is kept of the start and of the end."""
    step = max(size // many, 1)
    for head in range(0, size, step):
        for tail in (0, size // 7, size // 3):
            if head + tail < size:
                yield head, tail


def check_cut(parser, path, many):
    data = path.read_bytes()
    whole = PARSERS[parser](data.decode(), ORIGIN)
    tests = {finding.test for finding in whole.findings}
    for head, tail in cuts(len(data), many):
        kept = Captured(head=data[:head], tail=data[len(data) - tail :] if tail else b"", total=len(data))
        report = PARSERS[parser](kept.text, ORIGIN)
        invented = {
            finding.test
            for finding in report.findings
            if finding.test and not any(test == finding.test or test.startswith(f"{finding.test}/") for test in tests)
        }
        assert not invented, (name_of(path), head, tail, invented)
        if report.complete:
            named = {finding.test for finding in report.findings if finding.test}
            unnamed = sum(not finding.test for finding in report.findings)
            assert len(tests - named) <= unnamed, (name_of(path), head, tail)


@pytest.mark.spec("E8", "B6")
@pytest.mark.parametrize(("parser", "path"), REPORTS, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_a_report_with_its_middle_or_end_left_out_invents_no_failure(parser, path):
    if name_of(path) in UNDECIDABLE:
        pytest.skip("a plain go report cannot be told from what a test printed")
    check_cut(parser, path, 12)


@pytest.mark.spec("E8")
@pytest.mark.parametrize(
    ("parser", "plain", "coloured"),
    [
        ("pytest", "shapes_default", "shapes_colour"),
        ("vitest", "shapes_default", "shapes_colour"),
        ("jest", "shapes_default", "shapes_colour"),
        ("mocha", "shapes_default", "shapes_colour"),
        ("rspec", "shapes_default", "shapes_colour"),
        ("cargo", "shapes_keep_going", "shapes_colour"),
        ("cargo", "broken_default", "broken_colour"),
    ],
)
def test_a_coloured_report_says_the_same_as_a_plain_one(parser, plain, coloured):
    reports = [
        PARSERS[parser]((FIXTURES / parser / f"{name}.txt").read_text(encoding="utf-8"), ORIGIN)
        for name in (plain, coloured)
    ]
    assert reports[0].counts == reports[1].counts
    assert {finding.key for finding in reports[0].findings} == {finding.key for finding in reports[1].findings}
    assert reports[1].complete


@pytest.mark.spec("E8")
def test_random_bytes_between_the_lines_break_no_parser():
    noise = "\x00\x1b[31m\x1b]0;title\x07\u2028[… 12 bytes left out …]\n\r\r\n"
    for parser, path in REPORTS:
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        PARSERS[parser](("\n" + noise).join(lines), ORIGIN)
        PARSERS[parser](noise, ORIGIN)
        PARSERS[parser]("", ORIGIN)


HOSTILE = [
    "at " + "( " * 40_000,
    "    at " + ":1" * 40_000,
    " " * 80_000 + "x",
    "1 failed, " * 8_000 + "x",
    "=" * 40_000 + " a " + "=" * 40_000,
    '  File "' + '", line ' * 8_000,
    "a/" * 40_000 + ".py:1: x",
    "test " + "a " * 40_000 + "...",
    "{\n" * 4_000,
    "FAILED a.py::b" + " - c" * 8_000,
    "SUBFAILED[" + "](" * 40_000,
    "a.b (c" + ".d" * 40_000 + ")",
    "<testsuite>" * 8_000,
    "  ● x\n" + "    : /a" * 20_000,
    "thread '" + "' " * 40_000,
    "x\n" * 20_000,
]


@pytest.mark.spec("E8")
@pytest.mark.parametrize("parser", PARSERS)
def test_lines_made_to_be_slow_are_read_in_the_time_a_test_has(parser):
    frame = {
        "jest": "FAIL a.test.js\n  ● x\n",
        "vitest": " FAIL  a.test.js > b\n",
        "mocha": "  1 passing (1ms)\n  1) a:\n",
    }
    for text in HOSTILE:
        PARSERS[parser](frame.get(parser, "") + text, ORIGIN)
        places(text, ORIGIN)


@pytest.mark.slow
@pytest.mark.parametrize(("parser", "path"), REPORTS, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_a_report_cut_anywhere_invents_no_failure(parser, path):
    if name_of(path) in UNDECIDABLE:
        pytest.skip("a plain go report cannot be told from what a test printed")
    check_cut(parser, path, 400)
