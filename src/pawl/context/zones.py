"""The zones of a text: its title, what a person wrote, code, and what a program printed while it failed.

What every report of a kind has is left out: the versions that somebody uses, and the headings of a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(?:```|~~~)")
_CODE_LINE = re.compile(r"^(?: {4}|\t|>>> |\.\.\. |\$ |In \[)")
_STATEMENT = re.compile(
    r"^\s{0,3}(?:from\s+[\w.]+\s+import\s|import\s+[\w.]+(?:\s+as\s+\w+)?;?$|(?:async\s+)?def\s+\w+\s*\("
    r"|class\s+\w+\s*(?:\(.*\))?\s*[:{]|@\w[\w.]*(?:\(.*)?$|[\w.]+(?:\[[^\]]*\])?\s*[-+*/|]?=\s*[^\s=]|[\w.]+\(.*\)[;,]?$"
    r"|(?:return|raise|assert|await)\s+[\w.]+\(.*\)$|(?:if|for|while|with|elif|except)\s.+\(.*\):$|[\])}]+[;,]?$"
    r"|(?:func|fn|pub|let|const|var|public|private|static|void|int)\s.*[{;(]$)"
)
"""A line that is code in some language, where nobody marked it as such."""
_LONGEST_STATEMENT = 200
_TRACEBACK = re.compile(
    r"^\s*Traceback \(most recent call last\)|^\s*File \"|^\s+at .+:\d+|^goroutine \d+|^\s+\d+: 0x", re.MULTILINE
)
_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+(.+?)[ \t#]*|(?:\*\*|__)([^*_\n]+)(?:\*\*|__):?[ \t]*"
    r"|(?:<details>)?\s*<summary>(.*?)</summary>.*)$"
)
_SETTING = re.compile(
    r"^(?:(?:[\w./-]+\s+){0,2}(?:versions?|environment|[\w.]*show_versions(?:\(\))?)|operating system|os|platform"
    r"|installation|(?:installed )?(?:dependencies|packages)|pip (?:freeze|list)|conda (?:list|info)"
    r"|system (?:info\w*|details))"
    r"(?:\s+\(.*\)|\s*/.*|\s+(?:and|of|info\w*|details|numbers?)\b.*)?$",
    re.IGNORECASE,
)
"""Headings of what somebody uses, which is not what is wrong."""
_TEMPLATE = re.compile(
    r"^(?:bug )?(?:summary|report|description)$|^(?:minimal )?code (?:for reproduction|sample)\b|^additional \w+$"
    r"|^(?:actual|expected|current) \w+$|^(?:steps )?to reproduce$|^describe the \w+|^what happened\b|^possible \w+$"
    r"|^what (?:you|did you) expected?\b.*|^how to reproduce\b.*|^reproduction\b.*|^command used$|^anything else\b.*",
    re.IGNORECASE,
)
_SEARCHED = re.compile(r"^\s*[-*] \[[ xX]\] .*\b(?:I have|I've|I am|searched|checked)\b")


class Zone(StrEnum):
    """Where in the text a word stands."""

    TITLE = "title"
    PROSE = "prose"
    CODE = "code"
    TRACE = "trace"


def zoned(text: str) -> tuple[str, dict[Zone, str]]:
    """The title, and the text of each zone."""
    lines = text.lstrip().split("\n")
    title = lines[0].strip().lstrip("#").strip()
    body = "\n".join(_telling(lines[1:]))
    found: dict[Zone, list[str]] = {Zone.TITLE: [title], Zone.PROSE: [], Zone.CODE: [], Zone.TRACE: []}
    at = 0
    for fence in _FENCE.finditer(body):
        _plain(body[at : fence.start()], found)
        found[Zone.TRACE if _TRACEBACK.search(fence[1]) else Zone.CODE].append(fence[1])
        at = fence.end()
    _plain(body[at:], found)
    return title, {zone: "\n".join(part) for zone, part in found.items()}


def _telling(lines: list[str]) -> Iterator[str]:
    """The lines without what every report of a kind has."""
    fenced = skipping = False
    for line in lines:
        if _FENCE_LINE.match(line):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            said = (heading[1] or heading[2] or heading[3] or "").replace("`", "").strip(" :*_")
            skipping = _SETTING.match(said) is not None
            if skipping or _TEMPLATE.match(said):
                continue
        elif not fenced and (line.strip() == "</details>" or _SEARCHED.match(line)):
            skipping = skipping and line.strip() != "</details>"
            continue
        if not skipping:
            yield line


def _plain(text: str, found: dict[Zone, list[str]]) -> None:
    """Text outside of fences, where code is told by its indentation and traces by their look."""
    tracing = False
    for line in text.split("\n"):
        if _TRACEBACK.match(line):
            tracing = True
        elif tracing and line.strip() and not line[:1].isspace():
            # The line that says what was raised ends a trace.
            found[Zone.TRACE].append(line)
            tracing = False
            continue
        is_code = _CODE_LINE.match(line) or (len(line) <= _LONGEST_STATEMENT and _STATEMENT.match(line))
        found[Zone.TRACE if tracing else Zone.CODE if is_code else Zone.PROSE].append(line)
