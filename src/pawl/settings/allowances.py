"""The table of stages and modes: kinds of tools that each allows, the prompt, the reasoning, the contract."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from importlib import resources
from typing import Any

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Mode, ReasoningFormat, Stage

ROLE_CONTRACT = "role"
"""In the table: the answer fits the contract of the role."""


class ToolKind(StrEnum):
    """The effect of a tool, by which stages allow it."""

    READS = "reads"
    WRITES = "writes"
    RUNS = "runs"
    DELEGATES = "delegates"


CHANGES = frozenset({ToolKind.WRITES, ToolKind.RUNS})
STANDS_FOR = {ToolKind.READS: "file_read", ToolKind.WRITES: "file_write", ToolKind.RUNS: "run_command"}
"""The tool of Pawl's own that decides who has one of the user's own of that kind, and what rules forbid it."""
NEVER: Mapping[tuple[Stage, Mode], frozenset[ToolKind]] = {
    **{(stage, Mode.CHAT): CHANGES | {ToolKind.DELEGATES} for stage in Stage},
    **{(stage, mode): frozenset(ToolKind) for stage in (Stage.DELIVERY, Stage.FINAL) for mode in Mode},
    **{(stage, mode): frozenset(ToolKind) for stage in (Stage.INTENT, Stage.EVALUATE) for mode in Mode},
    (Stage.QA, Mode.AGENT): CHANGES | {ToolKind.DELEGATES},
}
"""Kinds that no table may allow, whatever its file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAllowance:
    """One stage in one mode."""

    kinds: frozenset[ToolKind]
    prompt: str
    reasoning: ReasoningFormat
    """Where the user has reasoning on."""
    contract: str


@dataclass(frozen=True, slots=True)
class Allowances:
    """The whole table; it has a row for every stage and mode."""

    tools: Mapping[str, ToolKind]
    rows: Mapping[tuple[Stage, Mode], StageAllowance]


@functools.cache
def allowances() -> Allowances:
    """The table that comes with Pawl."""
    return parse((resources.files("pawl.settings") / "table.toml").read_text("utf-8"))


def parse(text: str) -> Allowances:
    """A table from its TOML. One that has a gap, or that allows what no table may, is not loaded."""
    try:
        file = tomllib.loads(text)
        tools = {tool: ToolKind(kind) for kind, names in file["kinds"].items() for tool in names}
        rows = {(stage, mode): _allowance(file["stages"][stage], mode) for stage in Stage for mode in Mode}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"the policy table cannot be read: {type(error).__name__}: {error}",
            advice="every stage needs prompt, chat, agent, reasoning and contract",
        ) from error
    for (stage, mode), row in rows.items():
        forbidden = row.kinds & NEVER.get((stage, mode), frozenset())
        if forbidden:
            raise ConfigError(
                f"the policy table allows what {mode} mode never has at {stage}: {', '.join(sorted(forbidden))}",
                advice="take it out",
            )
    return Allowances(tools, rows)


def _allowance(row: Mapping[str, Any], mode: Mode) -> StageAllowance:
    return StageAllowance(
        kinds=frozenset(ToolKind(kind) for kind in row[mode]),
        prompt=row["prompt"][mode],
        reasoning=ReasoningFormat(row["reasoning"]),
        contract=row["contract"],
    )
