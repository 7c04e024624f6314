"""Mines changes from the histories of public repositories and writes the librarian's signals for each of their files.

python training/changes.py --mirrors DIR --out DIR [--most 12] [--only owner/name]

DIR holds git directories as OWNER+NAME/repo; those that a benchmark uses are left out. A change is a commit that edits
one to four Python files of the product and a file of tests. Its query is what the commit says; for every other one, as
in a report, also the lines that it adds to its tests, as code, and to pages, as prose. The tree is that of the commit
before it, and commits are read as of that moment. The output is one .npz for each repository: `x` the signals by file,
`y` whether the commit edited it, `group` the change that a row is of, `names` those of the signals, `roots` the commits
that the history begins with: a copy of a benchmark's repository under another name is told by them, and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from locate import Mirror  # noqa: E402

from pawl.code.index_reader import IndexReader  # noqa: E402
from pawl.code.languages import is_test  # noqa: E402
from pawl.code.librarian import CodeLibrarian  # noqa: E402
from pawl.code.query import understand  # noqa: E402
from pawl.code.ranker import ranking, signals  # noqa: E402
from pawl.settings.files import Tree  # noqa: E402
from pawl.settings.guardrails import preset  # noqa: E402
from pawl.workspace.bench_files import WorkspaceFiles  # noqa: E402

KEPT_OUT = frozenset((ROOT / "training/kept_out.txt").read_text("utf-8").split())
"""Names, and the commits that their histories begin with."""
MOST_FILES = 4
MOST_ADDED = 40
SPREAD = 25
"""Changes are taken evenly from so many times their number."""
NO_CHANGE = re.compile(
    r"\b(lint\w*|flake8|mypy|pylint|ruff|typos?|spelling|type hints?|typing|annotations?|format(ting)?|style|isort"
    r"|black|release|bump|version|merge|revert|pyupgrade|copyright|licen[cs]e|clean ?up|refactor\w*|python ?[23]\S*"
    r"|pre-commit|deprecat\w*|rename\w*|moved?)\b",
    re.IGNORECASE,
)
TRAILER = re.compile(r"^(?:[A-Z][\w-]+-by:|\(cherry picked|git-svn-id|Change-Id|\* \S+\.\w+\b).*$", re.MULTILINE)
PLACES, ALONE = 200, 15
"""Files that are kept: the first by the weights of today, and by each signal alone."""


@dataclass(frozen=True)
class Change:
    base: str
    commit: str
    text: str
    edited: frozenset[str]


def git(repository: Path, *words: str) -> str:
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")


def changes(repository: Path, most: int) -> list[Change]:
    """The oldest first."""
    words = ("log", "--no-merges", "--no-renames", "-n8000", "--name-status", "--format=%x01%H %P%x02%B%x03", "HEAD")
    found = []
    for commit, base, said, changed in _commits(git(repository, *words)):
        edited = frozenset(path for status, path in changed if status == "M" and _is_source(path))
        tests = [path for _, path in changed if path.endswith(".py") and is_test(path)]
        subject = said.partition("\n")[0]
        if 0 < len(edited) <= MOST_FILES and tests and len(subject.split()) > 3 and not NO_CHANGE.search(subject):
            found.append((commit, base, said, edited))
            if len(found) == most * SPREAD:
                break
    step = max(1.0, len(found) / most)
    taken = [found[int(number * step)] for number in range(min(most, len(found)))][::-1]
    return [Change(base, commit, _text(repository, base, commit, said), edited) for commit, base, said, edited in taken]


def roots(repository: Path) -> list[str]:
    return sorted(name[:12] for name in git(repository, "rev-list", "--max-parents=0", "HEAD").split())


def _is_source(path: str) -> bool:
    return path.endswith(".py") and not is_test(path)


def _commits(log: str) -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    for part in log.split("\x01")[1:]:
        head, _, rest = part.partition("\x02")
        said, _, names = rest.partition("\x03")
        commits = head.split()
        lines = [line.split("\t", 1) for line in names.splitlines() if "\t" in line]
        if len(commits) == 2:
            yield commits[0], commits[1], said, [(status, path) for status, path in lines]


def _text(repository: Path, base: str, commit: str, said: str) -> str:
    said = TRAILER.sub("", said).strip()
    if int(hashlib.sha256(commit.encode()).hexdigest(), 16) % 2:
        return said
    added: dict[bool, list[str]] = {True: [], False: []}
    path = ""
    for line in git(repository, "diff", "-U0", "--no-renames", base, commit).splitlines():
        if line.startswith("+++ "):
            path = line[6:]
        elif line.startswith("+") and (is_test(path) if path.endswith(".py") else re.search(r"\.(rst|md|txt)$", path)):
            added[path.endswith(".py")].append(line[1:])
    pages, tests = ("\n".join(added[one][:MOST_ADDED]) for one in (False, True))
    return "\n\n".join([said, *([pages] if pages else []), *([f"```python\n{tests}\n```"] if tests else [])])


def rows(change: Change, librarian: CodeLibrarian) -> tuple[np.ndarray, np.ndarray] | None:
    """The signals of the files that matter, and which of these were edited. None where an edited file is unknown."""
    names = list(ranking().signals)

    def read(shelf: IndexReader) -> tuple[np.ndarray, np.ndarray] | None:
        found = signals(understand(change.text), (), shelf)
        total = found.joined(lambda signal: signal.weight)
        kept: set[int] = set()
        for scores, first in [(total, PLACES), *((found.values[name], ALONE) for name in names)]:
            there = [number for number in scores if number in shelf.candidates]
            kept.update(sorted(there, key=lambda number: (-scores[number], number))[:first])
        edited = {shelf.by_path.get(path) for path in change.edited}
        if not edited <= shelf.candidates:
            return None
        order = sorted(kept | edited)
        values = [[found.values[name].get(number, 0.0) for name in names] for number in order]
        return np.array(values, dtype=np.float16), np.array([number in edited for number in order])

    return librarian.reading(read, tests=False)


def tables(found: list[Change], mirror: Mirror, index: Path) -> dict[str, np.ndarray]:
    """What is written for one repository."""
    parts = []
    for change in found:
        mirror.show(change.base)
        with Tree(mirror.folder) as tree:
            files = WorkspaceFiles(tree, preset("standard"))
            with CodeLibrarian(index, files, mirror.log()) as librarian:  # type: ignore[arg-type]
                librarian.refresh(seconds=10_000)
                librarian.take_in(mirror.log())  # type: ignore[arg-type]
                part = rows(change, librarian)
        if part is not None:
            parts.append(part)
    if not parts:
        return {}
    return {
        "names": np.array(list(ranking().signals)),
        "x": np.concatenate([x for x, _ in parts]),
        "y": np.concatenate([y for _, y in parts]),
        "group": np.concatenate([np.full(len(y), number) for number, (_, y) in enumerate(parts)]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=12, help="changes of one repository")
    parser.add_argument("--only", default="", help="repositories whose name holds this")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for folder in sorted(options.mirrors.iterdir()):
        name = folder.name.replace("+", "/")
        if name.lower() in KEPT_OUT or options.only not in name or not (folder / "repo").exists():
            continue
        first = roots(folder / "repo")
        if not KEPT_OUT.isdisjoint(first):
            continue
        with tempfile.TemporaryDirectory(prefix="pawl-changes-") as work:
            mirror = Mirror(folder / "repo", Path(work) / "tree")
            made = tables(changes(mirror.repository, options.most), mirror, Path(work) / "index.db")
            shutil.rmtree(mirror.folder)
        if made:
            np.savez_compressed(options.out / f"{folder.name}.npz", roots=np.array(first), **made)
        print(name, int(made["group"][-1]) + 1 if made else 0, flush=True)


if __name__ == "__main__":
    main()
