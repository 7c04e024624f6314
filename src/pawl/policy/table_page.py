"""The policy as Markdown, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pawl.core.run import Mode, Stage
from pawl.policy.allowances import ROLE_CONTRACT, Kind, allowances
from pawl.policy.table import Policy, standard_policy


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
    for kind in Kind:
        yield kind, _code(tool for tool in tools if tools[tool] is kind)


def _stages() -> Iterator[Sequence[str]]:
    rows = allowances().rows
    for stage in Stage:
        chat, agent = rows[stage, Mode.CHAT], rows[stage, Mode.AGENT]
        answer = {"": "text", ROLE_CONTRACT: "the role's"}.get(agent.contract, f"`{agent.contract}`")
        kinds = (", ".join(kind for kind in Kind if kind in row.kinds) or "–" for row in (chat, agent))
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
