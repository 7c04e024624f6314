"""Reads the text of `{"say": "..."}` while its JSON is still being written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pawl.models.scrub import Scrubber

_OPENING = re.compile(r'\s*\{\s*"say"\s*:\s*"')
_WHOLE = re.compile(r'(?:[^"\\]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


class Saying:
    """Collects what is said, up to the first stop sequence."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(sequence for sequence in stop if sequence)
        self._waiting = ""
        self._shown: list[str] = []
        self._scrubber = Scrubber()
        self._is_open = self._is_over = False

    @property
    def text(self) -> str:
        return "".join(self._shown)

    def piece(self, json_piece: str) -> str:
        """What can be shown after another piece of the JSON."""
        if self._is_over:
            return ""
        self._waiting += json_piece
        if not self._is_open:
            opening = _OPENING.match(self._waiting)
            if opening is None:
                return ""
            self._is_open = True
            self._waiting = self._waiting[opening.end() :]
        whole = _WHOLE.match(self._waiting)
        end = whole.end() if whole is not None else 0
        said, self._waiting = self._waiting[:end], self._waiting[end:]
        self._is_over = self._waiting.startswith('"')
        return self._show(self._scrubber.piece(json.loads(f'"{said}"', strict=False)))

    def _show(self, said: str) -> str:
        before = self.text
        kept, cut = up_to(before + said, self._stop)
        if cut:
            self._is_over = True
            said = kept[len(before) :]
        if said:
            self._shown.append(said)
        return said


def up_to(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop sequence, and whether there is one."""
    ends = [text.index(sequence) for sequence in stop if sequence and sequence in text]
    return (text[: min(ends)], True) if ends else (text, False)
