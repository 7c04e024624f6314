"""What an agent is told before it is asked: instructions, memories, the memory bank, the files that the user names."""

from __future__ import annotations

from collections.abc import Callable

from pawl.agent import workspace_memory
from pawl.agent.instructions import instructions_of
from pawl.agent.intents import mentioned
from pawl.agent.tools.toolbox import ToolSession
from pawl.core.errors import PawlError
from pawl.core.events import RunEvent, Warned
from pawl.models.configuration import ModelConfig, model_config
from pawl.settings.env_file import LARGEST_BYTES, environment_of
from pawl.settings.project_files import read_text
from pawl.settings.trust import is_trusted
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

MOST_MENTIONED, MOST_LINES = 3, 400
"""Files that the user names and that are no longer than this are read before the model is asked."""

Listener = Callable[[RunEvent], object]


def configured(shop: Project, model: str = "") -> ModelConfig:
    """The user's settings for models, with another default model if one is named."""
    trusted = is_trusted(shop.config, shop.workspace)
    environment = environment_of(
        shop.config.environment,
        user=shop.config.file.parent / ".env",
        workspace=read_text(shop.workspace, ".env", LARGEST_BYTES) if trusted else "",
    )
    config = model_config(shop.config, environment)
    return config.with_model(model) if model else config


def line_count(files: Files, path: str) -> int | None:
    """None for what is no file that may be read."""
    try:
        data = files.read(path)
    except (PawlError, OSError):
        return None
    return data.count(b"\n") + (not data.endswith(b"\n"))


def read_ahead(files: Files, text: str) -> list[str]:
    """The short files that the user names, so that the model need not ask for them."""
    counted = ((path, line_count(files, path)) for path in mentioned(text))
    return [path for path, lines in counted if lines is not None and lines <= MOST_LINES][:MOST_MENTIONED]


def instructions(shop: Project, desk: ToolSession, request: str, listen: Listener) -> tuple[str, ...]:
    """The user's own AGENTS.md, then the workspace's down to the files that the request names."""
    found = instructions_of(shop.config, desk.gated, tuple(mentioned(request)))
    for notice in found.notices:
        listen(Warned(notice))
    return (found.text,) if found.parts else ()


def standing_context(shop: Project, desk: ToolSession, request: str, listen: Listener) -> tuple[str, ...]:
    """Instructions, the memories that fit the request, and the memory bank."""
    told = instructions(shop, desk, request, listen)
    return (*told, *workspace_memory.told(shop, request), *workspace_memory.bank_told(shop, desk.gated))
