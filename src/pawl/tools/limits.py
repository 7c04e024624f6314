"""How long a tool may take and how much it may hand to a model; every figure is a setting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    tool_seconds: float = 30.0
    most_command_seconds: float = 120.0
    """What a command may be given when it asks for more than `tool_seconds`."""
    file_seconds: float = 5.0
    read_lines: int = 2_000
    read_characters: int = 60_000
    line_characters: int = 2_000
    matches: int = 200
    output_characters: int = 20_000
    """Kept of each stream of a command."""
