"""What is watched while a question is answered: how full the context is, what was read, how long the dialogue is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pawl.agent.learning import ESTIMATES, SESSION
from pawl.agent.monitor import ContextMonitor, EstimateError, Level
from pawl.core.dialogue import Message, Request
from pawl.core.errors import StoreError
from pawl.core.events import RequestAnswered, RunEvent, Shortened, ToolEnded
from pawl.core.memory import SessionMemory, Worksheet
from pawl.core.redact import redacted_request
from pawl.core.run import RoleName, RunTerms
from pawl.models.prices import likely_input
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent.compression import CompressionLimits


AROUND = 2_000
"""Tokens that prompts, tools and memories take beside the dialogue."""
LEAST_ROOM = 1_000
WORKSHEET = "worksheet"


@dataclass(slots=True)
class ContextWatch:
    """Of one agent in one conversation. What it learns outlives the process, and is no reason to fail."""

    shop: Project
    terms: RunTerms
    reads: int | None = None
    """Tokens that the model can be sent; None when that is not known."""
    role: RoleName = RoleName.ARTISAN
    monitor: ContextMonitor = field(default_factory=ContextMonitor)
    worksheet: Worksheet = field(default_factory=Worksheet)
    session: SessionMemory = field(default_factory=SessionMemory)
    _compressor: object = None
    _level: Level = Level.OPTIMAL

    def __post_init__(self) -> None:
        self.monitor.learn(self._kept("", ESTIMATES))
        self.monitor.register(self.agent, self.model)
        with suppress(ValueError):
            self.worksheet = Worksheet.from_json(self._kept(self.terms.conversation, WORKSHEET))
        with suppress(ValueError):
            self.session = SessionMemory.from_json(self._kept(self.terms.conversation, SESSION))

    @property
    def agent(self) -> str:
        return f"{self.terms.run}/{self.role}"

    @property
    def model(self) -> str:
        return self.terms.model_for(self.role)

    def begin(self, task: str, later: Iterable[str] = ()) -> None:
        """Notes what is worked on from now, and what comes after it."""
        self.worksheet = self.worksheet.with_task(task).with_next(later)

    def clean(self, request: Request) -> Request:
        """The request without secrets; its size is noted, and when the context becomes fuller than is good."""
        made = redacted_request(request)
        reading = self.monitor.sending(self.agent, likely_input(made))
        if reading.level is not self._level:
            self._level = reading.level
            body = {"agent": self.agent, "tokens": reading.tokens, "level": reading.level, "advice": reading.advice}
            self.shop.note_if_possible("context", body)
        return made

    def hear(self, event: RunEvent) -> None:
        match event:
            case RequestAnswered(usage=usage):
                self.monitor.answered(self.agent, usage)
            case ToolEnded(call=call, answer=answer) if not answer.failed:
                from pawl.agent.compression import accesses, noted

                self.worksheet = noted(self.worksheet, call, answer)
                for path, kind in accesses(call):
                    self.session = self.session.with_access(path, kind)
            case Shortened(before_tokens=before, after_tokens=after):
                self.shop.note_if_possible("shortened", {"before_tokens": before, "after_tokens": after})

    def compress(self, messages: Sequence[Message], *, request: int, too_long: bool) -> Sequence[Message]:
        """Fits `seat.Compress`."""
        from pawl.agent.compression import Compressor

        if not isinstance(self._compressor, Compressor):
            ratio = self.monitor.errors.get(self.model, EstimateError()).ratio
            self._compressor = Compressor(limits=limits_for(self.reads, ratio), worksheet=lambda: self.worksheet)
        return self._compressor(messages, request=request, too_long=too_long)

    def keep(self, question: str, answer: str, seen: Mapping[str, str]) -> None:
        """Keeps what the session remembers for whoever goes on with the conversation."""
        memory = self.session.with_exchange(question, answer)
        for path, digest in seen.items():
            memory = memory.with_seen(path, digest)
        self.session = memory
        store, workspace, conversation = self.shop.store, self.shop.workspace, self.terms.conversation
        with suppress(StoreError):
            store.snapshots.put(workspace, conversation, SESSION, memory.to_json())
            store.snapshots.put(workspace, conversation, WORKSHEET, self.worksheet.to_json())
            store.answers.note_files(workspace, seen)
            if self.monitor.measured:
                store.snapshots.put(workspace, "", ESTIMATES, self.monitor.to_json())

    def _kept(self, conversation: str, kind: str) -> Mapping[str, object]:
        with suppress(StoreError):
            return self.shop.store.snapshots.get(self.shop.workspace, conversation, kind) or {}
        return {}


def limits_for(reads: int | None, ratio: float = 1.0) -> CompressionLimits:
    """When a dialogue is too long for a model that can be sent so many tokens; `ratio` corrects Pawl's estimates."""
    from pawl.agent.compression import CompressionLimits

    usual = CompressionLimits()
    most = usual.tokens if reads is None else min(usual.tokens, max(LEAST_ROOM, reads - AROUND))
    tokens = round(most / ratio)
    return CompressionLimits(
        tokens=tokens,
        tail_tokens=min(usual.tail_tokens, tokens // 2),
        summary_characters=min(usual.summary_characters, tokens),  # A quarter of them, at four characters a token.
    )
