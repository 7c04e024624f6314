"""The face of a session in a terminal: an input line that is always there, everything else printed once above it."""

from __future__ import annotations

import asyncio
import getpass
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from typing import TextIO, cast

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, is_searching, vi_insert_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.containers import Container
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, SearchBufferControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput

from pawl.core.lazy_dataclass import dataclass
from pawl.ui.cli.call import ENDING
from pawl.ui.screen.approval import edited
from pawl.ui.screen.diff import folded
from pawl.ui.screen.screen import FoldingScreen, Screen, cells, cut, one_line
from pawl.ui.terminal.input_line import completes
from pawl.ui.terminal.live_region import FrameOutput, LiveRegion, folds_lines
from pawl.ui.terminal.terminal_session import TerminalSession


class LineStream:
    """A stream for screens whose whole lines appear above the input, from whatever thread they come."""

    def __init__(self, show: Callable[[str], None], like: TextIO) -> None:
        self._show = show
        self._like = like
        self._line = ""
        self.encoding = like.encoding

    def write(self, text: str) -> int:
        whole, found, rest = (self._line + text).rpartition("\n")
        self._line = rest
        if found:
            self._show(f"{whole}\n")
        return len(text)

    def flush(self) -> None:
        """Whole lines are shown at once; what is left waits for its end."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._like.fileno()


LOOK_SECONDS = 1.0
"""Between two looks whether a question is still open."""
TICK = 0.25
"""Seconds between two drawings while something works."""


@dataclass(slots=True)
class InlineQuestion:
    text: str
    answer: Future[str | None]
    draft: Document
    """The input when the question came; it comes back afterwards and is no answer."""


class Inline:
    """The face with an input line. Its methods but `run` may be called from any thread."""

    live = True

    def __init__(
        self,
        sitting: TerminalSession,
        *,
        color: bool,
        environment: dict[str, str],
        history: History | None = None,
        completer: Completer | None = None,
    ) -> None:
        self._sitting = sitting
        self._environment = environment
        self._output = FrameOutput(sys.stdout, color=color)
        stream = cast(TextIO, LineStream(self._print, sys.stdout))
        self.out: Screen = FoldingScreen(stream, color=color)
        self.aside = self.out
        self.buffer = Buffer(
            multiline=True,
            history=history,
            completer=completer,
            complete_while_typing=Condition(lambda: completes(self.buffer.document.text_before_cursor)),
        )
        self._search = SearchBufferControl(Buffer(multiline=False), [BeforeInput("search: ")], ignore_case=True)
        self._pasted: dict[str, str] = {}
        """Long pastes by the label that stands for each in the input."""
        self._activity = ("", 0.0)
        self._preview = ""
        self._question: InlineQuestion | None = None
        self._titled = False
        """The title of the terminal calls the user."""
        self._pending: list[str] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False
        self.heard = 0
        """The signal that ended it."""
        self._app = self._application()

    def run(self, ready: Callable[[], None]) -> None:
        """Until the user leaves; `ready` is called when the input line stands."""
        asyncio.run(self._main(ready))

    async def _main(self, ready: Callable[[], None]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        for number in ENDING:
            # What the caller has switched off stays off, as with nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._signalled, number)
        ticking = asyncio.ensure_future(self._tick())

        def begin(app: Application[None]) -> None:
            app.after_render.remove_handler(begin)
            ready()

        self._app.after_render.add_handler(begin)
        try:
            # The input ends with the terminal.
            with suppress(EOFError):
                await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self._leaving = True
            ticking.cancel()
            self._answered(None)
            self._loop = None
            self._draw()
            if "title" in self._sitting.settings.notify:
                self._send("\x1b]0;\x07")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self._sitting.is_working:
                self._app.invalidate()

    def leave(self) -> None:
        self._call(self._leave)

    def _signalled(self, number: int) -> None:
        self.heard = number
        self._leave()

    def _leave(self) -> None:
        if not self._leaving and self._app.is_running:
            self._leaving = True
            self._app.exit()

    def line(self, question: str, over: Callable[[], bool] | None = None) -> str | None:
        """Asks for a line and waits for it; not to be called in the thread of the input."""
        answer: Future[str | None] = Future()
        if self._leaving or self._loop is None:
            return None
        self._call(self._ask, question, answer)
        while over is not None:
            try:
                return answer.result(LOOK_SECONDS)
            except TimeoutError:
                if over():
                    self._call(self._take_back, answer)
                    break
        return answer.result()

    def _take_back(self, answer: Future[str | None]) -> None:
        if self._question is not None and self._question.answer is answer:
            self._answered(None)

    def secret(self, question: str) -> str | None:
        return self._beside(lambda: getpass.getpass(question)) if self._loop is not None else None

    def edited(self, text: str, suffix: str) -> str:
        return self._beside(lambda: edited(text, suffix, self._environment)) if self._loop is not None else text

    def _beside(self, work: Callable[[], str]) -> str:
        """Something else has the terminal meanwhile."""

        async def aside() -> str:
            return await run_in_terminal(work)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(aside(), self._loop).result()

    def activity(self, text: str) -> None:
        """Shows what is being done; empty for nothing."""
        self._activity = (one_line(text), time.monotonic())
        self._call(self._app.invalidate)

    def preview(self, text: str) -> None:
        """The end of what is being said and is not finished."""
        self._preview = text
        self._call(self._app.invalidate)

    def make_room(self) -> None:
        if self._preview:
            self.preview("")

    def clear(self) -> None:
        self._call(self._clear)

    def _clear(self) -> None:
        self._app.renderer.clear()
        self._print("\n")

    def attention(self, text: str) -> None:
        self._titled = "title" in self._sitting.settings.notify
        signs = {"bell": "\a", "title": f"\x1b]0;{one_line(text)}\x07", "desktop": f"\x1b]9;{one_line(text)}\x07"}
        self._call(self._send, "".join(signs[one] for one in self._sitting.settings.notify))

    def _send(self, signs: str) -> None:
        self._output.write_raw(signs)
        self._output.flush()

    @property
    def asks(self) -> bool:
        return self._question is not None

    def submit(self) -> None:
        """Takes the input: an answer if something is asked, otherwise a request or a command."""
        if self._titled:
            self._titled = False
            self._send(f"\x1b]0;pawl in {one_line(self._sitting.workspace.name)}\x07")
        text = self.buffer.text
        if self._question is not None:
            self.buffer.reset()
            self._answered(text)
            return
        if text.strip():
            self._sitting.entered(self.taken())

    def taken(self) -> str:
        """Empties the input: its text with what was pasted, which the arrow keys bring back."""
        text = self.buffer.text
        for label, whole in self._pasted.items():
            text = text.replace(label, whole)
        self.buffer.set_document(Document(text), bypass_readonly=True)
        self.buffer.append_to_history()
        self.buffer.reset()
        self._pasted.clear()
        return text.strip()

    def paste(self, text: str) -> str:
        """The text as it is put into the input: a label where it has many lines."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= MOST_PASTED or self.asks:
            return text
        label = f"[{lines} lines, paste {len(self._pasted) + 1}]" if self._pasted else f"[{lines} lines]"
        self._pasted[label] = text
        return label

    def put_aside(self) -> bool:
        """Gives up the question that is asked; whether there was one."""
        asked = self._question is not None
        self._answered(None)
        return asked

    def _ask(self, question: str, answer: Future[str | None]) -> None:
        if self._leaving:
            answer.set_result(None)
            return
        self._question = InlineQuestion(question, answer, self.buffer.document)
        self.buffer.set_document(Document(), bypass_readonly=True)
        self._app.invalidate()

    def _answered(self, text: str | None) -> None:
        question, self._question = self._question, None
        if question is None:
            return
        self.out.say(f"{question.text}{text if text is not None else ''}".rstrip())
        self.buffer.set_document(question.draft, bypass_readonly=True)
        question.answer.set_result(text)

    def _application(self) -> Application[None]:
        app: Application[None] = LiveRegion(
            folds=folds_lines(self._environment),
            layout=self._layout(),
            key_bindings=bindings(Handlers(input=self, sitting=self._sitting)),
            output=self._output,
            input=create_input(sys.stdin),
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
            editing_mode=EditingMode.VI if self._sitting.settings.keys == "vi" else EditingMode.EMACS,
            enable_page_navigation_bindings=False,
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = 0.2
        return app

    def _layout(self) -> Layout:
        def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
            return [("bold", MORE if number or wrapped else ASKED if self.asks else PROMPT)]

        return Layout(
            HSplit(
                [
                    _shown(self._preview_lines),
                    _shown(self._activity_line),
                    _shown(self._question_lines),
                    Window(
                        BufferControl(
                            self.buffer, search_buffer_control=self._search, focus_on_click=False, preview_search=True
                        ),
                        height=Dimension(min=1, max=MOST_INPUT),
                        wrap_lines=True,
                        dont_extend_height=True,
                        get_line_prefix=prefix,
                    ),
                    ConditionalContainer(Window(self._search, height=1), filter=is_searching),
                    _shown(lambda: _offered(self.buffer)),
                    Window(
                        FormattedTextControl(self._status_line), height=1, dont_extend_height=True, wrap_lines=False
                    ),
                ]
            )
        )

    def _preview_lines(self) -> StyleAndTextTuples:
        if not self._preview.strip() or not self._sitting.is_working:
            return []
        lines = [part for line in self._preview.split("\n") for part in folded(line.replace("\t", "    "), _width())]
        return [("", "\n".join(lines[-MOST_PREVIEW:]))]

    def _activity_line(self) -> StyleAndTextTuples:
        text, since = self._activity
        if not text or self.asks or not self._sitting.is_working:
            return []
        marks = get_app().output.encoding().lower().replace("-", "") == "utf8"
        turn = SPINNER[int(time.monotonic() * 8) % len(SPINNER)] if marks else "*"
        took = time.monotonic() - since
        seconds = f" {took:.0f} s" if took >= 1 else ""
        spent = self._sitting.spending
        room = _width() - 2 - cells(seconds) - cells(spent)
        return [(_styled("cyan"), f"{turn} "), (_styled("dim"), f"{cut(text, max(10, room))}{seconds}{spent}")]

    def _question_lines(self) -> StyleAndTextTuples:
        if self._question is None:
            return []
        return [("bold", "\n".join(textwrap.wrap(self._question.text.rstrip(), _width(), break_on_hyphens=False)))]

    def _status_line(self) -> StyleAndTextTuples:
        return [(_styled("dim"), cut(one_line(self._sitting.status(_width(), asked=self.asks)), _width()))]

    def _print(self, text: str) -> None:
        with self._lock:
            first = not self._pending
            self._pending.append(text)
        if first:
            self._call(self._draw)

    def _draw(self) -> None:
        """Puts what is waiting above the input, in one frame with the input below it."""
        with self._lock:
            text, self._pending = "".join(self._pending), []
        if not text:
            return
        app = self._app
        with self._output.frame():
            if app.is_running and not app._running_in_terminal:
                # Shown again where the redrawing ends: no cursor jumps about, and a frame in pieces is known as one.
                self._output.hide_cursor()
                app.renderer.erase()
                self._output.write_raw(text)
                app._redraw()
            else:
                self._output.write_raw(text)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """In the thread of the input; at once when there is none any more."""
        loop = self._loop
        if loop is not None:
            # It may close between these two lines; then the text goes out when the session ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(function, *arguments)
        elif function == self._draw:
            self._draw()


TWICE = 2.0
"""Seconds in which a second press means the same intent."""
TYPED_AHEAD = 0.5
"""Seconds after the start in which what was typed before it is read."""


@dataclass(slots=True)
class Handlers:
    input: Inline
    sitting: TerminalSession
    _pressed: float = field(default=-TWICE)
    _begun: float = field(default_factory=time.monotonic)

    def enter(self, event: KeyPressEvent) -> None:
        self._pressed = -TWICE
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
        elif state is not None and state.completions and not self._is_whole(state):
            buffer.apply_completion(state.completions[0])
        elif buffer.document.text_before_cursor.endswith("\\") and not self.input.asks:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.complete_state = None
            self.input.submit()

    def _is_whole(self, state: CompletionState) -> bool:
        """Whether what is typed names one of those that are offered, or another command."""
        typed = state.original_document.text_before_cursor
        named = typed.startswith("/") and self.sitting.shared.commands.knows(typed[1:].lower())
        return named or any(typed[one.start_position :] == one.text.strip() for one in state.completions)

    def only_marked(self) -> bool:
        """Something is offered, and nothing of it chosen yet."""
        state = self.input.buffer.complete_state
        return state is not None and bool(state.completions) and state.complete_index is None

    def paste(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(self.input.paste(event.data))

    def new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def line_feed(self, event: KeyPressEvent) -> None:
        """Ends a line that was typed before the terminal was Pawl's own; a new line later."""
        if time.monotonic() - self._begun < TYPED_AHEAD:
            self.enter(event)
        else:
            self.new_line(event)

    def down(self, event: KeyPressEvent) -> None:
        """From the first offer, which is marked without being chosen, to the second."""
        buffer = event.current_buffer
        buffer.go_to_completion(min(1, len(buffer.complete_state.completions) - 1) if buffer.complete_state else 0)

    def tab(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.strip()
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif completes(buffer.document.text_before_cursor):
            buffer.start_completion(select_first=True)
        elif text and self.sitting.is_working and not self.input.asks:
            self.sitting.queued(self.input.taken())

    def back(self, event: KeyPressEvent) -> None:
        """The offer before; without one the next mode."""
        if event.current_buffer.complete_state is not None:
            event.current_buffer.complete_previous()
        elif not self.input.asks:
            self.sitting.wishes.next_mode()

    def escape(self, event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state is not None:
            event.current_buffer.cancel_completion()
        elif not self.input.put_aside():
            self.sitting.stop()

    def interrupt(self, event: KeyPressEvent) -> None:
        """The first press stops what works, gives up a question or empties the input; the second leaves."""
        now = time.monotonic()
        again = now - self._pressed < TWICE
        self._pressed = now
        if again:
            self.input.leave()
        elif not self.input.put_aside() and not self.sitting.stop():
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

    def expand(self, event: KeyPressEvent) -> None:
        self.sitting.act("output", "")

    def suspend(self, event: KeyPressEvent) -> None:
        event.app.suspend_to_background()


def bindings(handlers: Handlers) -> KeyBindings:
    made = KeyBindings()
    typing = ~is_searching
    made.add("enter", filter=typing)(handlers.enter)
    made.add("escape", "enter", filter=typing & ~vi_insert_mode)(handlers.new_line)
    made.add("c-j", filter=typing)(handlers.line_feed)
    made.add("tab", filter=typing)(handlers.tab)
    made.add("down", filter=typing & Condition(handlers.only_marked))(handlers.down)
    made.add("s-tab", filter=typing)(handlers.back)
    made.add("escape", filter=typing & ~vi_insert_mode)(handlers.escape)
    made.add("c-c", filter=typing)(handlers.interrupt)
    made.add("c-d", filter=typing)(handlers.end)
    made.add(Keys.BracketedPaste, filter=typing)(handlers.paste)
    made.add("c-l")(handlers.clear)
    made.add("c-o")(handlers.expand)
    made.add("c-z")(handlers.suspend)
    return made


PROMPT, MORE, ASKED = "› ", "  ", "? "
MOST_INPUT, MOST_PREVIEW, MOST_OFFERED = 10, 5, 6
MOST_PASTED = 10
"""Lines of a paste that stand in the input as they are."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STYLES = {
    "dim": "fg:ansibrightblack",
    "bright_black": "fg:ansibrightblack",
    "not dim": "",
    "cyan": "fg:ansicyan",
    "blue": "fg:ansiblue",
}


def _styled(word: str) -> str:
    """The style of the user's theme, as the input line writes it."""
    return _STYLES[Screen.theme.get(word, word)]


def _width() -> int:
    # The last column stays free: a line that fills it is folded differently by different terminals.
    return max(10, get_app().output.get_size().columns - 1)


def _shown(text: Callable[[], StyleAndTextTuples]) -> Container:
    """Some lines, and none when there is nothing to show."""
    return ConditionalContainer(
        Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=False),
        filter=Condition(lambda: bool(text())),
    )


def _offered(buffer: Buffer) -> StyleAndTextTuples:
    """The candidates around the chosen one."""
    state = buffer.complete_state
    if state is None or not state.completions:
        return []
    chosen = state.complete_index
    start = max(0, min((chosen or 0) - MOST_OFFERED // 2, len(state.completions) - MOST_OFFERED))
    part = state.completions[start : start + MOST_OFFERED]
    names = [one.display_text for one in part]
    helped = any(one.display_meta_text for one in part)
    room = min(max(map(len, names)), _width() // 2 if helped else _width() - 2)
    lines: StyleAndTextTuples = []
    for at, one in enumerate(part, start=start):
        mark = ">" if at == (chosen or 0) else " "
        line = f"{mark} {cut(one.display_text, room):<{room}}  {one.display_meta_text}".rstrip()
        end = "\n" if at < start + len(part) - 1 else ""
        lines.append(("bold" if at == chosen else _styled("dim"), cut(line, _width()) + end))
    return lines
