"""Single seeded mutants of real packages, each judged by the package's own whole suite."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repair_package import Place, differences
from repair_sets import Bug

SEED = 20


@dataclass(frozen=True)
class Package:
    """Where a package's sources and tests lie in its distribution."""

    name: str
    version: str
    source: str
    tests: tuple[str, ...]
    import_paths: tuple[str, ...] = (".",)
    without: tuple[str, ...] = ()
    """Files that a current pytest cannot load, or that ask for plugins which change nothing about the tests."""


PACKAGES = (
    Package("inflection", "0.5.1", "inflection", ("test_inflection.py",)),
    Package("toolz", "0.12.1", "toolz", ("toolz/tests",)),
    Package("boltons", "24.0.0", "boltons", ("tests",), (".",), ("tests/conftest.py",)),
    Package("more-itertools", "10.1.0", "more_itertools", ("tests",)),
    Package("semver", "3.0.2", "src/semver", ("tests",), ("src", "tests"), ("setup.cfg",)),
)
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
          ast.Div: ast.Mult}  # fmt: skip


def fetched(package: Package, cache: Path) -> Path:
    """The unpacked distribution, fetched once: the source distribution, or a wheel that holds its tests."""
    folder = cache / f"{package.name}-{package.version}"
    if not folder.exists():
        _fetch(package, cache, folder)
    for path in package.without:
        (folder / path).unlink(missing_ok=True)
    return folder


def _fetch(package: Package, cache: Path, folder: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    words = [
        shutil.which("pip") or "pip",
        "download",
        "--no-deps",
        "-d",
        str(cache),
        f"{package.name}=={package.version}",
    ]
    for form in (["--no-binary", ":all:"], []):
        subprocess.run([*words, *form], capture_output=True)
        stem = package.name.replace("-", "?")
        archive = next(cache.glob(f"{stem}-{package.version}*.*"), None)
        if archive is not None:
            wheel = archive.suffix == ".whl"
            shutil.unpack_archive(archive, folder if wheel else cache, "zip" if wheel else None)
            break


@dataclass(frozen=True)
class Mutant:
    package: Package
    path: str
    kind: str
    line: int
    text: str
    tests: tuple[str, ...]


class Mutator(ast.NodeTransformer):
    """Changes the n-th place where a kind of mutation is possible."""

    def __init__(self, kind: str, wanted: int) -> None:
        self.kind = kind
        self.wanted = wanted
        self.count = -1
        self.line = 0

    def _here(self, node: ast.AST) -> bool:
        self.count += 1
        if self.count == self.wanted:
            self.line = getattr(node, "lineno", 0)
            return True
        return False

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if self.kind == "comparison" and type(node.ops[0]) in COMPARE and self._here(node):
            node.ops[0] = COMPARE[type(node.ops[0])]()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self.kind == "operator" and type(node.op) in BINARY and self._here(node):
            node.op = BINARY[type(node.op)]()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if self.kind == "constant" and type(node.value) in {int, bool} and self._here(node):
            return ast.copy_location(ast.Constant(node.value + 1 if type(node.value) is int else not node.value), node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self.kind == "condition" and self._here(node):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self.kind == "arguments" and len(node.args) > 1 and self._here(node):
            node.args[0], node.args[1] = node.args[1], node.args[0]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if self.kind == "deleted" and isinstance(node, (ast.FunctionDef, ast.If, ast.For, ast.While, ast.With)):
            for place, statement in enumerate(node.body):
                plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return)) or (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
                )
                if plain and self._here(statement):
                    node.body[place] = ast.copy_location(ast.Pass(), statement)
        return super().generic_visit(node)


KINDS = ("comparison", "operator", "constant", "condition", "arguments", "deleted", "deleted")


def mutate(source: str, kind: str, rng: random.Random) -> tuple[str, int] | None:
    """The source with one place changed and only that place: all other lines stay as they are."""
    count = Mutator(kind, -1)
    count.visit(ast.parse(source))
    if count.count < 0:
        return None
    mutator = Mutator(kind, rng.randint(0, count.count))
    tree = ast.fix_missing_locations(mutator.visit(ast.parse(source)))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.stmt)
            and not hasattr(node, "body")
            and node.lineno <= mutator.line <= (node.end_lineno or 0)
        ):
            return _spliced(source, node), mutator.line
        if isinstance(node, (ast.If, ast.While)) and node.test.lineno <= mutator.line <= (node.test.end_lineno or 0):
            return _spliced(source, node.test), mutator.line
    return None


def _spliced(source: str, node: ast.stmt | ast.expr) -> str:
    lines = source.encode().split(b"\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    lines[first : last + 1] = [head + ast.unparse(ast.fix_missing_locations(node)).encode() + tail]
    return b"\n".join(lines).decode()


def run_suite(folder: Path, tests: tuple[str, ...], import_paths: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether the suite ran to its end with failures, and whether all passed."""
    paths = ":".join(str(folder / path) for path in (*import_paths, "."))
    words = ["env", f"PYTHONPATH={paths}", sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        code = subprocess.run(words, cwd=folder, capture_output=True, timeout=60).returncode
    except subprocess.TimeoutExpired:
        return False, False
    return code == 1, code == 0


def mutants_of(package: Package, cache: Path, count: int, seed: int) -> Iterator[Mutant]:
    """Mutants that the package's own suite notices."""
    folder = fetched(package, cache)
    if not folder.exists() or not run_suite(folder, package.tests, package.import_paths)[1]:
        print(f"{package.name}: its suite does not run here, left out", file=sys.stderr)
        return
    rng = random.Random(f"{seed}-{package.name}")
    root = folder / package.source
    files = [root] if root.is_file() else [path for path in sorted(root.rglob("*.py")) if "tests" not in path.parts]
    weights = [path.stat().st_size for path in files]
    found = tries = 0
    while found < count and tries < count * 12:
        tries += 1
        path = rng.choices(files, weights)[0]
        kind = KINDS[(found + tries) % len(KINDS)]
        original = path.read_text()
        changed = mutate(original, kind, rng)
        if changed is None or changed[0] == original:
            continue
        path.write_text(changed[0])
        noticed, _ = run_suite(folder, package.tests, package.import_paths)
        path.write_text(original)
        if noticed:
            found += 1
            yield Mutant(package, str(path.relative_to(folder)), kind, changed[1], changed[0], package.tests)


def mutants(data: Path, seed: int = SEED, count: int = 8) -> Iterator[Bug]:
    """The mutants as bugs; they are chosen once and kept beside the packages."""
    cache = data / "mutants" if _writable(data) else Path(tempfile.gettempdir()) / "reflex-mutants"
    cache.mkdir(exist_ok=True)
    kept = cache / f"chosen-{seed}-{count}.json"
    if not kept.exists():
        rows = []
        for package in PACKAGES:
            for mutant in mutants_of(package, cache, count, seed):
                rows.append([package.name, mutant.path, mutant.kind, mutant.line, mutant.text])
        kept.write_text(json.dumps(rows))
    by_name = {package.name: package for package in PACKAGES}
    for number, (name, path, kind, line, text) in enumerate(json.loads(kept.read_text())):
        package = by_name[name]
        yield Bug(
            name=f"{name}-{number}:{path}:{line}",
            make=_writer(fetched(package, cache), path, text),
            tests=package.tests,
            target=path,
            judge=_judge(Place(fetched(package, cache), path, package.tests, package.import_paths)),
            import_paths=package.import_paths,
            kind=kind,
        )


def _writable(folder: Path) -> bool:
    try:
        (folder / "mutants").mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def _writer(folder: Path, path: str, text: str) -> Callable[[Path], None]:
    def make(target: Path) -> None:
        shutil.copytree(folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".git"))
        (target / path).write_text(text)

    return make


def _judge(place: Place) -> Callable[[str], dict[str, Any]]:
    """A mutant's patch is right when it is the original in other words, or does what that does on recorded calls."""

    def judge(text: str) -> dict[str, Any]:
        return differences(place, text)

    return judge
