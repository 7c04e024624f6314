"""Measures what a request opens with: does it show the code that the accepted patch changed, and for how many tokens?

    python benchmarks/opening.py --data issues.jsonl --repos DIR [--repo owner/name] [--most N] [--indexes DIR]

Data and repositories are those of `locate.py`. The text is made as for `pawl do` with the issue as its words: without
commits, test files among the candidates. A hunk is "shown" when the lines it replaces, or stands between, are all in an
excerpt; "function" when the definition around it is at least begun there; "named" when its file is listed. An issue
counts by its best hunk ("any") and by all of them ("all"). Files that the patch makes are no hunks. A token is taken
as four characters. With --indexes the index of each issue is kept, and a later run reads nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from locate import Mirror, Question, half_of, opened

from pawl.agent.briefing import MOST_HITS
from pawl.code.bundle import pack
from pawl.code.code_model import Definition, PackFile, PackRequest, Query
from pawl.code.index_writer import generations
from pawl.code.languages import is_test
from pawl.code.librarian import gathered
from pawl.core.errors import NotFound
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.settings.guardrails import preset

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


@dataclass(frozen=True)
class CommitFiles:
    """The files of one commit, as `gathered` reads them."""

    repository: Path
    commit: str

    def read(self, path: str) -> bytes:
        words = ["git", "-C", str(self.repository), "show", f"{self.commit}:{path}"]
        done = subprocess.run(words, capture_output=True)
        if done.returncode:
            raise NotFound(f"{path!r} is not there")
        return done.stdout

    def exists(self, path: str) -> bool:
        words = ["git", "-C", str(self.repository), "cat-file", "-e", f"{self.commit}:{path}"]
        return subprocess.run(words, capture_output=True).returncode == 0


def hunks(patch: str) -> Iterator[tuple[str, int, int]]:
    """The path and the first and last old line of each group of changed lines; of added lines those around them."""
    path, at, first, last = "", 0, 0, 0
    for line in [*patch.splitlines(), "@@ -0 "]:
        changed = line[:1] in "+-" and not line.startswith(("+++", "---"))
        if not changed and first:
            if path and not is_test(path):
                yield path, first, last
            first = 0
        if line.startswith("--- "):
            path = "" if line.endswith("/dev/null") else line[6:]
        elif found := HUNK.match(line):
            at = int(found[1])
        elif changed:
            first = first or (at if line[0] == "-" else max(1, at - 1))
            last = max(at, first)
            at += line[0] == "-"
        elif line[:1] == " " or not line:
            at += 1


def measure(issue: dict, mirror: Mirror, index: Path, budgets: list[int], *, kept: bool) -> Iterator[dict]:
    files = CommitFiles(mirror.repository, issue["base_commit"])
    question = Question(
        str(mirror.folder), str(index), str(mirror.repository), issue["base_commit"], issue["problem_statement"], False
    )
    guardrails = preset("standard")
    with opened(question) as librarian:
        if not kept:
            librarian.refresh(seconds=3600)
        hits = tuple(librarian.locate(Query(text=question.text, history=False), MOST_HITS))
        read = gathered(hits, files, librarian, guardrails)
    for budget in budgets:
        made = pack(PackRequest(budget=budget, hits=hits, files=read))
        shown = [(one.path, one.start, one.end) for one in made.excerpts]
        found = [judged(hunk, shown, made.listed, read) for hunk in hunks(issue["patch"])]
        yield {
            "instance": issue["instance_id"],
            "repo": issue["repo"],
            "half": half_of(issue["instance_id"]),
            "budget": budget,
            "tokens": len(made.text) // CHARACTERS_PER_TOKEN,
            **{f"{key}_{how.__name__}": how(one[key] for one in found) for key in found[0] for how in (any, all)},
        }


def judged(
    hunk: tuple[str, int, int], shown: list[tuple[str, int, int]], listed: tuple[str, ...], read: tuple[PackFile, ...]
) -> dict[str, bool]:
    path, first, last = hunk
    around = innermost(next((file.definitions for file in read if file.path == path), ()), first, last)
    return {
        "shown": any(one == path and start <= first and last <= end for one, start, end in shown),
        "function": any(
            one == path and start <= (around.line if around else first) <= end for one, start, end in shown
        ),
        "named": path in listed,
    }


def innermost(definitions: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    around = [one for one in definitions if one.start <= first and last <= one.end]
    return max(around, key=lambda one: one.start, default=None)


def figures(group: list[dict]) -> str:
    keys = [key for key in group[0] if key.endswith(("_any", "_all"))]
    cells = [f"{100 * sum(one[key] for one in group) / len(group):.0f}" for key in keys]
    tokens = [one["tokens"] for one in group]
    return f"{len(group):5} {statistics.median(tokens):7.0f} {max(tokens):7} " + " ".join(f"{one:>12}" for one in cells)


def table(results: list[dict]) -> str:
    keys = [key for key in results[0] if key.endswith(("_any", "_all"))]
    lines = [
        f"{'budget':>7} {'issues':28} {'n':>5} {'median':>7} {'most':>7} " + " ".join(f"{key:>12}" for key in keys)
    ]
    for budget in sorted({one["budget"] for one in results}):
        of_budget = [one for one in results if one["budget"] == budget]
        groups = {"all": of_budget}
        for key in ("half", "repo"):
            for name in sorted({one[key] for one in of_budget}):
                groups[name] = [one for one in of_budget if one[key] == name]
        lines += [f"{budget:7} {name:28} {figures(group)}" for name, group in groups.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--repo", action="append", help="only issues of this repository; may be given again")
    parser.add_argument("--most", type=int, default=1000, help="of each repository so many, spread over its issues")
    parser.add_argument("--budget", type=int, nargs="+", default=[800, 2000, 4000])
    parser.add_argument("--indexes", type=Path, help="keep the index of each issue in this folder, for the next run")
    parser.add_argument("--out", type=Path, help="write every result as JSON")
    options = parser.parse_args()
    by_repository: dict[str, list[dict]] = defaultdict(list)
    for line in options.data.read_text("utf-8").splitlines():
        issue = json.loads(line)
        if not options.repo or issue["repo"] in options.repo:
            by_repository[issue["repo"]].append(issue)
    results: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="pawl-opening-") as work:
        for name, every in by_repository.items():
            flat = name.replace("/", "+")
            mirror = Mirror(options.repos / flat / "repo", Path(work) / flat)
            group = every[:: max(1, len(every) // options.most)][: options.most]
            group.sort(key=lambda one: int(mirror.git("log", "-1", "--format=%ct", one["base_commit"])))
            for issue in group:
                kept = options.indexes / f"{issue['instance_id']}.db" if options.indexes else None
                is_kept = kept is not None and kept.exists()
                index = kept if kept is not None and is_kept else Path(work) / f"{flat}.db"
                if not is_kept:
                    mirror.show(issue["base_commit"])
                results += measure(issue, mirror, index, options.budget, kept=is_kept)
                if kept is not None and not is_kept:
                    shutil.copy(generations(index)[0], kept)
                print(issue["instance_id"], results[-1], file=sys.stderr, flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
