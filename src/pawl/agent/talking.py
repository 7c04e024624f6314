"""Talks of a run with models: seats with their terms, taped step by step, every request on record and in the budget."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pawl.agent.briefing import BundleSubject, handed_over
from pawl.agent.context import AgentContext, Spoken, TurnInput, Unanswered
from pawl.agent.context_builder import ContextBuilder, configured, instructions, mentioned, read_ahead, standing_context
from pawl.agent.context_watch import ContextWatch, afresh, later_tasks
from pawl.agent.inbox import Inbox
from pawl.agent.loop import converse
from pawl.agent.policy import Policy, model_of, policy_of
from pawl.agent.record import RunRecord
from pawl.agent.replay import CALL, ReplayLog, TapedModel, TapedTools, refusal_of
from pawl.agent.roles import Role
from pawl.agent.run_hooks import CANNOT_BE_SHOWN, Hooking, call_question, can_be_shown
from pawl.agent.tools.toolbox import DELEGATE, TeamDesk
from pawl.agent.works import BENCH, BenchWorks
from pawl.agent.workspace_memory import earlier_attempts
from pawl.core.dialogue import Message, from_json, to_json
from pawl.core.errors import PawlError, UnknownModel
from pawl.core.events import RunEvent, Steered, Warned
from pawl.core.guardrails import Decision, Permission
from pawl.core.redact import redacted_message
from pawl.core.run import (
    Approval,
    ApprovalAnswer,
    Budget,
    Mode,
    Reasoning,
    RequestRecord,
    RoleName,
    RunTerms,
    Stage,
)
from pawl.core.tiers import Tier
from pawl.models.configuration import ModelConfig, budget
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.settings.allowances import ToolKind, allowances
from pawl.settings.permissions import Permit, paths_in, permissions_of, permit_of
from pawl.workspace.project import Project

REQUEST_SECONDS = 300.0
"""The whole of a request (A11), unless the user gives it another limit."""
DENIALS, GRANTED = "denials", "granted"
"""The names under which the record keeps the calls that were refused, and the files that the user let be read."""

ROLES = (RoleName.ARTISAN, RoleName.PLANNER, RoleName.REVIEWER)
"""Who takes part in a run without tiers."""


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
    cancel: CancelToken | None = None
    permit: Permit | None = None
    """The rules of the workspace when None."""
    started: float = field(default_factory=time.monotonic)
    """When the time of the request began."""
    tier: Tier | None = None
    """Whose models and temperatures the roles have, where it names any."""
    deadline: float = float("inf")
    """By the monotonic clock."""
    warmth: float | None = None
    """The temperature of the artisan, so that samples differ."""
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
        order = self.record.order
        chosen = {role: self._model(role) for role in (ROLES if self.tier is None else RoleName)}
        first = chosen[RoleName.ARTISAN]
        return RunTerms(
            run=self.record.run,
            conversation=self.conversation,
            mode=order.mode,
            reasoning=Reasoning(order.reasoning or self.shop.config.settings.reasoning),
            model=first,
            role_models=tuple((role, model) for role, model in chosen.items() if model != first),
        )

    def _model(self, role: RoleName) -> str:
        of_tier = self.tier.model_for(role) if self.tier is not None else ""
        return of_tier or model_of(self.config, self.policy.role(role))

    def form_of(self, role: RoleName) -> str:
        """The schema of a role's answer in words: it goes with a request by itself only where no tools are offered."""
        from pawl.agent.contracts import json_schema

        schema = json_schema(self.policy.role(role).contract, reasoning=self.terms.reasoning is Reasoning.ON)
        return f"Answer with one JSON object that fits this schema:\n{json.dumps(schema)}"

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
        desk, hooking = self.works.desk, self._hooks_of(line)
        for path in self._granted():
            desk.gated.grant(path)
        told = {"tool_summary": line.summary, "last_step_outcome": line.outcome}
        builder = ContextBuilder(
            shop=self.shop,
            policy=self.policy,
            terms=self.terms,
            models=models,
            telemetry=telemetry,
            desk=desk,
            limits=self._limits(),
            cancel=self.cancel,
            variables={"user_input": self.record.order.text, **{name: text for name, text in told.items() if text}},
        )
        seat = builder.build(line.role, watch, context=self._context(line), listen=self.listen, hides=tape.hides)
        assert seat.sampling is not None
        team = self._team(seat.role, line, tape) if seat.role.delegates else None
        return replace(
            seat,
            policy=seat.policy if team is None else self.policy.narrowed_to(team.names),
            sampling=replace(seat.sampling, temperature=self._temperature(seat.role, seat.sampling.temperature)),
            model=TapedModel(seat.model, tape),
            tools=TapedTools(
                team or desk,
                tape,
                keep=self._keep_step,
                permit=lambda step, name, arguments: self._permitted(line.talk, step, name, arguments),
                after=partial(hooking.answered, line.talk),
                catch_up=self._catch_up,
                cancel=self.cancel,
            ),
            record=lambda record: self._record(record, seat.record, tape, models),
            compress=partial(self._compressed, watch),
            heard=partial(self._heard, tape) if line.stage is None else tuple,
            stopping=partial(hooking.sending_back, tape) if line.stage is None else lambda text: (),
        )

    def _temperature(self, role: Role, usual: float) -> float:
        if self.tier is None:
            return usual
        if self.warmth is not None and role.name == RoleName.ARTISAN:
            return self.warmth
        return dict(self.tier.temperatures).get(role.name, role.temperature)

    def _team(self, role: Role, line: TurnInput, tape: ReplayLog) -> TeamDesk:
        """A desk from which others are sent. Their talks are named by the step that sends them, and found again."""

        def sent() -> int:
            return sum(step["kind"] == CALL and step.get("name") == DELEGATE for step in tape.steps[: tape.at])

        def send(to: RoleName, task: str) -> str:
            text = f"{task}\n\n{self.form_of(to)}"
            return self.say(TurnInput(talk=f"{line.talk} > {tape.at} {to}", role=to, text=text)).text

        return TeamDesk(desk=self.works.desk, role=role, sent=sent, send=send)

    def _hooks_of(self, line: TurnInput) -> Hooking:
        """Who only looks on changes nothing on the bench, also not by a hook."""
        return self.hooking.on(lambda: self.works.desk.bench.bench) if line.stage is None else self.hooking

    def _limits(self) -> Budget:
        """The time is that of the whole request: what earlier talks and checks took is gone."""
        limits, now = self.config.budget, time.monotonic()
        return replace(limits, seconds=max(1.0, min(limits.seconds - (now - self.started), self.deadline - now)))

    def _context(self, line: TurnInput) -> tuple[str, ...]:
        """The same throughout the run, so that prompt caches hold: read once, and once for whoever plans.

        Who only looks on is told how to work here, and nothing of the workspace.
        """
        shop, desk, text = self.shop, self.works.desk, self.record.order.text
        if line.stage not in (None, Stage.PLAN):
            return self._told("told who looks on", lambda: instructions(shop, desk, text, self.listen))

        def everything() -> tuple[str, ...]:
            hooked = self.record.value("hook context")
            return (
                *(map(str, hooked) if isinstance(hooked, list) else ()),
                *standing_context(shop, desk, text, self.listen),
                *handed_over(shop, desk.files, self._subject()),
            )

        return self._told("told" if line.stage is None else "told the planner", everything)

    def _told(self, name: str, made: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The texts that the record keeps under the name; made and kept where there are none yet."""
        known = self.record.value(name)
        if not isinstance(known, list):
            self.record.put(name, list(made()))
            known = self.record.value(name)
        return tuple(map(str, known)) if isinstance(known, list) else ()

    def _subject(self) -> BundleSubject:
        text = self.record.order.text
        tested = self.record.value("baseline") is not None
        return BundleSubject(
            request=text,
            named=tuple(mentioned(text)),
            findings=self.works.before().findings if tested else (),
            attempts=earlier_attempts(self.shop, self.record),
        )

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

    def _record(
        self, record: RequestRecord, write: Callable[[RequestRecord], object], tape: ReplayLog, models: Models
    ) -> None:
        """The request log, the answer and the place in a script become durable as one."""
        if tape.replayed:
            return
        with self.shop.store.together():
            write(record)
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
        refusal, arguments = self._refused(talk, step, name, arguments)
        if not refusal and self._kind(name) is ToolKind.READS:
            self._grant(paths_in(arguments))
        return refusal, arguments

    def _grant(self, paths: Sequence[str]) -> None:
        """Lets files be read that a rule asks about and the user, or a hook, said yes to."""
        gate = self.shop.read_gate()
        asked = [path for path in paths if (said := gate.judge(path)) is not None and said.ruling is Decision.ASK]
        if asked:
            self.record.put(GRANTED, sorted({*self._granted(), *asked}))
        for path in asked:
            self.works.desk.gated.grant(path)

    def _granted(self) -> tuple[str, ...]:
        known = self.record.value(GRANTED)
        return tuple(map(str, known)) if isinstance(known, list) else ()

    def _refused(
        self, talk: str, step: int, name: str, arguments: Mapping[str, object]
    ) -> tuple[str, Mapping[str, object]]:
        permission, arguments = self._ruled(f"{talk}.{step}", name, arguments)
        each = self.record.order.approval is Approval.EACH and self._kind(name) is ToolKind.WRITES
        if permission.ruling is Decision.ALLOW and not each:
            return "", arguments
        if not can_be_shown(arguments):
            permission = replace(permission, ruling=Decision.DENY, reason=CANNOT_BE_SHOWN)
        if permission.ruling is Decision.DENY:
            self.record.put(DENIALS, [*self._denials(), {"tool_name": name, "tool_input": dict(arguments)}])
            return refusal_of(permission), arguments
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
        return list(self._told(f"read {line.talk}", lambda: tuple(read_ahead(self.works.desk.files, line.text))))

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
