"""One failure as pytest prints it, in any of its traceback styles: what was raised, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pawl.core.finding import Place
from pawl.verify.places import Origin, shortened
from pawl.verify.report import unindented
from pawl.verify.tracebacks import python_traces

_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$"
)
_EXPLANATION = re.compile(r"^E(?:\s(.*))?$")
_LOCATION = re.compile(r"^([^\s>:][^:]*\.\w+):(\d+): ?(in .+|[\w.]*)$")
_FIXTURE_LOCATION = re.compile(r"^file (.+), line (\d+)$")
_QUOTED_FILE = re.compile(r'^\s*File "(.+?)", line (\d+)')
_CODE = re.compile(r"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?::|$)")
_WORKER = re.compile(r"^\[gw\d+\] \w+ -- Python ")
_CAPTURED = re.compile(r"^-+ Captured .+ -+$")
_NATIVE = "Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class Block:
    """A titled part of the FAILURES or ERRORS section."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Details:
    message: str
    code: str
    frames: tuple[Place, ...]


def details(block: Block, origin: Origin) -> Details:
    """What the last exception of the chain says; captured output does not count."""
    lines = _last_of_chain(_before_captured(block.lines))
    if _NATIVE in lines:
        native = _native(lines, origin)
        if native:
            return native
    explained = [match[1] or "" for line in lines if (match := _EXPLANATION.match(line))]
    frames, code = _locations(lines, origin)
    if explained:
        quoted = [match for line in explained if (match := _QUOTED_FILE.match(line))]
        frames += [origin.place(match[1], int(match[2])) for match in quoted]
        # A syntax error shows the file and the source first; what is wrong comes last.
        message = explained[-1].strip() if quoted else unindented(explained)
    else:
        message = unindented(line for line in lines if not _WORKER.match(line) and not _LOCATION.match(line))
    return Details(message, code or exception_of(message), shortened(frames))


def all_frames(block: Block, origin: Origin) -> tuple[Place, ...]:
    """The places of every exception of the chain, in the order in which they are shown."""
    lines = _before_captured(block.lines)
    native = [frame for trace in python_traces(lines, origin) for frame in trace.frames]
    return shortened([*_locations(lines, origin)[0], *native])


def exception_of(message: str) -> str:
    """The exception's name that a message starts with or ends in, or an assertion's."""
    for line in (message.split("\n", 1)[0], message.rsplit("\n", 1)[-1]):
        match = _CODE.match(line)
        if match:
            return match[1]
    return "AssertionError" if message.startswith("assert ") else ""


def _before_captured(lines: Sequence[str]) -> list[str]:
    kept = []
    for line in lines:
        if _CAPTURED.match(line):
            break
        kept.append(line)
    return kept


def _last_of_chain(lines: list[str]) -> list[str]:
    start = max((index + 1 for index, line in enumerate(lines) if _CHAINED.match(line)), default=0)
    return lines[start:]


def _locations(lines: Sequence[str], origin: Origin) -> tuple[list[Place | None], str]:
    frames: list[Place | None] = []
    code = ""
    for line in lines:
        location = _LOCATION.match(line)
        fixture = _FIXTURE_LOCATION.match(line)
        if location:
            frames.append(origin.place(location[1], int(location[2])))
            code = "" if location[3].startswith("in ") else location[3]
        elif fixture:
            frames.append(origin.place(fixture[1], int(fixture[2])))
    return frames, code


def _native(lines: Sequence[str], origin: Origin) -> Details | None:
    traces = python_traces(lines, origin)
    if not traces:
        return None
    trace = traces[-1]
    head = f"{trace.kind}: {trace.message}" if trace.message else trace.kind
    start = max((index for index, line in enumerate(lines) if line.startswith(head)), default=None)
    message = unindented(lines[start:]) if start is not None else head
    return Details(message, trace.kind.rsplit(".", 1)[-1], trace.frames)
