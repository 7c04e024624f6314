"""How a tier works on an attempt: who talks with a model, in which order, and what each is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pawl.agent.briefing import brief, failing_text, findings_of
from pawl.agent.context import TurnInput
from pawl.agent.evidence import Requirements
from pawl.agent.workplace import Workplace, form_of
from pawl.code.librarian import open_librarian
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import CheckResult
from pawl.core.errors import PawlError, SchemaUnmet
from pawl.core.events import Warned
from pawl.core.patch import unified
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import EscalationState
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent import contract_models
    from pawl.core.code import Hit


MOST_HITS = 12
MOST_SENT_BACK = 2
"""How often the critic may send one attempt back before it ends."""
PACK_TOKENS = 6_000
MOST_DIFF = 24_000
"""Characters of a diff that the critic is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What an attempt is for: the same for every attempt of an iteration."""

    climb: EscalationState
    """As it stood when the iteration began."""
    objective: str
    target: str
    before: CheckResult
    wanted: Requirements
    ground: ChangeSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What was said to be done; `problems` are why the critic does not let it through."""

    said: str
    problems: tuple[str, ...] = ()


def simple(place: Workplace, task: Assignment) -> Worked:
    """The artisan alone."""
    text = brief(task.climb, task.objective, task.before, target=task.target)
    spoken = place.talker.say(TurnInput(talk=place.talk("artisan"), role=RoleName.ARTISAN, text=text))
    return Worked(said=spoken.text)


def full(shop: Project, place: Workplace, task: Assignment) -> Worked:
    """Librarian, artisan, critic; the critic can send the work back before a test is run."""
    pack = librarian_pack(shop, place, task)
    text = brief(task.climb, task.objective, task.before, target=task.target, pack=pack)
    talk = place.talk("artisan 1")
    said = place.talker.say(TurnInput(talk=talk, role=RoleName.ARTISAN, text=text)).text
    for number in range(1, MOST_SENT_BACK + 1):
        problems = _criticised(shop, place, task, number)
        if not problems:
            return Worked(said=said)
        place.talker.listen(Warned(f"the critic sends it back: {problems[0]}"))
        if number == MOST_SENT_BACK:
            return Worked(said=said, problems=problems)
        history = place.talker.history(talk)
        talk = place.talk(f"artisan {number + 1}")
        words = "\n".join(("The critic sends the work back:", *(f"- {one}" for one in problems), "Mend this."))
        said = place.talker.say(TurnInput(talk=talk, role=RoleName.ARTISAN, text=words, history=history)).text
    return Worked(said=said)


def team(place: Workplace, task: Assignment) -> Worked:
    """The lead, who sends the planner, checks, and sends the fixer; the planner sends the workers."""
    text = brief(task.climb, task.objective, task.before, target=task.target)
    spoken = place.talker.say(TurnInput(talk=place.talk("lead"), role=RoleName.LEAD, text=text))
    return Worked(said=spoken.text)


def librarian_pack(shop: Project, place: Workplace, task: Assignment) -> str:
    """The files that matter, named without a model, ranked by the librarian, as focused context."""
    known = place.record.value("pack")
    if isinstance(known, str):
        return known
    hits = _located(shop, task)
    text = _packed(place, shop, _ranked(place, task, hits))
    place.record.put("pack", text)
    return str(place.record.value("pack"))


def _located(shop: Project, task: Assignment) -> Sequence[Hit]:
    from pawl.core.code import Query, Suspicion

    findings = findings_of(task.before)
    suspicions = [
        Suspicion(path=frame.path, line=frame.line, weight=0.5) for one in findings for frame in one.frames[-2:]
    ]
    if task.target:
        suspicions.append(Suspicion(path=task.target))
    words = "\n".join((task.objective, failing_text(findings)))
    with open_librarian(shop) as librarian:
        librarian.refresh()
        return librarian.locate(Query(text=words, suspicions=tuple(suspicions)), MOST_HITS)


def _ranked(place: Workplace, task: Assignment, hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits in the librarian's order; its own where its answer cannot be used."""
    named = "\n".join(f"- {hit.path}: {'; '.join(hit.reasons)}" for hit in hits) or "- none"
    text = "\n\n".join(
        (
            brief(task.climb, task.objective, task.before, target=task.target),
            f"Found without a model, the likeliest first:\n{named}",
            form_of(RoleName.LIBRARIAN, place.talker.terms.reasoning),
        )
    )
    try:
        line = TurnInput(talk=place.talk("librarian"), role=RoleName.LIBRARIAN, text=text, stage=Stage.STUDY)
        value: contract_models.FileRanking = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet:
        return hits
    if value is None:
        return hits
    from pawl.core.code import Hit

    by_path = {hit.path: hit for hit in hits}
    chosen = [by_path.get(one.path) or Hit(path=one.path, score=1.0, reasons=(one.why,)) for one in value.files]
    return chosen or hits


def _packed(place: Workplace, shop: Project, hits: Sequence[Hit]) -> str:
    from pawl.agent.tool_session import LateOutliner
    from pawl.code.bundle import pack
    from pawl.code.librarian import gathered
    from pawl.core.code import PackRequest

    outliner = LateOutliner(shop.guardrails)
    try:
        files = gathered(hits, place.works.desk.files, outliner, shop.guardrails)
        return pack(PackRequest(budget=PACK_TOKENS, hits=tuple(hits), files=files)).text
    finally:
        outliner.close()


def _criticised(shop: Project, place: Workplace, task: Assignment, number: int) -> tuple[str, ...]:
    """What blocks the work, by the critic's structured verdict; nothing where it approves or cannot be understood."""
    work = place.works.now()
    if work.changes.digest == task.ground.digest:
        return ()
    diff = unified(shop.read_gate().shown(work.changes), shop.store.blobs)
    shown = diff if len(diff) <= MOST_DIFF else diff[:MOST_DIFF].rsplit("\n", 1)[0] + "\n[the rest is left out]"
    text = "\n\n".join(
        (
            f"The request:\n{task.objective}",
            failing_text(findings_of(task.before)),
            f"The change, which stands on the bench:\n{shown}",
            form_of(RoleName.CRITIC, place.talker.terms.reasoning),
        )
    )
    line = TurnInput(talk=place.talk(f"critic {number}"), role=RoleName.CRITIC, text=text, stage=Stage.STUDY)
    try:
        value: contract_models.CriticVerdict = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet as error:
        place.record.note("critic misunderstood", {"error": error.message})
        return ()
    if value is None or value.verdict == "approve":
        return ()
    blocking = [one for one in value.problems if one.severity == "blocking"]
    return tuple(
        f"{one.path}:{one.line} {one.problem}" + (f" ({one.suggestion})" if one.suggestion else "") for one in blocking
    )


def stands(place: Workplace) -> tuple[ChangeSet, tuple[str, ...]]:
    """What stands on the bench and can be promoted, and what is held back."""
    work = place.works.now()
    return work.changes, tuple(f"{one.path} is held back: {one.reason}" for one in work.held)


def what_failed(error: PawlError) -> str:
    return f"{error.code}: {error.message}"
