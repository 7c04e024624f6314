"""How the few lines at the bottom are laid out: what is being said, what is being done, the input, the status."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.containers import Container
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension

from pawl.interfaces.screen.diff import folded
from pawl.interfaces.terminal.status import cut

PROMPT, MORE, ASKED = "› ", "  ", "? "
MOST_INPUT, MOST_PREVIEW, MOST_OFFERED = 10, 5, 6
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DIM = "fg:ansibrightblack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What there is to be shown now."""

    preview: str
    activity: str
    seconds: float
    question: str
    status: str


def layout(buffer: Buffer, parts: Callable[[int], Parts]) -> Container:
    def now() -> Parts:
        return parts(_width())

    def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
        asked = bool(now().question)
        first = number == 0 and wrapped == 0
        return [("bold", (ASKED if asked else PROMPT) if first else MORE)]

    return HSplit(
        [
            _shown(lambda: _preview(now().preview)),
            _shown(lambda: _activity(now())),
            _shown(lambda: _question(now().question)),
            Window(
                BufferControl(buffer, focus_on_click=False),
                height=Dimension(min=1, max=MOST_INPUT),
                wrap_lines=True,
                dont_extend_height=True,
                get_line_prefix=prefix,
            ),
            _shown(lambda: _offered(buffer)),
            Window(
                FormattedTextControl(lambda: [(_DIM, cut(now().status, _width()))]),
                height=1,
                dont_extend_height=True,
                wrap_lines=False,
            ),
        ]
    )


def _width() -> int:
    # The last column stays free: a line that fills it is folded differently by different terminals.
    return max(10, get_app().output.get_size().columns - 1)


def _shown(text: Callable[[], StyleAndTextTuples]) -> Container:
    """Some lines, and none when there is nothing to show."""
    return ConditionalContainer(
        Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=False),
        filter=Condition(lambda: bool(text())),
    )


def _preview(text: str) -> StyleAndTextTuples:
    if not text.strip():
        return []
    lines = [part for line in text.split("\n") for part in folded(line.replace("\t", "    "), _width())]
    return [("", "\n".join(lines[-MOST_PREVIEW:]))]


def _activity(parts: Parts) -> StyleAndTextTuples:
    if not parts.activity:
        return []
    turn = SPINNER[int(time.monotonic() * 8) % len(SPINNER)] if _has_marks() else "*"
    seconds = f" {parts.seconds:.0f} s" if parts.seconds >= 1 else ""
    return [("fg:ansicyan", f"{turn} "), (_DIM, cut(f"{parts.activity}{seconds}", _width() - 2))]


def _question(text: str) -> StyleAndTextTuples:
    return [("bold", "\n".join(folded(text.rstrip(), _width())))] if text else []


def _offered(buffer: Buffer) -> StyleAndTextTuples:
    """The candidates around the chosen one."""
    state = buffer.complete_state
    if state is None or not state.completions:
        return []
    chosen = state.complete_index
    start = max(0, min((chosen or 0) - MOST_OFFERED // 2, len(state.completions) - MOST_OFFERED))
    part = state.completions[start : start + MOST_OFFERED]
    names = [one.display_text for one in part]
    room = min(max(map(len, names)), _width() // 2)
    lines: StyleAndTextTuples = []
    for at, one in enumerate(part, start=start):
        mark = ">" if at == chosen else " "
        line = f"{mark} {cut(one.display_text, room):<{room}}  {one.display_meta_text}".rstrip()
        end = "\n" if at < start + len(part) - 1 else ""
        lines.append(("bold" if at == chosen else _DIM, cut(line, _width()) + end))
    return lines


def _has_marks() -> bool:
    return get_app().output.encoding().lower().replace("-", "") == "utf8"
