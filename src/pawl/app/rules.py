"""The policy table and the prompts, as the user's configuration makes them."""

from __future__ import annotations

from dataclasses import replace

from pawl.app.asking.model_config import ModelConfig
from pawl.app.config import Config
from pawl.app.extending import own_kinds
from pawl.app.trust import trusted_files
from pawl.core.errors import UsageError
from pawl.core.run import Mode, RoleName, Stage
from pawl.policy.overrides import Folder
from pawl.policy.prompts import Prompt, PromptFault, PromptRepository, check_prompts
from pawl.policy.role_files import load_roles
from pawl.policy.roles import Role
from pawl.policy.table import Policy, Row, standard_policy
from pawl.policy.table_page import as_markdown

_FORMS = "requests/"

__all__ = [
    "Policy",
    "Prompt",
    "PromptFault",
    "Row",
    "policy_of",
    "policy_page",
    "policy_rows",
    "prompt_faults",
    "prompts",
    "request_from",
    "templates",
]


def prompt_folders(config: Config, workspace: str) -> tuple[Folder, ...]:
    """Where overrides come from: the user's own, then the repository's if the user trusts it."""
    return _folders(config, workspace, "prompts")


def _folders(config: Config, workspace: str, name: str) -> tuple[Folder, ...]:
    own = config.file.parent / name
    trusted = trusted_files(config, workspace)
    theirs = None if trusted is None else trusted.folder(f".pawl/{name}")
    folders: tuple[Folder, ...] = (own,) if own.is_dir() else ()
    if theirs is not None and theirs.files:
        folders += (replace(theirs, name=f"{workspace}/{theirs.name}"),)
    return folders


def policy_of(config: Config, workspace: str) -> Policy:
    """The table with the roles of the user's own, and of the repository if the user trusts it."""
    present = _folders(config, workspace, "roles")
    policy = Policy(load_roles(present)) if present else standard_policy()
    own = own_kinds(config)
    return replace(policy, own=own) if own else policy


def templates(config: Config, workspace: str) -> tuple[str, ...]:
    """The names of the forms that a request can be put into."""
    return tuple(
        sorted(name.removeprefix(_FORMS) for name in prompts(config, workspace).names() if name.startswith(_FORMS))
    )


def request_from(config: Config, workspace: str, template: str, text: str) -> str:
    """The request in the form of that name, which is read without a model (A14)."""
    if template not in (known := templates(config, workspace)):
        raise UsageError(f"there is no template {template!r}", advice=f"there are {', '.join(known)}")
    variables = {"user_input": text, "project_root": workspace}
    return prompts(config, workspace).render(f"{_FORMS}{template}", variables)


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


def model_of(config: ModelConfig, role: Role) -> str:
    """The model of a role: its own slot, else the slot that its file names, else the default."""
    slots = config.routes.slots
    return slots.get(role.name) or slots.get(role.model) or config.routes.model_for(role.model)
