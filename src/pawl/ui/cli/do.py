"""`pawl do`: one request, from words to a promoted, reported change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pawl.agent.events import Event
from pawl.agent.session import Session
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.errors import UsageError
from pawl.core.events import ClimbEvent, HookSaid, NodeEntered, RunEvent
from pawl.core.run import ApprovalResponse, Report, RunState
from pawl.ui.cli.call import Call
from pawl.ui.cli.ordering import opened_session, start
from pawl.ui.cli.shapes import as_body, exit_code
from pawl.ui.screen.approving import ask_approval, edited
from pawl.ui.screen.report import changes_of, lines_of, show_waiting, tell
from pawl.ui.screen.screen import brief
from pawl.ui.screen.talk import EventRenderer
from pawl.workspace.project import Project

SAID = {
    "mend": "the reflex looks for a patch, with no model",
    "plan": "planning",
    "prove": "the tests as they stand",
    "verify": "verifying on a fresh bench",
    "apply": "promoting",
}


def do(shop: Project, call: Call) -> int:
    if call.options.print:
        from pawl.ui.cli.headless import headless

        return headless(shop, call)
    return carry(shop, call, lambda session: start(session, call), thoughts=call.options.thoughts)


def carry(
    shop: Project,
    call: Call,
    begin: Callable[[Session], Report],
    *,
    finish: Callable[[Project, Report, Call], int] | None = None,
    thoughts: bool = False,
) -> int:
    """Carries a run, and what is queued behind it, to its end or to where it waits.

    The one way of every command that works: events are shown, the user is asked, the session ends with its hooks.
    `finish` shows the report and gives the exit code.
    """
    finish = finish or _finish
    talk = EventRenderer(call.out, call.aside, quiet=call.options.json, show_thoughts=thoughts)
    with opened_session(shop, call, listener(call, talk)) as session:
        try:
            report = _asked(session, begin(session), call)
            while session.queued and report.state is RunState.ENDED:
                talk.close()
                finish(shop, report, call)
                following = session.go_on()
                assert following is not None
                report = _asked(session, following, call)
        finally:
            talk.close()
    code = finish(shop, report, call)
    if call.interruptions.heard is not None and report.state is RunState.WORKING:
        raise call.interruptions.heard
    return code


def _asked(session: Session, report: Report, call: Call) -> Report:
    """The report when the user has answered what the run asked, or will answer it later."""
    while report.state is RunState.WAITING and call.can_ask:
        given = ask_inline(session, report, call)
        if given is None:
            break
        try:
            report = session.answer(report.run, given)
        except UsageError as error:
            # A slip of the pen: the run still waits, and the user is there.
            call.aside.say(f"! {error.message}", "bold yellow")
            call.aside.hint(f"  {error.advice}")
    return report


def listener(call: Call, talk: EventRenderer) -> Callable[[Event], None]:
    """Shows what happens: the words of the model, the steps of the run, the checks."""

    def hear(event: Event) -> None:
        if call.options.json:
            return
        if isinstance(event, NodeEntered):
            if said := SAID.get(event.place.at):
                again = f" (attempt {event.place.attempt})" if event.place.attempt > 1 else ""
                talk.note(f"· {said}{again}")
        elif isinstance(event, ClimbEvent):
            for line in lines_of(event):
                talk.note(line)
        elif isinstance(event, HookSaid):
            talk.note(f"! {event.event} hook: {brief(event.text, 160)}")
        elif isinstance(event, CheckResult):
            mark = {Status.PASS: "✓", Status.FAIL: "✗"}.get(event.standing, "–")
            talk.note(f"  {mark} {event.step}: {brief(event.reason, 100) or event.standing}")
        elif isinstance(event, RunEvent):
            talk.take(event)

    return hear


def ask_inline(session: Session, report: Report, call: Call) -> ApprovalResponse | None:
    """The user's answer in the terminal; None to answer later."""
    return ask_approval(session, report, call, Typed(call, session.shop.config.environment))


@dataclass(frozen=True, slots=True)
class Typed:
    """Fits `approving.Asker`: lines from stdin."""

    call: Call
    environment: Mapping[str, str]

    def line(self, question: str) -> str | None:
        return self.call.aside.ask_line(question)

    def edited(self, text: str, suffix: str) -> str:
        return edited(text, suffix, self.environment)


def _finish(shop: Project, report: Report, call: Call) -> int:
    changes = changes_of(shop, report)
    if call.options.json:
        call.emit(as_body(shop, report, changes))
        return exit_code(report)
    if report.state is RunState.WAITING and not call.can_ask:
        show_waiting(shop, report, call, changes)
    tell(shop, report, call, changes)
    return exit_code(report)
