"""A tool as data: its name, its page, the type of its input and what does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from pawl.core.errors import PawlError
from pawl.tools.bounded import bounded
from pawl.tools.limits import RESULT_CHARACTERS
from pawl.tools.page import Page
from pawl.tools.schema import schema

Given = TypeVar("Given")

_SHORTER = "the rest says the same at length"


class Output(Protocol):
    """What a tool hands back: typed fields for programs, `text` for the model."""

    @property
    def text(self) -> str: ...


class Effect(StrEnum):
    """What a tool does to the bench, which decides whether it is called again after a time-out."""

    READS = "reads"
    WRITES = "writes"
    RUNS = "runs"


_REST = {
    Effect.READS: "ask for less at once to see it",
    Effect.WRITES: "read the files to see it",
    Effect.RUNS: "run something narrower to see it, such as one part or a filter on the output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[Given]):
    name: str
    page: Page
    input: type[Given]
    handler: Callable[[Given], Output]
    effect: Effect

    @property
    def input_schema(self) -> dict[str, object]:
        return schema(self.input)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    tool: str
    output: Output
    effect: Effect = field(default=Effect.READS, compare=False)
    most: int = field(default=RESULT_CHARACTERS, compare=False)

    @property
    def text(self) -> str:
        """For the model: as much as it is given at once."""
        return bounded(self.output.text, self.most, _REST[self.effect])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A call that failed, as a value for the model: which way it failed, why, and what to try next."""

    tool: str
    code: str
    message: str
    advice: str
    most: int = field(default=RESULT_CHARACTERS, compare=False)

    @classmethod
    def of(cls, tool: str, error: PawlError, most: int = RESULT_CHARACTERS) -> ToolFailure:
        return cls(tool=tool, code=error.code, message=error.message, advice=error.advice, most=most)

    @property
    def text(self) -> str:
        advice = bounded(f"\nnext: {self.advice}", self.most // 2, _SHORTER) if self.advice else ""
        return bounded(f"{self.code}: {self.message}", self.most - len(advice), _SHORTER) + advice
