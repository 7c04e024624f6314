"""Mines real fixes from the histories of public repositories: their own tests fail before and pass after.

    python benchmarks/repair_fixes.py --repos DIR --out DIR/fixes.jsonl [--python PYTHON] [--most 8] [--jobs 1]
    python benchmarks/repair.py --set fixes --data DIR [--python PYTHON]

DIR holds a git repository `owner+name/repo` for each. A fix changes one or two functions of one Python file, in few
lines, and files of tests; what it adds to the file beside them, such as an import, counts as well. The tree before the
fix is laid out with the tests after it: some of these must fail there, all must pass with the fix, and nothing may fail
to load. PYTHON has pytest and what the repositories need; the network is not used. The output names commits, paths and
tests; it holds no code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from repair_package import Place, differences
from repair_sets import Bug

from pawl.code.languages import is_test

MOST_FUNCTIONS = 2
MOST_LINES = 12
MOST_TESTS = 3
COMMITS = 4000
TRIED = 4
"""Commits that are tried for each fix that is wanted."""
SECONDS = 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FIX = re.compile(
    r"\b(fix(e[sd])?|bug(fix)?|regression|incorrect(ly)?|wrong(ly)?|broken|crash\w*|error|fail\w*)\b", re.I
)
NO_FIX = re.compile(r"typos?\b|lint|flake8|mypy|pylint|type hints?|typing|changelog|python ?3\.\d+", re.I)


@dataclass(frozen=True)
class Fix:
    repo: str
    commit: str
    base: str
    path: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]
    failing: tuple[str, ...] = ()
    """Tests that fail before and pass after."""


def git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=True).stdout


def candidates(name: str, repository: Path) -> Iterator[Fix]:
    """The newest first."""
    words = ("log", "--no-merges", "--no-renames", f"-n{COMMITS}", "--numstat", "--format=%x01%H %P%x02%s", "HEAD")
    for part in git(repository, *words).decode("utf-8", "replace").split("\x01")[1:]:
        head, _, names = part.partition("\n")
        commits, _, said = head.partition("\x02")
        commit, *parents = commits.split() or [""]
        changed = [line.split("\t") for line in names.splitlines() if line.count("\t") == 2]
        python = [(path, added, removed) for added, removed, path in changed if path.endswith(".py")]
        sources = [one for one in python if not is_test(one[0])]
        tests = tuple(path for path, _, _ in python if re.search(r"(^|/)(test_[^/]*|[^/]*_tests?)\.py$", path))
        if len(parents) != 1 or len(sources) != 1 or not 0 < len(tests) <= MOST_TESTS:
            continue
        path, added, removed = sources[0]
        if not FIX.search(said) or NO_FIX.search(said) or not added.isdigit():
            continue
        if max(int(added), int(removed)) > MOST_LINES:
            continue
        try:
            functions = changed_functions(*(text_of(repository, one, path) for one in (parents[0], commit)))
        except (subprocess.CalledProcessError, SyntaxError, ValueError, RecursionError):
            continue
        if 0 < len(functions) <= MOST_FUNCTIONS:
            yield Fix(name, commit, parents[0], path, functions, tests)


def text_of(repository: Path, commit: str, path: str) -> str:
    return git(repository, "show", f"{commit}:{path}").decode("utf-8")


def changed_functions(before: str, after: str) -> tuple[str, ...]:
    """The functions of both whose code differs; none where one came or went, or where classes differ."""
    old, new = (dict(_functions(ast.parse(text).body, "")) for text in (before, after))
    return tuple(name for name in old if old[name] != new[name]) if old.keys() == new.keys() else ()


def _functions(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{owner}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            if ast.get_docstring(node) is not None:
                node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
            yield f"{owner}{node.name}", ast.dump(node)


def lay_out(repository: Path, fix: Fix, folder: Path, *, fixed: bool) -> None:
    """The tree before the fix with the tests after it, or the whole tree after it."""
    packed = git(repository, "archive", "--format=tar", fix.commit if fixed else fix.base)
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for path in () if fixed else changed_tests(repository, fix):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(git(repository, "show", f"{fix.commit}:{path}"))


def changed_tests(repository: Path, fix: Fix) -> list[str]:
    words = ("diff", "--name-only", "--no-renames", "--diff-filter=AM", fix.base, fix.commit)
    return [path for path in git(repository, *words).decode().splitlines() if is_test(path)]


def import_paths(fix: Fix) -> tuple[str, ...]:
    first = fix.path.partition("/")[0]
    return (first,) if first in {"src", "lib", "source"} else ()


def suite(fix: Fix, folder: Path, python: str) -> dict[str, str]:
    """How each of the fix's tests ended; nothing where they could not run."""
    places = ":".join(str(folder / path) for path in (*import_paths(fix), "."))
    words = ["env", f"PYTHONPATH={places}", "PYTHONDONTWRITEBYTECODE=1", python, "-m", "pytest", "-q", "-rA", "--tb=no"]
    words += ["-p", "no:cacheprovider", *fix.tests]
    try:
        ended = subprocess.run(words, cwd=folder, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {}
    if ended.returncode not in (0, 1):
        return {}
    found = re.findall(r"^(PASSED|FAILED|ERROR) (\S+::.+?)(?: - .*)?$", ended.stdout.decode("utf-8", "replace"), re.M)
    return {name: status for status, name in found}


def proved(repository: Path, fix: Fix, python: str) -> Fix | None:
    """The fix with its failing tests, where they show it."""
    with tempfile.TemporaryDirectory(prefix="fix-") as name:
        before, after = (Path(name).resolve() / part for part in ("before", "after"))
        lay_out(repository, fix, after, fixed=True)
        good = suite(fix, after, python)
        if not good or set(good.values()) != {"PASSED"}:
            return None
        lay_out(repository, fix, before, fixed=False)
        bad = suite(fix, before, python)
    failing = tuple(sorted(test for test, status in bad.items() if status == "FAILED" and test in good))
    return Fix(**{**asdict(fix), "failing": failing}) if failing and "ERROR" not in bad.values() else None


def fixes_of(folder: Path, python: str, most: int) -> list[Fix]:
    found: list[Fix] = []
    name = folder.name.replace("+", "/")
    tried = 0
    try:
        for fix in islice(candidates(name, folder / "repo"), most * TRIED):
            tried += 1
            with contextlib.suppress(subprocess.CalledProcessError, OSError, tarfile.TarError):
                shown = proved(folder / "repo", fix, python)
                found += [shown] if shown else []
            if len(found) == most:
                break
    except subprocess.CalledProcessError as error:  # a copy may lack objects
        print(f"{name}: its history cannot be read: {error.stderr.decode('utf-8', 'replace').strip()}", flush=True)
    print(f"{name}: {len(found)} of {tried} tried", flush=True)
    return found


def fixes(data: Path) -> Iterator[Bug]:
    """The mined fixes as bugs; a patch is right when it is the fix in other words, or does what that does."""
    for line in (data / "fixes.jsonl").read_text().splitlines():
        row = json.loads(line)
        fix = Fix(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        repository = data / fix.repo.replace("/", "+") / "repo"
        yield Bug(
            name=f"{fix.repo}@{fix.commit[:10]}:{','.join(fix.functions)}",
            make=lambda folder, repository=repository, fix=fix: lay_out(repository, fix, folder, fixed=False),
            tests=fix.tests,
            target=fix.path,
            judge=lambda text, repository=repository, fix=fix: judged(repository, fix, text),
            reference=lambda repository=repository, fix=fix: text_of(repository, fix.commit, fix.path),
            import_paths=import_paths(fix),
            kind=f"{len(fix.functions)} functions" if len(fix.functions) > 1 else "one function",
        )


def judged(repository: Path, fix: Fix, text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fixed-") as name:
        folder = Path(name).resolve()
        lay_out(repository, fix, folder, fixed=True)
        return differences(Place(folder, fix.path, fix.tests, import_paths(fix)), text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--most", type=int, default=8, help="fixes of one repository")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    folders = sorted(folder for folder in options.repos.iterdir() if (folder / "repo").exists())
    with ThreadPoolExecutor(options.jobs) as threads, options.out.open("w") as out:
        for found in threads.map(lambda folder: fixes_of(folder, options.python, options.most), folders):
            out.writelines(f"{json.dumps(asdict(fix))}\n" for fix in found)
            out.flush()


if __name__ == "__main__":
    main()
