"""Whether a patched package does what the original does: the same text in other words, or the same behaviour.

Calls that the package's own tests make are recorded on the original, mutated, and replayed on both.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import itertools
import json
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from repair_inputs import mutated

CALLS = 25
MUTATIONS = 6
LONGEST = 200
CALL_SECONDS = 0.3
REPLAY_SECONDS = 25.0
OPPOSITE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot,
            ast.IsNot: ast.Is}  # fmt: skip
Verdict = dict[str, Any]


class Normal(ast.NodeTransformer):
    """Rewrites what can be said in several ways: double negation, negated comparisons, `pass` beside other code."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            inner = node.operand
            if isinstance(inner, ast.Compare) and len(inner.ops) == 1 and type(inner.ops[0]) in OPPOSITE:
                return ast.Compare(inner.left, [OPPOSITE[type(inner.ops[0])]()], inner.comparators)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        while _is_not(node.test) and _is_not(node.test.operand):  # type: ignore[attr-defined]
            node.test = node.test.operand.operand  # type: ignore[attr-defined]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [each for each in block if not isinstance(each, ast.Pass)]
                setattr(node, name, kept or block)
        return node


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def normal(text: str) -> str:
    return ast.dump(Normal().visit(ast.parse(text)))


@dataclass(frozen=True)
class Place:
    """A package's folder and how its tests are run."""

    folder: Path
    target: str
    tests: tuple[str, ...]
    import_paths: tuple[str, ...]


def differences(place: Place, patched: str) -> Verdict:
    """How many of the compared calls end differently."""
    original = (place.folder / place.target).read_text()
    if normal(patched) == normal(original):
        return {"compared": 1, "wrong": 0, "example": ""}
    with tempfile.TemporaryDirectory(prefix="reflex-right-") as name:
        folders = [Path(name) / "original", Path(name) / "patched"]
        for folder in folders:
            shutil.copytree(place.folder, folder, ignore=shutil.ignore_patterns("__pycache__", ".git"))
        (folders[1] / place.target).write_text(patched)
        calls = Path(name) / "calls"
        _run(place, folders[0], ["record", str(calls), place.target, *place.tests])
        # What differs between two runs of the original, such as a name made by chance, tells nothing.
        before, again, after = (_run(place, folder, ["replay", str(calls)]) for folder in (folders[0], *folders))
    rows = zip(before, again, after, strict=False)
    pairs = [(x, y) for x, z, y in rows if not x[1].startswith("unsteady") and x[1] == z[1]]
    wrong = [f"{x[0]}: {x[1][:80]} but {y[1][:80]}" for x, y in pairs if x[1] != y[1]]
    if len(before) != len(after) or not pairs:
        return {"compared": len(pairs), "wrong": 1, "example": "other program text, and its calls cannot be compared"}
    return {"compared": len(pairs), "wrong": len(wrong), "example": wrong[0] if wrong else ""}


def _run(place: Place, folder: Path, words: list[str]) -> list[list[str]]:
    paths = ":".join(str(folder / path) for path in (*place.import_paths, "."))
    environment = ["env", f"PYTHONPATH={paths}", "PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1"]
    try:
        ended = subprocess.run(
            [*environment, sys.executable, __file__, *words], cwd=folder, capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return []
    lines = [line for line in ended.stdout.splitlines() if line.startswith("OUTCOMES ")]
    found: list[list[str]] = json.loads(lines[-1].removeprefix("OUTCOMES ")) if lines else []
    return found


@dataclass
class Recorder:
    """A pytest plugin that keeps the arguments of calls to functions of one file."""

    target: str
    calls: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)

    def enter(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename != self.target or "<" in code.co_qualname or event != "call":
            return
        kept = self.calls.setdefault((frame.f_globals["__name__"], code.co_qualname), [])
        if len(kept) >= CALLS or code.co_flags & 0x0C:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        with contextlib.suppress(Exception):
            # What is pickled now cannot be changed by the call.
            kept.append(pickle.dumps((names[: code.co_argcount], {name: frame.f_locals[name] for name in names})))

    def pytest_runtest_setup(self, item: Any) -> None:
        sys.setprofile(self.enter)

    def pytest_runtest_teardown(self, item: Any) -> None:
        sys.setprofile(None)


def record(out: Path, target: str, tests: list[str]) -> None:
    import pytest

    recorder = Recorder(str(Path.cwd() / target))
    pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[recorder])
    out.write_bytes(pickle.dumps(recorder.calls))


def ring(number: int, frame: object) -> None:
    raise TimeoutError


def shown(value: Any) -> str:
    if hasattr(value, "__next__"):
        value = list(itertools.islice(value, LONGEST))
    text = repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)[:2000]


def ending(module: str, name: str, positional: tuple[str, ...], given: dict[str, Any]) -> str:
    """The value or error of a call, and its arguments afterwards."""
    try:
        signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
        try:
            function: Any = importlib.import_module(module)
            for part in name.split("."):
                function = getattr(function, part)
            others = {key: value for key, value in given.items() if key not in positional}
            value = shown(function(*(given[key] for key in positional), **others))
            owner = given.get("self")
            return value + (shown(vars(owner)) if hasattr(owner, "__dict__") else "")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeoutError:
        return "unsteady: took long"
    except BaseException as error:  # noqa: BLE001
        return f"raised {type(error).__name__}"


def replayed(calls: Path) -> Iterator[tuple[str, str]]:
    rng = random.Random(11)
    for (module, name), kept in pickle.loads(calls.read_bytes()).items():
        for data in kept:
            for number in range(MUTATIONS):
                try:
                    positional, given = pickle.loads(data)
                except Exception:  # noqa: BLE001
                    break
                for key in given:
                    if number and key not in {"self", "cls"} and rng.random() < 0.7:
                        given[key] = mutated(copy.copy(given[key]), rng)
                told = name
                with contextlib.suppress(Exception):
                    told = f"{name}({str(given)[:80]})"
                yield told, ending(module, name, positional, given)


def main() -> None:
    sys.path.insert(0, str(Path.cwd()))
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        signal.signal(signal.SIGALRM, ring)
        print("OUTCOMES " + json.dumps(list(replayed(Path(sys.argv[2])))))


if __name__ == "__main__":
    main()
