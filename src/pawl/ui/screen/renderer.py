"""Shows a person what happens in a run: the model's words as they come, one line for everything else."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field
from decimal import Decimal

from pawl.agent.inbox import Event
from pawl.core.diagnostic import CheckBegun, CheckResult, Status
from pawl.core.dialogue import FellBack, Retrying, TextDelta, ThoughtDelta, ToolCall
from pawl.core.display import SafeWords, as_said
from pawl.core.events import (
    AttemptEnded,
    ClimbBegun,
    ClimbEvent,
    CommandPrinted,
    Corrected,
    EscalationWarned,
    HookSaid,
    IterationBegun,
    Metered,
    NodeEntered,
    RequestAnswered,
    RequestSent,
    RunBegun,
    RunEnded,
    Shortened,
    Steered,
    TasksPlanned,
    TierBegun,
    TierLeft,
    ToolEnded,
    ToolStarted,
    Warned,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Report, RoleName, RunState, Stage
from pawl.core.tiers import Attempt, AttemptEnd, TierMode
from pawl.repair.model import BaselineTaken, ClockStarted, LinesSuspected, Mended, Progressed, StageBegun
from pawl.ui.screen.markdown import Blocks, drawn
from pawl.ui.screen.screen import Face, brief, cells, counted, cut, money, one_line

_WHAT = ("path", "query", "command", "what", "url")
"""Arguments that say best what a call is about."""
_UNSEEN = frozenset({Stage.INTENT, Stage.PLAN, Stage.DELIVERY, Stage.QA, Stage.EVALUATE, Stage.STUDY})
"""Stages whose answers are for Pawl: what comes of them is told in other words."""
_AT_WORK: Mapping[str, str] = {
    RoleName.LIBRARIAN: "the librarian chooses the files that matter",
    RoleName.CRITIC: "the critic reads the change",
    RoleName.CHAOS: "chaos looks for inputs that break it",
    RoleName.PLANNER: "the planner plans",
    RoleName.WORKER: "a worker works",
    RoleName.FIXER: "the fixer repairs it",
}
"""Roles of a ladder that answer by their contract, and what a person is told instead."""
_NODES = {
    "intent": "understanding",
    "read": "reading",
    "run": "running",
    "undo": "taking it back",
    "mend": "the reflex looks for a patch, with no model",
    "plan": "planning",
    "prove": "looking at what it needs",
    "act": "working",
    "verify": "verifying on a fresh bench",
    "apply": "promoting",
    "qa": "reviewing",
}
_TOLD_NODES = frozenset({"mend", "plan", "verify", "apply"})
"""Nodes that are worth a line of their own."""
_STAGES = {
    "install": "installing what the lock file says",
    "suite": "running the suite",
    "recover": "trying known recoveries",
    "baseline": "running the tests by themselves",
    "trace": "watching the failing tests",
    "largest group": "watching the failing tests",
    "search": "searching for a patch",
    "definitions": "searching outside of functions",
    "pairs": "searching for two edits",
    "compare": "comparing patches by behaviour",
    "verify": "verifying",
}
"""Steps of the reflex."""
_MILESTONES = ("install", "suite", "recover", "search", "verify")
"""The steps that are told where nothing can be drawn in place."""
MARKS = {Status.PASS: "✓", Status.FAIL: "✗", Status.SKIPPED: "–"}
AS_BEFORE = "="
"""The mark of a check that finds what it found before, and nothing new."""
TOLD, NOT_COUNTED = "!", "shown, not counted"
"""Of findings by a checker that the project does not configure: they refuse nothing that a test proves."""
_STYLES = {"✓": "green", "✗": "red", "!": "yellow"}
_ATTEMPT_MARKS = {AttemptEnd.VERIFIED: "✓", AttemptEnd.REFUSED: "✗", AttemptEnd.SENT_BACK: "↩"}
_CODE = re.compile(r"\A[a-z_]+: ")
_SAID_BEFORE = "It said:\n"
"""The words before the failure of a call that is not carried out again."""
_LONGEST = 110
_MOST_PRINTED = 20
"""Lines of a command's output that are shown while it runs, where nothing can be drawn in place."""
_OUTCOME = 40
"""Characters of a call's outcome."""
_STREAMED, _TAIL = 4, 3
"""Lines of its output: the latest, while it runs; the last, when it failed."""
_EXIT = re.compile(r"\A\[(?:exit code (?P<code>\d+)|stopped: (?P<how>[^,]+)), [\d.]+ s\]\n?")
"""How the answer of a command begins."""
_FINDINGS = 3
"""Findings of a failed check that are shown."""
KEPT_CALLS = 20


@dataclass(slots=True)
class ModelSpending:
    """The requests, tokens and cost of one model."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: Decimal | None = Decimal(0)

    def add(self, answered: RequestAnswered) -> None:
        self.requests += 1
        self.input += answered.usage.input
        self.output += answered.usage.output
        self.cached += answered.usage.cached
        self.cost = None if self.cost is None or answered.cost is None else self.cost + answered.cost


@dataclass(slots=True)
class Meter:
    """Spending by model, and how full the context was last."""

    by_model: dict[str, ModelSpending] = field(default_factory=dict)
    context_tokens: int = 0
    context_window: int = 0
    coming: int = 0
    """Characters of the answer that is under way."""

    def hear(self, event: object) -> None:
        if isinstance(event, TextDelta | ThoughtDelta):
            self.coming += len(event.text)
        elif isinstance(event, RequestAnswered):
            self.coming = 0
            self.by_model.setdefault(event.model, ModelSpending()).add(event)
        elif isinstance(event, Metered):
            self.context_tokens, self.context_window = event.context_tokens, event.context_window

    @property
    def tokens(self) -> int:
        """In and out; of the answer that is under way about as many as it has letters for."""
        return sum(one.input + one.output for one in self.by_model.values()) + self.coming // 4

    @property
    def cost(self) -> Decimal | None:
        every = [one.cost for one in self.by_model.values()]
        return None if None in every else sum((one for one in every if one is not None), Decimal(0))

    @property
    def fill(self) -> int | None:
        """Percent of the context; None before anything is known."""
        return round(100 * self.context_tokens / self.context_window) if self.context_window else None


class EventRenderer:
    """Hears the events of runs and shows them on a face. Nothing that a model says is obeyed by the terminal.

    A `raw` answer goes out as it comes, line by line, for whoever reads the pipe; otherwise its Markdown is drawn.
    With `milestones` the steps of the reflex have lines of their own.
    """

    def __init__(
        self, face: Face, meter: Meter, *, raw: bool = False, thoughts: bool = False, milestones: bool = False
    ) -> None:
        self._face = face
        self._meter = meter
        self._raw = raw
        self._show_thoughts = thoughts
        self._milestones = milestones
        self._milestone = ""
        self._safe = SafeWords()
        self._blocks = Blocks()
        self._doing = ""
        self._printed: int | None = None
        """How many lines of the output of the call under way were shown; None where none is."""
        self._under_way: ToolCall | None = None
        """The call that has begun and not ended."""
        self._stream: deque[str] = deque(maxlen=_STREAMED)
        """The latest lines of that output."""
        self.calls: deque[ToolEnded] = deque(maxlen=KEPT_CALLS)
        """The latest calls, for a person who wants to see one whole."""
        self._tasks: tuple[str, ...] = ()
        """The to-do list of the run."""
        self._checks: dict[str, tuple[str, ...]] = {}
        """How each check was told last, for the attempts after the first: what differs is told again."""
        self._unseen = False
        self._said = False
        """The last thing shown was a block of the answer."""
        self._line = ""
        """The line of a raw answer that has begun: secrets are known in whole lines only."""
        self._thought = ""
        """The line of the reasoning that has begun."""

    def hear(self, event: Event) -> None:
        self._meter.hear(event)
        if isinstance(event, RequestSent | ToolStarted | RunEnded):
            self.finish()
        if isinstance(event, RequestSent):
            self._unseen = is_for_pawl(event)
        elif isinstance(event, RunBegun):
            self._tasks = ()
            self._checks.clear()
        if isinstance(event, ThoughtDelta):
            self._think(event.text)
        else:
            self._end_thought()
            if isinstance(event, TextDelta) and not self._unseen:
                self._answer(event.text)
            for line in self._lines(event):
                self.note(line)
        if (doing := self._activity(event)) not in (None, self._doing):
            self._doing = doing or ""
            self._face.activity(self._doing)
        self._face.preview(self._blocks.rest or "\n".join(self._stream))

    def finish(self) -> None:
        """Shows the rest of the answer and ends its last line."""
        self._end_thought()
        if not self._raw:
            for block in (*self._blocks.feed(self._safe.close()), *self._blocks.close()):
                self._print(block)
        elif line := self._line + self._safe.close():
            self._line = ""
            self._face.out.put(f"{as_said(line)}\n")
        self._face.make_room()

    def note(self, text: str) -> None:
        """A line beside the answer."""
        self.finish()
        aside = self._face.aside
        if self._said:
            aside.say()
        self._said = False
        line = one_line(text)
        if text.startswith("!"):
            aside.paragraph(line, "yellow")
        else:
            aside.say(cut(line, aside.width - 1) if aside.is_terminal else line, _STYLES.get(text.lstrip()[:1], "dim"))

    def _think(self, text: str) -> None:
        """Shows whole lines: reasoning comes in pieces of a word."""
        if self._show_thoughts:
            *lines, rest = f"{self._thought}{text}".split("\n")
            for self._thought in lines:
                self._end_thought()
            self._thought = rest

    def _end_thought(self) -> None:
        line, self._thought = self._thought, ""
        if line.strip():
            self.note(f"… {line}")

    def _answer(self, text: str) -> None:
        if not self._raw:
            for block in self._blocks.feed(self._safe.feed(text)):
                self._print(block)
            return
        whole, found, self._line = (self._line + self._safe.feed(text)).rpartition("\n")
        self._face.out.put(as_said(whole) + found)

    def _print(self, block: str) -> None:
        self._face.make_room()
        out = self._face.out
        gap = "\n" if self._said else ""
        out.draw(f"{gap}{as_said(drawn(block, out.width - 1, color=out.color))}\n")
        self._said = True

    def _activity(self, event: Event) -> str | None:
        """The activity from now on; None where the event does not change it."""
        match event:
            case TextDelta():
                return None if self._unseen else "answering"
            case ThoughtDelta():
                return "thinking"
            case RequestSent(model=model):
                return f"waiting for an answer from {model.rpartition('/')[2]}"
            case ToolStarted(call=call):
                return call_title(call)
            case NodeEntered(place=place):
                return _node(place.at, place.attempt)
            case CheckBegun(step=step):
                return f"{_NODES['verify']}: {step}"
            case RunEnded():
                return ""
        return _step(event)

    def _lines(self, event: Event) -> tuple[str, ...]:
        """The lines that the event is worth."""
        match event:
            case RequestSent():
                return _at_work(event)
            case ToolStarted() | ToolEnded() | CommandPrinted() | RunEnded():
                return self._call(event)
            case TasksPlanned() | NodeEntered():
                return self._progress(event)
            case CheckResult():
                lines = tuple(check_lines(event))
                known, self._checks[event.step] = self._checks.get(event.step), lines
                return () if known == lines else lines
            case Retrying(why=why, wait_seconds=seconds, begun=begun):
                lost = "; the answer so far is discarded" if begun else ""
                when = f"; trying again in {seconds:.1f} s{lost}"
                return (f"! {brief(why, 100)}{when}",)
            case FellBack(model=model, to=other, why=why):
                return (f"! {model} failed ({brief(why, 80)}); {other} takes over, as you configured",)
            case Shortened(before_tokens=before, after_tokens=after):
                return (f"! the dialogue was too long: its older part was shortened, {before:,} → {after:,} tokens",)
            case StageBegun() | ClockStarted() | Mended() if self._milestones:
                return self._told(event)
            case ClimbBegun() | TierBegun() | IterationBegun() | AttemptEnded() | TierLeft() | EscalationWarned():
                return climb_lines(event)
        return said_lines(event)

    def _progress(self, event: TasksPlanned | NodeEntered) -> tuple[str, ...]:
        """The to-do list, each task as it begins, and the nodes that are worth a line."""
        if isinstance(event, TasksPlanned):
            self._tasks = event.tasks
            return ("to do", *(f"  {number}. {brief(task, 100)}" for number, task in enumerate(self._tasks, start=1)))
        place = event.place
        if place.at == "verify" and place.attempt == 1:
            self._checks.clear()
        if place.at == "act" and place.attempt == 1 and place.task <= len(self._tasks):
            return (f"· task {place.task} of {len(self._tasks)}: {brief(self._tasks[place.task - 1], 100)}",)
        return (f"· {_node(place.at, place.attempt)}",) if place.at in _TOLD_NODES else ()

    def _told(self, event: StageBegun | ClockStarted | Mended) -> tuple[str, ...]:
        """Tell repairs; where no live line shows them, milestones too, each once in a row."""
        if isinstance(event, Mended):
            left = f"{event.failing} still fail" if event.failing else "nothing fails any more"
            return (f"fixed {event.repair.path}:{event.repair.line}  {in_words(event.repair.what)}  ({left})",)
        if isinstance(event, ClockStarted):
            told = f"{event.failing} failing" if event.failing else ""
        else:
            told = _STAGES[event.name] if event.name in _MILESTONES else ""
        if not told or self._face.live or told == self._milestone:
            return ()
        self._milestone = told
        return (told,)

    def _printed_line(self, line: str) -> tuple[str, ...]:
        """The first lines of a call's output, as they come; where a live line shows the latest, that will do.

        What the user runs himself is the answer, and is not told twice.
        """
        if self._face.live or self._printed is None or self._printed > _MOST_PRINTED:
            return ()
        self._printed += 1
        return (f"  | {line}" if self._printed <= _MOST_PRINTED else "  | …",)

    def _call(self, event: ToolStarted | ToolEnded | CommandPrinted | RunEnded) -> tuple[str, ...]:
        """Told with its outcome where a live line shows the call; elsewhere when it starts, and again if it fails."""
        if isinstance(event, CommandPrinted):
            self._stream.append(cut(f"  {one_line(event.line)}", max(10, self._face.aside.width - 1)))
            return self._printed_line(event.line)
        if isinstance(event, RunEnded):
            return self._cut_short(event.report)
        self._stream.clear()
        self._under_way = event.call if isinstance(event, ToolStarted) else None
        self._printed = 0 if isinstance(event, ToolStarted) else None
        if isinstance(event, ToolStarted):
            return () if self._face.live else (f"· {call_title(event.call)}",)
        self.calls.append(event)
        outcome, tail = _outcome(event)
        if not self._face.live:
            return (f"  ✗ {outcome}", *tail) if _failed(event) else ()
        width = self._face.aside.width - 1 if self._face.aside.is_terminal else _LONGEST
        return (*_fitted(event, outcome, width), *tail)

    def _cut_short(self, report: Report) -> tuple[str, ...]:
        """The call that was under way when the run was stopped, and what it had printed last."""
        call, lines = self._under_way, tuple(f"  | {line.strip()}" for line in self._stream)
        self._under_way = None
        self._stream.clear()
        if call is None or report.state is not RunState.WORKING or not self._face.live:
            return ()
        said = " → stopped"
        return (cut(f"✗ {call_title(call)}", self._face.aside.width - 1 - len(said)) + said, *lines)


def _failed(event: ToolEnded) -> bool:
    """Whether the call failed, or the command that it ran."""
    found = _EXIT.match(event.answer.text)
    return event.answer.failed or (found is not None and found["code"] != "0")


def _outcome(event: ToolEnded) -> tuple[str, list[str]]:
    """The outcome of a call in a few words, and the last lines of a command that failed."""
    text = event.answer.text.strip()
    if event.answer.failed:
        return brief(_reason(text), 200), []
    found = _EXIT.match(text)
    lines = [line for line in text[found.end() if found else 0 :].split("\n") if line.strip() and line != "[stderr]"]
    if _failed(event) and found is not None:
        left = len(lines) - _TAIL
        more = [f"  | … {counted(left, 'more line')}"] if left > 0 else []
        how = f"exit {found['code']}" if found["code"] else f"stopped: {found['how']}"
        return f"{how}{_took(event)}", [*more, *(f"  | {line}" for line in lines[-_TAIL:])]
    came = f"{len(lines)} lines" if len(lines) > 1 else "".join(lines)
    # The call before it names the path already.
    came = brief(came.replace(f" {(event.call.arguments or {}).get('path')}:", ":"), _OUTCOME)
    return f"{came or ('ok' if found else '')}{_took(event)}".removeprefix(", "), []


def _took(event: ToolEnded) -> str:
    return f", {event.seconds:.1f} s" if event.seconds >= 0.1 else ""


def _fitted(event: ToolEnded, outcome: str, width: int) -> tuple[str, ...]:
    """The call and its outcome in the width: the call is shortened, the outcome is not."""
    mark, joint = ("✗", ": " if event.answer.failed else " → ") if _failed(event) else ("·", " → " if outcome else "")
    call = f"{mark} {call_title(event.call)}"
    least = min(cells(call), len(event.call.name) + 14)
    room = width - cells(joint) - cells(outcome)
    if room >= least:
        return (f"{cut(call, room)}{joint}{outcome}",)
    import textwrap

    return (cut(call, width), *(f"    {line}" for line in textwrap.wrap(one_line(outcome), max(10, width - 4))[:3]))


def check_lines(check: CheckResult) -> Iterator[str]:
    """A check with its reason, and the first things that it found where it failed."""
    mark = AS_BEFORE if check.old and check.standing is Status.PASS else MARKS[check.standing]
    mark = TOLD if check.standing is Status.FAIL and check.advisory else mark
    yield f"  {mark} {check.step}: {brief(check.reason, 100) or check.standing}"
    if check.standing is Status.FAIL:
        for one in check.findings[:_FINDINGS]:
            yield f"    {one.test or one.place or one.tool}: {brief(one.first_line, 100)}"
        if len(check.findings) > _FINDINGS:
            yield f"    … {len(check.findings) - _FINDINGS} more"


def shown_call(event: ToolEnded) -> Iterator[str]:
    """A call with all of its arguments and its answer, as lines."""
    yield f"{'✗' if _failed(event) else '·'} {event.call.name}{_took(event)}"
    for name, value in (event.call.arguments or {}).items():
        first, *more = str(value).split("\n")
        yield f"  {name}: {first}"
        yield from (f"    {line}" for line in more)
    yield from (f"  | {line}" for line in event.answer.text.rstrip("\n").split("\n"))


def _step(event: Event) -> str | None:
    """The step that the reflex is at; None for events of others."""
    match event:
        case StageBegun(name=name):
            return _STAGES.get(name, name)
        case BaselineTaken():
            return f"{len(event.failing)} failing, {event.passed} passing"
        case LinesSuspected(lines=(first, *_)):
            return f"suspect {first.path}:{first.line}"
        case Progressed():
            found = f", {event.plausible} pass" if event.plausible else ""
            return (
                f"{counted(event.tried, 'candidate')}, {event.rate:,.0f} per CPU second{found}, {event.left:.0f} s left"
            )
    return None


def in_words(what: str) -> str:
    """A template, or an entry of the recovery map without its language."""
    return what if " " in what else what.rpartition(".")[2].replace("-", " ")


def is_for_pawl(sent: RequestSent) -> bool:
    """Whether the answer is a value by a contract, which is not for a person's eyes."""
    return sent.stage in _UNSEEN or sent.role in _AT_WORK or sent.role not in set(RoleName)


def _at_work(sent: RequestSent) -> tuple[str, ...]:
    """Who begins to work on a ladder; nothing for whoever speaks for himself."""
    own = "" if sent.role in set(RoleName) else f"the sub-agent {sent.role} works"
    said = _AT_WORK.get(sent.role, own) if sent.number == 1 and sent.stage is not Stage.PLAN else ""
    return (*((f"· {said}",) if said else ()), *(f"· attached {name}" for name in sent.attached))


def _node(name: str, attempt: int) -> str:
    said = _NODES.get(name, "")
    differs = "; what differs" if name == "verify" else ""
    return f"{said} (attempt {attempt}{differs})" if said and attempt > 1 else said


def call_title(call: ToolCall) -> str:
    arguments = call.arguments or {}
    said = [str(arguments[name]) for name in _WHAT if arguments.get(name)]
    return f"{call.name} {brief(' '.join(said), 80)}".rstrip()


def _reason(text: str) -> str:
    """Why a call failed, without the words that are for the model: the code before it and the advice after it."""
    message = text.partition(_SAID_BEFORE)[2] or text
    return _CODE.sub("", message.partition("\nnext: ")[0], count=1)


def said_lines(event: Event) -> tuple[str, ...]:
    match event:
        case Corrected(name=name):
            from pawl.agent.corrections import corrections

            return (f"! sent back: {corrections()[name].told}",)
        case Warned(text=text):
            return (f"! {brief(text, 200)}",)
        case HookSaid(event=hook, text=text):
            return (f"! {hook} hook: {brief(text, 160)}",)
        case Steered():
            return ("· the model has your message",)
    return ()


def climb_lines(event: ClimbEvent) -> tuple[str, ...]:
    """A banner at the start, a header for each tier, a line for each attempt, by its number where there are several."""
    match event:
        case ClimbBegun():
            return tuple(_climb_begun(event))
        case TierBegun(tier=tier, number=number, of=of):
            models = ", ".join(f"{role} {model}" for role, model in tier.models)
            return (f"── tier {number} of {of}: {tier.name} ({tier.mode}{f'; {models}' if models else ''})",)
        case IterationBegun(tier=name, number=number, of=of, samples=samples) if of > 1:
            return (f"· {name} {number} of {of}" + (f", up to {samples} samples" if samples > 1 else ""),)
        case AttemptEnded(attempt=attempt, samples=samples):
            return (f"  {f'sample {attempt.sample}: ' if samples > 1 else ''}{_attempt(attempt)}",)
        case TierLeft(tier=name, reason=reason):
            return (f"  {name} ends: {brief(reason, 120)}",)
        case EscalationWarned(text=text):
            return (f"! {text}",)
    return ()


def _climb_begun(begun: ClimbBegun) -> Iterator[str]:
    ladder = begun.ladder
    names = " → ".join(
        tier.name if tier.mode is TierMode.REFLEX else f"{tier.name} {tier.iterations}" for tier in ladder.tiers
    )
    cost = "" if ladder.max_cost is None else f", at most {money(ladder.max_cost)}"
    time = "" if ladder.max_minutes is None else f" and {ladder.max_minutes:g} minutes"
    yield f"loop: {names or 'no tier applies'}{cost}{time}; {begun.failing} failing"
    if begun.done:
        yield f"  resumes after {counted(begun.done, 'attempt')}, {money(begun.spent)} spent"


def _attempt(attempt: Attempt) -> str:
    mark = _ATTEMPT_MARKS.get(attempt.end, "–")
    known = attempt.failing is not None and (attempt.failing or not attempt.refused)
    failing = f", {len(attempt.failing or ())} failing" if known else ""
    cost = "" if attempt.mode is TierMode.REFLEX else f", {money(attempt.cost)}"
    why = f": {brief(attempt.refused[0], 90)}" if attempt.refused and attempt.end is not AttemptEnd.VERIFIED else ""
    better = " (an improvement, kept)" if attempt.better else ""
    return f"{mark} {attempt.end}{better}{failing}{cost}, {attempt.seconds:.1f} s{why}"
