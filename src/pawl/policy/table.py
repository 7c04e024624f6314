"""The one answer to who may do what, and what is sent: a pure function of stage, mode and role, and a total one."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pawl.core.errors import PolicyViolation
from pawl.core.run import Approval, Decision, Mode, Reasoning, ReasoningFormat, RoleName, Stage
from pawl.policy.allowances import ROLE_CONTRACT, STANDS_FOR, Allowance, Kind, allowances
from pawl.policy.role_files import load_roles
from pawl.policy.roles import Role


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, as it is where the user has reasoning on."""

    mode: Mode
    stage: Stage
    role: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class Policy:
    """The table with a set of roles."""

    roles: Mapping[str, Role]
    available: frozenset[str] | None = None
    """The tools that there are here; None for all that the table knows."""
    own: Mapping[str, Kind] = field(default_factory=dict)
    """Tools of the user's own: for the roles that have Pawl's tool of that kind."""

    def narrowed_to(self, tools: Iterable[str]) -> Policy:
        """The same policy where only these tools exist."""
        return replace(self, available=frozenset(tools))

    def role(self, name: str) -> Role:
        role = self.roles.get(name)
        if role is None:
            near = difflib.get_close_matches(name, list(self.roles), 1)
            known = f"did you mean {near[0]!r}?" if near else f"the roles are {', '.join(self.roles)}"
            raise PolicyViolation(f"there is no role {name!r}", advice=known)
        return role

    def decide(
        self, stage: Stage, mode: Mode, role: str, *, reasoning: Reasoning, approval: Approval = Approval.FINAL
    ) -> Decision:
        """What the role gets at the stage in the mode. The approval is the user's and stays as it is."""
        row, who = allowances().rows[stage, mode], self.role(role)
        contract = who.contract if row.contract == ROLE_CONTRACT else row.contract
        asked = row.reasoning if reasoning is Reasoning.ON else ReasoningFormat.NONE
        return Decision(
            tools=self._tools(row, who),
            prompts=("base", who.prompt, "project_root", f"modes/{mode}", row.prompt, *_reasoning(asked, contract)),
            reasoning=asked,
            approval=approval,
            contract=contract,
            reasoning_required=asked is not ReasoningFormat.NONE and mode is Mode.AGENT,
        )

    def rows(self, *, reasoning: Reasoning = Reasoning.ON, approval: Approval = Approval.FINAL) -> tuple[Row, ...]:
        return tuple(
            Row(mode, stage, role, self.decide(stage, mode, role, reasoning=reasoning, approval=approval))
            for mode in Mode
            for stage in Stage
            for role in self.roles
        )

    def _tools(self, row: Allowance, role: Role) -> tuple[str, ...]:
        kinds = allowances().tools
        chosen = [tool for tool in role.tools if kinds[tool] in row.kinds]
        chosen += [tool for tool, kind in self.own.items() if kind in row.kinds and STANDS_FOR[kind] in role.tools]
        return tuple(sorted(tool for tool in chosen if self.available is None or tool in self.available))


def _reasoning(asked: ReasoningFormat, contract: str) -> tuple[str, ...]:
    """A JSON answer has no room for a block beside it, so that there the reasoning is a field of the answer."""
    if asked is ReasoningFormat.NONE:
        return ()
    return ("reasoning/field",) if contract else (f"reasoning/{asked}",)


@functools.cache
def standard_policy() -> Policy:
    """The policy with the roles that come with Pawl."""
    return Policy(load_roles())


def decide(
    stage: Stage, mode: Mode, role: RoleName, *, reasoning: Reasoning, approval: Approval = Approval.FINAL
) -> Decision:
    """What the standard policy decides."""
    return standard_policy().decide(stage, mode, role, reasoning=reasoning, approval=approval)


def table_rows() -> tuple[Row, ...]:
    """Every combination of mode, stage and role of the standard policy."""
    return standard_policy().rows()
