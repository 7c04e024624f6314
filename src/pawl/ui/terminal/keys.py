"""What the keys do. Enter says it, Tab queues it, Esc stops what works; none of them loses what was typed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.containers import Container
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension

from pawl.ui.screen.diff import folded
from pawl.ui.terminal.commands import completes
from pawl.ui.terminal.face import InputLine, Listener
from pawl.ui.terminal.keys_help import cut

TWICE = 2.0
"""Seconds in which a second press means the same intent."""
TYPED_AHEAD = 0.5
"""Seconds after the start in which what was typed before it is read."""


@dataclass(slots=True)
class Handlers:
    input: InputLine
    listener: Listener
    _pressed: float = field(default=-TWICE)
    _begun: float = field(default_factory=time.monotonic)

    def enter(self, event: KeyPressEvent) -> None:
        self._pressed = -TWICE
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\") and not self.input.asks:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.complete_state = None
            self.input.submit()

    def new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def line_feed(self, event: KeyPressEvent) -> None:
        """What was typed before the terminal was Pawl's own ends its lines so."""
        if time.monotonic() - self._begun < TYPED_AHEAD:
            self.enter(event)
        else:
            self.new_line(event)

    def tab(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.strip()
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif completes(buffer.document.text_before_cursor):
            buffer.start_completion(select_first=True)
        elif text and self.listener.is_working and not self.input.asks:
            buffer.append_to_history()
            buffer.reset()
            self.listener.queued(text)

    def back(self, event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state is not None:
            event.current_buffer.complete_previous()

    def escape(self, event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state is not None:
            event.current_buffer.cancel_completion()
        elif not self.input.put_aside():
            self.listener.stop()

    def interrupt(self, event: KeyPressEvent) -> None:
        """The first press stops what works, gives up a question or empties the input; the second leaves."""
        now = time.monotonic()
        again = now - self._pressed < TWICE
        self._pressed = now
        if again:
            self.input.leave()
        elif not self.input.put_aside() and not self.listener.stop():
            if event.current_buffer.text:
                # The arrow keys bring it back.
                event.current_buffer.append_to_history()
                event.current_buffer.reset()
                self._pressed = -TWICE
            else:
                self.input.out.hint("Ctrl-C again, or Ctrl-D, leaves")

    def end(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            self.input.leave()

    def clear(self, event: KeyPressEvent) -> None:
        self.input.clear()

    def suspend(self, event: KeyPressEvent) -> None:
        event.app.suspend_to_background()


def bindings(handlers: Handlers) -> KeyBindings:
    made = KeyBindings()
    made.add("enter")(handlers.enter)
    made.add("escape", "enter")(handlers.new_line)
    made.add("c-j")(handlers.line_feed)
    made.add("tab")(handlers.tab)
    made.add("s-tab")(handlers.back)
    made.add("escape")(handlers.escape)
    made.add("c-c")(handlers.interrupt)
    made.add("c-d")(handlers.end)
    made.add("c-l")(handlers.clear)
    made.add("c-z")(handlers.suspend)
    return made


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
