"""The table [session] of the settings: how a session in the terminal looks and behaves."""

from __future__ import annotations

from typing import Literal

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import raise_mistakes, read_settings
from pawl.settings.config import Config

PARTS = ("model", "mode", "approval", "cost", "context", "keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The fields of the table."""

    keys: Literal["emacs", "vi"] = "emacs"
    """How the input line is edited."""
    theme: Literal["dark", "light", "contrast"] = "dark"
    """Which of the terminal's colours are used: for a dark or a light background, or without dim letters."""
    status_line: tuple[str, ...] = PARTS
    """The parts of the status line, in their order."""
    notify: tuple[str, ...] = ("bell",)
    """How you are called when a long run ends or asks: `bell`, `title`, `desktop`; empty for not at all."""
    notify_seconds: float = 10.0
    """A run that was shorter calls nobody."""


NOTIFY = ("bell", "title", "desktop")


def session_settings(config: Config) -> SessionSettings:
    read = read_settings(SessionSettings(), "session", config.tables.session)
    for name, given, known in (("status_line", read.status_line, PARTS), ("notify", read.notify, NOTIFY)):
        wrong = [repr(one) for one in given if one not in known]
        told = [f"session.{name} knows no {', '.join(wrong)}"] if wrong else []
        raise_mistakes("the table [session] is wrong", told, advice=f"it takes {', '.join(known)}")
    return read
