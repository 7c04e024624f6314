"""The policy table and the prompts, as the user's configuration makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pawl.agent.policy import Policy, Row, standard_policy
from pawl.agent.prompts import Prompt, PromptFault, PromptRepository, check_prompts
from pawl.agent.roles import Role, load_roles
from pawl.core.errors import UsageError
from pawl.core.run import Mode, RoleName, Stage
from pawl.models.configuration import ModelConfig
from pawl.settings.allowances import ROLE_CONTRACT, ToolKind, allowances
from pawl.settings.config import Config
from pawl.settings.extensions import own_kinds
from pawl.settings.project_files import Folder
from pawl.settings.trust import trusted_files


def as_markdown(policy: Policy | None = None) -> str:
    """Kinds of tools, what each stage allows, the roles, and what each role then has."""
    policy = policy or standard_policy()
    parts = (
        ("A kind of tool", _table(("kind", "tools"), _kinds())),
        ("What a stage allows", _table(("stage", "in chat", "in agent", "reasoning, when on", "answer"), _stages())),
        (
            "Roles",
            _table(("role", "tools", "may send", "answer", "model slot", "temperature", "context"), _roles(policy)),
        ),
        ("What a role has", _table(("mode", "role", "stage", "tools"), _grants(policy))),
    )
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts) + "\n"


def _kinds() -> Iterator[Sequence[str]]:
    tools = allowances().tools
    for kind in ToolKind:
        yield kind, _code(tool for tool in tools if tools[tool] is kind)


def _stages() -> Iterator[Sequence[str]]:
    rows = allowances().rows
    for stage in Stage:
        chat, agent = rows[stage, Mode.CHAT], rows[stage, Mode.AGENT]
        answer = {"": "text", ROLE_CONTRACT: "the role's"}.get(agent.contract, f"`{agent.contract}`")
        kinds = (", ".join(kind for kind in ToolKind if kind in row.kinds) or "–" for row in (chat, agent))
        yield stage, *kinds, agent.reasoning, answer


def _roles(policy: Policy) -> Iterator[Sequence[str]]:
    for role in policy.roles.values():
        yield (
            f"**{role.name}**: {role.description}",
            _code(role.tools),
            ", ".join(sorted(role.delegates)) or "–",
            f"`{role.contract}`" if role.contract else "text",
            role.model,
            f"{role.temperature:g}",
            f"{role.context_tokens:,}",
        )


def _grants(policy: Policy) -> Iterator[Sequence[str]]:
    """Stages in which a role has the same tools share a line; those without tools are left out."""
    grants: dict[tuple[Mode, str, tuple[str, ...]], list[str]] = {}
    for row in sorted(policy.rows(), key=lambda row: (list(Mode).index(row.mode), list(policy.roles).index(row.role))):
        if row.decision.tools:
            grants.setdefault((row.mode, row.role, row.decision.tools), []).append(row.stage)
    for (mode, role, tools), stages in grants.items():
        yield mode, role, ", ".join(stages), _code(tools)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
