"""Reads what rspec prints with its progress, documentation and JSON formatters, whole or cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pawl.checks.output import CUT, Origin, cleaned, shortened
from pawl.checks.parsers.javascript import objects_with
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, Location, TestCounts

_TOOL = "rspec"
_NUMBERED = re.compile(r"^  (\d+)\) (.+?)( FIXED)?$")
_FINISHED = re.compile(r"^Finished in ")
_COUNTS = re.compile(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$"
)
_FRAME = re.compile(r"^\s*# (\S+?):(\d+)(?::in .+)?$")
_BACKTRACE = re.compile(r"^(\S+?):(\d+)(?::in .+)?$")
_ERROR = re.compile(r"^\s*(?!Diff:)([A-Z]\w*(?:::[A-Z]\w*)*):$")
_LOADING = re.compile(r"^An error occurred (?:while loading|in) (?:a )?(.+?)\.?(?: - Did you mean\?)?$")


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    machine = _parse_json(text.text, where)
    if machine:
        return machine
    lines = text.lines
    counted = _counts(lines)
    findings = [*_examples(lines, where), *_outside(lines, where)]
    counts = counted or TestCounts(failed=sum(bool(finding.test) for finding in findings))
    return report(counts, findings, ended=counted is not None, cut=text.cut)


def _counts(lines: Sequence[str]) -> TestCounts | None:
    for before, line in reversed(list(itertools.pairwise(lines))):
        match = _COUNTS.match(line)
        if match and (_FINISHED.match(before) or before == CUT):
            examples, failures, pending, errors = (int(number or 0) for number in match.groups())
            return TestCounts(passed=examples - failures - pending, failed=failures, skipped=pending, errors=errors)
    return None


def _examples(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    """The failures below the heading, or after a cut; pending examples look alike, but stand above it."""
    headings = [index for index, line in enumerate(lines) if line == "Failures:"]
    cuts = [index for index, line in enumerate(lines) if line == CUT]
    start = headings[-1] if headings else cuts[-1] if cuts else len(lines)
    if not headings and any(line.startswith("Pending:") for line in lines[start:]):
        return
    body: list[str] = []
    name, number = "", 0
    for line in (*lines[start + 1 :], CUT):
        match = _NUMBERED.match(line)
        follows = match is not None and (number == 0 or int(match[1]) == number + 1)
        if follows or line == CUT or _FINISHED.match(line):
            if name:
                yield _finding(name, body, origin)
            name, body = "", []
            if _FINISHED.match(line):
                return
        if match and follows:
            name, number = match[2], int(match[1])
        elif line == CUT:
            number = 0
        else:
            body.append(line)


def _finding(name: str, body: Sequence[str], origin: Origin) -> Diagnostic:
    frames = [match for line in body if (match := _FRAME.match(line))]
    message = unindented(line for line in body if not _FRAME.match(line))
    code = next((match[1] for line in body if (match := _ERROR.match(line))), "")
    return failure(_TOOL, message, test=name, code=code, frames=_outermost_first(frames, origin))


def _outermost_first(frames: Sequence[re.Match[str]], origin: Origin) -> tuple[Location, ...]:
    return shortened(origin.place(match[1], int(match[2])) for match in reversed(frames))


def _outside(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    """Files that could not be loaded, and hooks around the whole suite that failed."""
    for index, line in enumerate(lines):
        loading = _LOADING.match(line)
        if not loading:
            continue
        body = list(itertools.takewhile(lambda said: not _ends_block(said), lines[index + 1 :]))
        start = next((at for at, said in enumerate(body) if said.startswith("Failure/Error")), 0)
        found = _finding("", body[start:], origin)
        at = None if found.frames else origin.place(loading[1])
        yield failure(_TOOL, found.message, code=found.code, frames=found.frames, at=at)


def _ends_block(line: str) -> bool:
    return line == CUT or bool(_FINISHED.match(line) or _LOADING.match(line) or line.startswith("No examples found"))


def _parse_json(text: str, origin: Origin) -> TestReport | None:
    results: list[dict[str, Any]] = [result for result in objects_with(text, "examples") if "summary" in result]
    if not results:
        return None
    summary = results[-1]["summary"]
    findings = []
    for example in results[-1]["examples"]:
        error = example.get("exception")
        if example.get("status") == "failed" and error:
            frames = [match for line in error.get("backtrace") or [] if (match := _BACKTRACE.match(line))]
            findings.append(
                failure(
                    _TOOL,
                    str(error.get("message", "")).strip("\n"),
                    test=str(example.get("full_description", "")),
                    code=str(error.get("class", "")),
                    frames=_outermost_first(frames, origin),
                    at=None if frames else origin.place(example["file_path"], int(example["line_number"])),
                )
            )
    total, failed, pending = (int(summary.get(f"{word}_count", 0)) for word in ("example", "failure", "pending"))
    errors = int(summary.get("errors_outside_of_examples_count", 0))
    counts = TestCounts(passed=total - failed - pending, failed=failed, skipped=pending, errors=errors)
    return report(counts, findings, ended=True)
