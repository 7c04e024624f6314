"""Specification, plan and tasks held against each other and against the files, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from pawl.agent.specification.spec_folder import SpecFolder, constitution, read_text
from pawl.agent.specification.task_list import FORM, TaskList
from pawl.agent.specification.waves import PLAN, planned, read_waves
from pawl.agent.works import is_there
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass

_REQUIREMENT = re.compile(r"(?m)^[ \t]*[-*]\s+\*\*(?P<id>(?:FR|NFR)-\d+)\*\*|^[ \t]*[-*]\s+(?P<plain>(?:FR|NFR)-\d+)\b")
_STORY = re.compile(r"(?mi)^#{2,4}\s+User Story (?P<number>\d+)\b")
UNCLEAR = re.compile(r"\[NEEDS CLARIFICATION\b[^\]]*\]?|(?<=: )NEEDS CLARIFICATION\b.*")
_PLACEHOLDER = re.compile(
    r"\[(?:FEATURE(?: NAME)?|DATE|###-[^\]\n]{0,40}|(?:Brief )?Title|Entity\d?|PRINCIPLE_\d_\w+|PROJECT_NAME)\]"
)
_UNCHECKED = re.compile(r"(?m)^[ \t]*[-*] \[ \]")
_ENTITY = re.compile(r"(?m)^#{2,4}\s+(?:Entity:\s*)?(?P<name>[A-Z]\w+)\s*$")


class FindingLevel(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFinding:
    level: FindingLevel
    where: str
    what: str
    drift: bool = False
    """The code is not as the tasks say."""


def analyzed(spec: SpecFolder) -> tuple[SpecFinding, ...]:
    """Errors first, then in the order of the files."""
    found = list(_documents(spec))
    if spec.has("tasks.md"):
        try:
            tasks = spec.tasks()
            found += [*coverage(spec, tasks), *_design(spec, tasks), *_tasks(spec, tasks), *drift(spec, tasks)]
        except UsageError as error:
            found.append(SpecFinding(level=FindingLevel.ERROR, where="tasks.md", what=error.message))
    return tuple(sorted(found, key=lambda one: one.level is not FindingLevel.ERROR))


def _documents(spec: SpecFolder) -> Iterator[SpecFinding]:
    for part in ("spec.md", "plan.md", "tasks.md"):
        if not spec.has(part):
            level = FindingLevel.WARNING if part == "plan.md" else FindingLevel.ERROR
            yield SpecFinding(level=level, where=part, what="does not exist")
    places = {part: spec.read(part) for part in ("spec.md", "plan.md", "data-model.md", "tasks.md")}
    for name in spec.names("checklists"):
        if boxes := len(_UNCHECKED.findall(spec.read(f"checklists/{name}"))):
            what = f"{boxes} of its boxes not ticked; that is left to the reviewer"
            yield SpecFinding(level=FindingLevel.WARNING, where=f"checklists/{name}", what=what)
    if path := constitution(spec.shop):
        places[path] = read_text(spec.shop, path)
    for where, text in places.items():
        if unclear := UNCLEAR.findall(text):
            what = f"{len(unclear)} open: {unclear[0][:120]}; 'pawl spec clarify' asks about it"
            yield SpecFinding(level=FindingLevel.ERROR, where=where, what=what)
        if left := _PLACEHOLDER.findall(text):
            what = f"{left[0]} of the template is not filled in"
            yield SpecFinding(level=FindingLevel.WARNING, where=where, what=what)


def unheld(spec: SpecFolder, tasks: TaskList) -> Iterator[SpecFinding]:
    """Objections to a converge that found the code to be all there: drift, and requirements it passes over."""
    yield from drift(spec, tasks)
    held = spec.read("converge.md")
    for name in _requirements(spec.read("spec.md")):
        if name not in held:
            yield SpecFinding(
                level=FindingLevel.ERROR, where="converge.md", what=f"{name} was not compared with the code"
            )


def _requirements(text: str) -> dict[str, None]:
    return dict.fromkeys(match["id"] or match["plain"] for match in _REQUIREMENT.finditer(text))


def coverage(spec: SpecFolder, tasks: TaskList) -> Iterator[SpecFinding]:
    """Wishes of the specification that no task fulfils, and the other way round."""
    text = spec.read("spec.md")
    wanted = _requirements(text)
    covered = {name for one in tasks.tasks for name in one.covers}
    # Tasks of Spec Kit name stories; where some name requirements, each requirement is to be named.
    level = FindingLevel.ERROR if covered & wanted.keys() else FindingLevel.WARNING
    for name in wanted:
        if name not in covered:
            yield SpecFinding(level=level, where="spec.md", what=f"no task covers {name}")
    stories = dict.fromkeys(f"US{match['number']}" for match in _STORY.finditer(text))
    done = {one.story for one in tasks.tasks if one.story}
    for story in stories:
        if story not in done:
            yield SpecFinding(
                level=FindingLevel.ERROR, where="spec.md", what=f"user story {story[2:]} has no task [{story}]"
            )
    for one in tasks.tasks:
        unknown = [name for name in one.covers if wanted and name not in text]
        unknown += [one.story] * bool(one.story and stories and one.story not in stories)
        for name in unknown:
            what = f"{one.id} covers {name}, which is not in spec.md"
            yield SpecFinding(level=FindingLevel.ERROR, where=f"tasks.md:{one.line}", what=what)


def _design(spec: SpecFolder, tasks: TaskList) -> Iterator[SpecFinding]:
    words = tasks.text.lower()
    for contract in spec.names("contracts"):
        if contract.lower() not in words and contract.rpartition(".")[0].lower() not in words:
            yield SpecFinding(level=FindingLevel.WARNING, where=f"contracts/{contract}", what="no task names it")
    for entity in dict.fromkeys(match["name"] for match in _ENTITY.finditer(spec.read("data-model.md"))):
        if entity.lower() not in words:
            yield SpecFinding(level=FindingLevel.WARNING, where="data-model.md", what=f"no task names {entity}")


def _tasks(spec: SpecFolder, tasks: TaskList) -> Iterator[SpecFinding]:
    for line in tasks.unnumbered:
        yield SpecFinding(level=FindingLevel.WARNING, where=f"tasks.md:{line}", what=f"is not a task; {FORM}")
    for one in tasks.tasks:
        if not one.files:
            what = f"{one.id} names no file: it runs alone and may change any file"
            yield SpecFinding(level=FindingLevel.WARNING, where=f"tasks.md:{one.line}", what=what)
    try:
        planned(tasks.tasks, {})
        if spec.has(PLAN):
            read_waves(spec.read(PLAN), tasks)
    except UsageError as error:
        yield SpecFinding(level=FindingLevel.ERROR, where="tasks.md", what=error.message)


def drift(spec: SpecFolder, tasks: TaskList) -> Iterator[SpecFinding]:
    """Tasks that are ticked, and whose files or proofs are not there."""
    for one in tasks.tasks:
        gone = [path for path in (*one.files, *one.proof) if " " not in path and not is_there(spec.shop, path)]
        if one.done and gone:
            what = f"{one.id} is ticked, but {gone[0]} does not exist"
            yield SpecFinding(level=FindingLevel.ERROR, where=f"tasks.md:{one.line}", what=what, drift=True)
