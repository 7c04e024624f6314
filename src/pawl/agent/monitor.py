"""How full the context of each agent is, and how far Pawl's own count of tokens is from what providers count."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pawl.core.dialogue import Usage
from pawl.core.errors import UnregisteredAgent
from pawl.core.text import tokens_of

_MOST_MEASURED = 1_000
_MEMORY = 200
"""Requests after which older ones count for less, so that the mean follows a change."""
_LEAST_RATIO, _MOST_RATIO = 0.2, 5.0
"""Outside of these a provider counts something else than the request."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateError:
    """The mean of counted to estimated tokens for one model; a value."""

    requests: int = 0
    ratio: float = 1.0

    def after(self, estimated: int, counted: int) -> EstimateError:
        """With one more request. What cannot be a count of that request is passed over."""
        if estimated <= 0 or counted <= 0 or not _LEAST_RATIO <= counted / estimated <= _MOST_RATIO:
            return self
        weight = min(self.requests + 1, _MEMORY)
        ratio = self.ratio + (counted / estimated - self.ratio) / weight
        return EstimateError(requests=self.requests + 1, ratio=ratio)

    def corrected(self, estimated: int) -> int:
        return round(estimated * self.ratio)


@dataclass(slots=True)
class _Agent:
    model: str
    tokens: int = 0
    estimated: int = 0
    """What the request under way was estimated to be; 0 when none is."""


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
        """What was learnt about models, which outlives the process."""
        with self._lock:
            return {model: [error.requests, error.ratio] for model, error in sorted(self.errors.items())}

    def learn(self, body: Mapping[str, Any]) -> None:
        """Takes up what an earlier process learnt; what is not such a value is passed over."""
        with self._lock:
            for model, value in body.items():
                match value:
                    case [int() as requests, int() | float() as ratio] if _LEAST_RATIO <= ratio <= _MOST_RATIO:
                        self.errors[model] = EstimateError(requests=max(0, requests), ratio=float(ratio))

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
        """What a role is told of it, the tasks first."""
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
