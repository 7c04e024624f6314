"""How long a tool may take and how much it may hand to a model; every figure is a setting."""

from __future__ import annotations

from dataclasses import dataclass

RESULT_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    tool_seconds: float = 30.0
    most_command_seconds: float = 120.0
    """What a command may be given when it asks for more than `tool_seconds`."""
    file_seconds: float = 5.0
    read_lines: int = 2_000
    read_characters: int = 15_000
    """With the numbers of the lines; a little less than `result_characters`, so that a read ends with a whole line."""
    line_characters: int = 2_000
    matches: int = 200
    output_characters: int = 7_500
    """Kept of each stream of a command."""
    result_characters: int = RESULT_CHARACTERS
    """The most that any call hands to a model, a failure too; the middle of more is left out."""
    check_seconds: float = 60.0
    lsp_seconds: float = 10.0
    findings: int = 40
    """Shown of one check."""
