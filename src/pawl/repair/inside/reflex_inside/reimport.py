"""Candidates outside functions: each is judged in a process that imports the program anew with the edit made."""

from __future__ import annotations

import ast
import math
import os
import select
import time
from collections.abc import Iterator
from typing import Any

from reflex_inside.caught import Caught, end_child, forked, silence
from reflex_inside.edits import Candidate, Reach
from reflex_inside.facts import Facts, gather_facts
from reflex_inside.generate import NARROW, blocks_of, own_expressions
from reflex_inside.hosts import run_host
from reflex_inside.limits import limit_memory
from reflex_inside.program import Function, Program, definitions
from reflex_inside.protocol import Request
from reflex_inside.suite import Suite
from reflex_inside.suspicion import Suspicion
from reflex_inside.templates.site import Site
from reflex_inside.templates.statements import changed_statements
from reflex_inside.warm import SECONDS_PER_TEST, Task, Warm, serve_instead
from reflex_inside.workers import receive, send

MOST_PLAUSIBLE = 3
RIVAL_SECONDS = 3.0
IMPORT_TIME_COST = 1.0


class Zygote:
    """A process from before the program was imported; it forks once for every candidate."""

    def __init__(self, request: Request) -> None:
        self.request = request
        inbox, self.outbox = os.pipe()
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Caught():
                os.close(self.outbox)
                os.close(self.inbox)
                silence()
                self._serve(inbox, outbox)
            os._exit(0)
        os.close(inbox)
        os.close(outbox)

    def _serve(self, inbox: int, outbox: int) -> None:
        limit_memory(self.request.memory)
        warm = Warm(self.request) if self.request.framework == "pytest" else None
        while (task := receive(inbox)) is not None:
            answer = warm.answer(task) if warm is not None else None
            if answer is None and not task.watches_import:
                answer = bool(forked(lambda: self._passes(task), task.seconds))
            send(outbox, answer)

    def _passes(self, task: Task) -> bool:
        """Whether all these tests pass, in this order, with the file's content replaced."""
        serve_instead(task.path, task.data)
        passed: list[bool] = []

        def work(suite: Suite) -> None:
            places = {case.name: index for index, case in enumerate(suite.cases)}
            for name in task.names:
                if name not in places or not suite.run(places[name], SECONDS_PER_TEST).passed:
                    return
            passed.append(True)

        run_host(self.request, work)
        return bool(passed)

    def passes(self, path: str, data: bytes, names: list[str], seconds: float) -> bool:
        self.begin(path, data, names, seconds)
        return self.result()

    def begin(self, path: str, data: bytes, names: list[str], seconds: float) -> None:
        send(self.outbox, Task(path, data, tuple(names), seconds))

    def run_at_import(self, seconds: float) -> frozenset[tuple[str, int]]:
        """Where the functions begin that run while the tests are collected; empty where that cannot be told."""
        send(self.outbox, Task("", b"", (), seconds, watches_import=True))
        answer = receive(self.inbox)
        return frozenset(map(tuple, answer)) if isinstance(answer, list) else frozenset()

    def result(self) -> bool:
        return bool(receive(self.inbox))

    def close(self) -> None:
        os.close(self.outbox)
        os.close(self.inbox)
        end_child(self.process)


def outside_candidates(program: Program, suspicion: Suspicion) -> list[Candidate]:
    """Edits of suspicious definitions in modules and classes, cheapest first."""
    found: list[Candidate] = []
    for path, lines in suspicion.globals.items():
        source = program.sources[path]
        for block, place, _ in definitions(source.tree.body, ()):
            statement = block[place]
            score = lines.get(statement.lineno, 0.0)
            if score > 0:
                facts = module_facts(program, path, statement)
                price = -1.2 * math.log(max(score, 0.05))
                for proposal in _proposals(facts, block, place):
                    found.append(
                        Candidate(
                            proposal.cost + price,
                            proposal.template,
                            path,
                            proposal.edits,
                            -1,
                            proposal.line,
                            Reach.MODULE,
                        )
                    )
    unique = {candidate.key: candidate for candidate in sorted(found, key=lambda each: -each.cost)}
    return sorted(unique.values(), key=lambda candidate: candidate.cost)


def _proposals(facts: Facts, block: list[ast.stmt], place: int) -> Iterator[Any]:
    for expression in own_expressions(block[place]):
        template = NARROW.get(type(expression))
        if template is not None and isinstance(getattr(expression, "ctx", ast.Load()), ast.Load):
            yield from template(Site(facts, expression))
    yield from changed_statements(facts, block, place)


def module_facts(program: Program, path: str, statement: ast.stmt) -> Facts:
    """Facts for a statement outside functions: it stands alone in a function that has no name."""
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.FunctionDef("", arguments, [statement], [], lineno=statement.lineno, col_offset=0)
    around.end_lineno = statement.end_lineno
    return gather_facts(Facts(program.sources[path], Function(-1, path, "", (), around)))


def search_outside(
    zygotes: list[Zygote], program: Program, candidates: list[Candidate], names: list[str], deadline: float
) -> list[Candidate]:
    """The first candidates that pass all tests by name, several judged at a time."""
    plausible: list[Candidate] = []
    waiting = list(reversed(candidates))
    busy: dict[int, tuple[Zygote, Candidate]] = {}
    while waiting or busy:
        left = deadline - time.monotonic()
        for zygote in zygotes:
            if zygote.inbox not in busy and waiting and left > 0 and len(plausible) < MOST_PLAUSIBLE:
                candidate = waiting.pop()
                data = program.sources[candidate.path].edited(candidate.edits)
                zygote.begin(candidate.path, data, names, min(left + 1, 60.0))
                busy[zygote.inbox] = (zygote, candidate)
        if not busy:
            break
        ready, _, _ = select.select(list(busy), [], [])
        for inbox in ready:
            zygote, candidate = busy.pop(inbox)
            if zygote.result():
                plausible.append(candidate)
                deadline = min(deadline, time.monotonic() + RIVAL_SECONDS)
    return plausible


def called_at_import(program: Program, path: str) -> set[str]:
    """Names of functions that the module itself calls while it is imported."""
    found: set[str] = set()
    for statement in program.sources[path].tree.body:
        if isinstance(statement, (ast.Expr, ast.Assign, ast.For, ast.If)):
            found |= {
                n.func.id for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
            }
    return found


def works_at_import(program: Program, suspicion: Suspicion) -> list[Function]:
    """Functions that seem to have done their work before any test begins."""
    return [
        function
        for path in {program.functions[index].path for index in suspicion.functions}
        for function in program.functions
        if function.path == path
        and function.name in called_at_import(program, path)
        and function.index not in suspicion.functions
    ]


def import_time_candidates(program: Program, functions: list[Function]) -> list[Candidate]:
    """Edits of functions that run at import, cheapest first."""
    found: list[Candidate] = []
    for function in functions:
        facts = gather_facts(Facts(program.sources[function.path], function))
        for block, place in blocks_of(function.node.body):
            for proposal in _proposals(facts, block, place):
                cost, line = proposal.cost + IMPORT_TIME_COST, proposal.line
                found.append(Candidate(cost, proposal.template, function.path, proposal.edits, -1, line, Reach.MODULE))
    unique = {candidate.key: candidate for candidate in found}
    return sorted(unique.values(), key=lambda candidate: candidate.cost)
