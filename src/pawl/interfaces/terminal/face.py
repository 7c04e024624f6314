"""What a session needs of whatever shows it, and what that tells the session; nothing here draws."""

from __future__ import annotations

from typing import Protocol

from pawl.interfaces.screen.screen import Screen


class Face(Protocol):
    """Where a session is seen. Its methods may be called from any thread, and from the one of the runs above all."""

    @property
    def out(self) -> Screen: ...

    @property
    def aside(self) -> Screen: ...

    def command(self, words: str) -> str:
        """How a command is written here."""
        ...

    def line(self, question: str) -> str | None:
        """Asks for a line and waits for it; None when there is nobody to answer, or for later."""
        ...

    def edited(self, text: str, suffix: str) -> str:
        """The text after the user has changed it in an editor."""
        ...

    def activity(self, text: str) -> None:
        """What is being done; empty for nothing."""
        ...

    def preview(self, text: str) -> None:
        """The end of what is being said and is not finished."""
        ...

    def clear(self) -> None: ...

    def leave(self) -> None: ...


class Listener(Protocol):
    """Who is told what the user does; called in the thread of the input."""

    def entered(self, text: str) -> None:
        """A request or a command."""
        ...

    def queued(self, text: str) -> None:
        """A request for afterwards."""
        ...

    def stop(self) -> bool:
        """Stops what works; False when there is nothing to stop."""
        ...

    @property
    def is_working(self) -> bool: ...

    def status(self, width: int, *, asked: bool) -> str: ...


class InputLine(Protocol):
    """What the keys do things to."""

    @property
    def out(self) -> Screen: ...

    @property
    def asks(self) -> bool:
        """A question waits for its answer."""
        ...

    def submit(self) -> None: ...

    def put_aside(self) -> bool:
        """Gives up the question that is asked; whether there was one."""
        ...

    def clear(self) -> None: ...

    def leave(self) -> None: ...
