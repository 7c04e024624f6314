"""Where one attempt is made, a bench, a conversation and a part of the record of its own, and who works there.

A tier differs from another by who takes part: one role works, another may name the files that matter before, a third
may send the work back before a test is run. A draft is another text of one function, asked of a model in one request
and put into the file in its place.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pawl.agent.briefing import bounded, brief, failing_text, shown_diff, still_failing
from pawl.agent.context import TurnInput
from pawl.agent.function_text import FunctionPlace, Sources, head_of, holding, text_of, with_function
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.talker import Talker
from pawl.agent.team_report import team_report
from pawl.agent.works import BenchWorks
from pawl.checks.output import suspicions
from pawl.checks.verdict import Requirements
from pawl.code.bundle import pack
from pawl.code.code_model import Hit, PackRequest, Query, Suspicion
from pawl.code.languages import is_test
from pawl.code.librarian import gathered, open_librarian
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import CheckResult, Diagnostic
from pawl.core.errors import SchemaUnmet
from pawl.core.events import Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName, Stage
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.core.tiers import EscalationState, TierMode
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent import contract_models


MOST_HITS = 12
MOST_SENT_BACK = 2
"""How often the critic may send one attempt back before it ends."""
PACK_TOKENS = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LineUp:
    """The roles of an attempt."""

    works: RoleName
    ranks: RoleName | None = None
    reviews: RoleName | None = None


LINE_UPS: Mapping[TierMode, LineUp] = MappingProxyType(
    {
        TierMode.SIMPLE: LineUp(works=RoleName.ARTISAN),
        TierMode.FULL: LineUp(ranks=RoleName.LIBRARIAN, works=RoleName.ARTISAN, reviews=RoleName.CRITIC),
        # The supervisor sends the lead, who sends the planner, checks, and sends the fixer; the planner sends workers.
        TierMode.TEAM: LineUp(works=RoleName.SUPERVISOR),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The task of an attempt: the same for every attempt of an iteration."""

    climb: EscalationState
    """As it stood when the iteration began."""
    objective: str
    target: str
    before: CheckResult
    wanted: Requirements
    ground: ChangeSet

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        return still_failing(self.climb, self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """The artisan's account; `problems` are the critic's reasons to send it back."""

    said: str
    problems: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Planned changes that were not made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Opened for one attempt; what was said, done and changed is in the record, so that it can be opened again."""

    name: str
    record: RunRecord
    works: BenchWorks
    talker: Talker

    def __enter__(self) -> Workplace:
        return self

    def __exit__(self, *_: object) -> None:
        self.works.close()
        if self.talker.cancel is not None:
            self.talker.cancel.close()

    def talk(self, name: str) -> str:
        """Talks have names of their own throughout a run."""
        return f"{self.name} {name}"


def work(shop: Project, place: Workplace, task: Assignment) -> Worked:
    """The roles of the tier at work, one after the other."""
    line_up = LINE_UPS[task.climb.tier.mode]
    role = line_up.works
    files = _pack(shop, place, task, line_up.ranks) if line_up.ranks is not None else ""
    text = brief(task.climb, task.objective, task.before, target=task.target, pack=files)
    talk = place.talk(role if line_up.reviews is None else f"{role} 1")
    said = place.talker.say(TurnInput(talk=talk, role=role, text=text)).text
    if line_up.reviews is None:
        told = team_report(said, place.record.data.reported)
        return Worked(said=told.text, left=told.left)
    for number in range(1, MOST_SENT_BACK + 1):
        problems = _problems(shop, place, task, line_up.reviews, number)
        if not problems:
            return Worked(said=said)
        place.talker.listen(Warned(f"the critic sends it back: {problems[0]}"))
        if number == MOST_SENT_BACK:
            return Worked(said=said, problems=problems)
        history = place.talker.history(talk)
        talk = place.talk(f"{role} {number + 1}")
        words = "\n".join(("The critic sends the work back:", *(f"- {one}" for one in problems), "Fix this."))
        said = place.talker.say(TurnInput(talk=talk, role=role, text=words, history=history)).text
    return Worked(said=said)


def _pack(shop: Project, place: Workplace, task: Assignment, role: RoleName) -> str:
    """The files that matter, named without a model, ranked by the role, as focused context."""
    record = place.record
    if record.data.pack is None:
        pack = _packed(place, shop, _ranked(place, task, role, _located(shop, task)))
        record.keep(replace(record.data, pack=pack))
    return record.data.pack or ""


def _located(shop: Project, task: Assignment) -> Sequence[Hit]:
    findings = task.findings
    target = (Suspicion(path=task.target),) if task.target else ()
    words = "\n".join((task.objective, failing_text(findings)))
    with open_librarian(shop) as librarian:
        librarian.refresh()
        return librarian.locate(Query(text=words, suspicions=(*suspicions(findings), *target)), MOST_HITS)


def _ranked(place: Workplace, task: Assignment, role: RoleName, hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits in the order of the role; as they were where its answer cannot be used, or it would search in vain."""
    if place.talker.asks_once(role):
        return hits
    named = "\n".join(f"- {hit.path}: {'; '.join(hit.reasons)}" for hit in hits) or "- none"
    text = "\n\n".join(
        (
            brief(task.climb, task.objective, task.before, target=task.target),
            f"Found without a model, the likeliest first:\n{named}",
        )
    )
    try:
        line = TurnInput(talk=place.talk(role), role=role, text=text, stage=Stage.STUDY)
        value: contract_models.FileRanking = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet:
        place.talker.listen(Warned(f"the {role}'s answer cannot be used; the files stay in the order of the search"))
        return hits
    by_path = {hit.path: hit for hit in hits}
    chosen = [by_path.get(one.path) or Hit(path=one.path, score=1.0, reasons=(one.why,)) for one in value.files]
    return chosen or hits


def _packed(place: Workplace, shop: Project, hits: Sequence[Hit]) -> str:
    desk = place.works.desk
    files = gathered(hits, desk.files, desk.outliner, shop.guardrails)
    return pack(PackRequest(budget=PACK_TOKENS, hits=tuple(hits), files=files)).text


def _problems(shop: Project, place: Workplace, task: Assignment, role: RoleName, number: int) -> tuple[str, ...]:
    """The problems that block the work; none where the role approves it or cannot be understood."""
    changes = place.works.now().changes
    if changes.digest == task.ground.digest:
        return ()
    text = "\n\n".join(
        (
            f"The request:\n{task.objective}",
            failing_text(task.findings),
            f"The change, which stands on the bench:\n{shown_diff(shop, changes)}",
        )
    )
    line = TurnInput(talk=place.talk(f"{role} {number}"), role=role, text=text, stage=Stage.STUDY)
    try:
        value: contract_models.CriticVerdict = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet as error:
        place.record.note("critic misunderstood", {"error": error.message})
        place.talker.listen(Warned(f"the {role}'s answer cannot be used; the change continues without it"))
        return ()
    if value.verdict == "approve":
        return ()
    blocking = [one for one in value.problems if one.severity == "blocking"]
    return tuple(
        f"{one.path}:{one.line} {one.problem}" + (f" ({one.suggestion})" if one.suggestion else "") for one in blocking
    )


MOST_PLACES = 3
TURNS = (0, 0, 0, 1, 2)
"""Which of the likeliest functions a sample is about: mostly the first."""
MOST_TEST_CHARACTERS = MOST_FILE_CHARACTERS = 3_000
DRAFT_FORMS = 2
"""With the old body in sight, and without."""
SHORTEST_CAP, LONGER = 600, 3
"""Tokens that any draft may have, and how many times the old text a longer one: a small model may never end."""
_SUSPECT = re.compile(r"(?<![\w./-])([\w./-]{1,400}\.\w{1,20}):(\d{1,9})")
_IMPORT = re.compile(r"(?:import|from|use|#include)\s|(?:const|let|var)\s.*\brequire\(")


def draft(place: Workplace, task: Assignment, sample: int) -> Worked | None:
    """Another text of one function, written to the bench; None where it cannot be told which function.

    Of several failing tests each has drafts of its own, by turns. Every other one is written without the old body in
    sight: a small model copies the mistake that it sees, and knows many a function by its description.
    """
    findings = task.findings
    turn, own = divmod(sample - 1, max(1, len(findings)))
    about = findings[own : own + 1]
    with Sources(place.works.desk.files) as sources:
        places = tuple(itertools.islice(_places(sources, task, about), MOST_PLACES))
        if not places:
            return None
        chosen = places[TURNS[turn % len(TURNS)] % len(places)]
        words = "\n\n".join(filter(None, _words(sources, task, about, chosen, anew=(turn + own) % DRAFT_FORMS == 1)))
        longest = max(SHORTEST_CAP, LONGER * len(text_of(chosen, sources.text(chosen.path))) // CHARACTERS_PER_TOKEN)
        line = TurnInput(
            talk=place.talk("draft"), role=RoleName.ARTISAN, text=words, stage=Stage.DRAFT, longest=longest
        )
        made = sources.rewritten(chosen, place.talker.say(line).text)
    if made is None:
        return Worked(said=f"{chosen.name}: the answer holds no such function")
    place.works.desk.files.write(chosen.path, made.encode())
    place.record.keep_work(WorkName.BENCH, place.works.standing())
    return Worked(said=f"{chosen.path}: {chosen.name} rewritten")


def _words(
    sources: Sources, task: Assignment, about: Sequence[Diagnostic], chosen: FunctionPlace, *, anew: bool
) -> Iterator[str]:
    """What all drafts have in common comes first, so that it is read once."""
    yield task.objective
    for path in dict.fromkeys(finding.path for finding in about if finding.path):
        if path != chosen.path:
            shown = bounded(sources.text(path).splitlines(), MOST_TEST_CHARACTERS)
            yield f"The tests, {path}:\n```{sources.language(path)}\n{shown}\n```"
    source = sources.text(chosen.path)
    function = head_of(chosen, source) if anew else text_of(chosen, source)
    text = with_function(chosen, source, function).rstrip()
    if len(text) > MOST_FILE_CHARACTERS:
        text = "\n".join((*(line for line in source.splitlines() if _IMPORT.match(line)), function))
    mistaken = "" if anew else f" ({chosen.name} has a mistake)"
    yield f"The file {chosen.path}{mistaken}:\n```{sources.language(chosen.path)}\n{text}\n```"
    yield "" if anew else failing_text(about)
    wish = "so that all the tests pass" if anew else "without the mistake"
    yield f"Write the whole function {chosen.name} {wish}."


def _places(sources: Sources, task: Assignment, about: Sequence[Diagnostic]) -> Iterator[FunctionPlace]:
    """The likeliest functions: what the search suspected, what the failing test ran last, what the user names."""
    seen: set[FunctionPlace] = set()
    for path, line in _lines(task, about):
        found = holding(sources.functions(path), line) if not is_test(path) else None
        if found is not None and found not in seen:
            seen.add(found)
            yield found
    if task.target:
        yield from (one for one in sources.functions(task.target) if one not in seen)


def _lines(task: Assignment, about: Sequence[Diagnostic]) -> Iterator[tuple[str, int]]:
    """Suspects of the search are about all failing tests: where there are several, the own way of one comes first."""
    ran = [(frame.path, frame.line) for finding in about for frame in reversed(finding.frames)]
    several = len(task.findings) > 1
    yield from ran if several else ()
    for attempt in task.climb.attempts:
        if attempt.mode is TierMode.REFLEX:
            yield from ((path, int(line)) for path, line in _SUSPECT.findall(attempt.said))
    yield from () if several else ran
