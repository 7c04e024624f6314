"""Whether a candidate passes: the failing tests first, then the passing ones that run its function."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import CodeType
from typing import Any

from reflex_inside.processes import Catch
from reflex_inside.program import FUNCTION_NODES, Candidate, Function, FunctionNode, Program, definitions
from reflex_inside.suite import Suite

Undo = Callable[[], None]
Defaults = tuple[tuple[Any, ...] | None, dict[str, Any] | None]


def install(program: Program, candidate: Candidate) -> Undo | None:
    """Makes the candidate act in this process; None when it does not compile or does not fit."""
    with Catch():
        make = _install_definition if candidate.at_import else _install_code
        return make(program, candidate)
    return None


def _install_definition(program: Program, candidate: Candidate) -> Undo | None:
    """Binds a name of a module or class anew, wherever the old value is known by that name."""
    source, module = program.sources[candidate.path], program.modules[candidate.path]
    before = [block[place] for block, place, _ in definitions(source.tree.body, ())]
    after = list(definitions(ast.parse(source.edited(candidate.edits)).body, ()))
    position = next(at for at, each in enumerate(before) if each.lineno <= candidate.line <= (each.end_lineno or 0))
    if len(after) != len(before):
        return None
    block, place, owners = after[position]
    statement = block[place]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name = statement.targets[0].id
    value = eval(compile(ast.Expression(statement.value), candidate.path, "eval"), module.__dict__)
    holder: Any = module
    for owner in owners:
        holder = getattr(holder, owner)
    old = vars(holder)[name]
    holders = [holder]
    if not owners:
        holders += [each for each in list(sys.modules.values()) if each is not module and _holds(each, name, old)]
    for each in holders:
        setattr(each, name, value)

    def undo() -> None:
        for each in holders:
            setattr(each, name, old)

    return undo


def _holds(module: Any, name: str, value: Any) -> bool:
    names = getattr(module, "__dict__", None)
    return isinstance(names, dict) and names.get(name) is value


def _install_code(program: Program, candidate: Candidate) -> Undo | None:
    function = program.functions[candidate.function]
    text = function_text(program, function, candidate)
    code = compile(text, function.path, "exec", program.sources[function.path].futures, dont_inherit=True)
    made = _codes_by_names(_inside_owners(code, function.owners))
    if (function.node.name,) not in made:
        return None
    pairs = [(live, made[names]) for names, functions in function.live.items() if names in made for live in functions]
    if any(live.__code__.co_freevars != code.co_freevars for live, code in pairs):
        return None
    defaults = _new_defaults(program, function, candidate, text)
    before = [(live, live.__code__, live.__defaults__, live.__kwdefaults__) for live, _ in pairs]
    for live, code in pairs:
        live.__code__ = code
    if defaults is not None:
        for live in function.live[(function.node.name,)]:
            live.__defaults__, live.__kwdefaults__ = defaults

    def undo() -> None:
        for live, code, positional, keyword in before:
            live.__code__, live.__defaults__, live.__kwdefaults__ = code, positional, keyword

    return undo


def function_text(program: Program, function: Function, candidate: Candidate) -> str:
    """The function alone with the edits made, under empty classes of the right names."""
    source = program.sources[function.path]
    start = source.starts[function.node.lineno - 1]
    end = source.offset(function.last_line, function.node.end_col_offset or 0)
    body = source.edited(candidate.edits, start, end).decode()
    if function.node.col_offset == 0:
        return body
    headers = [" " * depth + f"class {name}:\n" for depth, name in enumerate(function.owners)] or ["if 1:\n"]
    return "".join(headers) + body


def _inside_owners(code: CodeType, owners: tuple[str, ...]) -> CodeType:
    for owner in owners:
        inner = next((c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == owner), None)
        if inner is None:
            return code
        code = inner
    return code


def _codes_by_names(code: CodeType) -> dict[tuple[str, ...], CodeType]:
    found: dict[tuple[str, ...], CodeType] = {}
    pending: list[tuple[tuple[str, ...], CodeType]] = [((), code)]
    while pending:
        names, outer = pending.pop()
        for inner in outer.co_consts:
            if isinstance(inner, CodeType) and not inner.co_name.startswith("<"):
                found.setdefault((*names, inner.co_name), inner)
                pending.append(((*names, inner.co_name), inner))
    return found


def _new_defaults(program: Program, function: Function, candidate: Candidate, text: str) -> Defaults | None:
    """The default values, evaluated again when the signature was edited."""
    source = program.sources[function.path]
    body_start = source.offset(function.node.body[0].lineno, 0)
    if all(edit.start >= body_start for edit in candidate.edits):
        return None
    node = _first_function(ast.parse(text), function.node.name)
    if node is None:
        return None
    names = dict(function.namespace)

    def value(expression: ast.expr) -> Any:
        return eval(compile(ast.Expression(expression), function.path, "eval"), names)

    positional = tuple(value(default) for default in node.args.defaults)
    keyword = {
        argument.arg: value(default)
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is not None
    }
    return positional or None, keyword or None


def _first_function(tree: ast.AST, name: str) -> FunctionNode | None:
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION_NODES) and node.name == name:
            return node
    return None


class PatchVerdict(Enum):
    PLAUSIBLE = "plausible"
    FAILED = "failed"
    SLOW = "slow"
    BROKEN = "broken"
    """It does not compile."""


@dataclass(slots=True)
class JudgingPlan:
    """Which tests judge a candidate, in which order and within which limits."""

    failing: list[int]
    passing: dict[int, list[int]]
    """By function: the passing tests that run it, quick ones first."""
    seconds: dict[int, float]
    limit: float
    isolated: bool = False
    """Tests depend on their order: every candidate gets a fresh process and the suite's own order."""
    steady: frozenset[int] = frozenset()
    """The tests that passed every time."""

    def limit_of(self, index: int, wanted: float) -> float:
        return max(wanted or self.limit, 4 * self.seconds.get(index, 0.0) + 0.1)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: PatchVerdict
    fixed: int = 0
    """How many failing tests passed before the first that did not."""


class Judge:
    def __init__(self, program: Program, suite: Suite, plan: JudgingPlan) -> None:
        self.program = program
        self.suite = suite
        self.plan = plan

    def judge(self, candidate: Candidate, limit: float = 0.0) -> Judgement:
        undo = install(self.program, candidate)
        if undo is None:
            return Judgement(PatchVerdict.BROKEN)
        try:
            if self.plan.isolated:
                return self._in_fork(limit)
            return self._here(candidate, limit)
        finally:
            undo()

    def _here(self, candidate: Candidate, limit: float) -> Judgement:
        plan, fixed = self.plan, 0
        for index in plan.failing:
            outcome = self.suite.run(index, limit or plan.limit)
            if not outcome.passed:
                return Judgement(PatchVerdict.SLOW if outcome.timed_out else PatchVerdict.FAILED, fixed)
            fixed += 1
        for index in plan.passing.get(candidate.function, ()):
            outcome = self.suite.run(index, plan.limit_of(index, limit))
            if not outcome.passed:
                return Judgement(PatchVerdict.SLOW if outcome.timed_out else PatchVerdict.FAILED)
        return Judgement(PatchVerdict.PLAUSIBLE, fixed)

    def count_fixed(self, candidate: Candidate) -> int:
        """How many failing tests it fixes, all of them tried; 0 when it breaks a passing one."""
        undo = install(self.program, candidate)
        if undo is None:
            return 0
        try:
            ended = [self.suite.run(index, self.plan.limit).passed for index in self.plan.failing]
            if not any(ended):
                return 0
            passing = self.plan.passing.get(candidate.function, ())
            kept = all(self.suite.run(index, self.plan.limit_of(index, 0.0)).passed for index in passing)
            return sum(ended) if kept else 0
        finally:
            undo()

    def _in_fork(self, limit: float) -> Judgement:
        process = os.fork()
        if process == 0:
            with Catch():
                os._exit(self._ordered(limit))
            os._exit(1)
        return {0: Judgement(PatchVerdict.PLAUSIBLE, len(self.plan.failing)), 2: Judgement(PatchVerdict.SLOW)}.get(
            self._wait(process, max(8.0, limit * 20)), Judgement(PatchVerdict.FAILED)
        )

    def _ordered(self, limit: float) -> int:
        for index in sorted({*self.plan.failing, *self.plan.steady}):
            outcome = self.suite.run(index, self.plan.limit_of(index, limit))
            if not outcome.passed:
                return 2 if outcome.timed_out else 1
        return 0

    @staticmethod
    def _wait(process: int, seconds: float) -> int:
        """The exit code, or 2 for a process that had to be ended."""

        def late(number: int, frame: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        started = time.monotonic()
        _, status = os.waitpid(process, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        return 2 if time.monotonic() - started >= seconds else os.waitstatus_to_exitcode(status)
