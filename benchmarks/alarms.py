"""False alarms: what is named, so that a change is unverified, in past commits that change code together with tests.

    python benchmarks/alarms.py [--commits 300] [--show] REPOSITORY ...

Nothing is run. Each commit counts as a change whose tests show what it mends; people took them all.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pawl.checks.evidence import hollow_answers, of_tests, reaching_for_tests
from pawl.code.languages import is_test
from pawl.core.change import Change, ChangeSet, Node

CODE = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".go")
MOST_FILES = 40
SERVES = "is used by the tests, and was changed"
SEARCHED = 20
"""Commits that are looked at for each that is taken, at most."""


class Repository:
    """Fits `BlobReader`, and `Folder` with the files of one change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = subprocess.Popen(
            ["git", "cat-file", "--batch"], cwd=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.files: dict[str, str] = {}

    def get(self, blob: str) -> bytes:
        self._reader.stdin.write(f"{blob}\n".encode())
        self._reader.stdin.flush()
        head = self._reader.stdout.readline().split()
        return self._reader.stdout.read(int(head[2]) + 1)[:-1] if head[1:2] == [b"blob"] else b""

    def read(self, path: str) -> bytes:
        return self.get(self.files[path])

    def exists(self, path: str) -> bool:
        return path in self.files

    def walk(self, under: str = "") -> list[str]:
        return [one for one in self.files if one.startswith(under)]

    def commits(self, most: int) -> Iterator[tuple[str, ChangeSet]]:
        """The latest that change code and tests, and not everything."""
        words = ["git", "log", "--no-merges", "--raw", "--no-renames", "--abbrev=40", "--format=commit %H"]
        with subprocess.Popen(words, cwd=self._path, stdout=subprocess.PIPE, text=True, errors="replace") as log:
            for one in "".join(_until(log.stdout, most * SEARCHED)).split("commit ")[1:]:
                commit, *lines = one.split("\n")
                changes = [_change(line) for line in lines if line.startswith(":")]
                kinds = {is_test(each.path) for each in changes if each.path.endswith(CODE)}
                if len(changes) <= MOST_FILES and len(kinds) > 1:
                    yield commit, ChangeSet.of(changes)
                    most -= 1
                if not most:
                    break
            log.kill()


def _until(lines: Iterable[str], most: int) -> Iterator[str]:
    """Those of so many commits."""
    for line in lines:
        most -= line.startswith("commit ")
        if most < 0:
            return
        yield line


def _change(line: str) -> Change:
    head, _, path = line.partition("\t")
    modes, blobs = head[1:].split()[:2], head.split()[2:4]
    both = zip(modes, blobs, strict=True)
    return Change(path, *(None if set(blob) == {"0"} else Node.file(blob, int(mode, 8)) for mode, blob in both))


_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)|^func (Test\w+)|\b(?:it|test)\(\s*[\"']([^\"']+)", re.MULTILINE)


def tests_of(repository: Repository) -> list[str]:
    """The ids of the tests in the files of tests that the commit changes."""
    files = [one for one in repository.files if is_test(one) and one.endswith(CODE)]
    return [
        name if path.endswith(".go") else f"{path}::{name}"
        for path in files
        for found in _TEST.findall(repository.read(path).decode("utf-8", "replace"))
        for name in found
        if name
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--show", action="store_true", help="every line that is named")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for path in options.repositories:
        repository, told = Repository(path), Counter[str]()
        for commit, changes in repository.commits(options.commits):
            repository.files = {one.path: one.after.blob for one in changes if one.after and one.after.blob}
            rest = changes.without(of_tests(changes, repository))
            found = hollow_answers(changes, repository, tests_of(repository), repository)
            named = {
                "reaching": reaching_for_tests(rest, repository),
                "answers": [one for one in found if not one.endswith(SERVES)],
                # Of all tests in the files of tests that change, and not only of those that the commit mends.
                "leaned on": [one for one in found if one.endswith(SERVES)],
            }
            told.update(["commits", *(kind for kind, lines in named.items() if lines)])
            for line in (line for lines in named.values() for line in lines if options.show):
                print(f"  {commit[:10]} {line}")
        total += told
        print(path, dict(told))
    print("together", dict(total))


if __name__ == "__main__":
    main()
