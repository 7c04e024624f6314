"""Where one attempt is made: a bench, a conversation and a part of the record of its own, the models of its tier."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import TracebackType

from pawl.agent.context import AgentContext, TurnInput
from pawl.agent.policy import standard_policy
from pawl.agent.record import RunRecord
from pawl.agent.replay import CALL, ReplayLog, TapedTools
from pawl.agent.rules import model_of
from pawl.agent.talking import DENIALS, Talker
from pawl.agent.team import DELEGATE, TeamDesk
from pawl.agent.watching import ContextWatch
from pawl.agent.works import BENCH, BenchWorks
from pawl.checks.verifier import Verifier
from pawl.core.change import ChangeSet
from pawl.core.run import Reasoning, RoleName, RunTerms
from pawl.core.tiers import Tier
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry

SHARED = frozenset({"scripts", "hook context", DENIALS})
"""Names of the record that all attempts of a run have in common."""


@dataclass(slots=True)
class AttemptRecord(RunRecord):
    """The part of a run's record that belongs to one attempt."""

    prefix: str = ""

    def value(self, name: str) -> object:
        return RunRecord.value(self, self._named(name))

    def put(self, name: str, body: object) -> None:
        RunRecord.put(self, self._named(name), body)

    def work(self, name: str) -> ChangeSet | None:
        return RunRecord.work(self, self._named(name))

    def keep_work(self, name: str, changes: ChangeSet) -> None:
        RunRecord.keep_work(self, self._named(name), changes)

    def _named(self, name: str) -> str:
        return name if name in SHARED else f"{self.prefix} {name}"


@dataclass(slots=True, kw_only=True)
class TierTalker(Talker):
    """A talker whose roles have the models and temperatures of a tier, over models that are opened once for a climb."""

    tier: Tier
    opened: tuple[Models, Telemetry]
    deadline: float = float("inf")
    warmth: float | None = None
    """The least temperature, so that samples differ."""

    @property
    def terms(self) -> RunTerms:
        policy, order = self.policy, self.record.order
        chosen = {role: self.tier.model_for(role) or model_of(self.config, policy.role(role)) for role in RoleName}
        first = chosen[RoleName.ARTISAN]
        return RunTerms(
            run=self.record.run,
            conversation=self.conversation,
            mode=order.mode,
            reasoning=Reasoning(order.reasoning or self.shop.config.settings.reasoning),
            model=first,
            role_models=tuple((role, model) for role, model in chosen.items() if model != first),
        )

    def _opened(self) -> tuple[Models, Telemetry]:
        return self.opened

    def _seat(self, line: TurnInput, tape: ReplayLog, watch: ContextWatch) -> AgentContext:
        seat = Talker._seat(self, line, tape, watch)
        assert seat.sampling is not None
        warmth = dict(self.tier.temperatures).get(line.role, seat.role.temperature)
        if self.warmth is not None and line.role is RoleName.ARTISAN:
            warmth = self.warmth
        left = max(1.0, self.deadline - time.monotonic())
        limits = replace(seat.limits, seconds=min(seat.limits.seconds, left))
        seat = replace(seat, sampling=replace(seat.sampling, temperature=warmth), limits=limits)
        return self._with_team(seat, line, tape) if seat.role.delegates else seat

    def _with_team(self, seat: AgentContext, line: TurnInput, tape: ReplayLog) -> AgentContext:
        """A seat that may send others. Their talks are named by the step that sends them, and found again."""
        assert isinstance(seat.tools, TapedTools)

        def sent() -> int:
            return sum(step["kind"] == CALL and step.get("name") == DELEGATE for step in tape.steps[: tape.at])

        def send(to: RoleName, task: str) -> str:
            text = f"{task}\n\n{form_of(to, self.terms.reasoning)}"
            return self.say(TurnInput(talk=f"{line.talk} > {tape.at} {to}", role=to, text=text)).text

        desk = TeamDesk(desk=self.works.desk, role=seat.role, sent=sent, send=send)
        policy = self.policy.narrowed_to(desk.names)
        return replace(seat, policy=policy, tools=replace(seat.tools, tools=desk))


def form_of(role: RoleName, reasoning: Reasoning) -> str:
    """The schema of a role's answer in words, for it goes with a request by itself only where no tools are offered."""
    from pawl.agent.contracts import json_schema

    schema = json_schema(standard_policy().role(role).contract, reasoning=reasoning is Reasoning.ON)
    return f"Answer with one JSON object that fits this schema:\n{json.dumps(schema)}"


@dataclass(slots=True, kw_only=True)
class Workplace:
    """Opened for one attempt; what was said, done and changed is in the record, so that it can be opened again."""

    name: str
    record: AttemptRecord
    works: BenchWorks
    talker: TierTalker
    _closing: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Workplace:
        self._closing.callback(self.works.close)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.close()

    def talk(self, name: str) -> str:
        """Talks have names of their own throughout a run."""
        return f"{self.name} {name}"

    @property
    def conversation(self) -> str:
        return self.talker.conversation


def opened_workplace(
    name: str,
    *,
    base: RunRecord,
    ground: ChangeSet,
    verifier: Verifier,
    talker: Callable[[AttemptRecord, BenchWorks], TierTalker],
) -> Workplace:
    """The place of the attempt of that name: as it was left, or on the ground that the climb stands on."""
    record = AttemptRecord(base.shop, base.order, base.run, prefix=name)
    if record.work(BENCH) is None:
        record.keep_work(BENCH, ground)
    works = BenchWorks(base.shop, record, verifier, verifier.cancel)
    return Workplace(name=name, record=record, works=works, talker=talker(record, works))


def spent_in(base: RunRecord, conversation: str) -> tuple[Decimal | None, int]:
    """What the requests of a conversation cost, None where a price is unknown, and their tokens."""
    every = base.shop.store.requests.records(base.shop.workspace, run=base.run)
    records = [record for record in every if record.conversation == conversation]
    costs = [record.cost for record in records]
    money = None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))
    return money, sum(record.input_tokens + record.output_tokens for record in records)


def spent_on_tier(base: RunRecord, conversations: str) -> Decimal:
    """What is known of the cost of all requests in the conversations whose names begin so."""
    every = base.shop.store.requests.records(base.shop.workspace, run=base.run)
    costs = (record.cost for record in every if record.conversation.startswith(conversations))
    return sum((cost for cost in costs if cost is not None), Decimal(0))
