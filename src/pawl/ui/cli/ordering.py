"""A request of the command line: the session it runs in, a new run with its terms, or the one to go on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from pawl.agent.escalation import NO_ESCALATION, escalation
from pawl.agent.events import Event
from pawl.agent.session import Session
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.formats import read_json
from pawl.core.run import Approval, Mode, Report, RunRequest
from pawl.settings import files as bounded
from pawl.ui.cli.ask import piped_input, spending
from pawl.ui.cli.call import Call
from pawl.ui.cli.shapes import words_of
from pawl.workspace.project import Project


@contextmanager
def opened_session(shop: Project, call: Call, hear: Callable[[Event], object]) -> Iterator[Session]:
    """A session for one use of the command line: a signal stops its run, and its end calls the hooks for it."""
    with call.interruptions.stopping() as cancel:
        session = Session(shop, hear, cancel)
        try:
            yield session
        finally:
            session.end()


def start(session: Session, call: Call) -> Report:
    """A new run, or the one to go on with."""
    options = call.options
    if options.resume is not None:
        run = options.resume or session.interrupted()
        if not run:
            raise UsageError("there is no interrupted run to go on with", advice="start one: pawl do 'REQUEST'")
        return session.resume(run)
    order = order_of(call, _conversation(session, call))
    if options.template is not None:
        order = replace(order, text=session.request(options.template, order.text))
    if options.then and options.print:
        raise UsageError("--then has no place with -p, which gives one result", advice="call 'pawl -p -c' again")
    for text in options.then:
        session.queue(replace(order, text=text, conversation=""))
    return session.do(order)


def _conversation(session: Session, call: Call) -> str:
    options = call.options
    chosen = options.conversation or ""
    if options.go_on and not chosen:
        known = session.conversations(limit=1)
        if not known:
            raise UnknownEntry("there is no conversation to go on with", advice="start one without -c")
        chosen = known[0].id
    if options.fork_session and not chosen:
        raise UsageError("--fork-session copies a conversation", advice="name it with -c or --conversation ID")
    return session.fork(chosen) if options.fork_session else chosen


def order_of(call: Call, conversation: str = "") -> RunRequest:
    options = call.options
    words = " ".join(options.request).strip()
    piped = piped_input(call)
    if words and words != "-" and piped.strip():
        words = f"{words}\n\n<stdin>\n{piped}\n</stdin>"
    return RunRequest(
        text=piped if words in ("", "-") else words,
        mode=Mode(options.mode),
        approval=Approval(options.approve),
        model=options.model or "",
        test_command=words_of(options.test),
        reasoning=options.reasoning or "",
        budget=_limits(call),
        conversation=conversation,
        commit="on" if options.commit else "",
        record=options.record or "",
        schema=_schema(options.json_schema),
        loop={} if options.escalate is None else escalation() if options.escalate else dict(NO_ESCALATION),
    )


def _limits(call: Call) -> dict[str, object]:
    limits = spending(call)
    seconds = call.options.seconds
    if seconds is not None:
        if not 1 <= seconds <= 86_400:
            raise UsageError(f"--seconds {seconds:g} is not between 1 and 86400", advice="300 is the usual limit")
        limits["seconds"] = seconds
    return limits


def _schema(path: str | None) -> dict[str, object] | None:
    if path is None:
        return None
    try:
        schema = read_json(bounded.read_text(path))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--json-schema {path!r} cannot be read: {error}", advice="name a file that holds one"
        ) from error
    if not isinstance(schema, dict):
        raise UsageError(f"--json-schema {path!r} holds no schema", advice="a schema is a JSON object")
    return schema
