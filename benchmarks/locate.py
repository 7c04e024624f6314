"""Measures `pawl locate` on real issues: are the files that the accepted patch edits among the first that are named?

    python benchmarks/locate.py --data issues.jsonl --repos DIR

Each line of the data holds instance_id, repo (`owner/name`), base_commit, problem_statement and patch; DIR holds a git
repository `owner+name/repo` for each repo. The tree of the base commit is laid out in a temporary folder that is kept
from one issue of a repository to the next, so that the index is brought up to date as in daily work. Commits are read
as of the base commit, never later ones, and files of tests are no candidates.

`all@k` counts an issue as right when every file that the patch edits, tests left out, is among the first k; `any@k`
when one of them is. Weights were fitted on the issues whose SHA-1 of instance_id is even ("fitted"); the others are
"held back".
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
from pathlib import Path

from pawl.context.librarian import CodeLibrarian
from pawl.context.sorting import is_test
from pawl.core.locating import Commit, Query
from pawl.policy.guardrails import preset
from pawl.workspace.git_log import commits_in, log_words
from pawl.workspace.reading import WorkspaceFiles
from pawl.workspace.tree import Tree

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

    def head(self) -> str:
        return self.commit

    def commits(self, most: int) -> list[Commit]:
        return list(commits_in(self.git(*log_words(most, self.commit))))


def run(issues: list[dict], repositories: Path, work: Path) -> list[dict]:
    by_repository: dict[str, list[dict]] = defaultdict(list)
    for issue in issues:
        by_repository[issue["repo"]].append(issue)
    results = []
    for name, group in sorted(by_repository.items()):
        flat = name.replace("/", "+")
        mirror = Mirror(repositories / flat / "repo", work / flat)
        group.sort(key=lambda issue: int(mirror.git("log", "-1", "--format=%ct", issue["base_commit"])))
        for issue in group:
            mirror.show(issue["base_commit"])
            results.append(measure(issue, mirror, work / f"{flat}.db"))
            print(f"{issue['instance_id']:40} rank {results[-1]['rank']}", file=sys.stderr)
        shutil.rmtree(mirror.folder)
    return results


def measure(issue: dict, mirror: Mirror, index: Path) -> dict:
    edited = set(re.findall(r"^diff --git a/(.*?) b/", issue["patch"], re.MULTILINE))
    gold = {path for path in edited if not is_test(path)} or edited
    query = Query(text=issue["problem_statement"], tests=False)
    started = time.perf_counter()
    with Tree(mirror.folder) as tree:
        with CodeLibrarian(index, WorkspaceFiles(tree, preset("standard")), mirror) as librarian:
            refreshed = librarian.refresh()
            indexed = time.perf_counter()
            librarian.locate(query, max(CUTS))
        with CodeLibrarian(index, WorkspaceFiles(tree, preset("standard")), mirror) as librarian:
            cold = time.perf_counter()
            hits = librarian.locate(query, 200)
            warm = time.perf_counter()
    order = [hit.path for hit in hits]
    ranks = sorted(order.index(path) + 1 if path in order else 10_000 for path in gold)
    digest = hashlib.sha1(issue["instance_id"].encode(), usedforsecurity=False).hexdigest()
    return {
        "instance": issue["instance_id"],
        "repo": issue["repo"],
        "half": "held back" if int(digest, 16) % 2 else "fitted",
        "rank": ranks[-1],
        "first": ranks[0],
        "first_hit": order[:1],
        "gold": sorted(gold),
        "files_read": refreshed.read,
        "index_seconds": indexed - started,
        "cold_seconds": cold - started,
        "warm_seconds": warm - cold,
        "index_bytes": index.stat().st_size,
    }


def table(results: list[dict]) -> str:
    groups = {"all issues": results}
    for half in ("fitted", "held back"):
        groups[half] = [one for one in results if one["half"] == half]
    for repository in sorted({one["repo"] for one in results}):
        groups[repository] = [one for one in results if one["repo"] == repository]
    lines = [
        "| issues | n | "
        + " | ".join(f"all@{cut}" for cut in CUTS)
        + " | "
        + " | ".join(f"any@{cut}" for cut in CUTS)
        + " |"
    ]
    lines.append("|" + " --- |" * (2 + 2 * len(CUTS)))
    for name, group in groups.items():
        if group:
            figures = [share(group, key, cut) for key in ("rank", "first") for cut in CUTS]
            lines.append(f"| {name} | {len(group)} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")
    fresh = [one["index_seconds"] for one in results if one["files_read"] > 1000]
    small = [one["cold_seconds"] for one in results if one["files_read"] <= 1000]
    warm = [one["warm_seconds"] for one in results]
    lines.append("")
    lines.append(f"median of a query on a warm index: {statistics.median(warm) * 1000:.0f} ms")
    if small:
        lines.append(f"median with an update of the index: {statistics.median(small) * 1000:.0f} ms")
    if fresh:
        lines.append(f"median of indexing more than 1,000 files: {statistics.median(fresh):.1f} s")
    lines.append(f"largest index: {max(one['index_bytes'] for one in results) / 1e6:.0f} MB")
    return "\n".join(lines)


def share(group: list[dict], key: str, cut: int) -> float:
    return 100 * sum(one[key] <= cut for one in group) / len(group)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--only", default="", help="only issues whose id holds this")
    parser.add_argument("--out", type=Path, help="write every result as JSON lines")
    options = parser.parse_args()
    issues = [json.loads(line) for line in options.data.read_text("utf-8").splitlines() if line.strip()]
    issues = [issue for issue in issues if options.only in issue["instance_id"]]
    with tempfile.TemporaryDirectory(prefix="pawl-locate-") as work:
        results = run(issues, options.repos, Path(work))
    if options.out:
        options.out.write_text("".join(f"{json.dumps(one)}\n" for one in results), "utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
