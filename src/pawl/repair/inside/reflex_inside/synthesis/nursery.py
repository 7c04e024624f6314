"""The synthesis as a process of its own: it records, grows, and sends candidates as they come."""

from __future__ import annotations

import ast
import os
import select
from collections.abc import Iterator

from reflex_inside.edits import Candidate
from reflex_inside.generate import Generator, blocks_of, header_lines
from reflex_inside.limits import Caught, end_child, limit_memory, silence
from reflex_inside.program import Program
from reflex_inside.suite import Baseline, Suite
from reflex_inside.synthesis.holes import Holes, Sprouts
from reflex_inside.synthesis.record import Recording, record_states
from reflex_inside.workers import receive, send

MOST_FUNCTIONS = 5
MOST_STATEMENTS = 60
FAILING_TESTS = 6
PASSING_TESTS = 6
PORTION = 500
GARDEN_SECONDS = 0.5

Place = tuple[float, Generator, list[ast.stmt], int]


class Nursery:
    """Grows candidates for the most suspicious statements."""

    def __init__(self, program: Program, suite: Suite, generators: list[Generator]) -> None:
        self.program = program
        self.suite = suite
        self.generators = generators[:MOST_FUNCTIONS]

    def places(self) -> list[Place]:
        """Suspicious statements, the most suspicious first."""
        found: list[Place] = []
        for generator in self.generators:
            for block, place in blocks_of(generator.facts.function.node.body):
                lines = header_lines(block[place])
                score = max((generator.suspicion.get(line, 0.0) for line in lines), default=0.0)
                if score > 0:
                    found.append((score, generator, block, place))
        found.sort(key=lambda each: -each[0])
        return found[:MOST_STATEMENTS]

    def record(self, baseline: Baseline, passing: dict[int, list[int]], places: list[Place]) -> Recording:
        hanging = [index for index in baseline.failing if baseline.outcomes[index].timed_out]
        failing = [index for index in baseline.failing if index not in hanging][:FAILING_TESTS]
        tests = [(index, True) for index in failing + hanging[: 1 if failing else 2]]
        functions = {generator.facts.function.index for _, generator, _, _ in places}
        others = [index for function in functions for index in passing.get(function, ())[:PASSING_TESTS]]
        tests += [(index, False) for index in dict.fromkeys(others)]
        lines = {(generator.facts.source.path, block[at].lineno) for _, generator, block, at in places}
        return record_states(self.program, self.suite, lines, tests, 3.0)

    def candidates(self, recording: Recording, places: list[Place]) -> Iterator[list[Candidate]]:
        for score, generator, block, at in places:
            holes = Holes(generator.facts, recording, block[at], GARDEN_SECONDS)
            found: list[Candidate] = []
            with Caught():
                found += [generator.candidate(proposal, score) for proposal in holes.proposals()]
            yield found
            if holes.garden is not None:
                sprouts = Sprouts(generator.facts, recording, block, at)
                grown: list[Candidate] = []
                with Caught():
                    for proposal in sprouts.proposals(holes.garden):
                        grown.append(generator.candidate(proposal, score))
                yield grown

    def work(self, outbox: int, baseline: Baseline, passing: dict[int, list[int]]) -> None:
        places = self.places()
        recording = self.record(baseline, passing, places)
        for candidates in self.candidates(recording, places):
            for start in range(0, len(candidates), PORTION):
                send(outbox, candidates[start : start + PORTION])


class Stream:
    """The other end: candidates that have arrived."""

    def __init__(self, nursery: Nursery, baseline: Baseline, passing: dict[int, list[int]], memory: int) -> None:
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Caught():
                os.close(self.inbox)
                silence()
                limit_memory(memory)
                nursery.work(outbox, baseline, passing)
            os._exit(0)
        os.close(outbox)
        self.open = True

    def arrived(self, seconds: float = 0.0) -> list[Candidate]:
        """What is there now, or what comes first within some seconds."""
        found: list[Candidate] = []
        while self.open:
            ready, _, _ = select.select([self.inbox], [], [], 0.0 if found else seconds)
            if not ready:
                break
            portion = receive(self.inbox)
            if portion is None:
                self.close()
                break
            found += portion
        return found

    def close(self) -> None:
        if self.open:
            self.open = False
            os.close(self.inbox)
            end_child(self.process)
