"""The session behind the page: requests, answers and words of the user in, runs one after the other in a thread of
their own. Any tab may speak; the record of a run decides which answer was first."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.agent.session import Session
from pawl.agent.specification.spec_folder import found_spec
from pawl.agent.specification.spec_steps import close_questions, request_of, step_run, take_answers, told_answers
from pawl.code.librarian import prepare_index
from pawl.core.errors import PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import (
    Approval,
    ApprovalAnswer,
    ApprovalResponse,
    DeliveryState,
    Mode,
    Reasoning,
    Report,
    RunRequest,
    RunState,
)
from pawl.settings.config import Config
from pawl.ui.cli.encoder import Json
from pawl.ui.cli.main import run_words
from pawl.ui.screen.approval import always_kinds
from pawl.ui.screen.renderer import Meter
from pawl.ui.terminal.commands import SessionCommand
from pawl.ui.terminal.meanwhile import Meanwhile
from pawl.ui.terminal.status import SessionChoices
from pawl.ui.terminal.terminal_session import Shared
from pawl.ui.web.page_actions import PageActions, PageFace, Said, question_json
from pawl.ui.web.threads import ProjectThread
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.workspace.pull_request import HostedRepository

MODES = ("agent", "chat", "plan")
MOST_TOLD = 20
MOST_SAID = 1 << 18
"""Characters that are kept of what a command says."""
SHOWN_SECONDS = 0.3
"""At least between two times that the page is told of what a command says."""


@dataclass(slots=True)
class WebSession:
    """Its methods may be called from any thread."""

    config: Config
    workspace: Path
    changed: Callable[[], object]
    """Called when the state of the session is another one; from any thread."""
    wishes: SessionChoices = field(default_factory=SessionChoices)
    budget: dict[str, object] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)
    """With the model that the next request would ask."""
    ordering: Callable[[Project, RunRequest], RunRequest] = lambda shop, order: order
    """The fate of a request before it is carried out."""
    trouble: Json | None = None
    """Why the latest request could not begin."""
    asked: Json | None = None
    """What a command asks the user."""
    told: deque[Json] = field(default_factory=lambda: deque(maxlen=MOST_TOLD))
    """What the latest commands have said; the last one may still be at work."""
    said: int = 0
    """Counts what they say."""
    meter: Meter = field(default_factory=Meter)
    meanwhile: Meanwhile = field(default_factory=Meanwhile)
    promoted: list[int] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    base: HostedRepository | None = None
    _thread: ProjectThread | None = None
    _session: Session | None = None
    _working: int = 0
    _handing_over: threading.Lock = field(default_factory=threading.Lock)
    _listening: int = 0
    """How many of the jobs under way are runs, which hear what the user says."""
    _left: bool = False
    _word: threading.Event = field(default_factory=threading.Event)
    _answer: str | None = None
    _asks: int = 0
    """Counts the questions."""
    _shown: float = 0.0
    """When the page was told of what a command says."""
    _actions: PageActions | None = None
    _face: PageFace = field(default_factory=lambda: PageFace(Said()))

    def start(self) -> None:
        self._thread = ProjectThread(self.config, self.workspace, "runs")
        self._thread.submit(self._begin).result()

    def close(self) -> None:
        """Stop what works; the run can be resumed."""
        self._left = True
        self.stop()
        if self._thread is not None:
            self._thread.close()

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def is_working(self) -> bool:
        return self._working > 0

    def request(self, text: str, *, queue: bool) -> str:
        """A request, or words for the run that works: how they were taken."""
        if not text.strip():
            raise UsageError("there is no request", advice="say what is to be done")
        with self._handing_over:
            hears, works = self._listening > 0, self.is_working
            if hears and not queue:
                self.session.steer(text)
                return "steered"
        if hears:
            self.session.queue(self.order(text))
            self.changed()
        else:
            self._job(lambda shop: self._requested(text, None))
        return "queued" if works else "begun"

    def take(self, text: str) -> None:
        self.request(text, queue=False)

    def follow(self, text: str) -> None:
        self.request(text, queue=True)

    def act(self, text: str, name: str, words: str) -> str:
        """Carry out a command of the session, after what works now; how it was taken."""
        works = self.is_working
        self._job(lambda shop: self._acted(text, lambda actions: actions.carry_out(name, words)), listens=False)
        return "waits" if works else "doing"

    def carry_out(self, command: SessionCommand, words: str) -> None:
        """A command of the user's own, or a skill, as a request."""
        if self.is_working:
            raise UsageError(f"/{command.name} has to wait for the current run to end", advice="send it then")
        self._job(lambda shop: self._requested(words, command))

    def answer(self, shop: Project, run: str, given: ApprovalResponse, *, always: bool) -> None:
        """Take the answer if it is the first; the run goes on in its own thread. `shop` is that of the caller."""
        if self.is_working:
            raise UsageError("a run is already in progress here", advice="answer when it waits")
        session = Session(shop)
        question = session.report(run).question
        if question is None or given.digest != question.digest:
            raise UsageError(f"the run {run} does not wait for this answer", advice="look at what it waits for now")
        if always and given.answer is ApprovalAnswer.APPROVE:
            self.session.agreed.update(list(always_kinds(question, run).values())[:1])
        session.accept(run, given)
        self.meanwhile.answered(question, given, session.hunks(run))
        self._job(lambda _: self._carried(lambda: self.session.resume(run)))

    def say(self, number: int, text: str) -> bool:
        """The user's answer to what a command asks; whether it was asked, and not answered before."""
        with self._handing_over:
            if self.asked is None or self.asked["id"] != number:
                return False
            self._answer, self.asked = text, None
        self._word.set()
        self.changed()
        return True

    def clarify(self, shop: Project, name: str, answers: Sequence[str]) -> None:
        """Ask what a specification leaves open, or work the answers to all of it in; `shop` is that of the caller."""
        if self.is_working:
            raise UsageError("a run is already in progress here", advice="send it when it has ended")
        spec = found_spec(shop, name)
        if left := take_answers(spec, answers):
            raise UsageError(f"{len(left)} still open: {left[0].text}", advice="answer each of them")
        told = told_answers(spec)
        step = "answers" if told else "clarify"
        text, choices = request_of(spec, step, told), self.wishes
        order = RunRequest(
            text=text, model=choices.model, reasoning=choices.reasoning, budget=self.budget, attended=True
        )

        def begin() -> Report:
            own = found_spec(self.session.shop, spec.name)
            report = step_run(self.session, own, step, order)
            if told and report.delivery is DeliveryState.DONE:
                close_questions(own)
            return report

        self._job(lambda _: self._carried(begin))

    def resume(self, shop: Project, run: str) -> None:
        """Go on with a run that was stopped or left; `shop` is that of the caller."""
        if self.is_working:
            raise UsageError("a run is already in progress here", advice="stop it first, or wait for its end")
        if shop.is_carried(run):
            raise UsageError(f"the run {run} is at work in another process", advice="stop it there, or wait")
        if (state := Session(shop).report(run).state) is not RunState.WORKING:
            raise UsageError(f"the run {run} cannot be resumed: it is {state}", advice="send a request of its own")
        self._job(lambda _: self._carried(lambda: self.session.resume(run)))

    def stop(self) -> bool:
        if not self.is_working or self._session is None:
            return False
        self._session.interrupt()
        self._word.set()
        return True

    def unqueue(self) -> None:
        self.session.unqueue()
        self.changed()

    def choose(self, given: Mapping[str, object]) -> None:
        """Change what the next request is done with; a run that works keeps what it began with."""
        for name, value in given.items():
            if name == "budget":
                self.budget = _budget(value)
            elif name in ("mode", "approval", "model", "reasoning"):
                self._choose(name, str(value))
            else:
                raise UsageError(f"there is no choice {name!r}", advice="mode, approval, model, reasoning or budget")
        self.changed()

    def _choose(self, name: str, value: str) -> None:
        allowed = {"mode": MODES, "approval": tuple(Approval), "reasoning": ("", *Reasoning)}.get(name)
        if allowed is not None and value not in allowed:
            raise UsageError(f"there is no {name} {value!r}", advice=f"it is one of {', '.join(filter(None, allowed))}")
        match name:
            case "mode":
                self.wishes.planning = value == "plan"
                self.wishes.mode = Mode.CHAT if value == "chat" else Mode.AGENT
            case "approval":
                self.wishes.approval = Approval(value)
            case "reasoning":
                self.wishes.reasoning = value
            case _:
                assert self._thread is not None
                found = self._thread.submit(lambda _: self.session.offered(value)[0]).result() if value else ""
                if value and not found:
                    raise UsageError(f"there is no model {value!r}", advice="'pawl models' lists what is configured")
                self.wishes.model = value
                self.shared.model = found or self._thread.submit(lambda _: self.session.offered("")[0]).result()

    # In the thread of the runs.

    def _begin(self, shop: Project) -> None:
        assert self._thread is not None
        self._thread.hold(prepare_index(shop).close)
        session = self._session = Session(shop, self.meter.hear)
        self._actions = PageActions(self)
        self._thread.hold(lambda: session.end("prompt_input_exit"))
        self.shared.model = session.offered(self.wishes.model)[0]

    @property
    def face(self) -> PageFace:
        """Of the command that is carried out now."""
        return self._face

    def order(self, text: str, command: SessionCommand | None = None) -> RunRequest:
        order = self.wishes.order(text, command=command)
        return self.ordering(self.session.shop, replace(order, budget=self.budget))

    def _requested(self, text: str, command: SessionCommand | None) -> None:
        told = self._told()
        if command is not None and command.is_served:
            from pawl.agent.tools.served_tools import prompt_request

            text, command = prompt_request(self.session.shop, command.name, text), None
        order = self.order(text, command)
        if command is not None:
            order = self.session.command_request(command.prompt, text, order, self._may_run)
        self._carried(lambda: self.session.do(replace(order, context=(*told, *order.context))))

    def _told(self, text: str = "") -> tuple[str, ...]:
        """The user's own actions since the last request, for the next one."""
        return self.meanwhile.told(self.session.shop, self.wishes.conversation)

    def ask(self, question: str, draft: str | None, *, shown: str = "", why: str = "") -> str | None:
        """Wait for the user's word in the page; None where they stop it."""
        self._word.clear()
        with self._handing_over:
            if self._left:
                return None
            self._asks, self._answer = self._asks + 1, None
            self.asked = {"id": self._asks, **question_json(question), "draft": draft, "shown": shown, "why": why}
        self.changed()
        self._word.wait()
        with self._handing_over:
            self.asked = None
            return None if self._left else self._answer

    def _may_run(self, line: str, why: str) -> bool:
        return self.ask("run it? [y yes, n no]", None, shown=line, why=why) == "y"

    def _acted(self, text: str, work: Callable[[PageActions], None]) -> None:
        """Carry out a command whose words and questions the page shows."""
        assert self._actions is not None
        self.said += 1
        one: Json = {"id": self.said, "line": text, "text": "", "failed": False, "open": True}
        one["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.told.append(one)
        waiting = self.session.runs(state=RunState.WAITING, limit=1)
        self.shared.waits = waiting[0].id if waiting else ""
        self._face = PageFace(Said(lambda said: self._heard(one, said)), self.ask)
        try:
            work(self._actions)
        except PawlError as error:
            one["failed"] = True
            self._heard(one, f"{error.message}\n{error.advice}\n")
        finally:
            one["open"] = False
            self.said += 1
            self.changed()

    def _heard(self, one: Json, text: str) -> None:
        one["text"] = (str(one["text"]) + text)[-MOST_SAID:]
        self.said += 1
        if time.monotonic() - self._shown > SHOWN_SECONDS:
            self._shown = time.monotonic()
            self.changed()

    def run_line(self, *words: str) -> None:
        with self.session.stoppable() as cancel:
            run_words(self.session.shop, words, self.face.out, cancel=cancel)

    def finish(self) -> None:
        """The page shows what a model says by itself."""

    def tell(self, report: Report) -> None:
        """The page shows reports by itself."""

    def carry(self, begin: Callable[[], Report | None]) -> Report | None:
        with self._handing_over:
            self._listening += 1
        try:
            return self._carried(begin)
        finally:
            with self._handing_over:
                self._listening -= 1

    def _carried(self, begin: Callable[[], Report | None]) -> Report | None:
        """Carry a run and what is queued behind it, as far as it goes without an answer; the report of the last."""
        report, last = begin(), None
        while report is not None:
            report = last = self._agreed(report)
            if report.entry is not None:
                self.promoted.append(report.entry)
            if any(one.id == report.conversation for one in self.session.conversations()):
                self.wishes.conversation = report.conversation
            self.changed()
            if self._left:
                break
            report = self.session.go_on(self._told)
        return last

    def _agreed(self, report: Report) -> Report:
        """Answer what the user has agreed to for this run."""
        while report.state is RunState.WAITING and report.question is not None and not self._left:
            if self.session.agreed.isdisjoint(always_kinds(report.question, report.run).values()):
                break
            yes = ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=report.question.digest)
            report = self.session.answer(report.run, yes)
        return report

    def _job(self, work: Callable[[Project], object], *, listens: bool = True) -> None:
        """Work for the thread of the runs; `listens` where it is a run, which takes what is said meanwhile."""
        assert self._thread is not None
        with self._handing_over:
            self._working += 1
            self._listening += listens
        self.trouble = None
        self.changed()
        self._thread.submit(lambda shop: self._done(shop, work, listens=listens))

    def _done(self, shop: Project, work: Callable[[Project], object], *, listens: bool) -> None:
        try:
            work(shop)
        except PawlError as error:
            self.trouble = error_json(error)
        except BaseException as error:
            self.trouble = error_json(PawlError(f"a defect of Pawl: {error!r}", advice="please report it"))
            raise
        finally:
            with self._handing_over:
                self._working -= 1
                self._listening -= listens
                spoken = not self._left and self.session.is_spoken_to
            self.changed()
            if spoken:
                self._job(lambda _: self._carried(lambda: self.session.go_on(self._told)))


def error_json(error: PawlError) -> Json:
    return {"error": error.code, "message": error.message, "advice": error.advice}


def _budget(given: object) -> dict[str, object]:
    if not isinstance(given, Mapping):
        raise UsageError("a budget has money and seconds", advice='such as {"money": "0.50"}')
    budget: dict[str, object] = {}
    for name in ("money", "seconds"):
        value = given.get(name)
        if value in (None, ""):
            continue
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            amount = Decimal(0)
        if not amount.is_finite() or amount <= 0:
            raise UsageError(f"{value!r} is not a limit", advice="give a number above 0, or leave it empty")
        budget[name] = str(amount) if name == "money" else float(amount)
    return budget
