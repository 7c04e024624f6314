"""Whether a call of a tool may be carried out, and why: the answer of the permission rules as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pawl.core.change import Change


class Ruling(StrEnum):
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


_WEAKEST_FIRST = (Ruling.ALLOW, Ruling.ASK, Ruling.DENY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What the rules say of one call."""

    ruling: Ruling
    reason: str
    """For the user who is asked, and for the model that is refused."""
    rule: str = ""
    """The rule that decided; empty when none did."""
    source: str = ""
    """Where that rule stands."""
    firm: bool = False
    """A rule or a danger decided, which a hook's own yes does not lift."""
    suggestions: tuple[str, ...] = ()
    """Rules that would let this call pass, for a user who does not want to be asked again."""

    @property
    def allowed(self) -> bool:
        return self.ruling is Ruling.ALLOW


Judge = Callable[[Change], Permission | None]
"""What the rules say of a change, whoever made it: deny, ask, or None where none speaks of it."""


def strictest(permissions: tuple[Permission, ...]) -> Permission:
    """The one that stands in the way most; the first of several."""
    return max(permissions, key=lambda one: _WEAKEST_FIRST.index(one.ruling))
