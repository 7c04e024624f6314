"""The one answer to who may do what, and what is sent: a pure function of stage, mode and role, and a total one."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pawl.agent.prompts import HEADINGS
from pawl.agent.roles import Role, load_roles
from pawl.core.errors import PolicyViolation
from pawl.core.run import Approval, Mode, PolicyDecision, Reasoning, ReasoningFormat, RoleName, RunTerms, Stage
from pawl.settings.allowances import ROLE_CONTRACT, STANDS_FOR, StageAllowance, ToolKind, allowances


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, as it is where the user has reasoning on."""

    mode: Mode
    stage: Stage
    role: str
    decision: PolicyDecision


@dataclass(frozen=True, slots=True)
class Policy:
    """The table with a set of roles."""

    roles: Mapping[str, Role]
    available: frozenset[str] | None = None
    """The tools that there are here; None for all that the table knows."""
    own: Mapping[str, ToolKind] = field(default_factory=dict)
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
    ) -> PolicyDecision:
        """What the role gets at the stage in the mode. The approval is the user's and stays as it is."""
        row, who = allowances().rows[stage, mode], self.role(role)
        contract = who.contract if row.contract == ROLE_CONTRACT else row.contract
        asked = row.reasoning if reasoning is Reasoning.ON else ReasoningFormat.NONE
        return PolicyDecision(
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

    def _tools(self, row: StageAllowance, role: Role) -> tuple[str, ...]:
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
) -> PolicyDecision:
    """What the standard policy decides."""
    return standard_policy().decide(stage, mode, role, reasoning=reasoning, approval=approval)


def table_rows() -> tuple[Row, ...]:
    """Every combination of mode, stage and role of the standard policy."""
    return standard_policy().rows()


_MODES = {f"modes/{mode}": HEADINGS[f"modes/{mode}"] for mode in Mode}
_REASONING = {name: heading for name, heading in HEADINGS.items() if name.startswith("reasoning/")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a request carries, read off the request itself."""

    mode: Mode
    reasoning: Reasoning
    """What the provider is told, beside the prompts."""
    model: str
    tools: tuple[str, ...]
    system: tuple[str, ...]


def check_request(policy: Policy, terms: RunTerms, stage: Stage, role: str, sent: Sent) -> PolicyDecision:
    """The decision that the request keeps to; `PolicyViolation` names the first thing that is not as it must be."""
    decision = policy.decide(stage, terms.mode, role, reasoning=terms.reasoning)
    where = f"at {stage} for {role}"
    if sent.mode is not terms.mode:
        raise _violation("mode", where, f"the user's is {terms.mode}, the request's {sent.mode}")
    modes = _present(_MODES, sent)
    if modes != (f"modes/{terms.mode}",):
        raise _violation("mode", where, f"the user's is {terms.mode}, the prompts say {', '.join(modes) or 'none'}")
    if sent.reasoning is not terms.reasoning:
        raise _violation("reasoning", where, f"the user's is {terms.reasoning}, the request's {sent.reasoning}")
    expected = tuple(name for name in decision.prompts if name in _REASONING)
    prompts = _present(_REASONING, sent)
    if prompts != expected or bool(prompts) != (terms.reasoning is Reasoning.ON):
        asked, got = (", ".join(names) or "none" for names in (expected, prompts))
        raise _violation("reasoning", where, f"it is {terms.reasoning}, which asks for {asked}, not {got}")
    if sorted(sent.tools) != list(decision.tools):
        raise _violation("tools", where, _difference(frozenset(sent.tools), frozenset(decision.tools)))
    if sent.model != terms.model_for(role):
        raise _violation("model", where, f"the user's is {terms.model_for(role)!r}, the request's {sent.model!r}")
    return decision


def may_call(decision: PolicyDecision, tool: str) -> None:
    """`PolicyViolation` unless the tool was given for this stage, whatever a model asks for."""
    if tool not in decision.tools:
        allowed = ", ".join(decision.tools) or "none; answer in words"
        raise PolicyViolation(f"{tool!r} is not a tool of this stage", advice=f"the tools are: {allowed}")


def _present(headings: dict[str, str], sent: Sent) -> tuple[str, ...]:
    """The prompts whose heading opens a part; text of a file never does, for it stands inside a part of its own."""
    return tuple(
        name for part in sent.system for name, heading in headings.items() if part.partition("\n")[0] == heading
    )


def _difference(sent: frozenset[str], allowed: frozenset[str]) -> str:
    more, fewer = sorted(sent - allowed), sorted(allowed - sent)
    said = [f"not allowed: {', '.join(more)}"] * bool(more) + [f"missing: {', '.join(fewer)}"] * bool(fewer)
    return "; ".join(said) or "a tool is offered twice"


def _violation(what: str, where: str, why: str) -> PolicyViolation:
    return PolicyViolation(
        f"the {what!r} of a request {where} is not as it must be: {why}", advice="this is a fault of Pawl; report it"
    )
