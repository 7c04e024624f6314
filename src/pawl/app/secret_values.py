"""The values that are secrets of this process: those of variables, the user's and a trusted workspace's `.env`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pawl.app.config import Config
from pawl.app.dotenv import read
from pawl.app.trust import is_trusted
from pawl.core.errors import ConfigError
from pawl.core.redact import register

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
"""The values of variables whose names hold one of these are never sent, stored nor shown, whatever they look like."""


def is_secret_name(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_WORDS)


def register_secrets(config: Config, workspace: str) -> None:
    """Makes them known before anything is stored or said. A file that cannot be read is told by who needs it."""
    found = [config.environment]
    with suppress(ConfigError):
        found.append(read(config.file.parent / ".env", wanted=is_secret_name))
    own = Path(workspace) / ".env"
    with suppress(ConfigError):
        if own.exists() and is_trusted(config, workspace):
            found.append(read(own, wanted=is_secret_name))
    values = (value for several in found for name, value in several.items() if is_secret_name(name))
    register(*(value for value in values if not _is_a_place(value)))


def _is_a_place(value: str) -> bool:
    """A path of this machine, such as that of a file with keys, is no secret; it would be hidden from every message."""
    return value.startswith("/") and os.path.exists(value)
