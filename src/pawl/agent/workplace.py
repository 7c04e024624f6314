"""Where one attempt is made, a bench, a conversation and a part of the record of its own, and who works there.

A tier differs from another by who takes part: one role works, another may name the files that matter before, a third
may send the work back before a test is run. A draft is another text of one function, asked of a model in one request
and put into the file in its place.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pawl.agent.briefing import bounded, brief, failing_text, findings_of, shown_diff
from pawl.agent.context import TurnInput
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.talker import Talker
from pawl.agent.works import BenchWorks
from pawl.checks.output import suspicions
from pawl.checks.verdict import Requirements
from pawl.code.bundle import pack
from pawl.code.code_model import Definition, DefinitionKind, Hit, PackRequest, Query, Suspicion
from pawl.code.languages import is_test, language_of
from pawl.code.librarian import gathered, open_librarian
from pawl.code.parsers import Parsers
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import CheckResult
from pawl.core.errors import PawlError, SchemaUnmet
from pawl.core.events import Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import EscalationState, TierMode
from pawl.core.typed import Unreadable, read_python
from pawl.workspace.bench_files import Files
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """The artisan's account; `problems` are the critic's reasons to send it back."""

    said: str
    problems: tuple[str, ...] = ()


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
        return Worked(said=said)
    for number in range(1, MOST_SENT_BACK + 1):
        problems = _problems(shop, place, task, line_up.reviews, number)
        if not problems:
            return Worked(said=said)
        place.talker.listen(Warned(f"the critic sends it back: {problems[0]}"))
        if number == MOST_SENT_BACK:
            return Worked(said=said, problems=problems)
        history = place.talker.history(talk)
        talk = place.talk(f"{role} {number + 1}")
        words = "\n".join(("The critic sends the work back:", *(f"- {one}" for one in problems), "Mend this."))
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
    findings = findings_of(task.before)
    target = (Suspicion(path=task.target),) if task.target else ()
    words = "\n".join((task.objective, failing_text(findings)))
    with open_librarian(shop) as librarian:
        librarian.refresh()
        return librarian.locate(Query(text=words, suspicions=(*suspicions(findings), *target)), MOST_HITS)


def _ranked(place: Workplace, task: Assignment, role: RoleName, hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits in the order of the role; as they were where its answer cannot be used."""
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
        return hits
    if value is None:
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
            failing_text(findings_of(task.before)),
            f"The change, which stands on the bench:\n{shown_diff(shop, changes)}",
        )
    )
    line = TurnInput(talk=place.talk(f"{role} {number}"), role=role, text=text, stage=Stage.STUDY)
    try:
        value: contract_models.CriticVerdict = place.talker.say(line).value  # type: ignore[assignment]
    except SchemaUnmet as error:
        place.record.note("critic misunderstood", {"error": error.message})
        place.talker.listen(Warned(f"the {role}'s answer cannot be used; the change goes on without it"))
        return ()
    if value is None or value.verdict == "approve":
        return ()
    blocking = [one for one in value.problems if one.severity == "blocking"]
    return tuple(
        f"{one.path}:{one.line} {one.problem}" + (f" ({one.suggestion})" if one.suggestion else "") for one in blocking
    )


MOST_PLACES = 3
TURNS = (0, 0, 0, 1, 2)
"""Which of the likeliest functions a sample is about: mostly the first."""
MOST_TEST_CHARACTERS = 3_000
_SUSPECT = re.compile(r"([\w./-]+\.\w+):(\d+)")
_IMPORT = re.compile(r"(?:import|from|use|#include)\s|(?:const|let|var)\s.*\brequire\(")
_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
_NEEDED = frozenset({DefinitionKind.FUNCTION, DefinitionKind.VARIABLE, DefinitionKind.CLASS})
_EXPORTED = re.compile(r"export\s+(?:default\s+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlace:
    """A function of a file, by its lines, from 1; the last is part of it."""

    path: str
    name: str
    first: int
    last: int
    indent: int


def holding(places: Sequence[FunctionPlace], line: int) -> FunctionPlace | None:
    """The one that holds the line."""
    return next((place for place in places if place.first <= line <= place.last), None)


def text_of(place: FunctionPlace, source: str) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[place.first - 1 : place.last]))


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

    def language(self, path: str) -> str:
        found = language_of(path)
        return found.name if found is not None else ""

    def functions(self, path: str) -> tuple[FunctionPlace, ...]:
        """The outermost functions and methods that have their lines for themselves."""
        source = self.text(path)
        lines = source.splitlines()
        found: list[FunctionPlace] = []
        for one in self._definitions(path, source):
            if one.kind not in _FUNCTIONS or (found and one.start <= found[-1].last):
                continue
            text = lines[one.line - 1]
            if text.strip().startswith(one.signature.split(maxsplit=1)[0]):
                indent = len(text) - len(text.lstrip())
                found.append(FunctionPlace(path=path, name=one.name, first=one.start, last=one.end, indent=indent))
        return tuple(found)

    def rewritten(self, place: FunctionPlace, answer: str) -> str | None:
        """The file with the answer's function in the place of its own; None where the answer has no such function.

        What the function needs beside itself and the file does not have yet comes with it: helpers of the answer, and
        in Python its imports.
        """
        source = self.text(place.path)
        # An answer may also be nothing but code.
        for code in (*_BLOCK.findall(answer), answer):
            text = textwrap.dedent(code).strip("\n")
            try:
                imports = _python_imports(text) if place.path.endswith(".py") else []
            except Unreadable:
                continue
            every = self._definitions(place.path, text)
            found = next((one for one in every if one.kind in _FUNCTIONS and one.name == place.name), None)
            if found is not None:
                body = self._body(place, source, text, found, every)
                return _with_imports(_replaced(place, source, body), imports)
        return None

    def _body(
        self, place: FunctionPlace, source: str, text: str, found: Definition, every: Sequence[Definition]
    ) -> str:
        body = _lines_of(found, text)
        if not place.path.endswith(".py"):
            body = _like(source.splitlines()[place.first - 1 : place.last], body)
        if place.indent:
            return body
        known = {one.name for one in self._definitions(place.path, source)}
        helpers = [
            _lines_of(one, text)
            for one in every
            if one.depth == 0 and one.kind in _NEEDED and one.name not in known and _names(body, one.name)
        ]
        gap = "\n\n\n" if place.path.endswith(".py") else "\n\n"
        return gap.join((*helpers, body))

    def _definitions(self, path: str, text: str) -> Sequence[Definition]:
        language = language_of(path)
        return () if language is None else self._parsers.parse(text.encode(), language).definitions


def _replaced(place: FunctionPlace, source: str, body: str) -> str:
    lines = source.splitlines()
    made = [*lines[: place.first - 1], *textwrap.indent(body, " " * place.indent).splitlines(), *lines[place.last :]]
    return "\n".join(made) + ("\n" if source.endswith("\n") else "")


def _like(old: Sequence[str], body: str) -> str:
    """The text exported and ended as that in whose place it comes."""
    exported = _EXPORTED.match(old[0].strip())
    if exported and not _EXPORTED.match(body):
        body = exported.group() + body
    return f"{body}," if old[-1].rstrip().endswith(",") and not body.endswith(",") else body


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def _lines_of(one: Definition, text: str) -> str:
    return textwrap.dedent("\n".join(text.splitlines()[one.start - 1 : one.end]))


def _python_imports(text: str) -> list[str]:
    return [ast.unparse(node) for node in read_python(text).body if isinstance(node, ast.Import | ast.ImportFrom)]


def _with_imports(source: str, imports: Sequence[str]) -> str:
    """The Python file with those of the imports that it lacks, after its docstring and what must stand first."""
    lines = source.split("\n")
    missing = [line for line in imports if line not in (one.strip() for one in lines)]
    if not missing:
        return source
    at = 0
    for node in read_python(source).body:
        words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if not words and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return "\n".join((*lines[:at], *missing, *lines[at:]))


def draft(place: Workplace, task: Assignment, sample: int) -> Worked | None:
    """Another text of one function, written to the bench; None where it cannot be told which function."""
    with Sources(place.works.desk.files) as sources:
        places = tuple(itertools.islice(_places(sources, task), MOST_PLACES))
        if not places:
            return None
        chosen = places[TURNS[(sample - 1) % len(TURNS)] % len(places)]
        words = "\n\n".join(part for part in _words(sources, task, chosen) if part)
        line = TurnInput(talk=place.talk("draft"), role=RoleName.ARTISAN, text=words, stage=Stage.DRAFT)
        made = sources.rewritten(chosen, place.talker.say(line).text)
    if made is None:
        return Worked(said=f"{chosen.name}: the answer holds no such function")
    place.works.desk.files.write(chosen.path, made.encode())
    place.record.keep_work(WorkName.BENCH, place.works.standing())
    return Worked(said=f"{chosen.path}: {chosen.name} written anew")


def _words(sources: Sources, task: Assignment, chosen: FunctionPlace) -> Iterator[str]:
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


def _places(sources: Sources, task: Assignment) -> Iterator[FunctionPlace]:
    """The likeliest functions: what the search suspected, what the failing tests ran last, what the user names."""
    seen: set[FunctionPlace] = set()
    for path, line in _lines(task):
        found = holding(sources.functions(path), line) if not is_test(path) else None
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
