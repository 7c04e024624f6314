"""Mines small real fixes from the histories of public repositories: one function, at most three lines, called a fix.

python training/mine.py --mirrors DIR --out fixes.jsonl [--seconds 20]

DIR holds git directories as OWNER+NAME/repo. Repositories that a benchmark uses are left out. The output holds code of
others: it is made anew for each training and never committed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
KEPT_OUT = frozenset((HERE / "kept_out.txt").read_text("utf-8").split())
"""The repositories of the benchmarks, as owner/name in small letters."""
FIX = r"\b(fix|fixes|fixed|bug|bugfix|regression|incorrect|wrong|broken)\b"
NO_FIX = re.compile(r"typo|lint|flake8|mypy|pylint|docs?\b|docstring|type hint|typing|format|changelog|style", re.I)
MOST_LINES = 3
MOST_COMMITS = 6000
LARGEST_FILE = 200_000
TEST = re.compile(r"(^|/)(tests?|testing|docs?|examples?)/|(^|/)(test_[^/]*|conftest)\.py$|_test\.py$")
FILE = re.compile(r"^diff --git a/(.+) b/(.+)$")
BLOBS = re.compile(r"^index ([0-9a-f]{40})\.\.([0-9a-f]{40})")
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Fix:
    repository: str
    commit: str
    message: str
    path: str
    function: str
    line: int
    """The first line of the function, before."""
    lines: tuple[int, int]
    """The first and the last changed line, before."""
    before: str
    after: str


@dataclass
class Changed:
    path: str
    blobs: tuple[str, str] = ("", "")
    removed: int = 0
    added: int = 0
    first: int = 1 << 30
    last: int = 0


def commits(git: Path, seconds: float) -> Iterator[tuple[str, str, list[Changed]]]:
    """The commits that say they fix something, with the Python files that they change."""
    words = ["git", f"--git-dir={git}", "log", "HEAD", f"-n{MOST_COMMITS}", "--no-merges", "-p", "-U0", "--full-index",
             "--diff-filter=M", "-i", "-P", f"--grep={FIX}", "--format=%x01%H%x02%s", "--", "*.py"]  # fmt: skip
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    assert process.stdout is not None
    until = time.monotonic() + seconds
    commit, message, files = "", "", []
    for line in process.stdout:
        if line.startswith("\x01"):
            if commit:
                yield commit, message, files
            commit, _, message = line[1:].rstrip("\n").partition("\x02")
            files = []
            if time.monotonic() > until:
                process.kill()
                return
        elif found := FILE.match(line):
            files.append(Changed(found[1]))
        elif files and (found := BLOBS.match(line)):
            files[-1].blobs = (found[1], found[2])
        elif files and (found := HUNK.match(line)):
            count = int(found[2] or 1)
            files[-1].removed += count
            files[-1].added += int(found[4] or 1)
            files[-1].first = min(files[-1].first, int(found[1]))
            files[-1].last = max(files[-1].last, int(found[1]) + max(0, count - 1))
    if commit:
        yield commit, message, files


def fixes_of(repository: str, git: Path, seconds: float) -> Iterator[Fix]:
    for commit, message, files in commits(git, seconds):
        sources = [each for each in files if not TEST.search(each.path)]
        if len(sources) != 1 or NO_FIX.search(message):
            continue
        (change,) = sources
        if max(change.removed, change.added) > MOST_LINES or not change.blobs[0]:
            continue
        fix = function_fix(change, *(blob(git, each) for each in change.blobs))
        if fix is not None:
            yield Fix(repository, commit, message, change.path, *fix)


def blob(git: Path, name: str) -> str:
    words = ["git", f"--git-dir={git}", "cat-file", "blob", name]
    data = subprocess.run(words, capture_output=True, check=False).stdout
    return data.decode("utf-8", "replace") if len(data) < LARGEST_FILE else ""


def function_fix(change: Changed, before: str, after: str) -> tuple[str, int, tuple[int, int], str, str] | None:
    """The function that differs, if it is the only thing that does."""
    try:
        old, new = functions(before), functions(after)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if [name for name, _, _ in old] != [name for name, _, _ in new]:
        return None
    different = [(name, node) for (name, node, text), (_, _, other) in zip(old, new, strict=True) if text != other]
    if len(different) != 1 or not before:
        return None
    ((name, node),) = different
    inside = node.lineno <= change.first and change.last <= (node.end_lineno or 0)
    return (name, node.lineno, (change.first, change.last), before, after) if inside else None


def functions(source: str) -> list[tuple[str, ast.AST, str]]:
    """The outermost functions and everything between them, as text that no docstring or layout changes."""
    found: list[tuple[str, ast.AST, str]] = []

    def visit(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found.append((f"{owner}{node.name}", node, ast.dump(ast.Tuple([*node.bases, *node.decorator_list]))))
                visit(node.body, f"{owner}{node.name}.")
            elif isinstance(node, FUNCTIONS):
                if ast.get_docstring(node) is not None:
                    node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
                found.append((f"{owner}{node.name}", node, ast.dump(node)))
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                found.append((f"{owner}-", node, ast.dump(node)))

    visit(ast.parse(source).body, "")
    return [(name, node, text) for name, node, text in found]


def digest(text: str) -> str:
    """Of a file's code, whatever its layout."""
    return hashlib.sha256(re.sub(r"\s+", "", text).encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20, help="for each repository")
    parser.add_argument("--most", type=int, default=60, help="fixes of one repository")
    options = parser.parse_args()
    seen: set[str] = set()
    with options.out.open("w") as out:
        for folder in sorted(options.mirrors.iterdir()):
            name = folder.name.replace("+", "/")
            if not (folder / "repo").exists() or name.lower() in KEPT_OUT:
                continue
            count = 0
            for fix in fixes_of(name, folder / "repo", options.seconds):
                key = digest(fix.before) + digest(fix.after)
                if key not in seen and count < options.most:
                    seen.add(key)
                    count += 1
                    out.write(json.dumps(asdict(fix)) + "\n")
            print(name, count, flush=True)


if __name__ == "__main__":
    main()
