"""A tool as data: its name, its page, the type of its input and what does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from pawl.core.errors import PawlError
from pawl.tools.page import Page
from pawl.tools.schema import schema

Given = TypeVar("Given")


class Output(Protocol):
    """What a tool hands back: typed fields for programs, `text` for the model."""

    @property
    def text(self) -> str: ...


class Effect(StrEnum):
    """What a tool does to the bench, which decides whether it is called again after a time-out."""

    READS = "reads"
    WRITES = "writes"
    RUNS = "runs"


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

    @property
    def text(self) -> str:
        return self.output.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A call that failed, as a value for the model: which way it failed, why, and what to try next."""

    tool: str
    code: str
    message: str
    advice: str

    @classmethod
    def of(cls, tool: str, error: PawlError) -> ToolFailure:
        return cls(tool=tool, code=error.code, message=error.message, advice=error.advice)

    @property
    def text(self) -> str:
        return f"{self.code}: {self.message}" + (f"\nnext: {self.advice}" if self.advice else "")
