"""The commands of a session as the page carries them out: what they say is text of the page, what they ask waits for
the user's word there."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from pawl.core.errors import UsageError
from pawl.ui.cli.encoder import Json
from pawl.ui.screen.screen import Face, Screen
from pawl.ui.terminal.work_actions import SessionHost, WorkActions

_CHOICES = re.compile(r"(?<!\s)\s*\[(?P<choices>[^][]+)]\s*$")

Asks = Callable[[str, str | None], str | None]
"""Asks for a line, or for a text to be edited, and waits for it."""


class Said(io.StringIO):
    """A stream whose listener is told of what is written, as it comes."""

    def __init__(self, heard: Callable[[str], object] = lambda text: None) -> None:
        super().__init__()
        self._heard = heard

    def write(self, text: str, /) -> int:
        self._heard(text)
        return super().write(text)


class PageFace(Face):
    live = True

    def __init__(self, said: Said, asks: Asks = lambda question, draft: None) -> None:
        self._screen, self._asks = Screen(said, color=False), asks

    @property
    def out(self) -> Screen:
        return self._screen

    @property
    def aside(self) -> Screen:
        return self._screen

    def line(self, question: str, over: Callable[[], bool] | None = None) -> str | None:
        return self._asks(question, None)

    def secret(self, question: str) -> str | None:
        raise UsageError("a secret is not typed into a page", advice="type it into a terminal: pawl setup")

    def edited(self, text: str, suffix: str) -> str:
        said = self._asks("as you want it", text)
        return text if said is None else said


def question_json(question: str) -> Json:
    """A question as a terminal asks it, with what may be answered: `commit this? [y yes, n no]`."""
    found = _CHOICES.search(question)
    choices = [one.split(" ", 1) for one in found["choices"].split(", ")] if found else []
    plain = all(len(one) == 2 and len(one[0]) == 1 for one in choices)
    return {
        "question": question[: found.start()].strip() if found and plain else question.strip(),
        "choices": [{"key": key, "label": label} for key, label in choices] if plain else [],
    }


class PageActions(WorkActions):
    """With a face of its own where it is not to wait for what the session is at."""

    keys = ()

    def __init__(self, sitting: SessionHost, face: Face | None = None) -> None:
        super().__init__(sitting)
        self._own = face

    @property
    def _face(self) -> Face:
        return self._own or self._sitting.face

    def model(self, words: str) -> None:
        self._sitting.run_line("models", "--offline")

    def approve(self, words: str) -> None:
        self._say(f"run {self._sitting.session.waiting(words or None).run} waits for your answer, in Work")

    def take_up(self, conversation: str) -> None:
        """The page shows it by itself."""
        said = self._sitting.session.transcript(conversation)
        self._wishes.conversation = conversation
        self._sitting.meanwhile.resume(said[-1].time)
        self._say(f"conversation {conversation} continues")
