"""All mistakes of the settings file at once, whichever of them a command met first."""

from __future__ import annotations

from collections.abc import Callable

from pawl.agent.queue.job_queue import queue_settings
from pawl.checks.settings import verify_settings
from pawl.core.errors import ConfigError, PawlError
from pawl.models.providers import local_settings
from pawl.models.router import model_config
from pawl.settings.config import Config, partly_loaded
from pawl.settings.hook_settings import hook_commands
from pawl.settings.permissions import own_rules
from pawl.settings.session_settings import session_settings
from pawl.settings.trust import is_listed
from pawl.settings.web_settings import web_settings

_READERS: tuple[Callable[[Config], object], ...] = (
    model_config,  # extensions with it
    lambda config: local_settings(config.tables.local),
    lambda config: hook_commands(config.tables.hooks, str(config.file), own=True),
    own_rules,
    verify_settings,
    session_settings,
    web_settings,
    queue_settings,
    lambda config: is_listed(config, "/"),
)
"""Whoever reads a table of the settings file."""


def with_every_mistake(met: ConfigError) -> ConfigError:
    """The error with all that is wrong in the settings file; unchanged where it is about something else."""
    try:
        config, _ = partly_loaded()
    except ConfigError:
        return met
    if str(config.file) not in met.message:
        return met
    told = every_mistake(met)
    if len(told) == 1:
        return met
    return ConfigError(
        f"{str(config.file)!r}: " + "; ".join(told), advice="correct them all; docs/settings.md lists every field"
    )


def every_mistake(*met: ConfigError) -> list[str]:
    """All that is wrong in the settings file, beginning with what was met."""
    config, wrong = partly_loaded()
    found: list[PawlError] = [*met, *([] if wrong is None else [wrong])]
    for read in _READERS:
        try:
            read(config)
        except PawlError as error:
            found.append(error)
    return list(dict.fromkeys(_without_file(str(config.file), error.message) for error in found))


def _without_file(file: str, message: str) -> str:
    for head in (f"{file!r}: ", f"{file!r}, ", f"{file!r} ", f"{file}: "):
        message = message.replace(head, "")
    return message
