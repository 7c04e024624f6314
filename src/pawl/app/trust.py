"""Which workspaces the user trusts: only there may the repository's own files configure Pawl."""

from __future__ import annotations

import os
from pathlib import Path

from pawl.app.config import Config
from pawl.app.project_files import USED, ProjectFiles, project_files
from pawl.app.trusting import Standing, folder_trust
from pawl.core.errors import ConfigError


def is_trusted(config: Config, workspace: str) -> bool:
    """Whether the user's settings list it, or `pawl trust` was said of its files as they are now."""
    return trusted_files(config, workspace) is not None


def trusted_files(config: Config, workspace: str) -> ProjectFiles | None:
    """The very contents that are trusted, to be used instead of reading again; None where the folder is not trusted."""
    if is_listed(config, workspace):
        return project_files(workspace, USED)
    found = folder_trust(config, workspace)
    return found.held if found.standing is Standing.TRUSTED else None


def is_listed(config: Config, workspace: str) -> bool:
    """Whether the workspace, or a folder above it, is listed under `folders` in the table [trust]."""
    table = config.tables.trust
    folders = table.get("folders", [])
    unknown = sorted(set(table) - {"folders"})
    if unknown or not isinstance(folders, list) or not all(isinstance(one, str) and one for one in folders):
        raise ConfigError(
            f"{str(config.file)!r}: [trust] takes folders, a list of paths"
            + (f", not {unknown[0]}" if unknown else ""),
            advice='write folders = ["/home/you/project"]',
        )
    trusted = [os.path.realpath(Path(one).expanduser()) for one in folders]
    return any(workspace == one or workspace.startswith(f"{one.rstrip('/')}/") for one in trusted)
