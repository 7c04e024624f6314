"""The words of `--test`, which several commands take."""

from __future__ import annotations

import shlex

from pawl.core.errors import UsageError


def words_of(text: str | None) -> tuple[str, ...]:
    """Empty when it is not given."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--test {text!r} cannot be read: {error}", advice="close the quotes") from error
    if not words:
        raise UsageError("--test names no command", advice="give one such as --test 'pytest tests/unit'")
    return words
