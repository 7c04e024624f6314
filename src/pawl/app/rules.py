"""The policy table and the prompts, as the user's configuration makes them."""

from __future__ import annotations

from pathlib import Path

from pawl.app.config import Config
from pawl.app.trust import is_trusted
from pawl.core.run import Mode, RoleName, Stage
from pawl.policy.prompts import Prompt, PromptFault, PromptRepository, check_prompts
from pawl.policy.table import Policy, Row, standard_policy
from pawl.policy.table_page import as_markdown

__all__ = ["Policy", "Prompt", "PromptFault", "Row", "policy_page", "policy_rows", "prompt_faults", "prompts"]


def prompt_folders(config: Config, workspace: str) -> tuple[Path, ...]:
    """Where overrides come from: the user's own, then the repository's if the user trusts it."""
    folders = [config.file.parent / "prompts"]
    if is_trusted(config, workspace):
        folders.append(Path(workspace) / ".pawl" / "prompts")
    return tuple(folder for folder in folders if folder.is_dir())


def prompts(config: Config, workspace: str) -> PromptRepository:
    return PromptRepository.load(prompt_folders(config, workspace))


def prompt_faults(config: Config, workspace: str) -> list[PromptFault]:
    return check_prompts(prompt_folders(config, workspace))


def policy_rows(mode: Mode | None, stage: Stage | None, role: RoleName | None) -> tuple[Row, ...]:
    """The rows of the table that these choices leave."""
    return tuple(
        row
        for row in standard_policy().rows()
        if mode in (None, row.mode) and stage in (None, row.stage) and role in (None, row.role)
    )


def policy_page() -> str:
    """The whole table as Markdown."""
    return as_markdown()
