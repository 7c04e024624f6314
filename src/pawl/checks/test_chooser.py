"""Choosing the tests for a change: those that it reaches, within the budget of time; all where they fit."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf

from pawl.checks.evidence import is_prose
from pawl.checks.settings import verify_settings
from pawl.checks.suite_record import SuiteRecord, suite_records
from pawl.checks.test_choice import TestChoice, file_of
from pawl.checks.test_commands import test_places
from pawl.code.index_reader import IndexReader
from pawl.code.languages import is_test
from pawl.code.librarian import everything, open_librarian, source_files
from pawl.code.reach import SECONDS_PER_TEST, ChangedLines, Reach, ReachedTest, within
from pawl.core.change import BlobReader, ChangeSet, Node, NodeKind
from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.project import Project

FEW_FILES = 40
"""Files of tests that are run whole when no run of them was ever timed."""
RUNS = 3
"""How often the tests are run for one change: without it, with it, and as they were before it."""
_MOST_NAMED = 2
_MOST_BUDGETS = 3
"""That a suite may take whose runner finds the tests of a change itself."""
_LARGEST = 1 << 20
_WORDS = re.compile(r"[\w./-]+")
_TEST_NAMES = re.compile(r"\b[Tt]est\w+")
_MOST_DEFINING = 3


def changed_lines(changes: ChangeSet, blobs: BlobReader) -> list[ChangedLines]:
    """The changed files with their lines; of what is no text, or very long, the name alone."""
    return [ChangedLines.of(one.path, _data(one.before, blobs), _data(one.after, blobs)) for one in changes]


def _data(node: Node | None, blobs: BlobReader) -> bytes:
    if node is None or node.kind is not NodeKind.FILE or node.blob is None:
        return b""
    data = blobs.get(node.blob)
    return b"" if len(data) > _LARGEST or b"\0" in data else data


@dataclass(frozen=True, slots=True)
class TestChooser:
    """Chooses for one workspace."""

    __test__ = False

    shop: Project
    record: SuiteRecord
    budget: float
    """Seconds of tests."""

    @classmethod
    def of(cls, shop: Project) -> TestChooser:
        """With what is recorded and set, and no more than the run has time for."""
        left = inf if shop.stop is None else max(0.0, shop.stop.left)
        budget = min(verify_settings(shop.config).budget, left / RUNS)
        return cls(shop, suite_records(shop.config).load(shop.workspace), budget)

    def choice(self, changes: Sequence[ChangedLines], first: Iterable[str] = (), words: str = "") -> TestChoice | None:
        """The tests for the changes; None for the whole suite.

        `first` are tests that are always among them, `words` those of the request, which may name some. Without a
        change these, and those that failed last, are all.
        """
        if self.fits():
            return None
        with suppress(PawlError), open_librarian(self.shop, shows=everything) as librarian:
            librarian.refresh()
            every = librarian.reached(changes)
            # Others, such as those of examples, are run where the request or the change is about them.
            places = test_places(self.shop)
            reach = replace(
                every,
                tests=tuple(one for one in every.tests if places.hold(one.path)),
                lost=tuple(path for path in every.lost if not is_prose(path)),
            )
            total = max(self.record.seconds or sum(map(self._seconds, reach.tests)), self.record.unfinished)
            if total > self.budget:
                known = {one.path: one for one in every.tests}
                named = librarian.reading(lambda shelf: _named(shelf, known, words))
                return self._chosen(reach, known, changes, total, (*first, *named))
        return None

    def fits(self) -> bool:
        """Whether all tests fit the budget, as far as that is known or few files say so."""
        if known := max(self.record.seconds, self.record.unfinished):
            return known <= self.budget
        return sum(is_test(stamp.path) for stamp in source_files(self.shop).stamps()) <= FEW_FILES

    def _chosen(
        self,
        reach: Reach,
        known: Mapping[str, ReachedTest],
        changes: Sequence[ChangedLines],
        total: float,
        first: Iterable[str],
    ) -> TestChoice:
        paths = tuple(one.path for one in changes)
        failed = (*first, *self.record.failed)
        wanted = [*map(file_of, failed), *sorted(self.record.failing_in(paths)), *paths]
        # A runner may name modules from its own folder.
        tails = {path.partition("/")[2]: path for path in known}
        begun = list(dict.fromkeys(known[tails.get(path, path)] for path in wanted if tails.get(path, path) in known))
        rest = [one for one in (reach.tests if reach.lost else reach.likely) if one not in begun and changes]
        chosen = [*begun, *within(rest, self.budget - sum(map(self._seconds, begun)), self._seconds)]
        if not chosen and changes:
            chosen = list(reach.tests[:1])
        # The few tests that ran first may be the slowest of thousands.
        likely = max(self.budget, self.record.unfinished, sum(self._seconds(one, usual=500) for one in reach.tests))
        return TestChoice(
            files=tuple(one.path for one in chosen),
            # A runner that finds the tests of a file itself finds all that its imports lead to, whatever they take.
            changed=tuple(path for path in paths if path not in known) if self._related_fit(reach, total) else (),
            why=_why(reach, chosen, [path for path in paths if not is_prose(path)] or paths),
            reaches=bool(begun or reach.likely),
            tests=self.record.tests or sum(one.tests for one in reach.tests),
            seconds=total if self.record.seconds else min(total, likely),
            endless=total == self.record.unfinished,
        )

    def _related_fit(self, reach: Reach, total: float) -> bool:
        # Aliases of a bundler are imports that the index cannot follow: of a much larger suite it knows too little.
        near = sum(self._seconds(one) for one in reach.tests if one.distance)
        return near <= self.budget and total <= _MOST_BUDGETS * self.budget

    def _seconds(self, test: ReachedTest, usual: int = 0) -> float:
        if test.path in self.record.files:
            return self.record.files[test.path][1]
        timed = self.record.files.values()
        tests, seconds = sum(count for count, _ in timed), sum(spent for _, spent in timed)
        pace = (seconds + usual * SECONDS_PER_TEST) / (tests + usual) if tests and seconds else SECONDS_PER_TEST
        return test.tests * pace


def _named(shelf: IndexReader, known: Collection[str], words: str) -> list[str]:
    """Files of tests that the words name: by path, by name, by module, or by a test that few of them define."""
    said = {word.strip(".").partition("::")[0] for word in _WORDS.findall(words)}
    tests = shelf.named(set(_TEST_NAMES.findall(words)))
    defined = [{shelf.files[one.file].path for one in places} & set(known) for places in tests.values()]
    listed = said.union(map(file_of, said), *(files for files in defined if len(files) <= _MOST_DEFINING))
    return [path for path in known if listed & {path, posixpath.basename(path), path.partition("/")[2]}]


def _why(reach: Reach, chosen: Collection[ReachedTest], paths: Sequence[str]) -> str:
    if not paths:
        return "those that are named or failed last"
    names = ", ".join(f"`{_module(path)}`" for path in paths[:_MOST_NAMED])
    names += f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    if reach.lost:
        return f"the most likely, because it is not known what {', '.join(reach.lost[:_MOST_NAMED])} affects"
    direct = [one for one in reach.tests if one.distance == 1]
    if direct and all(one in chosen for one in direct):
        return f"all that import {names}{' and others' if len(chosen) > len(direct) else ''}"
    return f"those most likely affected by {names}"


def _module(path: str) -> str:
    """A Python file by the name that it is imported as."""
    if not path.endswith(".py"):
        return path
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")
