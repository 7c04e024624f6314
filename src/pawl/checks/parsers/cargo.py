"""Reads what `cargo test` prints: unit, integration and documentation tests, panics, and code that does not compile."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pawl.checks.output import CUT, Origin, cleaned, shortened
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "cargo"
_RUNNING = re.compile(r"^running (\d+) tests?$")
_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; ")
_RAN = re.compile(r"^(?:test (.+?)(?: - should panic)? \.\.\.|(.+) ---) (ok|FAILED|ignored)\b")
_BLOCK = re.compile(r"^---- (.+) stdout ----$")
_LISTED = re.compile(r"^    (\S.*)$")
_PANIC = re.compile(r"^thread '.*'(?: \(\d+\))? panicked at (.+?):(\d+):(\d+):$")
_OLD_PANIC = re.compile(r"^thread '.*' panicked at '(.*)', (.+?):(\d+):(\d+)$")
_DID_NOT_PANIC = re.compile(r"^note: (test did not panic as expected)(?: at (.+?):(\d+):(\d+))?$")
_FRAME = re.compile(r"^\s+at (\S+?):(\d+)(?::(\d+))?$")
_AFTER_MESSAGE = re.compile(r"^(?:note: run with|stack backtrace:|note: Some details are omitted)")
_COMPILER = re.compile(r"^error(?:\[(E\d+)\])?: (.+)$")
_ARROW = re.compile(r"^ +--> (.+?):(\d+):(\d+)$")
_NOT_COMPILED = re.compile(r"^error: could not compile .+?(?:due to (\d+) previous errors?.*)?$")


@dataclass(slots=True)
class _Target:
    """One binary's tests: from `running` to its result."""

    expected: int = 0
    lines: list[str] = field(default_factory=list)
    counts: tuple[int, int, int] | None = None


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    targets = _targets(text.lines)
    findings = [finding for target in targets for finding in _of_target(target, where)]
    compiler = list(dict.fromkeys(_of_compiler(text.lines, where)))
    passed, failed, ignored = (sum(target.counts[i] for target in targets if target.counts) for i in range(3))
    if any(target.counts is None for target in targets):
        failed = max(failed, len(findings))
    gave_up = [match for line in text.lines if (match := _NOT_COMPILED.match(line))]
    # Where the middle is gone, whole targets may be.
    ended = bool(gave_up) or (bool(targets) and not text.cut and all(target.counts for target in targets))
    errors = max(len(compiler), *(int(match[1] or 0) for match in gave_up), 0)
    counts = TestCounts(passed=passed, failed=failed, errors=errors, skipped=ignored)
    return report(counts, [*compiler, *findings], ended=ended, cut=text.cut)


def _targets(lines: Sequence[str]) -> list[_Target]:
    """The targets; the last result line of each is the real one, for a test may print another."""
    targets: list[_Target] = []
    for line in lines:
        running = _RUNNING.match(line)
        if running:
            targets.append(_Target(int(running[1])))
        elif line == CUT:
            targets.append(_Target(-1))
        elif targets:
            targets[-1].lines.append(line)
            result = _RESULT.match(line)
            if result:
                numbers = (int(result[1]), int(result[2]), int(result[3]))
                if targets[-1].expected in (-1, sum(numbers)):
                    targets[-1].counts = numbers
    return targets


def _of_target(target: _Target, origin: Origin) -> Iterator[Diagnostic]:
    blocks_start = next((i for i, line in enumerate(target.lines) if line == "failures:"), len(target.lines))
    failing = _listed(target.lines)
    if not failing:
        ran = (_RAN.match(line) for line in target.lines[:blocks_start])
        failing = [match[1] or match[2] for match in ran if match and match[3] == "FAILED"]
    blocks = _blocks(target.lines[blocks_start:], frozenset(failing))
    for name in failing:
        if name in blocks:
            yield _finding(name, blocks[name], origin)
        else:
            yield failure(_TOOL, "failed; what it printed is not in the output", test=name)


def _listed(lines: Sequence[str]) -> list[str]:
    """The names in the closing list of failures."""
    start = max((i for i, line in enumerate(lines) if line == "failures:"), default=None)
    if start is None:
        return []
    listed = itertools.takewhile(lambda line: _LISTED.match(line), lines[start + 1 :])
    return [line.strip() for line in listed]


def _blocks(lines: Sequence[str], names: frozenset[str]) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        match = _BLOCK.match(line)
        if match and match[1] in names:
            current = blocks.setdefault(match[1], [])
        elif line == "failures:":
            current = None
        elif current is not None:
            current.append(line)
    return blocks


def _finding(name: str, lines: Sequence[str], origin: Origin) -> Diagnostic:
    frames = shortened(
        origin.place(match[1], int(match[2]), int(match[3] or 0))
        for line in reversed(lines)
        if (match := _FRAME.match(line))
    )
    for index, line in enumerate(lines):
        panic, old, quiet = _PANIC.match(line), _OLD_PANIC.match(line), _DID_NOT_PANIC.match(line)
        if panic:
            said = itertools.takewhile(lambda said: said and not _AFTER_MESSAGE.match(said), lines[index + 1 :])
            at = origin.place(panic[1], int(panic[2]), int(panic[3]))
            unexpected = [said for said in lines if said.startswith("note: panic did not contain expected string")]
            message = unindented([*said, *unexpected])
            return failure(_TOOL, message, test=name, code="panic", frames=frames, at=at)
        if old:
            at = origin.place(old[2], int(old[3]), int(old[4]))
            return failure(_TOOL, old[1], test=name, code="panic", frames=frames, at=at)
        if quiet:
            place = origin.place(quiet[2], int(quiet[3]), int(quiet[4])) if quiet[2] else None
            return failure(_TOOL, quiet[1], test=name, code="no panic", at=place)
    message = unindented(line for line in lines if line.strip())
    return failure(_TOOL, message, test=name, code="Error" if message.startswith("Error") else "", frames=frames)


def _of_compiler(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    for line, following in itertools.pairwise(lines):
        error, arrow = _COMPILER.match(line), _ARROW.match(following)
        if error and arrow:
            at = origin.place(arrow[1], int(arrow[2]), int(arrow[3]))
            yield failure(_TOOL, error[2], code=error[1] or "error", at=at)
