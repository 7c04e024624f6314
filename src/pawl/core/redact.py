"""Taking secrets out of text before it is stored, shown or sent: keys, tokens, passwords, private keys.

What is known to be a secret, because it was configured, is taken out wherever it stands; everything else by its shape
or by the name beside it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from pawl.core.redact_shapes import MARK, hidden, hidden_each

__all__ = [
    "MARK",
    "Redactor",
    "redacted",
    "redacted_body",
    "redacted_command",
    "redacted_each",
    "register",
    "without_known",
]

_WORD = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
_SECRET_NAME = re.compile(rf"(?i){_WORD}")
_SECRET_OPTION = re.compile(rf"(?i)--?[a-z0-9-]{{0,40}}{_WORD}")
_DEEPEST = 64


class Redactor:
    """Takes out the values that it was told, and whatever looks like a secret."""

    __slots__ = ("_forms", "generation")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self.generation = 0
        """Changes when a value is added, so that what was redacted before can be thrown away."""
        self.register(*values)

    def register(self, *values: str) -> None:
        """Adds values that are secret wherever they stand; too short ones and placeholders are left out."""
        if not values:
            return
        from pawl.core.redact_known import forms_of  # Only a process that has keys pays for the encodings.

        forms = {form for value in values for form in forms_of(value)} - set(self._forms)
        if forms:
            # The longest first: one value may hold another.
            self._forms = tuple(sorted({*self._forms, *forms}, key=lambda form: (-len(form), form)))
            self.generation += 1

    def knows(self, text: str) -> bool:
        """Whether a value that was registered stands in the text, in any form."""
        return any(form in text for form in self._forms)

    def redacted(self, text: str) -> str:
        """The text with every secret that can be recognised replaced by a mark."""
        return hidden(self.without_known(text))

    def without_known(self, text: str) -> str:
        """The text with only the values that were registered replaced."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text


PROCESS = Redactor()
"""The one of this process: a key that is configured is a secret for all of it."""


def register(*values: str) -> None:
    """Makes these values secrets for the rest of the process."""
    PROCESS.register(*values)


def redacted(text: str) -> str:
    """The text with every secret that can be recognised replaced by a mark."""
    return PROCESS.redacted(text)


def redacted_each(texts: Sequence[str]) -> list[str]:
    """The same for many short texts, which costs less than one after the other."""
    return hidden_each([PROCESS.without_known(text) for text in texts])


def without_known(text: str) -> str:
    """The text without the values that are secrets of this process; whatever only looks like one stays."""
    return PROCESS.without_known(text)


def redacted_command(words: Sequence[str]) -> str:
    """A command as it can be typed again, except for its secrets."""
    shown: list[str] = []
    is_value = False
    for word in words:
        shown.append(MARK if is_value and not word.startswith("-") else shlex.quote(redacted(word)))
        is_value = _SECRET_OPTION.fullmatch(word) is not None
    return redacted(" ".join(shown))


def redacted_body(body: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    """The same for values in values: what has the name of a secret is hidden whatever it looks like."""
    return {
        redacted(key): MARK
        if isinstance(value, str) and value and _SECRET_NAME.search(key)
        else _redacted_value(value, depth)
        for key, value in body.items()
    }


def _redacted_value(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST:
        return MARK
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return redacted_body({str(key): inner for key, inner in value.items()}, depth + 1)
        case list() | tuple():
            return [_redacted_value(inner, depth + 1) for inner in value]
    return value
