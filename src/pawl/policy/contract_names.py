"""The names of the contracts, which the table and the role files use; what they ask for stands in the workflow."""

from __future__ import annotations

CONTRACTS = (
    "cases",
    "delivery",
    "fix",
    "intent",
    "plan",
    "ranking",
    "review",
    "score",
    "verdict",
    "work",
)
