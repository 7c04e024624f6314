"""The face of a session in a terminal: an input line that is always there, everything else printed once above it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from pawl.ui.screen.approving import edited
from pawl.ui.screen.screen import FoldingScreen, Screen, one_line
from pawl.ui.terminal.commands import command, completes
from pawl.ui.terminal.face import Listener
from pawl.ui.terminal.keys import Handlers, Parts, bindings, layout


class FrameOutput(Vt100_Output):
    """Holds what is drawn until the frame is whole, so that nobody sees half of one.

    It never asks the terminal where its cursor is: an answer that comes late would be taken for typing.
    """

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        depth = ColorDepth.DEPTH_4_BIT if color else ColorDepth.DEPTH_1_BIT
        super().__init__(stream, lambda: window(stream), default_color_depth=depth, enable_cpr=False, enable_bell=False)
        self._holding = 0

    @contextmanager
    def frame(self) -> Iterator[None]:
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            self.flush()

    def flush(self) -> None:
        if not self._holding:
            # A terminal that has gone shows nothing; what works is still put away, and a signal says the rest.
            with suppress(OSError):
                super().flush()


def window(stream: TextIO) -> Size:
    """How large the terminal is now; a terminal that does not know is taken for an ordinary one."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except OSError:
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)


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


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICK = 0.25
"""Seconds between two drawings while something works."""


@dataclass(slots=True)
class InlineQuestion:
    text: str
    answer: Future[str | None]
    draft: Document
    """What was being typed when it came; it comes back afterwards and is no answer."""


class Inline:
    """Fits `face.Face`. Its methods but `run` may be called from any thread."""

    def __init__(
        self,
        listener: Listener,
        *,
        color: bool,
        environment: dict[str, str],
        history: History | None = None,
        completer: Completer | None = None,
    ) -> None:
        self.listener = listener
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
        self._activity = ("", 0.0)
        self._preview = ""
        self._question: InlineQuestion | None = None
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

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self.listener.is_working:
                self._app.invalidate()

    def command(self, words: str) -> str:
        return command(words)

    def leave(self) -> None:
        self._call(self._leave)

    def _signalled(self, number: int) -> None:
        self.heard = number
        self._leave()

    def _leave(self) -> None:
        if not self._leaving and self._app.is_running:
            self._leaving = True
            self._app.exit()

    def line(self, question: str) -> str | None:
        """Asks for a line and waits for it; not to be called in the thread of the input."""
        answer: Future[str | None] = Future()
        if self._leaving or self._loop is None:
            return None
        self._call(self._ask, question, answer)
        return answer.result()

    def edited(self, text: str, suffix: str) -> str:
        """The editor has the terminal meanwhile."""
        if self._loop is None:
            return text

        async def edit() -> str:
            return await run_in_terminal(lambda: edited(text, suffix, self._environment))

        return asyncio.run_coroutine_threadsafe(edit(), self._loop).result()

    def activity(self, text: str) -> None:
        """What is being done; empty for nothing."""
        self._activity = (one_line(text), time.monotonic())
        self._call(self._app.invalidate)

    def preview(self, text: str) -> None:
        """The end of what is being said and is not finished."""
        self._preview = text
        self._call(self._app.invalidate)

    def clear(self) -> None:
        self._call(self._clear)

    def _clear(self) -> None:
        self._app.renderer.clear()
        self._print("\n")

    def refresh(self) -> None:
        self._call(self._app.invalidate)

    @property
    def asks(self) -> bool:
        return self._question is not None

    def submit(self) -> None:
        """What is in the input is done: an answer if something is asked, otherwise a request or a command."""
        text = self.buffer.text
        if self._question is not None:
            self.buffer.reset()
            self._answered(text)
            return
        if text.strip():
            self.buffer.append_to_history()
            self.buffer.reset()
            self.listener.entered(text.strip())

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
        self.out.put(f"{question.text}{text if text is not None else ''}\n")
        self.buffer.set_document(question.draft, bypass_readonly=True)
        question.answer.set_result(text)

    def _application(self) -> Application[None]:
        app: Application[None] = Application(
            layout=Layout(layout(self.buffer, self._parts)),
            key_bindings=bindings(Handlers(input=self, listener=self.listener)),
            output=self._output,
            input=create_input(sys.stdin),
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
            enable_page_navigation_bindings=False,
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = 0.2
        return app

    def _parts(self, width: int) -> Parts:
        text, since = self._activity
        working = self.listener.is_working
        question = self._question.text if self._question is not None else ""
        return Parts(
            preview=self._preview if working else "",
            activity=text if working and not question else "",
            seconds=time.monotonic() - since,
            question=question,
            status=one_line(self.listener.status(width, asked=bool(question))),
        )

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
