"""One session in a terminal: lines in, runs carried out one after the other in a thread of their own.

The thread of the input only reads and draws; whatever touches the workspace or its state happens in the other one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pawl.core.errors import PawlError, StoreError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, Mode, Report, RunRequest, RunState
from pawl.settings.config import load
from pawl.settings.session_settings import session_settings
from pawl.ui.cli.call import Call
from pawl.ui.cli.main import run_words
from pawl.ui.screen.renderer import EventRenderer, Meter
from pawl.ui.screen.screen import Face, agreed, brief, brief_count, money, one_line
from pawl.ui.terminal.commands import (
    IDLE,
    MODEL,
    OWN,
    Commands,
    SessionCommand,
    is_note,
    is_shell,
    split,
    spoken_here,
    words_of,
)
from pawl.ui.terminal.meanwhile import Meanwhile
from pawl.ui.terminal.status import CARRY_OUT, SessionChoices, status_line

if TYPE_CHECKING:
    from pawl.agent.session import Session
    from pawl.settings.config import Config
    from pawl.workspace.pull_request import HostedRepository


OPENING_SECONDS = 60.0
LEAVING_SECONDS = 20.0
"""How long a run that was stopped may take to put its things away."""
NO_MODEL = "no model is configured"
NO_MODEL_ADVICE = (
    "/setup finds one; without one these work: run the tests, lint, undo, fix them, !COMMAND, and / commands"
)
MOST_ECHOED = 12
Job = Callable[[], None]


@dataclass(slots=True)
class Shared:
    """State that both threads read; each field is replaced as a whole."""

    model: str | None = None
    """The model that the next request would ask; empty without one, None until that is known."""
    paths: tuple[str, ...] = ()
    """The files that can be named."""
    commands: Commands = field(default_factory=Commands)
    waits: str = ""
    """The run that waits for an answer."""
    stopped: str = ""
    """The latest run, where it was stopped and the session went on."""
    trust: str = ""
    """How the folder stands, where that matters."""


class SessionFace(Face, Protocol):
    """The face of a session. Its methods may be called from any thread, and from the one of the runs above all."""

    def clear(self) -> None:
        """Empties the screen where that can be done."""
        return

    def leave(self) -> None:
        """Ends the session."""

    def attention(self, text: str) -> None:
        """Calls the user, who may be looking elsewhere."""
        return


class TerminalSession:
    """The session itself, whatever face it has."""

    def __init__(self, config: Config, workspace: Path, call: Call, begin: Callable[[TerminalSession], None]) -> None:
        self.config = config
        self.workspace = workspace
        self.call = call
        options = call.options
        self.wishes = SessionChoices(
            model=options.model or "", mode=Mode(options.mode), approval=Approval(options.approve)
        )
        self.settings = session_settings(config)
        self._settings_time = config.file.stat().st_mtime_ns if config.file.exists() else 0
        self._begin = begin
        self.meter = Meter()
        self.meanwhile = Meanwhile()
        self.shared = Shared()
        self.act: Callable[[str, str], None] = lambda name, words: None
        """Carries out a command that is no command of the command line."""
        self.look_again: Callable[[TerminalSession], None] = lambda sitting: None
        self.left = threading.Event()
        self._before: tuple[int, Decimal | None] = (0, Decimal(0))
        """Tokens and cost of the session when the present run began."""
        self._began = time.monotonic()
        """When the present run began, or went on after a question."""
        self.promoted: list[int] = []
        """The entries of this session."""
        self.committed: set[int] = set()
        """Of these, the entries that /commit has committed."""
        self.base: HostedRepository | None = None
        """The repository before the first of these commits, where it has a host."""
        self.not_begun: tuple[str, ...] = ()
        """The requests that were queued when it ended."""
        self._jobs: queue.SimpleQueue[tuple[Job, bool] | None] = queue.SimpleQueue()
        self._working = 0
        self._listening = 0
        """How many of the jobs under way are runs, which hear what the user says."""
        self._handing_over = threading.Lock()
        """So that words are either heard by the run that works, or known to be left when it ends."""
        self._thread = threading.Thread(target=self._serve, name="pawl-runs", daemon=True)
        self._failed: BaseException | None = None
        self._opened = threading.Event()
        self._session: Session | None = None
        self.face: SessionFace
        self.renderer: EventRenderer

    # The thread of the input.

    def start(self, face: SessionFace) -> None:
        self.face = face
        self._thread.start()

    @property
    def session(self) -> Session:
        """It is opened by the other thread, at once."""
        self._opened.wait(OPENING_SECONDS)
        if self._session is None:
            raise StoreError("the workspace cannot be opened", advice="see what is said above")
        return self._session

    def leave(self) -> None:
        """Stops what works and waits until it has put its things away."""
        self.left.set()
        self.stop()
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(LEAVING_SECONDS)
        if self._failed is not None:
            raise self._failed

    @property
    def spending(self) -> str:
        """The tokens and the cost of the present run so far."""
        tokens, cost = self.meter.tokens - self._before[0], self.meter.cost
        if tokens <= 0 or not self._listening:
            return ""
        spent = "" if cost is None or self._before[1] is None else f" · {money(cost - self._before[1])}"
        return f" · {brief_count(tokens)} tokens{spent}"

    @property
    def is_working(self) -> bool:
        return self._working > 0

    @property
    def _hears(self) -> bool:
        """Whether a model works, which can be told something; the reflex and the tests cannot."""
        return self._listening > 0 and self.shared.model != ""

    def status(self, width: int, *, asked: bool) -> str:
        doing = "asked" if asked else "working" if self._hears else "running" if self.is_working else "idle"
        parts = self.settings.status_line
        return status_line(self.wishes, self.meter, model=self.shared.model, doing=doing, width=width, parts=parts)

    def entered(self, text: str, *, echo: bool = True) -> None:
        """A request or a command."""
        self._typed(text, self.take, echo=echo)

    def queued(self, text: str) -> None:
        """A request for afterwards, or a command."""
        self._typed(text, self.follow)

    def _typed(self, text: str, take: Callable[[str], None], *, echo: bool = True) -> None:
        if echo:
            self.face.out.lines(_echo(text))
        named = split(text)
        if named is not None:
            self._command(*named)
        elif is_shell(text):
            self._later(lambda: self.act("shell", text[1:].strip()))
        elif is_note(text):
            self._later(lambda: self.run_line("memory", "add", text[1:].strip()))
        else:
            take(text)

    def _later(self, work: Job, *, listens: bool = False) -> None:
        """After the present run or command, if one works."""
        if self.is_working:
            self.face.out.hint("  waits for the current run" if self._listening else "  waits for the current command")
        self.job(work, listens=listens)

    def take(self, text: str) -> None:
        """A request, or words for the run that works."""
        # Loaded with the first request: the start of a session needs none of it.
        from pawl.ui.screen.approval import ANSWERS

        with self._handing_over:
            early = self._listening > 0 and text.strip().lower() in ANSWERS
            steers = self._hears and not early
            if steers:
                self.session.steer(text)
        if early:
            self.face.out.hint("  no question is open yet; answer when one comes")
        elif steers:
            self.face.out.hint("  the model gets this at its next step")
        else:
            self.follow(text)

    def follow(self, text: str) -> None:
        """A request for afterwards; at once when nothing works."""
        if not self._listening:
            self._later(lambda: self.request(text), listens=True)
            return
        self.session.queue(self.wishes.order(text))
        self.face.out.hint(f"  queued; {len(self.session.queued)} to follow")

    def stop(self) -> bool:
        """Stops what works; False when there is nothing to stop."""
        if not self.is_working or self._session is None:
            return False
        self._session.interrupt()
        self.face.activity("stopping")
        return True

    def job(self, work: Job, *, listens: bool = False) -> None:
        """Work for the other thread; `listens` where it is a run, which takes what is said meanwhile."""
        with self._handing_over:
            self._working += 1
            self._listening += listens
        self._jobs.put((work, listens))

    def _command(self, name: str, words: str) -> None:
        try:
            found = self.shared.commands.find(name)
            if MODEL in found.needs and self.shared.model == "":
                self.tell_no_model()
            elif found.group != OWN and IDLE not in found.needs and not found.line:
                self.act(found.name, words)
            else:
                self._later(lambda: self._carry_out(found, words))
        except PawlError as error:
            self.tell_error(error)

    # The thread of the runs.

    @contextmanager
    def _open(self) -> Iterator[None]:
        from pawl.agent.session import Session
        from pawl.code.librarian import prepare_index
        from pawl.workspace.project import Project

        self.renderer = EventRenderer(self.face, self.meter)
        self.face.out.reword = self.face.aside.reword = lambda text: spoken_here(text, ends=self.left.is_set())
        with Project.open(self.config, self.workspace) as shop, prepare_index(shop):
            self._session = Session(shop, self.renderer.hear)
            self._opened.set()
            self._begin(self)
            yield
            self.not_begun = tuple(one.text for one in self._session.queued)
            self.promoted = [number for number in self.promoted if shop.entry(number).active]

    @contextmanager
    def here(self, face: SessionFace) -> Iterator[None]:
        """For a face with one thread: the session is open in it, and `work` does what there is to do."""
        self.face = face
        with self._open():
            self.work()
            yield

    def work(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                self._do(job)

    def _do(self, job: tuple[Job, bool]) -> None:
        work, listens = job
        try:
            work()
            if self.meanwhile.quick and not self.left.is_set():
                self.look_again(self)
        except PawlError as error:
            self.tell_error(error)
        finally:
            with self._handing_over:
                self._working -= 1
                self._listening -= listens
                is_left = not self.left.is_set() and self.session.is_spoken_to
            self.face.activity("")
            if is_left:
                self.job(self._go_on, listens=True)

    def _go_on(self) -> None:
        self.carry(lambda: self.session.go_on(self._echoed))

    def _serve(self) -> None:
        try:
            with self._open():
                while (job := self._jobs.get()) is not None:
                    self._do(job)
        except BaseException as error:
            # The thread of the input raises it when everything is put away.
            self._failed = error
            self._opened.set()
            self.left.set()
            self.face.leave()
            raise SystemExit from error

    def request(self, text: str, command: SessionCommand | None = None) -> None:
        """Carries a request out, with all that follows from it; with a command its text is, and these are its words."""
        self.see_settings()
        order = self.wishes.order(text, context=self._done_meanwhile(), command=command)
        if command is not None:
            order = self.session.command_request(command.prompt, text, order, self._may_run)
        self._before, self._began = (self.meter.tokens, self.meter.cost), time.monotonic()
        planned = self.wishes.planning
        report = self.carry(lambda: self.session.do(order))
        if planned and report is not None and report.answer.strip() and not report.exit_code and self.face.live:
            self._hand_over(order.text, report.answer)

    def _hand_over(self, request: str, plan: str) -> None:
        """The plan is carried out if the user says so, as it is or as they edit it."""
        said = (self.face.line("carry out this plan? [y yes, e edit it first, n no] ") or "").strip().lower()
        if said not in ("y", "yes", "e", "edit"):
            self.face.out.hint("  still planning; /plan off ends it")
            return
        edited = self.face.edited(plan, ".md") if said in ("e", "edit") else plan
        self.wishes.planning, self.wishes.mode = False, Mode.AGENT
        text = f"{CARRY_OUT}{request}" if edited == plan else f"Carry out this plan:\n\n{edited}"
        self.face.out.lines(_echo(text))
        self.request(text)

    def carry(self, begin: Callable[[], Report | None]) -> Report | None:
        """Carries a run and what is queued behind it; the report of the last."""
        with self._heard():
            report, last = begin(), None
            while report is not None:
                report = last = self.settled(report)
                self.tell(report)
                if self.left.is_set():
                    break
                report = self.session.go_on(self._echoed)
            return last

    def _echoed(self, text: str) -> tuple[str, ...]:
        self.face.out.lines(_echo(text))
        return self._done_meanwhile()

    def _done_meanwhile(self) -> tuple[str, ...]:
        """The user's own actions since the last request, for the next one."""
        return self.meanwhile.told(self.session.shop, self.wishes.conversation)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """While a run works that hears what the user says, also one that a command began."""
        with self._handing_over:
            self._listening += 1
        try:
            yield
        finally:
            with self._handing_over:
                self._listening -= 1

    def settled(self, report: Report) -> Report:
        """Asks the user as long as the run waits and there is an answer."""
        from pawl.ui.screen.approval import ask_approval, is_answered

        while report.state is RunState.WAITING and not self.left.is_set():
            self.renderer.finish()
            self.face.activity("")
            self._call_user("waits for your answer")
            given = ask_approval(self.session, report, self.face)
            self._began = time.monotonic()
            if is_answered(self.session, report):
                self.face.out.hint("  answered in another window, which continues the run")
                self.face.activity("another process continues the run")
                report = self.session.followed(report.run)
                continue
            if given is None:
                break
            try:
                every, asked = self.session.hunks(report.run), report.question
                assert asked is not None
                report = self.session.answer(report.run, given)
                self.meanwhile.answered(asked, given, every)
            except PawlError as error:
                self.tell_error(error)
        self.shared.waits = report.run if report.state is RunState.WAITING else ""
        return report

    def tell(self, report: Report) -> None:
        from pawl.ui.screen.run_report import changes_of, tell

        self.renderer.finish()
        shop = self.session.shop
        if any(one.id == report.conversation for one in self.session.conversations()):
            self.wishes.conversation = report.conversation
        tell(shop, report, self.face, changes_of(shop, report))
        if report.entry is not None:
            self.promoted.append(report.entry)
        queued, leaves = self.session.queued, self.left.is_set()
        self.shared.stopped = report.run if report.state is RunState.WORKING and not leaves else ""
        if report.state is not RunState.ENDED and queued and not leaves:
            self.face.out.hint(f"queued, to follow this run: {_listed(one.text for one in queued)}")
        if report.state is RunState.WORKING and (unread := self.session.unread):
            self.face.out.hint(f"not read by the model yet, sent along with what you say next: {_listed(unread)}")
        self.face.out.say()
        self._call_user("has ended")

    def _call_user(self, what: str) -> None:
        if time.monotonic() - self._began >= self.settings.notify_seconds:
            self.face.attention(f"pawl {what} in {self.workspace.name}")

    def farewell(self) -> list[str]:
        """How things stand when the session ends, and how to go on."""
        lines = []
        if self.promoted:
            entries = ", ".join(map(str, self.promoted))
            lines.append(f"promoted in this session: entry {entries}; undo the last with: pawl undo")
        if self.shared.waits:
            lines.append(f"run {self.shared.waits} waits for your answer: pawl approve {self.shared.waits}")
        if self.shared.stopped:
            lines.append(f"run {self.shared.stopped} was stopped; resume it with: pawl -r {self.shared.stopped}")
        if self.not_begun:
            lines.append(f"queued, to follow that run: {_listed(self.not_begun)}")
        if self.wishes.conversation and not self.shared.stopped:
            lines.append("continue this conversation with: pawl -c")
        return lines

    def tell_error(self, error: PawlError) -> None:
        self.face.out.say(f"! {error.message}", "bold red")
        if error.advice:
            self.face.out.hint(f"  {error.advice}")

    def tell_no_model(self) -> None:
        self.face.out.say(f"! {NO_MODEL}", "bold yellow")
        self.face.out.hint(f"  {NO_MODEL_ADVICE}")

    def see_settings(self) -> None:
        """Reads the settings again if their file has changed; what is wrong in it is told, and the old ones stand."""
        try:
            changed = self.config.file.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed != self._settings_time:
            self._settings_time = changed
            try:
                config = load(self.config.environment)
                self.settings = session_settings(config)
            except PawlError as error:
                self.tell_error(error)
                self.face.out.hint("  the settings from before are still used")
                return
            self.config = self.session.shop.config = config
            self.look_around()

    def look_around(self) -> None:
        """Finds out what the thread of the input needs to know."""
        self.shared.model = self.session.offered(self.wishes.model)[0]

    def order(self, text: str) -> RunRequest:
        return self.wishes.order(text)

    def finish(self) -> None:
        self.renderer.finish()

    def run_line(self, *words: str) -> None:
        """Runs a command of the command line."""
        with self.session.stoppable() as cancel:
            run_words(self.session.shop, words, self.face.out, cancel=cancel)

    def _carry_out(self, command: SessionCommand, words: str) -> None:
        if command.is_served:
            from pawl.agent.tools.served_tools import prompt_request

            self.request(prompt_request(self.session.shop, command.name, words))
        elif command.prompt:
            self.request(words, command)
        elif command.line:
            self.run_line(*command.line, *words_of(words))
        else:
            self.act(command.name, words)

    def _may_run(self, line: str, why: str) -> bool:
        """A command line in the text of a command, on a bench."""
        self.face.out.lines(f"it wants to run on a bench: {line}\n  {why}")
        return agreed(self.face, "run it?")


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(brief(text, 60) for text in texts)


def _echo(text: str) -> str:
    first, *more = text.split("\n")
    if len(more) > MOST_ECHOED:
        more = [*more[: MOST_ECHOED - 1], f"… {len(more) - MOST_ECHOED + 1} more lines"]
    return "\n".join([f"› {one_line(first)}", *(f"  {one_line(line)}" for line in more)])
