"""`pawl -p`: one request for programs. Events as lines if they are asked for, and always one result, which is true."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.agent.events import Event
from pawl.agent.session import Session
from pawl.core.diagnostic import CheckResult
from pawl.core.dialogue import Retrying, TextDelta
from pawl.core.errors import PawlError
from pawl.core.events import HookSaid, NodeEntered, RequestAnswered, RequestSent, Steered, ToolEnded, ToolStarted
from pawl.core.redact import redacted
from pawl.core.run import Report, RunState
from pawl.ui.cli.call import Call, Interrupted
from pawl.ui.cli.do import opened_session, start
from pawl.ui.cli.encoder import as_json, exit_code, report_json
from pawl.ui.screen.renderer import is_for_pawl
from pawl.ui.screen.report import changes_of
from pawl.workspace.project import Project

SUBTYPES = {
    "out_of_turns": "error_max_turns",
    "budget_exceeded": "error_max_budget_usd",
    "schema_unmet": "error_max_structured_output_retries",
}
OTHERWISE = "error_during_execution"


def headless(shop: Project, call: Call) -> int:
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
        self._line(
            {
                "type": "system",
                "subtype": "init",
                "cwd": self.shop.workspace,
                "model": self.model,
                "tools": tools,
                "mcp_servers": [],
                "permissionMode": self.call.options.approve,
            }
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
                used: dict[str, object] = {
                    "type": "tool_use",
                    "id": called.id,
                    "name": called.name,
                    "input": called.arguments or {},
                }
                self._message("assistant", used, {"model": self.model})
            case ToolEnded(answer=answer):
                block: dict[str, object] = {
                    "type": "tool_result",
                    "tool_use_id": answer.call,
                    "content": answer.text,
                    "is_error": answer.failed,
                }
                self._message("user", block)
            case _:
                self._beside(heard)

    def _beside(self, heard: Event) -> None:
        """What is no message of the model's or to it."""
        match heard:
            case Retrying(why=why, wait_seconds=seconds, attempt=attempt):
                self._line(
                    {"type": "system", "subtype": "api_retry", "attempt": attempt, "error": why, "retry_delay": seconds}
                )
            case NodeEntered(place=place):
                self._line({"type": "system", "subtype": "node", "node": place.at, "task": place.task})
            case HookSaid(event=event, text=text):
                self._line({"type": "system", "subtype": "hook", "hook_event": event, "text": redacted(text)})
            case Steered(text=text):
                self._message("user", {"type": "text", "text": redacted(text)})
            case CheckResult(step=step, standing=standing, reason=reason):
                self._line({"type": "system", "subtype": "check", "step": step, "standing": standing, "reason": reason})

    def ended(self, report: Report, code: int) -> None:
        body = report_json(self.shop, report, changes_of(self.shop, report))
        waits = report.state is RunState.WAITING
        text = report.answer
        if waits:
            hunks = ", or --hunks 1,3" if report.question is None or report.question.kind == "change" else ""
            text = f"approval needed: pawl approve {report.run} --yes, or --reject REASON{hunks}"
        elif report.trouble is not None and code:
            text = report.trouble.message
        text = redacted(text)
        trouble = report.trouble.code if report.trouble is not None else ""
        subtype = "success" if code == 0 else SUBTYPES.get(trouble) or SUBTYPES.get(report.ended, OTHERWISE)
        result = {
            **_result(subtype, text, self._milliseconds()),
            "session_id": report.run,
            "conversation": report.conversation,
            "num_turns": report.requests,
            "total_cost_usd": body["cost_usd"],
            "usage": {
                "input_tokens": report.input_tokens,
                "output_tokens": report.output_tokens,
                "cache_read_input_tokens": report.cached_tokens,
            },
            "modelUsage": {report.model: {"inputTokens": report.input_tokens, "outputTokens": report.output_tokens}}
            if report.model
            else {},
            "permission_denials": report.denials,
        }
        if report.structured is not None:
            result["structured_output"] = report.structured
        kept = ("state", "delivery", "before", "after", "verdicts", "refused", "changes", "entry", "kept")
        result |= {name: body[name] for name in (*kept, "question")} | {"exit_code": code}
        self._finish(result, text, code)

    def failed(self, name: str, message: str, advice: str, code: int) -> None:
        result = {
            **_result(SUBTYPES.get(name, OTHERWISE), message, self._milliseconds()),
            "session_id": self.shop.run_id,
            "num_turns": 0,
            "total_cost_usd": 0.0,
            "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
            "modelUsage": {},
            "permission_denials": [],
            "error": name,
            "advice": advice,
            "exit_code": code,
        }
        self._finish(result, f"{message}\n{advice}".rstrip(), code)

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

    def _line(self, body: Mapping[str, object]) -> None:
        if self.form == "stream-json":
            self._write(as_json({**body, "session_id": self.shop.run_id}))

    def _write(self, line: str) -> None:
        self.call.out.put(f"{line}\n")

    def _milliseconds(self) -> int:
        return round((time.monotonic() - self.started) * 1000)


def _result(subtype: str, text: str, milliseconds: int) -> dict[str, object]:
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": subtype != "success",
        "duration_ms": milliseconds,
        "result": text,
    }
