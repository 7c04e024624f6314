"""Whether an input line can be drawn in place."""

from __future__ import annotations

import sys


def can_draw(term: str) -> bool:
    """Both ends are a terminal that understands more than text."""
    return term not in ("", "dumb", "unknown") and sys.stdin.isatty() and sys.stdout.isatty()
