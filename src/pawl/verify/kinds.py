"""The kinds of steps, in the order in which the ladder is climbed: what is cheap and says most comes first."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    SYNTAX = "syntax"
    TYPES = "types"
    DIAGNOSTICS = "diagnostics"
    LINT = "lint"
    BUILD = "build"
    SERVER = "server"
    TESTS = "tests"


ORDER = tuple(Kind)
CHEAP = (Kind.SYNTAX, Kind.TYPES, Kind.DIAGNOSTICS, Kind.LINT, Kind.BUILD)
"""What is judged before anything is started or any test runs."""
