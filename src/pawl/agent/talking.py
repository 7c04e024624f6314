"""Talks of a run with models: seats with their terms, taped step by step, every request on record and in the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pawl.agent import learning as remembering
from pawl.agent.asking import configured, mentioned
from pawl.agent.briefing import BundleSubject, handed_over
from pawl.agent.compacting import afresh, later_tasks
from pawl.agent.context import AgentContext, Spoken, TurnInput, Unanswered
from pawl.agent.inbox import Inbox
from pawl.agent.instructions import instructions_for
from pawl.agent.learning import earlier_attempts
from pawl.agent.loop import converse
from pawl.agent.policy import Policy
from pawl.agent.record import RunRecord
from pawl.agent.replay import ReplayLog, TapedModel, TapedTools
from pawl.agent.rules import model_of, policy_of, prompts
from pawl.agent.run_hooks import CANNOT_BE_SHOWN, Hooking, call_question, can_be_shown
from pawl.agent.watching import ContextWatch
from pawl.agent.works import BENCH, BenchWorks
from pawl.core.dialogue import Message, from_json, to_json
from pawl.core.errors import PawlError, UnknownModel
from pawl.core.events import RequestAnswered, RunEvent, Steered, Warned
from pawl.core.guardrails import Decision, Permission
from pawl.core.ports import Cancel
from pawl.core.redact import redacted_message
from pawl.core.run import (
    Approval,
    ApprovalAnswer,
    Budget,
    Detail,
    Mode,
    Reasoning,
    RequestRecord,
    RoleName,
    RunTerms,
    Stage,
)
from pawl.models.configuration import ModelConfig, budget
from pawl.models.opening import Models
from pawl.models.request_log import RequestBook, metered
from pawl.models.telemetry import Telemetry
from pawl.settings.allowances import ToolKind, allowances
from pawl.settings.permissions import Permit, permissions_of, permit_of
from pawl.workspace.project import Project

REQUEST_SECONDS = 300.0
"""The whole of a request (A11), unless the user gives it another limit."""
MOST_MENTIONED, MOST_LINES = 3, 400
DENIALS = "denials"
"""The name under which the record keeps the calls that were refused."""
ROLES = (RoleName.PLANNER, RoleName.REVIEWER)


def rules_of(shop: Project, mode: Mode) -> Permit:
    """The permission rules of the workspace, for commands that are confined and have no network."""
    return permit_of(permissions_of(shop.config, shop.workspace, mode=mode), shop.guardrails)


@dataclass(slots=True, kw_only=True)
class Talker:
    """Talks of one run with the models, taken up where they were interrupted."""

    shop: Project
    record: RunRecord
    works: BenchWorks
    conversation: str
    listen: Callable[[RunEvent], object]
    inbox: Inbox
    hooking: Hooking
    cancel: Cancel | None = None
    permit: Permit | None = None
    """The rules of the workspace when None."""
    started: float = field(default_factory=time.monotonic)
    """When the time of the request began."""
    _closing: ExitStack = field(default_factory=ExitStack)
    _config: ModelConfig | None = None
    _models: Models | None = None
    _policy: Policy | None = None
    _telemetry: Telemetry | None = None

    def close(self) -> None:
        self._closing.close()

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            self._policy = policy_of(self.shop.config, self.shop.workspace)
        return self._policy

    @property
    def config(self) -> ModelConfig:
        if self._config is None:
            read = configured(self.shop, self.record.order.model)
            table = self.shop.config.tables.budget
            base = budget(table, Budget(seconds=REQUEST_SECONDS))
            self._config = replace(read, budget=budget(self.record.order.budget, base))
        return self._config

    @property
    def configured(self) -> bool:
        with suppress(UnknownModel):
            return bool(model_of(self.config, self.policy.role(RoleName.ARTISAN)))
        return False

    @property
    def terms(self) -> RunTerms:
        policy, order = self.policy, self.record.order
        chosen = model_of(self.config, policy.role(RoleName.ARTISAN))
        others = ((role, model_of(self.config, policy.role(role))) for role in ROLES)
        return RunTerms(
            run=self.record.run,
            conversation=self.conversation,
            mode=order.mode,
            reasoning=Reasoning(order.reasoning or self.shop.config.settings.reasoning),
            model=chosen,
            role_models=tuple((role, model) for role, model in others if model != chosen),
        )

    def say(self, line: TurnInput) -> Spoken:
        line = afresh(line, self.record, self.works.desk.files)
        tape = ReplayLog(
            list(self.shop.store.runs.steps(self.record.run, line.talk)),
            lambda number, body: self.shop.store.runs.add_step(self.record.run, line.talk, number, body),
        )
        self.works.restore()
        models, _ = self._opened()
        watch = ContextWatch(self.shop, self.terms, models.reads(self.terms.model_for(line.role)), line.role)
        if line.stage is None:
            watch.begin(self.record.order.text, later_tasks(line, self.record))
        seat = self._seat(line, tape, watch)
        if line.role is not RoleName.ARTISAN and not tape.steps:
            self.hooking.role_begins(line.role, line.talk)
        spoken = converse(seat, line.history, line.text, line.stage, read=self._mentioned(line))
        if line.role is not RoleName.ARTISAN and self.record.value(f"dialogue {line.talk}") is None:
            self.hooking.role_ends(line.role, line.talk, spoken.text)
        self._keep(line, spoken, watch)
        return spoken

    def history(self, talk: str) -> tuple[Message, ...]:
        known = self.record.value(f"dialogue {talk}")
        return tuple(from_json(one) for one in known) if isinstance(known, list) else ()

    def earlier(self) -> tuple[Message, ...]:
        upto = self.record.value("said before")
        if not isinstance(upto, int) or not upto:
            return ()
        said = self.shop.store.transcripts.messages(self.conversation)
        return tuple(one.message for one in said if one.sent_again and one.number <= upto)

    def _heard(self, tape: ReplayLog) -> tuple[str, ...]:
        """What the user said meanwhile; on the tape, so that it is heard at the same place again."""
        live = not tape.is_behind
        said = tape.heard(self.inbox.take_words)
        for text in said if live else ():
            self.listen(Steered(text))
        return said

    def _seat(self, line: TurnInput, tape: ReplayLog, watch: ContextWatch) -> AgentContext:
        models, telemetry = self._opened()
        desk = self.works.desk
        policy = self.policy.narrowed_to(desk.names)
        book = RequestBook(self.shop, models.router.for_role(line.role), telemetry)
        terms, sampling = self.terms, models.config.sampling
        told = {"tool_summary": line.summary, "last_step_outcome": line.outcome}
        hooking = self._hooks_of(line)

        def hear(event: RunEvent) -> None:
            watch.hear(event)
            if not tape.hides(event):
                self.listen(event)
                if isinstance(event, RequestAnswered):
                    self.listen(metered(models, event))

        return AgentContext(
            terms=terms,
            role=policy.role(line.role),
            policy=policy,
            prompts=prompts(self.shop.config, self.shop.workspace),
            variables={
                "project_root": self.shop.workspace,
                "user_input": self.record.order.text,
                **{name: text for name, text in told.items() if text},
            },
            model=TapedModel(book, tape),
            tools=TapedTools(
                desk,
                tape,
                keep=self._keep_step,
                permit=lambda step, name, arguments: self._permitted(line.talk, step, name, arguments),
                after=partial(hooking.answered, line.talk),
                catch_up=self._catch_up,
                cancel=self.cancel,
            ),
            record=lambda record: self._record(record, book, tape, models),
            listen=hear,
            clean=watch.clean,
            compress=partial(self._compressed, watch),
            context=self._context(line),
            heard=partial(self._heard, tape) if line.stage is None else tuple,
            stopping=partial(hooking.sending_back, tape) if line.stage is None else lambda text: (),
            limits=self._limits(),
            sampling=replace(
                sampling, max_output=min(sampling.max_output, models.most_output(terms.model_for(line.role)))
            ),
            detail=Detail(self.shop.config.settings.detail),
            cancel=self.cancel,
        )

    def _hooks_of(self, line: TurnInput) -> Hooking:
        """Who only looks on changes nothing on the bench, also not by a hook."""
        return self.hooking.on(lambda: self.works.desk.bench.bench) if line.stage is None else self.hooking

    def _limits(self) -> Budget:
        """The time is that of the whole request: what earlier talks and checks took is gone."""
        limits = self.config.budget
        return replace(limits, seconds=max(1.0, limits.seconds - (time.monotonic() - self.started)))

    def _context(self, line: TurnInput) -> tuple[str, ...]:
        """The same throughout the run, so that prompt caches hold: read once, and once for whoever plans."""
        if line.stage not in (None, Stage.PLAN):
            return ()
        name = "told" if line.stage is None else "told the planner"
        known = self.record.value(name)
        if not isinstance(known, list):
            bank = remembering.bank_told(self.shop, self.works.desk.files)
            hooked = self.record.value("hook context")
            told = (
                *(map(str, hooked) if isinstance(hooked, list) else ()),
                *self._agents_file(),
                *remembering.told(self.shop, self.record.order.text),
                *bank,
                *handed_over(self.shop, self.works.desk.files, self._subject()),
            )
            self.record.put(name, list(told))
            known = self.record.value(name)
        return tuple(map(str, known)) if isinstance(known, list) else ()

    def _subject(self) -> BundleSubject:
        text = self.record.order.text
        tested = self.record.value("baseline") is not None
        return BundleSubject(
            request=text,
            named=tuple(mentioned(text, MOST_MENTIONED * 4)),
            findings=self.works.before().findings if tested else (),
            attempts=earlier_attempts(self.shop, self.record),
        )

    def _agents_file(self) -> tuple[str, ...]:
        text = instructions_for(self.works.desk.files, tuple(mentioned(self.record.order.text, MOST_MENTIONED * 4)))
        return (text,) if text.strip() else ()

    def _opened(self) -> tuple[Models, Telemetry]:
        if self._models is None:
            order, run = self.record.order, self.record.run
            used = self.record.value("scripts")
            models = Models(
                self.config,
                record=Path(order.record) if order.record else None,
                used=used if isinstance(used, dict) else None,
                warn=lambda text: self.listen(Warned(text)),
            )
            self._models = self._closing.enter_context(models)
            known = self.shop.store.requests.records(self.shop.workspace, run=run)
            if known:
                # What the run has spent before it was interrupted counts.
                models.router.ledger.count(known)
            self._telemetry = self._closing.enter_context(Telemetry.open(self.config.environment))
        assert self._telemetry is not None
        return self._models, self._telemetry

    def _record(self, record: RequestRecord, book: RequestBook, tape: ReplayLog, models: Models) -> None:
        """The request log, the answer and the place in a script become durable as one."""
        if tape.replayed:
            return
        with self.shop.store.together():
            book.record(record)
            tape.keep_fresh()
            if models.used:
                self.record.put("scripts", models.used)

    def _keep_step(self, tool: str, write: Callable[[], None]) -> None:
        changes = self._kind(tool) in (ToolKind.WRITES, ToolKind.RUNS) or self.hooking.exist
        standing = self.works.standing() if changes and self.works.desk.bench.is_open else None
        with self.shop.store.together():
            if standing is not None:
                self.record.keep_work(BENCH, standing)
            write()

    def _kind(self, tool: str) -> ToolKind | None:
        return allowances().tools.get(tool) or self.policy.own.get(tool)

    def _permitted(
        self, talk: str, step: int, name: str, arguments: Mapping[str, object]
    ) -> tuple[str, Mapping[str, object]]:
        """Why the call is refused, and its arguments. One that the user is to be asked about stops the talk until there
        is an answer."""
        permission, arguments = self._ruled(f"{talk}.{step}", name, arguments)
        each = self.record.order.approval is Approval.EACH and self._kind(name) is ToolKind.WRITES
        if permission.ruling is Decision.ALLOW and not each:
            return "", arguments
        if not can_be_shown(arguments):
            permission = replace(permission, ruling=Decision.DENY, reason=CANNOT_BE_SHOWN)
        if permission.ruling is Decision.DENY:
            refusal = f"permission_denied: {permission.reason}\nnext: do it another way, or say what is in the way"
            self.record.put(DENIALS, [*self._denials(), {"tool_name": name, "tool_input": dict(arguments)}])
            return refusal, arguments
        why = (permission.reason,) if permission.reason else ()
        question = call_question(f"{talk}.{step}", name, arguments, why)
        answer = self.record.value(f"permit {question.digest}")
        if not isinstance(answer, dict):
            self._keep_ruling(f"{talk}.{step}", permission, arguments)
            raise Unanswered(question)
        if answer.get("answer") == ApprovalAnswer.APPROVE:
            self.record.note("approved call", {"digest": question.digest, "tool": name, "arguments": dict(arguments)})
            return "", arguments
        reason = answer.get("reason") or "no reason was given"
        return f"refused_by_user: {reason}\nnext: do what the user wants instead, or end here", arguments

    def _ruled(self, call: str, name: str, arguments: Mapping[str, object]) -> tuple[Permission, Mapping[str, object]]:
        """What rules and hooks say together; other arguments that a hook gives are judged by the rules again."""
        known = self.record.value(f"ruling {call}")
        if isinstance(known, dict):
            return Permission(ruling=Decision(known["ruling"]), reason=known["reason"], firm=True), known["arguments"]
        if self.permit is None:
            self.permit = rules_of(self.shop, self.record.order.mode)
        permission = self.permit(name, arguments)
        for hook in (self.hooking.before_tool, self.hooking.before_asking):
            if hook == self.hooking.before_asking and permission.ruling is not Decision.ASK:
                break
            outcome = hook(name, arguments, call)
            if outcome is None:
                break
            if outcome.updated_input is not None:
                arguments = outcome.updated_input
                permission = self.permit(name, arguments)
            permission = outcome.over(permission)
        return permission, arguments

    def _keep_ruling(self, call: str, permission: Permission, arguments: Mapping[str, object]) -> None:
        """While the user is asked the process may end; hooks are not run again for the same call."""
        body = {"ruling": permission.ruling, "reason": permission.reason, "arguments": dict(arguments)}
        self.record.put(f"ruling {call}", body)

    def _denials(self) -> list[object]:
        known = self.record.value(DENIALS)
        return list(known) if isinstance(known, list) else []

    def _compressed(
        self, watch: ContextWatch, messages: Sequence[Message], *, request: int, too_long: bool
    ) -> Sequence[Message]:
        made = watch.compress(messages, request=request, too_long=too_long)
        return self.hooking.compressing(messages, made, forced=too_long)

    def _catch_up(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        """The editor knows again what was read in the part that comes from the tape."""
        for path in dict.fromkeys(str(arguments.get("path", "")) for _, arguments in calls):
            with suppress(PawlError, OSError):
                if path:
                    self.works.desk.editor.read(path)

    def _mentioned(self, line: TurnInput) -> list[str]:
        """Files that the user named, read ahead; the same ones when the talk is taken up again."""
        if line.stage is not None or line.history:
            return []
        name = f"read {line.talk}"
        known = self.record.value(name)
        if not isinstance(known, list):
            every = mentioned(line.text, MOST_MENTIONED * 4)
            short = [path for path in every if self._lines(path) <= MOST_LINES]
            self.record.put(name, short[:MOST_MENTIONED])
            known = self.record.value(name)
        return [str(path) for path in known] if isinstance(known, list) else []

    def _lines(self, path: str) -> int:
        try:
            return self.works.desk.files.read(path).count(b"\n")
        except (PawlError, OSError):
            return MOST_LINES + 1

    def _keep(self, line: TurnInput, spoken: Spoken, watch: ContextWatch) -> None:
        """What was said goes into the transcript, once."""
        name = f"dialogue {line.talk}"
        if self.record.value(name) is not None:
            return
        with self.shop.store.together():
            self.record.put(name, [to_json(redacted_message(one)) for one in spoken.messages])
            if line.stage is None:
                for message in spoken.said:
                    self.shop.store.transcripts.append(
                        self.shop.workspace, self.conversation, message, run=self.record.run
                    )
        if line.stage is None:
            watch.keep(line.text, spoken.text, self.works.desk.files.seen)
