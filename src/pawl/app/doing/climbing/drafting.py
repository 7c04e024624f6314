"""Drafts: one answer with the whole function, for models that are better at that than at calling tools.

Small models that run on this machine write a function well and call tools badly; drawn several times and held against
the tests, they mend more than one careful answer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pawl.app.doing.climbing.attempting import Assignment, Worked
from pawl.app.doing.climbing.briefing import failing_text, findings_of
from pawl.app.doing.climbing.workplace import Workplace
from pawl.app.doing.works import BENCH
from pawl.core.errors import PawlError
from pawl.core.ports import Files
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import TierMode
from pawl.workflow.climbing.rewriting import Place, function_at, functions_of, rewritten, text_of
from pawl.workflow.climbing.summaries import bounded
from pawl.workflow.workbench import Line

MOST_PLACES = 3
TURNS = (0, 0, 0, 1, 2)
"""Which of the likeliest functions a sample is about: mostly the first."""
MOST_TEST_CHARACTERS = 3_000
_SUSPECT = re.compile(r"([\w./-]+\.py):(\d+)")


def draft(place: Workplace, task: Assignment, sample: int) -> Worked | None:
    """Another text of one function, written to the bench; None where it cannot be told which function."""
    places = tuple(_places(place.works.desk.files, task))[:MOST_PLACES]
    if not places:
        return None
    chosen = places[TURNS[(sample - 1) % len(TURNS)] % len(places)]
    source = _source(place.works.desk.files, chosen.path)
    words = "\n\n".join(part for part in _words(place.works.desk.files, task, chosen, source) if part)
    line = Line(talk=place.talk("draft"), role=RoleName.ARTISAN, text=words, stage=Stage.DRAFT)
    said = place.talker.say(line).text
    made = rewritten(chosen, source, said)
    if made is None:
        return Worked(said=f"{chosen.name}: the answer holds no such function")
    place.works.desk.files.write(chosen.path, made.encode())
    place.record.keep_work(BENCH, place.works.standing())
    return Worked(said=f"{chosen.path}: {chosen.name} written anew")


def _words(files: Files, task: Assignment, chosen: Place, source: str) -> Iterator[str]:
    yield task.objective
    findings = findings_of(task.before)
    yield failing_text(findings[:2])
    for path in dict.fromkeys(finding.path for finding in findings[:2] if finding.path):
        if path != chosen.path:
            shown = bounded(_source(files, path).splitlines(), MOST_TEST_CHARACTERS)
            yield f"The tests, {path}:\n```python\n{shown}\n```"
    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    yield "\n".join(
        (f"The function with the mistake, in {chosen.path}:", "```python", *imports, text_of(chosen, source), "```")
    )
    yield f"Write the whole function {chosen.name} without the mistake."


def _places(files: Files, task: Assignment) -> Iterator[Place]:
    """The likeliest functions: what the search suspected, what the failing tests ran last, what the user names."""
    seen: set[Place] = set()
    for path, line in _lines(task):
        found = function_at(path, _source(files, path), line) if not _is_test(path) else None
        if found is not None and found not in seen:
            seen.add(found)
            yield found
    if task.target.endswith(".py"):
        yield from (one for one in functions_of(task.target, _source(files, task.target)) if one not in seen)


def _lines(task: Assignment) -> Iterator[tuple[str, int]]:
    for attempt in task.climb.attempts:
        if attempt.mode is TierMode.REFLEX:
            yield from ((path, int(line)) for path, line in _SUSPECT.findall(attempt.said))
    for finding in findings_of(task.before):
        yield from ((frame.path, frame.line) for frame in reversed(finding.frames))


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py") or "tests/" in f"{path}/"


def _source(files: Files, path: str) -> str:
    try:
        return files.read(path).decode("utf-8")
    except (PawlError, OSError, UnicodeDecodeError):
        return ""
