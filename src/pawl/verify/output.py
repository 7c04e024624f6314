"""Makes captured output fit for parsing: no colours, one kind of line break, a mark where its middle was left out.

`Captured.text` cuts a long stream between two bytes; the two half lines beside the cut say nothing reliable and go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pawl.core.execution import Completed

CUT = "\x00"
"""A line that stands where the middle was left out; no output can hold it, because cleaning removes it."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LEFT_OUT = re.compile(r"^\[… \d+ bytes left out …\]$")


@dataclass(frozen=True, slots=True)
class Output:
    lines: tuple[str, ...]

    @property
    def cut(self) -> bool:
        return CUT in self.lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def cleaned(output: str) -> Output:
    plain = _ESCAPES.sub("", output).replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    after_cut = False
    for line in plain.split("\n"):
        if _LEFT_OUT.match(line):
            if lines and lines[-1] != CUT:
                lines.pop()
            lines.append(CUT)
            after_cut = True
        elif after_cut:
            after_cut = False
        else:
            lines.append(line)
    return Output(tuple(lines))


def printed(completed: Completed) -> str:
    """What a command printed: standard output, then standard error."""
    streams = [stream.text for stream in (completed.stdout, completed.stderr)]
    return "\n".join(text.removesuffix("\n") for text in streams if text) + "\n"
