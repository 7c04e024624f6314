"""Attempts that ask a model: a workplace is opened, the tier's roles work there, and the checks judge what stands."""

from __future__ import annotations

import ast
import itertools
import re
import select
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pawl.agent.attempting import Assignment, Worked, full, simple, stands, team, what_failed
from pawl.agent.briefing import bounded, failing_text, findings_of
from pawl.agent.chaos import attacked
from pawl.agent.context import TurnInput, Unanswered
from pawl.agent.evidence import evidence_for
from pawl.agent.judging import ClimbRecord, Tried, changed_lines, judged_attempt
from pawl.agent.rules import model_of
from pawl.agent.talking import Talker, rules_of
from pawl.agent.test_generation import is_test
from pawl.agent.workplace import (
    AttemptRecord,
    TierTalker,
    Workplace,
    opened_workplace,
    spent_in,
    spent_on_tier,
)
from pawl.agent.works import BENCH, BenchWorks
from pawl.checks.verifier import Verifier
from pawl.code.languages import language_of
from pawl.code.parsers import Parsers
from pawl.core.code import Definition, DefinitionKind
from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BudgetExceeded,
    Cancelled,
    Conflicted,
    PawlError,
    PolicyViolation,
    RateLimited,
    RequestRejected,
    SchemaUnmet,
)
from pawl.core.events import ClimbEvent, EscalationWarned
from pawl.core.formats import Unreadable, read_python
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import Attempt, AttemptEnd, EscalationState, Iteration, TierMode
from pawl.models.ledger import Ledger
from pawl.models.providers import ModelName
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.settings.permissions import Permit, unasked
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


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


def functions_of(path: str, source: str) -> tuple[FunctionPlace, ...]:
    """The outermost functions and methods of a Python file; none where it cannot be read."""
    try:
        return tuple(_place(path, node) for node in _functions(read_python(source)))
    except (Unreadable, RecursionError):
        return ()


def text_of(place: FunctionPlace, source: str) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[place.first - 1 : place.last]))


def blocks_of(answer: str) -> tuple[str, ...]:
    """The code of an answer, block by block, and the whole for an answer that is nothing but code."""
    return (*_BLOCK.findall(answer), answer)


def rewritten(place: FunctionPlace, source: str, answer: str) -> str | None:
    """The file with the function of the answer in the place of its own; None where the answer has no such function."""
    for code in blocks_of(answer):
        text = textwrap.dedent(code).strip("\n")
        try:
            tree = read_python(text)
        except Unreadable:
            continue
        found = next((node for node in _functions(tree) if node.name == place.name), None)
        if found is not None:
            return _replaced(place, source, text, tree, found)
    return None


def _replaced(place: FunctionPlace, source: str, text: str, tree: ast.Module, found: _Function) -> str:
    written = text.splitlines()
    body = textwrap.dedent("\n".join(written[_first(found) - 1 : found.end_lineno]))
    # What the function needs beside itself and the file does not have yet: imports, and helpers of the answer.
    known = {node.name for node in ast.parse(source).body if isinstance(node, _Function | ast.ClassDef)}
    helpers = [
        "\n".join(written[_first(node) - 1 : node.end_lineno])
        for node in tree.body
        if isinstance(node, _Function) and node is not found and node.name not in known
    ]
    if place.indent == 0 and helpers:
        body = "\n\n\n".join((*helpers, body))
    lines = source.splitlines()
    made = [*lines[: place.first - 1], *textwrap.indent(body, " " * place.indent).splitlines(), *lines[place.last :]]
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    missing = [line for line in imports if line not in (one.strip() for one in lines)]
    at = _imports_at(source)
    made[at:at] = missing
    return "\n".join(made) + ("\n" if source.endswith("\n") or not source else "")


def _imports_at(source: str) -> int:
    """After the docstring and what must stand first."""
    at = 0
    for node in ast.parse(source).body:
        words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if not words and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return at


def _functions(tree: ast.Module) -> list[_Function]:
    """Of the module and of its classes."""
    found: list[_Function] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found += [inner for inner in node.body if isinstance(inner, _Function)]
        elif isinstance(node, _Function):
            found.append(node)
    return found


def _first(node: _Function) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _place(path: str, node: _Function) -> FunctionPlace:
    return FunctionPlace(
        path=path, name=node.name, first=_first(node), last=node.end_lineno or node.lineno, indent=node.col_offset
    )


Definitions = Callable[[str], Sequence[Definition]]
"""From a text to what it defines."""
_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
_NEEDED = frozenset({DefinitionKind.FUNCTION, DefinitionKind.VARIABLE, DefinitionKind.CLASS})
_EXPORTED = re.compile(r"export\s+(?:default\s+)?")


def places_of(path: str, source: str, definitions: Sequence[Definition]) -> tuple[FunctionPlace, ...]:
    """The outermost functions and methods that have their lines for themselves."""
    lines = source.splitlines()
    found: list[FunctionPlace] = []
    for one in definitions:
        if one.kind not in _FUNCTIONS or (found and one.start <= found[-1].last):
            continue
        text = lines[one.line - 1]
        if not text.strip().startswith(one.signature.split(maxsplit=1)[0]):
            continue
        indent = len(text) - len(text.lstrip())
        found.append(FunctionPlace(path=path, name=one.name, first=one.start, last=one.end, indent=indent))
    return tuple(found)


def replaced(place: FunctionPlace, source: str, answer: str, definitions: Definitions) -> str | None:
    """The file with the function of the answer in the place of its own; None where the answer has no such function."""
    for code in blocks_of(answer):
        text = textwrap.dedent(code).strip("\n")
        every = definitions(text)
        found = next((one for one in every if one.kind in _FUNCTIONS and one.name == place.name), None)
        if found is not None:
            return _file_with(place, source, text, found, every, {one.name for one in definitions(source)})
    return None


def _file_with(
    place: FunctionPlace, source: str, text: str, found: Definition, every: Sequence[Definition], known: set[str]
) -> str:
    lines = source.splitlines()
    body = _like(lines[place.first - 1 : place.last], _text_of(found, text))
    if place.indent == 0:
        helpers = [
            _text_of(one, text)
            for one in every
            if one.depth == 0 and one.kind in _NEEDED and one.name not in known and _names(body, one.name)
        ]
        body = "\n\n".join((*helpers, body))
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


def _text_of(one: Definition, text: str) -> str:
    return textwrap.dedent("\n".join(text.splitlines()[one.start - 1 : one.end]))


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

    def functions(self, path: str) -> tuple[FunctionPlace, ...]:
        source = self.text(path)
        if path.endswith(".py"):
            return functions_of(path, source)
        return places_of(path, source, self._definitions(path, source))

    def rewritten(self, place: FunctionPlace, answer: str) -> str | None:
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
        line = TurnInput(talk=place.talk("draft"), role=RoleName.ARTISAN, text=words, stage=Stage.DRAFT)
        made = sources.rewritten(chosen, place.talker.say(line).text)
    if made is None:
        return Worked(said=f"{chosen.name}: the answer holds no such function")
    place.works.desk.files.write(chosen.path, made.encode())
    place.record.keep_work(BENCH, place.works.standing())
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


LONGEST_WAIT = 900.0
"""Seconds that a rate limit is waited for; the run can be resumed after a longer one."""
LOCAL_SAMPLES = 5
WARMEST = 0.8
"""The temperature of samples after the first, so that they differ."""
_FAILS_ATTEMPT = (
    AnswerUnusable,
    AnswerInterrupted,
    RequestRejected,
    SchemaUnmet,
    PolicyViolation,
    Conflicted,
    Unanswered,
)
"""What ends an attempt and not the run: a fresh one may do better. Nobody is there to answer a question."""


@dataclass(slots=True, kw_only=True)
class ModelAttempts:
    shop: Project
    record: ClimbRecord
    talker: Talker
    """That of the run, whose models are shared by all attempts."""
    verifier: Verifier
    conversation: str
    listen: Callable[[ClimbEvent], object]
    cancel: CancelToken | None = None
    permit: Permit | None = None
    capped: bool = False
    """The account already has the limit of the iteration."""
    _judgements: dict[str, Attempt] = field(default_factory=dict)
    """What was refused, by the digest of its changes."""

    def tried(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        """One attempt. A rate limit is waited for, where that is not too long."""
        name = f"climb {at.tier}.{at.number}.{sample}"
        while True:
            try:
                with self._workplace(name, task, sample) as place:
                    begun = Attempt(
                        at=at,
                        sample=sample,
                        mode=task.climb.tier.mode,
                        model=place.talker.terms.model_for(RoleName.ARTISAN),
                        end=AttemptEnd.FAILED,
                    )
                    return self._worked(place, task, begun)
            except RateLimited as error:
                self._wait(error)

    def samples(self, climb: EscalationState) -> int:
        """Several where a model costs nothing but time, one where it costs money."""
        return climb.tier.samples or (LOCAL_SAMPLES if self._drafts(climb) else 1)

    def _drafts(self, climb: EscalationState) -> bool:
        if climb.tier.mode is not TierMode.SIMPLE:
            return False
        if climb.tier.draft is not None:
            return climb.tier.draft
        policy, config = self.talker.policy, self.talker.config
        model = climb.tier.model_for(RoleName.ARTISAN) or model_of(config, policy.role(RoleName.ARTISAN))
        return ModelName.parse(model, config.providers).is_local_file

    def _worked(self, place: Workplace, task: Assignment, begun: Attempt) -> Tried:
        """The work, then the checks. What stands on the bench is judged by them, however the talk ended."""
        worked, trouble, broke = Worked(said=""), "", False
        try:
            worked = self._work(place, task, begun.sample)
        except BudgetExceeded as error:
            trouble, broke = error.message, True
        except _FAILS_ATTEMPT as error:
            trouble = what_failed(error)
        tried = self._judged(place, task, replace(begun, said=worked.said), worked.problems)
        if task.climb.tier.chaos:
            tried = attacked(self.shop, self.verifier, place, tried)
        cost, tokens = spent_in(self.record.base, place.conversation)
        attempt = replace(tried.attempt, cost=cost, tokens=tokens)
        if trouble and attempt.end is not AttemptEnd.VERIFIED:
            end = AttemptEnd.OUT_OF_BUDGET if broke else AttemptEnd.FAILED
            attempt = replace(attempt, end=end, refused=(*attempt.refused, trouble))
        return replace(tried, attempt=attempt)

    def _work(self, place: Workplace, task: Assignment, sample: int) -> Worked:
        if self._drafts(task.climb) and (drafted := draft(place, task, sample)) is not None:
            return drafted
        match task.climb.tier.mode:
            case TierMode.FULL:
                return full(self.shop, place, task)
            case TierMode.TEAM:
                return team(place, task)
        return simple(place, task)

    def _judged(self, place: Workplace, task: Assignment, begun: Attempt, problems: tuple[str, ...]) -> Tried:
        try:
            changes, notes = stands(place)
        except Conflicted as error:
            return Tried(attempt=replace(begun, refused=(error.message,)))
        if changes.digest == task.ground.digest:
            unchanged = replace(begun, end=AttemptEnd.UNCHANGED, refused=("nothing was changed",))
            return Tried(attempt=unchanged, notes=notes)
        paths, diff = tuple(sorted(changes.paths)), changed_lines(self.shop, changes)
        begun = replace(begun, paths=paths, digest=changes.digest, diff=diff)
        known = self._judgements.get(changes.digest)
        if known is not None:
            # The same change has the same verdicts, and running the tests again would tell nothing.
            who = replace(known, at=begun.at, sample=begun.sample, mode=begun.mode, model=begun.model)
            same = replace(who, said=begun.said, better=False)
            return Tried(attempt=same, notes=notes)
        if problems:
            return Tried(attempt=replace(begun, end=AttemptEnd.SENT_BACK, refused=problems), notes=notes)
        checked = evidence_for(changes, self.verifier, task.before)
        attempt, judgement = judged_attempt(begun, checked, task.wanted, task.climb)
        if attempt.end is AttemptEnd.REFUSED:
            self._judgements[changes.digest] = attempt
        return Tried(attempt=attempt, changes=changes, checked=checked, notes=(*notes, *judgement.notes))

    def _workplace(self, name: str, task: Assignment, sample: int) -> Workplace:
        models, telemetry = self._opened(task.climb)
        tier = task.climb.tier

        def talker(record: AttemptRecord, works: BenchWorks) -> TierTalker:
            return TierTalker(
                shop=self.shop,
                record=record,
                works=works,
                conversation=f"{self.conversation}.{name.split()[-1]}",
                listen=self.talker.listen,
                inbox=self.talker.inbox,
                hooking=self.talker.hooking,
                cancel=self.cancel,
                permit=unasked(self.permit or rules_of(self.shop, record.order.mode)),
                tier=tier,
                opened=(models, telemetry),
                deadline=self.record.deadline(task.climb.ladder),
                warmth=self._warmth(task.climb, sample),
            )

        return opened_workplace(name, base=self.record.base, ground=task.ground, verifier=self.verifier, talker=talker)

    def _warmth(self, climb: EscalationState, sample: int) -> float | None:
        """The first sample is as the tier says, and of drafts the surest one; the others differ."""
        chosen = dict(climb.tier.temperatures).get(RoleName.ARTISAN)
        if sample == 1:
            return 0.0 if chosen is None and self._drafts(climb) else None
        return max(WARMEST, chosen or WARMEST)

    def _opened(self, climb: EscalationState) -> tuple[Models, Telemetry]:
        """The models, which may spend what the tier and the run leave."""
        models, telemetry = self.talker._opened()
        ledger = models.router.ledger
        if not self.capped:
            ledger.budget = replace(ledger.budget, money=self._most(climb, ledger.spent.money))
        return models, telemetry

    def _most(self, climb: EscalationState, spent: Decimal) -> Decimal | None:
        """What the account may come to: all that the run may spend, or less where the tier has a limit of its own.

        It is the account that counts, not the attempts: samples of one iteration, an attempt that goes on and the test
        that was made before the climb have one purse.
        """
        whole, own = self.talker.config.budget.money, climb.tier.max_cost
        if own is None:
            return whole
        of_tier = spent + own - spent_on_tier(self.record.base, f"{self.conversation}.{climb.at}.")
        return of_tier if whole is None else min(whole, of_tier)

    def ledger(self, climb: EscalationState) -> Ledger:
        """The one account, with the limit of the next iteration."""
        return self._opened(climb)[0].router.ledger

    def _wait(self, error: RateLimited) -> None:
        seconds = error.wait_seconds
        if seconds is None or seconds > LONGEST_WAIT:
            raise error
        self.listen(EscalationWarned(f"{error.message}; goes on in {seconds:.0f} s"))
        select.select([] if self.cancel is None else [self.cancel.fileno()], [], [], seconds)
        if self.cancel is not None and self.cancel.requested:
            raise Cancelled("stopped by the user")
