"""`pawl do`: one request, from words to a promoted, reported change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pawl.app.doing.events import Event
from pawl.app.doing.session import Session
from pawl.app.workshop import Workshop
from pawl.core.climb_event import ClimbEvent
from pawl.core.errors import UsageError
from pawl.core.finding import Standing, Verdict
from pawl.core.run_event import RunEvent
from pawl.core.runs import Approved, Report, RunState
from pawl.core.session_event import HookSaid, NodeEntered
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.ordering import start
from pawl.interfaces.cli.run_report import as_body, exit_code
from pawl.interfaces.screen.approving import ask_approval
from pawl.interfaces.screen.editing import edited
from pawl.interfaces.screen.ladder import lines_of
from pawl.interfaces.screen.report import changes_of, show_waiting, tell
from pawl.interfaces.screen.screen import brief
from pawl.interfaces.screen.talk import Talk

SAID = {
    "mend": "the reflex looks for a patch, with no model",
    "plan": "planning",
    "prove": "the tests as they stand",
    "verify": "verifying on a fresh bench",
    "apply": "promoting",
}


def do(shop: Workshop, call: Call) -> int:
    if call.options.print:
        from pawl.interfaces.cli.headless import headless

        return headless(shop, call)
    talk = Talk(call.out, call.aside, quiet=call.options.json, show_thoughts=call.options.thoughts)
    with call.interruptions.stopping() as cancel:
        session = Session(shop, listener(call, talk), cancel)
        try:
            report = _asked(session, start(session, call), call)
            while session.queued and report.state is RunState.ENDED:
                talk.close()
                _finish(shop, report, call)
                following = session.go_on()
                assert following is not None
                report = _asked(session, following, call)
        finally:
            talk.close()
            session.end()
    if call.interruptions.heard is not None and report.state is RunState.WORKING:
        _finish(shop, report, call)
        raise call.interruptions.heard
    return _finish(shop, report, call)


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


def listener(call: Call, talk: Talk) -> Callable[[Event], None]:
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
        elif isinstance(event, Verdict):
            mark = {Standing.PASS: "✓", Standing.FAIL: "✗"}.get(event.standing, "–")
            talk.note(f"  {mark} {event.step}: {brief(event.reason, 100) or event.standing}")
        elif isinstance(event, RunEvent):
            talk.take(event)

    return hear


def ask_inline(session: Session, report: Report, call: Call) -> Approved | None:
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


def _finish(shop: Workshop, report: Report, call: Call) -> int:
    changes = changes_of(shop, report)
    if call.options.json:
        call.emit(as_body(shop, report, changes))
        return exit_code(report)
    if report.state is RunState.WAITING and not call.can_ask:
        show_waiting(shop, report, call, changes)
    tell(shop, report, call, changes)
    return exit_code(report)
