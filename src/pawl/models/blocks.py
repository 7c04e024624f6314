"""Finds the blocks in which a model without native calls asks for tools, in a text that comes in pieces.

What is prose is released as soon as it cannot be the beginning of a block. A fence of another kind is prose with all
that stands in it, so that an example of a call is not taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

TOOL = "tool"
JSON = "json"
EDIT = "edit"
FILE = "file"
FUNCTION = "function"
BARE = "bare"

_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,})[ \t]*(?P<info>[^`\n]*)$", re.MULTILINE)
_FENCE_START = re.compile(r" {0,3}(?:`[^\n]*)?\Z")
_TAG = re.compile(r"<tool_call>|<function=(?P<name>[\w.-]+)>")
_TAG_WORDS = ("<tool_call>", "<function=")
_OPEN_TAG = re.compile(r"<function=[\w.-]*\Z")
_SEARCH = re.compile(r"<{7} ?SEARCH\s*")
_REPLACE = re.compile(r">{7} ?REPLACE\s*")


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    kind: str
    head: str = ""
    """What stands after the kind: a path, or the name of a tool."""
    body: str
    is_closed: bool
    source: str
    """All of it, as it was written."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A block, or a fence of another kind (an empty kind), while its end is not seen."""

    kind: str
    head: str = ""
    marks: int = 0
    """The length of the fence; 0 where there is none."""
    opening: str = ""
    body: list[str] = field(default_factory=list)
    is_replacing: bool = False
    """Inside of a part that an edit replaces, where fences belong to the file."""

    @property
    def closing(self) -> str:
        return "</function>" if self.kind == FUNCTION else "</tool_call>"

    def closed(self, closing: str | None) -> Block:
        body = "".join(self.body)
        is_closed = closing is not None or self.kind == BARE
        source = self.opening + body + (closing or "")
        return Block(kind=self.kind, head=self.head, body=body, is_closed=is_closed, source=source)

    def ends_with(self, line: str) -> bool:
        """Whether this line closes the fence; it is taken note of otherwise."""
        if self.kind == EDIT:
            self.is_replacing = (self.is_replacing or _SEARCH.fullmatch(line) is not None) and not _REPLACE.fullmatch(
                line
            )
        fence = None if self.is_replacing else _FENCE.fullmatch(line.rstrip("\r\n"))
        return fence is not None and not fence["info"].strip() and len(fence["marks"]) >= self.marks


class Scanner:
    """Give it the text in pieces with `feed`, and take the rest with `finish`."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = frozenset(kinds)
        self._held = ""
        self._open: _Open | None = None
        self._is_first = True
        """Nothing but blanks has come yet."""
        self._at_line_start = True

    def feed(self, text: str) -> list[Prose | Block]:
        self._held += text
        return list(self._parts(is_last=False))

    def finish(self) -> list[Prose | Block]:
        """What is left when nothing follows; a block without its end is given as such."""
        parts = list(self._parts(is_last=True))
        if self._open is not None and self._open.kind:
            self._open.body.append(self._held)
            parts.append(self._open.closed(None))
        self._open, self._held = None, ""
        return parts

    def _parts(self, *, is_last: bool) -> Iterator[Prose | Block]:
        while self._held:
            before = (self._held, self._open)
            part = self._prose(is_last=is_last) if self._open is None else self._inside(self._open, is_last=is_last)
            if part is not None:
                yield part
            if (self._held, self._open) == before:
                return

    def _prose(self, *, is_last: bool) -> Prose | None:
        """Releases what stands before the next block, or opens it."""
        if self._is_first and BARE in self._kinds and self._held.lstrip().startswith("{"):
            self._open = _Open(kind=BARE)
            return None
        at, found = self._first_opening(is_last=is_last)
        if found is None:
            return self._released(len(self._held) if is_last else self._safe())
        if at:
            return self._released(at)
        self._open = found
        if not found.kind:
            return self._released(len(found.opening))
        self._held = self._held[len(found.opening) :]
        self._is_first = False
        return None

    def _first_opening(self, *, is_last: bool) -> tuple[int, _Open | None]:
        fence = next((one for one in _FENCE.finditer(self._held) if one.start() or self._at_line_start), None)
        tag = _TAG.search(self._held) if TOOL in self._kinds else None
        if tag is not None and (fence is None or tag.start() < fence.start()):
            kind = FUNCTION if tag["name"] else TOOL
            return tag.start(), _Open(kind=kind, head=tag["name"] or "", opening=tag[0])
        if fence is None or (fence.end() == len(self._held) and not is_last):
            # Until its line is whole, it is not known what a fence opens.
            return 0, None
        word, _, head = fence["info"].strip().partition(" ")
        kind = TOOL if word.lower() == "tool_call" else word.lower()
        opening = self._held[fence.start() : fence.end() + 1]
        marks = len(fence["marks"])
        kind = kind if kind in self._kinds else ""
        return fence.start(), _Open(kind=kind, head=head.strip(), marks=marks, opening=opening)

    def _safe(self) -> int:
        """How much of the held prose cannot be the beginning of anything."""
        ends = [len(self._held)]
        line = self._held.rfind("\n") + 1
        if (line or self._at_line_start) and _FENCE_START.match(self._held, line):
            ends.append(line)
        if TOOL in self._kinds and (at := self._held.rfind("<")) != -1:
            rest = self._held[at:]
            if any(word.startswith(rest) for word in _TAG_WORDS) or _OPEN_TAG.match(rest):
                ends.append(at)
        if self._is_first and BARE in self._kinds and not self._held.strip():
            ends.append(0)
        return min(ends)

    def _released(self, size: int) -> Prose | None:
        text, self._held = self._held[:size], self._held[size:]
        if not text:
            return None
        self._is_first = self._is_first and not text.strip()
        self._at_line_start = text.endswith("\n")
        return Prose(text)

    def _inside(self, block: _Open, *, is_last: bool) -> Prose | Block | None:
        if block.kind == BARE:
            block.body.append(self._held)
            self._held = ""
            return None
        return self._fenced(block, is_last=is_last) if block.marks else self._tagged(block)

    def _fenced(self, block: _Open, *, is_last: bool) -> Prose | Block | None:
        """Takes one line."""
        size = self._held.find("\n") + 1
        if not size:
            if not is_last:
                return None
            size = len(self._held)
        line = self._held[:size]
        is_end = block.ends_with(line)
        if is_end:
            self._open = None
        if not block.kind:
            return self._released(size)
        self._held = self._held[size:]
        self._at_line_start = True
        if is_end:
            return block.closed(line)
        block.body.append(line)
        return None

    def _tagged(self, block: _Open) -> Block | None:
        at = self._held.find(block.closing)
        if at == -1:
            # Only the end of what is held can be the beginning of the closing tag.
            kept = len(block.closing) - 1
            block.body.append(self._held[:-kept])
            self._held = self._held[-kept:]
            return None
        block.body.append(self._held[:at])
        self._held = self._held[at + len(block.closing) :]
        self._at_line_start = False
        self._open = None
        return block.closed(block.closing)
