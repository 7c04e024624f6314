"""Others who are sent with a task: one on the sender's bench; several of one answer at the same time, each on a bench
of its own as the sender's stood, from which their changes are merged one by one in the order of the calls (D2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pawl.agent.briefing import with_failing
from pawl.agent.context import TurnInput, Unanswered
from pawl.agent.record import WorkName
from pawl.agent.replay import CALL, ReplayLog
from pawl.agent.side_by_side import SideBySide
from pawl.agent.talker import Talker
from pawl.agent.tools.toolbox import DELEGATE
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.errors import Conflicted, PawlError, PolicyViolation, SchemaUnmet
from pawl.core.events import Warned
from pawl.core.lazy_dataclass import dataclass

MOST_TOGETHER = 4
"""How many work at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brought:
    """The work of one who was sent with others."""

    said: str = ""
    ground: ChangeSet = EMPTY
    """The sender's bench as it began."""
    changes: ChangeSet = EMPTY
    denials: tuple[Mapping[str, object], ...] = ()
    error: PawlError | None = None


@dataclass(slots=True)
class Delegations:
    """Those whom one talk sends. Their talks are named by the step that sends them, and found again."""

    talker: Talker
    line: TurnInput
    tape: ReplayLog
    _expected: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By step, whom the present answer sends at the same time, and with what."""
    _brought: dict[int, _Brought] = field(default_factory=dict)

    def sent(self, to: str = "") -> int:
        """How often this talk has sent someone, or that role, also before it was interrupted."""
        if to:
            return sum(role == to for role, _ in self.talker.record.data.reported)
        return sum(step["kind"] == CALL and step.get("name") == DELEGATE for step in self.tape.steps[: self.tape.at])

    def expect(self, calls: Mapping[int, tuple[str, str]]) -> None:
        self._expected = dict(calls)

    def send(self, to: str, task: str) -> str:
        step = self.tape.at
        if self._expected.get(step) == (to, task):
            self._work_together()
        if step in self._brought:
            said = self._merged(to, self._brought.pop(step))
        else:
            said = self.talker.say(self._turn(step, to, task)).text
        record = self.talker.record
        record.keep(replace(record.data, reported=(*record.data.reported, (to, said))))
        return said

    def _turn(self, step: int, to: str, task: str) -> TurnInput:
        text = with_failing(self.talker.shop, self.talker.record, task)
        return TurnInput(talk=f"{self.line.talk} > {step} {to}", role=to, text=text, sent=True)

    def _work_together(self) -> None:
        talker = self.talker
        turns = {step: self._turn(step, *sent) for step, sent in self._expected.items()}
        self._expected = {}
        works, parent = talker.works, talker.record.data
        ground = works.standing() if works.desk.bench.is_open else EMPTY
        told = talker._context(next(iter(turns.values())))

        def work(own: Talker, step: int) -> _Brought:
            record = own.record
            with own.shop.store.together():
                if record.work(WorkName.BENCH) is None:
                    record.keep_work(WorkName.BENCH, ground)
                    record.keep_work(WorkName.GROUND, ground)
                    given = replace(record.data, told=told, baseline=parent.baseline, intent=parent.intent)
                    record.keep(replace(given, hook_context=parent.hook_context))
                record.keep(replace(record.data, permits=parent.permits, granted=parent.granted))
            return _worked(replace(own, beside=len(turns)), turns[step])

        together = SideBySide(
            talker=talker,
            ledger=talker._opened()[0].router.ledger,
            work=work,
            listen=talker.listen,
            prefix=lambda step: f"{talker.record.prefix} {turns[step].talk}".strip(),
        )
        self._brought = {step: one for step, one in together.ended(tuple(turns), MOST_TOGETHER) if one is not None}

    def _merged(self, to: str, brought: _Brought) -> str:
        """The answer of whoever was sent, with its changes on the sender's bench; `Conflicted` where they cannot be."""
        talker, root = self.talker, self.talker.record.root
        if brought.error is not None:
            raise brought.error
        root.keep(replace(root.data, denials=(*root.data.denials, *brought.denials)))
        try:
            talker.works.merge(brought.changes, brought.ground)
        except Conflicted as error:
            talker.listen(Warned(f"the change of {to} was not taken: {error.message}"))
            raise Conflicted(
                f"{error.message}; nothing of its change was taken. It said: {brought.said}",
                error.conflicts,
                advice="send it again: it sees the changes of the others then",
            ) from error
        return brought.said


def _worked(own: Talker, turn: TurnInput) -> _Brought:
    """One who was sent, at work in its own thread. An error that is an answer does not end the others."""
    try:
        said, works, record = own.say(turn).text, own.works, own.record
        ground = record.work(WorkName.GROUND) or EMPTY
        made = works.standing() if works.desk.bench.is_open else ground
        return _Brought(said=said, ground=ground, changes=made, denials=record.data.denials)
    except (Conflicted, PolicyViolation, SchemaUnmet, Unanswered) as error:
        return _Brought(error=error)
