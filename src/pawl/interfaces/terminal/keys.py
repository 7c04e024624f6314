"""What the keys do. Enter says it, Tab queues it, Esc stops what works; none of them loses what was typed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from pawl.interfaces.terminal.completion import completes
from pawl.interfaces.terminal.face import InputLine, Listener

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
