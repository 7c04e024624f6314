"""The ids of tests as runners write them: their files, and what of them stays the same from run to run."""

from __future__ import annotations

import re
from collections.abc import Collection


def is_among(test: str, passed: Collection[str]) -> bool:
    """Whether the test passed; of a file that could not be loaded before, one of its tests."""
    # unittest calls such a file by a test of its loader.
    name = stable(test.rpartition("_FailedTest.")[2])
    return any(stable(one) == name or one.startswith((f"{name}::", f"{name}.", f"{name} > ")) for one in passed)


def stable(test: str) -> str:
    """The id without the line that Rust gives to a test of the documentation."""
    return re.sub(r" \(line \d+\)$", "", test)


TITLES = " > "


def file_of(test: str) -> str:
    return test.partition("::")[0].partition(TITLES)[0]


def without_parameters(test: str) -> str:
    """A test of Go without the names of its subtests, too."""
    return _GO.sub(r"\1", stable(test.partition("[")[0]))


_GO = re.compile(r"((?:^|::)(?:Test|Example|Fuzz|Benchmark)\w*)/.*")
