"""A text in the user's own editor: in a private file that is gone afterwards."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping

from pawl.core.errors import UsageError

FALLBACKS = ("sensible-editor", "nano", "vi")


def edited(text: str, suffix: str, environment: Mapping[str, str]) -> str:
    """What the user left in the file; the text as it was if the editor says that it failed."""
    words = editor_words(environment)
    descriptor, path = tempfile.mkstemp(prefix="pawl-", suffix=suffix)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
        try:
            done = subprocess.run([*words, path], check=False)
        except OSError as error:
            raise UsageError(
                f"the editor {words[0]!r} cannot be started: {error.strerror}", advice="set EDITOR to one that can"
            ) from error
        if done.returncode:
            return text
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    finally:
        os.unlink(path)


def editor_words(environment: Mapping[str, str]) -> list[str]:
    """The command of the user's editor."""
    named = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise UsageError(f"EDITOR is {named!r}, which cannot be read: {error}", advice="close the quotes") from error
    if words:
        return words
    for name in FALLBACKS:
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    raise UsageError("there is no editor", advice="set EDITOR, such as EDITOR=nano")
