"""The instructions for work in a workspace: the user's own AGENTS.md beside the settings, and the repository's."""

from __future__ import annotations

from collections.abc import Sequence

from pawl.app.config import Config
from pawl.context.instructions import MOST_BYTES, Instructions, gather
from pawl.core import bounded
from pawl.core.errors import ConfigError
from pawl.core.ports import Files

__all__ = ["Instructions", "instructions_of"]


def instructions_of(config: Config, files: Files, paths: Sequence[str] = ()) -> Instructions:
    """What applies to work on these paths; whether the folder is trusted does not matter, because it is only text."""
    return gather(files, paths, own=_own(config))


def _own(config: Config) -> str:
    path = config.file.parent / "AGENTS.md"
    if not path.is_file():
        return ""
    try:
        with bounded.opened(path) as file:
            # One byte more, so that a longer file is known to be cut.
            return file.read(MOST_BYTES + 1).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be read: {error.strerror}", advice="mend or remove the file"
        ) from error
