"""A seat for tests: a scripted model, a few small tools, and everything that was heard and recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pawl.agent.context import AgentContext
from pawl.agent.policy import standard_policy
from pawl.agent.prompts import PromptRepository
from pawl.core.dialogue import ToolOffer
from pawl.core.events import RunEvent
from pawl.core.run import Budget, Mode, Reasoning, RequestRecord, RoleName, RunTerms
from pawl.models.scripted import ScriptedModel


@dataclass(frozen=True)
class Reply:
    text: str
    failed: bool = False


@dataclass
class Tools:
    """Fits `Toolset`. Each tool is a function of its arguments; what was called is kept."""

    functions: Mapping[str, Callable[..., Reply]]
    called: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.functions)

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        schema = {"type": "object"}
        return tuple(ToolOffer(name=name, description=f"does {name}", input_schema=schema) for name in names)

    def call(self, name: str, arguments: Mapping[str, object]) -> Reply:
        self.called.append((name, dict(arguments)))
        if name not in self.functions:
            return Reply(f"unknown_tool: there is no tool {name!r}", failed=True)
        return self.functions[name](**arguments)


@dataclass
class Room:
    """A seat with what came out of it."""

    seat: AgentContext
    tools: Tools
    records: list[RequestRecord]
    events: list[RunEvent]

    def heard(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]


def read_file(path: str = "") -> Reply:
    return Reply(f"1: the text of {path}")


def room(
    script: Path,
    *,
    mode: Mode = Mode.CHAT,
    reasoning: Reasoning = Reasoning.OFF,
    role: RoleName = RoleName.ARTISAN,
    tools: Mapping[str, Callable[..., Reply]] | None = None,
    limits: Budget | None = None,
) -> Room:
    name = f"scripted:{script}"
    chosen = Tools(tools if tools is not None else {"file_read": read_file})
    records: list[RequestRecord] = []
    events: list[RunEvent] = []
    policy = standard_policy().narrowed_to(chosen.names)
    seat = AgentContext(
        terms=RunTerms(run="r1", conversation="c1", mode=mode, reasoning=reasoning, model=name),
        role=policy.role(role),
        policy=policy,
        prompts=PromptRepository.load(),
        variables={"project_root": "/workspace", "user_input": ""},
        model=ScriptedModel(script),
        tools=chosen,
        record=records.append,
        listen=events.append,
        limits=limits or Budget(),
    )
    return Room(seat, chosen, records, events)
