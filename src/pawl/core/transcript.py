"""What was said in a conversation, as it is kept: for the user to read, and to be taken up again."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.dialogue import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a conversation."""

    number: int
    time: str
    run: str
    message: Message
    reasoning: str = ""
    """The full text of the reasoning behind the message: kept and shown, never sent again."""
    sent_again: bool = True
    """False for what is only shown, such as an answer that was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The head of a conversation."""

    id: str
    started: str
    last: str
    """When something was said in it last."""
    title: str
    """The first words of the user."""
    turns: int
    """How often the user spoke."""
