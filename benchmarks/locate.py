"""Measures `pawl locate` on real issues: are the files that the accepted patch edits among the first that are named?

    python benchmarks/locate.py --data issues.jsonl --repos DIR [--repo owner/name] [--no-git] [--out results.json]
    python benchmarks/locate.py --join one.json other.json

Each line of the data holds instance_id, repo (`owner/name`), base_commit, problem_statement and patch; DIR holds a git
repository `owner+name/repo` for each repo. The tree of the base commit is laid out in a temporary folder that is kept
from one issue of a repository to the next, so that the index is brought up to date as in daily work. Commits are read
as of the base commit, never later ones, and files of tests are no candidates.

`acc@k` counts an issue as right when every file that the patch edits, tests left out, is among the first k; `any@k`
when one of them is. Weights were fitted on the issues whose SHA-1 of instance_id is even ("fitted"); the others are
"held back".

Times are medians. "anew" is a new process without an index, measured for the first issue of each repository, or for
each issue with --anew; "cold" a new process over an index that is up to date; both from the start of the process to
its answer. "warm" is a second question to a librarian that is open. With --indexes the index of each issue is kept in
a folder, and taken from there by the next run, which then tells no times but the warm one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pawl.code.code_model import Query
from pawl.code.index_writer import generations
from pawl.code.languages import is_test
from pawl.code.librarian import CodeLibrarian
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles
from pawl.workspace.git import Commit, commits_in, log_words

CUTS = (1, 3, 5, 10)


class Mirror:
    """A repository, and a folder that shows one of its commits after the other."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository = repository
        self.folder = folder
        self.commit = ""
        self._shown: dict[bytes, bytes] = {}
        folder.mkdir(parents=True)

    def git(self, *words: str) -> bytes:
        command = ["git", "-C", str(self.repository), *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def show(self, commit: str) -> None:
        """Writes and deletes what differs from the commit before. Files that the mirror lacks are left out."""
        wanted: dict[bytes, bytes] = {}
        for entry in self.git("ls-tree", "-r", "-z", commit).split(b"\0"):
            meta, _, path = entry.partition(b"\t")
            if meta.startswith(b"100"):
                wanted[path] = meta.split()[2]
        for path in self._shown.keys() - wanted.keys():
            os.unlink(os.path.join(os.fsencode(self.folder), path))
        changed = [(path, name) for path, name in wanted.items() if self._shown.get(path) != name]
        self._shown = {path: name for path, name in wanted.items() if self._shown.get(path) == name}
        self._write(changed)
        self.commit = commit

    def _write(self, changed: list[tuple[bytes, bytes]]) -> None:
        reader = subprocess.Popen(
            ["git", "-C", str(self.repository), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
        )
        assert reader.stdin is not None and reader.stdout is not None
        for path, name in changed:
            reader.stdin.write(name + b"\n")
            reader.stdin.flush()
            head = reader.stdout.readline().split()
            if head[1:2] == [b"missing"]:
                continue
            data = reader.stdout.read(int(head[2]) + 1)[:-1]
            place = os.path.join(os.fsencode(self.folder), path)
            if os.path.isdir(place):
                shutil.rmtree(place)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            Path(os.fsdecode(place)).write_bytes(data)
            self._shown[path] = name
        reader.stdin.close()
        reader.wait()

    def log(self) -> Log:
        return Log(self.repository, self.commit)


@dataclass(frozen=True)
class Log:
    """The commits that one commit reaches, as `GitLog` gives them."""

    repository: Path
    commit: str

    def head(self) -> str:
        return self.commit

    def commits(self, most: int) -> list[Commit]:
        command = ["git", "-C", str(self.repository), *log_words(most, self.commit)]
        return list(commits_in(subprocess.run(command, capture_output=True, check=True).stdout))


@dataclass(frozen=True)
class Way:
    """How it is measured."""

    history: bool
    anew: bool
    """With an index made anew for every issue."""
    indexes: Path | None
    """Where the index of each issue is kept from one run to the next."""


def run(issues: list[dict], repositories: Path, work: Path, way: Way) -> list[dict]:
    by_repository: dict[str, list[dict]] = defaultdict(list)
    for issue in issues:
        by_repository[issue["repo"]].append(issue)
    results = []
    for name, group in sorted(by_repository.items()):
        flat = name.replace("/", "+")
        mirror = Mirror(repositories / flat / "repo", work / flat)
        group.sort(key=lambda issue: int(mirror.git("log", "-1", "--format=%ct", issue["base_commit"])))
        for issue in group:
            kept = way.indexes / f"{issue['instance_id']}.db" if way.indexes else None
            if kept and kept.exists():
                mirror.commit = issue["base_commit"]
                results.append(measure(issue, mirror, kept, way))
            else:
                mirror.show(issue["base_commit"])
                results.append(measure(issue, mirror, work / f"{flat}.db", way))
                if kept:
                    shutil.copy(generations(work / f"{flat}.db")[0], kept)
            print(f"{issue['instance_id']:40} rank {results[-1]['rank']}", file=sys.stderr)
        shutil.rmtree(mirror.folder)
    return results


def measure(issue: dict, mirror: Mirror, index: Path, way: Way) -> dict:
    edited = set(re.findall(r"^diff --git a/(.*?) b/", issue["patch"], re.MULTILINE))
    gold = {path for path in edited if not is_test(path)} or edited
    question = Question(
        str(mirror.folder), str(index), str(mirror.repository), mirror.commit, issue["problem_statement"], way.history
    )
    is_kept = index.parent == way.indexes
    if way.anew and not is_kept:
        for file in index.parent.glob(f"{index.name}*"):
            file.unlink()
    anew = None if index.exists() else in_new_process(question)
    with opened(question) as librarian:
        started = time.perf_counter()
        read = 0 if is_kept else librarian.refresh().read
        updated = time.perf_counter() - started
        librarian.locate(question.query, max(CUTS))
        started = time.perf_counter()
        hits = librarian.locate(question.query, 200)
        warm = time.perf_counter() - started
    order = [hit.path for hit in hits]
    ranks = sorted(order.index(path) + 1 if path in order else 10_000 for path in gold)
    return {
        "instance": issue["instance_id"],
        "repo": issue["repo"],
        "half": half_of(issue["instance_id"]),
        "rank": ranks[-1],
        "first": ranks[0],
        "first_hits": order[:10],
        "gold": sorted(gold),
        "files_read": read,
        "anew_seconds": anew,
        "update_seconds": None if is_kept else updated,
        "cold_seconds": None if is_kept else in_new_process(question),
        "warm_seconds": warm,
        "index_bytes": generations(index)[0].stat().st_size,
    }


@dataclass(frozen=True)
class Question:
    """The question to a process of its own."""

    folder: str
    index: str
    repository: str
    commit: str
    text: str
    history: bool

    @property
    def query(self) -> Query:
        return Query(text=self.text, tests=False, history=self.history)


@contextmanager
def opened(question: Question) -> Iterator[CodeLibrarian]:
    log = Log(Path(question.repository), question.commit) if question.history else None
    with Tree(Path(question.folder)) as tree:
        files = WorkspaceFiles(tree, preset("standard"))
        with CodeLibrarian(Path(question.index), files, log) as librarian:
            yield librarian


def in_new_process(question: Question) -> float:
    """Seconds from its start to its answer."""
    started = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--answer"], input=json.dumps(asdict(question)).encode(), check=True)
    return time.perf_counter() - started


def answer() -> None:
    question = Question(**json.load(sys.stdin))
    with opened(question) as librarian:
        librarian.refresh()
        librarian.locate(question.query, max(CUTS))


def summary(results: list[dict]) -> dict[str, dict]:
    """Every group of issues by its name, with its figures."""
    groups = {"all issues": results}
    for half in ("fitted", "held back"):
        groups[half] = [one for one in results if one["half"] == half]
    for repository in sorted({one["repo"] for one in results}):
        groups[repository] = [one for one in results if one["repo"] == repository]
    return {name: figures(group) for name, group in groups.items() if group}


def figures(group: list[dict]) -> dict[str, float | None]:
    found: dict[str, float | None] = {"n": len(group)}
    for label, key in (("acc", "rank"), ("any", "first")):
        for cut in CUTS:
            found[f"{label}@{cut}"] = round(100 * sum(one[key] <= cut for one in group) / len(group), 1)
    for key in ("anew", "update", "cold", "warm"):
        times = [seconds for one in group if (seconds := one[f"{key}_seconds"]) is not None]
        found[f"{key}_seconds"] = round(statistics.median(times), 3) if times else None
    found["largest_index_bytes"] = max(one["index_bytes"] for one in group)
    return found


def table(found: dict[str, dict]) -> str:
    columns = [key for key in next(iter(found.values())) if key != "largest_index_bytes"]
    lines = [
        "| issues | " + " | ".join(key.replace("_seconds", " s") for key in columns) + " |",
        "|" + " --- |" * (1 + len(columns)),
    ]
    for name, row in found.items():
        cells = ["" if row[key] is None else str(row[key]) for key in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    largest = max(row["largest_index_bytes"] for row in found.values())
    return "\n".join([*lines, "", f"largest index: {largest / 1e6:.0f} MB"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repos", type=Path)
    parser.add_argument("--only", default="", help="only issues whose id holds this")
    parser.add_argument("--repo", action="append", help="only issues of this repository; may be given again")
    parser.add_argument("--half", choices=("fitted", "held back"), help="only issues of this half")
    parser.add_argument("--no-git", action="store_true", help="without commits, as in a plain folder")
    parser.add_argument("--anew", action="store_true", help="with an index made anew for every issue; takes long")
    parser.add_argument("--indexes", type=Path, help="keep the index of each issue in this folder, for the next run")
    parser.add_argument("--out", type=Path, help="write the figures and every result as JSON")
    parser.add_argument("--join", type=Path, nargs="+", help="no measuring: the figures of these results together")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer()
        return
    if options.join:
        results = [one for file in options.join for one in json.loads(file.read_text("utf-8"))["issues"]]
    elif options.data and options.repos:
        if options.indexes:
            options.indexes.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="pawl-locate-") as work:
            way = Way(history=not options.no_git, anew=options.anew, indexes=options.indexes)
            results = run(chosen(options), options.repos, Path(work), way)
    else:
        parser.error("give --data and --repos, or --join")
    if not results:
        parser.error("there is no such issue in the data")
    found = summary(results)
    if options.out:
        options.out.write_text(json.dumps({"figures": found, "issues": results}, indent=1) + "\n", "utf-8")
    print(table(found))


def chosen(options: argparse.Namespace) -> list[dict]:
    issues = [json.loads(line) for line in options.data.read_text("utf-8").splitlines() if line.strip()]
    return [
        issue
        for issue in issues
        if options.only in issue["instance_id"]
        and (not options.repo or issue["repo"] in options.repo)
        and options.half in (None, half_of(issue["instance_id"]))
    ]


def half_of(instance: str) -> str:
    digest = hashlib.sha1(instance.encode(), usedforsecurity=False).hexdigest()
    return "held back" if int(digest, 16) % 2 else "fitted"


if __name__ == "__main__":
    main()
