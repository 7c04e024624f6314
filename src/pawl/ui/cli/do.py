"""`pawl do` carries out a request until its change is promoted and reported; `pawl approve` answers its question."""

from __future__ import annotations

import os
import stat
import sys
import time
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pawl.agent.inbox import Event
from pawl.core.diagnostic import CheckResult
from pawl.core.dialogue import Retrying, TextDelta
from pawl.core.display import as_said
from pawl.core.errors import PawlError, UnknownEntry, UsageError, why
from pawl.core.events import (
    CommandPrinted,
    HookSaid,
    NodeEntered,
    RequestAnswered,
    RequestSent,
    Steered,
    ToolEnded,
    ToolStarted,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.run import Approval, ApprovalAnswer, ApprovalResponse, Mode, Report, RunRequest, RunState
from pawl.core.typed import read_json
from pawl.settings import files as bounded
from pawl.settings.permission_rules import MCP
from pawl.ui.cli.call import Call, Interrupted, amount_of, check_range, given_bytes, refuse_unverified
from pawl.ui.cli.encoder import Json, as_json, exit_code, picked, report_json
from pawl.ui.cli.parser import (
    Command,
    accept_option,
    continue_option,
    install_option,
    mixed,
    mode_options,
    model_option,
    record_option,
    seconds_option,
    spending_options,
    test_option,
    thinking_options,
    verified_option,
)
from pawl.ui.screen.approval import MOST_BYTES, NOTHING, ask_approval, edited_patch
from pawl.ui.screen.renderer import EventRenderer, is_for_pawl
from pawl.ui.screen.run_report import changes_of, show_waiting, tell, verdict_lines, ways_to_answer

if TYPE_CHECKING:
    from pawl.agent.session import Session
    from pawl.workspace.project import Project

MOST_INPUT = 200_000
"""Bytes of stdin that are sent: as many from its start as from its end, where errors stand."""
LONGEST_INPUT = 64 << 20
"""Bytes of stdin that are read; what never ends is left there."""


def do_words(parser: ArgumentParser) -> None:
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="what to do; piped input is sent with it")
    mode_options(parser)
    parser.add_argument(
        "--escalate",
        action=BooleanOptionalAction,
        help="continue as pawl loop does while the checks refuse, or not (default: the setting escalate)",
    )
    accept_option(parser)
    test_option(parser)
    install_option(parser)
    model_option(parser)
    thinking_options(parser)
    spending_options(parser)
    continue_option(parser)
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    parser.add_argument("--fork-session", action="store_true", help="continue in a copy of it")
    parser.add_argument("--commit", action="store_true", help="commit what is promoted, without what you have staged")
    parser.add_argument("--template", metavar="NAME", help="put the request into a form, such as surgical_patch")
    parser.add_argument("--then", action="append", default=[], metavar="REQUEST", help="the next request; repeatable")
    parser.add_argument("-r", "--resume", nargs="?", const="", metavar="RUN", help="resume an interrupted run")
    record_option(parser)
    parser.add_argument("-p", "--print", action="store_true", help="for programs: no questions, one result at the end")
    parser.add_argument(
        "--output-format",
        choices=["text", "json", "stream-json"],
        default="text",
        help="with -p: the answer, one object, or every event as a line (default text)",
    )
    parser.add_argument("--json-schema", metavar="F", help="with -p: the result must fit this JSON schema")


def approve_words(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the run (default: the newest that waits)")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve all of it")
    answer.add_argument("--reject", metavar="REASON", help="reject it and say why")
    answer.add_argument("--hunks", metavar="N,…", help="approve only these hunks")
    answer.add_argument("--edit", action="store_true", help="edit the patch in $EDITOR and approve the result")
    answer.add_argument("--patch", metavar="FILE", help="approve the edited patch in this file; '-' for stdin")
    parser.add_argument("--full", action="store_true", help="show all of what waits, however long")
    parser.add_argument("--digest", metavar="SHA", help="refuse if what waits is not exactly this")
    verified_option(parser)
    seconds_option(parser)


DECLARED = {
    "do": Command(
        words=do_words,
        example="pawl do 'add a --verbose option'\n  pawl do --approve never 'make the tests pass'",
        read=mixed,
    ),
    "approve": Command(words=approve_words, example="pawl approve r4f1c09ab --yes"),
}


def do(shop: Project, call: Call) -> int:
    if call.options.print:
        return _headless(shop, call)
    return carry(shop, call, lambda session: start(session, call), thoughts=call.options.thoughts)


def carry(shop: Project, call: Call, begin: Callable[[Session], Report], *, thoughts: bool = False) -> int:
    """Carries a run, and what is queued behind it, to its end or to where it waits.

    The one way of every command that works: events are shown, the user is asked, the session ends with its hooks.
    """
    with shown_session(shop, call, thoughts=thoughts) as session:
        report, earlier = _asked(session, begin(session), call), 0
        while session.queued and report.state is RunState.ENDED:
            earlier = earlier or _finish(shop, report, call)
            following = session.go_on()
            assert following is not None
            report = _asked(session, following, call)
    code = _finish(shop, report, call)
    if call.interruptions.heard is not None and report.state is RunState.WORKING:
        raise call.interruptions.heard
    # All of it is done, or what was asked first tells why not.
    return earlier or code


@contextmanager
def shown_session(shop: Project, call: Call, *, thoughts: bool = False) -> Iterator[Session]:
    """A session whose events are shown to a person; to a program only the end counts."""
    renderer = EventRenderer(call, call.meter, raw=not call.out.is_terminal, thoughts=thoughts)

    def hear(event: Event) -> None:
        if not call.options.json:
            renderer.hear(event)

    with opened_session(shop, call, hear) as session:
        try:
            yield session
        finally:
            renderer.finish()


@contextmanager
def opened_session(shop: Project, call: Call, hear: Callable[[Event], object]) -> Iterator[Session]:
    """A session for one use of the command line: a signal stops its run, and its end calls the hooks for it."""
    from pawl.agent.session import Session

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
            raise UsageError("there is no interrupted run to resume", advice="start one: pawl do 'REQUEST'")
        return session.resume(run)
    order = _order(call, _conversation(session, call))
    if options.template is not None:
        order = replace(order, text=session.request(options.template, order.text))
    if options.then and options.print:
        raise UsageError("--then does not work with -p, which gives one result", advice="call 'pawl -p -c' again")
    for text in options.then:
        session.queue(replace(order, text=text, conversation=""))
    return session.do(order, since=call.started)


def chosen_conversation(session: Session, call: Call) -> str:
    """The one to go on with; empty for a new one."""
    options = call.options
    if options.conversation or not options.go_on:
        return options.conversation or ""
    known = session.conversations(limit=1)
    if not known:
        raise UnknownEntry("there is no conversation to continue", advice="start one without -c")
    return known[0].id


def _conversation(session: Session, call: Call) -> str:
    options = call.options
    chosen = chosen_conversation(session, call)
    if options.fork_session and not chosen:
        raise UsageError("--fork-session copies a conversation", advice="name it with -c or --conversation ID")
    return session.fork(chosen) if options.fork_session else chosen


def _order(call: Call, conversation: str) -> RunRequest:
    from pawl.agent.escalation import NO_ESCALATION, escalation

    options = call.options
    return RunRequest(
        text=piped_input(call, " ".join(options.request)),
        mode=Mode(options.mode),
        approval=Approval(options.approve),
        model=options.model or "",
        test_command=call.test_command,
        accept_unverified=options.accept_unverified,
        attended=call.can_ask or options.approve == Approval.EACH,
        install=options.install,
        reasoning=options.reasoning or "",
        budget=spending(call),
        conversation=conversation,
        commit="on" if options.commit else "",
        record=options.record or "",
        schema=_schema(options.json_schema),
        loop={} if options.escalate is None else escalation() if options.escalate else dict(NO_ESCALATION),
    )


def piped_input(call: Call, words: str) -> str:
    """The words with what comes through a pipe or from a file; alone or as `-` they stand for the input itself."""
    words = words.strip()
    piped = _stdin(call)
    if words in ("", "-"):
        return piped
    return f"{words}\n\n<stdin>\n{piped}\n</stdin>" if piped.strip() else words


def _stdin(call: Call) -> str:
    """Empty for a terminal or a device, which is not waited for."""
    if sys.stdin is None:
        return ""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    began = time.monotonic()
    data = sys.stdin.buffer.read(LONGEST_INPUT)
    # What writes into the pipe may take its own time.
    call.started += time.monotonic() - began
    left_out = len(data) - MOST_INPUT
    if left_out <= 0:
        return data.decode("utf-8", "replace")
    call.aside.say(f"! the input is long: {left_out:,} bytes in its middle are not sent", "bold yellow")
    start, end = data[: MOST_INPUT // 2], data[-MOST_INPUT // 2 :]
    return f"{start.decode('utf-8', 'replace')}\n[… {left_out:,} bytes left out …]\n{end.decode('utf-8', 'replace')}"


def spending(call: Call) -> dict[str, object]:
    """The limits that the options set."""
    options = call.options
    budget: dict[str, object] = {}
    if (amount := amount_of("--max-budget-usd", options.max_budget_usd)) is not None:
        budget["money"] = str(amount)
    for name, value in (("tokens", options.max_tokens), ("turns", options.max_turns)):
        if value is not None:
            if value < 1:
                raise UsageError(f"--max-{name} {value} is below 1", advice="give a whole number from 1 on")
            budget[name] = value
    if options.seconds is not None:
        check_range("--seconds", options.seconds, 1, 86_400, "300 is the usual limit")
        budget["seconds"] = options.seconds
    return budget


def _schema(path: str | None) -> dict[str, object] | None:
    if path is None:
        return None
    try:
        schema = read_json(bounded.read_text(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"--json-schema {path!r} cannot be read: {why(error)}", advice="name a JSON file") from error
    if not isinstance(schema, dict):
        raise UsageError(f"--json-schema {path!r} holds no schema", advice="a schema is a JSON object")
    return schema


def _asked(session: Session, report: Report, call: Call) -> Report:
    """The report when the user has answered what the run asked, or will answer it later."""
    while report.state is RunState.WAITING and call.can_ask:
        given = ask_approval(session, report, call)
        if given is None:
            break
        try:
            report = session.answer(report.run, given)
        except UsageError as error:
            # A slip of the pen: the run still waits, and the user is there.
            call.aside.say(f"! {error.message}", "bold yellow")
            call.aside.hint(f"  {error.advice}")
    return report


def _finish(shop: Project, report: Report, call: Call, *, whole: bool = False) -> int:
    """Shows the report and gives the exit code."""
    changes = changes_of(shop, report)
    if call.options.json:
        return call.emit(report_json(shop, report, changes), exit_code(report))
    if report.state is RunState.WAITING and (whole or not call.can_ask):
        show_waiting(shop, report, call, changes, whole=whole)
    tell(shop, report, call, changes)
    return exit_code(report)


def approve(shop: Project, call: Call) -> int:
    with shown_session(shop, call) as session:
        session.cancel = call.time_limit("300 is the usual limit", session.cancel)
        report = session.waiting(call.options.id)
        if report.state is not RunState.WAITING:
            raise UsageError(f"the run {report.run} does not wait for an answer", advice=f"it is {report.state}")
        if call.options.verified:
            refuse_unverified(report.verdict, (*report.refused, *report.unproved))
        given = _answer(session, report, call)
        if given is not None:
            report = session.answer(report.run, given)
    return _finish(shop, report, call, whole=call.options.full)


def _answer(session: Session, report: Report, call: Call) -> ApprovalResponse | None:
    """None only shows what is waited for."""
    options = call.options
    question = report.question
    assert question is not None
    yes = ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=options.digest or question.digest)
    if options.reject is not None:
        return replace(yes, answer=ApprovalAnswer.REJECT, reason=options.reject)
    if options.hunks is not None:
        return replace(yes, hunks=_numbers(options.hunks))
    if options.edit:
        return replace(yes, patch=edited_patch(session, report.run))
    if options.patch is not None:
        patch = given_bytes(options.patch, MOST_BYTES, "the patch").decode("utf-8", "surrogateescape")
        return replace(yes, patch=patch or NOTHING)
    if options.yes:
        return yes
    return ask_approval(session, report, call) if call.can_ask else None


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f"--hunks {text!r} names no hunks", advice="give their numbers, such as --hunks 1,3")
    return tuple(dict.fromkeys(int(part) for part in parts))


SUBTYPES = {
    "out_of_turns": "error_max_turns",
    "budget_exceeded": "error_max_budget_usd",
    "schema_unmet": "error_max_structured_output_retries",
}
OTHERWISE = "error_during_execution"


def _headless(shop: Project, call: Call) -> int:
    """Nobody is asked: what needs an answer stops the run, and the result says how to give it."""
    lines = HeadlessWriter(shop, call)
    with opened_session(shop, call, lines.hear) as session:
        try:
            lines.begin(session)
            report = start(session, call)
        except PawlError as error:
            lines.failed(error.code, error.message, error.advice, error.exit_code)
            return error.exit_code
        except Interrupted as stopped:
            lines.failed(stopped.word, stopped.word, "", stopped.exit_code)
            raise
    heard = call.interruptions.heard
    code = heard.exit_code if heard is not None and report.state is RunState.WORKING else exit_code(report)
    lines.ended(report, code)
    return code


@dataclass(slots=True)
class HeadlessWriter:
    """Writes what the output format wants, in the shape that wrappers of coding agents read."""

    shop: Project
    call: Call
    started: float = field(default_factory=time.monotonic)
    said: list[str] = field(default_factory=list)
    model: str = ""
    unseen: bool = False

    @property
    def form(self) -> str:
        return "json" if self.call.options.json else str(self.call.options.output_format)

    def begin(self, session: Session) -> None:
        self.model, tools = session.offered(self.call.options.model or "")
        served = dict.fromkeys(one.split("__")[1] for one in tools if one.startswith(MCP))
        self._system(
            "init",
            cwd=self.shop.workspace,
            model=self.model,
            tools=tools,
            mcp_servers=[{"name": one, "status": "agreed"} for one in served],
            permissionMode=self.call.options.approve,
        )

    def hear(self, heard: Event) -> None:
        match heard:
            case RequestSent():
                self.said.clear()
                self.unseen = is_for_pawl(heard)
            case TextDelta(text=text):
                if not self.unseen:
                    self.said.append(text)
            case RequestAnswered(model=model, usage=usage):
                self.model = model
                if text := redacted("".join(self.said)):
                    tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
                    self._message("assistant", {"type": "text", "text": text}, {"model": model, "usage": tokens})
            case ToolStarted(call=called):
                used = {"type": "tool_use", **picked(called, "id name"), "input": called.arguments or {}}
                self._message("assistant", used, {"model": self.model})
            case ToolEnded(answer=answer):
                came = {"tool_use_id": answer.call, "content": answer.text, "is_error": answer.failed}
                self._message("user", {"type": "tool_result", **came})
            case _:
                self._beside(heard)

    def _beside(self, heard: Event) -> None:
        """Events that are no message of the model's or to it."""
        match heard:
            case Retrying(why=why, wait_seconds=seconds, attempt=attempt):
                self._system("api_retry", attempt=attempt, error=why, retry_delay=seconds)
            case NodeEntered(place=place):
                self._system("node", node=place.at, task=place.task)
            case CommandPrinted(line=line):
                self._system("output", text=line)
            case HookSaid(event=event, text=text):
                self._system("hook", hook_event=event, text=redacted(text))
            case Steered(text=text):
                self._message("user", {"type": "text", "text": redacted(text)})
            case CheckResult():
                self._system("check", **picked(heard, "step standing reason"))

    def ended(self, report: Report, code: int) -> None:
        changes = changes_of(self.shop, report)
        body = report_json(self.shop, report, changes)
        text, advice = report.answer, ""
        if report.state is RunState.WAITING:
            text = (
                f"approval needed: pawl approve {report.run} {', or '.join(ways_to_answer(self.shop, report, changes))}"
            )
        elif report.trouble is not None and code:
            text, advice = report.trouble.message, report.trouble.advice
        text = redacted(text)
        trouble = report.trouble.code if report.trouble is not None else ""
        subtype = "success" if code == 0 else SUBTYPES.get(trouble) or SUBTYPES.get(report.ended, OTHERWISE)
        result = self._result(subtype, text, report)
        if report.structured is not None:
            result["structured_output"] = report.structured
        kept = "conversation state delivery verdict before after verdicts refused unproved notes task_states"
        result |= {name: body[name] for name in f"{kept} changes entry kept question".split()} | {"exit_code": code}
        parts = (as_said(text).rstrip("\n"), advice, *verdict_lines(report))
        self._finish(result, "\n".join(part for part in parts if part), code)

    def failed(self, name: str, message: str, advice: str, code: int) -> None:
        nothing = Report(run=self.shop.run_id, request="", intent=None, state=RunState.ENDED, delivery=None)
        result = self._result(SUBTYPES.get(name, OTHERWISE), message, nothing)
        self._finish(
            result | {"error": name, "advice": advice, "exit_code": code}, f"{message}\n{advice}".rstrip(), code
        )

    def _result(self, subtype: str, text: str, report: Report) -> Json:
        read, written = report.input_tokens, report.output_tokens
        return {
            "type": "result",
            "subtype": subtype,
            "is_error": subtype != "success",
            "duration_ms": round((time.monotonic() - self.started) * 1000),
            "result": text,
            "session_id": report.run,
            "num_turns": report.requests,
            "total_cost_usd": report.cost,
            "usage": {"input_tokens": read, "output_tokens": written, "cache_read_input_tokens": report.cached_tokens},
            "modelUsage": {report.model: {"inputTokens": read, "outputTokens": written}} if report.model else {},
            "permission_denials": report.denials,
        }

    def _finish(self, result: Mapping[str, object], text: str, code: int) -> None:
        if self.form != "text":
            self._write(as_json(result))
        elif code == 0:
            self._write(as_json(result["structured_output"]) if "structured_output" in result else text)
        else:
            self.call.aside.lines(f"pawl: {text}")

    def _message(self, speaker: str, block: Mapping[str, object], more: Mapping[str, object] | None = None) -> None:
        message = {"role": speaker, "content": [block], **(more or {})}
        self._line({"type": speaker, "message": message, "parent_tool_use_id": None})

    def _system(self, subtype: str, **more: object) -> None:
        self._line({"type": "system", "subtype": subtype, **more})

    def _line(self, body: Mapping[str, object]) -> None:
        if self.form == "stream-json":
            self._write(as_json({**body, "session_id": self.shop.run_id}))

    def _write(self, line: str) -> None:
        self.call.out.put(f"{line}\n")
