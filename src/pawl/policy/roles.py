"""Roles: agents described by data files, and what each may use and whom it may send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pawl.core.errors import PawlError, PolicyViolation

Validator = Callable[[str, str], object]
"""From the name of a contract and an answer to its value; a `PawlError` when the answer does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Something that a role file says about itself, to be held against it."""

    subject: str
    """`tool`, `delegate` or `answer`."""
    value: str
    allowed: bool

    @property
    def text(self) -> str:
        word = "allowed" if self.allowed else "refused"
        value = self.value if len(self.value) <= 60 else f"{self.value[:60]}…"
        return f"{self.subject} {value!r} should be {word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    name: str
    description: str
    prompt: str
    """The name of its prompt."""
    tools: frozenset[str]
    delegates: frozenset[str]
    """The roles that it may send."""
    contract: str
    """The schema of its answers; empty for plain text."""
    model: str
    """The slot that the configuration fills with a model, where it names none for the role itself."""
    temperature: float
    context_tokens: int
    """How much it is given to read."""
    examples: tuple[Example, ...] = field(default=(), repr=False)
    source: str = ""
    """The file it comes from."""


def may_use(role: Role, tool: str) -> None:
    """`PolicyViolation` unless the tool is one of the role's."""
    if tool not in role.tools:
        allowed = ", ".join(sorted(role.tools)) or "none"
        raise PolicyViolation(f"the role {role.name!r} may not use {tool!r}", advice=f"its tools are: {allowed}")


def may_delegate(role: Role, to: str) -> None:
    """`PolicyViolation` unless the role may send the other."""
    if "delegate" not in role.tools or to not in role.delegates:
        raise PolicyViolation(
            f"the role {role.name!r} may not delegate to {str(to)!r}",
            advice=f"it may send: {', '.join(sorted(role.delegates)) or 'nobody'}",
        )


def check_examples(role: Role, validate: Validator | None = None) -> tuple[str, ...]:
    """What the role's file says about itself and is not so; answers are held against the contract by `validate`."""
    checks: Mapping[str, Callable[[str], object]] = {
        "tool": lambda tool: may_use(role, tool),
        "delegate": lambda to: may_delegate(role, to),
        "answer": lambda answer: validate(role.contract, answer) if validate else None,
    }
    shown = (example for example in role.examples if example.subject != "answer" or validate)
    return tuple(example.text for example in shown if _passes(checks[example.subject], example) != example.allowed)


def _passes(check: Callable[[str], object], example: Example) -> bool:
    try:
        check(example.value)
    except PawlError:
        return False
    return True
