"""Climbs a ladder and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python -m scenarios.killed_loop WORKSPACE SCRIPT N
"""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.dying import dying_at

from pawl.agent.escalation import LoopWish, loop_order
from pawl.agent.session import Session
from pawl.core.tiers import Escalation, Tier, TierMode
from pawl.settings.config import load
from pawl.workspace.project import Project

LADDER = Escalation(
    tiers=(
        Tier(name="simple", mode=TierMode.SIMPLE, iterations=1, samples=2),
        Tier(name="full", mode=TierMode.FULL, iterations=2),
    )
)


def main(workspace: str, script: str, last: int) -> None:
    with Project.open(load(), Path(workspace)) as shop, dying_at(last):
        Session(shop).do(loop_order(LoopWish(model=f"scripted:{script}"), LADDER))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
