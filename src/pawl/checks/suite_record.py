"""The record of a workspace's test runs: how long its tests take, which failed through which files, which are flaky."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from pawl.checks.cache import is_kept
from pawl.checks.test_choice import file_of
from pawl.core.diagnostic import CheckResult, Status, TestOutcome
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.typed import plain, typed
from pawl.settings.config import Config
from pawl.settings.files import workspace_key, write_private

_MOST_FILES = 20_000
_MOST_TESTS = 500
"""Tests that failed or are flaky, the newest."""
_MOST_FRAMES = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRecord:
    seconds: float = 0.0
    """Of the last run of the whole suite; 0 where none was seen."""
    tests: int = 0
    """How many ran then."""
    unfinished: float = 0.0
    """Seconds of a later run of it that did not come to its end."""
    files: dict[str, tuple[int, float]] = field(default_factory=dict)
    """For each file of tests how many it has, and how long they take."""
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that failed, with the files that they failed in."""
    flaky: dict[str, str] = field(default_factory=dict)
    """Tests that changed their mind, with what was seen."""

    def with_run(self, result: CheckResult, *, whole: bool) -> SuiteRecord:
        """The record with what a run showed."""
        if result.standing is Status.SKIPPED:
            return self
        files = dict(self.files)
        seen: dict[str, list[float]] = defaultdict(list)
        for one in result.ran:
            seen[file_of(one.id)].append(one.seconds)
        # Collecting and starting are not in the seconds of the tests.
        spent = sum(map(sum, seen.values()))
        factor = max(1.0, min(3.0, result.seconds / spent)) if spent else 1.0
        files.update({path: (len(times), round(factor * sum(times), 3)) for path, times in seen.items()})
        failed = dict(self.failed)
        for finding in result.findings:
            if finding.test:
                failed.pop(finding.test, None)
                failed[finding.test] = tuple(dict.fromkeys(frame.path for frame in finding.frames))[:_MOST_FRAMES]
        for one in result.ran:
            if one.outcome is TestOutcome.PASSED:
                failed.pop(one.id, None)
        record = replace(self, files=_last(files, _MOST_FILES), failed=_last(failed, _MOST_TESTS))
        if whole and result.incomplete:
            return replace(record, unfinished=round(max(self.unfinished, result.seconds), 3))
        if whole and result.counts is not None and result.counts.total:
            tests = max(result.counts.total, len(result.ran))
            return replace(record, seconds=round(result.seconds, 3), tests=tests, unfinished=0.0)
        return record

    def with_flaky(self, tests: Iterable[tuple[str, str]]) -> SuiteRecord:
        return replace(self, flaky=_last({**self.flaky, **dict(tests)}, _MOST_TESTS))

    def failing_in(self, paths: Collection[str]) -> frozenset[str]:
        """Files of tests that failed before in one of these files."""
        return frozenset(file_of(test) for test, places in self.failed.items() if not set(places).isdisjoint(paths))


def _last(rows: dict[str, T], most: int) -> dict[str, T]:
    return dict(list(rows.items())[-most:])


def _plain(rows: dict[str, T]) -> dict[str, T]:
    return {name: row for name, row in rows.items() if redacted(text := json.dumps([name, row])) == text}


@dataclass(frozen=True, slots=True)
class SuiteRecords:
    """The records by workspace. A file that cannot be read is as good as none."""

    folder: Path

    def load(self, workspace: str) -> SuiteRecord:
        try:
            return typed(SuiteRecord, json.loads(self._path(workspace).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return SuiteRecord()

    def save(self, workspace: str, record: SuiteRecord) -> None:
        # Rows that would have to be changed before they are stored are not worth keeping: parameters may be addresses.
        record = replace(record, files=_plain(record.files), failed=_plain(record.failed), flaky=_plain(record.flaky))
        write_private(self._path(workspace), redacted(json.dumps(plain(record))))

    def note(self, workspace: str, results: Iterable[CheckResult]) -> None:
        """Keep what runs of the workspace's own suite tell about its tests."""
        record = known = self.load(workspace)
        for one in results:
            if one.step == "tests" and one.standing is not Status.SKIPPED and not is_kept(one):
                record = record.with_run(one, whole=not one.part)
        if record != known:
            with suppress(OSError):
                self.save(workspace, record)

    def remember(self, workspace: str, flaky: Iterable[tuple[str, str]]) -> None:
        """Keep the tests that changed their mind."""
        with suppress(OSError):
            self.save(workspace, self.load(workspace).with_flaky(flaky))

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.json"


def suite_records(config: Config) -> SuiteRecords:
    return SuiteRecords(config.state / "suites")
