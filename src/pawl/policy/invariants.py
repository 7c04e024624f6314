"""What must hold of every request to a model: the user's mode, reasoning and model, and the tools of the policy."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.errors import PolicyViolation
from pawl.core.run import Decision, Mode, Reasoning, RunTerms, Stage
from pawl.policy.prompts import HEADINGS
from pawl.policy.table import Policy

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


def check_request(policy: Policy, terms: RunTerms, stage: Stage, role: str, sent: Sent) -> Decision:
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


def may_call(decision: Decision, tool: str) -> None:
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
