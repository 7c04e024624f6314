"""The context of an agent: how full it is, what was read and done in it, how it is made shorter or left behind."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from pawl.agent.compression import (
    CompressionLimits,
    CompressionState,
    Compressor,
    KeptWords,
    accesses,
    compress,
    noted,
)
from pawl.agent.context import TurnInput
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.run_hooks import Hooking
from pawl.agent.session_memory import SessionMemory, Worksheet
from pawl.agent.workspace_memory import ESTIMATES, SESSION, EstimateError, estimate_errors
from pawl.core.dialogue import Message, Request, Speaker, Usage, dialogue_tokens
from pawl.core.errors import PawlError, StoreError, UnregisteredAgent, UsageError
from pawl.core.events import HookSaid, RequestAnswered, RunEvent, Shortened, ToolEnded
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_request
from pawl.core.run import RoleName, RunRequest, RunTerms
from pawl.core.text import tokens_of
from pawl.core.typed import plain, typed
from pawl.models.ledger import likely_input
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

_MOST_MEASURED = 1_000


class Level(StrEnum):
    OPTIMAL = "optimal"
    WARNING = "warning"
    CRITICAL = "critical"


_ADVICE = {
    Level.OPTIMAL: "",
    Level.WARNING: "finish what is under way; take up nothing new",
    Level.CRITICAL: "finalize, checkpoint, start fresh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorMarks:
    warning: int = 60_000
    """From so many tokens on."""
    critical: int = 80_000
    """Above so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReading:
    agent: str
    tokens: int
    level: Level

    @property
    def advice(self) -> str:
        return _ADVICE[self.level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One request: what was estimated, and what the provider counted."""

    agent: str
    model: str
    estimated: int
    counted: int


@dataclass(slots=True)
class _Agent:
    model: str
    tokens: int = 0
    estimated: int = 0
    """The estimated size of the request under way; 0 when there is none."""


@dataclass(slots=True)
class ContextMonitor:
    """Knows only agents that were registered; asking about another is an error. For any number of threads."""

    marks: MonitorMarks = field(default_factory=MonitorMarks)
    errors: dict[str, EstimateError] = field(default_factory=dict)
    """By model."""
    measured: deque[Measured] = field(default_factory=lambda: deque(maxlen=_MOST_MEASURED))
    _agents: dict[str, _Agent] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def register(self, agent: str, model: str) -> None:
        """Begins with an empty context; one that was registered before starts fresh."""
        with self._lock:
            self._agents[agent] = _Agent(model)

    def unregister(self, agent: str) -> None:
        with self._lock:
            self._known(agent)
            del self._agents[agent]

    @property
    def agents(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._agents))

    def sending(self, agent: str, estimated: int) -> ContextReading:
        """A request goes out; its estimate is corrected by what was learnt about the model."""
        with self._lock:
            known = self._known(agent)
            known.estimated = estimated
            known.tokens = self.errors.get(known.model, EstimateError()).corrected(estimated)
            return self._reading(agent, known)

    def answered(self, agent: str, usage: Usage) -> ContextReading:
        """The answer is part of the context from now on. What the provider counted is held against the estimate."""
        with self._lock:
            known = self._known(agent)
            if not usage.estimated and known.estimated:
                error = self.errors.get(known.model, EstimateError())
                self.errors[known.model] = error.after(known.estimated, usage.input)
                self.measured.append(
                    Measured(agent=agent, model=known.model, estimated=known.estimated, counted=usage.input)
                )
            known.tokens = (known.tokens if usage.estimated else usage.input) + usage.output
            known.estimated = 0
            return self._reading(agent, known)

    def reading(self, agent: str) -> ContextReading:
        with self._lock:
            return self._reading(agent, self._known(agent))

    def to_json(self) -> dict[str, Any]:
        """Measured facts about models, which outlive the process."""
        with self._lock:
            return {model: [error.requests, error.ratio] for model, error in sorted(self.errors.items())}

    def learn(self, body: Mapping[str, Any]) -> None:
        """Takes up what an earlier process learnt; what is not such a value is passed over."""
        with self._lock:
            self.errors |= estimate_errors(body)

    def _known(self, agent: str) -> _Agent:
        known = self._agents.get(agent)
        if known is None:
            raise UnregisteredAgent(
                f"the agent {agent!r} is not registered with the context monitor",
                advice="this is a fault of Pawl; report it",
            )
        return known

    def _reading(self, agent: str, known: _Agent) -> ContextReading:
        level = Level.OPTIMAL if known.tokens < self.marks.warning else Level.WARNING
        if known.tokens > self.marks.critical:
            level = Level.CRITICAL
        return ContextReading(agent=agent, tokens=known.tokens, level=level)


MOST_TASKS = 20
MOST_FILES = 50
MOST_DIAGNOSTICS = 100
MOST_TOKENS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    text: str
    critical: bool = False
    """Stays, whatever the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    path: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDiagnostic:
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingContext:
    """The oldest of each kind first."""

    tasks: tuple[TaskNote, ...] = ()
    files: tuple[CachedFile, ...] = ()
    """One for each path; what was used last stands last."""
    diagnostics: tuple[ContextDiagnostic, ...] = ()
    most_tokens: int = MOST_TOKENS

    @property
    def tokens(self) -> int:
        kinds = (self.tasks, self.files, self.diagnostics)
        return sum(tokens_of(one.text) for kind in kinds for one in kind)

    @property
    def text(self) -> str:
        """Describe it for a role, the tasks first."""
        parts = ["What was said before is left out; this is what is at hand.", ""]
        parts += ["Tasks:", *(f"- {one.text}" for one in self.tasks), ""] if self.tasks else []
        if self.diagnostics:
            parts += ["What the checks said last:"]
            parts += [f"- {one.path}: {one.text}" if one.path else f"- {one.text}" for one in self.diagnostics]
            parts += [""]
        for file in self.files:
            parts += [f"{file.path} as it stands now:", f"```\n{file.text.rstrip()}\n```", ""]
        return "\n".join(parts).rstrip("\n")

    def with_task(self, text: str, *, critical: bool = False) -> WorkingContext:
        return replace(self, tasks=(*self.tasks, TaskNote(text=text, critical=critical)))._bounded()

    def with_file(self, path: str, digest: str, text: str) -> WorkingContext:
        others = tuple(one for one in self.files if one.path != path)
        return replace(self, files=(*others, CachedFile(path=path, digest=digest, text=text)))._bounded()

    def file(self, path: str, digest: str) -> CachedFile | None:
        """The file as it is cached; None when it is another content by now."""
        return next((one for one in self.files if one.path == path and one.digest == digest), None)

    def with_diagnostics(self, path: str, *texts: str) -> WorkingContext:
        """Replaces what was known of the file: diagnostics are those of its latest content."""
        others = tuple(one for one in self.diagnostics if one.path != path)
        added = tuple(ContextDiagnostic(path=path, text=text) for text in texts)
        return replace(self, diagnostics=(*others, *added))._bounded()

    def _bounded(self) -> WorkingContext:
        """Files go before diagnostics, and those before tasks: a file can be read again."""
        made = replace(
            self,
            tasks=_without_oldest(self.tasks, len(self.tasks) - MOST_TASKS),
            files=self.files[-MOST_FILES:],
            diagnostics=self.diagnostics[-MOST_DIAGNOSTICS:],
        )
        over = made.tokens - self.most_tokens
        while over > 0:
            if made.files:
                over -= tokens_of(made.files[0].text)
                made = replace(made, files=made.files[1:])
            elif made.diagnostics:
                over -= tokens_of(made.diagnostics[0].text)
                made = replace(made, diagnostics=made.diagnostics[1:])
            else:
                fewer = _without_oldest(made.tasks, 1)
                if fewer == made.tasks:
                    break
                made = replace(made, tasks=fewer)
                over = made.tokens - self.most_tokens
        return made


def _without_oldest(tasks: tuple[TaskNote, ...], count: int) -> tuple[TaskNote, ...]:
    """So many of the oldest go, none of them critical."""
    places = [place for place, task in enumerate(tasks) if not task.critical][: max(0, count)]
    return tuple(task for place, task in enumerate(tasks) if place not in places)


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
    role: str = RoleName.ARTISAN
    monitor: ContextMonitor = field(default_factory=ContextMonitor)
    worksheet: Worksheet = field(default_factory=Worksheet)
    session: SessionMemory = field(default_factory=SessionMemory)
    _compressor: Compressor | None = None
    _level: Level = Level.OPTIMAL

    def __post_init__(self) -> None:
        self.monitor.learn(self._kept("", ESTIMATES))
        self.monitor.register(self.agent, self.model)
        with suppress(ValueError):
            self.worksheet = typed(Worksheet, self._kept(self.terms.conversation, WORKSHEET))
        with suppress(ValueError):
            self.session = typed(SessionMemory, self._kept(self.terms.conversation, SESSION))

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
                self.worksheet = noted(self.worksheet, call, answer)
                for path, kind in accesses(call):
                    self.session = self.session.with_access(path, kind)
            case Shortened(before_tokens=before, after_tokens=after):
                self.shop.note_if_possible("shortened", {"before_tokens": before, "after_tokens": after})

    def compress(self, messages: Sequence[Message], *, request: int, too_long: bool) -> Sequence[Message]:
        """Fits `seat.Compress`."""
        if self._compressor is None:
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
            store.snapshots.put(workspace, conversation, SESSION, plain(memory))
            store.snapshots.put(workspace, conversation, WORKSHEET, plain(self.worksheet))
            store.answers.note_files(workspace, seen)
            if self.monitor.measured:
                store.snapshots.put(workspace, "", ESTIMATES, self.monitor.to_json())

    def _kept(self, conversation: str, kind: str) -> Mapping[str, object]:
        with suppress(StoreError):
            return self.shop.store.snapshots.get(self.shop.workspace, conversation, kind) or {}
        return {}


def limits_for(reads: int | None, ratio: float = 1.0) -> CompressionLimits:
    """When a dialogue is too long for a model that can be sent so many tokens; `ratio` corrects Pawl's estimates."""
    usual = CompressionLimits()
    most = usual.tokens if reads is None else min(usual.tokens, max(LEAST_ROOM, reads - AROUND))
    tokens = round(most / ratio)
    return CompressionLimits(
        tokens=tokens,
        tail_tokens=min(usual.tail_tokens, tokens // 2),
        summary_characters=min(usual.summary_characters, tokens),  # A quarter of them, at four characters a token.
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    conversation: str
    """The one to go on with: the same when nothing was gained."""
    before_tokens: int
    after_tokens: int
    why_not: str = ""
    """Why it is as it was; empty when it is not."""


def compact(shop: Project, order: RunRequest, tell: Callable[[HookSaid], object]) -> Compacted:
    """No model is asked: what was decided, read and done is summarized by rule, and the last turns stay as they are.

    The text of the order is what the user said beside asking for it; hooks hear it.
    """
    conversation = order.conversation
    hooking = Hooking(shop=shop, order=order, run="", conversation=conversation, tell=tell)
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    if not messages:
        raise UsageError("there is nothing to compact yet", advice="say something first")
    request = max((at for at, one in enumerate(messages) if one.speaker is Speaker.USER), default=0)
    made = compress(messages, KeptWords(request=request), CompressionState(), too_long=True)
    if not made.why_not and hooking.compressing(messages, made.messages, asked=order.text) is messages:
        made = replace(made, after_tokens=made.before_tokens, why_not="a hook keeps it as it is")
    if made.why_not:
        return Compacted(
            conversation=conversation,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            why_not=made.why_not,
        )
    other = f"c{secrets.token_hex(4)}"
    with shop.store.together():
        for message in made.messages:
            shop.store.transcripts.append(shop.workspace, other, message, run=shop.run_id)
    shop.note("compacted", {"conversation": conversation, "as": other, "tokens": made.after_tokens})
    return Compacted(conversation=other, before_tokens=made.before_tokens, after_tokens=made.after_tokens)


def sent_again(shop: Project, conversation: str) -> tuple[int, int]:
    """How many messages of a conversation are sent again with the next request, and about how many tokens that is."""
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    return len(messages), dialogue_tokens(messages)


ROOM = 20_000
"""Tokens of what is at hand, so that most of the new context is free."""


def afresh(line: TurnInput, record: RunRecord, files: Files) -> TurnInput:
    """The same line, or, past the critical mark, one that leaves what this run said before and tells what is at hand.

    What was said before the run is shortened, not left. The new line is kept: the bench will have changed when an
    interrupted talk is taken up again.
    """
    tokens = dialogue_tokens(line.history)
    if line.stage is not None or tokens <= MonitorMarks().critical or not record.data.last_talk:
        return line
    talk = record.talk(line.talk)
    if not talk.afresh:
        talk = replace(talk, afresh=f"{line.text}\n\n{at_hand(record, files).text}")
        record.keep_talk(line.talk, talk)
        record.note("began afresh", {"talk": line.talk, "tokens left behind": tokens})
    return replace(line, text=talk.afresh, history=())


def later_tasks(line: TurnInput, record: RunRecord) -> list[str]:
    """The tasks of the plan that come after the one that the talk is about."""
    number = line.talk.partition(".")[0]
    tasks = record.data.plan if number.isdigit() else ()
    return [task.what for task in tasks if task.number > int(number)]


def at_hand(record: RunRecord, files: Files) -> WorkingContext:
    """The request, the tasks, what the checks said last, and the files that are changed or to be changed."""
    tasks, begun = record.data.plan, record.data.last_talk
    context = WorkingContext(most_tokens=ROOM).with_task(record.order.text, critical=True)
    for task in tasks:
        state = "worked on" if str(task.number) in begun else "to do"
        context = context.with_task(f"{task.number}. {task.what} ({state})")
    if record.data.refused:
        context = context.with_diagnostics("", *record.data.refused)
    changed = record.work(WorkName.BENCH)
    paths = [path for task in tasks for path in task.paths]
    for path in dict.fromkeys((*paths, *(sorted(changed.paths) if changed else ()))):
        with suppress(PawlError, OSError):
            data = files.read(path)
            context = context.with_file(path, hashlib.sha256(data).hexdigest(), data.decode("utf-8", "replace"))
    return context
