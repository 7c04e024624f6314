"""Drafts: one answer with the whole function, for models that are better at that than at calling tools.

Small models that run on this machine write a function well and call tools badly; drawn several times and held against
the tests, they mend more than one careful answer does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from pawl.app.doing.climbing.attempting import Assignment, Worked
from pawl.app.doing.climbing.briefing import failing_text, findings_of
from pawl.app.doing.climbing.workplace import Workplace
from pawl.app.doing.works import BENCH
from pawl.context.languages import language_of
from pawl.context.parsers import Parsers
from pawl.core.errors import PawlError
from pawl.core.outline import Definition
from pawl.core.ports import Files
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import TierMode
from pawl.workflow.climbing.replacing import places_of, replaced
from pawl.workflow.climbing.rewriting import Place, functions_of, holding, rewritten, text_of
from pawl.workflow.climbing.summaries import bounded
from pawl.workflow.climbing.test_files import is_test
from pawl.workflow.workbench import Line

MOST_PLACES = 3
TURNS = (0, 0, 0, 1, 2)
"""Which of the likeliest functions a sample is about: mostly the first."""
MOST_TEST_CHARACTERS = 3_000
_SUSPECT = re.compile(r"([\w./-]+\.\w+):(\d+)")
_IMPORT = re.compile(r"(?:import|from|use|#include)\s|(?:const|let|var)\s.*\brequire\(")


class Sources:
    """The files of a bench in the languages that are known: their functions, and one of them written anew."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._parsers = Parsers()

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        self._parsers.close()

    def text(self, path: str) -> str:
        try:
            return self._files.read(path).decode("utf-8")
        except (PawlError, OSError, UnicodeDecodeError):
            return ""

    def functions(self, path: str) -> tuple[Place, ...]:
        source = self.text(path)
        if path.endswith(".py"):
            return functions_of(path, source)
        return places_of(path, source, self._definitions(path, source))

    def rewritten(self, place: Place, answer: str) -> str | None:
        source = self.text(place.path)
        if place.path.endswith(".py"):
            return rewritten(place, source, answer)
        return replaced(place, source, answer, lambda text: self._definitions(place.path, text))

    def language(self, path: str) -> str:
        found = language_of(path)
        return found.name if found is not None else ""

    def _definitions(self, path: str, text: str) -> Sequence[Definition]:
        language = language_of(path)
        return () if language is None else self._parsers.parse(text.encode(), language).definitions


def draft(place: Workplace, task: Assignment, sample: int) -> Worked | None:
    """Another text of one function, written to the bench; None where it cannot be told which function."""
    with Sources(place.works.desk.files) as sources:
        places = tuple(itertools.islice(_places(sources, task), MOST_PLACES))
        if not places:
            return None
        chosen = places[TURNS[(sample - 1) % len(TURNS)] % len(places)]
        words = "\n\n".join(part for part in _words(sources, task, chosen) if part)
        line = Line(talk=place.talk("draft"), role=RoleName.ARTISAN, text=words, stage=Stage.DRAFT)
        made = sources.rewritten(chosen, place.talker.say(line).text)
    if made is None:
        return Worked(said=f"{chosen.name}: the answer holds no such function")
    place.works.desk.files.write(chosen.path, made.encode())
    place.record.keep_work(BENCH, place.works.standing())
    return Worked(said=f"{chosen.path}: {chosen.name} written anew")


def _words(sources: Sources, task: Assignment, chosen: Place) -> Iterator[str]:
    yield task.objective
    findings = findings_of(task.before)
    yield failing_text(findings[:2])
    for path in dict.fromkeys(finding.path for finding in findings[:2] if finding.path):
        if path != chosen.path:
            shown = bounded(sources.text(path).splitlines(), MOST_TEST_CHARACTERS)
            yield f"The tests, {path}:\n```{sources.language(path)}\n{shown}\n```"
    source = sources.text(chosen.path)
    imports = [line for line in source.splitlines() if _IMPORT.match(line)]
    fence = f"```{sources.language(chosen.path)}"
    yield "\n".join(
        (f"The function with the mistake, in {chosen.path}:", fence, *imports, text_of(chosen, source), "```")
    )
    yield f"Write the whole function {chosen.name} without the mistake."


def _places(sources: Sources, task: Assignment) -> Iterator[Place]:
    """The likeliest functions: what the search suspected, what the failing tests ran last, what the user names."""
    seen: set[Place] = set()
    for path, line in _lines(task):
        found = holding(sources.functions(path), line) if not _is_of_tests(path) else None
        if found is not None and found not in seen:
            seen.add(found)
            yield found
    if task.target:
        yield from (one for one in sources.functions(task.target) if one not in seen)


def _lines(task: Assignment) -> Iterator[tuple[str, int]]:
    for attempt in task.climb.attempts:
        if attempt.mode is TierMode.REFLEX:
            yield from ((path, int(line)) for path, line in _SUSPECT.findall(attempt.said))
    for finding in findings_of(task.before):
        yield from ((frame.path, frame.line) for frame in reversed(finding.frames))


def _is_of_tests(path: str) -> bool:
    return is_test(path) or "tests/" in f"{path}/"
